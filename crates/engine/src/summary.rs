//! Claims summed by resource and time step, for a calendar with too many entries to list one by one.
//!
//! A step has the number of claims that touch it, and the most that they take at one moment. The claims come in
//! order, one at a time. So a million claims need only the memory of the claims that overlap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use berth_model::{Amount, ResourceId, Span, Take};
use jiff::{SignedDuration, Timestamp};

/// The most steps of one row: a screen has no room for more.
const STEPS_MAX: usize = 240;
/// Fewer steps than this show too little, for any number of rows.
const STEPS_MIN: usize = 4;
/// The most steps of all rows together. The answer is then about as long as the longest list of entries.
const CELLS_MAX: usize = 200_000;

const MINUTE_US: i64 = 60_000_000;
const WEEK_MIN: i64 = 7 * 24 * 60;
/// Lengths of a step, in minutes. Each divides a week, so that steps always begin at the same times.
const LENGTHS_MIN: [i64; 14] = [
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    180,
    360,
    720,
    1440,
    WEEK_MIN,
    2 * WEEK_MIN,
];
/// Monday, 29 December 1969, the origin of all steps.
const ORIGIN_US: i64 = -3 * 24 * 60 * MINUTE_US;

/// Equal steps of time that cover a span. They begin at multiples of their length in UTC, for any span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepGrid {
    start_us: i64,
    step_us: i64,
    steps: usize,
}

impl StepGrid {
    /// Chooses the shortest steps that keep an answer of `rows` resources short enough.
    pub fn covering(span: Span, rows: usize) -> Self {
        let most = (CELLS_MAX / rows.max(1)).clamp(STEPS_MIN, STEPS_MAX);
        let longer = std::iter::successors(Some(4 * WEEK_MIN), |length| Some(length * 2));
        let lengths = LENGTHS_MIN.into_iter().chain(longer);
        let grids = lengths.map(|minutes| Self::with_step(span, minutes * MINUTE_US));
        let mut fitting = grids.skip_while(|grid| grid.steps > most);
        // Lengths double without end, so one fits; the first grid only satisfies the compiler.
        fitting
            .next()
            .unwrap_or_else(|| Self::with_step(span, MINUTE_US))
    }

    fn with_step(span: Span, step_us: i64) -> Self {
        let start = span.start().as_microsecond() - ORIGIN_US;
        let end = span.end().as_microsecond() - ORIGIN_US;
        let (first, last) = (start.div_euclid(step_us), (end - 1).div_euclid(step_us));
        Self {
            start_us: ORIGIN_US + first * step_us,
            step_us,
            steps: usize::try_from(last - first + 1).unwrap_or(1),
        }
    }

    pub fn steps(self) -> usize {
        self.steps
    }

    pub fn step(self) -> SignedDuration {
        SignedDuration::from_micros(self.step_us)
    }

    /// When a step begins.
    pub fn start_of(self, step: usize) -> Timestamp {
        at(self.boundary(step))
    }

    /// When the last step ends.
    pub fn end(self) -> Timestamp {
        at(self.boundary(self.steps))
    }

    fn boundary(self, step: usize) -> i64 {
        self.start_us + self.step_us * i64::try_from(step).unwrap_or(0)
    }
}

/// Spans lie in the years 2000 to 2200, and a step is shorter than that. So the result is always within the range of
/// `Timestamp`.
fn at(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

/// The purpose of a claim, as far as a viewer may know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimKind {
    Reservation,
    Buffer,
    Maintenance,
    Workload,
    /// Occupied, with the purpose hidden.
    Busy,
}

const KINDS: [ClaimKind; 5] = [
    ClaimKind::Reservation,
    ClaimKind::Buffer,
    ClaimKind::Maintenance,
    ClaimKind::Workload,
    ClaimKind::Busy,
];
const CLASSES: usize = KINDS.len() * 2;

/// Claims of one kind that are the viewer's own, or that are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimClass {
    pub kind: ClaimKind,
    pub mine: bool,
}

impl ClaimClass {
    fn index(self) -> usize {
        self.kind as usize * 2 + usize::from(self.mine)
    }

    fn all() -> impl Iterator<Item = Self> {
        KINDS
            .into_iter()
            .flat_map(|kind| [false, true].map(|mine| Self { kind, mine }))
    }
}

/// The parts of a claim that the summary needs.
#[derive(Debug, Clone, Copy)]
pub struct SummedClaim {
    pub resource: ResourceId,
    pub start_us: i64,
    pub end_us: i64,
    /// The amount that it takes; none takes all.
    pub amount: Option<u64>,
    pub class: ClaimClass,
}

/// The claims of one class in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPart {
    pub class: ClaimClass,
    /// How many claims touch the step.
    pub claims: u64,
    /// The most that they take at one moment.
    pub taken: Take,
}

/// A step with at least one claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSum {
    pub step: usize,
    /// The most taken at one moment.
    pub taken: Take,
    /// Whether the resource is fully taken at every moment of the step.
    pub is_full: bool,
    /// By class; classes without claims are left out.
    pub parts: Vec<StepPart>,
}

/// A resource and its steps, in order. Steps without claims are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSum {
    pub resource: ResourceId,
    pub steps: Vec<StepSum>,
}

/// Sums claims that come ordered by resource and start.
#[derive(Debug)]
pub struct Summing<Capacity> {
    grid: StepGrid,
    capacity_of: Capacity,
    row: Option<RowSweep>,
    rows: Vec<RowSum>,
}

impl<Capacity: Fn(ResourceId) -> Option<Amount>> Summing<Capacity> {
    pub fn new(grid: StepGrid, capacity_of: Capacity) -> Self {
        Self {
            grid,
            capacity_of,
            row: None,
            rows: Vec::new(),
        }
    }

    pub fn add(&mut self, claim: SummedClaim) {
        if self.row.as_ref().map(|row| row.resource) != Some(claim.resource) {
            self.finish_row();
            let capacity = (self.capacity_of)(claim.resource);
            self.row = Some(RowSweep::new(self.grid, claim.resource, capacity));
        }
        if let Some(row) = &mut self.row {
            row.add(&claim);
        }
    }

    pub fn finish(mut self) -> Vec<RowSum> {
        self.finish_row();
        self.rows
    }

    fn finish_row(&mut self) {
        let row = self.row.take().map(RowSweep::finish);
        self.rows.extend(row.filter(|row| !row.steps.is_empty()));
    }
}

/// The amount that claims take at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Level {
    /// The number of claims that take all; it compares before the amount.
    whole: u64,
    amount: u64,
}

impl Level {
    fn of(amount: Option<u64>) -> Self {
        Self {
            whole: u64::from(amount.is_none()),
            amount: amount.unwrap_or(0),
        }
    }

    fn rise(&mut self, by: Level) {
        self.whole += by.whole;
        self.amount = self.amount.saturating_add(by.amount);
    }

    fn fall(&mut self, by: Level) {
        self.whole = self.whole.saturating_sub(by.whole);
        self.amount = self.amount.saturating_sub(by.amount);
    }

    fn take(self) -> Take {
        let amount = Amount::new(self.amount.min(Amount::MAX)).ok();
        match amount {
            Some(amount) if self.whole == 0 => Take::Amount(amount),
            _ => Take::Exclusive,
        }
    }
}

/// Claims of one class: those at this moment, and those of the step so far.
#[derive(Debug, Clone, Copy, Default)]
struct Running {
    active: u64,
    level: Level,
    touching: u64,
    peak: Level,
}

/// A sweep through time over one resource.
#[derive(Debug)]
struct RowSweep {
    grid: StepGrid,
    resource: ResourceId,
    capacity: Option<Amount>,
    classes: [Running; CLASSES],
    level: Level,
    peak: Level,
    is_full: bool,
    step: usize,
    at_us: i64,
    /// The claims of this moment, by their end.
    ends: BinaryHeap<Reverse<(i64, usize, Option<u64>)>>,
    steps: Vec<StepSum>,
}

impl RowSweep {
    fn new(grid: StepGrid, resource: ResourceId, capacity: Option<Amount>) -> Self {
        Self {
            grid,
            resource,
            capacity,
            classes: Default::default(),
            level: Level::default(),
            peak: Level::default(),
            is_full: true,
            step: 0,
            at_us: grid.start_us,
            ends: BinaryHeap::new(),
            steps: Vec::new(),
        }
    }

    fn add(&mut self, claim: &SummedClaim) {
        let grid_end = self.grid.boundary(self.grid.steps);
        let start = claim.start_us.max(self.grid.start_us);
        if claim.end_us <= start || start >= grid_end {
            return;
        }
        self.release_until(start);
        self.enter_step_at(start);
        let (index, by) = (claim.class.index(), Level::of(claim.amount));
        self.level.rise(by);
        self.peak = self.peak.max(self.level);
        let class = &mut self.classes[index];
        class.active += 1;
        class.touching += 1;
        class.level.rise(by);
        class.peak = class.peak.max(class.level);
        self.ends
            .push(Reverse((claim.end_us.min(grid_end), index, claim.amount)));
    }

    /// Ends the claims that end until `time`, and moves there.
    fn release_until(&mut self, time: i64) {
        while let Some(Reverse((end, index, amount))) = self.ends.peek().copied() {
            if end > time {
                break;
            }
            self.ends.pop();
            self.move_to(end);
            let by = Level::of(amount);
            self.level.fall(by);
            self.classes[index].active -= 1;
            self.classes[index].level.fall(by);
        }
        self.move_to(time);
    }

    /// Moves through time without changes. It stops before a step that begins at `time`: a claim that ends at that
    /// moment does not touch this step.
    fn move_to(&mut self, time: i64) {
        while time > self.grid.boundary(self.step + 1) {
            self.pass(self.grid.boundary(self.step + 1));
            self.next_step();
        }
        self.pass(time);
    }

    fn enter_step_at(&mut self, time: i64) {
        if time == self.grid.boundary(self.step + 1) {
            self.next_step();
        }
    }

    fn pass(&mut self, time: i64) {
        self.is_full &= time == self.at_us || self.takes_all();
        self.at_us = time;
    }

    fn takes_all(&self) -> bool {
        let room = self.capacity.map_or(u64::MAX, Amount::get);
        self.level.whole > 0 || self.level.amount >= room
    }

    fn next_step(&mut self) {
        let parts: Vec<StepPart> = ClaimClass::all()
            .zip(&self.classes)
            .filter(|(_, running)| running.touching > 0)
            .map(|(class, running)| StepPart {
                class,
                claims: running.touching,
                taken: running.peak.take(),
            })
            .collect();
        if !parts.is_empty() {
            self.steps.push(StepSum {
                step: self.step,
                taken: self.peak.take(),
                is_full: self.is_full,
                parts,
            });
        }
        self.step += 1;
        self.is_full = true;
        self.peak = self.level;
        for running in &mut self.classes {
            running.touching = running.active;
            running.peak = running.level;
        }
    }

    fn finish(mut self) -> RowSum {
        let end = self.grid.boundary(self.grid.steps);
        self.release_until(end);
        self.next_step();
        RowSum {
            resource: self.resource,
            steps: self.steps,
        }
    }
}

#[cfg(test)]
mod tests;
