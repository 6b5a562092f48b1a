//! One person's view of time during one command: what `now` is, and in which zone they read and write moments.
//!
//! The clock is read once, so that everything one command says about time agrees.

use berth_api::moment::{Moment, Period};
use berth_app::clock::{Clock, SystemClock};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, Zoned};

use crate::failure::usage;
use crate::table::{Screen, Table};
use crate::when;

#[derive(Debug, Clone)]
pub struct Times {
    pub now: Zoned,
}

impl Times {
    pub fn new(zone: TimeZone) -> Self {
        Self {
            now: SystemClock.now().to_zoned(zone),
        }
    }

    pub fn zone(&self) -> &TimeZone {
        self.now.time_zone()
    }

    pub fn zone_name(&self) -> String {
        match self.zone().iana_name() {
            Some(name) => name.to_owned(),
            None => format!("UTC{}", self.now.strftime("%:z")),
        }
    }

    /// The line below everything that shows times.
    pub fn footnote(&self) -> String {
        format!("Times are in {}.\n", self.zone_name())
    }

    /// A table with times in it, and the zone they are in.
    pub fn render<const COLUMNS: usize>(&self, table: &Table<COLUMNS>, screen: Screen) -> String {
        if table.is_empty() {
            table.render(screen)
        } else {
            table.render(screen) + &self.footnote()
        }
    }

    /// `Fri 20 Nov 09:00`.
    pub fn moment(&self, at: Timestamp) -> String {
        when::moment(at, self.zone(), self.now.timestamp())
    }

    /// `Fri 20 Nov 09:00–12:00 (3 h)`.
    pub fn span(&self, start: Timestamp, end: Timestamp) -> String {
        when::span(start, end, self.zone(), self.now.timestamp())
    }

    /// `in 2 h`, `3 d ago`.
    pub fn relative(&self, at: Timestamp) -> String {
        when::relative(at, self.now.timestamp())
    }

    /// `Fri 20 Nov 09:00 (in 5 d)`.
    pub fn moment_and_distance(&self, at: Timestamp) -> String {
        format!("{} ({})", self.moment(at), self.relative(at))
    }

    /// Text with the moments in it put into this zone; the server writes them in UTC.
    pub fn localised(&self, text: &str) -> String {
        let word = |word: &str| {
            let bare = word.trim_end_matches([',', ';', '.', ':', ')']);
            match bare.parse::<Timestamp>() {
                Ok(at) => {
                    let rest = &word[bare.len()..];
                    format!("{} ({}){rest}", self.moment(at), self.zone_name())
                }
                Err(_) => word.to_owned(),
            }
        };
        text.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }

    /// Reads a moment that someone typed.
    pub fn read(&self, text: &str) -> anyhow::Result<Zoned> {
        when::parse(text, &self.now).map_err(|error| usage(error.to_string()))
    }

    pub fn read_moment(&self, text: &str) -> anyhow::Result<Moment> {
        sendable(&self.read(text)?)
    }

    /// Reads an end. A bare clock time is the next one after the start, and `+2h` counts from there: whoever says
    /// "from tomorrow 9:00 to 12:00" means the noon of that day.
    pub fn read_end(&self, text: &str, start: &Zoned) -> anyhow::Result<Zoned> {
        let from = if follows_the_start(text.trim()) {
            start
        } else {
            &self.now
        };
        when::parse(text, from).map_err(|error| usage(error.to_string()))
    }

    /// Start and end out of what someone typed: an end, or a length.
    pub fn read_span(&self, from: &str, until: Until<'_>) -> anyhow::Result<(Moment, Moment)> {
        let start = self.read(from)?;
        let end = match until {
            Until::End(text) => self.read_end(text, &start)?,
            Until::Length(text) => after(&start, text)?,
        };
        if end <= start {
            return Err(usage(format!(
                "the end, {}, does not come after the start, {}; give a later one, or a length with --for",
                self.moment(end.timestamp()),
                self.moment(start.timestamp())
            )));
        }
        Ok((sendable(&start)?, sendable(&end)?))
    }

    /// A length of time in hours, minutes and seconds. Days and weeks are those of the calendar from `start` on.
    pub fn read_period(&self, text: &str, start: &Zoned) -> anyhow::Result<Period> {
        let length = after(start, text)?.duration_since(start);
        Period::new(length).map_err(|error| usage(error.to_string()))
    }

    #[cfg(test)]
    pub fn fixed() -> Self {
        Self {
            now: "2026-11-15T10:28:00[Europe/Rome]".parse().unwrap(),
        }
    }
}

/// How someone said when it is over.
#[derive(Debug, Clone, Copy)]
pub enum Until<'a> {
    End(&'a str),
    Length(&'a str),
}

/// Whether a length of time counts days or weeks, whose hours depend on where it begins.
pub fn counts_days(text: &str) -> anyhow::Result<bool> {
    let length = read_length(text)?;
    Ok(SignedDuration::try_from(length).is_err())
}

fn read_length(text: &str) -> anyhow::Result<Span> {
    when::parse_duration(text).map_err(|error| usage(error.to_string()))
}

fn after(start: &Zoned, length: &str) -> anyhow::Result<Zoned> {
    when::after(start, read_length(length)?).map_err(|error| usage(error.to_string()))
}

fn follows_the_start(text: &str) -> bool {
    let is_date = text.as_bytes().get(4) == Some(&b'-');
    text.starts_with('+') || (text.starts_with(|c: char| c.is_ascii_digit()) && !is_date)
}

fn sendable(at: &Zoned) -> anyhow::Result<Moment> {
    Moment::try_from(at.timestamp()).map_err(|error| usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: &str, until: Until<'_>) -> String {
        let times = Times::fixed();
        match times.read_span(from, until) {
            Ok((start, end)) => times.span(start.get(), end.get()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_end_is_read_as_people_mean_it() {
        for (from, to, expected) in [
            ("tomorrow 09:00", "12:00", "tomorrow 09:00–12:00 (3 h)"),
            ("tomorrow 09:00", "+2h", "tomorrow 09:00–11:00 (2 h)"),
            (
                "tomorrow 09:00",
                "tomorrow 12:00",
                "tomorrow 09:00–12:00 (3 h)",
            ),
            (
                "fri 22:00",
                "02:00",
                "Fri 20 Nov 22:00 – Sat 21 Nov 02:00 (4 h)",
            ),
            (
                "2026-11-20T09:00",
                "2026-11-20 12:00",
                "Fri 20 Nov 09:00–12:00 (3 h)",
            ),
        ] {
            assert_eq!(span(from, Until::End(to)), expected, "{from} to {to}");
        }
        let wrong = span("tomorrow 09:00", Until::End("today 12:00"));
        assert!(wrong.contains("does not come after the start"), "{wrong}");
    }

    #[test]
    fn a_day_is_a_day_of_the_calendar() {
        // The clocks go forward in Rome on 28 March 2027, so this day has 23 hours.
        let start = "2027-03-27T09:00[Europe/Rome]".parse().unwrap();
        let times = Times::fixed();
        let period = times.read_period("1d", &start).unwrap();
        assert_eq!(period.to_string(), "PT23H");
        assert_eq!(
            times.read_period("90m", &start).unwrap().to_string(),
            "PT1H30M"
        );
        assert!(counts_days("1d").unwrap() && counts_days("1w 2h").unwrap());
        assert!(!counts_days("26h").unwrap());
    }

    #[test]
    fn moments_in_the_server_s_words_are_put_into_the_zone() {
        let said = "it ends at 2026-11-17T13:00:00Z already; 2026-11-20 stays";
        assert_eq!(
            Times::fixed().localised(said),
            "it ends at Tue 17 Nov 14:00 (Europe/Rome) already; 2026-11-20 stays"
        );
    }

    #[test]
    fn the_zone_is_always_named() {
        assert_eq!(Times::fixed().footnote(), "Times are in Europe/Rome.\n");
        let fixed = TimeZone::fixed(jiff::tz::offset(3));
        let times = Times {
            now: Times::fixed().now.with_time_zone(fixed),
        };
        assert_eq!(times.zone_name(), "UTC+03:00");
    }
}
