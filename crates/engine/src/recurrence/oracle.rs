//! Compares series with the `rrule` crate, an independent implementation of the same RFC.
//!
//! The crate is a trusted oracle for the days of a rule, but not for clock changes: its issue 115, like 109 before
//! it, reports repeated and missing instances there. So zones with daylight saving are compared at hours that always
//! exist once; `tests.rs` checks the others by hand. The crate also reads `MO,-1FR` as the days that match both,
//! where the RFC means either. So no rule here mixes days with and without a position. It does not support `-5MO`
//! either.

use jiff::civil::Time;
use proptest::prelude::*;
use rrule::RRuleSet;

use super::*;

/// The pattern in the oracle's syntax. A last day becomes the last second of that day, since the oracle needs a
/// moment in UTC.
fn in_its_words(pattern: &Pattern) -> String {
    let zone = pattern.time_zone.rules();
    let end = match pattern.recurrence.end() {
        End::Day(last) => {
            let midnight = last.at(23, 59, 59, 0);
            End::Moment(zone.to_timestamp(midnight).unwrap())
        }
        end => end,
    };
    let rule = pattern.recurrence.ending(end).unwrap();
    let civil = |civil: DateTime| match pattern.time_zone.as_str() {
        "UTC" => format!(":{}", civil.strftime("%Y%m%dT%H%M%SZ")),
        zone => format!(";TZID={zone}:{}", civil.strftime("%Y%m%dT%H%M%S")),
    };
    let except = pattern.except.iter();
    let except: String = except.map(|id| format!("\nEXDATE{}", civil(*id))).collect();
    format!("DTSTART{}\nRRULE:{rule}{except}", civil(pattern.start))
}

/// The starts of a series up to the end of a day, at most one more than a series may have.
fn asked(text: &str, last: Date) -> Vec<Timestamp> {
    let set: RRuleSet = text
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let near = set
        .into_iter()
        .take_while(|found| found.date_naive().to_string() <= last.to_string());
    let moments = near.map(|found| Timestamp::from_second(found.timestamp()).unwrap());
    moments.take(usize::from(INSTANCES_MAX) + 1).collect()
}

const WEEKDAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

fn listed(part: &str, values: &[String]) -> String {
    match values {
        [] => String::new(),
        values => format!(";{part}={}", values.join(",")),
    }
}

prop_compose! {
    /// A rule without its end. Every kind is equally likely, and most rules are typical.
    fn rule()(
        frequency in prop::sample::select(vec!["DAILY", "WEEKLY", "MONTHLY"]),
        interval in prop_oneof![Just(1u16), 1u16..5, 1u16..40],
        by_day in prop::collection::vec((0usize..7, 1i8..=5, any::<bool>()), 0..4),
        with_place in any::<bool>(),
        by_month_day in prop_oneof![
            2 => Just(vec![]),
            1 => prop::collection::vec((1i8..=31, any::<bool>()), 1..5),
        ],
        week_start in prop::sample::select(WEEKDAYS.to_vec()),
    ) -> String {
        let signed = |number: i8, from_end: bool| if from_end { -number } else { number };
        let with_place = with_place && frequency == "MONTHLY";
        let day = |(day, place, from_end): (usize, i8, bool)| match with_place {
            true => format!("{}{}", signed(place, from_end && place < 5), WEEKDAYS[day]),
            false => WEEKDAYS[day].to_owned(),
        };
        let by_day: Vec<String> = by_day.into_iter().map(day).collect();
        let day = |(day, from_end)| signed(day, from_end).to_string();
        let mut by_month_day: Vec<String> = by_month_day.into_iter().map(day).collect();
        if frequency == "WEEKLY" {
            by_month_day.clear();
        }
        let (by_day, by_month_day) = (listed("BYDAY", &by_day), listed("BYMONTHDAY", &by_month_day));
        format!("FREQ={frequency};INTERVAL={interval}{by_month_day}{by_day};WKST={week_start}")
    }
}

fn end(day: Date) -> impl Strategy<Value = End> {
    let until = (0i64..1800, 0i64..86_400).prop_map(move |(days, seconds)| {
        let last = day.saturating_add(days.days());
        let midnight = TimeZone::UTC.to_timestamp(last.to_datetime(Time::midnight()));
        (last, midnight.unwrap() + SignedDuration::from_secs(seconds))
    });
    prop_oneof![
        3 => (1u16..30).prop_map(End::Count),
        1 => (1u16..=INSTANCES_MAX).prop_map(End::Count),
        2 => until.clone().prop_map(|(last, _)| End::Day(last)),
        2 => until.prop_map(|(_, moment)| End::Moment(moment)),
    ]
}

/// A pattern of this rule that starts on `day` or on the next day that the rule allows. None when the rule never
/// falls on a day, or ends before.
pub fn pattern(
    rule: &str,
    end: End,
    start: DateTime,
    length: SignedDuration,
    zone: &str,
) -> Option<Pattern> {
    let rule: Recurrence = format!("{rule};COUNT=1").parse().unwrap();
    let mut terms = Terms {
        start,
        length,
        time_zone: zone.parse().unwrap(),
        recurrence: rule.ending(end).unwrap(),
        except: [].into(),
    };
    match Pattern::new(terms.clone()) {
        Err(PatternError::OffRule { next, .. }) => {
            terms.start = next.to_datetime(start.time());
            Pattern::new(terms).ok()
        }
        other => other.ok(),
    }
}

/// Years in which all versions of the time zone database agree.
pub fn days() -> impl Strategy<Value = Date> {
    (0i64..3650).prop_map(|days| jiff::civil::date(2014, 1, 1).saturating_add(days.days()))
}

prop_compose! {
    /// Any time of day in zones whose clocks never change; in the others, an hour without clock changes.
    pub fn place()(
        changes in any::<bool>(),
        steady in prop::sample::select(vec!["UTC", "Asia/Tokyo", "Asia/Kolkata", "America/Phoenix"]),
        changing in prop::sample::select(vec![
            "Europe/Rome", "America/New_York", "Australia/Lord_Howe", "America/Santiago",
        ]),
        second in 0i32..86_400,
    ) -> (&'static str, Time) {
        let (zone, second) = if changes { (changing, 5 * 3600 + second / 2) } else { (steady, second) };
        let time = Time::midnight().saturating_add(i64::from(second).seconds());
        (zone, time)
    }
}

prop_compose! {
    pub fn a_series(place: BoxedStrategy<(&'static str, Time)>)(day in days())(
        rule in rule(),
        end in end(day),
        day in Just(day),
        (zone, time) in place.clone(),
        minutes in 1i64..3000,
        except in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) -> Option<Pattern> {
        let length = SignedDuration::from_mins(minutes);
        let mut pattern = pattern(&rule, end, day.to_datetime(time), length, zone)?;
        for index in except {
            // A series that is too long or has lost all its instances is used unchanged.
            let Ok(instances) = expand(&pattern) else { break };
            if !instances.is_empty() {
                pattern = super::except(&pattern, index.get(&instances).id).unwrap();
            }
        }
        Some(pattern)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn a_series_is_what_others_read_in_its_rule(series in a_series(place().boxed())) {
        let Some(pattern) = series else { return Ok(()) };
        let zone = pattern.time_zone.rules();
        let text = in_its_words(&pattern);
        let found = asked(&text, pattern.last_day());
        match expand(&pattern) {
            Ok(instances) => {
                let starts: Vec<_> = instances.iter().map(|one| one.span.start()).collect();
                prop_assert_eq!(starts, found, "{}", text);
                for one in instances {
                    prop_assert_eq!(zone.to_datetime(one.span.start()), one.id);
                }
            }
            Err(ExpandError::TooMany { last }) => {
                prop_assert_eq!(found.len(), usize::from(INSTANCES_MAX) + 1, "{}", text);
                prop_assert_eq!(zone.to_datetime(found[found.len() - 2]).date(), last);
            }
            Err(ExpandError::TooFar { asked, fit }) => {
                prop_assert_eq!(found.len(), usize::from(fit), "{}", text);
                prop_assert!(fit < asked);
            }
            Err(error) => prop_assert!(false, "{text}: {error}"),
        }
    }

    /// The start that a refusal names is the first that the oracle finds in the rule.
    #[test]
    fn the_start_that_is_offered_is_the_next(rule in rule(), day in days()) {
        let every = |part: &str| !part.starts_with("INTERVAL");
        let rule: Vec<&str> = rule.split(';').filter(|part| every(part)).collect();
        let terms = Terms {
            start: day.at(12, 0, 0, 0),
            length: SignedDuration::from_hours(1),
            time_zone: "UTC".parse().unwrap(),
            recurrence: format!("{};COUNT=1", rule.join(";")).parse().unwrap(),
            except: [].into(),
        };
        let offered = match Pattern::new(terms.clone()) {
            Ok(pattern) => pattern.start.date(),
            Err(PatternError::OffRule { next, .. }) => next,
            Err(PatternError::Never(_)) => return Ok(()),
            Err(error) => panic!("{error}"),
        };
        let text = format!("DTSTART:{}T120000Z\nRRULE:{}", day.strftime("%Y%m%d"), terms.recurrence);
        let found = TimeZone::UTC.to_datetime(asked(&text, day + 5.years())[0]).date();
        prop_assert_eq!(offered, found, "{}", text);
    }
}
