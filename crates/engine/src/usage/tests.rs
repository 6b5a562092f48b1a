use std::collections::BTreeMap;

use berth_model::{Amount, Span};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;

const KINDS: usize = 3;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn span(from: &str, to: &str) -> Span {
    Span::new(at(from), at(to)).unwrap()
}

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn part(parent: Option<usize>, kind: usize) -> Part {
    Part {
        parent,
        kind,
        capacity: None,
        out: Vec::new(),
    }
}

fn total(usage: &Measured) -> (f64, f64) {
    let hours = |seconds: f64| (seconds / 36.0).round() / 100.0;
    (
        hours(usage.used_total_s()),
        hours(usage.available_total_s()),
    )
}

/// A server with two GPUs, and a pool of 64 cores.
fn lab() -> Vec<Part> {
    let pool = Part {
        capacity: Amount::new(64).ok(),
        ..part(None, 2)
    };
    vec![part(None, 0), part(Some(0), 1), part(Some(0), 1), pool]
}

fn a_day(parts: Vec<Part>, counted: Counted) -> Ledger {
    let day = span("2026-11-16T00:00:00Z", "2026-11-17T00:00:00Z");
    Ledger::new(day, TimeZone::UTC, parts, KINDS, counted)
}

/// Adds a claim, and returns the seconds that it added to the overall figure.
fn added(ledger: &mut Ledger, number: usize, taken: Span, amount: Option<Amount>) -> f64 {
    let mut sum = 0.0;
    ledger.add(number, taken, amount, |span, times| {
        sum += times * span.duration().as_secs_f64();
    });
    sum
}

#[test]
fn a_booked_server_counts_its_gpus_as_used_and_a_booked_gpu_half_its_server() {
    let mut ledger = a_day(lab(), Counted::Leaves);
    let whole = added(
        &mut ledger,
        0,
        span("2026-11-16T06:00:00Z", "2026-11-16T08:00:00Z"),
        None,
    );
    assert_eq!(whole, 2.0 * 2.0 * 3600.0, "two leaves for two hours");
    added(
        &mut ledger,
        1,
        span("2026-11-16T08:00:00Z", "2026-11-16T12:00:00Z"),
        None,
    );
    let cores = span("2026-11-15T22:00:00Z", "2026-11-16T08:00:00Z");
    assert_eq!(
        added(&mut ledger, 3, cores, Amount::new(16).ok()),
        2.0 * 3600.0
    );
    let usage = ledger.close();
    assert_eq!(total(&usage.kinds[0]), (4.0, 24.0));
    assert_eq!(total(&usage.kinds[1]), (8.0, 48.0));
    assert_eq!(total(&usage.kinds[2]), (2.0, 24.0));
    assert_eq!(total(&usage.all), (10.0, 72.0));
    assert_eq!(usage.all.resources, 3);
}

#[test]
fn of_one_type_only_that_is_counted() {
    let mut ledger = a_day(lab(), Counted::Kind(0));
    let hour = span("2026-11-16T06:00:00Z", "2026-11-16T07:00:00Z");
    assert_eq!(added(&mut ledger, 2, hour, None), 1800.0);
    assert_eq!(added(&mut ledger, 3, hour, None), 0.0);
    let usage = ledger.close();
    assert_eq!(total(&usage.all), (0.5, 24.0));
    assert_eq!(usage.all.resources, 1);
}

#[test]
fn what_is_out_is_neither_available_nor_used() {
    let mut parts = lab();
    parts[1].out = vec![span("2026-11-16T06:00:00Z", "2026-11-16T09:00:00Z")];
    let mut ledger = a_day(parts, Counted::Leaves);
    let booked = span("2026-11-16T08:00:00Z", "2026-11-16T10:00:00Z");
    assert_eq!(added(&mut ledger, 0, booked, None), 3.0 * 3600.0);
    let usage = ledger.close();
    assert_eq!(total(&usage.kinds[0]), (2.0, 24.0));
    assert_eq!(total(&usage.kinds[1]), (3.0, 45.0));
}

#[test]
fn days_have_the_hours_that_the_site_s_clock_gives_them() {
    let grid = Grid::new(
        span("2026-10-23T22:00:00Z", "2026-10-26T23:00:00Z"),
        zone("Europe/Rome"),
    );
    let hours = |buckets: Buckets| -> Vec<i64> {
        let spans = buckets.spans.iter();
        spans.map(|span| span.duration().as_hours()).collect()
    };
    assert_eq!(hours(grid.buckets(Step::Day)), [24, 25, 24]);
    assert_eq!(grid.buckets(Step::Hour).spans.len(), 73);
    assert_eq!(hours(grid.buckets(Step::Week)), [49, 24]);
    let spring = span("2027-03-27T23:00:00Z", "2027-03-28T22:00:00Z");
    let spring = Grid::new(spring, zone("Europe/Rome"));
    assert_eq!(hours(spring.buckets(Step::Day)), [23]);
    let week = spring.hours_of_the_week();
    assert!(!week.contains(&(6 * 24 + 2)), "there is no two o'clock");
    assert_eq!((week[0], week.len()), (6 * 24, 23));
}

#[test]
fn a_range_may_begin_and_end_anywhere() {
    let grid = Grid::new(
        span("2026-11-16T00:20:00.5Z", "2026-11-16T02:10:00Z"),
        zone("Asia/Kolkata"),
    );
    let starts: Vec<String> = grid
        .buckets(Step::Hour)
        .spans
        .iter()
        .map(|span| span.start().to_string())
        .collect();
    let expected = [
        "2026-11-16T00:20:00.5Z",
        "2026-11-16T00:30:00Z",
        "2026-11-16T01:30:00Z",
    ];
    assert_eq!(starts, expected);
}

/// A random site, in whole minutes from the start of the range.
#[derive(Debug, Clone)]
struct Case {
    start: Timestamp,
    minutes: i64,
    zone: &'static str,
    step: Step,
    parts: Vec<Part>,
    counted: Counted,
    claims: Vec<Taken>,
}

#[derive(Debug, Clone, Copy)]
struct Taken {
    part: usize,
    from: i64,
    to: i64,
    amount: Option<u64>,
}

impl Case {
    fn minute(&self, minute: i64) -> Timestamp {
        self.start + SignedDuration::from_mins(minute)
    }

    fn span(&self, from: i64, to: i64) -> Span {
        Span::new(self.minute(from), self.minute(to)).unwrap()
    }

    fn is_above(&self, above: usize, below: usize) -> bool {
        let mut at = Some(below);
        while let Some(number) = at {
            if number == above {
                return true;
            }
            at = self.parts[number].parent;
        }
        false
    }

    fn is_out(&self, number: usize, minute: i64) -> bool {
        let at = self.minute(minute);
        (0..self.parts.len()).any(|above| {
            let out = || self.parts[above].out.iter();
            self.is_above(above, number) && out().any(|out| out.contains_moment(at))
        })
    }

    /// The definition, for one resource in one minute.
    fn used(&self, number: usize, minute: i64) -> f64 {
        if self.is_out(number, minute) {
            return 0.0;
        }
        let now = || {
            let claims = self.claims.iter();
            claims.filter(move |claim| claim.from <= minute && minute < claim.to)
        };
        let whole = |claim: &&Taken| claim.amount.is_none() && self.is_above(claim.part, number);
        if now().any(|claim| whole(&claim)) {
            return 1.0;
        }
        if let Some(capacity) = self.parts[number].capacity {
            let amounts = now().filter(|claim| claim.part == number);
            let amounts: u64 = amounts.filter_map(|claim| claim.amount).sum();
            return amounts as f64 / capacity.get() as f64;
        }
        let parts = 0..self.parts.len();
        let below: Vec<usize> = parts
            .filter(|n| self.parts[*n].parent == Some(number))
            .collect();
        let used: f64 = below.iter().map(|n| self.used(*n, minute)).sum();
        if below.is_empty() {
            0.0
        } else {
            used / below.len() as f64
        }
    }

    fn is_leaf(&self, number: usize) -> bool {
        !self.parts.iter().any(|part| part.parent == Some(number))
    }

    fn counts(&self, number: usize, kind: Option<usize>) -> bool {
        let of = |kind| self.parts[number].kind == kind;
        match (kind, self.counted) {
            (Some(kind), _) | (None, Counted::Kind(kind)) => of(kind),
            (None, Counted::Leaves) => self.is_leaf(number),
        }
    }

    /// Used and available seconds of a type, or of everything, in one minute.
    fn sums(&self, kind: Option<usize>, minute: i64) -> (f64, f64) {
        let parts = (0..self.parts.len()).filter(|number| self.counts(*number, kind));
        parts.fold((0.0, 0.0), |(used, available), number| {
            let there = if self.is_out(number, minute) {
                0.0
            } else {
                60.0
            };
            (used + 60.0 * self.used(number, minute), available + there)
        })
    }

    /// The claim rule, by definition.
    fn fits(&self, new: Taken) -> bool {
        let overlaps = |claim: &&Taken| claim.from < new.to && new.from < claim.to;
        let related = |claim: &&Taken| {
            self.is_above(claim.part, new.part) || self.is_above(new.part, claim.part)
        };
        let met = || self.claims.iter().filter(overlaps).filter(related);
        let excluded = met().any(|claim| claim.amount.is_none() || new.amount.is_none());
        let capacity = self.parts[new.part].capacity.map_or(0, Amount::get);
        let taken: u64 = met().filter_map(|claim| claim.amount).sum();
        !excluded && new.amount.is_none_or(|amount| amount + taken <= capacity)
    }

    fn key(&self, step: Step, minute: i64) -> (jiff::civil::Date, i8, i32) {
        let zone = zone(self.zone);
        let local = zone.to_datetime(self.minute(minute));
        let date = local.date();
        match step {
            Step::Hour => {
                let offset = zone.to_offset(self.minute(minute)).seconds();
                (date, local.hour(), offset)
            }
            Step::Day => (date, 0, 0),
            Step::Week => {
                let since = i64::from(date.weekday().to_monday_zero_offset());
                let monday = date.saturating_sub(SignedDuration::from_hours(24 * since));
                (monday, 0, 0)
            }
        }
    }
}

/// Clocks that go forward, back, by half an hour, or not at all. The ranges begin close to a change.
const ZONES: [(&str, &str); 6] = [
    ("Europe/Rome", "2026-10-24T12:00:00Z"),
    ("Europe/Rome", "2027-03-27T12:00:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T03:00:00Z"),
    ("Australia/Lord_Howe", "2027-04-03T03:00:00Z"),
    ("America/St_Johns", "2026-11-01T00:00:00Z"),
    ("Asia/Kolkata", "2026-11-15T09:00:00Z"),
];

fn stretch(up_to: i64) -> impl Strategy<Value = (i64, i64)> {
    (-300..up_to, 1i64..2000).prop_map(|(from, length)| (from, from + length))
}

prop_compose! {
    fn a_case()(
        (zone, from) in prop::sample::select(ZONES.to_vec()),
        later in 0i64..600,
        minutes in 30i64..3000,
        step in prop::sample::select(vec![Step::Hour, Step::Day, Step::Week]),
        shape in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), 0..KINDS, any::<bool>()), 1..7),
        kind in prop::option::of(0..KINDS),
        outs in prop::collection::vec((any::<prop::sample::Index>(), stretch(3000)), 0..4),
        claims in prop::collection::vec((any::<prop::sample::Index>(), stretch(3000), 1u64..8, any::<bool>()), 0..20),
    ) -> Case {
        let mut parts: Vec<Part> = Vec::new();
        for (above, is_root, kind, is_divisible) in shape {
            let parent = (!is_root && !parts.is_empty()).then(|| above.index(parts.len()));
            // Divisible resources are leaves.
            let parent = parent.filter(|parent| parts[*parent].capacity.is_none());
            let capacity = is_divisible.then(|| Amount::new(8).unwrap());
            parts.push(Part { capacity, ..part(parent, kind) });
        }
        let counted = kind.map_or(Counted::Leaves, Counted::Kind);
        let start = at(from) + SignedDuration::from_mins(later);
        let mut case = Case { start, minutes, zone, step, parts, counted, claims: Vec::new() };
        for (number, (from, to)) in outs {
            let number = number.index(case.parts.len());
            let out = case.span(from, to);
            case.parts[number].out.push(out);
        }
        for (number, (from, to), amount, is_part) in claims {
            let part = number.index(case.parts.len());
            let amount = (is_part && case.parts[part].capacity.is_some()).then_some(amount);
            let claim = Taken { part, from, to, amount };
            if case.fits(claim) {
                case.claims.push(claim);
            }
        }
        case
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// Every figure equals the definition, minute by minute.
    #[test]
    fn sums_over_claims_are_sums_over_minutes(case in a_case()) {
        let range = case.span(0, case.minutes);
        let parts = case.parts.clone();
        let mut ledger = Ledger::new(range, zone(case.zone), parts, KINDS, case.counted);
        let buckets = Grid::new(range, zone(case.zone)).buckets(case.step);
        let mut told = Vec::new();
        for claim in &case.claims {
            let amount = claim.amount.map(|amount| Amount::new(amount).unwrap());
            let taken = case.span(claim.from, claim.to);
            ledger.add(claim.part, taken, amount, |span, times| {
                buckets.spread(span, times, &mut told);
            });
        }
        let usage = ledger.close();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-3;
        let all = buckets.gather(&usage.all.used_s);
        prop_assert!(told.iter().zip(&all).all(|(a, b)| near(*a, *b)), "{told:?} {all:?}");
        prop_assert!(near(told.iter().sum(), usage.all.used_total_s()));

        let measured: Vec<(Option<usize>, &Measured)> = (0..KINDS)
            .map(|kind| (Some(kind), &usage.kinds[kind]))
            .chain([(None, &usage.all)])
            .collect();
        let mut minute = 0;
        let gathered: Vec<(Vec<f64>, Vec<f64>)> = measured
            .iter()
            .map(|(_, one)| (buckets.gather(&one.used_s), buckets.gather(&one.available_s)))
            .collect();
        for (place, bucket) in buckets.spans.iter().enumerate() {
            prop_assert_eq!(bucket.start(), case.minute(minute));
            let first = minute;
            let mut sums = vec![(0.0, 0.0); measured.len()];
            while case.minute(minute) < bucket.end() {
                prop_assert_eq!(case.key(case.step, minute), case.key(case.step, first));
                for (sum, (kind, _)) in sums.iter_mut().zip(&measured) {
                    let (used, available) = case.sums(*kind, minute);
                    *sum = (sum.0 + used, sum.1 + available);
                }
                minute += 1;
            }
            prop_assert!(first == 0 || case.key(case.step, first) != case.key(case.step, first - 1));
            for ((used, available), found) in sums.iter().zip(&gathered) {
                prop_assert!(near(*used, found.0[place]), "{used} {}", found.0[place]);
                prop_assert!(near(*available, found.1[place]), "{available} {}", found.1[place]);
            }
        }
        prop_assert_eq!(minute, case.minutes);

        let week = gather(&usage.grid.hours_of_the_week(), 168, &usage.all.used_s);
        let mut by_minute: BTreeMap<usize, f64> = BTreeMap::new();
        for minute in 0..case.minutes {
            let local = zone(case.zone).to_datetime(case.minute(minute));
            let day = usize::try_from(local.weekday().to_monday_zero_offset()).unwrap();
            let hour = day * 24 + usize::try_from(local.hour()).unwrap();
            *by_minute.entry(hour).or_default() += case.sums(None, minute).0;
        }
        for (hour, used) in week.iter().enumerate() {
            let expected = by_minute.get(&hour).copied().unwrap_or_default();
            prop_assert!(near(expected, *used), "hour {hour}: {expected} {used}");
        }
    }
}
