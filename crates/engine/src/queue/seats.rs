//! Countable resources of a site that do not belong to a node, mostly licence seats.
//!
//! Seats have a timeline like the nodes: a running workload holds its seats until its end, and reservations and
//! promises of seats are walls.

use std::collections::BTreeMap;

use super::Micros;
use super::track::Taker;

/// A pool of seats. The caller numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pool(pub u16);

#[derive(Debug, Clone, Default)]
pub struct Seats {
    pools: BTreeMap<Pool, Timeline>,
}

#[derive(Debug, Clone, Default)]
struct Timeline {
    total: u64,
    held: Vec<Held>,
}

/// Seats that a taker has for a time.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub by: Taker,
    pub from: Micros,
    pub to: Micros,
    pub count: u64,
}

impl Timeline {
    fn free_at(&self, at: Micros, but: Option<Taker>) -> u64 {
        let there = |one: &&Held| one.from <= at && at < one.to && Some(one.by) != but;
        let held: u64 = self.held.iter().filter(there).map(|one| one.count).sum();
        self.total.saturating_sub(held)
    }

    fn free_during(&self, from: Micros, to: Micros, but: Option<Taker>) -> u64 {
        let begins = self.held.iter().map(|one| one.from);
        let later = begins.filter(|at| from < *at && *at < to);
        let free = later.map(|at| self.free_at(at, but));
        free.fold(self.free_at(from, but), u64::min)
    }
}

/// A pool and a number of its seats.
pub type Count = (Pool, u64);

impl Seats {
    /// Sets the number of seats in a pool. A pool that was never named has none.
    pub fn provide(&mut self, pool: Pool, total: u64) {
        self.pools.entry(pool).or_default().total = total;
    }

    pub fn take(&mut self, by: Taker, from: Micros, to: Micros, seats: &[Count]) {
        for (pool, count) in seats.iter().copied().filter(|_| from < to) {
            let held = &mut self.pools.entry(pool).or_default().held;
            held.push(Held {
                by,
                from,
                to,
                count,
            });
        }
    }

    pub fn release(&mut self, by: Taker) {
        for timeline in self.pools.values_mut() {
            timeline.held.retain(|one| one.by != by);
        }
    }

    /// Forgets claims that have ended.
    pub fn turn(&mut self, now: Micros) {
        for timeline in self.pools.values_mut() {
            timeline.held.retain(|one| one.to > now);
        }
    }

    /// Moves the end of a taker to another moment.
    pub fn set_end(&mut self, by: Taker, to: Micros) {
        for timeline in self.pools.values_mut() {
            for one in timeline.held.iter_mut().filter(|one| one.by == by) {
                one.to = to;
            }
        }
    }

    /// All pools, with their seats and their claims.
    pub(super) fn held(&self) -> impl Iterator<Item = (Pool, u64, &[Held])> {
        let pools = self.pools.iter();
        pools.map(|(pool, timeline)| (*pool, timeline.total, &*timeline.held))
    }

    /// The first pool without enough free seats for all of a time. The claims of `but` do not count.
    pub fn lacking(
        &self,
        seats: &[Count],
        from: Micros,
        to: Micros,
        but: Option<Taker>,
    ) -> Option<Pool> {
        let lacks = |pool: &Pool| {
            let same = seats.iter().filter(|(other, _)| other == pool);
            let wanted: u64 = same.map(|(_, count)| count).sum();
            let timeline = self.pools.get(pool);
            timeline.map_or(0, |known| known.free_during(from, to, but)) < wanted
        };
        seats.iter().map(|(pool, _)| *pool).find(lacks)
    }

    /// The takers of seats of a pool during a time, if the pool gives out more than it has at some moment of it. Empty
    /// otherwise.
    pub fn over(&self, pool: Pool, from: Micros, to: Micros) -> Vec<Taker> {
        let Some(timeline) = self.pools.get(&pool) else {
            return Vec::new();
        };
        let there = |one: &&Held| one.from < to && from < one.to;
        let held = |at: Micros| {
            let then = timeline
                .held
                .iter()
                .filter(|one| one.from <= at && at < one.to);
            then.map(|one| one.count).sum::<u64>()
        };
        let begins = timeline
            .held
            .iter()
            .filter(there)
            .map(|one| one.from.max(from));
        let is_over = begins.map(held).any(|held| held > timeline.total);
        let takers = timeline.held.iter().filter(there).map(|one| one.by);
        takers.filter(|_| is_over).collect()
    }

    /// The first moment from `from` on at which the seats are free and stay free for `length`.
    pub fn earliest(
        &self,
        seats: &[Count],
        from: Micros,
        length: Micros,
        but: Option<Taker>,
    ) -> Option<Micros> {
        let pools = seats.iter().filter_map(|(pool, _)| self.pools.get(pool));
        let ends = pools.flat_map(|timeline| timeline.held.iter().map(|one| one.to));
        let mut moments: Vec<Micros> = ends.filter(|end| *end > from).collect();
        moments.push(from);
        moments.sort_unstable();
        let is_free = |at: &Micros| {
            let to = at.saturating_add(length);
            self.lacking(seats, *at, to, but).is_none()
        };
        moments.into_iter().find(is_free)
    }

    /// Until when the seats stay free that are free now.
    pub fn open_until(&self, seats: &[Count], now: Micros) -> Micros {
        let pools = seats.iter().filter_map(|(pool, _)| self.pools.get(pool));
        let begins = pools.flat_map(|timeline| timeline.held.iter().map(|one| one.from));
        let mut begins: Vec<Micros> = begins.filter(|from| *from > now).collect();
        begins.sort_unstable();
        let is_wall = |at: &Micros| {
            self.lacking(seats, now, at.saturating_add(1), None)
                .is_some()
        };
        begins.into_iter().find(is_wall).unwrap_or(Micros::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POOL: Pool = Pool(3);

    proptest! {
        /// At every moment, the pools report the same free seats as plain counting.
        #[test]
        fn seats_are_free_when_counting_says_so(
            held in prop::collection::vec((0..30_i64, 1..12_i64, 1..4_u64), 0..8),
            wanted in 1..6_u64, length in 1..15_i64, from in 0..20_i64,
        ) {
            let mut seats = Seats::default();
            seats.provide(POOL, 5);
            for (number, (from, length, count)) in (0..).zip(&held) {
                seats.take(Taker(number), *from, from + length, &[(POOL, *count)]);
            }
            let free = |at: i64| {
                let there = held.iter().filter(|(from, length, _)| *from <= at && at < from + length);
                5_u64.saturating_sub(there.map(|(.., count)| count).sum())
            };
            let fits = |from: i64, to: i64| (from..to).all(|at| free(at) >= wanted);
            let wish = [(POOL, wanted)];
            prop_assert_eq!(seats.lacking(&wish, from, from + length, None).is_none(), fits(from, from + length));
            let counted = (from..90).find(|at| fits(*at, at + length));
            prop_assert_eq!(seats.earliest(&wish, from, length, None), counted);
            if fits(from, from + 1) {
                let counted = (from..90).find(|at| free(*at) < wanted);
                prop_assert_eq!(seats.open_until(&wish, from), counted.unwrap_or(Micros::MAX));
            }
            for number in 0..held.len() {
                seats.release(Taker(number as u64));
            }
            prop_assert_eq!(seats.lacking(&[(POOL, 2), (POOL, 3)], 0, 90, None), None);
            prop_assert_eq!(seats.lacking(&[(POOL, 3), (POOL, 3)], 0, 90, None), Some(POOL));
        }
    }

    #[test]
    fn nobody_gets_seats_of_which_nobody_has_heard() {
        assert_eq!(
            Seats::default().lacking(&[(POOL, 1)], 0, 1, None),
            Some(POOL)
        );
    }
}
