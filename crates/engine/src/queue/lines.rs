//! The pending workloads, by account and by what they ask for.
//!
//! Many workloads ask for the same, except for their limit: they have one *shape*. Without room for one of them
//! there is none for others of its shape that last as long or longer. Shapes in use have numbers, since a round
//! over the queue compares them all the time.

mod line;

use std::collections::{BTreeMap, HashMap};

use crate::fleet::Need;

use super::Micros;
use super::planner::Class;
use super::seats;
use super::share::Account;

pub(super) use line::{Line, Place};

/// Everything that workloads of one shape ask for, except the limit of their first variant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub class: Class,
    pub need: Need,
    /// The alternative variants, with their limits.
    pub or: Vec<(Need, Micros)>,
    pub seats: Vec<seats::Count>,
    /// It decides which of several variants end in time.
    pub deadline: Option<Micros>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ShapeId(u32);

impl ShapeId {
    pub fn place(self) -> usize {
        self.0 as usize
    }
}

/// The shapes of all pending workloads, with the number of workloads of each.
#[derive(Debug, Clone, Default)]
pub(super) struct Shapes {
    ids: HashMap<Shape, (ShapeId, usize)>,
    spare: Vec<ShapeId>,
    /// Numbers not used again before the next round: the refusals of the last one still refer to them.
    retired: Vec<ShapeId>,
    numbered: u32,
}

impl Shapes {
    pub fn id(&self, shape: &Shape) -> Option<ShapeId> {
        self.ids.get(shape).map(|(id, _)| *id)
    }

    /// One more than the highest number in use.
    pub fn end(&self) -> usize {
        self.numbered as usize
    }

    /// A new round begins. It knows nothing of any shape, so retired numbers can be used again.
    pub fn begin_round(&mut self) {
        self.spare.append(&mut self.retired);
    }

    fn join(&mut self, shape: Shape) -> ShapeId {
        let (id, count) = self.ids.entry(shape).or_insert_with(|| {
            let new = self.spare.pop().unwrap_or_else(|| {
                self.numbered += 1;
                ShapeId(self.numbered - 1)
            });
            (new, 0)
        });
        *count += 1;
        *id
    }

    fn leave(&mut self, shape: &Shape) -> Option<ShapeId> {
        let (id, count) = self.ids.get_mut(shape)?;
        let id = *id;
        *count -= 1;
        if *count == 0 {
            self.ids.remove(shape);
            self.retired.push(id);
        }
        Some(id)
    }
}

/// The pending workloads of one rank.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    pub accounts: BTreeMap<Account, BTreeMap<ShapeId, Line>>,
    /// The limits of each shape, with the number of workloads of each limit.
    limits: BTreeMap<ShapeId, BTreeMap<Micros, usize>>,
}

impl Lines {
    pub fn join(
        &mut self,
        shapes: &mut Shapes,
        account: Account,
        shape: Shape,
        place: Place,
        due: Micros,
    ) {
        let id = shapes.join(shape);
        let lines = self.accounts.entry(account).or_default();
        lines.entry(id).or_default().insert(place, due);
        let limits = self.limits.entry(id).or_default();
        *limits.entry(place.limit).or_default() += 1;
    }

    pub fn leave(
        &mut self,
        shapes: &mut Shapes,
        account: Account,
        shape: &Shape,
        place: &Place,
        due: Micros,
    ) {
        let Some(id) = shapes.leave(shape) else {
            return;
        };
        if let Some(limits) = self.limits.get_mut(&id) {
            let same = limits.entry(place.limit).or_default();
            *same = same.saturating_sub(1);
            if *same == 0 {
                limits.remove(&place.limit);
            }
            if limits.is_empty() {
                self.limits.remove(&id);
            }
        }
        let Some(lines) = self.accounts.get_mut(&account) else {
            return;
        };
        if let Some(line) = lines.get_mut(&id) {
            line.remove(place, due);
            if line.is_empty() {
                lines.remove(&id);
            }
        }
        if lines.is_empty() {
            self.accounts.remove(&account);
        }
    }

    /// All shapes, each with its shortest limit.
    pub fn shortest(&self) -> impl Iterator<Item = (ShapeId, Micros)> + '_ {
        let shapes = self.limits.keys();
        shapes.filter_map(|shape| Some((*shape, self.shortest_of(*shape)?)))
    }

    pub fn shortest_of(&self, shape: ShapeId) -> Option<Micros> {
        let limits = self.limits.get(&shape)?;
        limits.first_key_value().map(|(limit, _)| *limit)
    }

    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }
}
