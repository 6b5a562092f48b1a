//! Opening hours: per weekday, on the clock of the site's wall.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Weekday;
use serde::{Deserialize, Serialize};

use super::bounds::at_most;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a part of a day: write it like `08:00-18:00`, the end after the start; a night is `22:00-24:00` and `00:00-06:00` on the day after"
)]
pub struct HoursError(String);

const DAY_MIN: u16 = 1_440;

/// A part of a day in minutes since midnight, half-open like every span, never empty.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hours {
    from: u16,
    to: u16,
}

impl Hours {
    pub fn new(from_min: u16, to_min: u16) -> Option<Hours> {
        (from_min < to_min && to_min <= DAY_MIN).then_some(Hours {
            from: from_min,
            to: to_min,
        })
    }

    pub fn from_min(self) -> u16 {
        self.from
    }

    pub fn to_min(self) -> u16 {
        self.to
    }
}

impl FromStr for Hours {
    type Err = HoursError;
    fn from_str(text: &str) -> Result<Self, HoursError> {
        let clock = |text: &str| -> Option<u16> {
            let (hour, minute) = text.trim().split_once(':')?;
            let number = |text: &str| match text.as_bytes() {
                [a @ b'0'..=b'9', b @ b'0'..=b'9'] => Some(u16::from((a - b'0') * 10 + (b - b'0'))),
                _ => None,
            };
            let minute = number(minute).filter(|minute| *minute < 60)?;
            Some(number(hour)? * 60 + minute)
        };
        let hours = text
            .split_once('-')
            .and_then(|(from, to)| Hours::new(clock(from)?, clock(to)?));
        hours.ok_or_else(|| HoursError(text.chars().take(64).collect()))
    }
}

impl TryFrom<String> for Hours {
    type Error = HoursError;
    fn try_from(text: String) -> Result<Self, HoursError> {
        text.parse()
    }
}

impl From<Hours> for String {
    fn from(hours: Hours) -> String {
        hours.to_string()
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = |at: u16| format!("{:02}:{:02}", at / 60, at % 60);
        write!(f, "{}-{}", clock(self.from), clock(self.to))
    }
}

impl fmt::Debug for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl utoipa::PartialSchema for Hours {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .description(Some("A part of a day on the site's clock."))
            .pattern(Some("^[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]$"))
            .examples(["08:00-18:00"])
            .into()
    }
}
impl utoipa::ToSchema for Hours {}

/// When a week is open. Parts of a day that overlap or touch are one; a day that is not named is closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Week", into = "Week")]
pub struct OpeningHours([Vec<Hours>; 7]);

#[derive(Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = OpeningHours)]
struct Week {
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_most::<24, _, _>"
    )]
    #[schema(max_items = 24)]
    mon: Vec<Hours>,
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_most::<24, _, _>"
    )]
    #[schema(max_items = 24)]
    tue: Vec<Hours>,
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_most::<24, _, _>"
    )]
    #[schema(max_items = 24)]
    wed: Vec<Hours>,
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_most::<24, _, _>"
    )]
    #[schema(max_items = 24)]
    thu: Vec<Hours>,
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_most::<24, _, _>"
    )]
    #[schema(max_items = 24)]
    fri: Vec<Hours>,
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_most::<24, _, _>"
    )]
    #[schema(max_items = 24)]
    sat: Vec<Hours>,
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_most::<24, _, _>"
    )]
    #[schema(max_items = 24)]
    sun: Vec<Hours>,
}

impl From<Week> for OpeningHours {
    fn from(week: Week) -> Self {
        OpeningHours::new([
            week.mon, week.tue, week.wed, week.thu, week.fri, week.sat, week.sun,
        ])
    }
}

impl From<OpeningHours> for Week {
    fn from(OpeningHours([mon, tue, wed, thu, fri, sat, sun]): OpeningHours) -> Self {
        Week {
            mon,
            tue,
            wed,
            thu,
            fri,
            sat,
            sun,
        }
    }
}

impl utoipa::PartialSchema for OpeningHours {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        Week::schema()
    }
}
impl utoipa::ToSchema for OpeningHours {
    fn schemas(
        schemas: &mut Vec<(
            String,
            utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>,
        )>,
    ) {
        Week::schemas(schemas);
    }
}

impl OpeningHours {
    /// From Monday to Sunday.
    pub fn new(days: [Vec<Hours>; 7]) -> OpeningHours {
        OpeningHours(days.map(|mut day| {
            day.sort();
            let mut merged: Vec<Hours> = Vec::with_capacity(day.len());
            for hours in day {
                match merged.last_mut() {
                    Some(last) if hours.from <= last.to => last.to = last.to.max(hours.to),
                    _ => merged.push(hours),
                }
            }
            merged
        }))
    }

    /// In order, no two touching.
    pub fn on(&self, day: Weekday) -> &[Hours] {
        &self.0[usize::from(day.to_monday_zero_offset().unsigned_abs())]
    }

    /// Open while both are.
    pub fn and(&self, other: &OpeningHours) -> OpeningHours {
        let both = |day: usize| {
            let pairs = self.0[day]
                .iter()
                .flat_map(|a| other.0[day].iter().map(move |b| (a, b)));
            pairs
                .filter_map(|(a, b)| Hours::new(a.from.max(b.from), a.to.min(b.to)))
                .collect()
        };
        OpeningHours::new(std::array::from_fn(both))
    }
}

impl fmt::Display for OpeningHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
        let mut said = Vec::new();
        let mut first = 0;
        while first < 7 {
            let same = (first..7).take_while(|day| self.0[*day] == self.0[first]);
            let last = first + same.count() - 1;
            let hours: Vec<String> = self.0[first].iter().map(Hours::to_string).collect();
            if !hours.is_empty() {
                let days = if first == last {
                    NAMES[first].to_owned()
                } else {
                    format!("{}-{}", NAMES[first], NAMES[last])
                };
                said.push(format!("{days} {}", hours.join(" and ")));
            }
            first = last + 1;
        }
        f.pad(&if said.is_empty() {
            "never".to_owned()
        } else {
            said.join(", ")
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn opening(week: serde_json::Value) -> OpeningHours {
        serde_json::from_value(week).unwrap()
    }

    #[test]
    fn parts_of_a_day() {
        for good in ["08:00-18:00", "00:00-24:00", "23:59-24:00"] {
            assert_eq!(good.parse::<Hours>().unwrap().to_string(), good);
        }
        for bad in [
            "",
            "8-18",
            "8:00-18:00",
            "18:00-08:00",
            "08:00-08:00",
            "08:00-24:01",
            "08:60-09:00",
            "+8:00-09:00",
            "08:00",
        ] {
            assert!(bad.parse::<Hours>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_week_is_kept_in_order_and_read_out_short() {
        let week = opening(json!({
            "mon": ["13:00-18:00", "08:00-12:00"], "tue": ["08:00-12:00", "13:00-18:00"],
            "sat": ["09:00-10:00", "10:00-12:00"], "wed": [],
        }));
        assert_eq!(
            week.to_string(),
            "Mon-Tue 08:00-12:00 and 13:00-18:00, Sat 09:00-12:00"
        );
        assert_eq!(
            serde_json::to_value(&week).unwrap()["sat"],
            json!(["09:00-12:00"])
        );
        assert_eq!(opening(serde_json::to_value(&week).unwrap()), week);
        assert_eq!(week.on(Weekday::Saturday).len(), 1);
        assert_eq!(opening(json!({})).to_string(), "never");
        assert!(serde_json::from_value::<OpeningHours>(json!({"monday": []})).is_err());
    }

    #[test]
    fn open_while_both_are() {
        let (a, b) = (
            opening(json!({"mon": ["08:00-12:00", "13:00-18:00"], "tue": ["08:00-18:00"]})),
            opening(json!({"mon": ["10:00-14:00"], "wed": ["08:00-18:00"]})),
        );
        assert_eq!(a.and(&b).to_string(), "Mon 10:00-12:00 and 13:00-14:00");
        assert_eq!(a.and(&b), b.and(&a));
        assert_eq!(a.and(&a), a);
    }
}
