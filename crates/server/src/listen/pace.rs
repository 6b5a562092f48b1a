//! The pace of one connection: how long it may be silent, and how long it may take to say what it wants.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For the head of a request, from its first byte to its last; and for the first byte of a new connection.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// For the client to take some of an answer.
    pub stalled: Duration,
}

impl Limits {
    /// How often to look; what is over is found that much later at most.
    pub fn look_every(&self) -> Duration {
        self.head.min(self.idle) / 2
    }
}

#[derive(Debug)]
pub struct Pace {
    pub limits: Limits,
    phase: Mutex<Phase>,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Connected, and nothing has come yet.
    New { since: Instant },
    /// Between requests.
    Idle { since: Instant },
    /// Some of a request's head has come.
    Head { since: Instant },
    /// So many requests are being answered; their pace is watched elsewhere.
    Busy { requests: usize },
}

/// A request being answered; dropped when the last byte of its answer is sent.
#[derive(Debug)]
pub struct Busy(Arc<Pace>);

impl Pace {
    pub fn new(limits: Limits, now: Instant) -> Self {
        let phase = Mutex::new(Phase::New { since: now });
        Self { limits, phase }
    }

    /// Some bytes have come.
    pub fn received(&self, now: Instant) {
        self.change(|phase| match phase {
            Phase::New { .. } | Phase::Idle { .. } => Phase::Head { since: now },
            Phase::Head { .. } | Phase::Busy { .. } => phase,
        });
    }

    /// A whole head has come.
    pub fn busy(self: &Arc<Self>) -> Busy {
        self.change(|phase| match phase {
            Phase::Busy { requests } => Phase::Busy {
                requests: requests + 1,
            },
            Phase::New { .. } | Phase::Idle { .. } | Phase::Head { .. } => {
                Phase::Busy { requests: 1 }
            }
        });
        Busy(self.clone())
    }

    pub fn is_busy(&self) -> bool {
        matches!(*self.lock(), Phase::Busy { .. })
    }

    /// Whether the client has taken longer than it may.
    pub fn is_over(&self, now: Instant) -> bool {
        let (since, limit) = match *self.lock() {
            Phase::New { since } | Phase::Head { since } => (since, self.limits.head),
            Phase::Idle { since } => (since, self.limits.idle),
            Phase::Busy { .. } => return false,
        };
        now.saturating_duration_since(since) >= limit
    }

    fn change(&self, next: impl FnOnce(Phase) -> Phase) {
        let mut phase = self.lock();
        *phase = next(*phase);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let now = Instant::now();
        self.0.change(|phase| match phase {
            Phase::Busy { requests } if requests > 1 => Phase::Busy {
                requests: requests - 1,
            },
            _ => Phase::Idle { since: now },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const LIMITS: Limits = Limits {
        head: Duration::from_secs(10),
        idle: Duration::from_secs(75),
        stalled: Duration::from_secs(30),
    };

    #[test]
    fn who_says_nothing_at_first_has_as_long_as_for_a_head() {
        let start = Instant::now();
        let pace = Pace::new(LIMITS, start);
        assert!(!pace.is_over(start + 9 * SECOND));
        assert!(pace.is_over(start + 10 * SECOND));
    }

    #[test]
    fn dripping_bytes_do_not_buy_time() {
        let start = Instant::now();
        let pace = Pace::new(LIMITS, start);
        for second in 1..10 {
            pace.received(start + second * SECOND);
        }
        assert!(!pace.is_over(start + 10 * SECOND));
        assert!(pace.is_over(start + 11 * SECOND));
    }

    #[test]
    fn while_a_request_is_answered_nothing_is_over() {
        let start = Instant::now();
        let pace = Arc::new(Pace::new(LIMITS, start));
        let (one, two) = (pace.busy(), pace.busy());
        drop(one);
        assert!(pace.is_busy());
        assert!(!pace.is_over(start + 1000 * SECOND));
        drop(two);
        let end = Instant::now();
        assert!(!pace.is_busy());
        assert!(
            !pace.is_over(end + 70 * SECOND),
            "idle connections are kept"
        );
        assert!(pace.is_over(end + 75 * SECOND), "but not for ever");
    }
}
