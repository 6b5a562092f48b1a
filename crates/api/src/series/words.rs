//! Rules, days and times of day as requests write them: one spelling each, within bounds.

use std::fmt;
use std::str::FromStr;

use berth_model::Recurrence;
use jiff::civil::{Date, Time};
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};

use crate::schemas::{NO_CONTROLS, text};

/// Why a rule, a day or a time of day is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WordError(String);

/// A type that crosses the wire as a text.
macro_rules! written {
    ($(#[$doc:meta])* $name:ident($inner:ty), $read:expr, $schema:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name($inner);

        impl $name {
            pub fn get(&self) -> &$inner {
                &self.0
            }

            pub fn into_inner(self) -> $inner {
                self.0
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }

        impl FromStr for $name {
            type Err = WordError;
            fn from_str(text: &str) -> Result<Self, WordError> {
                let read: fn(&str) -> Result<$inner, String> = $read;
                read(text).map(Self).map_err(WordError)
            }
        }

        impl TryFrom<String> for $name {
            type Error = WordError;
            fn try_from(text: String) -> Result<Self, WordError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.to_string()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let schema: ObjectBuilder = $schema;
                schema.into()
            }
        }
        impl utoipa::ToSchema for $name {}
    };
}

/// A rule with every part that there is has far fewer.
const RULE_MAX_CHARS: usize = 500;

written!(
    /// A rule of RFC 5545: `FREQ=WEEKLY;BYDAY=MO,WE;COUNT=10`.
    Rule(Recurrence),
    |text| {
        if text.chars().count() > RULE_MAX_CHARS {
            return Err(format!("a rule has at most {RULE_MAX_CHARS} characters"));
        }
        if text.chars().any(char::is_control) {
            return Err("must not contain control characters".to_owned());
        }
        text.parse::<Recurrence>()
            .map_err(|error| error.to_string())
    },
    text(1, RULE_MAX_CHARS)
        .pattern(Some(NO_CONTROLS))
        .description(Some(
            "A rule of RFC 5545 with FREQ (DAILY, WEEKLY or MONTHLY), INTERVAL, BYDAY, BYMONTHDAY, WKST, \
             and COUNT or UNTIL; at most 1000 instances within five years.",
        ))
        .examples(["FREQ=WEEKLY;BYDAY=MO,WE;COUNT=10"])
);

written!(
    /// A day of the calendar: `2026-12-24`.
    Day(Date),
    |text| {
        let day = text.parse::<Date>().ok();
        // Only the one spelling that we write ourselves.
        day.filter(|day| day.to_string() == text)
            .ok_or_else(|| "is not a day: write it like 2026-12-24".to_owned())
    },
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)))
        .examples(["2026-12-24"])
);

written!(
    /// A time of day on the site's wall clock: `09:00`.
    TimeOfDay(Time),
    |text| {
        let refused = || "is not a time of day: write it like 09:00".to_owned();
        let part = |part: &str| {
            let is_plain = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<i8>().ok().filter(|_| is_plain)
        };
        let parts: Option<Vec<i8>> = text.split(':').map(part).collect();
        let time = match parts.as_deref() {
            Some([hour, minute]) => Time::new(*hour, *minute, 0, 0),
            Some([hour, minute, second]) => Time::new(*hour, *minute, *second, 0),
            _ => return Err(refused()),
        };
        time.map_err(|_| refused())
    },
    text(5, 8)
        .pattern(Some("^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$"))
        .examples(["09:00"])
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_one_spelling() {
        assert!("2026-12-24".parse::<Day>().is_ok());
        for bad in [
            "20261224",
            "2026-12-24T09:00",
            "2026-02-30",
            "24.12.2026",
            "",
        ] {
            assert!(bad.parse::<Day>().is_err(), "{bad}");
        }
        assert_eq!(
            "09:00".parse::<TimeOfDay>().unwrap().to_string(),
            "09:00:00"
        );
        assert!("23:59:59".parse::<TimeOfDay>().is_ok());
        for bad in [
            "9:00",
            "24:00",
            "09:60",
            "0900",
            "09:00:00.5",
            " 9:00",
            "09:5 ",
            "",
        ] {
            assert!(bad.parse::<TimeOfDay>().is_err(), "{bad}");
        }
        assert!("FREQ=DAILY;COUNT=3".parse::<Rule>().is_ok());
        let long = format!("FREQ=WEEKLY;COUNT=3;BYDAY={}MO", "MO,".repeat(200));
        assert!(long.parse::<Rule>().is_err());
        assert!("\tFREQ=DAILY;COUNT=3".parse::<Rule>().is_err());
    }
}
