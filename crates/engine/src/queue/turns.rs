//! In which order those who wait are looked at.
//!
//! The account that has used least for its weight is next, with its shortest; whatever becomes of that one, its account counts it
//! as had, so that the others' turn comes. Without shares there is one line.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::ops::Bound;

use super::Micros;
use super::planner::{Ask, Key, Lines, Order, Place};
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

/// One round over all that waits.
#[derive(Debug)]
pub(super) struct Turns {
    /// The projects, and the people of each who have something in line, the least loaded on top.
    projects: Heap,
    people: HashMap<Account, Heap>,
    /// How far each line has been looked at.
    looked_at: HashMap<Account, Place>,
    /// Whose turn it is, until it is known what they would have.
    current: Option<(Load, Account, Load, Account)>,
    /// Without shares: all lines merged, the shortest first.
    merged: Option<BinaryHeap<Reverse<(Place, Account)>>>,
}

impl Turns {
    pub fn new(order: Order, shares: &Shares, accounts: impl Iterator<Item = Account>) -> Turns {
        let mut turns = Turns {
            projects: Heap::new(),
            people: HashMap::new(),
            looked_at: HashMap::new(),
            current: None,
            merged: (order == Order::Shortest).then(BinaryHeap::new),
        };
        for account in accounts {
            if let Some(merged) = &mut turns.merged {
                // Before the first place of its line.
                merged.push(Reverse(((i64::MIN, i64::MIN, Key(0)), account)));
                continue;
            }
            let project = shares.parent(account).unwrap_or(account);
            let people = turns.people.entry(project).or_insert_with(|| {
                turns
                    .projects
                    .push(Reverse((Load(shares.load(project)), project)));
                Heap::new()
            });
            people.push(Reverse((Load(shares.load(account)), account)));
        }
        turns
    }

    pub fn next(&mut self, lines: &Lines) -> Option<Key> {
        if self.merged.is_some() {
            return self.next_merged(lines);
        }
        self.put_back();
        loop {
            let Reverse((project_load, project)) = *self.projects.peek()?;
            let people = self.people.get_mut(&project)?;
            let Some(Reverse((load, account))) = people.pop() else {
                self.projects.pop();
                continue;
            };
            let after = self.looked_at.get(&account);
            let Some(place) = after_place(lines.get(&account), after) else {
                continue;
            };
            self.projects.pop();
            self.looked_at.insert(account, place);
            self.current = Some((project_load, project, load, account));
            return Some(place.2);
        }
    }

    fn next_merged(&mut self, lines: &Lines) -> Option<Key> {
        let merged = self.merged.as_mut()?;
        loop {
            let Reverse((place, account)) = merged.pop()?;
            if let Some(next) = after_place(lines.get(&account), Some(&place)) {
                merged.push(Reverse((next, account)));
            }
            if place.0 != i64::MIN {
                return Some(place.2);
            }
        }
    }

    /// The one whose turn it is would have this.
    pub fn took(&mut self, shares: &Shares, ask: &Ask, now: Micros) {
        if let Some((project_load, project, load, account)) = &mut self.current {
            let cost = ask.rate * (ask.expected as f64 / 1e6);
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

fn after_place(line: Option<&BTreeSet<Place>>, after: Option<&Place>) -> Option<Place> {
    let from = after.map_or(Bound::Unbounded, |place| Bound::Excluded(*place));
    line?.range((from, Bound::Unbounded)).next().copied()
}
