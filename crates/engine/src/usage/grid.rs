//! A range of time cut at every full hour of a site's clock, and sums over its cells.
//!
//! The site's hours, days and weeks consist of whole cells, even when the clock changes. So everything is summed once
//! over the cells and then gathered into buckets. Adding a span takes constant time for any length: its two ends are
//! added to their cells, and the cells between become one step up and one step down.

use berth_model::Span;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

const HOUR_S: i64 = 3600;

/// The length of the buckets in a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Hour,
    Day,
    /// From Monday to Monday.
    Week,
}

#[derive(Debug, Clone)]
pub struct Grid {
    zone: TimeZone,
    /// The boundaries of the cells; one more than there are cells.
    edges: Vec<Timestamp>,
}

/// Cells gathered into groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    pub spans: Vec<Span>,
    /// For each cell, the index of its bucket.
    of_cell: Vec<usize>,
}

impl Grid {
    pub fn new(span: Span, zone: TimeZone) -> Grid {
        let mut edges = vec![span.start()];
        let mut at = span.start();
        let mut change = next_change(&zone, at);
        loop {
            if change.is_some_and(|change| change <= at) {
                change = next_change(&zone, at);
            }
            let on_clock_s = at.as_second() + i64::from(zone.to_offset(at).seconds());
            let hour = SignedDuration::from_secs(HOUR_S - on_clock_s.rem_euclid(HOUR_S));
            let within = SignedDuration::from_nanos(i64::from(at.subsec_nanosecond()));
            let next = at + hour - within;
            at = change.map_or(next, |change| change.min(next));
            if at >= span.end() {
                break;
            }
            edges.push(at);
        }
        edges.push(span.end());
        Grid { zone, edges }
    }

    pub fn span(&self) -> Option<Span> {
        Span::new(*self.edges.first()?, *self.edges.last()?).ok()
    }

    fn cells(&self) -> impl Iterator<Item = (Timestamp, Timestamp)> + '_ {
        self.edges.windows(2).map(|pair| (pair[0], pair[1]))
    }

    /// The cells as the buckets of a chart. An hour that the clock shows twice becomes two buckets.
    pub fn buckets(&self, step: Step) -> Buckets {
        let mut spans: Vec<Span> = Vec::new();
        let mut of_cell = Vec::new();
        let mut last = None;
        for (start, end) in self.cells() {
            let date = self.zone.to_datetime(start).date();
            let day = match step {
                Step::Hour => None,
                Step::Day => Some(date),
                Step::Week => Some(monday(date)),
            };
            let Ok(cell) = Span::new(start, end) else {
                continue;
            };
            match spans.last_mut() {
                Some(bucket) if day.is_some() && last == day => *bucket = bucket.hull(cell),
                _ => spans.push(cell),
            }
            last = day;
            of_cell.push(spans.len() - 1);
        }
        Buckets { spans, of_cell }
    }

    /// For each cell, its hour of the week from Monday at midnight: one of 168.
    pub fn hours_of_the_week(&self) -> Vec<usize> {
        let place = |(start, _)| {
            let local = self.zone.to_datetime(start);
            let day = local.weekday().to_monday_zero_offset();
            usize::try_from(i32::from(day) * 24 + i32::from(local.hour())).unwrap_or(0)
        };
        self.cells().map(place).collect()
    }

    /// The cells that contain the start and the end of a span. The span lies within the grid.
    fn ends_of(&self, span: Span) -> (usize, usize) {
        let first = self.edges.partition_point(|edge| *edge <= span.start());
        let last = self.edges.partition_point(|edge| *edge < span.end());
        (first.saturating_sub(1), last.saturating_sub(1))
    }

    pub(super) fn column(&self) -> Column {
        let cells = self.edges.len() - 1;
        Column {
            parts: vec![0.0; cells],
            steps: vec![0.0; cells + 1],
        }
    }

    /// Adds a span, which lies within the grid, to columns with their weights.
    pub(super) fn add(
        &self,
        span: Span,
        columns: &mut [Column],
        weights: impl IntoIterator<Item = (usize, f64)>,
    ) {
        let (first, last) = self.ends_of(span);
        let (head, tail) = if first == last {
            (micros(span.start(), span.end()), 0.0)
        } else {
            let head = micros(span.start(), self.edges[first + 1]);
            (head, micros(self.edges[last], span.end()))
        };
        for (column, weight) in weights {
            let column = &mut columns[column];
            column.parts[first] += weight * head;
            if first < last {
                column.parts[last] += weight * tail;
                column.steps[first + 1] += weight;
                column.steps[last] -= weight;
            }
        }
    }

    /// The seconds in each cell.
    pub(super) fn sums(&self, column: &Column) -> Vec<f64> {
        let mut level = 0.0;
        let cells = self.cells().zip(column.parts.iter().zip(&column.steps));
        cells
            .map(|((start, end), (part, step))| {
                level += step;
                ((part + level * micros(start, end)) / 1e6).max(0.0)
            })
            .collect()
    }
}

impl Buckets {
    /// Sums over the cells of each bucket.
    pub fn gather(&self, cells: &[f64]) -> Vec<f64> {
        gather(&self.of_cell, self.spans.len(), cells)
    }

    /// Adds the seconds of a span, multiplied by `times`, to those of each bucket.
    pub fn spread(&self, span: Span, times: f64, seconds: &mut Vec<f64>) {
        seconds.resize(self.spans.len(), 0.0);
        let first = self
            .spans
            .partition_point(|bucket| bucket.end() <= span.start());
        let touched = self.spans.iter().enumerate().skip(first);
        for (place, bucket) in touched.take_while(|(_, bucket)| bucket.start() < span.end()) {
            if let Some(within) = bucket.intersection(span) {
                seconds[place] += times * within.duration().as_secs_f64();
            }
        }
    }
}

/// Sums over the cells of each of `groups` groups.
pub fn gather(of_cell: &[usize], groups: usize, cells: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; groups];
    for (group, seconds) in of_cell.iter().zip(cells) {
        sums[*group] += seconds;
    }
    sums
}

/// A sum in weighted microseconds: the parts within single cells, and the steps up or down of the whole cells from
/// here on.
#[derive(Debug, Clone)]
pub(super) struct Column {
    parts: Vec<f64>,
    steps: Vec<f64>,
}

fn micros(from: Timestamp, to: Timestamp) -> f64 {
    (to.as_microsecond() - from.as_microsecond()) as f64
}

fn next_change(zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    Some(zone.following(after).next()?.timestamp())
}

fn monday(date: Date) -> Date {
    let since = i64::from(date.weekday().to_monday_zero_offset());
    date.saturating_sub(SignedDuration::from_hours(24 * since))
}
