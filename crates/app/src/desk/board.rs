//! The board: the resources and claims of a site, in memory, so that a search for free time reads no table.
//!
//! Nobody has to keep a board current. A caller that asks for the board first makes it read the site's events since the
//! last call. The board then reads the claims that these events changed. So it contains everything that was committed
//! before the call. The board is only advice: the database decides when a booking is made.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use berth_engine::busy::Busy;
use berth_engine::equivalence::{Equivalence, Equivalences};
use berth_engine::placement::Candidate;
use berth_model::event::EventKind;
use berth_model::{
    Claim, ClaimId, ReservationId, Resource, ResourceId, ResourceType, Selection, SiteId, Status,
    TypeId, WindowId, WorkloadId,
};
use berth_store::{Conn, claims, events, inventory, sites};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};
use uuid::Uuid;

use crate::App;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::inventory::tree_of;

/// How many events are read at once, and the claims of how many resources.
const PAGE: u64 = 2_000;
const RESOURCES_AT_ONCE: usize = 500;

#[derive(Debug, Default)]
pub(crate) struct Boards(Mutex<HashMap<SiteId, Arc<RwLock<Option<Board>>>>>);

/// A board that nobody changes while this guard exists.
pub(crate) type BoardGuard = OwnedRwLockReadGuard<Option<Board>, Board>;

#[derive(Debug)]
pub(crate) struct Board {
    /// The number of the last event that the board contains.
    seen: u64,
    pub types: HashMap<TypeId, ResourceType>,
    pub resources: HashMap<ResourceId, Resource>,
    /// The resources that are ACTIVE and whose ancestors are all ACTIVE, too.
    in_service: HashSet<ResourceId>,
    pub busy: Busy,
}

impl Boards {
    fn of(&self, site: SiteId) -> Arc<RwLock<Option<Board>>> {
        let mut all = self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        all.entry(site).or_default().clone()
    }
}

impl App {
    /// The site's current board. A caller that needs several boards takes them in the order of the site ids, so
    /// that two callers never wait for each other.
    pub(crate) async fn board(&self, site: SiteId) -> Result<BoardGuard> {
        let mut board = self.boards.of(site).write_owned().await;
        let mut conn = self.store.read().await?;
        // Taken out while it changes: if the update is cancelled half-way, the next call reads a new board.
        let fresh = match board.take() {
            Some(board) => board.catch_up(&mut conn, site).await?,
            None => Board::read(&mut conn, site).await?,
        };
        *board = Some(fresh);
        OwnedRwLockReadGuard::try_map(board.downgrade(), Option::as_ref)
            .map_err(|_| Error::Internal("a board is gone that was just read".into()))
    }

    /// Reads every site's board before the first search. A large site takes seconds.
    pub(crate) async fn read_boards(&self) -> Result<()> {
        let mut reader = self.store.read().await?;
        let sites = sites::all_ids(&mut reader).await?;
        drop(reader);
        for site in sites {
            self.board(site).await?;
        }
        Ok(())
    }
}

/// What an event changes in a board.
enum Touches {
    Claims,
    Inventory,
    Nothing,
}

fn touches(kind: EventKind) -> Touches {
    use EventKind as Kind;
    match kind {
        Kind::MaintenancePlanned
        | Kind::MaintenanceCancelled
        | Kind::MaintenanceEnded
        | Kind::ReservationCreated
        | Kind::ReservationChanged
        | Kind::ReservationMoved
        | Kind::ReservationOffered
        | Kind::ReservationNoShow
        | Kind::ReservationApproved
        | Kind::ReservationRejected
        | Kind::ReservationCancelled
        | Kind::ReservationStarted
        | Kind::ReservationEnded
        | Kind::ReservationFailed
        | Kind::WorkloadStarted
        | Kind::WorkloadStopping
        | Kind::WorkloadRequeued
        | Kind::WorkloadEnded
        | Kind::WorkloadCancelled
        | Kind::CutBegun
        | Kind::CutEnded
        | Kind::ClaimYielded => Touches::Claims,
        Kind::TypeCreated
        | Kind::TypeChanged
        | Kind::TypeRemoved
        | Kind::ResourceCreated
        | Kind::ResourceChanged
        | Kind::ResourceMoved
        | Kind::ResourceRemoved
        | Kind::ResourceStatus => Touches::Inventory,
        Kind::PersonCreated
        | Kind::PersonChanged
        | Kind::PersonRemoved
        | Kind::SignedOut
        | Kind::TokenRevoked
        | Kind::SiteCreated
        | Kind::SiteChanged
        | Kind::MemberJoined
        | Kind::MemberChanged
        | Kind::MemberLeft
        | Kind::JoinRequested
        | Kind::JoinDeclined
        | Kind::ProjectCreated
        | Kind::ProjectChanged
        | Kind::ProjectRemoved
        | Kind::PolicyChanged
        | Kind::PolicyRemoved
        | Kind::FeedCreated
        | Kind::FeedRevoked
        | Kind::ClosureAdded
        | Kind::ClosureChanged
        | Kind::ClosureRemoved
        | Kind::EnvironmentMade
        | Kind::EnvironmentChanged
        | Kind::WorkloadSubmitted
        | Kind::WorkloadChanged
        | Kind::SessionChanged
        | Kind::SessionFailed
        | Kind::SessionIdle
        | Kind::SessionOutOfMemory
        | Kind::SessionVisited
        | Kind::ProfilePaused
        | Kind::ProfileResumed
        | Kind::QueueChanged
        | Kind::GrantGiven
        | Kind::GrantRevoked
        // Each instance has its own event.
        | Kind::SeriesCreated
        | Kind::SeriesChanged
        | Kind::SeriesCancelled
        | Kind::ReservationHandedOver
        | Kind::ReservationTroubled
        | Kind::ReservationReminder
        | Kind::NotificationCreated
        | Kind::NotificationRead
        | Kind::ReservationWaiting
        | Kind::ReservationCheckedIn => Touches::Nothing,
    }
}

/// The id of the object that holds claims, or of the claim itself.
fn holder(subject: &str) -> Option<Uuid> {
    let reservation = subject.parse().map(|ReservationId(id)| id);
    let window = || subject.parse().map(|WindowId(id)| id);
    let claim = || subject.parse().map(|ClaimId(id)| id);
    let workload = || subject.parse().map(|WorkloadId(id)| id);
    let known = reservation.or_else(|_| window()).or_else(|_| claim());
    known.or_else(|_| workload()).ok()
}

impl Board {
    async fn read(conn: &mut Conn, site: SiteId) -> Result<Board> {
        // Read this number first: events that happen meanwhile are then read again, and none is missed.
        let seen = events::last_number(conn).await?;
        let nothing = |_| None;
        let mut board = Board {
            seen,
            types: HashMap::new(),
            resources: HashMap::new(),
            in_service: HashSet::new(),
            busy: Busy::new(tree_of(&[])?, nothing, [] as [Claim; 0]),
        };
        board = board.read_inventory(conn, site).await?;
        let all: Vec<ResourceId> = board.resources.keys().copied().collect();
        board.refill(conn, all).await?;
        Ok(board)
    }

    async fn catch_up(mut self, conn: &mut Conn, site: SiteId) -> Result<Board> {
        loop {
            let (news, last) = events::news(conn, site, self.seen, PAGE).await?;
            let mut holders = BTreeSet::new();
            let mut is_rebuilt = false;
            for (kind, subject) in news {
                match touches(kind) {
                    Touches::Claims => holders.extend(holder(&subject)),
                    Touches::Inventory => is_rebuilt = true,
                    Touches::Nothing => {}
                }
            }
            if is_rebuilt {
                self = self.read_inventory(conn, site).await?;
            }
            if !holders.is_empty() {
                let touched = claims::touched_by(conn, holders.into_iter().collect()).await?;
                self.refill(conn, touched).await?;
            }
            // Event numbers have no gaps, so a short page is the last one.
            let is_last = last - self.seen < PAGE;
            self.seen = last;
            if is_last {
                return Ok(self);
            }
        }
    }

    async fn read_inventory(mut self, conn: &mut Conn, site: SiteId) -> Result<Board> {
        let resources = inventory::of_site(conn, site).await?;
        let tree = tree_of(&resources)?;
        let types = inventory::types(conn, site).await?;
        self.types = types.into_iter().map(|kind| (kind.id, kind)).collect();
        self.resources = resources.into_iter().map(|one| (one.id, one)).collect();
        let status_of = |id| {
            self.resources
                .get(&id)
                .map_or(Status::Active, |one| one.status)
        };
        let serves = |id: &ResourceId| tree.effective_status(*id, status_of).0 == Status::Active;
        self.in_service = tree.resources().filter(serves).collect();
        let capacity_of = |id| {
            let capacity = self.resources.get(&id)?.capacity.as_ref()?;
            Some(capacity.amount)
        };
        self.busy = self.busy.regrow(tree, capacity_of);
        Ok(self)
    }

    /// Reads the claims on these resources again.
    async fn refill(&mut self, conn: &mut Conn, resources: Vec<ResourceId>) -> Result<()> {
        for some in resources.chunks(RESOURCES_AT_ONCE) {
            let claims = claims::holding_on(conn, some.to_vec()).await?;
            let mut lanes: HashMap<ResourceId, Vec<&Claim>> = HashMap::new();
            for claim in &claims {
                lanes.entry(claim.resource).or_default().push(claim);
            }
            for resource in some {
                let lane = lanes.remove(resource).unwrap_or_default();
                self.busy.refill(*resource, lane.into_iter());
            }
        }
        Ok(())
    }

    /// Whether the site has a matching resource at all, in service or not.
    pub fn has(&self, what: &Selection) -> bool {
        self.resources.values().any(|resource| {
            let kind = self.types.get(&resource.type_id);
            kind.is_some_and(|kind| what.is_met_by(resource, kind))
        })
    }

    /// The matching resources in service, each with how far it exceeds the wish.
    pub fn candidates(&self, what: &Selection) -> Vec<Candidate> {
        let fits = |resource: &&Resource| {
            let kind = self.types.get(&resource.type_id);
            self.in_service.contains(&resource.id)
                && kind.is_some_and(|kind| what.is_met_by(resource, kind))
        };
        let candidate = |resource: &Resource| Candidate {
            resource: resource.id,
            cost: what.excess(resource),
        };
        let fitting = self.resources.values().filter(fits);
        fitting.map(candidate).collect()
    }

    /// The common kind of these resources, if they are all equivalent.
    pub fn common_kind(&self, resources: &[ResourceId]) -> Option<Equivalence> {
        let kinds = self.equivalences();
        let first = kinds.of(*resources.first()?)?;
        let is_alike = |id: &ResourceId| kinds.of(*id).is_some_and(|kind| kind == first);
        resources.iter().all(is_alike).then_some(first)
    }

    /// The resources in service of this kind, except `but`, in the order of their ids.
    pub fn of_kind(&self, kind: &Equivalence, but: &[ResourceId]) -> Vec<Candidate> {
        let kinds = self.equivalences();
        let fits = |id: &ResourceId| {
            self.type_name(*id) == Some(kind.type_name())
                && !but.contains(id)
                && kinds.of(*id).is_some_and(|other| other == *kind)
        };
        let fitting = self.in_service.iter().copied().filter(fits);
        let mut fitting: Vec<ResourceId> = fitting.collect();
        fitting.sort_unstable();
        let candidate = |resource| Candidate { resource, cost: 0 };
        fitting.into_iter().map(candidate).collect()
    }

    fn equivalences(&self) -> Equivalences<'_> {
        Equivalences::new(self.busy.tree(), &self.resources, &self.types)
    }

    /// Adds the names of these resources and of their types to the directory of an answer.
    pub fn name(&self, resources: &[ResourceId], directory: &mut Directory) {
        for resource in resources.iter().filter_map(|id| self.resources.get(id)) {
            directory.add_resource(resource);
            let kind = self.types.get(&resource.type_id);
            kind.iter().for_each(|kind| directory.add_type(kind));
        }
    }

    /// All that is taken, except by these claims.
    pub fn busy_without(&self, claims: &[Claim]) -> Busy {
        let mut busy = self.busy.clone();
        for claim in claims {
            busy.remove(claim);
        }
        busy
    }

    pub fn serves(&self, resource: ResourceId) -> bool {
        self.in_service.contains(&resource)
    }

    pub fn asks_leave(&self, resources: &[ResourceId]) -> bool {
        let kinds = resources.iter().filter_map(|id| self.resources.get(id));
        let mut kinds = kinds.filter_map(|resource| self.types.get(&resource.type_id));
        kinds.any(|kind| kind.needs_approval)
    }
}
