//! The order in which a round examines waiting workloads.
//!
//! The account with the least load is next, with its shortest workload. The account's load then rises as if the
//! workload had started, whether it starts or not, so that other accounts get their turn. With [`Order::Shortest`],
//! all accounts share one line.
//!
//! Without room for one workload there is none for others of its shape that last as long or longer, so the round
//! skips them. A round examines the workloads that start, and each shape a few times, however many wait. While
//! promises can be made, overdue workloads are not skipped for shorter ones. When nothing else of their account is
//! left, they get their turn, the longest overdue first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Bound;

use super::Micros;
use super::lines::{Line, Lines, Place, ShapeId};
use super::planner::{Ask, Key, Order};
use super::share::{Account, Shares};

/// A load that can be ordered; loads are never NaN.
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

/// The workload to examine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub key: Key,
    pub account: Account,
    pub shape: ShapeId,
    /// It was skipped because a shorter one had no room, but it is overdue.
    pub is_passed_over: bool,
}

/// The workloads that a round need not examine any more.
pub(super) trait Closed {
    /// The limit from which on no workload of this account and shape can start in this round; `None` if any may.
    fn from(&self, account: Account, shape: ShapeId) -> Option<Micros>;
    /// The limits of this shape that were skipped this round but may still get a promise for this account. They are
    /// longer than the first value, and below the second if there is one.
    fn passed_over(&self, account: Account, shape: ShapeId) -> Option<(Micros, Option<Micros>)>;
    /// A workload that is overdue at this moment may still get a promise; `None` if no promise can be made.
    fn promises_until(&self) -> Option<Micros>;
    /// The limit of a workload that may get a promise and has none yet; `None` for others.
    fn limit_without_promise(&self, due: (Micros, Key)) -> Option<Micros>;
}

/// Skips no workload.
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

/// The order of one round.
#[derive(Debug)]
pub(super) struct Turns {
    /// The projects, and the people of each with a workload in line, the least load on top.
    projects: Heap,
    people: HashMap<Account, Heap>,
    /// For each account that had a turn, the next workload of each shape, the shortest on top.
    heads: HashMap<Account, Heads>,
    /// For each line, the overdue workload that had its turn last.
    overdue: HashMap<(Account, ShapeId), (Micros, Key)>,
    /// The account that has its turn, until the cost of its workload is known.
    current: Option<(Load, Account, Load, Account)>,
    /// With [`Order::Shortest`]: all lines merged, the shortest first.
    merged: Option<BinaryHeap<Reverse<(Place, Account, ShapeId)>>>,
    /// Number of shapes that may still have room.
    open: usize,
}

impl Turns {
    /// `is_open` says whether a shape may still have room, given its shortest limit.
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

    /// Counts one shape as closed: it has no room for any workload.
    pub fn close(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// The next workload to examine.
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

    /// The first workload of this account that was not examined yet.
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

    /// The longest overdue workload of this account that may still get a promise.
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

    /// Adds the cost of the examined workload to the loads of its account and project.
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
