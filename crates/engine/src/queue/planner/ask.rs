//! What a workload asks for: something, or something else that would do as well, within the times it gives.

use std::cmp::Reverse;

use crate::fleet::Need;

use super::super::Micros;
use super::super::lines::{Place, Shape};
use super::super::quota::Amounts;
use super::super::seats;
use super::super::share::Account;
use super::{Key, Rank};

/// How firmly a workload holds what it has. What is reserved is firmer than all of these, and not the queue's to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Fills what is idle, and makes room for everybody else.
    Opportunistic,
    /// Stays until its limit, unless what it has was borrowed and is wanted back.
    Guaranteed,
    /// Guaranteed, and by an admin's word before all others: makes what is merely guaranteed give way.
    Urgent,
}

/// One way in which a workload could run.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    pub need: Need,
    /// How long it may run.
    pub limit: Micros,
    /// How long it is expected to run; never longer than it may.
    pub expected: Micros,
    /// What it counts for against quotas.
    pub amounts: Amounts,
    /// What a second of it costs its account, in the units of the whole fleet's.
    pub rate: f64,
}

/// What a workload asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    pub account: Account,
    pub class: Class,
    /// Of the site's priorities; the higher comes first.
    pub level: i32,
    /// Since when it waits.
    pub since: Micros,
    /// What it would like. By this it is ordered among others.
    pub wish: Wish,
    /// What would do as well, such as half as many for twice as long. Of all that could begin, that is taken which ends first.
    pub or: Vec<Wish>,
    /// Seats that it needs from its beginning to its end, whichever wish is granted.
    pub seats: Vec<seats::Count>,
    /// It is not looked at before this.
    pub not_before: Option<Micros>,
    /// It has to be over by then, even if it runs for as long as it may.
    pub deadline: Option<Micros>,
}

const HOUR: Micros = 3_600_000_000;
/// Nobody is overdue sooner than this, and everybody is after the longest.
const PATIENCE_MIN: Micros = HOUR;
const PATIENCE_MAX: Micros = 12 * HOUR;

impl Ask {
    /// For this and nothing else, guaranteed, at any time.
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

    /// The wish with this number, the first being 0.
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
            // Whoever has one wish waits only while that is in time.
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

    /// From when on it is overdue: it has waited long, or it will soon be too late for it.
    pub(in crate::queue) fn due(&self) -> Micros {
        let since = self.not_before.unwrap_or(self.since).max(self.since);
        let overdue = since.saturating_add(self.patience());
        let window = self
            .latest_beginning()
            .map(|latest| latest.saturating_sub(self.patience()));
        window.map_or(overdue, |window| overdue.min(window.max(since)))
    }

    /// After this it is too late for every wish.
    pub(super) fn latest_beginning(&self) -> Option<Micros> {
        let shortest = self.wishes().map(|wish| wish.limit).min()?;
        Some(self.deadline?.saturating_sub(shortest))
    }

    /// Whether what begins then is over by its deadline.
    pub(super) fn is_in_time(&self, wish: &Wish, begin: Micros) -> bool {
        let end = begin.saturating_add(wish.limit);
        self.deadline.is_none_or(|deadline| end <= deadline)
    }
}
