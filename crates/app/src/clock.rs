//! Time and randomness, the two external inputs of a use case besides the store.

use jiff::Timestamp;
use uuid::Uuid;

pub trait Clock: Send + Sync + std::fmt::Debug {
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Bytes that nobody can guess. The system's source does not fail on any system that Berth runs on. If it did,
/// continuing with predictable secrets would be worse than stopping.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if let Err(error) = getrandom::fill(&mut bytes) {
        panic!("the system gives no random numbers: {error}");
    }
    bytes
}

/// A fresh UUIDv7. Lists sort by it; lookups compare all of it.
pub(crate) fn fresh(now: Timestamp) -> Uuid {
    let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random()).into_uuid()
}
