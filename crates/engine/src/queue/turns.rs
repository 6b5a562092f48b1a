//! In which order those who wait are looked at.
//!
//! The account that has used least for its weight is next, with its shortest; whatever becomes of that one, its account counts it
//! as had, so that the others' turn comes. Without shares there is one line. Where there is no room for one, there is none for
//! those who ask for the same, and they are passed over: a round looks at what begins and at each shape once, however many wait.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::ops::Bound;

use super::Micros;
use super::lines::{Lines, Place, ShapeId};
use super::planner::{Ask, Key, Order};
use super::share::{Account, Shares};

/// A number that can be ordered, for loads are never anything else.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Load(f64);

impl Eq for Load {}

impl Ord for Load {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

type Heap = BinaryHeap<Reverse<(Load, Account)>>;
type Heads = BinaryHeap<Reverse<(Place, ShapeId)>>;

/// Whose turn it is, and with what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub key: Key,
    pub account: Account,
    pub shape: ShapeId,
}

/// One round over all that waits.
#[derive(Debug)]
pub(super) struct Turns {
    /// The projects, and the people of each who have something in line, the least loaded on top.
    projects: Heap,
    people: HashMap<Account, Heap>,
    /// Of each line that had a turn, what comes next of each shape, the shortest on top.
    heads: HashMap<Account, Heads>,
    /// Whose turn it is, until it is known what they would have.
    current: Option<(Load, Account, Load, Account)>,
    /// Without shares: all lines merged, the shortest first.
    merged: Option<BinaryHeap<Reverse<(Place, Account, ShapeId)>>>,
    /// How many shapes there might still be room for.
    open: usize,
}

impl Turns {
    /// `is_open` says of which shapes anything might still come.
    pub fn new(
        order: Order,
        shares: &Shares,
        lines: &Lines,
        is_open: impl Fn(ShapeId) -> bool,
    ) -> Turns {
        let mut turns = Turns {
            projects: Heap::new(),
            people: HashMap::new(),
            heads: HashMap::new(),
            current: None,
            merged: None,
            open: lines.shapes.keys().filter(|shape| is_open(**shape)).count(),
        };
        if order == Order::Shortest {
            let heads = lines.accounts.iter().flat_map(|(account, line)| {
                let head = |(shape, places): (&ShapeId, &BTreeSet<Place>)| {
                    Some(Reverse((*places.first()?, *account, *shape)))
                };
                line.iter().filter_map(head)
            });
            turns.merged = Some(heads.collect());
            return turns;
        }
        for account in lines.accounts.keys().copied() {
            let project = shares.parent(account).unwrap_or(account);
            let people = turns.people.entry(project).or_insert_with(|| {
                let load = Load(shares.load(project));
                turns.projects.push(Reverse((load, project)));
                Heap::new()
            });
            people.push(Reverse((Load(shares.load(account)), account)));
        }
        turns
    }

    /// There is no room for any of a shape.
    pub fn close(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// The next that is worth looking at: `open` says of what anything might still come.
    pub fn next(&mut self, lines: &Lines, open: impl Fn(Account, ShapeId) -> bool) -> Option<Turn> {
        if self.open == 0 {
            return None;
        }
        if self.merged.is_some() {
            return self.next_merged(lines, open);
        }
        self.put_back();
        loop {
            let Reverse((project_load, project)) = *self.projects.peek()?;
            let people = self.people.get_mut(&project)?;
            let Some(Reverse((load, account))) = people.pop() else {
                self.projects.pop();
                continue;
            };
            let Some((place, shape)) = self.shortest(lines, account, &open) else {
                continue;
            };
            self.projects.pop();
            self.current = Some((project_load, project, load, account));
            let key = place.2;
            return Some(Turn {
                key,
                account,
                shape,
            });
        }
    }

    /// Of one's own, the first that was not looked at.
    fn shortest(
        &mut self,
        lines: &Lines,
        account: Account,
        open: impl Fn(Account, ShapeId) -> bool,
    ) -> Option<(Place, ShapeId)> {
        let line = lines.accounts.get(&account)?;
        let heads = self.heads.entry(account).or_insert_with(|| {
            let shapes = line.iter().filter(|(shape, _)| open(account, **shape));
            shapes
                .filter_map(|(shape, places)| Some(Reverse((*places.first()?, *shape))))
                .collect()
        });
        loop {
            let Reverse((place, shape)) = heads.pop()?;
            if !open(account, shape) {
                continue;
            }
            if let Some(next) = after_place(line.get(&shape), &place) {
                heads.push(Reverse((next, shape)));
            }
            return Some((place, shape));
        }
    }

    fn next_merged(
        &mut self,
        lines: &Lines,
        open: impl Fn(Account, ShapeId) -> bool,
    ) -> Option<Turn> {
        let merged = self.merged.as_mut()?;
        loop {
            let Reverse((place, account, shape)) = merged.pop()?;
            if !open(account, shape) {
                continue;
            }
            let line = lines.accounts.get(&account);
            let next = after_place(line.and_then(|line| line.get(&shape)), &place);
            if let Some(next) = next {
                merged.push(Reverse((next, account, shape)));
            }
            let key = place.2;
            return Some(Turn {
                key,
                account,
                shape,
            });
        }
    }

    /// The one whose turn it is would have this.
    pub fn took(&mut self, shares: &Shares, ask: &Ask, now: Micros) {
        if let Some((project_load, project, load, account)) = &mut self.current {
            let cost = ask.wish.rate * (ask.wish.expected as f64 / 1e6);
            project_load.0 += shares.load_of(*project, cost, now);
            load.0 += shares.load_of(*account, cost, now);
        }
    }

    fn put_back(&mut self) {
        if let Some((project_load, project, load, account)) = self.current.take() {
            self.projects.push(Reverse((project_load, project)));
            let people = self.people.entry(project).or_default();
            people.push(Reverse((load, account)));
        }
    }
}

fn after_place(places: Option<&BTreeSet<Place>>, after: &Place) -> Option<Place> {
    let after = (Bound::Excluded(*after), Bound::Unbounded);
    places?.range(after).next().copied()
}
