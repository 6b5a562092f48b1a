//! How much of one resource is free at every moment ahead: a first estimate of when a workload may start.
//!
//! A plan of a hundred thousand workloads asks this profile a hundred thousand times. So its moments are stored in
//! blocks. Each block knows its minimum and maximum, and can be raised or lowered as a whole. Answers to earlier
//! questions bound the later ones ([`Floors`]).

use super::Micros;

const BLOCK_MAX: usize = 256;

#[derive(Debug, Clone)]
pub struct Profile {
    blocks: Vec<Block>,
}

/// Consecutive moments, with the amount that is free from each of them on.
#[derive(Debug, Clone)]
struct Block {
    moments: Vec<Micros>,
    /// Without `added`, which applies to the whole block.
    free: Vec<i64>,
    added: i64,
    least: i64,
    most: i64,
}

impl Block {
    fn new(steps: &[(Micros, i64)]) -> Block {
        let mut block = Block {
            moments: steps.iter().map(|(at, _)| *at).collect(),
            free: steps.iter().map(|(_, free)| *free).collect(),
            added: 0,
            least: 0,
            most: 0,
        };
        block.look_again();
        block
    }

    fn begins(&self) -> Micros {
        self.moments.first().copied().unwrap_or(Micros::MIN)
    }

    fn look_again(&mut self) {
        self.least = self.free.iter().min().map_or(0, |least| least + self.added);
        self.most = self.free.iter().max().map_or(0, |most| most + self.added);
    }

    fn add_to_all(&mut self, amount: i64) {
        self.added += amount;
        self.least += amount;
        self.most += amount;
    }
}

/// A moment of the profile: the index of its block, and its index there.
type At = (usize, usize);

impl Profile {
    /// `free` is free from `from` on, with these changes. Changes before `from` are applied at `from`.
    pub fn new(
        from: Micros,
        free: i64,
        changes: impl IntoIterator<Item = (Micros, i64)>,
    ) -> Profile {
        let mut changes: Vec<(Micros, i64)> = changes.into_iter().collect();
        changes.sort_unstable();
        let mut steps = vec![(from, free)];
        for (at, change) in changes {
            let (last, free) = steps[steps.len() - 1];
            match at <= last {
                true => *steps.last_mut().unwrap_or(&mut (0, 0)) = (last, free + change),
                false => steps.push((at, free + change)),
            }
        }
        Profile {
            blocks: steps.chunks(BLOCK_MAX / 2).map(Block::new).collect(),
        }
    }

    /// The last moment of the profile that is not later than this one.
    fn at(&self, moment: Micros) -> At {
        let after = self
            .blocks
            .partition_point(|block| block.begins() <= moment);
        let block = after.saturating_sub(1);
        let after = self.blocks[block]
            .moments
            .partition_point(|begins| *begins <= moment);
        (block, after.saturating_sub(1))
    }

    /// The same, after inserting a moment at exactly this time.
    fn split(&mut self, moment: Micros) -> At {
        let (number, place) = self.at(moment);
        let block = &mut self.blocks[number];
        if block.moments[place] >= moment {
            return (number, place);
        }
        block.moments.insert(place + 1, moment);
        block.free.insert(place + 1, block.free[place]);
        if block.moments.len() < BLOCK_MAX {
            return (number, place + 1);
        }
        let half = BLOCK_MAX / 2;
        let mut second = Block {
            moments: block.moments.split_off(half),
            free: block.free.split_off(half),
            ..*block
        };
        block.look_again();
        second.look_again();
        self.blocks.insert(number + 1, second);
        match place + 1 < half {
            true => (number, place + 1),
            false => (number + 1, place + 1 - half),
        }
    }

    /// Takes `amount` from `from` to `to`.
    pub fn take(&mut self, from: Micros, to: Micros, amount: i64) {
        if from >= to {
            return;
        }
        self.split(from);
        let (last, end) = self.split(to);
        // The second split may have moved the first.
        let (first, start) = self.at(from);
        for number in first..=last {
            let block = &mut self.blocks[number];
            let start = if number == first { start } else { 0 };
            let end = if number == last {
                end
            } else {
                block.free.len()
            };
            if start == 0 && end == block.free.len() {
                block.add_to_all(-amount);
            } else if start < end {
                for free in &mut block.free[start..end] {
                    *free -= amount;
                }
                block.look_again();
            }
        }
    }

    /// The first moment from `from` on at which `amount` is free and stays free for `length`.
    pub fn earliest(&self, from: Micros, amount: i64, length: Micros) -> Option<Micros> {
        let mut begin = from;
        let mut at = self.at(from);
        loop {
            let end = begin.saturating_add(length);
            let Some(short) = self.next(at, |block| block.least < amount, |free| free < amount)
            else {
                return Some(begin);
            };
            if self.blocks[short.0].moments[short.1] >= end {
                return Some(begin);
            }
            at = self.next(short, |block| block.most >= amount, |free| free >= amount)?;
            begin = self.blocks[at.0].moments[at.1];
        }
    }

    /// The next moment for which `holds` is true. `may` says whether a block can contain one.
    fn next(
        &self,
        (first, place): At,
        may: impl Fn(&Block) -> bool,
        holds: impl Fn(i64) -> bool,
    ) -> Option<At> {
        let mut start = place;
        for (number, block) in self.blocks.iter().enumerate().skip(first) {
            if may(block) {
                let mut rest = block.free[start..].iter();
                if let Some(after) = rest.position(|free| holds(free + block.added)) {
                    return Some((number, start + after));
                }
            }
            start = 0;
        }
        None
    }
}

/// Lower bounds of start times. While a profile only falls, a workload that is as large and as long as another
/// starts no sooner than it.
///
/// Sizes and lengths are rounded to a few steps, in opposite directions for writing and for reading, so a bound is
/// never too high.
#[derive(Debug, Clone)]
pub struct Floors {
    sizes: Vec<i64>,
    lengths: Vec<Micros>,
    /// A tree of maxima over both dimensions, each from the smallest on.
    floors: Vec<Micros>,
}

const SIZES_MAX: usize = 64;
const LENGTHS_MAX: usize = 256;

impl Floors {
    /// For questions of these sizes and lengths.
    pub fn new(sizes: Vec<i64>, lengths: Vec<Micros>, from: Micros) -> Floors {
        let sizes = steps(sizes, SIZES_MAX);
        let lengths = steps(lengths, LENGTHS_MAX);
        Floors {
            floors: vec![from; (sizes.len() + 1) * (lengths.len() + 1)],
            sizes,
            lengths,
        }
    }

    /// Records that nothing of this size and length or more starts before `floor`.
    pub fn raise(&mut self, size: i64, length: Micros, floor: Micros) {
        let first = self.lengths.partition_point(|step| *step < length) + 1;
        let width = self.lengths.len() + 1;
        let mut row = self.sizes.partition_point(|step| *step < size) + 1;
        while row <= self.sizes.len() {
            let mut column = first;
            while column < width {
                let known = &mut self.floors[row * width + column];
                *known = floor.max(*known);
                column += lowest_bit(column);
            }
            row += lowest_bit(row);
        }
    }

    pub fn get(&self, size: i64, length: Micros) -> Micros {
        let last = self.lengths.partition_point(|step| *step <= length);
        let width = self.lengths.len() + 1;
        let mut floor = self.floors[0];
        let mut row = self.sizes.partition_point(|step| *step <= size);
        while row > 0 {
            let mut column = last;
            while column > 0 {
                floor = floor.max(self.floors[row * width + column]);
                column -= lowest_bit(column);
            }
            row -= lowest_bit(row);
        }
        floor
    }
}

fn lowest_bit(number: usize) -> usize {
    number & number.wrapping_neg()
}

/// The numbers, sorted, each once. If they are too many, an evenly spread selection.
fn steps(mut all: Vec<i64>, most: usize) -> Vec<i64> {
    all.sort_unstable();
    all.dedup();
    let every = all.len().div_ceil(most).max(1);
    all.into_iter().step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By trying every moment.
    fn by_trying(taken: &[(i64, i64, i64)], from: i64, amount: i64, length: i64) -> Option<i64> {
        let free = |at: i64| {
            let there = taken
                .iter()
                .filter(|(begin, end, _)| *begin <= at && at < *end);
            10 - there.map(|(.., amount)| amount).sum::<i64>()
        };
        (from..2000).find(|begin| (*begin..begin + length).all(|at| free(at) >= amount))
    }

    fn spans() -> impl Strategy<Value = Vec<(i64, i64, i64)>> {
        let span = (0..900_i64, 1..40_i64, 1..3_i64);
        let span = span.prop_map(|(from, length, amount)| (from, from + length, amount));
        prop::collection::vec(span, 0..300)
    }

    #[test]
    fn a_floor_holds_for_what_is_as_large_and_as_long() {
        let mut floors = Floors::new(vec![1, 2, 4, 2], vec![10, 20], 5);
        floors.raise(2, 10, 7);
        assert_eq!(
            [floors.get(2, 10), floors.get(4, 20), floors.get(9, 99)],
            [7; 3]
        );
        assert_eq!([floors.get(1, 20), floors.get(4, 9)], [5; 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn the_earliest_is_what_trying_every_moment_gives(
            known in spans(),
            later in spans(),
            asked in prop::collection::vec((0..900_i64, 1..11_i64, 1..60_i64), 1..20),
        ) {
            let changes = known.iter().flat_map(|(from, to, amount)| [(*from, -amount), (*to, *amount)]);
            let mut profile = Profile::new(0, 10, changes);
            for (from, to, amount) in &later {
                profile.take(*from, *to, *amount);
            }
            let all: Vec<_> = known.into_iter().chain(later).collect();
            for (from, amount, length) in asked {
                prop_assert_eq!(profile.earliest(from, amount, length), by_trying(&all, from, amount, length));
            }
        }

        /// With floors, each workload is placed at the same moment as without them.
        #[test]
        fn floors_change_nothing_but_the_way(
            asked in prop::collection::vec((1..200_i64, 1..2000_i64), 1..400),
        ) {
            let mut profile = Profile::new(0, 200, []);
            let sizes = asked.iter().map(|(size, _)| *size).collect();
            let lengths = asked.iter().map(|(_, length)| *length).collect();
            let mut floors = Floors::new(sizes, lengths, 0);
            for (size, length) in asked {
                let begin = profile.earliest(0, size, length).unwrap();
                let floor = floors.get(size, length);
                prop_assert!(floor <= begin);
                prop_assert_eq!(profile.earliest(floor, size, length), Some(begin));
                floors.raise(size, length, begin);
                profile.take(begin, begin + length, size);
            }
        }
    }
}
