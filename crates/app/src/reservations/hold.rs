//! Takes claims under the claim rule: yielding claims give way, and a refusal names the claims in the way.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::rule::{Refusal, peak_amount};
use berth_engine::yielding::{Cut, yield_plan};
use berth_model::event::{Audience, EventKind};
use berth_model::workload::Run;
use berth_model::{Claim, ClaimId, Firmness, Holder, Resource, ResourceId, SiteId, Standing, Take};
use berth_store::{Conn, Refused, claims, inventory, workloads};
use jiff::SignedDuration;
use serde_json::json;

use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::inventory::tree_of;
use crate::place::Place;
use crate::record::{By, Change};

/// Whether yielding claims give way first. Trying without that is faster, and nearly always enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Softer {
    LeftAlone,
    GiveWay,
}

/// How many claims a refusal lists for one resource.
const SHOWN_MAX: u64 = 20;
pub(super) const ALL: u64 = u64::MAX >> 1;

/// How far the clocks of two servers on one database may differ.
pub(super) const CLOCKS_APART: SignedDuration = SignedDuration::from_mins(1);

impl App {
    /// Makes the claims. With [`Softer::GiveWay`], shortens yielding claims in the way first, so that they end before.
    pub(crate) async fn hold(
        &self,
        conn: &mut Conn,
        by: &By,
        wanted: &[Claim],
        softer: Softer,
    ) -> Result<()> {
        if softer == Softer::GiveWay {
            self.make_way(conn, by, wanted).await?;
        }
        claims::insert(conn, wanted).await?;
        self.spare_the_past(conn, wanted).await
    }

    /// Refuses new claims of this transaction that reach back into a time that other claims had. The database's rule
    /// covers only claims that still hold, so this check protects past ones. It runs after the claims were inserted: by
    /// then the claims in their way have ended, and the time of that is known.
    pub(super) async fn spare_the_past(&self, conn: &mut Conn, made: &[Claim]) -> Result<()> {
        let soon = self.now() + CLOCKS_APART;
        for new in made.iter().filter(|new| new.span.start() < soon) {
            let over = claims::over_during(conn, new.resource, new.span, ALL).await?;
            let (shared, whole): (Vec<Claim>, Vec<Claim>) = over.into_iter().partition(|past| {
                matches!((past.take, new.take), (Take::Amount(_), Take::Amount(_)))
            });
            if !whole.is_empty() {
                return Err(berth_store::Error::Refused(Refused::Claim).into());
            }
            if !shared.is_empty() && self.was_too_much(conn, new).await? {
                return Err(berth_store::Error::Refused(Refused::Amount).into());
            }
        }
        Ok(())
    }

    /// Whether the claims would have exceeded the capacity at some moment.
    ///
    /// The claims that hold are read before those that are over. A claim that ends between the two reads is then in
    /// both, and counted once. In the other order it would be in neither.
    async fn was_too_much(&self, conn: &mut Conn, new: &Claim) -> Result<bool> {
        let mut all = claims::overlapping(conn, new.resource, new.span, None, ALL).await?;
        let over = claims::over_during(conn, new.resource, new.span, ALL).await?;
        all.retain(|claim| !over.iter().any(|past| past.id == claim.id));
        all.extend(over.into_iter().map(|claim| Claim {
            standing: Standing::Holding,
            ..claim
        }));
        let known = inventory::by_id(conn, new.site, new.resource).await?;
        let room = known
            .and_then(|known| known.capacity)
            .map_or(0, |capacity| capacity.amount.get());
        Ok(peak_amount(&all, new.resource, None, new.span) > room)
    }

    /// Whether a yielding claim is in the way of these claims.
    pub(super) async fn would_anyone_yield(&self, wanted: &[Claim]) -> Result<bool> {
        let mut reader = self.store.read().await?;
        for new in wanted {
            let (resource, span) = (new.resource, new.span);
            let standing =
                claims::overlapping(&mut reader, resource, span, new.container, ALL).await?;
            if standing.iter().any(yields) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Shortens or withdraws the yielding claims that are in the way of firm ones.
    pub(crate) async fn make_way(&self, conn: &mut Conn, by: &By, wanted: &[Claim]) -> Result<()> {
        let now = self.now();
        for new in wanted {
            let mut standing =
                claims::overlapping(conn, new.resource, new.span, new.container, ALL).await?;
            // The claims that a change itself gives up are not in its way.
            standing.retain(|claim| claim.holder != new.holder);
            if !standing.iter().any(yields) {
                continue;
            }
            // Only the ancestors of the resources involved: otherwise every refusal would read the whole site.
            let met = standing.iter().map(|claim| claim.resource);
            let ids: BTreeSet<ResourceId> = met.chain([new.resource]).collect();
            let ids = ids.into_iter().collect();
            let lines = inventory::wanted(conn, new.site, ids, Vec::new()).await?;
            let of_new = lines.iter().find(|line| line.resource.id == new.resource);
            let capacity = of_new
                .and_then(|line| line.resource.capacity.as_ref())
                .map(|capacity| capacity.amount);
            let near = lines
                .into_iter()
                .flat_map(|line| line.above.into_iter().chain([line.resource]));
            let near: BTreeMap<ResourceId, Resource> = near.map(|one| (one.id, one)).collect();
            let tree = tree_of(near.values())?;
            let container = match new.container {
                Some(id) => claims::get(conn, id).await?,
                None => None,
            };
            let limit = berth_engine::container::limit(capacity, container.as_ref());
            // If firm claims are in the way, the insert that follows refuses with the right message.
            let plan: Result<_, Refusal> = yield_plan(&tree, limit, new, &standing, now);
            for given in plan.unwrap_or_default() {
                let Some(claim) = standing.iter().find(|claim| claim.id == given.claim) else {
                    continue;
                };
                match given.cut {
                    Cut::ShortenTo(end) => match claim.span.before(end) {
                        Some(left) => claims::shrink(conn, claim.id, left, now).await?,
                        None => claims::release(conn, &[claim.id], now).await?,
                    },
                    Cut::Void => claims::release(conn, &[claim.id], now).await?,
                }
                self.cut_run(conn, claim).await?;
                self.tell_yield(conn, by, new.site, claim, new).await?;
            }
        }
        Ok(())
    }

    /// Shortens the run of a shortened claim, so that it ends in time. The server of the run's machine reads the
    /// deadline from the run.
    async fn cut_run(&self, conn: &mut Conn, claim: &Claim) -> Result<()> {
        let Holder::Workload(workload) = claim.holder else {
            return Ok(());
        };
        let runs = workloads::live_runs_of(conn, workload).await?;
        for run in runs.iter().filter(|run| run.claims.contains(&claim.id)) {
            let mut held = Vec::with_capacity(run.claims.len());
            for id in &run.claims {
                held.extend(claims::get(conn, *id).await?);
            }
            let until = crate::queue::has_until(run, &held);
            let cut = Run {
                until,
                ..run.clone()
            };
            if until < run.until && !workloads::update_run(conn, &cut, run.version).await? {
                return Err(Error::Store(berth_store::Error::Retry));
            }
        }
        Ok(())
    }

    async fn tell_yield(
        &self,
        conn: &mut Conn,
        by: &By,
        site: SiteId,
        gave: &Claim,
        to: &Claim,
    ) -> Result<()> {
        let told = json!({ "claim": gave.id, "holder": gave.holder, "resource": gave.resource, "until": to.span.start() });
        let change = Change::new("claim.yield", Some(site), gave.id)
            .before(gave)
            .after(json!({ "gives_way_to": to.id, "until": to.span.start() }))
            .tell_only(EventKind::ClaimYielded, Audience::Members, told);
        self.record(conn, by.clone(), change).await
    }

    /// The refusal of the claims, as this caller may see it. `but` are the caller's own claims that are being changed.
    pub(crate) async fn refusal(
        &self,
        place: &Place,
        caller: &Caller,
        wanted: &[Claim],
        but: &[ClaimId],
    ) -> Error {
        match self.find_conflicts(place, caller, wanted, but).await {
            Ok(error) | Err(error) => error,
        }
    }

    async fn find_conflicts(
        &self,
        place: &Place,
        caller: &Caller,
        wanted: &[Claim],
        but: &[ClaimId],
    ) -> Result<Error> {
        let mut reader = self.store.read().await?;
        let mut directory = Directory::with_site(&place.site);
        let mut pairs: Vec<(ResourceId, Claim)> = Vec::new();
        for new in wanted {
            let standing = claims::overlapping(
                &mut reader,
                new.resource,
                new.span,
                new.container,
                SHOWN_MAX,
            )
            .await?;
            let over = claims::over_during(&mut reader, new.resource, new.span, SHOWN_MAX).await?;
            let meets = |claim: &Claim| {
                // Two amounts do not conflict by themselves, but all amounts together may exceed the capacity.
                let parts_of_another = matches!(claim.take, Take::Amount(_))
                    && matches!(new.take, Take::Amount(_))
                    && claim.resource != new.resource;
                !but.contains(&claim.id) && !parts_of_another
            };
            pairs.extend(
                standing
                    .into_iter()
                    .chain(over)
                    .filter(|claim| meets(claim))
                    .map(|claim| (new.resource, claim)),
            );
        }
        let conflicts = self
            .explain(&mut reader, place, caller, pairs, &mut directory)
            .await?;
        Ok(Error::Conflict {
            conflicts,
            alternatives: Vec::new(),
            directory: Box::new(directory),
        })
    }
}

/// Whether the database refused because of other claims.
pub(crate) fn is_taken(error: &Error) -> bool {
    error.is_refused(Refused::Claim) || error.is_refused(Refused::Amount)
}

fn yields(claim: &Claim) -> bool {
    matches!(claim.firmness, Firmness::Yielding { .. })
}
