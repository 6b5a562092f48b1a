//! A half-open span of time, `[start, end)`, never empty, in whole microseconds as the databases keep it.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    #[error("the end ({end}) must come after the start ({start})")]
    Empty { start: Timestamp, end: Timestamp },
    #[error("{0} is too far away: years 2000 to 2200 are kept")]
    OutOfRange(Timestamp),
}

/// 2000-01-01 and 2200-01-01 in seconds: far enough for any lab, near enough that no arithmetic can overflow.
const EARLIEST_S: i64 = 946_684_800;
const LATEST_S: i64 = 7_258_118_400;

/// Cuts a moment to the precision that is stored, so that what is compared is what is kept.
pub fn micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Bounds", into = "Bounds")]
pub struct Span {
    start: Timestamp,
    end: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct Bounds {
    start: Timestamp,
    end: Timestamp,
}

impl Span {
    pub fn new(start: Timestamp, end: Timestamp) -> Result<Self, SpanError> {
        let (start, end) = (micros(start), micros(end));
        for at in [start, end] {
            if !(EARLIEST_S..=LATEST_S).contains(&at.as_second()) {
                return Err(SpanError::OutOfRange(at));
            }
        }
        if start < end {
            Ok(Self { start, end })
        } else {
            Err(SpanError::Empty { start, end })
        }
    }

    pub fn start(self) -> Timestamp {
        self.start
    }

    pub fn end(self) -> Timestamp {
        self.end
    }

    pub fn duration(self) -> SignedDuration {
        self.end.duration_since(self.start)
    }

    pub fn overlaps(self, other: Span) -> bool {
        self.start < other.end && other.start < self.end
    }

    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    pub fn contains_moment(self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }

    /// The shortest span that has both in it.
    pub fn hull(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    pub fn intersection(self, other: Span) -> Option<Span> {
        Span::new(self.start.max(other.start), self.end.min(other.end)).ok()
    }

    /// What is left of this span before `at`; nothing if it starts then or later.
    pub fn before(self, at: Timestamp) -> Option<Span> {
        Span::new(self.start, self.end.min(at)).ok()
    }

    /// What is left of this span from `at` on; nothing if it ends then or earlier.
    pub fn after(self, at: Timestamp) -> Option<Span> {
        Span::new(self.start.max(at), self.end).ok()
    }

    /// The parts of this span that `holes` leave over, in order.
    pub fn minus(self, holes: &[Span]) -> Vec<Span> {
        let mut holes: Vec<Span> = holes
            .iter()
            .copied()
            .filter(|hole| hole.overlaps(self))
            .collect();
        holes.sort();
        let mut left = Vec::new();
        let mut from = self.start;
        for hole in holes {
            left.extend(Span::new(from, hole.start.min(self.end)));
            from = from.max(hole.end);
        }
        left.extend(Span::new(from, self.end));
        left
    }
}

impl TryFrom<Bounds> for Span {
    type Error = SpanError;
    fn try_from(b: Bounds) -> Result<Self, SpanError> {
        Span::new(b.start, b.end)
    }
}

impl From<Span> for Bounds {
    fn from(s: Span) -> Bounds {
        Bounds {
            start: s.start,
            end: s.end,
        }
    }
}

impl std::fmt::Debug for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hour * 3600).unwrap()
    }
    fn span(start: i64, end: i64) -> Span {
        Span::new(at(start), at(end)).unwrap()
    }

    #[test]
    fn touching_spans_do_not_overlap() {
        assert!(!span(0, 2).overlaps(span(2, 4)));
        assert!(span(0, 3).overlaps(span(2, 4)));
    }

    #[test]
    fn empty_and_reversed_spans_do_not_exist() {
        assert!(Span::new(at(1), at(1)).is_err());
        assert!(Span::new(at(2), at(1)).is_err());
        let half_microsecond = at(1) + SignedDuration::from_nanos(500);
        assert!(
            Span::new(at(1), half_microsecond).is_err(),
            "below the stored precision"
        );
        assert!(Span::new(Timestamp::MIN, Timestamp::MAX).is_err());
    }

    #[test]
    fn a_window_goes_around_what_it_must_keep() {
        assert_eq!(span(0, 10).minus(&[]), [span(0, 10)]);
        assert_eq!(
            span(0, 10).minus(&[span(4, 6), span(2, 3)]),
            [span(0, 2), span(3, 4), span(6, 10)]
        );
        assert_eq!(span(0, 10).minus(&[span(-5, 20)]), []);
        assert_eq!(
            span(0, 10).minus(&[span(-5, 2), span(1, 4), span(9, 12)]),
            [span(4, 9)]
        );
    }
}
