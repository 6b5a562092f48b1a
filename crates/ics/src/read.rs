//! Reads calendars from other programs for the times that they mark.
//!
//! Only the time, the recurrence and the name of an event matter here. A day is a day in the caller's zone. The
//! reader skips an event that it does not support, with a note for the person who brought the calendar in. It refuses
//! a file that is no calendar, or that would take too much work.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

use crate::line::{self, Line};
use crate::recur::Rule;

/// The most times that one calendar may mark.
pub const SPANS_MAX: usize = 2000;
const EVENTS_MAX: usize = 20_000;
/// The most days that are checked for all recurring events together.
const DAYS_MAX: u32 = 2_000_000;
const DEPTH_MAX: usize = 16;
const NOTES_MAX: usize = 20;
/// Longer titles are truncated to this length.
const TITLE_MAX_CHARS: usize = 500;
/// The most exceptions and further dates of one event.
const DATES_MAX: usize = 5000;

/// A marked time and its title.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedSpan {
    pub start: Timestamp,
    pub end: Timestamp,
    pub title: String,
}

/// The marked times in a range of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Ordered by start, without duplicates.
    pub spans: Vec<NamedSpan>,
    /// The parts that the reader does not support, in sentences.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("this is no iCalendar file: it does not begin with BEGIN:VCALENDAR")]
    NotACalendar,
    #[error("line {line}: {what}")]
    Broken { line: usize, what: &'static str },
    #[error("it ends before its END:VCALENDAR; the file may be cut off")]
    CutOff,
    #[error("it has more than {EVENTS_MAX} events")]
    TooManyEvents,
    #[error("it marks more than {SPANS_MAX} times in the next two years")]
    TooManySpans,
    #[error("its rules of recurrence go too far back; begin them later")]
    TooMuchWork,
}

/// The times marked by a calendar that overlap `window`. Days, and times without a zone, are in `zone`.
pub fn read(file: &[u8], zone: &TimeZone, window: Range<Timestamp>) -> Result<Reading, ReadError> {
    let file = File::parse(file)?;
    let mut work = Work {
        zone,
        zones: &file.zones,
        window,
        days_left: DAYS_MAX,
        spans: BTreeSet::new(),
        notes: Vec::new(),
    };
    // A moved or cancelled instance replaces the instance of the rule.
    let mut moved: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for event in &file.events {
        if let (Some(uid), Some(instance)) = (&event.uid, &event.instance) {
            moved.entry(uid).or_default().push(instance);
        }
    }
    for event in file.events.iter().filter(|event| !event.is_cancelled) {
        let none = Vec::new();
        let moved = match (&event.uid, &event.instance) {
            (Some(uid), None) => moved.get(uid.as_str()).unwrap_or(&none),
            _ => &none,
        };
        work.add(event, moved)?;
    }
    Ok(Reading {
        spans: work.spans.into_iter().collect(),
        notes: work.notes,
    })
}

/// The parsed parts of a file, before any computation.
#[derive(Debug, Default)]
struct File {
    events: Vec<RawEvent>,
    /// The IANA zones behind the file's own zone names.
    zones: BTreeMap<String, TimeZone>,
}

#[derive(Debug, Default)]
struct RawEvent {
    uid: Option<String>,
    title: String,
    start: Option<Line>,
    end: Option<Line>,
    duration: Option<String>,
    rule: Option<String>,
    except: Vec<Line>,
    also: Vec<Line>,
    instance: Option<Line>,
    is_cancelled: bool,
}

impl File {
    fn parse(bytes: &[u8]) -> Result<Self, ReadError> {
        let mut file = File::default();
        let mut open: Vec<String> = Vec::new();
        let mut zone: (Option<String>, Option<String>) = (None, None);
        let mut is_calendar = false;
        for line in line::lines(bytes) {
            let number = line.number;
            match line.name.as_str() {
                "BEGIN" => {
                    let component = line.value.trim().to_ascii_uppercase();
                    if open.is_empty() && component != "VCALENDAR" {
                        return Err(ReadError::NotACalendar);
                    }
                    is_calendar = true;
                    if open.len() == DEPTH_MAX {
                        let what = "too many parts stand inside each other";
                        return Err(ReadError::Broken { line: number, what });
                    }
                    match (component.as_str(), open.len()) {
                        ("VEVENT", 1) if file.events.len() == EVENTS_MAX => {
                            return Err(ReadError::TooManyEvents);
                        }
                        ("VEVENT", 1) => file.events.push(RawEvent::default()),
                        ("VTIMEZONE", 1) => zone = (None, None),
                        _ => {}
                    }
                    open.push(component);
                }
                "END" => {
                    let component = line.value.trim().to_ascii_uppercase();
                    if open.pop() != Some(component) {
                        let what = "this END does not belong to the BEGIN before it";
                        return Err(ReadError::Broken { line: number, what });
                    }
                }
                _ => match open.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                    [] => return Err(ReadError::NotACalendar),
                    ["VCALENDAR", "VEVENT"] => {
                        if let Some(event) = file.events.last_mut() {
                            event.take(line);
                        }
                    }
                    ["VCALENDAR", "VTIMEZONE"] => {
                        match line.name.as_str() {
                            "TZID" => zone.0 = Some(line.value),
                            "X-LIC-LOCATION" => zone.1 = Some(line.value),
                            _ => {}
                        }
                        if let (Some(id), Some(name)) = &zone
                            && let Some(rules) = known_zone(name)
                        {
                            file.zones.insert(id.clone(), rules);
                        }
                    }
                    _ => {}
                },
            }
        }
        match (is_calendar, open.is_empty()) {
            (false, _) => Err(ReadError::NotACalendar),
            (true, false) => Err(ReadError::CutOff),
            (true, true) => Ok(file),
        }
    }
}

impl RawEvent {
    fn take(&mut self, line: Line) {
        match line.name.as_str() {
            "UID" => self.uid = Some(line.value),
            "SUMMARY" => self.title = title(&line.value),
            "DTSTART" => self.start = Some(line),
            "DTEND" => self.end = Some(line),
            "DURATION" => self.duration = Some(line.value),
            "RRULE" => self.rule = Some(line.value),
            "EXDATE" => self.except.push(line),
            "RDATE" => self.also.push(line),
            "RECURRENCE-ID" => self.instance = Some(line),
            "STATUS" => self.is_cancelled = line.value.trim().eq_ignore_ascii_case("CANCELLED"),
            _ => {}
        }
    }
}

/// A title on one line, without control characters.
fn title(value: &str) -> String {
    let text = line::unescape(value).replace(['\n', '\t'], " ");
    let shown = text.trim().chars().filter(|letter| !letter.is_control());
    let cut: String = shown.take(TITLE_MAX_CHARS).collect();
    cut.trim().to_owned()
}

/// When something is, as the file gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum When {
    Day(Date),
    Moment(DateTime, TimeZone),
}

impl When {
    fn day(&self) -> Date {
        match self {
            When::Day(day) => *day,
            When::Moment(wall, _) => wall.date(),
        }
    }

    fn timestamp(&self, days_in: &TimeZone) -> Option<Timestamp> {
        match self {
            When::Day(day) => days_in.to_timestamp(day.at(0, 0, 0, 0)).ok(),
            When::Moment(wall, zone) => zone.to_timestamp(*wall).ok(),
        }
    }

    /// The same time of day on another day.
    fn on(&self, day: Date) -> Self {
        match self {
            When::Day(_) => When::Day(day),
            When::Moment(wall, zone) => When::Moment(day.to_datetime(wall.time()), zone.clone()),
        }
    }
}

/// The length of each instance of an event.
#[derive(Debug, Clone, Copy)]
enum Length {
    Days(i32),
    Exactly(SignedDuration),
}

struct Work<'a> {
    zone: &'a TimeZone,
    zones: &'a BTreeMap<String, TimeZone>,
    window: Range<Timestamp>,
    days_left: u32,
    spans: BTreeSet<NamedSpan>,
    notes: Vec<String>,
}

impl Work<'_> {
    fn add(&mut self, event: &RawEvent, moved: &[&Line]) -> Result<(), ReadError> {
        let Some(start) = event
            .start
            .as_ref()
            .and_then(|line| self.when(line, &line.value))
        else {
            self.note(event, "says no start that could be read, and is left out");
            return Ok(());
        };
        let Some(length) = self.length(event, &start) else {
            self.note(event, "ends before it starts, and is left out");
            return Ok(());
        };
        let mut except = BTreeSet::new();
        for line in event.except.iter().chain(moved.iter().copied()) {
            except.extend(self.dates(line).map(|when| when.timestamp(self.zone)));
        }
        let rule = event.rule.as_deref().map(Rule::parse);
        match rule {
            None => self.mark(event, &start, length, &except)?,
            Some(Ok(rule)) => self.recur(event, &rule, &start, length, &except)?,
            Some(Err(_)) => {
                self.note(
                    event,
                    "recurs by a rule that is not understood; only its first time counts",
                );
                self.mark(event, &start, length, &except)?;
            }
        }
        for line in &event.also {
            for when in self.dates(line).collect::<Vec<_>>() {
                self.mark(event, &when, length, &except)?;
            }
        }
        Ok(())
    }

    fn recur(
        &mut self,
        event: &RawEvent,
        rule: &Rule,
        start: &When,
        length: Length,
        except: &BTreeSet<Option<Timestamp>>,
    ) -> Result<(), ReadError> {
        let first = start.day();
        let until = rule
            .until
            .as_deref()
            .and_then(|until| self.until(until, start));
        if rule.until.is_some() && until.is_none() {
            self.note(
                event,
                "recurs until a time that could not be read; only its first time counts",
            );
            return self.mark(event, start, length, except);
        }
        let mut left = rule.count.unwrap_or(u32::MAX);
        // Without a count the days before the window do not matter, so the search skips the years since 1970.
        let begin = match rule.count {
            Some(_) => first,
            None => first.max(self.days_before_window(length)),
        };
        let mut day = begin;
        while left > 0 {
            self.days_left = self
                .days_left
                .checked_sub(1)
                .ok_or(ReadError::TooMuchWork)?;
            if rule.falls_on(first, day) {
                let instance = start.on(day);
                let Some(at) = instance.timestamp(self.zone) else {
                    break;
                };
                if at >= self.window.end || until.is_some_and(|until| at > until) {
                    break;
                }
                self.mark(event, &instance, length, except)?;
                left -= 1;
            } else if self.is_past_window(day) {
                break;
            }
            match day.tomorrow() {
                Ok(next) => day = next,
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// The first day on which an instance could begin and still reach into the window.
    fn days_before_window(&self, length: Length) -> Date {
        let reach = match length {
            Length::Days(days) => i64::from(days),
            Length::Exactly(exact) => exact.as_hours() / 24,
        };
        let day = self.zone.to_datetime(self.window.start).date();
        // Two days more, since the date may differ between zones.
        day.checked_sub(Span::new().days(reach.saturating_add(2).min(100_000)))
            .unwrap_or(Date::MIN)
    }

    fn is_past_window(&self, day: Date) -> bool {
        let end = self.zone.to_datetime(self.window.end).date();
        end.checked_add(Span::new().days(2))
            .is_ok_and(|end| day > end)
    }

    /// Adds one time, if it is in the window and no exception.
    fn mark(
        &mut self,
        event: &RawEvent,
        when: &When,
        length: Length,
        except: &BTreeSet<Option<Timestamp>>,
    ) -> Result<(), ReadError> {
        let start = when.timestamp(self.zone);
        let end = match (when, length) {
            (When::Day(day), Length::Days(days)) => day
                .checked_add(Span::new().days(days))
                .ok()
                .and_then(|day| When::Day(day).timestamp(self.zone)),
            (_, Length::Days(days)) => start.and_then(|at| {
                at.checked_add(SignedDuration::from_hours(24 * i64::from(days)))
                    .ok()
            }),
            (_, Length::Exactly(exact)) => start.and_then(|at| at.checked_add(exact).ok()),
        };
        let (Some(start), Some(end)) = (start, end) else {
            return Ok(());
        };
        let is_seen = start < end && start < self.window.end && end > self.window.start;
        if !is_seen || except.contains(&Some(start)) {
            return Ok(());
        }
        self.spans.insert(NamedSpan {
            start,
            end,
            title: event.title.clone(),
        });
        if self.spans.len() > SPANS_MAX {
            return Err(ReadError::TooManySpans);
        }
        Ok(())
    }

    /// None if the event ends before it starts. An event without an end lasts its day, or no time at all.
    fn length(&self, event: &RawEvent, start: &When) -> Option<Length> {
        if let Some(line) = &event.end {
            let end = self.when(line, &line.value)?;
            return match (start, &end) {
                (When::Day(start), When::Day(end)) => {
                    let days = (*end - *start).get_days();
                    // Some programs write the same day twice and mean the whole day.
                    (days >= 0).then_some(Length::Days(days.max(1)))
                }
                _ => {
                    let exact = end
                        .timestamp(self.zone)?
                        .duration_since(start.timestamp(self.zone)?);
                    (!exact.is_negative()).then_some(Length::Exactly(exact))
                }
            };
        }
        match (&event.duration, start) {
            (Some(text), _) => duration(text, start),
            (None, When::Day(_)) => Some(Length::Days(1)),
            (None, When::Moment(..)) => Some(Length::Exactly(SignedDuration::ZERO)),
        }
    }

    /// The last moment at which an instance may begin.
    fn until(&self, text: &str, start: &When) -> Option<Timestamp> {
        let zone = match start {
            When::Day(_) => self.zone,
            When::Moment(_, zone) => zone,
        };
        match moment(text, zone)? {
            // The whole day, for any hour.
            When::Day(day) => zone.to_timestamp(day.at(23, 59, 59, 0)).ok(),
            // For whole days only the date counts; programs write it as midnight in UTC.
            When::Moment(wall, _) if matches!(start, When::Day(_)) => {
                self.zone.to_timestamp(wall.date().at(23, 59, 59, 0)).ok()
            }
            When::Moment(wall, zone) => zone.to_timestamp(wall).ok(),
        }
    }

    /// The times of a list such as an `EXDATE`.
    fn dates<'l>(&'l self, line: &'l Line) -> impl Iterator<Item = When> + 'l {
        line.value
            .split(',')
            .take(DATES_MAX)
            // Only the start of a period matters.
            .map(|value| value.split('/').next().unwrap_or(value))
            .filter_map(|value| self.when(line, value))
    }

    fn when(&self, line: &Line, value: &str) -> Option<When> {
        let zone = match line.parameter("TZID") {
            None => self.zone.clone(),
            Some(name) => self.zone_named(name),
        };
        moment(value, &zone)
    }

    /// A zone by its IANA name, or by its definition in the file; otherwise the caller's zone.
    fn zone_named(&self, name: &str) -> TimeZone {
        known_zone(name)
            .or_else(|| self.zones.get(name).cloned())
            .unwrap_or_else(|| self.zone.clone())
    }

    fn note(&mut self, event: &RawEvent, what: &str) {
        if self.notes.len() < NOTES_MAX {
            let title: String = event.title.chars().take(80).collect();
            self.notes.push(format!("“{title}” {what}."));
        }
    }
}

/// A leading slash marks a globally unique zone name.
fn known_zone(name: &str) -> Option<TimeZone> {
    let name = name.trim().trim_start_matches('/');
    if name.len() > 64 {
        return None;
    }
    TimeZone::get(name).ok()
}

/// Parses `20261225`, `20261225T090000` or `20261225T090000Z`.
fn moment(text: &str, zone: &TimeZone) -> Option<When> {
    let text = text.trim();
    let (text, zone) = match text.strip_suffix(['Z', 'z']) {
        Some(text) => (text, TimeZone::UTC),
        None => (text, zone.clone()),
    };
    if !text.is_ascii() {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i16> {
        let digits = text.get(from..to)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok())?
    };
    let small = |from: usize| -> Option<i8> { i8::try_from(number(from, from + 2)?).ok() };
    let day = Date::new(number(0, 4)?, small(4)?, small(6)?).ok()?;
    match text.len() {
        8 => Some(When::Day(day)),
        15 if text.as_bytes()[8].eq_ignore_ascii_case(&b'T') => {
            // A leap second counts as the second before it.
            let second = small(13)?.min(59);
            let wall = DateTime::new(
                day.year(),
                day.month(),
                day.day(),
                small(9)?,
                small(11)?,
                second,
                0,
            );
            Some(When::Moment(wall.ok()?, zone))
        }
        _ => None,
    }
}

/// Parses `P1D`, `PT2H30M` or `P1W`; none for a negative duration.
fn duration(text: &str, start: &When) -> Option<Length> {
    let span: Span = text.trim().to_ascii_uppercase().parse().ok()?;
    if span.is_negative() || span.get_months() != 0 || span.get_years() != 0 {
        return None;
    }
    let days = span
        .get_weeks()
        .checked_mul(7)?
        .checked_add(span.get_days())?;
    let clock = span.weeks(0).days(0);
    if matches!(start, When::Day(_)) {
        return Some(Length::Days(days.max(1)));
    }
    let exact: SignedDuration = clock.try_into().ok()?;
    let days = SignedDuration::from_hours(24 * i64::from(days));
    Some(Length::Exactly(days.checked_add(exact)?))
}

#[cfg(test)]
mod tests;
