//! A site with a tree of resources, and claims on it said in few words.

use berth_model::inventory::{Capacity, Facts};
use berth_model::site::{OutsiderView, Site};
use berth_model::{
    Amount, Claim, ClaimId, Firmness, Holder, Resource, ResourceId, ResourceType, SiteId, Span,
    Standing, Status, Take, TypeId, WorkloadId,
};
use berth_store::{Conn, Result, Store, claims, inventory, sites};
use jiff::SignedDuration;

use super::{fresh_id, hour, transact};

/// A site of its own, in which everything is held by one holder.
#[derive(Debug, Clone)]
pub struct Lab {
    pub store: Store,
    pub site: SiteId,
    pub kind: TypeId,
    pub holder: Holder,
}

impl Lab {
    pub async fn new(store: &Store) -> Self {
        let lab = Self {
            store: store.clone(),
            site: SiteId(fresh_id()),
            kind: TypeId(fresh_id()),
            holder: Holder::Workload(WorkloadId(fresh_id())),
        };
        let site = Site {
            id: lab.site,
            name: format!("s-{}", lab.site.0.simple())
                .parse()
                .expect("a name"),
            title: "Lab".parse().expect("a title"),
            time_zone: "Europe/Rome".parse().expect("a time zone"),
            outsiders_see: OutsiderView::Nothing,
            version: 1,
            accent: None,
            logo: None,
            policy_version: 1,
            created_at: hour(0),
        };
        let kind = ResourceType {
            id: lab.kind,
            site: lab.site,
            name: "thing".parse().expect("a name"),
            title: "Thing".parse().expect("a title"),
            colour: "#1f77b4".parse().expect("a colour"),
            form: Default::default(),
            needs_approval: false,
            version: 1,
        };
        transact(store, async |tx| {
            sites::insert(tx, &site).await?;
            inventory::insert_type(tx, &kind).await
        })
        .await
        .expect("a new site");
        lab
    }

    pub fn resource(
        &self,
        id: ResourceId,
        parent: Option<ResourceId>,
        capacity: Option<u64>,
    ) -> Resource {
        Resource {
            id,
            site: self.site,
            parent,
            type_id: self.kind,
            name: format!("r-{}", id.0.simple()).parse().expect("a name"),
            title: None,
            attributes: Default::default(),
            facts: Facts::default(),
            capacity: capacity.map(|capacity| Capacity {
                amount: amount(capacity),
                unit: "core".parse().expect("a unit"),
            }),
            status: Status::Active,
            status_reason: None,
            version: 1,
        }
    }

    /// A new resource that takes no amounts.
    pub async fn thing(&self, parent: Option<ResourceId>) -> ResourceId {
        self.add(parent, None).await
    }

    /// A new divisible resource.
    pub async fn divisible(&self, parent: Option<ResourceId>, capacity: u64) -> ResourceId {
        self.add(parent, Some(capacity)).await
    }

    async fn add(&self, parent: Option<ResourceId>, capacity: Option<u64>) -> ResourceId {
        let id = ResourceId(fresh_id());
        let new = self.resource(id, parent, capacity);
        transact(&self.store, async |tx| {
            inventory::insert(tx, &new, hour(0)).await
        })
        .await
        .expect("a new resource");
        id
    }

    /// A firm claim of all of a resource from one hour to another, not made yet.
    pub fn claim(&self, on: ResourceId, from: i64, to: i64) -> Claim {
        Claim {
            id: ClaimId(fresh_id()),
            site: self.site,
            resource: on,
            span: span(from, to),
            take: Take::Exclusive,
            firmness: Firmness::Firm,
            container: None,
            holder: self.holder,
            standing: Standing::Holding,
        }
    }

    pub async fn make(&self, claims: &[Claim]) -> Result<()> {
        transact(&self.store, async |tx| claims::insert(tx, claims).await).await
    }

    /// Makes a claim that must be accepted, and gives back its id.
    pub async fn made(&self, claim: Claim) -> ClaimId {
        self.make(std::slice::from_ref(&claim))
            .await
            .expect("a claim with nothing in its way");
        claim.id
    }

    /// Every claim this lab ever had.
    pub async fn claims(&self, conn: &mut Conn) -> Vec<Claim> {
        claims::all_of(conn, self.holder)
            .await
            .expect("the lab's claims")
    }

    pub async fn get(&self, id: ClaimId) -> Claim {
        let mut conn = self.store.read().await.expect("a connection to read");
        let found = claims::get(&mut conn, id).await.expect("an answer");
        found.expect("a claim that was made")
    }
}

/// One thing changed about a claim.
pub trait But {
    fn amount(self, amount: u64) -> Self;
    fn inside(self, container: ClaimId) -> Self;
    fn yielding(self) -> Self;
}

impl But for Claim {
    fn amount(self, value: u64) -> Self {
        let take = Take::Amount(amount(value));
        Claim { take, ..self }
    }

    fn inside(self, container: ClaimId) -> Self {
        let container = Some(container);
        Claim { container, ..self }
    }

    fn yielding(self) -> Self {
        let firmness = Firmness::Yielding {
            grace: SignedDuration::from_mins(5),
        };
        Claim { firmness, ..self }
    }
}

pub fn span(from: i64, to: i64) -> Span {
    Span::new(hour(from), hour(to)).expect("a span that is not empty")
}

pub fn amount(value: u64) -> Amount {
    Amount::new(value).expect("a positive amount")
}
