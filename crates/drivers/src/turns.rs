//! Blocking calls: on threads, one at a time for each key, such as a run or an errand. No caller waits past its
//! deadline.
//!
//! A disk or a driver that hangs occupies one thread for each run on it, however often the server asks about that run.
//! Threads are scarce, so every repeated call that may hang must go through this module.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as Turn;
use tokio::time::{Instant, timeout_at};

#[derive(Debug)]
pub(crate) struct Turns<K>(Mutex<HashMap<K, Arc<Turn<()>>>>);

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Turns(Mutex::default())
    }
}

/// Whether a caller still waits for the result of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patience(Arc<AtomicBool>);

impl Patience {
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Ends the `Patience` of a call when its caller stops waiting.
struct Waiting(Patience);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::SeqCst);
    }
}

impl<K: Eq + Hash + Clone> Turns<K> {
    /// `None` if the call, and the earlier ones with the same key, take longer than `longest`. The call itself
    /// continues.
    pub async fn take<T: Send + 'static>(
        &self,
        key: K,
        longest: Duration,
        call: impl FnOnce(&Patience) -> T + Send + 'static,
    ) -> Option<T> {
        let deadline = Instant::now() + longest;
        let waiting = Waiting(Patience::default());
        let turn = timeout_at(deadline, self.of(&key).lock_owned())
            .await
            .ok()?;
        let patience = waiting.0.clone();
        let call = tokio::task::spawn_blocking(move || {
            let done = call(&patience);
            drop(turn);
            done
        });
        let done = timeout_at(deadline, call).await.ok()?.ok();
        self.forget(&key);
        done
    }

    fn of(&self, key: &K) -> Arc<Turn<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.entry(key.clone()).or_default().clone()
    }

    /// Removes a key for which no call is running or waiting.
    fn forget(&self, key: &K) {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if turns
            .get(key)
            .is_some_and(|turn| Arc::strong_count(turn) == 1)
        {
            turns.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    /// A call that returns when the test says so.
    fn hung(until: Receiver<()>) -> impl FnOnce(&Patience) -> bool + Send + 'static {
        move |patience| {
            until.recv().ok();
            patience.is_over()
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_call_that_hangs_keeps_one_thread_and_delays_its_own_run_alone() {
        let turns = Arc::new(Turns::default());
        let (release, until) = channel();
        let short = Duration::from_millis(1);
        assert_eq!(turns.take(1, short, hung(until)).await, None);
        for _ in 0..600 {
            // More calls than there are threads: none of these gets a thread.
            assert_eq!(turns.take(1, short, |_| ()).await, None);
        }
        assert_eq!(turns.take(2, LONG, |_| 7).await, Some(7));
        release.send(()).unwrap();
        assert_eq!(turns.take(1, LONG, |_| 8).await, Some(8));
        assert!(turns.0.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_call_learns_that_nobody_waits_for_it_any_more() {
        let turns = Turns::default();
        let (release, until) = channel();
        let (tell, told) = channel();
        let call = move |patience: &Patience| tell.send(hung(until)(patience)).unwrap();
        assert_eq!(turns.take(1, Duration::ZERO, call).await, None);
        release.send(()).unwrap();
        let heard = tokio::task::spawn_blocking(move || told.recv().unwrap());
        assert!(heard.await.unwrap());
    }
}
