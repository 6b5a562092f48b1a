//! Lengths of time as people write them: `30s`, `1h30m`, `7d`.

use berth_engine::queue::Micros;
use serde::{Deserialize, Deserializer};

use crate::swf::SECOND;

pub(super) const HOUR: Micros = 3600 * SECOND;
pub(super) const DAY: Micros = 24 * HOUR;
const LONGEST: Micros = 3660 * DAY;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Length(pub Micros);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Length, D::Error> {
        let text = String::deserialize(from)?;
        parse(&text).map(Length).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "`{text}` is not a length of time such as `30s`, `5m`, `1h30m` or `7d`"
            ))
        })
    }
}

fn parse(text: &str) -> Option<Micros> {
    let mut rest = text.trim();
    let mut all: Micros = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let unit = match after.chars().next()? {
            's' => SECOND,
            'm' => 60 * SECOND,
            'h' => HOUR,
            'd' => DAY,
            'w' => 7 * DAY,
            _ => return None,
        };
        let part = number.parse::<Micros>().ok()?.checked_mul(unit)?;
        all = all.checked_add(part).filter(|all| *all <= LONGEST)?;
        rest = &after[1..];
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        assert_eq!(parse("30s"), Some(30 * SECOND));
        assert_eq!(parse("1h30m"), Some(90 * 60 * SECOND));
        assert_eq!(parse("2w"), Some(14 * DAY));
        assert_eq!(parse("0s"), Some(0));
        for wrong in [
            "",
            "5",
            "m",
            "5y",
            "-5m",
            "5 m",
            "99999999999999999999d",
            "9999d",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
