//! Writes events for calendar programs.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::{line, zone};

/// A whole calendar, to which a program subscribes. The same events always give the same bytes.
#[derive(Debug, Clone)]
pub struct Calendar {
    /// The name that people see.
    pub name: String,
    /// A description of the whole calendar.
    pub note: Option<String>,
    pub events: Vec<Event>,
}

#[derive(Debug, Clone)]
pub struct Event {
    /// Constant during the life of the event.
    pub uid: String,
    /// Increases with each change.
    pub sequence: u64,
    pub changed_at: Timestamp,
    pub start: Timestamp,
    pub end: Timestamp,
    /// The zone's IANA name and rules: times are written on its clock.
    pub zone_name: String,
    pub zone: TimeZone,
    pub status: Status,
    pub summary: String,
    pub description: Option<String>,
    pub location: Option<String>,
    pub categories: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Confirmed,
    Tentative,
    Cancelled,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Status::Confirmed => "CONFIRMED",
            Status::Tentative => "TENTATIVE",
            Status::Cancelled => "CANCELLED",
        }
    }
}

/// How often a program may refresh the calendar.
const LOOK_AGAIN: &str = "PT15M";

impl Calendar {
    pub fn write(&self) -> String {
        let mut out = String::with_capacity(512 + self.events.len() * 512);
        for fixed in [
            "BEGIN:VCALENDAR",
            "VERSION:2.0",
            "PRODID:-//Berth//Berth//EN",
            "CALSCALE:GREGORIAN",
        ] {
            line::write(&mut out, fixed);
        }
        let name = line::escape(&self.name);
        line::write(&mut out, &format!("NAME:{name}"));
        line::write(&mut out, &format!("X-WR-CALNAME:{name}"));
        if let Some(note) = &self.note {
            let note = line::escape(note);
            line::write(&mut out, &format!("DESCRIPTION:{note}"));
            line::write(&mut out, &format!("X-WR-CALDESC:{note}"));
        }
        line::write(
            &mut out,
            &format!("REFRESH-INTERVAL;VALUE=DURATION:{LOOK_AGAIN}"),
        );
        line::write(&mut out, &format!("X-PUBLISHED-TTL:{LOOK_AGAIN}"));
        self.write_zones(&mut out);
        for event in &self.events {
            event.write(&mut out);
        }
        line::write(&mut out, "END:VCALENDAR");
        out
    }

    /// Writes each zone that some event needs, from its first event to its last.
    fn write_zones(&self, out: &mut String) {
        let mut needed: BTreeMap<&str, (&TimeZone, Timestamp, Timestamp)> = BTreeMap::new();
        for event in self.events.iter().filter(|event| event.is_local()) {
            needed
                .entry(&event.zone_name)
                .and_modify(|(_, from, to)| {
                    *from = event.start.min(*from);
                    *to = event.end.max(*to);
                })
                .or_insert((&event.zone, event.start, event.end));
        }
        for (name, (rules, from, to)) in needed {
            zone::write(out, name, rules, from, to);
        }
    }
}

impl Event {
    /// Whether the zone's own clock can express both times. In the repeated hour it can express only the first one,
    /// so an event that touches the second is written in UTC.
    fn is_local(&self) -> bool {
        let reads_back = |at: Timestamp| {
            let wall = self.zone.to_datetime(at);
            let read = self.zone.to_timestamp(wall);
            read.is_ok_and(|read| read == at)
        };
        self.zone != TimeZone::UTC && self.times().into_iter().all(reads_back)
    }

    /// Start and end in whole seconds, the precision of the format; never shorter than the event.
    fn times(&self) -> [Timestamp; 2] {
        let whole = |at: Timestamp| Timestamp::from_second(at.as_second()).unwrap_or(at);
        let start = whole(self.start);
        let end = whole(self.end);
        let up = if end < self.end || end <= start { 1 } else { 0 };
        let end = end
            .checked_add(SignedDuration::from_secs(up))
            .unwrap_or(end);
        [start, end]
    }

    fn write(&self, out: &mut String) {
        line::write(out, "BEGIN:VEVENT");
        line::write(out, &format!("UID:{}", line::escape(&self.uid)));
        line::write(out, &format!("DTSTAMP:{}", utc(self.changed_at)));
        line::write(out, &format!("LAST-MODIFIED:{}", utc(self.changed_at)));
        line::write(out, &format!("SEQUENCE:{}", self.sequence));
        let is_local = self.is_local();
        for (property, at) in ["DTSTART", "DTEND"].into_iter().zip(self.times()) {
            let line = if is_local {
                let wall = self.zone.to_datetime(at).strftime("%Y%m%dT%H%M%S");
                format!("{property};TZID={}:{wall}", self.zone_name)
            } else {
                format!("{property}:{}", utc(at))
            };
            line::write(out, &line);
        }
        line::write(out, &format!("SUMMARY:{}", line::escape(&self.summary)));
        if let Some(description) = &self.description {
            line::write(out, &format!("DESCRIPTION:{}", line::escape(description)));
        }
        if let Some(location) = &self.location {
            line::write(out, &format!("LOCATION:{}", line::escape(location)));
        }
        if !self.categories.is_empty() {
            let each: Vec<String> = self
                .categories
                .iter()
                .map(|one| line::escape(one))
                .collect();
            line::write(out, &format!("CATEGORIES:{}", each.join(",")));
        }
        line::write(out, &format!("STATUS:{}", self.status.word()));
        let takes_time = match self.status {
            Status::Confirmed | Status::Tentative => "OPAQUE",
            Status::Cancelled => "TRANSPARENT",
        };
        line::write(out, &format!("TRANSP:{takes_time}"));
        line::write(out, "END:VEVENT");
    }
}

fn utc(at: Timestamp) -> String {
    at.strftime("%Y%m%dT%H%M%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(start: &str, end: &str, zone: &str) -> Event {
        Event {
            uid: "rsv_1@berth.example".into(),
            sequence: 3,
            changed_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            start: start.parse().unwrap(),
            end: end.parse().unwrap(),
            zone_name: zone.into(),
            zone: TimeZone::get(zone).unwrap(),
            status: Status::Confirmed,
            summary: "fine tuning".into(),
            description: None,
            location: Some("gpu-01, gpu-02".into()),
            categories: vec!["server".into(), "a, b".into()],
        }
    }

    fn written(events: Vec<Event>) -> String {
        let calendar = Calendar {
            name: "Torino; all".into(),
            note: None,
            events,
        };
        calendar.write()
    }

    #[test]
    fn an_event_in_its_own_zone() {
        let text = written(vec![event(
            "2026-03-29T00:30:00Z",
            "2026-03-29T02:30:00Z",
            "Europe/Rome",
        )]);
        for line in [
            "X-WR-CALNAME:Torino\\; all",
            "DTSTART;TZID=Europe/Rome:20260329T013000",
            "DTEND;TZID=Europe/Rome:20260329T043000",
            "LOCATION:gpu-01\\, gpu-02",
            "CATEGORIES:server,a\\, b",
            "SEQUENCE:3",
            "STATUS:CONFIRMED",
            "TZID:Europe/Rome",
        ] {
            assert!(text.contains(&format!("\r\n{line}\r\n")), "{line}\n{text}");
        }
    }

    #[test]
    fn the_hour_that_happens_twice_is_written_so_that_it_cannot_be_mistaken() {
        // 00:30 UTC is the first 02:30 of that night, 01:30 UTC the second.
        let first = written(vec![event(
            "2026-10-25T00:30:00Z",
            "2026-10-25T03:00:00Z",
            "Europe/Rome",
        )]);
        assert!(
            first.contains("DTSTART;TZID=Europe/Rome:20261025T023000"),
            "{first}"
        );
        let second = written(vec![event(
            "2026-10-25T01:30:00Z",
            "2026-10-25T03:00:00Z",
            "Europe/Rome",
        )]);
        assert!(second.contains("DTSTART:20261025T013000Z"), "{second}");
        assert!(second.contains("DTEND:20261025T030000Z"), "{second}");
        assert!(!second.contains("VTIMEZONE"), "nothing needs it: {second}");
    }

    #[test]
    fn utc_needs_no_zone_and_parts_of_seconds_are_rounded_outwards() {
        let text = written(vec![event(
            "2026-10-25T01:30:00.9Z",
            "2026-10-25T01:30:00.95Z",
            "UTC",
        )]);
        assert!(
            text.contains("DTSTART:20261025T013000Z\r\nDTEND:20261025T013001Z"),
            "{text}"
        );
        assert!(!text.contains("VTIMEZONE"));
    }

    proptest! {
        #[test]
        fn any_title_survives_writing_and_reading(
            title in "[^\\p{Cc}]{1,500}",
            start in 1_750_000_000_i64..1_850_000_000,
            length in 1_i64..1_000_000,
        ) {
            let title = title.trim();
            prop_assume!(!title.is_empty());
            let at = |second| Timestamp::from_second(second).unwrap();
            let mut written = event("2026-10-25T01:30:00Z", "2026-10-25T03:00:00Z", "Europe/Rome");
            written.summary = title.to_owned();
            (written.start, written.end) = (at(start), at(start + length));
            let text = self::written(vec![written]);
            let window = at(1_700_000_000)..at(1_900_000_000);
            let read = crate::read(text.as_bytes(), &TimeZone::UTC, window).unwrap();
            prop_assert_eq!(read.spans.len(), 1);
            prop_assert_eq!(&read.spans[0].title, title);
            prop_assert_eq!(read.spans[0].start, at(start));
            prop_assert_eq!(read.spans[0].end, at(start + length));
        }
    }
}
