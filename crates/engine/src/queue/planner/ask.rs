//! The request of a workload: one or several variants, and the times it gives.

use std::cmp::Reverse;

use crate::fleet::Need;

use super::super::Micros;
use super::super::lines::{Place, Shape};
use super::super::quota::Amounts;
use super::super::seats;
use super::super::share::Account;
use super::{Key, Rank};

/// How firmly a workload holds its resources. Reservations are firmer than all classes and are not in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Uses idle resources, and is preempted for all other classes.
    Opportunistic,
    /// Runs until its limit, unless it borrowed resources that their owner needs.
    Guaranteed,
    /// Guaranteed, raised by an admin before all others: preempts guaranteed workloads.
    Urgent,
}

/// One variant of a moldable workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    pub need: Need,
    /// The time limit.
    pub limit: Micros,
    /// The expected run time; never longer than the limit.
    pub expected: Micros,
    /// The amounts that count against quotas.
    pub amounts: Amounts,
    /// The cost of one second to the account, in the same units as `Planner::whole`.
    pub rate: f64,
}

/// The request of one workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    pub account: Account,
    pub class: Class,
    /// The priority; a higher one goes first.
    pub level: i32,
    /// Since when it waits.
    pub since: Micros,
    /// The preferred variant. It determines the workload's place in line.
    pub wish: Wish,
    /// Alternative variants, such as half the GPUs for twice the time. Of all variants that could start, the planner
    /// takes the one that ends first.
    pub or: Vec<Wish>,
    /// Seats that it needs for its whole run, in any variant.
    pub seats: Vec<seats::Count>,
    /// The planner does not examine it before this moment.
    pub not_before: Option<Micros>,
    /// It must end by this moment even if it runs until its limit.
    pub deadline: Option<Micros>,
}

const HOUR: Micros = 3_600_000_000;
/// Bounds of the patience: the time after which a workload is overdue.
const PATIENCE_MIN: Micros = HOUR;
const PATIENCE_MAX: Micros = 12 * HOUR;

impl Ask {
    /// A guaranteed workload with one variant, and without times.
    pub fn new(account: Account, wish: Wish, since: Micros) -> Ask {
        Ask {
            account,
            class: Class::Guaranteed,
            level: 0,
            since,
            wish,
            or: Vec::new(),
            seats: Vec::new(),
            not_before: None,
            deadline: None,
        }
    }

    pub fn wishes(&self) -> impl Iterator<Item = &Wish> {
        std::iter::once(&self.wish).chain(&self.or)
    }

    /// The variant with this index; 0 is the first.
    pub fn nth(&self, number: usize) -> &Wish {
        self.wishes().nth(number).unwrap_or(&self.wish)
    }

    pub(super) fn nth_mut(&mut self, number: usize) -> Option<&mut Wish> {
        match number {
            0 => Some(&mut self.wish),
            _ => self.or.get_mut(number - 1),
        }
    }

    pub(in crate::queue) fn shape(&self) -> Shape {
        Shape {
            class: self.class,
            need: self.wish.need,
            or: self.or.iter().map(|wish| (wish.need, wish.limit)).collect(),
            seats: self.seats.clone(),
            // A workload with one variant waits only while it can meet the deadline.
            deadline: self.deadline.filter(|_| !self.or.is_empty()),
        }
    }

    pub(super) fn rank(&self) -> Rank {
        (Reverse(self.class), Reverse(self.level))
    }

    pub(super) fn place(&self, key: Key) -> Place {
        Place {
            expected: self.wish.expected,
            since: self.since,
            key,
            limit: self.wish.limit,
        }
    }

    fn patience(&self) -> Micros {
        (self.wish.limit / 2).clamp(PATIENCE_MIN, PATIENCE_MAX)
    }

    /// From when on it is overdue: it has used up its patience, or its latest possible start is near.
    pub(in crate::queue) fn due(&self) -> Micros {
        let since = self.not_before.unwrap_or(self.since).max(self.since);
        let overdue = since.saturating_add(self.patience());
        let window = self
            .latest_beginning()
            .map(|latest| latest.saturating_sub(self.patience()));
        window.map_or(overdue, |window| overdue.min(window.max(since)))
    }

    /// After this moment no variant can meet the deadline.
    pub(super) fn latest_beginning(&self) -> Option<Micros> {
        let shortest = self.wishes().map(|wish| wish.limit).min()?;
        Some(self.deadline?.saturating_sub(shortest))
    }

    /// Whether a variant that starts at `begin` ends by the deadline.
    pub(super) fn is_in_time(&self, wish: &Wish, begin: Micros) -> bool {
        let end = begin.saturating_add(wish.limit);
        self.deadline.is_none_or(|deadline| end <= deadline)
    }
}
