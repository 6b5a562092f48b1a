//! Random operations, drawn as drafts: each says what to do relative to what is there when its turn comes, so that a
//! sequence still makes sense after the shrinker has taken half of it away.
//!
//! Most drafts fit: they ask for something that could stand if nothing else were in the way. The rest are drawn at
//! random, so that every refusal is met too.

use berth_engine::timeline::Operation;
use berth_model::{Claim, ClaimId, Firmness, ResourceId, Span, Standing, Take};
use jiff::SignedDuration;
use proptest::prelude::*;
use proptest::sample::Index;

use super::model::{Model, Step};
use crate::support::lab::{Lab, amount, span};
use crate::support::{fresh_id, hour};

/// Hours in which everything happens: few, so that much is in the way of much.
const HOURS: i64 = 16;
/// Levels of the tree.
const DEPTH_MAX: usize = 5;
/// How many operations a sequence has on average; few enough that the shrinker can get down to one.
const OPERATIONS: usize = 60;

#[derive(Debug, Clone)]
pub enum Draft {
    AddResource {
        parent: Option<Index>,
        capacity: Option<u64>,
    },
    Insert(Vec<ClaimDraft>),
    InsertFirmly(ClaimDraft),
    SetSpan(Chosen, Hours),
    Shrink(Chosen, Hours),
    Rebind {
        claim: Chosen,
        resource: Index,
        amount: Option<u64>,
        fits: bool,
    },
    Release(Chosen, i64),
    Move {
        resource: Index,
        under: Option<Index>,
    },
    SetCapacity {
        resource: Index,
        capacity: Option<u64>,
    },
    Remove(Index),
}

#[derive(Debug, Clone)]
pub struct ClaimDraft {
    resource: Index,
    hours: Hours,
    amount: Option<u64>,
    container: Option<Chosen>,
    soft: bool,
    fits: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Hours {
    from: i64,
    length: i64,
}

/// One of the claims that hold, or now and then one that no longer does.
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    index: Index,
    any: bool,
}

impl Hours {
    fn span(self) -> Span {
        span(self.from, self.from + self.length)
    }
}

fn hours() -> impl Strategy<Value = Hours> {
    (0..HOURS, 1..=6i64).prop_map(|(from, length)| Hours { from, length })
}

fn chosen() -> impl Strategy<Value = Chosen> {
    (any::<Index>(), prop::bool::weighted(0.05)).prop_map(|(index, any)| Chosen { index, any })
}

fn capacity() -> impl Strategy<Value = Option<u64>> {
    prop::option::weighted(0.4, 1..=8u64)
}

prop_compose! {
    fn claim()(
        resource: Index,
        hours in hours(),
        amount in prop::option::of(1..=5u64),
        container in prop::option::weighted(0.4, chosen()),
        soft in prop::bool::weighted(0.4),
        fits in prop::bool::weighted(0.8),
    ) -> ClaimDraft {
        ClaimDraft { resource, hours, amount, container, soft, fits }
    }
}

fn draft() -> impl Strategy<Value = Draft> {
    let index = any::<Index>;
    let fits = prop::bool::weighted(0.8);
    prop_oneof![
        1 => (prop::option::of(index()), capacity())
            .prop_map(|(parent, capacity)| Draft::AddResource { parent, capacity }),
        10 => prop::collection::vec(claim(), 1..=3).prop_map(Draft::Insert),
        3 => claim().prop_map(Draft::InsertFirmly),
        4 => (chosen(), hours()).prop_map(|(claim, hours)| Draft::SetSpan(claim, hours)),
        2 => (chosen(), hours()).prop_map(|(claim, hours)| Draft::Shrink(claim, hours)),
        4 => (chosen(), index(), prop::option::of(1..=5u64), fits)
            .prop_map(|(claim, resource, amount, fits)| Draft::Rebind { claim, resource, amount, fits }),
        2 => (chosen(), 0..=HOURS).prop_map(|(claim, at)| Draft::Release(claim, at)),
        3 => (index(), prop::option::weighted(0.8, index()))
            .prop_map(|(resource, under)| Draft::Move { resource, under }),
        2 => (index(), capacity())
            .prop_map(|(resource, capacity)| Draft::SetCapacity { resource, capacity }),
        1 => index().prop_map(Draft::Remove),
    ]
}

/// A tree to begin with, then anything at all.
pub fn sequence() -> impl Strategy<Value = Vec<Draft>> {
    let resource = (prop::option::weighted(0.8, any::<Index>()), capacity())
        .prop_map(|(parent, capacity)| Draft::AddResource { parent, capacity });
    let tree = prop::collection::vec(resource, 4..=12);
    let rest = prop::collection::vec(draft(), 1..2 * OPERATIONS);
    (tree, rest).prop_map(|(tree, rest)| tree.into_iter().chain(rest).collect())
}

impl Draft {
    /// What the draft means now; nothing where it asks for something that is not there at all.
    pub fn resolve(&self, lab: &Lab, model: &Model) -> Option<Step> {
        let resources = &model.resources;
        let resource = |index: &Index| (!resources.is_empty()).then(|| *index.get(resources));
        let step = match self {
            Draft::AddResource { parent, capacity } => Operation::AddResource {
                resource: ResourceId(fresh_id()),
                parent: parent
                    .as_ref()
                    .and_then(resource)
                    .filter(|parent| model.depth(*parent) + 1 < DEPTH_MAX),
                capacity: capacity.map(amount),
            },
            Draft::Insert(drafts) => {
                let claims = drafts.iter().map(|draft| draft.resolve(lab, model));
                Operation::Insert(claims.collect::<Option<_>>()?)
            }
            Draft::InsertFirmly(draft) => return model.firmly(draft.resolve(lab, model)?),
            Draft::SetSpan(claim, hours) => Operation::SetSpan {
                claim: claim.resolve(model)?.id,
                span: hours.span(),
            },
            Draft::Shrink(claim, hours) => Operation::SetSpanWithInside {
                claim: claim.resolve(model)?.id,
                span: hours.span(),
            },
            Draft::Rebind {
                claim,
                resource: index,
                amount,
                fits,
            } => {
                let resource = resource(index)?;
                Operation::Rebind {
                    claim: claim.resolve(model)?.id,
                    resource,
                    take: take(model, resource, *amount, *fits),
                }
            }
            Draft::Release(claim, at) => Operation::ReleaseWithInside {
                claim: claim.resolve(model)?.id,
                at: hour(*at),
            },
            Draft::Move {
                resource: index,
                under,
            } => {
                let (moved, under) = (resource(index)?, under.as_ref().and_then(resource));
                let top = under.map_or(0, |under| model.depth(under) + 1);
                if top + model.height(moved) > DEPTH_MAX {
                    return None;
                }
                Operation::MoveSubtree {
                    resource: moved,
                    under,
                }
            }
            Draft::SetCapacity {
                resource: index,
                capacity,
            } => Operation::SetCapacity {
                resource: resource(index)?,
                capacity: capacity.map(amount),
            },
            Draft::Remove(index) => return Some(Step::Remove(resource(index)?)),
        };
        Some(Step::Do(step))
    }
}

impl ClaimDraft {
    fn resolve(&self, lab: &Lab, model: &Model) -> Option<Claim> {
        let container = self
            .container
            .and_then(|container| container.resolve(model));
        let mut resource =
            *(!model.resources.is_empty()).then(|| self.resource.get(&model.resources))?;
        let mut span = self.hours.span();
        if let Some(container) = container.filter(|_| self.fits) {
            let below = model.at_or_below(container.resource);
            if !below.is_empty() {
                resource = *self.resource.get(&below);
            }
            span = span.intersection(container.span).unwrap_or(container.span);
        }
        let part_of_part = container.is_some_and(|container| container.take != Take::Exclusive);
        Some(Claim {
            id: ClaimId(fresh_id()),
            site: lab.site,
            resource,
            span,
            take: match self.amount {
                None if part_of_part && self.fits => Take::Amount(amount(1)),
                drawn => take(model, resource, drawn, self.fits),
            },
            firmness: match self.soft {
                false => Firmness::Firm,
                true => Firmness::Yielding {
                    grace: SignedDuration::from_mins(5),
                },
            },
            container: container.map(|container| container.id),
            holder: lab.holder,
            standing: Standing::Holding,
        })
    }
}

/// An amount only of what is divisible, if it is to fit.
fn take(model: &Model, resource: ResourceId, drawn: Option<u64>, fits: bool) -> Take {
    match (drawn, model.timeline.capacity(resource)) {
        (Some(value), Some(capacity)) if fits => Take::Amount(amount(value).min(capacity)),
        (Some(value), _) if !fits => Take::Amount(amount(value)),
        _ => Take::Exclusive,
    }
}

impl Chosen {
    fn resolve(self, model: &Model) -> Option<&Claim> {
        let counts = |claim: &&Claim| self.any || claim.standing == Standing::Holding;
        let claims: Vec<&Claim> = model.timeline.claims().filter(counts).collect();
        (!claims.is_empty()).then(|| *self.index.get(&claims))
    }
}
