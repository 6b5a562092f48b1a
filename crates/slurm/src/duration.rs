//! Lengths of time as Slurm writes them: `90`, `1:30`, `1-02:03:04`, `UNLIMITED`.

use std::fmt;
use std::str::FromStr;

/// How long a job may run. Slurm counts in minutes and rounds seconds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeLimit {
    Minutes(u32),
    Unlimited,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "write minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, \
     days-hours:minutes:seconds or UNLIMITED"
)]
pub struct TimeLimitError;

impl TimeLimit {
    pub fn seconds(self) -> Option<u64> {
        match self {
            Self::Minutes(minutes) => Some(u64::from(minutes) * 60),
            Self::Unlimited => None,
        }
    }
}

impl FromStr for TimeLimit {
    type Err = TimeLimitError;

    fn from_str(text: &str) -> Result<Self, TimeLimitError> {
        if ["unlimited", "infinite", "-1"]
            .iter()
            .any(|word| text.eq_ignore_ascii_case(word))
        {
            return Ok(Self::Unlimited);
        }
        let (days, rest) = match text.split_once('-') {
            Some((days, rest)) => (Some(number(days)?), rest),
            None => (None, text),
        };
        let parts: Vec<u64> = match (days, rest) {
            // Slurm takes `1-` for one day.
            (Some(_), "") => vec![0],
            _ => rest.split(':').map(number).collect::<Result<_, _>>()?,
        };
        let seconds = match (days, parts.as_slice()) {
            (None, [minutes]) => minutes * 60,
            (None, [minutes, seconds]) => minutes * 60 + seconds,
            (None, [hours, minutes, seconds]) => hours * 3600 + minutes * 60 + seconds,
            (Some(days), [hours]) => days * 86_400 + hours * 3600,
            (Some(days), [hours, minutes]) => days * 86_400 + hours * 3600 + minutes * 60,
            (Some(days), [hours, minutes, seconds]) => {
                days * 86_400 + hours * 3600 + minutes * 60 + seconds
            }
            _ => return Err(TimeLimitError),
        };
        match u32::try_from(seconds.div_ceil(60)).map_err(|_| TimeLimitError)? {
            // No time at all means no limit.
            0 | u32::MAX => Ok(Self::Unlimited),
            minutes => Ok(Self::Minutes(minutes)),
        }
    }
}

fn number(text: &str) -> Result<u64, TimeLimitError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(TimeLimitError);
    }
    // Ten digits are more than Slurm can count, and their sums stay far from the end of a u64.
    text.parse::<u64>()
        .ok()
        .filter(|number| *number <= u64::from(u32::MAX))
        .ok_or(TimeLimitError)
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds() {
            Some(seconds) => f.write_str(&short(seconds)),
            None => f.write_str("UNLIMITED"),
        }
    }
}

/// As `squeue` and `sinfo` write it: days and hours only as needed.
pub fn short(seconds: u64) -> String {
    let (days, hours, minutes, seconds) = parts(seconds);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// As `sacct` and `scontrol` write it: hours always.
pub fn long(seconds: u64) -> String {
    let (days, hours, minutes, seconds) = parts(seconds);
    match days {
        0 => format!("{hours:02}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

fn parts(seconds: u64) -> (u64, u64, u64, u64) {
    (
        seconds / 86_400,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_written_in_every_form_of_slurm() {
        for (text, minutes) in [
            ("5", 5),
            ("01", 1),
            ("1:30", 2),
            ("0:29", 1),
            ("1:2:3", 63),
            ("1:99:99", 161),
            ("1-", 1440),
            ("1-2", 1560),
            ("1-2:3", 1563),
            ("1-2:3:4", 1564),
            ("1-24:60:60", 2941),
        ] {
            assert_eq!(text.parse(), Ok(TimeLimit::Minutes(minutes)), "{text}");
        }
        for text in ["0", "UNLIMITED", "infinite", "-1", "4294967295"] {
            assert_eq!(text.parse(), Ok(TimeLimit::Unlimited), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "inf",
            "1-2-",
            ":5",
            "5:",
            "1::2",
            "1.5",
            "60min",
            "1 ",
            "+5",
            "1:2:3:4",
            "1-2:3:4:5",
            "-2",
            "99999999999",
        ] {
            assert!(text.parse::<TimeLimit>().is_err(), "{text}");
        }
    }

    #[test]
    fn lengths_are_printed_with_days_and_hours_as_needed() {
        for (seconds, wanted_short, wanted_long) in [
            (0, "0:00", "00:00:00"),
            (65, "1:05", "00:01:05"),
            (3600, "1:00:00", "01:00:00"),
            (93_784, "1-02:03:04", "1-02:03:04"),
        ] {
            assert_eq!(short(seconds), wanted_short);
            assert_eq!(long(seconds), wanted_long);
        }
        assert_eq!(TimeLimit::Minutes(30).to_string(), "30:00");
    }
}
