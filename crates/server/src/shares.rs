//! How much of something each may hold at the same time, so that nobody can hold all of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts what each `K` holds, up to a limit that is the same for all.
#[derive(Debug, Clone)]
pub struct Shares<K> {
    max: usize,
    held: Arc<Mutex<HashMap<K, usize>>>,
}

/// One share; dropped, it can be taken again.
#[derive(Debug)]
pub struct Share<K: Eq + Hash + Copy> {
    of: Shares<K>,
    holder: K,
}

impl<K: Eq + Hash + Copy> Shares<K> {
    pub fn new(max: usize) -> Self {
        Self {
            max,
            held: Arc::default(),
        }
    }

    /// A share for `holder`; none if they hold as many as they may.
    pub fn take(&self, holder: K) -> Option<Share<K>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(holder).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(Share {
            of: self.clone(),
            holder,
        })
    }
}

impl<K: Eq + Hash + Copy> Drop for Share<K> {
    fn drop(&mut self) {
        let mut held = self.of.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = held.entry(self.holder) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_holds_so_many_and_no_more() {
        let shares = Shares::new(2);
        let (one, two) = (shares.take("ada"), shares.take("ada"));
        assert!(one.is_some() && two.is_some());
        assert!(shares.take("ada").is_none());
        assert!(shares.take("ben").is_some(), "others have their own");
        drop(one);
        assert!(shares.take("ada").is_some());
        drop(two);
        let held = shares.held.lock().unwrap();
        assert!(held.is_empty(), "nothing is left behind");
    }
}
