//! Seeded chance: the same seed gives the same world, on every machine and with every version of every library.

use std::ops::RangeInclusive;

use berth_sim::random::Random;

/// What people in the demo's world do is drawn from this.
#[derive(Debug, Clone)]
pub struct Chance(Random);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    /// A stream of its own for `purpose`, so that adding to one part of the world does not reshuffle the others.
    pub fn fork(&self, purpose: &str) -> Self {
        Self(self.0.fork(purpose))
    }

    /// A number of the range, all equally likely (as far as ranges this small can tell).
    pub fn between(&mut self, range: RangeInclusive<i64>) -> i64 {
        let (low, high) = range.into_inner();
        let width = high.abs_diff(low) + 1;
        low + (self.0.number() % width) as i64
    }

    pub fn percent(&mut self, percent: i64) -> bool {
        self.between(1..=100) <= percent
    }

    /// One of these; there must be at least one.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.between(0..=from.len() as i64 - 1) as usize]
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.between(0..=last as i64) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_purposes_differ() {
        let draw =
            |mut chance: Chance| -> Vec<i64> { (0..20).map(|_| chance.between(-3..=3)).collect() };
        assert_eq!(draw(Chance::new(7)), draw(Chance::new(7)));
        let seven = Chance::new(7);
        assert_ne!(draw(seven.fork("torino")), draw(seven.fork("napoli")));
        assert!(draw(seven).iter().all(|number| (-3..=3).contains(number)));
    }
}
