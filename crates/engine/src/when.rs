//! Finds the earliest exact times for a request, by one sweep over the free time.
//!
//! A request can be met in several ways: "4 for 2 h, or 2 for 4 h", in this site or that. In each way, the free
//! stretches of a candidate determine when a booking could start on it. A sweep over the ends of these ranges counts,
//! at every moment, the candidates that could start. A *run* is a longest stretch of moments with enough candidates.
//! The first permitted moment of each run is a choice: any other start within the run uses the same gap, later.
//!
//! The sweep processes time in growing slices. So a request that can be met tomorrow does not read the claims of next
//! year, and a request that cannot be met reads every claim at most about twice.

use berth_model::claim::Take;
use berth_model::{ResourceId, Span};
use jiff::SignedDuration;

use self::cells::Cells;
use crate::busy::{Busy, Scratch, Stretch, length_us, span, stretch};
use crate::placement::{Candidate, Placed, choose_placed, lowest};

mod cells;

/// One way to meet the request: a number of these candidates, in one site, for a length.
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    pub busy: &'a Busy,
    pub candidates: &'a [Candidate],
    pub take: Take,
    pub count: usize,
    /// The whole time that would be held, buffers included.
    pub length: SignedDuration,
    /// The moments at which the policies let it start, as half-open spans in any order.
    pub starts: &'a [Span],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The index of the way in the given list.
    pub way: usize,
    pub span: Span,
    /// In the order of the tree.
    pub resources: Vec<ResourceId>,
}

/// Returns up to `limit` choices in `within`, ordered by start. `within` reaches from the earliest start to the
/// deadline. The earliest choice of each way comes before a second choice of any way, so that the ways can be
/// compared. Choices with the same start are ordered by their end, then by way.
pub fn earliest(ways: &[Way<'_>], within: Span, limit: usize) -> Vec<Choice> {
    let mut found: Vec<(usize, i64, i64, usize)> = Vec::new();
    let searches: Vec<Search> = ways.iter().map(Search::new).collect();
    for (number, search) in searches.iter().enumerate() {
        let starts = search.first_starts(stretch(within), limit);
        let choice = |(rank, start)| (rank, start, start + search.length, number);
        found.extend(starts.into_iter().enumerate().map(choice));
    }
    found.sort_unstable_by_key(|(rank, start, end, way)| (*rank > 0, *start, *end, *way));
    found.truncate(limit);
    found.sort_unstable_by_key(|(_, start, end, way)| (*start, *end, *way));
    let told = found
        .into_iter()
        .filter_map(|(_, start, end, way)| searches[way].choice(way, (start, end)));
    told.collect()
}

/// A way that is prepared for searching.
pub(crate) struct Search<'a> {
    busy: &'a Busy,
    candidates: Vec<Placed>,
    take: Take,
    count: usize,
    pub length: i64,
    /// In order, no two touching.
    permitted: Vec<Stretch>,
}

impl<'a> Search<'a> {
    pub fn new(way: &Way<'a>) -> Self {
        Search {
            busy: way.busy,
            candidates: lowest(way.busy, way.candidates),
            take: way.take,
            count: way.count,
            length: length_us(way.length),
            permitted: united(way.starts.iter().map(|span| stretch(*span)).collect()),
        }
    }

    fn is_hopeless(&self) -> bool {
        self.count == 0 || self.length == 0 || self.candidates.len() < self.count
    }

    /// The moments at which a booking that lies in `within` could start, half-open.
    fn starts_within(&self, within: Stretch) -> Stretch {
        let first = self.permitted.first().map_or(within.1, |first| first.0);
        let last = self.permitted.last().map_or(within.0, |last| last.1);
        let end = within.1.saturating_sub(self.length).saturating_add(1);
        (within.0.max(first), end.min(last))
    }

    /// The first permitted start in each of the first runs, at most `limit` of them.
    pub fn first_starts(&self, within: Stretch, limit: usize) -> Vec<i64> {
        let all = self.starts_within(within);
        let mut runs: Vec<Stretch> = Vec::new();
        let mut starts = Vec::new();
        if self.is_hopeless() {
            return starts;
        }
        for slice in slices(all, self.length) {
            self.runs(slice, &mut runs);
            starts = runs
                .iter()
                .filter_map(|run| self.first_permitted(*run))
                .take(limit)
                .collect();
            if starts.len() == limit {
                break;
            }
        }
        starts
    }

    /// The last permitted moment at which a booking that lies in `within` could start.
    pub fn last_start(&self, within: Stretch) -> Option<i64> {
        let (first, end) = self.starts_within(within);
        if self.is_hopeless() {
            return None;
        }
        // The slices of the mirrored time are the slices of this time, from its end.
        let mirrored = slices((-end, -first), self.length);
        mirrored.into_iter().find_map(|(from, to)| {
            let mut runs = Vec::new();
            self.runs((-to, -from), &mut runs);
            runs.iter().rev().find_map(|run| self.last_permitted(*run))
        })
    }

    /// Adds to `runs` the moments of `slice` at which enough candidates could start. A run that continues the
    /// previous run is merged with it.
    ///
    /// Sorting every start and end would cost most of the time. So a first pass counts, cell by cell, how many
    /// candidates could start at some moment of the cell, and how many at every moment. The second pass then sorts
    /// only the stretches that touch a cell in doubt. In the other cells its count is too low, so it finds nothing
    /// false there.
    fn runs(&self, slice: Stretch, runs: &mut Vec<Stretch>) {
        let mut cells = Cells::new(slice);
        self.each_able(slice, |able| cells.count(able));
        let (mut found, in_doubt) = cells.judge(self.count);
        if in_doubt.any() {
            let mut able = Vec::new();
            self.each_able(slice, |part| {
                if in_doubt.touched(cells.touched_by(part)) {
                    able.push(part);
                }
            });
            found.extend(enough(&able, self.count));
        }
        for run in united(found) {
            push_united(runs, run);
        }
    }

    /// Calls `visit` for each candidate with the stretches of `slice` in which a booking could start on it.
    fn each_able(&self, slice: Stretch, mut visit: impl FnMut(Stretch)) {
        let window = (slice.0, slice.1 - 1 + self.length);
        let mut scratch = Scratch::default();
        for candidate in &self.candidates {
            let able = |part: Stretch| visit((part.0, part.1 - self.length + 1));
            let Search { take, length, .. } = *self;
            let place = candidate.place;
            self.busy
                .stretches_at(place, take, window, length, &mut scratch, able);
        }
    }

    fn first_permitted(&self, run: Stretch) -> Option<i64> {
        let next = self.permitted.partition_point(|open| open.1 <= run.0);
        let start = self.permitted.get(next)?.0.max(run.0);
        Some(start).filter(|start| *start < run.1)
    }

    fn last_permitted(&self, run: Stretch) -> Option<i64> {
        let after = self.permitted.partition_point(|open| open.0 < run.1);
        let end = self.permitted.get(after.checked_sub(1)?)?.1.min(run.1);
        Some(end - 1).filter(|start| run.0 <= *start)
    }

    /// Chooses the resources for this time.
    pub fn choice(&self, way: usize, during: Stretch) -> Option<Choice> {
        let Search { take, count, .. } = *self;
        let chosen = choose_placed(self.busy, &self.candidates, take, count, during)?;
        let resources = self.busy.resources_at(&chosen);
        Some(Choice {
            way,
            span: span(during)?,
            resources,
        })
    }
}

/// When at least `count` of these parts overlap, in order.
fn enough(parts: &[Stretch], count: usize) -> Vec<Stretch> {
    let mut opens: Vec<i64> = parts.iter().map(|part| part.0).collect();
    let mut closes: Vec<i64> = parts.iter().map(|part| part.1).collect();
    opens.sort_unstable();
    closes.sort_unstable();
    let mut opens = opens.into_iter().peekable();
    let (mut holding, mut since, mut found) = (0, None, Vec::new());
    for close in closes {
        while let Some(open) = opens.next_if(|open| *open < close) {
            holding += 1;
            if holding == count {
                since = Some(open);
            }
        }
        if holding == count
            && let Some(start) = since.take()
        {
            found.push((start, close));
        }
        holding -= 1;
    }
    found
}

/// The first slice is the window divided by this number, or longer.
const SLICES: i64 = 64;

/// Growth factor of the slices. Finding the position in a lane costs more than reading on, so few slices are better.
const GROWTH: i64 = 8;

/// Cuts a window into slices that grow. None is shorter than a booking, since each slice is read together with the
/// time that a booking starting in it would occupy.
fn slices((from, to): Stretch, length: i64) -> Vec<Stretch> {
    let mut slices = Vec::new();
    let mut size = length.max((to - from) / SLICES).max(1);
    let mut start = from;
    while start < to {
        let end = start.saturating_add(size).min(to);
        slices.push((start, end));
        (start, size) = (end, size.saturating_mul(GROWTH));
    }
    slices
}

fn united(mut parts: Vec<Stretch>) -> Vec<Stretch> {
    parts.sort_unstable();
    let mut whole = Vec::new();
    for part in parts {
        push_united(&mut whole, part);
    }
    whole
}

/// Adds a part that starts no earlier than the last, and merges them if they touch.
fn push_united(parts: &mut Vec<Stretch>, part: Stretch) {
    match parts.last_mut() {
        Some(last) if part.0 <= last.1 => last.1 = last.1.max(part.1),
        _ => parts.push(part),
    }
}

#[cfg(test)]
#[path = "when/tests.rs"]
mod tests;
