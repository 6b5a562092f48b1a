//! Waits with a deadline until a condition is true, instead of sleeping for a guessed time.
//!
//! The predicate must check a state ("the reservation is active"), never a change ("it changed"). A change before the
//! first check would never be seen.

use std::panic::Location;
use std::time::Duration;

use tokio::time::Instant;

/// Pause between two checks: short compared with any deadline, long compared with a check.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until `predicate` returns true.
///
/// # Panics
/// When `deadline` passes first; the message says `what` was awaited, for how long, and where.
#[track_caller]
pub fn until<F>(what: &str, deadline: Duration, mut predicate: F) -> impl Future<Output = ()>
where
    F: AsyncFnMut() -> bool,
{
    some(what, deadline, async move || {
        predicate().await.then_some(())
    })
}

/// Waits until `look` returns a value, and returns that value.
///
/// # Panics
/// When `deadline` passes first; the message says `what` was awaited, for how long, and where.
#[track_caller]
pub fn some<T, F>(what: &str, deadline: Duration, mut look: F) -> impl Future<Output = T>
where
    F: AsyncFnMut() -> Option<T>,
{
    let place = Location::caller();
    async move {
        let end = Instant::now() + deadline;
        loop {
            // A check that hangs until the deadline counts as "not yet".
            if let Ok(Some(found)) = tokio::time::timeout_at(end, look()).await {
                return found;
            }
            assert!(
                Instant::now() < end,
                "waited {deadline:?} in vain for: {what} (at {place})"
            );
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough for a condition that becomes true at once; `BRIEF` is the deadline for one that never does.
    const AMPLE: Duration = Duration::from_secs(30);
    const BRIEF: Duration = Duration::from_millis(25);

    #[tokio::test]
    async fn looks_again_until_it_is_true() {
        let mut looks = 0;
        until("the third look", AMPLE, async || {
            looks += 1;
            looks == 3
        })
        .await;
        assert_eq!(looks, 3);
    }

    #[tokio::test]
    async fn gives_back_what_it_found() {
        assert_eq!(some("seven", AMPLE, async || Some(7)).await, 7);
    }

    #[tokio::test]
    async fn says_what_it_waited_for_and_where() {
        let waiting = tokio::spawn(until("rain", BRIEF, async || false));
        let panic = waiting.await.expect_err("it cannot rain").into_panic();
        let message = panic.downcast_ref::<String>().expect("a formatted message");
        assert!(
            message.starts_with("waited 25ms in vain for: rain (at "),
            "{message}"
        );
        assert!(message.contains("wait.rs"), "{message}");
    }

    #[tokio::test]
    async fn a_look_that_hangs_is_late_too() {
        let hanging = until("a hanging look", BRIEF, std::future::pending::<bool>);
        tokio::spawn(hanging)
            .await
            .expect_err("the deadline must end it");
    }
}
