//! How much one caller may ask: a token bucket each, in bounded memory.
//!
//! A bucket is a single moment, the one at which it will be full again (the "generic cell rate algorithm"). It
//! is enough to compare that moment with now. Buckets live in two generations: when the younger one is full, the
//! older one is forgotten. Whoever asks often is always in the younger one, so forgetting forgives only those
//! who have not been seen for long.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Buckets in one generation; two of them take a few megabytes.
const GENERATION_MAX: usize = 32_768;

/// Why a request has to wait, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait(pub Duration);

impl Wait {
    /// In whole seconds, as `Retry-After` says it.
    pub fn seconds(self) -> u64 {
        self.0.as_secs_f64().ceil().max(1.0) as u64
    }
}

/// A limit on something that each `K` does.
#[derive(Debug)]
pub struct Limiter<K> {
    /// The time in which one token comes back.
    interval: Duration,
    /// The time in which an empty bucket fills up.
    depth: Duration,
    generations: Mutex<Generations<K>>,
}

#[derive(Debug)]
struct Generations<K> {
    young: HashMap<K, Instant>,
    old: HashMap<K, Instant>,
}

impl<K: Eq + Hash> Limiter<K> {
    /// `burst` at once, and then one in each `interval`. None if either is nothing, which means "no limit".
    pub fn new(interval: Duration, burst: u32) -> Option<Self> {
        if interval.is_zero() || burst == 0 {
            return None;
        }
        Some(Self {
            interval,
            depth: interval.saturating_mul(burst),
            generations: Mutex::new(Generations {
                young: HashMap::new(),
                old: HashMap::new(),
            }),
        })
    }

    /// So many in a second in the long run. None if that is nothing, which means "no limit".
    pub fn per_second(rate: u32, burst: u32) -> Option<Self> {
        let interval = Duration::from_secs(1).checked_div(rate)?;
        Self::new(interval, burst)
    }

    /// A bucket is never half changed, so one that a panic left behind is as good as any.
    fn generations(&self) -> std::sync::MutexGuard<'_, Generations<K>> {
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one token from the caller's bucket, or says when there will be one.
    pub fn take(&self, caller: K, now: Instant) -> Result<(), Wait> {
        let mut generations = self.generations();
        let full_at = generations.full_at(&caller).unwrap_or(now).max(now) + self.interval;
        let overdrawn = full_at
            .saturating_duration_since(now)
            .checked_sub(self.depth);
        match overdrawn {
            Some(wait) if !wait.is_zero() => Err(Wait(wait)),
            _ => {
                generations.put(caller, full_at);
                Ok(())
            }
        }
    }

    /// Puts a token back that was taken from the caller's bucket.
    pub fn give_back(&self, caller: K) {
        let mut generations = self.generations();
        let before = |full_at: Instant| full_at.checked_sub(self.interval);
        if let Some(full_at) = generations.full_at(&caller).and_then(before) {
            generations.put(caller, full_at);
        }
    }
}

/// What was seen not long ago, in bounded memory.
#[derive(Debug)]
pub struct Recent<K> {
    seen: Mutex<[HashSet<K>; 2]>,
}

impl<K: Eq + Hash> Default for Recent<K> {
    fn default() -> Self {
        Self {
            seen: Mutex::new([HashSet::new(), HashSet::new()]),
        }
    }
}

impl<K: Eq + Hash> Recent<K> {
    pub fn contains(&self, one: &K) -> bool {
        self.seen()
            .iter()
            .any(|generation| generation.contains(one))
    }

    pub fn insert(&self, one: K) {
        let mut seen = self.seen();
        let [young, old] = &mut *seen;
        if young.len() >= GENERATION_MAX {
            *old = std::mem::take(young);
        }
        young.insert(one);
    }

    pub fn remove(&self, one: &K) {
        for generation in self.seen().iter_mut() {
            generation.remove(one);
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, [HashSet<K>; 2]> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Generations<K> {
    fn full_at(&self, caller: &K) -> Option<Instant> {
        self.young
            .get(caller)
            .or_else(|| self.old.get(caller))
            .copied()
    }

    fn put(&mut self, caller: K, full_at: Instant) {
        if self.young.len() >= GENERATION_MAX && !self.young.contains_key(&caller) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(caller, full_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let limiter = Limiter::per_second(2, 3).unwrap();
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(limiter.take("ada", start), Ok(()));
        }
        assert_eq!(limiter.take("ada", start), Err(Wait(SECOND / 2)));
        assert_eq!(limiter.take("ben", start), Ok(()), "others are not held up");
        assert_eq!(limiter.take("ada", start + SECOND / 2), Ok(()));
        assert!(limiter.take("ada", start + SECOND / 2).is_err());
        for _ in 0..3 {
            assert_eq!(limiter.take("ada", start + 60 * SECOND), Ok(()));
        }
        assert!(limiter.take("ada", start + 60 * SECOND).is_err());
    }

    #[test]
    fn a_refused_request_costs_nothing() {
        let limiter = Limiter::per_second(1, 1).unwrap();
        let start = Instant::now();
        assert!(limiter.take("ada", start).is_ok());
        for _ in 0..100 {
            assert_eq!(limiter.take("ada", start), Err(Wait(SECOND)));
        }
        assert!(limiter.take("ada", start + SECOND).is_ok());
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let limiter = Limiter::per_second(1, 2).unwrap();
        let start = Instant::now();
        limiter.give_back("ada");
        for _ in 0..10 {
            assert!(limiter.take("ada", start).is_ok());
            limiter.give_back("ada");
        }
        assert!(limiter.take("ada", start).is_ok());
        assert!(limiter.take("ada", start).is_ok());
        assert!(limiter.take("ada", start).is_err());
        limiter.give_back("ada");
        assert!(limiter.take("ada", start).is_ok());
        assert!(limiter.take("ada", start).is_err());
    }

    #[test]
    fn what_was_seen_is_forgotten_after_many_others() {
        let recent = Recent::default();
        recent.insert(0);
        assert!(recent.contains(&0) && !recent.contains(&1));
        recent.remove(&0);
        assert!(!recent.contains(&0));
        (0..3 * GENERATION_MAX).for_each(|one| recent.insert(one));
        assert!(!recent.contains(&0) && recent.contains(&(3 * GENERATION_MAX - 1)));
    }

    #[test]
    fn zero_turns_the_limit_off() {
        assert!(Limiter::<u8>::per_second(0, 5).is_none());
        assert!(Limiter::<u8>::per_second(5, 0).is_none());
    }

    #[test]
    fn memory_is_bounded_and_a_busy_caller_is_not_forgotten() {
        let limiter = Limiter::per_second(1, 1).unwrap();
        let start = Instant::now();
        assert!(limiter.take(0, start).is_ok());
        for stranger in 1..5 * GENERATION_MAX {
            assert!(limiter.take(stranger, start).is_ok());
            if stranger % 1000 == 0 {
                // Bought at most one token in this much time, and pays for it again at once.
                let now = start + SECOND * (stranger as u32 / 1000);
                assert!(limiter.take(0, now).is_ok());
                assert!(limiter.take(0, now).is_err());
            }
        }
        let generations = limiter.generations.lock().unwrap();
        assert!(generations.young.len() <= GENERATION_MAX);
        assert!(generations.old.len() <= GENERATION_MAX);
    }

    #[test]
    fn waiting_is_told_in_whole_seconds() {
        assert_eq!(Wait(Duration::from_millis(3)).seconds(), 1);
        assert_eq!(Wait(Duration::from_millis(1001)).seconds(), 2);
    }
}
