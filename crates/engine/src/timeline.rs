//! The claim rule as a small in-memory state that accepts or refuses changes: the test oracle.
//!
//! Model-based tests apply the same [`Operation`]s to this and to both databases, and compare answers and states. It
//! is written to be obviously correct, not fast: every query reads every claim. It must never serve requests; there
//! the databases enforce the rule.
//!
//! A refused operation changes nothing. If several reasons apply, the refusal names the first of: an unknown id, the
//! container, conflicts, amounts, claims inside.

use std::collections::BTreeMap;

use berth_model::claim::{Amount, Claim, Standing, Take};
use berth_model::{ClaimId, ResourceId, Span};
use jiff::Timestamp;

use crate::container;
use crate::rule::{Refusal, amount_of, conflicting, conflicts, is_holding, peak_amount};
use crate::tree::{Tree, TreeError};
use crate::yielding::{Cut, Yield, yield_plan};

pub mod draw;

/// One change of the timeline, as a value that can be drawn, stored and replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    AddResource {
        resource: ResourceId,
        parent: Option<ResourceId>,
        capacity: Option<Amount>,
    },
    /// Claims made together: either all of them are inserted, or none.
    Insert(Vec<Claim>),
    /// A firm claim. It first preempts the yielding claims in its way.
    InsertFirmly {
        claim: Claim,
        now: Timestamp,
    },
    SetSpan {
        claim: ClaimId,
        span: Span,
    },
    Rebind {
        claim: ClaimId,
        resource: ResourceId,
        take: Take,
    },
    Release {
        claim: ClaimId,
        at: Timestamp,
    },
    /// Releases a claim and all claims inside it.
    ReleaseWithInside {
        claim: ClaimId,
        at: Timestamp,
    },
    /// Changes the span of a claim, and cuts the claims inside it to the remaining span.
    SetSpanWithInside {
        claim: ClaimId,
        span: Span,
    },
    MoveSubtree {
        resource: ResourceId,
        under: Option<ResourceId>,
    },
    SetCapacity {
        resource: ResourceId,
        capacity: Option<Amount>,
    },
}

#[derive(Debug, Clone)]
pub struct Timeline {
    parents: BTreeMap<ResourceId, Option<ResourceId>>,
    capacities: BTreeMap<ResourceId, Amount>,
    claims: BTreeMap<ClaimId, Claim>,
    /// Always the tree of `parents`.
    tree: Tree,
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline::new()
    }
}

impl Timeline {
    /// An empty site.
    pub fn new() -> Self {
        Timeline {
            parents: BTreeMap::new(),
            capacities: BTreeMap::new(),
            claims: BTreeMap::new(),
            tree: Tree::empty(),
        }
    }

    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    pub fn claims(&self) -> impl Iterator<Item = &Claim> + Clone {
        self.claims.values()
    }

    pub fn claim(&self, id: ClaimId) -> Option<&Claim> {
        self.claims.get(&id)
    }

    pub fn capacity(&self, resource: ResourceId) -> Option<Amount> {
        self.capacities.get(&resource).copied()
    }

    /// Applies one operation as a whole, or changes nothing and returns the reason.
    pub fn apply(&mut self, operation: &Operation) -> Result<(), Refusal> {
        match operation {
            Operation::AddResource {
                resource,
                parent,
                capacity,
            } => self.add_resource(*resource, *parent, *capacity),
            Operation::Insert(claims) => self.insert(claims),
            Operation::InsertFirmly { claim, now } => self.insert_firmly(claim, *now).map(drop),
            Operation::SetSpan { claim, span } => self.set_span(*claim, *span),
            Operation::Rebind {
                claim,
                resource,
                take,
            } => self.rebind(*claim, *resource, *take),
            Operation::Release { claim, at } => self.release(*claim, *at),
            Operation::ReleaseWithInside { claim, at } => self.release_with_inside(*claim, *at),
            Operation::SetSpanWithInside { claim, span } => {
                self.set_span_with_inside(*claim, *span)
            }
            Operation::MoveSubtree { resource, under } => self.move_subtree(*resource, *under),
            Operation::SetCapacity { resource, capacity } => {
                self.set_capacity(*resource, *capacity)
            }
        }
    }

    pub fn add_resource(
        &mut self,
        resource: ResourceId,
        parent: Option<ResourceId>,
        capacity: Option<Amount>,
    ) -> Result<(), Refusal> {
        if self.tree.contains(resource) {
            return Err(TreeError::Twice { resource }.into());
        }
        self.check_may_have_children(parent)?;
        let mut parents = self.parents.clone();
        parents.insert(resource, parent);
        self.tree = Tree::new(parents.clone())?;
        self.parents = parents;
        self.capacities
            .extend(capacity.map(|capacity| (resource, capacity)));
        Ok(())
    }

    pub fn insert(&mut self, claims: &[Claim]) -> Result<(), Refusal> {
        self.all_or_nothing(|draft| claims.iter().try_for_each(|claim| draft.insert_one(claim)))
    }

    /// Preempts the yielding claims in the way, inserts a claim, and returns the preempted claims.
    pub fn insert_firmly(&mut self, claim: &Claim, now: Timestamp) -> Result<Vec<Yield>, Refusal> {
        self.all_or_nothing(|draft| {
            draft.check_new(claim)?;
            let limit = draft.limit_for(claim)?;
            let plan = yield_plan(&draft.tree, limit, claim, draft.claims(), now)?;
            for given in &plan {
                draft.cut(given.claim, given.cut)?;
            }
            draft.insert_one(claim)?;
            Ok(plan)
        })
    }

    pub fn set_span(&mut self, id: ClaimId, span: Span) -> Result<(), Refusal> {
        let claim = self.holding(id)?;
        self.replace(Claim { span, ..claim })
    }

    pub fn set_span_with_inside(&mut self, id: ClaimId, span: Span) -> Result<(), Refusal> {
        self.all_or_nothing(|draft| {
            for settled in container::settle(draft.claims.values(), id, span) {
                match settled.left {
                    Some(left) => draft.set_span(settled.claim, left)?,
                    None => draft.void(settled.claim)?,
                }
            }
            draft.set_span(id, span)
        })
    }

    /// Binds a claim to another resource, or to another amount of the same resource.
    pub fn rebind(&mut self, id: ClaimId, to: ResourceId, take: Take) -> Result<(), Refusal> {
        let claim = self.holding(id)?;
        self.replace(Claim {
            resource: to,
            take,
            ..claim
        })
    }

    /// Ends a claim at `at`. It keeps the time that it occupied until then, and becomes void if there is none.
    pub fn release(&mut self, id: ClaimId, at: Timestamp) -> Result<(), Refusal> {
        let claim = self.holding(id)?;
        self.check_holds_no_others(id)?;
        let ended = match claim.span.before(at) {
            Some(span) => Claim {
                span,
                standing: Standing::Past,
                ..claim
            },
            None => Claim {
                standing: Standing::Void,
                ..claim
            },
        };
        self.claims.insert(id, ended);
        Ok(())
    }

    pub fn release_with_inside(&mut self, id: ClaimId, at: Timestamp) -> Result<(), Refusal> {
        self.all_or_nothing(|draft| {
            let inside = container::inside(draft.claims.values(), id);
            let inside: Vec<ClaimId> = inside.into_iter().map(|claim| claim.id).collect();
            inside
                .into_iter()
                .try_for_each(|claim| draft.release(claim, at))?;
            draft.release(id, at)
        })
    }

    /// Moves a resource and its subtree under another resource, or makes it a root.
    pub fn move_subtree(
        &mut self,
        resource: ResourceId,
        under: Option<ResourceId>,
    ) -> Result<(), Refusal> {
        self.tree.check_move(resource, under)?;
        self.check_may_have_children(under)?;
        let mut parents = self.parents.clone();
        parents.insert(resource, under);
        let tree = Tree::new(parents.clone())?;

        let (moved, others): (Vec<&Claim>, Vec<&Claim>) = self
            .claims()
            .partition(|claim| tree.is_at_or_below(claim.resource, resource));
        let met = |claim: &Claim| {
            let met = others.iter().filter(|other| conflicts(&tree, claim, other));
            met.map(|other| (claim.id, other.id)).collect::<Vec<_>>()
        };
        let pairs: Vec<_> = moved.iter().flat_map(|claim| met(claim)).collect();
        if !pairs.is_empty() {
            return Err(Refusal::MoveConflict { pairs });
        }
        let outside = self
            .claims()
            .filter(|claim| is_holding(claim))
            .filter(|claim| {
                let container = claim.container.and_then(|id| self.claims.get(&id));
                container.is_some_and(|container| !container::is_within(&tree, claim, container))
            });
        none_outside(outside)?;
        (self.parents, self.tree) = (parents, tree);
        Ok(())
    }

    /// Sets the shareable amount of a resource; none makes it indivisible again.
    pub fn set_capacity(
        &mut self,
        resource: ResourceId,
        capacity: Option<Amount>,
    ) -> Result<(), Refusal> {
        if !self.tree.contains(resource) {
            return Err(TreeError::Unknown { resource }.into());
        }
        if capacity.is_some() && self.tree.has_children(resource) {
            return Err(Refusal::HasChildrenAndCapacity { resource });
        }
        let room = capacity.map_or(0, Amount::get);
        let peaks = self
            .claims()
            .map(|claim| peak_amount(self.claims(), resource, claim.container, claim.span));
        let peak = peaks.max().unwrap_or(0);
        if peak > room {
            return Err(Refusal::Amount {
                resource,
                capacity: room,
                peak,
            });
        }
        match capacity {
            Some(capacity) => self.capacities.insert(resource, capacity),
            None => self.capacities.remove(&resource),
        };
        Ok(())
    }

    fn insert_one(&mut self, claim: &Claim) -> Result<(), Refusal> {
        self.check_new(claim)?;
        if is_holding(claim) {
            self.check(claim)?;
        }
        self.claims.insert(claim.id, claim.clone());
        Ok(())
    }

    fn replace(&mut self, claim: Claim) -> Result<(), Refusal> {
        self.check(&claim)?;
        self.claims.insert(claim.id, claim);
        Ok(())
    }

    /// Preempts a claim, after the claims inside it.
    fn cut(&mut self, id: ClaimId, cut: Cut) -> Result<(), Refusal> {
        let claim = self.holding(id)?;
        match cut {
            Cut::Void => self.release_with_inside(id, claim.span.start()),
            Cut::ShortenTo(at) => match claim.span.before(at) {
                Some(left) => self.set_span_with_inside(id, left),
                None => self.release_with_inside(id, at),
            },
        }
    }

    fn void(&mut self, id: ClaimId) -> Result<(), Refusal> {
        let start = self.holding(id)?.span.start();
        self.release(id, start)
    }

    fn all_or_nothing<T>(
        &mut self,
        steps: impl FnOnce(&mut Timeline) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut draft = self.clone();
        let done = steps(&mut draft)?;
        *self = draft;
        Ok(done)
    }

    fn holding(&self, id: ClaimId) -> Result<Claim, Refusal> {
        let claim = self.claims.get(&id).filter(|claim| is_holding(claim));
        claim.cloned().ok_or(Refusal::NotHolding { claim: id })
    }

    fn directly_inside(&self, id: ClaimId) -> impl Iterator<Item = &Claim> {
        self.claims()
            .filter(move |claim| is_holding(claim) && claim.container == Some(id))
    }

    fn check_holds_no_others(&self, id: ClaimId) -> Result<(), Refusal> {
        let claims: Vec<ClaimId> = self.directly_inside(id).map(|claim| claim.id).collect();
        if claims.is_empty() {
            Ok(())
        } else {
            Err(Refusal::HoldsOthers { claims })
        }
    }

    fn check_may_have_children(&self, parent: Option<ResourceId>) -> Result<(), Refusal> {
        match parent.filter(|parent| self.capacities.contains_key(parent)) {
            Some(resource) => Err(Refusal::HasChildrenAndCapacity { resource }),
            None => Ok(()),
        }
    }

    fn check_new(&self, claim: &Claim) -> Result<(), Refusal> {
        match self.claims.contains_key(&claim.id) {
            true => Err(Refusal::Exists { claim: claim.id }),
            false => self.check_resource(claim.resource),
        }
    }

    fn check_resource(&self, resource: ResourceId) -> Result<(), Refusal> {
        match self.tree.contains(resource) {
            true => Ok(()),
            false => Err(TreeError::Unknown { resource }.into()),
        }
    }

    /// Checks the container of a claim and returns the limit for amounts there.
    fn limit_for(&self, claim: &Claim) -> Result<Option<u64>, Refusal> {
        let container = container::check(&self.tree, claim, |id| self.claims.get(&id))?;
        Ok(container::limit(self.capacity(claim.resource), container))
    }

    /// Applies the whole rule to one holding claim, which is new or replaces the claim with the same id.
    fn check(&self, claim: &Claim) -> Result<(), Refusal> {
        self.check_resource(claim.resource)?;
        let limit = self.limit_for(claim)?;
        let with = conflicting(&self.tree, claim, self.claims());
        if !with.is_empty() {
            return Err(Refusal::Conflict { with });
        }
        if let Some(amount) = amount_of(claim) {
            let resource = claim.resource;
            let capacity = limit.ok_or(Refusal::NotDivisible { resource })?;
            let others = self.claims().filter(|other| other.id != claim.id);
            let peak = peak_amount(others, resource, claim.container, claim.span) + amount;
            check_sum(resource, capacity, peak)?;
        }
        self.check_inside(claim)
    }

    /// Checks that the claims inside still fit when their container changes to `container`.
    fn check_inside(&self, container: &Claim) -> Result<(), Refusal> {
        let outside = self
            .directly_inside(container.id)
            .filter(|inner| !container::is_within(&self.tree, inner, container));
        none_outside(outside)?;
        match amount_of(container) {
            None => Ok(()),
            Some(part) => {
                let (resource, id) = (container.resource, Some(container.id));
                let peak = peak_amount(self.claims(), resource, id, container.span);
                check_sum(resource, part, peak)
            }
        }
    }
}

fn none_outside<'a>(outside: impl Iterator<Item = &'a Claim>) -> Result<(), Refusal> {
    let claims: Vec<ClaimId> = outside.map(|claim| claim.id).collect();
    if claims.is_empty() {
        Ok(())
    } else {
        Err(Refusal::OutsideContainer { claims })
    }
}

fn check_sum(resource: ResourceId, capacity: u64, peak: u64) -> Result<(), Refusal> {
    if peak <= capacity {
        Ok(())
    } else {
        Err(Refusal::Amount {
            resource,
            capacity,
            peak,
        })
    }
}

#[cfg(test)]
#[path = "timeline/tests.rs"]
mod tests;
