//! The pending workloads of one account with one shape, in order, with their limits.
//!
//! A round asks for the next workload with a limit below some bound, out of tens of thousands. So places are stored
//! in blocks, and each block knows its limits.

use std::collections::BTreeSet;

use super::super::Micros;
use super::super::planner::Key;

const BLOCK_MAX: usize = 128;

/// A pending workload in its line: the shortest expected run time first, then the oldest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::queue) struct Place {
    pub expected: Micros,
    pub since: Micros,
    pub key: Key,
    pub limit: Micros,
}

#[derive(Debug, Clone, Default)]
pub(in crate::queue) struct Line {
    blocks: Vec<Block>,
    /// The workloads by the moment at which they are overdue.
    pub by_due: BTreeSet<(Micros, Key)>,
}

/// Consecutive places; never empty.
#[derive(Debug, Clone)]
struct Block {
    places: Vec<Place>,
    /// The lowest and the highest limit.
    least: Micros,
    most: Micros,
}

impl Block {
    fn of(places: Vec<Place>) -> Block {
        let limits = places.iter().map(|place| place.limit);
        Block {
            least: limits.clone().min().unwrap_or(Micros::MAX),
            most: limits.max().unwrap_or(Micros::MIN),
            places,
        }
    }
}

impl Line {
    pub fn insert(&mut self, place: Place, due: Micros) {
        self.by_due.insert((due, place.key));
        let number = self.block_of(&place).min(self.blocks.len().max(1) - 1);
        let Some(block) = self.blocks.get_mut(number) else {
            self.blocks.push(Block::of(vec![place]));
            return;
        };
        let at = block.places.partition_point(|other| *other < place);
        block.places.insert(at, place);
        block.least = block.least.min(place.limit);
        block.most = block.most.max(place.limit);
        if block.places.len() > BLOCK_MAX {
            let second = block.places.split_off(BLOCK_MAX / 2);
            *block = Block::of(std::mem::take(&mut block.places));
            self.blocks.insert(number + 1, Block::of(second));
        }
    }

    pub fn remove(&mut self, place: &Place, due: Micros) {
        self.by_due.remove(&(due, place.key));
        let number = self.block_of(place);
        let Some(block) = self.blocks.get_mut(number) else {
            return;
        };
        if let Ok(at) = block.places.binary_search(place) {
            block.places.remove(at);
        }
        if block.places.is_empty() {
            self.blocks.remove(number);
        } else if block.least == place.limit || block.most == place.limit {
            *block = Block::of(std::mem::take(&mut block.places));
        }
    }

    /// The block that a place belongs to: the first that does not end before it.
    fn block_of(&self, place: &Place) -> usize {
        let ends_before = |block: &Block| block.places.last().is_none_or(|last| last < place);
        self.blocks.partition_point(ends_before)
    }

    /// The next place with a limit below `below`, after a place or from the front.
    pub fn next(&self, after: Option<&Place>, below: Option<Micros>) -> Option<Place> {
        let is_below = |limit: Micros| below.is_none_or(|below| limit < below);
        let first = after.map_or(0, |after| self.block_of(after));
        let blocks = self.blocks[first..].iter();
        let mut open = blocks.filter(|block| is_below(block.least));
        open.find_map(|block| {
            let start = after.map_or(0, |after| block.places.partition_point(|one| one <= after));
            let mut rest = block.places[start..].iter();
            rest.find(|place| is_below(place.limit)).copied()
        })
    }

    /// The lowest limit in the line.
    pub fn least(&self) -> Micros {
        let least = self.blocks.iter().map(|block| block.least);
        least.min().unwrap_or(Micros::MAX)
    }

    /// The highest limit in the line.
    pub fn most(&self) -> Micros {
        let most = self.blocks.iter().map(|block| block.most);
        most.max().unwrap_or(Micros::MIN)
    }

    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.by_due.iter().map(|(_, key)| *key)
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// After any inserts and removals, `next` finds the same place as a search through all.
        #[test]
        fn the_next_below_a_limit_is_found_among_many(
            comes in prop::collection::vec((0..50_i64, 1..40_i64, any::<bool>()), 1..700),
            asked in prop::collection::vec((0..50_i64, 0..700_u64, prop::option::of(0..45_i64)), 1..20),
        ) {
            let mut line = Line::default();
            let mut all: Vec<Place> = Vec::new();
            for (number, (expected, limit, leaves)) in (0..).zip(comes) {
                let place = Place { expected, since: 0, key: Key(number), limit };
                line.insert(place, number as Micros);
                all.push(place);
                if leaves {
                    let gone = all.swap_remove(number as usize * 7 % all.len());
                    line.remove(&gone, gone.key.0 as Micros);
                }
            }
            all.sort_unstable();
            prop_assert_eq!(line.is_empty(), all.is_empty());
            prop_assert_eq!(line.keys().count(), all.len());
            prop_assert_eq!(line.least(), all.iter().map(|one| one.limit).min().unwrap_or(Micros::MAX));
            prop_assert_eq!(line.most(), all.iter().map(|one| one.limit).max().unwrap_or(Micros::MIN));
            for (expected, key, below) in asked {
                let is_below = |one: &&Place| below.is_none_or(|below| one.limit < below);
                prop_assert_eq!(line.next(None, below), all.iter().find(is_below).copied());
                let after = Place { expected, since: 0, key: Key(key), limit: 20 };
                let next = all.iter().filter(is_below).find(|one| **one > after);
                prop_assert_eq!(line.next(Some(&after), below), next.copied());
            }
        }
    }
}
