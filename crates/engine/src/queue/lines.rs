//! Who waits, by whose it is and what they ask for.
//!
//! Many ask for the same, and where there is no room for one of them there is none for any: they are of one *shape*. Shapes are
//! numbered while anybody asks for them, since a round over the queue compares them all the time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::fleet::Need;

use super::Micros;
use super::planner::{Class, Key};
use super::seats;
use super::share::Account;

/// What waits in a line: the shortest first, then by age.
pub(super) type Place = (Micros, Micros, Key);

/// All who ask for the same: if there is no room for one of them, there is none for any.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub class: Class,
    /// What would do, and for how long.
    pub wishes: Vec<(Need, Micros)>,
    pub seats: Vec<seats::Count>,
    pub deadline: Option<Micros>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ShapeId(u32);

impl ShapeId {
    pub fn place(self) -> usize {
        self.0 as usize
    }
}

/// The shapes of all who wait, with how many ask for each.
#[derive(Debug, Clone, Default)]
pub(super) struct Shapes {
    ids: HashMap<Shape, (ShapeId, usize)>,
    spare: Vec<ShapeId>,
    /// Not used again before the next round: what the last one said of them is still told.
    retired: Vec<ShapeId>,
    numbered: u32,
}

impl Shapes {
    pub fn id(&self, shape: &Shape) -> Option<ShapeId> {
        self.ids.get(shape).map(|(id, _)| *id)
    }

    /// One more than any number given out.
    pub fn end(&self) -> usize {
        self.numbered as usize
    }

    /// A round begins, and nothing is known of any shape.
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

/// What waits of one rank.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    pub accounts: BTreeMap<Account, BTreeMap<ShapeId, BTreeSet<Place>>>,
    /// The shapes there are, with how many lines have each.
    pub shapes: BTreeMap<ShapeId, usize>,
}

impl Lines {
    pub fn join(&mut self, shapes: &mut Shapes, account: Account, shape: Shape, place: Place) {
        let id = shapes.join(shape);
        let line = self.accounts.entry(account).or_default();
        let places = line.entry(id).or_default();
        if places.is_empty() {
            *self.shapes.entry(id).or_default() += 1;
        }
        places.insert(place);
    }

    pub fn leave(&mut self, shapes: &mut Shapes, account: Account, shape: &Shape, place: &Place) {
        let Some(id) = shapes.leave(shape) else {
            return;
        };
        let Some(line) = self.accounts.get_mut(&account) else {
            return;
        };
        let Some(places) = line.get_mut(&id) else {
            return;
        };
        places.remove(place);
        if places.is_empty() {
            line.remove(&id);
            let lines = self.shapes.entry(id).or_default();
            *lines = lines.saturating_sub(1);
            if *lines == 0 {
                self.shapes.remove(&id);
            }
        }
        if line.is_empty() {
            self.accounts.remove(&account);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }
}
