//! Short constructors for test values. A small number names each resource, claim or minute.

use berth_model::claim::{Amount, Claim, Firmness, Holder, Standing, Take};
use berth_model::{ClaimId, PersonId, ReservationId, ResourceId, SiteId, Span};
use jiff::{SignedDuration, Timestamp};

use crate::tree::Tree;

pub fn resource(number: u64) -> ResourceId {
    ResourceId::from_parts(number, &[0; 10])
}

pub fn claim_id(number: u64) -> ClaimId {
    ClaimId::from_parts(number, &[0; 10])
}

pub fn reservation(number: u64) -> ReservationId {
    ReservationId::from_parts(number, &[0; 10])
}

pub fn person(number: u64) -> PersonId {
    PersonId::from_parts(number, &[0; 10])
}

pub fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + minute * 60).unwrap()
}

pub fn span(start: i64, end: i64) -> Span {
    Span::new(at(start), at(end)).unwrap()
}

/// `parents[n]` is the parent of resource `n`.
pub fn tree(parents: &[Option<u64>]) -> Tree {
    let resources = (0..).zip(parents);
    Tree::new(resources.map(|(id, parent)| (resource(id), parent.map(resource)))).unwrap()
}

/// A firm, exclusive, holding claim in the outermost container. Each method below changes one property.
pub fn claim(id: u64, on: u64, span: Span) -> Claim {
    Claim {
        id: claim_id(id),
        site: SiteId::from_parts(0, &[0; 10]),
        resource: resource(on),
        span,
        take: Take::Exclusive,
        firmness: Firmness::Firm,
        container: None,
        holder: Holder::Reservation(reservation(id)),
        standing: Standing::Holding,
    }
}

pub trait But {
    fn amount(self, amount: u64) -> Self;
    fn inside(self, container: u64) -> Self;
    fn yielding(self) -> Self;
    fn over(self) -> Self;
}

impl But for Claim {
    fn amount(self, amount: u64) -> Self {
        let take = Take::Amount(Amount::new(amount).unwrap());
        Claim { take, ..self }
    }
    fn inside(self, container: u64) -> Self {
        let container = Some(claim_id(container));
        Claim { container, ..self }
    }
    fn yielding(self) -> Self {
        let grace = SignedDuration::from_mins(5);
        let firmness = Firmness::Yielding { grace };
        Claim { firmness, ..self }
    }
    fn over(self) -> Self {
        let standing = Standing::Past;
        Claim { standing, ..self }
    }
}
