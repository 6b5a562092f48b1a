//! Computes the instances of a series, splits a series in two, and removes an instance from a series.
//!
//! The *recurrence id* names an instance: its start on the wall clock, as the rule gives it. The id stays valid
//! through clock changes, and RFC 5545 uses the same term.
//!
//! # On days when the clocks change
//!
//! - **The start** keeps its time on the wall clock. If the clocks skip that time, it is read with the offset from
//!   before the gap (02:30 becomes 03:30). If they show it twice, the first one counts: RFC 5545, 3.3.5. In 3.3.10
//!   the RFC says both this and that such an instance is ignored; a machine promised for every night is better an
//!   hour late than not at all. If a zone skips a whole day, its instance is ignored, like 30 February: a moved
//!   instance would overlap the one of the next day.
//! - **The end** keeps its time on the wall clock too. 09:00 to 17:00 means those hours on every day. A night shift
//!   from 20:00 to 08:00 hands over to the day shift at 08:00, whether the night has 11 hours or 13. The RFC gives an
//!   event in a diary an exact length. With exact lengths the two shifts would overlap once a year, and one of them
//!   would be refused. If the clocks skip the end, it becomes the moment of the skip: a later end could reach into an
//!   instance that starts when the clocks go on.
//! - If the start was moved to its end or beyond (02:00 to 03:00 in the skipped hour), the instance keeps its length
//!   instead, since an instance cannot be empty.
//!
//! This module must not decide whether an instance can be booked.

use berth_model::Span;
use berth_model::recurrence::{
    End, INSTANCES_MAX, Pattern, PatternError, Recurrence, RecurrenceError, Terms, has_day,
};
use berth_model::span::SpanError;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

/// One instance of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// The start on the wall clock as the rule gives it, even if the clocks skip it.
    pub id: DateTime,
    pub span: Span,
}

/// The rule reaches beyond the limits of a series. The error names an end that would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    #[error(
        "the rule makes more than {INSTANCES_MAX} instances: end it with `COUNT={INSTANCES_MAX}` or `UNTIL={}`",
        .last.strftime("%Y%m%d")
    )]
    TooMany { last: Date },
    #[error(
        "only {fit} of the {asked} instances start within five years: end the rule with `COUNT={fit}`"
    )]
    TooFar { asked: u16, fit: u16 },
    #[error(transparent)]
    Span(#[from] SpanError),
}

/// The instances of a series, in order.
pub fn expand(pattern: &Pattern) -> Result<Vec<Instance>, ExpandError> {
    let zone = pattern.time_zone.rules();
    let mut ids = starts(pattern, &zone)?;
    ids.retain(|id| !pattern.except.contains(id));
    let instances = ids.into_iter().map(|id| {
        let span = span_of(&zone, id, pattern.length)?;
        Ok(Instance { id, span })
    });
    instances.collect()
}

/// Every start that the rule gives, the removed ones included: a count includes them.
///
/// No rule reaches further than five years, so this checks every day in that range. Those are about two thousand
/// cheap checks, and no error-prone arithmetic of weeks and months.
fn starts(pattern: &Pattern, zone: &TimeZone) -> Result<Vec<DateTime>, ExpandError> {
    let (rule, first) = (&pattern.recurrence, pattern.start.date());
    let most = match rule.end() {
        End::Count(count) => count,
        End::Day(_) | End::Moment(_) => INSTANCES_MAX,
    };
    let days = first.series(1.day());
    let mut ids: Vec<DateTime> = Vec::new();
    for day in days.take_while(|day| *day <= pattern.last_day()) {
        if !rule.falls_on(first, day) || !has_day(zone, day) {
            continue;
        }
        let id = day.to_datetime(pattern.start.time());
        if !rule.end().admits(id, start_of(zone, id)) {
            return Ok(ids);
        }
        if ids.len() == usize::from(most) {
            let last = ids.last().map_or(first, |id| id.date());
            return match rule.end() {
                End::Count(_) => Ok(ids),
                End::Day(_) | End::Moment(_) => Err(ExpandError::TooMany { last }),
            };
        }
        ids.push(id);
    }
    match rule.end() {
        End::Count(asked) if ids.len() < usize::from(asked) => Err(ExpandError::TooFar {
            asked,
            fit: u16::try_from(ids.len()).unwrap_or(asked),
        }),
        _ => Ok(ids),
    }
}

/// The moment of a start. Beyond the calendar's end it is that end, which no span accepts.
fn start_of(zone: &TimeZone, civil: DateTime) -> Timestamp {
    zone.to_timestamp(civil).unwrap_or(Timestamp::MAX)
}

/// The moment of an end: computed like a start's, but in a skipped time it is the moment of the skip.
fn end_of(zone: &TimeZone, civil: DateTime) -> Timestamp {
    let moment = start_of(zone, civil);
    match zone.to_ambiguous_timestamp(civil).offset() {
        // With the offset from after the gap, a skipped time lies before the gap, so the gap comes next.
        AmbiguousOffset::Gap { after, .. } => after
            .to_timestamp(civil)
            .ok()
            .and_then(|before| zone.following(before).next())
            .map_or(moment, |gap| gap.timestamp().min(moment)),
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => moment,
    }
}

fn span_of(zone: &TimeZone, id: DateTime, length: SignedDuration) -> Result<Span, SpanError> {
    let start = start_of(zone, id);
    let end = end_of(zone, id.saturating_add(length));
    let end = if start < end {
        end
    } else {
        start.saturating_add(length).unwrap_or(Timestamp::MAX)
    };
    Span::new(start, end)
}

/// The two halves of a series, for a change of "this and the following".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halves {
    /// The instances before the cut; none when the series is cut at its first instance.
    pub before: Option<Pattern>,
    /// The instances from the cut on, with the same days. The caller then changes its terms.
    pub rest: Pattern,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("the series has no instance that starts at {0}: name one of those in its preview")]
    NoInstance(DateTime),
    #[error(transparent)]
    Expand(#[from] ExpandError),
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error(transparent)]
    Recurrence(#[from] RecurrenceError),
}

/// Cuts a series before the instance `at`. Together the halves have exactly the instances of the whole.
///
/// The rule keeps its kind of end. A count is divided between the halves. An `UNTIL` stays with the rest, and the
/// first half ends at its own last start.
pub fn split(pattern: &Pattern, at: DateTime) -> Result<Halves, EditError> {
    let zone = pattern.time_zone.rules();
    let ids = starts(pattern, &zone)?;
    let place = place_of(pattern, &ids, at)?;
    let (gone, left) = (&ids[..place], &ids[place..]);
    let counted = |ids: &[DateTime]| End::Count(u16::try_from(ids.len()).unwrap_or(INSTANCES_MAX));

    let half = |start, recurrence: Recurrence, is_kept: &dyn Fn(&DateTime) -> bool| {
        let except = pattern.except.iter().copied().filter(is_kept).collect();
        Pattern::new(Terms {
            start,
            recurrence,
            except,
            ..Terms::clone(pattern)
        })
    };
    let rule = &pattern.recurrence;
    let is_empty = gone.iter().all(|id| pattern.except.contains(id));
    let before = match gone.last() {
        Some(last) if !is_empty => {
            let end = match rule.end() {
                End::Count(_) => counted(gone),
                End::Day(_) => End::Day(last.date()),
                End::Moment(_) => End::Moment(start_of(&zone, *last)),
            };
            Some(half(pattern.start, rule.ending(end)?, &|id| *id < at)?)
        }
        _ => None,
    };
    let end = match rule.end() {
        End::Count(_) => counted(left),
        until => until,
    };
    let rest = half(at, rule.ending(end)?, &|id| *id >= at)?;
    Ok(Halves { before, rest })
}

/// The series without the instance `id`. The others keep their ids, and a count still includes the removed instance.
pub fn except(pattern: &Pattern, id: DateTime) -> Result<Pattern, EditError> {
    let ids = starts(pattern, &pattern.time_zone.rules())?;
    place_of(pattern, &ids, id)?;
    let mut terms = Terms::clone(pattern);
    terms.except.insert(id);
    Ok(Pattern::new(terms)?)
}

/// The index of an instance in the rule's starts. The series must really have this instance.
fn place_of(pattern: &Pattern, ids: &[DateTime], id: DateTime) -> Result<usize, EditError> {
    ids.binary_search(&id)
        .ok()
        .filter(|_| !pattern.except.contains(&id))
        .ok_or(EditError::NoInstance(id))
}

/// The instances of a series, for people to check before they book it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    pub lines: Vec<Line>,
    /// The removed starts.
    pub left_out: Vec<DateTime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub instance: Instance,
    /// The wall clock at the start and at the end.
    pub from: DateTime,
    pub to: DateTime,
    /// The effect of a clock change.
    pub remark: Option<Remark>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remark {
    /// The clocks skip its start.
    Moved {
        to: DateTime,
    },
    Shorter {
        by: SignedDuration,
    },
    Longer {
        by: SignedDuration,
    },
}

impl std::fmt::Display for Remark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Remark::Moved { to } => {
                write!(f, "starts at {}, because the clocks go forward", to.time())
            }
            Remark::Shorter { by } => write!(f, "{by:#} shorter, because the clocks go forward"),
            Remark::Longer { by } => write!(f, "{by:#} longer, because the clocks go back"),
        }
    }
}

/// The instances as the wall clock will show them, with a remark about each unusual one.
pub fn preview(pattern: &Pattern) -> Result<Preview, ExpandError> {
    let zone = pattern.time_zone.rules();
    let line = |instance: Instance| {
        let from = zone.to_datetime(instance.span.start());
        let longer = instance.span.duration() - pattern.length;
        let remark = if from != instance.id {
            Some(Remark::Moved { to: from })
        } else if longer.is_positive() {
            Some(Remark::Longer { by: longer })
        } else if longer.is_negative() {
            Some(Remark::Shorter { by: longer.abs() })
        } else {
            None
        };
        Line {
            instance,
            from,
            to: zone.to_datetime(instance.span.end()),
            remark,
        }
    };
    let mut left_out = starts(pattern, &zone)?;
    left_out.retain(|id| pattern.except.contains(id));
    Ok(Preview {
        left_out,
        lines: expand(pattern)?.into_iter().map(line).collect(),
    })
}
