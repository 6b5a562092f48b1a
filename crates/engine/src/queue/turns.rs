//! In which order those who wait are looked at.
//!
//! The account that has used least for its weight is next, with its shortest; whatever becomes of that one, its account counts it
//! as had, so that the others' turn comes. Without shares there is one line. Where there is no room for one, there is none for
//! those who ask for the same for as long or longer, and they are passed over: a round looks at what begins and at each shape a few
//! times, however many wait. Who is overdue is not passed over for something shorter while there is anything to promise: when nothing
//! else of their account is left to look at, their turn comes, whoever is overdue longest first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Bound;

use super::Micros;
use super::lines::{Line, Lines, Place, ShapeId};
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
    /// There was no room for something shorter, so that it was passed over; but it is overdue.
    pub is_passed_over: bool,
}

/// Of what a round need not look at any more.
pub(super) trait Closed {
    /// From which limit on there is nothing left for an account of a shape; none if there may be for all.
    fn from(&self, account: Account, shape: ShapeId) -> Option<Micros>;
    /// Those limits of a shape that were passed over, but of which an account may still be promised something: they are longer than the first and
    /// below the second, if any.
    fn passed_over(&self, account: Account, shape: ShapeId) -> Option<(Micros, Option<Micros>)>;
    /// Until when those were due to whom anything may be promised; none if nothing may.
    fn promises_until(&self) -> Option<Micros>;
    /// The limit of somebody who has no promise yet, and may have one.
    fn limit_without_promise(&self, due: (Micros, Key)) -> Option<Micros>;
}

/// For whoever wants to see everybody in turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct AllOpen;

impl Closed for AllOpen {
    fn from(&self, _: Account, _: ShapeId) -> Option<Micros> {
        None
    }

    fn passed_over(&self, _: Account, _: ShapeId) -> Option<(Micros, Option<Micros>)> {
        None
    }

    fn promises_until(&self) -> Option<Micros> {
        None
    }

    fn limit_without_promise(&self, _: (Micros, Key)) -> Option<Micros> {
        None
    }
}

/// One round over all that waits.
#[derive(Debug)]
pub(super) struct Turns {
    /// The projects, and the people of each who have something in line, the least loaded on top.
    projects: Heap,
    people: HashMap<Account, Heap>,
    /// Of each line that had a turn, what comes next of each shape, the shortest on top.
    heads: HashMap<Account, Heads>,
    /// Of the overdue of each line, who had their turn last.
    overdue: HashMap<(Account, ShapeId), (Micros, Key)>,
    /// Whose turn it is, until it is known what they would have.
    current: Option<(Load, Account, Load, Account)>,
    /// Without shares: all lines merged, the shortest first.
    merged: Option<BinaryHeap<Reverse<(Place, Account, ShapeId)>>>,
    /// How many shapes there might still be room for.
    open: usize,
}

impl Turns {
    /// `is_open` says of which shapes anything might still come, given their shortest limit.
    pub fn new(
        order: Order,
        shares: &Shares,
        lines: &Lines,
        is_open: impl Fn(ShapeId, Micros) -> bool,
    ) -> Turns {
        let open = |(shape, shortest): &(ShapeId, Micros)| is_open(*shape, *shortest);
        let mut turns = Turns {
            projects: Heap::new(),
            people: HashMap::new(),
            heads: HashMap::new(),
            overdue: HashMap::new(),
            current: None,
            merged: None,
            open: lines.shortest().filter(open).count(),
        };
        if order == Order::Shortest {
            let heads = lines.accounts.iter().flat_map(|(account, line)| {
                let head = |(shape, line): (&ShapeId, &Line)| {
                    Some(Reverse((line.next(None, None)?, *account, *shape)))
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

    /// The next that is worth looking at.
    pub fn next(&mut self, lines: &Lines, closed: &impl Closed) -> Option<Turn> {
        if self.merged.is_some() {
            return self.next_merged(lines, closed);
        }
        self.put_back();
        loop {
            if self.open == 0 && closed.promises_until().is_none() {
                return None;
            }
            let Reverse((project_load, project)) = *self.projects.peek()?;
            let people = self.people.get_mut(&project)?;
            let Some(Reverse((load, account))) = people.pop() else {
                self.projects.pop();
                continue;
            };
            let shortest = match self.open {
                0 => None,
                _ => self.shortest(lines, account, closed),
            };
            let Some(turn) = shortest.or_else(|| self.next_overdue(lines, account, closed)) else {
                continue;
            };
            self.projects.pop();
            self.current = Some((project_load, project, load, account));
            return Some(turn);
        }
    }

    /// Of one's own, the first that was not looked at.
    fn shortest(&mut self, lines: &Lines, account: Account, closed: &impl Closed) -> Option<Turn> {
        let line = lines.accounts.get(&account)?;
        let heads = self.heads.entry(account).or_insert_with(|| {
            let head = |(shape, line): (&ShapeId, &Line)| {
                let head = line.next(None, closed.from(account, *shape))?;
                Some(Reverse((head, *shape)))
            };
            line.iter().filter_map(head).collect()
        });
        loop {
            let Reverse((place, shape)) = heads.pop()?;
            let from = closed.from(account, shape);
            if let Some(next) = line
                .get(&shape)
                .and_then(|line| line.next(Some(&place), from))
            {
                heads.push(Reverse((next, shape)));
            }
            if from.is_none_or(|from| place.limit < from) {
                return Some(turn(&place, account, shape));
            }
        }
    }

    /// Of one's own, who has been overdue for longest and would still be promised something.
    fn next_overdue(
        &mut self,
        lines: &Lines,
        account: Account,
        closed: &impl Closed,
    ) -> Option<Turn> {
        let until = Bound::Included((closed.promises_until()?, Key(u64::MAX)));
        let first = |(shape, line): (&ShapeId, &Line)| {
            let (longer, below) = closed.passed_over(account, *shape)?;
            let is_below = |limit: Micros| below.is_none_or(|below| limit < below);
            if line.most() <= longer || !is_below(line.least()) {
                return None;
            }
            let last = self.overdue.get(&(account, *shape));
            let after = last.map_or(Bound::Unbounded, |last| Bound::Excluded(*last));
            let mut overdue = line.by_due.range((after, until));
            let due = overdue.find(|due| {
                let limit = closed.limit_without_promise(**due);
                limit.is_some_and(|limit| limit > longer && is_below(limit))
            })?;
            Some((*due, *shape))
        };
        let lines = lines.accounts.get(&account)?;
        let (due, shape) = lines.iter().filter_map(first).min()?;
        self.overdue.insert((account, shape), due);
        Some(Turn {
            key: due.1,
            account,
            shape,
            is_passed_over: true,
        })
    }

    fn next_merged(&mut self, lines: &Lines, closed: &impl Closed) -> Option<Turn> {
        let merged = self.merged.as_mut()?;
        loop {
            if self.open == 0 {
                return None;
            }
            let Reverse((place, account, shape)) = merged.pop()?;
            let from = closed.from(account, shape);
            let line = lines.accounts.get(&account);
            let line = line.and_then(|line| line.get(&shape));
            if let Some(next) = line.and_then(|line| line.next(Some(&place), from)) {
                merged.push(Reverse((next, account, shape)));
            }
            if from.is_none_or(|from| place.limit < from) {
                return Some(turn(&place, account, shape));
            }
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

fn turn(place: &Place, account: Account, shape: ShapeId) -> Turn {
    Turn {
        key: place.key,
        account,
        shape,
        is_passed_over: false,
    }
}
