//! The oracle beside the databases: the engine's timeline, which knows no removals, with those added.

use std::collections::BTreeSet;

use berth_engine::sweep::{self, Broken};
use berth_engine::timeline::Operation;
use berth_engine::yielding::Yield;
use berth_engine::{Refusal, Timeline, Tree, TreeError};
use berth_model::{Claim, ResourceId, Standing};
use berth_store::Refused;

/// One operation as it is given to oracle and database.
#[derive(Debug, Clone)]
pub enum Step {
    Do(Operation),
    /// A firm claim, and what gives way for it.
    Firmly(Claim, Vec<Yield>),
    Remove(ResourceId),
}

/// What became of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Done,
    /// A resource that is not removed because something hangs on it.
    InUse,
    Refused(Refused),
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub timeline: Timeline,
    /// Every resource there ever was, in the order of making.
    pub resources: Vec<ResourceId>,
    /// Those that are gone. To the timeline they are roots that nobody claims any more.
    pub removed: BTreeSet<ResourceId>,
}

impl Model {
    pub fn depth(&self, id: ResourceId) -> usize {
        self.timeline.tree().depth(id).unwrap_or(0)
    }

    /// How many levels a resource and what is below it take.
    pub fn height(&self, id: ResourceId) -> usize {
        let levels = self
            .at_or_below(id)
            .into_iter()
            .map(|below| self.depth(below));
        levels
            .max()
            .map_or(1, |deepest| deepest + 1 - self.depth(id))
    }

    pub fn at_or_below(&self, id: ResourceId) -> Vec<ResourceId> {
        let tree = self.timeline.tree();
        std::iter::once(id).chain(tree.descendants(id)).collect()
    }

    fn is_gone(&self, id: ResourceId) -> bool {
        self.removed.contains(&id)
    }

    /// A firm claim with what gives way for it; where even that makes no room, a claim like any other.
    pub fn firmly(&self, claim: Claim) -> Option<Step> {
        let plan = match self.is_gone(claim.resource) {
            false => self
                .timeline
                .clone()
                .insert_firmly(&claim, claim.span.start()),
            true => Err(unknown(claim.resource)),
        };
        Some(match plan {
            Ok(plan) => Step::Firmly(claim, plan),
            Err(_) => Step::Do(Operation::Insert(vec![claim])),
        })
    }

    /// Does what is asked, or changes nothing; and says which answers of a database would be right.
    ///
    /// One change of one claim has one right answer. Of several claims made together a database may find any of them
    /// wanting first, and of a moved subtree any claim on it.
    pub fn apply(&mut self, step: &Step) -> Vec<Answer> {
        match step {
            Step::Do(Operation::Insert(claims)) => self.insert(claims),
            Step::Do(operation) => match self.apply_one(operation) {
                Ok(()) => vec![Answer::Done],
                Err(refusal) => self.answers(operation, refusal),
            },
            Step::Firmly(claim, _) => {
                let done = self.timeline.insert_firmly(claim, claim.span.start());
                assert!(done.is_ok(), "the plan was made by the same oracle");
                vec![Answer::Done]
            }
            Step::Remove(resource) => vec![self.remove(*resource)],
        }
    }

    fn insert(&mut self, claims: &[Claim]) -> Vec<Answer> {
        let (mut answers, mut made) = (Vec::new(), None);
        for order in orders(claims) {
            let mut draft = self.clone();
            let done = order.iter().try_for_each(|claim| draft.insert_one(claim));
            match done {
                Ok(()) => made = Some(draft),
                Err(refusal) => answers.push(Answer::Refused(refused(&refusal, false))),
            }
        }
        match made {
            Some(made) => {
                *self = made;
                vec![Answer::Done]
            }
            None => answers,
        }
    }

    fn insert_one(&mut self, claim: &Claim) -> Result<(), Refusal> {
        match self.is_gone(claim.resource) {
            true => Err(unknown(claim.resource)),
            false => self.timeline.insert(std::slice::from_ref(claim)),
        }
    }

    fn apply_one(&mut self, operation: &Operation) -> Result<(), Refusal> {
        // Only removals are ours to know; everything else is the timeline's.
        let named = match operation {
            Operation::Rebind {
                claim, resource, ..
            } => self
                .timeline
                .claim(*claim)
                .filter(|claim| claim.standing == Standing::Holding)
                .map(|_| *resource),
            Operation::MoveSubtree { resource, .. } | Operation::SetCapacity { resource, .. } => {
                Some(*resource)
            }
            _ => None,
        };
        if let Some(resource) = named.filter(|id| self.is_gone(*id)) {
            return Err(unknown(resource));
        }
        let parent = match operation {
            Operation::AddResource {
                resource, parent, ..
            } => parent.map(|parent| (*resource, parent)),
            Operation::MoveSubtree { resource, under } => under.map(|under| (*resource, under)),
            _ => None,
        };
        if let Some((resource, parent)) = parent.filter(|(_, parent)| self.is_gone(*parent)) {
            return Err(TreeError::UnknownParent { resource, parent }.into());
        }
        self.timeline.apply(operation)?;
        if let Operation::AddResource { resource, .. } = operation {
            self.resources.push(*resource);
        }
        Ok(())
    }

    fn remove(&mut self, resource: ResourceId) -> Answer {
        let is_claimed =
            |claim: &Claim| claim.resource == resource && claim.standing == Standing::Holding;
        if self.is_gone(resource) {
            return Answer::Refused(Refused::Resource);
        }
        if self.timeline.tree().has_children(resource) || self.timeline.claims().any(is_claimed) {
            return Answer::InUse;
        }
        let moved = self.timeline.move_subtree(resource, None);
        assert!(moved.is_ok(), "nothing hangs on it");
        self.removed.insert(resource);
        Answer::Done
    }

    fn answers(&self, operation: &Operation, refusal: Refusal) -> Vec<Answer> {
        match (operation, &refusal) {
            // Releasing what holds nothing is done already.
            (Operation::ReleaseWithInside { .. }, Refusal::NotHolding { .. }) => vec![Answer::Done],
            (
                Operation::MoveSubtree { resource, under },
                Refusal::MoveConflict { .. } | Refusal::OutsideContainer { .. },
            ) => self.wrong_after_move(*resource, *under),
            (
                Operation::SetSpan { claim, .. }
                | Operation::SetSpanWithInside { claim, .. }
                | Operation::Rebind { claim, .. },
                Refusal::OutsideContainer { claims },
            ) => vec![Answer::Refused(refused(&refusal, claims != &[*claim]))],
            _ => vec![Answer::Refused(refused(&refusal, false))],
        }
    }

    /// Everything that a move would break, by a sweep over the tree it would make.
    fn wrong_after_move(&self, moved: ResourceId, under: Option<ResourceId>) -> Vec<Answer> {
        let tree = self.timeline.tree();
        let parent = |id| match id == moved {
            true => under,
            false => tree.ancestors(id).next(),
        };
        let after = Tree::new(tree.resources().map(|id| (id, parent(id)))).expect("no circle");
        let holding = self
            .timeline
            .claims()
            .filter(|claim| claim.standing == Standing::Holding);
        let broken = sweep::broken(&after, |id| self.timeline.capacity(id), holding);
        let answers = broken.iter().flat_map(|broken| match broken {
            Broken::Pair(..) => vec![Refused::Claim],
            // Seen from the inner claim or from its container.
            Broken::Outside(_) => vec![Refused::OutsideContainer, Refused::HasInside],
            Broken::Sum { .. } | Broken::Nowhere(_) => Vec::new(),
        });
        answers.map(Answer::Refused).collect()
    }
}

fn unknown(resource: ResourceId) -> Refusal {
    TreeError::Unknown { resource }.into()
}

/// The database's word for a refusal of the oracle's.
fn refused(refusal: &Refusal, leaves_others_outside: bool) -> Refused {
    match refusal {
        Refusal::Conflict { .. } | Refusal::MoveConflict { .. } => Refused::Claim,
        Refusal::Amount { .. } | Refusal::NotDivisible { .. } => Refused::Amount,
        Refusal::OutsideContainer { .. } if leaves_others_outside => Refused::HasInside,
        Refusal::OutsideContainer { .. } | Refusal::ContainerGone { .. } => {
            Refused::OutsideContainer
        }
        Refusal::HoldsOthers { .. } => Refused::HasInside,
        Refusal::HasChildrenAndCapacity { .. } => Refused::Leaf,
        Refusal::NotHolding { .. } => Refused::NotHolding,
        Refusal::Exists { .. } => Refused::Taken,
        Refusal::Tree(TreeError::UnknownParent { .. }) => Refused::Parent,
        Refusal::Tree(TreeError::UnderItself { .. } | TreeError::Cycle { .. }) => Refused::Cycle,
        Refusal::Tree(TreeError::Twice { .. }) => Refused::Taken,
        Refusal::Tree(TreeError::Unknown { .. }) => Refused::Resource,
    }
}

/// Every order of a few claims.
fn orders(claims: &[Claim]) -> Vec<Vec<Claim>> {
    match claims {
        [] => vec![Vec::new()],
        [first, rest @ ..] => {
            let places = 0..claims.len();
            let with_first = |order: Vec<Claim>| {
                places.clone().map(move |place| {
                    let mut order = order.clone();
                    order.insert(place, first.clone());
                    order
                })
            };
            orders(rest).into_iter().flat_map(with_first).collect()
        }
    }
}
