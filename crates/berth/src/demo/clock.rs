//! A clock that can stand at any moment: the demo's two months are lived through, not made up.

use std::sync::{Mutex, PoisonError};

use berth_app::clock::{Clock, SystemClock};
use jiff::Timestamp;

/// Stands where it was set, until it is let go; then it shows the real time.
#[derive(Debug)]
pub struct DemoClock(Mutex<Option<Timestamp>>);

impl DemoClock {
    pub fn at(moment: Timestamp) -> Self {
        Self(Mutex::new(Some(moment)))
    }

    /// Turns the clock forward. It never goes back: the histories it stamps are in order.
    pub fn advance_to(&self, moment: Timestamp) {
        let mut standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *standing = standing.map(|now| now.max(moment));
    }

    /// Whether it still shows a moment of the past.
    pub fn is_standing(&self) -> bool {
        let standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        standing.is_some()
    }

    /// From now on, real time.
    pub fn let_go(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Clock for DemoClock {
    fn now(&self) -> Timestamp {
        let standing = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        standing.unwrap_or_else(|| SystemClock.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stands_goes_forward_only_and_is_let_go() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let clock = DemoClock::at(at(1_000));
        assert_eq!(clock.now(), at(1_000));
        clock.advance_to(at(2_000));
        clock.advance_to(at(1_500));
        assert_eq!(clock.now(), at(2_000));
        assert!(clock.is_standing());
        clock.let_go();
        assert!(!clock.is_standing());
        clock.advance_to(at(3_000));
        assert!(clock.now() > at(1_000_000_000), "the machine's own time");
    }
}
