//! Converts a request into a pattern and its instances.

use std::collections::BTreeMap;

use berth_engine::recurrence::{Instance, expand};
use berth_model::person::TimeZone;
use berth_model::recurrence::{Pattern, PatternError, Terms};
use berth_model::{FieldErrors, Series};
use jiff::civil::Date;

use super::{NewSeries, SeriesChange};
use crate::error::Result;

/// The most claims that a series may make: one statement writes them, in one transaction for which others wait.
const CLAIMS_MAX: usize = 10_000;

/// The pattern of a new series, on the wall clock of its site, with its instances.
pub(super) fn read(new: &NewSeries, zone: &TimeZone) -> Result<(Pattern, Vec<Instance>)> {
    let (clock, span) = (zone.rules(), new.first.span);
    let (start, end) = (
        clock.to_datetime(span.start()),
        clock.to_datetime(span.end()),
    );
    let at_start = |day: &Date| day.to_datetime(start.time());
    let terms = Terms {
        start,
        length: end.duration_since(start),
        time_zone: zone.clone(),
        recurrence: new.rule.clone(),
        except: new.except.iter().map(at_start).collect(),
    };
    let pattern = Pattern::new(terms).map_err(|error| field_of(error, "start", "end"))?;
    let instances = expanded(&pattern, "rule")?;
    let wrong = |field: &str, message: String| Err(FieldErrors::one(field, message).into());
    let Some(first) = instances.first() else {
        return wrong("except", "nothing of the series would be left".into());
    };
    if first.id == start && first.span.start() != span.start() {
        let message = format!(
            "the clocks of the site show {} twice on that day; start the series on another",
            start.time()
        );
        return wrong("start", message);
    }
    let (many, each) = (instances.len(), new.first.items.len());
    if many * each > CLAIMS_MAX {
        let message = format!(
            "{many} instances with {each} resources each are more than one series takes; end it earlier, \
             or book fewer resources at once"
        );
        return wrong("resources", message);
    }
    Ok((pattern, instances))
}

/// The pattern after a change, with its instances by day.
pub(super) fn changed(
    pattern: &Pattern,
    change: &SeriesChange,
) -> Result<(Pattern, BTreeMap<Date, Instance>)> {
    let mut terms = Terms::clone(pattern);
    if let Some(time) = change.at {
        terms = terms.at_time(time);
    }
    terms.length = change.length.unwrap_or(terms.length);
    let pattern = Pattern::new(terms).map_err(|error| field_of(error, "at", "length"))?;
    let instances = expanded(&pattern, "length")?;
    let by_day = instances.into_iter().map(|one| (one.id.date(), one));
    Ok((pattern, by_day.collect()))
}

fn expanded(pattern: &Pattern, field: &str) -> Result<Vec<Instance>> {
    let instances = expand(pattern).map_err(|error| FieldErrors::one(field, error.to_string()))?;
    let meet = |pair: &&[Instance]| pair[0].span.overlaps(pair[1].span);
    if let Some(pair) = instances.windows(2).find(meet) {
        let message = format!(
            "the instances of {} and {} would overlap; make them shorter, or repeat them less often",
            pair[0].id.date(),
            pair[1].id.date()
        );
        return Err(FieldErrors::one(field, message).into());
    }
    Ok(instances)
}

/// The occurrences of the rule on days without an instance.
pub(super) fn missing(series: &Series, made: impl Fn(Date) -> bool) -> Vec<Instance> {
    // The pattern was expanded before it was stored, so this does not fail.
    let all = expand(&series.pattern).unwrap_or_default();
    all.into_iter().filter(|one| !made(one.id.date())).collect()
}

fn field_of(error: PatternError, start: &str, length: &str) -> FieldErrors {
    let field = match error {
        PatternError::Fraction | PatternError::Start(_) | PatternError::NoSuchDay { .. } => start,
        PatternError::Length => length,
        PatternError::OffRule { .. }
        | PatternError::Never(_)
        | PatternError::Ended { .. }
        | PatternError::TooFar { .. } => "rule",
        PatternError::Exception(_) => "except",
    };
    FieldErrors::one(field, error.to_string())
}
