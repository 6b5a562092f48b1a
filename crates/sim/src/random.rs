//! Pseudorandom numbers, the same at every run and on every machine.

/// Splitmix64: a counter and a mixer. Not for secrets.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A separate generator per purpose, so that drawing more for one does not change the others.
    pub fn fork(&self, purpose: &str) -> Random {
        let mixed = purpose.bytes().fold(self.0, |state, byte| {
            Random(state ^ u64::from(byte)).number()
        });
        Random(mixed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; zero if `end` is zero.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.number()) * end as u128) >> 64) as usize
    }

    /// Shuffles the elements.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_everything_is_drawn() {
        let mut order: Vec<usize> = (0..100).collect();
        Random::new(7).shuffle(&mut order);
        let mut again: Vec<usize> = (0..100).collect();
        Random::new(7).shuffle(&mut again);
        assert_eq!(order, again);
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
        let mut random = Random::new(1);
        let drawn: std::collections::BTreeSet<usize> = (0..200).map(|_| random.below(6)).collect();
        assert_eq!(drawn.len(), 6);
    }
}
