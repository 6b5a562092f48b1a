//! Moments and lengths of time as requests write them: RFC 3339 and ISO 8601, within bounds.

use std::fmt;
use std::str::FromStr;

use berth_model::Span;
use berth_model::span::{SpanError, micros};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};

/// A moment that can be stored: within the years that are kept, cut to whole microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Timestamp", into = "Timestamp")]
pub struct Moment(Timestamp);

impl Moment {
    pub fn get(self) -> Timestamp {
        self.0
    }
}

impl TryFrom<Timestamp> for Moment {
    type Error = SpanError;
    fn try_from(at: Timestamp) -> Result<Self, SpanError> {
        let at = micros(at);
        let next = at
            .checked_add(SignedDuration::from_micros(1))
            .map_err(|_| SpanError::OutOfRange(at))?;
        // The shortest span there is: what a span may touch is what a moment may be.
        Span::new(at, next).map(|span| Self(span.start()))
    }
}

impl From<Moment> for Timestamp {
    fn from(moment: Moment) -> Timestamp {
        moment.0
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl utoipa::PartialSchema for Moment {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some(
                "A moment in RFC 3339, from the year 2000 to 2200, kept to the microsecond.",
            ))
            .examples(["2026-11-20T09:00:00Z"])
            .into()
    }
}
impl utoipa::ToSchema for Moment {}

/// A length of time, at least a second: `PT2H`, `PT1H30M`.
///
/// There are no days in it. A day is not always 24 hours where people live, and `extend` must not
/// depend on the reader's time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Period(SignedDuration);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a length of time: write hours, minutes and seconds like `PT2H` or `PT1H30M`, without zeros"
)]
pub struct PeriodError(String);

/// Each unit with its seconds and the most digits it may have; sums stay far from any overflow.
const UNITS: [(char, i64, usize); 3] = [('H', 3600, 4), ('M', 60, 5), ('S', 1, 7)];
/// The same as the parser below; the shortest good text (`PT1H`) keeps a bare `PT` out.
const PATTERN: &str = "^PT([1-9][0-9]{0,3}H)?([1-9][0-9]{0,4}M)?([1-9][0-9]{0,6}S)?$";
const SHORTEST: usize = "PT1H".len();

impl Period {
    pub fn duration(self) -> SignedDuration {
        self.0
    }

    /// Whole seconds of `duration`, if there are any and they can be written.
    pub fn new(duration: SignedDuration) -> Result<Self, PeriodError> {
        Self(SignedDuration::from_secs(duration.as_secs()))
            .to_string()
            .parse()
    }
}

impl FromStr for Period {
    type Err = PeriodError;
    fn from_str(text: &str) -> Result<Self, PeriodError> {
        let refused = || PeriodError(text.chars().take(40).collect());
        let mut rest = text.strip_prefix("PT").ok_or_else(refused)?;
        let mut seconds = 0;
        for (unit, unit_s, digits_max) in UNITS {
            let Some((number, after)) = rest.split_once(unit) else {
                continue;
            };
            let plain = (1..=digits_max).contains(&number.len())
                && number.bytes().all(|b| b.is_ascii_digit())
                && !number.starts_with('0');
            if !plain {
                return Err(refused());
            }
            seconds += number.parse::<i64>().map_err(|_| refused())? * unit_s;
            rest = after;
        }
        if rest.is_empty() && seconds > 0 {
            Ok(Self(SignedDuration::from_secs(seconds)))
        } else {
            Err(refused())
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PT")?;
        let mut left_s = self.0.as_secs();
        for (unit, unit_s, _) in UNITS {
            if left_s >= unit_s {
                write!(f, "{}{unit}", left_s / unit_s)?;
                left_s %= unit_s;
            }
        }
        Ok(())
    }
}

impl TryFrom<String> for Period {
    type Error = PeriodError;
    fn try_from(text: String) -> Result<Self, PeriodError> {
        text.parse()
    }
}

impl From<Period> for String {
    fn from(period: Period) -> String {
        period.to_string()
    }
}

impl utoipa::PartialSchema for Period {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(PATTERN))
            .min_length(Some(SHORTEST))
            .description(Some(
                "A length of time in hours, minutes and seconds, ISO 8601.",
            ))
            .examples(["PT2H", "PT1H30M"])
            .into()
    }
}
impl utoipa::ToSchema for Period {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_read_and_write() {
        for (text, seconds) in [
            ("PT2H", 7200),
            ("PT1H30M", 5400),
            ("PT45S", 45),
            ("PT36H5S", 129_605),
        ] {
            let period: Period = text.parse().unwrap();
            assert_eq!(period.duration(), SignedDuration::from_secs(seconds));
            assert_eq!(period.to_string(), text);
        }
        let rewritten = "PT90M".parse::<Period>().unwrap();
        assert_eq!(rewritten.to_string(), "PT1H30M");
        for bad in [
            "", "PT", "PT0H", "2h", "P1D", "-PT2H", "PT-2H", "PT2", "PT30M1H", "PT+2H", "PT1.5H",
            "PT02H", "PT99999H", "pt2h", "PTH",
        ] {
            assert!(bad.parse::<Period>().is_err(), "{bad}");
        }
        assert!(Period::new(SignedDuration::from_secs(-1)).is_err());
        assert!(Period::new(SignedDuration::MAX).is_err());
    }

    #[test]
    fn moments_beyond_what_is_stored_are_refused() {
        let read = |text: &str| serde_json::from_value::<Moment>(text.into());
        let cut = read("2026-11-20T09:00:00.1234567Z").unwrap();
        assert_eq!(cut.to_string(), "2026-11-20T09:00:00.123456Z");
        assert!(read("2026-11-20T10:00:00+01:00").is_ok());
        for bad in [
            "1999-12-31T23:59:59Z",
            "9999-12-30T22:00:00Z",
            "-009999-01-02T01:59:59Z",
        ] {
            let said = read(bad).unwrap_err().to_string();
            assert!(said.contains("2000 to 2200"), "{said}");
        }
        assert!(read("tomorrow").is_err());
    }
}
