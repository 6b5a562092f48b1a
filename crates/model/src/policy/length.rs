//! Lengths of time as policies speak of them: whole minutes, written `90m`, `12h` or `14d`.
//!
//! A day is 24 hours here, also when the clocks change: a limit on length must not depend on the date.

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;

/// A hundred years: beyond any limit that means something, small enough that no sum overflows.
const MAX_MIN: u32 = 52_596_000;
/// Longer than anything that says so many minutes.
const TEXT_MAX: usize = 64;
const UNITS: [(&str, u32); 5] = [("w", 10_080), ("d", 1_440), ("h", 60), ("min", 1), ("m", 1)];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LengthError {
    #[error(
        "`{0}` is not a length of time: write whole minutes, hours, days or weeks like `90m`, `1h30m`, `12h`, `14d` or `2w`, up to 100 years"
    )]
    Shape(String),
    #[error("a step of no length leads nowhere; write at least `1m`")]
    NoStep,
}

#[derive(
    Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Length(u32);

impl Length {
    pub const ZERO: Length = Length(0);

    /// Anything above a hundred years is a hundred years.
    pub fn from_minutes(minutes: u32) -> Length {
        Length(minutes.min(MAX_MIN))
    }

    pub fn from_hours(hours: u32) -> Length {
        Length::from_minutes(hours.saturating_mul(60))
    }

    pub fn minutes(self) -> u32 {
        self.0
    }

    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    pub fn duration(self) -> SignedDuration {
        SignedDuration::from_mins(i64::from(self.0))
    }

    fn written(self, (d, h, m): (&str, &str, &str), between: &str) -> String {
        // Up to two days people think in hours: `36 h`, but `14 d`.
        let days = if self.0 > 2_880 { self.0 / 1_440 } else { 0 };
        let rest = self.0 - days * 1_440;
        let parts = [(days, d), (rest / 60, h), (rest % 60, m)];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, unit)| format!("{count}{unit}"))
            .collect();
        if parts.is_empty() {
            format!("0{m}")
        } else {
            parts.join(between)
        }
    }
}

impl FromStr for Length {
    type Err = LengthError;
    fn from_str(text: &str) -> Result<Self, LengthError> {
        let wrong = || LengthError::Shape(text.chars().take(64).collect());
        let mut rest = text.trim();
        let mut minutes: u32 = 0;
        if rest.is_empty() || text.len() > TEXT_MAX {
            return Err(wrong());
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (count, tail) = rest.split_at(digits);
            let tail = tail.trim_start();
            let letters = tail.bytes().take_while(u8::is_ascii_lowercase).count();
            let (unit, tail) = tail.split_at(letters);
            let (_, unit_min) = UNITS
                .into_iter()
                .find(|(name, _)| *name == unit)
                .ok_or_else(wrong)?;
            let count: u32 = count.parse().map_err(|_| wrong())?;
            minutes = count
                .checked_mul(unit_min)
                .and_then(|more| minutes.checked_add(more))
                .filter(|sum| *sum <= MAX_MIN)
                .ok_or_else(wrong)?;
            rest = tail.trim_start();
        }
        Ok(Length(minutes))
    }
}

impl TryFrom<String> for Length {
    type Error = LengthError;
    fn try_from(text: String) -> Result<Self, LengthError> {
        text.parse()
    }
}

impl From<Length> for String {
    fn from(length: Length) -> String {
        length.written(("d", "h", "m"), "")
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.written((" d", " h", " min"), " "))
    }
}

impl fmt::Debug for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A length that things come in multiples of, so never zero.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(try_from = "Length", into = "Length")]
pub struct Step(Length);

impl Step {
    pub fn length(self) -> Length {
        self.0
    }

    /// The smallest step whose multiples are multiples of both.
    pub fn and(self, other: Step) -> Step {
        let (a, b) = (u64::from(self.0.0), u64::from(other.0.0));
        let (mut gcd, mut rest) = (a, b);
        while rest > 0 {
            (gcd, rest) = (rest, gcd % rest);
        }
        let both = a / gcd * b;
        Step(Length::from_minutes(u32::try_from(both).unwrap_or(MAX_MIN)))
    }
}

impl TryFrom<Length> for Step {
    type Error = LengthError;
    fn try_from(length: Length) -> Result<Self, LengthError> {
        match length {
            Length::ZERO => Err(LengthError::NoStep),
            length => Ok(Step(length)),
        }
    }
}

impl From<Step> for Length {
    fn from(step: Step) -> Length {
        step.0
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

macro_rules! as_text_in_the_schema {
    ($($name:ident),*) => {$(
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .max_length(Some(TEXT_MAX))
                    .pattern(Some("^ *([0-9]+ *(w|d|h|min|m) *)+$"))
                    .description(Some("A length of time in whole minutes, hours, days or weeks."))
                    .examples(["90m", "12h", "14d"])
                    .into()
            }
        }
        impl utoipa::ToSchema for $name {}
    )*};
}
as_text_in_the_schema!(Length, Step);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_as_people_write_them() {
        for (text, minutes, read_back, said) in [
            ("0m", 0, "0m", "0 min"),
            ("90m", 90, "1h30m", "1 h 30 min"),
            ("1 h 30 min", 90, "1h30m", "1 h 30 min"),
            ("12h", 720, "12h", "12 h"),
            ("2d", 2_880, "48h", "48 h"),
            ("2w", 20_160, "14d", "14 d"),
            ("1d12h", 2_160, "36h", "36 h"),
            ("60h1m", 3_601, "2d12h1m", "2 d 12 h 1 min"),
        ] {
            let length: Length = text.parse().unwrap();
            assert_eq!(length.minutes(), minutes, "{text}");
            assert_eq!(String::from(length), read_back);
            assert_eq!(length.to_string(), said);
        }
        for bad in [
            "",
            " ",
            "12",
            "h",
            "1.5h",
            "-1h",
            "1y",
            "1H",
            "h1",
            "101000w",
            "99999999999m",
        ] {
            assert!(bad.parse::<Length>().is_err(), "{bad:?}");
        }
        assert!(serde_json::from_str::<Step>("\"0m\"").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(minutes in 0..=MAX_MIN) {
            let length = Length::from_minutes(minutes);
            prop_assert_eq!(String::from(length).parse(), Ok(length));
            prop_assert_eq!(length.to_string().parse(), Ok(length));
        }

        #[test]
        fn any_text_is_answered_without_panic(text in "\\PC*") {
            text.parse::<Length>().ok();
        }

        #[test]
        fn both_steps_fit_into_their_sum_of_steps(a in 1u32..2_000, b in 1u32..2_000) {
            let step = |minutes| Step::try_from(Length::from_minutes(minutes)).unwrap();
            let both = step(a).and(step(b));
            prop_assert_eq!(both, step(b).and(step(a)));
            let minutes = both.length().minutes();
            prop_assert!(minutes.is_multiple_of(a) && minutes.is_multiple_of(b));
            prop_assert!((1..minutes / a).all(|n| !(n * a).is_multiple_of(b)), "the smallest");
        }
    }
}
