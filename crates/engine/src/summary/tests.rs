//! Compares the sweep with a plain check of every claim and every moment.

use proptest::prelude::*;

use super::*;
use crate::fixture::{at, resource, span};

const MINUTE: i64 = 60_000_000;

fn grid(from: &str, to: &str, rows: usize) -> StepGrid {
    let moment = |text: &str| text.parse().unwrap();
    StepGrid::covering(Span::new(moment(from), moment(to)).unwrap(), rows)
}

#[test]
fn steps_are_as_short_as_the_answer_allows_and_begin_at_the_same_times() {
    let day = grid("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z", 10);
    assert_eq!((day.step().as_mins(), day.steps()), (10, 144));
    // A pan by minutes keeps the boundaries.
    let later = grid("2026-11-20T00:07:00Z", "2026-11-21T00:07:00Z", 10);
    assert_eq!((later.start_of(0), later.steps()), (day.start_of(0), 145));
    let ten_days = grid("2026-11-15T00:00:00Z", "2026-11-25T00:00:00Z", 40);
    assert_eq!((ten_days.step().as_mins(), ten_days.steps()), (60, 240));
    // On a day whose clocks change an hour is still an hour.
    let autumn = grid("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", 10);
    assert_eq!((autumn.step().as_mins(), autumn.steps()), (10, 150));
    let weeks = grid("2026-01-01T00:00:00Z", "2029-01-01T00:00:00Z", 10);
    assert_eq!(weeks.step().as_hours(), 7 * 24);
    assert_eq!(weeks.start_of(0).to_string(), "2025-12-29T00:00:00Z");
}

#[test]
fn many_rows_have_few_steps_and_the_longest_span_has_an_answer() {
    for (rows, most) in [(1, STEPS_MAX), (10_000, 20), (100_000, 4), (10_000_000, 4)] {
        let all = grid("2000-01-01T00:00:00Z", "2199-12-31T00:00:00Z", rows);
        assert!(all.steps() <= most, "{rows}: {}", all.steps());
        let week = grid("2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z", rows);
        assert!(week.steps() <= most, "{rows}: {}", week.steps());
    }
}

fn class(number: u8) -> ClaimClass {
    ClaimClass::all().nth(number.into()).unwrap()
}

/// A claim, in minutes after the fixture's beginning.
fn claim(row: u64, start: i64, end: i64, amount: Option<u64>, of: u8) -> SummedClaim {
    SummedClaim {
        resource: resource(row),
        start_us: at(start).as_microsecond(),
        end_us: at(end).as_microsecond(),
        amount,
        class: class(of),
    }
}

fn summed(grid: StepGrid, capacity: Option<u64>, claims: &[SummedClaim]) -> Vec<RowSum> {
    let capacity = capacity.map(|amount| Amount::new(amount).unwrap());
    let mut ordered = claims.to_vec();
    ordered.sort_by_key(|claim| (claim.resource, claim.start_us));
    let mut summing = Summing::new(grid, |_| capacity);
    ordered.into_iter().for_each(|claim| summing.add(claim));
    summing.finish()
}

#[test]
fn a_claim_that_ends_where_a_step_begins_does_not_touch_it() {
    let grid = StepGrid::with_step(span(0, 30), 10 * MINUTE);
    let rows = summed(
        grid,
        Some(8),
        &[claim(1, 0, 10, Some(8), 0), claim(1, 10, 15, Some(3), 7)],
    );
    let steps = &rows[0].steps;
    assert_eq!(steps.len(), 2);
    assert_eq!((steps[0].is_full, steps[0].parts.len()), (true, 1));
    assert_eq!((steps[1].is_full, steps[1].parts.len()), (false, 1));
    assert_eq!(steps[1].taken, Take::Amount(Amount::new(3).unwrap()));
}

#[test]
fn a_step_is_full_only_where_nothing_is_left_at_any_moment() {
    let grid = StepGrid::with_step(span(0, 30), 10 * MINUTE);
    let claims = [
        claim(1, 0, 5, None, 0),
        claim(1, 5, 10, None, 6),
        claim(1, 10, 19, None, 0),
    ];
    let rows = summed(grid, None, &claims);
    let full: Vec<bool> = rows[0].steps.iter().map(|step| step.is_full).collect();
    assert_eq!(full, [true, false]);
    assert_eq!(rows[0].steps[0].parts.len(), 2);
}

/// The sum of a step, computed moment by moment.
fn plainly(
    grid: StepGrid,
    step: usize,
    capacity: Option<u64>,
    claims: &[SummedClaim],
) -> Option<StepSum> {
    let (start, end) = (grid.boundary(step), grid.boundary(step + 1));
    let touching: Vec<&SummedClaim> = claims
        .iter()
        .filter(|claim| claim.start_us < end && claim.end_us > start)
        .collect();
    if touching.is_empty() {
        return None;
    }
    let changes = touching
        .iter()
        .flat_map(|claim| [claim.start_us, claim.end_us]);
    let moments: Vec<i64> = changes
        .chain([start])
        .filter(|at| (start..end).contains(at))
        .collect();
    let level = |moment: i64, of: Option<ClaimClass>| {
        let mut level = Level::default();
        touching
            .iter()
            .filter(|claim| {
                claim.start_us <= moment
                    && claim.end_us > moment
                    && of.is_none_or(|of| claim.class == of)
            })
            .for_each(|claim| level.rise(Level::of(claim.amount)));
        level
    };
    let peak = |of| {
        moments
            .iter()
            .map(|moment| level(*moment, of))
            .max()
            .unwrap()
            .take()
    };
    let parts = ClaimClass::all().filter_map(|class| {
        let claims = touching.iter().filter(|claim| claim.class == class).count() as u64;
        (claims > 0).then(|| StepPart {
            class,
            claims,
            taken: peak(Some(class)),
        })
    });
    Some(StepSum {
        step,
        taken: peak(None),
        is_full: moments.iter().all(|moment| {
            let level = level(*moment, None);
            level.whole > 0 || capacity.is_some_and(|capacity| level.amount >= capacity)
        }),
        parts: parts.collect(),
    })
}

proptest! {
    #[test]
    fn sums_agree_with_a_look_at_every_moment(
        drawn in prop::collection::vec((0_u64..3, 0_i64..90, 1_i64..40, prop::option::of(1_u64..5), 0_u8..10), 0..40),
        from in 5_i64..40, length in 1_i64..50, minutes in prop::sample::select(vec![1_i64, 2, 5, 10, 15, 30]),
        capacity in prop::option::of(1_u64..12),
    ) {
        let grid = StepGrid::with_step(span(from, from + length), minutes * MINUTE);
        let claims: Vec<SummedClaim> = drawn
            .into_iter()
            .map(|(row, start, length, amount, of)| claim(row, start, start + length, amount, of))
            .collect();
        let mut expected = Vec::new();
        for row in 0..3 {
            let of_row: Vec<SummedClaim> =
                claims.iter().filter(|claim| claim.resource == resource(row)).copied().collect();
            let steps: Vec<StepSum> =
                (0..grid.steps()).filter_map(|step| plainly(grid, step, capacity, &of_row)).collect();
            if !steps.is_empty() {
                expected.push(RowSum { resource: resource(row), steps });
            }
        }
        prop_assert_eq!(summed(grid, capacity, &claims), expected);
    }
}
