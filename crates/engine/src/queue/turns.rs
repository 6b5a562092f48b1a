//! In which order those who wait are looked at.
//!
//! The account that has used least for its weight is next, with its shortest; whatever becomes of that one, its account counts it
//! as had, so that the others' turn comes. Without shares there is one line. Where there is no room for one, there is none for
//! those who ask for the same, and they are passed over: a round looks at what begins and at each shape once, however many wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::ops::Bound;

use crate::fleet::Need;

use super::Micros;
use super::planner::{Ask, Class, Key, Order};
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

/// What waits in a line: the shortest first, then by age.
pub(super) type Place = (Micros, Micros, Key);

/// All who ask for the same: if there is no room for one of them, there is none for any.
pub(super) type Shape = (Class, Need, Micros);

/// What waits, by whose it is and what it asks for.
pub(super) type Lines = BTreeMap<Account, BTreeMap<Shape, BTreeSet<Place>>>;

/// Whose turn it is, and with what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub key: Key,
    pub account: Account,
    pub shape: Shape,
}

/// One round over all that waits.
#[derive(Debug)]
pub(super) struct Turns {
    /// The projects, and the people of each who have something in line, the least loaded on top.
    projects: Heap,
    people: HashMap<Account, Heap>,
    /// How far each line has been looked at.
    looked_at: HashMap<(Account, Shape), Place>,
    /// Whose turn it is, until it is known what they would have.
    current: Option<(Load, Account, Load, Account)>,
    /// Without shares: all lines merged, the shortest first.
    merged: Option<BinaryHeap<Reverse<(Place, Account, Shape)>>>,
}

impl Turns {
    pub fn new(order: Order, shares: &Shares, lines: &Lines) -> Turns {
        let mut turns = Turns {
            projects: Heap::new(),
            people: HashMap::new(),
            looked_at: HashMap::new(),
            current: None,
            merged: None,
        };
        if order == Order::Shortest {
            let heads = lines.iter().flat_map(|(account, line)| {
                let head = |(shape, places): (&Shape, &BTreeSet<Place>)| {
                    Some(Reverse((*places.first()?, *account, *shape)))
                };
                line.iter().filter_map(head)
            });
            turns.merged = Some(heads.collect());
            return turns;
        }
        for account in lines.keys().copied() {
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

    /// The next that is worth looking at: `open` says of what anything might still come.
    pub fn next(&mut self, lines: &Lines, open: impl Fn(Account, Shape) -> bool) -> Option<Turn> {
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
            self.looked_at.insert((account, shape), place);
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
        &self,
        lines: &Lines,
        account: Account,
        open: impl Fn(Account, Shape) -> bool,
    ) -> Option<(Place, Shape)> {
        let heads = lines.get(&account)?.iter().filter_map(|(shape, places)| {
            let after = self.looked_at.get(&(account, *shape));
            let place = open(account, *shape).then(|| after_place(places, after))??;
            Some((place, *shape))
        });
        heads.min()
    }

    fn next_merged(
        &mut self,
        lines: &Lines,
        open: impl Fn(Account, Shape) -> bool,
    ) -> Option<Turn> {
        let merged = self.merged.as_mut()?;
        loop {
            let Reverse((place, account, shape)) = merged.pop()?;
            if !open(account, shape) {
                continue;
            }
            let line = lines.get(&account).and_then(|line| line.get(&shape));
            let next = line.and_then(|places| after_place(places, Some(&place)));
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

fn after_place(places: &BTreeSet<Place>, after: Option<&Place>) -> Option<Place> {
    let from = after.map_or(Bound::Unbounded, |place| Bound::Excluded(*place));
    places.range((from, Bound::Unbounded)).next().copied()
}
