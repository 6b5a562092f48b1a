//! Moments and durations as people type and read them.
//!
//! Booking is talking about time, and nobody talks in RFC 3339. This module turns what fingers
//! write (`tomorrow 09:00`, `+2h`, `mon 9am`) into exact instants, and exact instants back into
//! words a person can check at a glance.
//!
//! Two rules keep it honest. It never reads the clock: `now`, with its time zone, is a parameter,
//! so that every answer can be tested. And it never guesses: a clock time that a daylight-saving
//! change skips or repeats is refused, with both readings spelled out, because a booking one hour
//! off is worse than a question.

mod read;
mod show;
#[cfg(test)]
mod tests;

use std::fmt;

use jiff::civil::DateTime;
use jiff::{RoundMode, Span, Unit, Zoned, ZonedRound};

pub use show::{duration, moment, relative, span};

/// Reads a moment, relative to `now` and in its zone unless the text names another.
///
/// Accepted: `now`; `+2h`, `-1h`, `+1d 30m`; `today`, `tomorrow`, `yesterday`, a weekday or
/// `next` and a weekday, each with or without a clock time; a clock time alone, meaning its next
/// occurrence; an ISO date with or without a time, an offset and a `[Zone/Name]`. A day without a
/// clock time is the start of that day. `monday 9:00` is today while 9:00 is still ahead, whereas
/// `next monday` is never today: it is the first Monday after today, as for `date -d`.
///
/// The answer is cut to microseconds, the precision in which Berth stores instants.
pub fn parse(text: &str, now: &Zoned) -> Result<Zoned, Error> {
    let text = text.trim();
    let moment = if let Some(ahead) = text.strip_prefix('+') {
        after(now, parse_duration(ahead)?)?
    } else if let Some(back) = text.strip_prefix('-') {
        after(now, parse_duration(back)?.negate())?
    } else {
        read::Typed { text, now }.moment()?
    };
    let microseconds = ZonedRound::new()
        .smallest(Unit::Microsecond)
        .mode(RoundMode::Trunc);
    moment
        .round(microseconds)
        .map_err(|_| Error::moment(text, OUT_OF_RANGE))
}

/// Reads a length of time: `2h`, `90m`, `1d`, `1h30m`, `1w`, `1d 30m`, `PT2H`.
///
/// The answer keeps its units, so that `1d` added to a zoned time is the same clock time on the
/// next day even when that day has 23 or 25 hours. It is always longer than nothing.
pub fn parse_duration(text: &str) -> Result<Span, Error> {
    let text = text.trim();
    let refuse = |why| Error::Duration {
        text: text.to_owned(),
        why,
    };
    if text.is_empty() {
        return Err(refuse("it is empty"));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse("a number needs a unit, one of w, d, h, m, s"));
    }
    let length: Span = text
        .parse()
        .map_err(|_| refuse("write numbers with the units w, d, h, m, s, largest first"))?;
    match length.signum() {
        1 => Ok(length),
        0 => Err(refuse("it lasts no time at all")),
        // jiff reads `-2h` and `2h ago`, but where a length is asked for, the direction is known.
        _ => Err(refuse("a length of time does not point backwards")),
    }
}

/// The moment `length` after `start`, with days and weeks counted on the calendar of its zone.
///
/// Where whole days lead to a clock time that does not exist, the clocks decide (half past two
/// becomes half past three): nobody typed that time, so there is nothing to ask about.
pub fn after(start: &Zoned, length: Span) -> Result<Zoned, Error> {
    start.checked_add(length).map_err(|_| Error::Duration {
        text: format!("{length:#}"),
        why: OUT_OF_RANGE,
    })
}

const OUT_OF_RANGE: &str = "it leads out of the calendar";

/// Why something typed was not understood, and what to type instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The text does not name a moment.
    Moment { text: String, why: &'static str },
    /// The text does not name a length of time.
    Duration { text: String, why: &'static str },
    /// The clocks jump over this time, so nobody can mean it.
    Skipped {
        asked: DateTime,
        earlier: Zoned,
        later: Zoned,
    },
    /// The clocks go back over this time, so it could mean either of two.
    Repeated {
        asked: DateTime,
        first: Zoned,
        second: Zoned,
    },
}

impl Error {
    fn moment(text: &str, why: &'static str) -> Self {
        Error::Moment {
            text: text.to_owned(),
            why,
        }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What was typed may hold anything, so it is escaped before it reaches a terminal.
        match self {
            Error::Moment { text, why } => write!(
                out,
                "`{}` is not a time: {why}. Try `tomorrow 09:00`, `+2h` or `2026-11-20T09:00`.",
                text.escape_debug(),
            ),
            Error::Duration { text, why } => write!(
                out,
                "`{}` is not a duration: {why}. Try `2h`, `1h30m` or `1d`.",
                text.escape_debug(),
            ),
            Error::Skipped {
                asked,
                earlier,
                later,
            } => write!(
                out,
                "{} does not exist in {}: the clocks jump over it. \
                 Write the time you mean with its offset: `{}` or `{}`.",
                asked.strftime("%H:%M on %a %-d %b %Y"),
                zone_name(earlier),
                with_offset(earlier),
                with_offset(later),
            ),
            Error::Repeated {
                asked,
                first,
                second,
            } => write!(
                out,
                "{} happens twice in {}: the clocks go back over it. \
                 Write the time you mean with its offset: `{}` (the first) or `{}` (the second).",
                asked.strftime("%H:%M on %a %-d %b %Y"),
                zone_name(first),
                with_offset(first),
                with_offset(second),
            ),
        }
    }
}

fn zone_name(moment: &Zoned) -> &str {
    moment.time_zone().iana_name().unwrap_or("this time zone")
}

/// The spelling that leaves no doubt, and that [`parse`] reads back.
fn with_offset(moment: &Zoned) -> String {
    moment.strftime("%FT%T%:z").to_string()
}
