//! Measures how much of the available resource time was used.
//!
//! At any moment a resource is *available* or *out*. It is out while it does not exist yet, is removed, is out of
//! service or is under maintenance, by itself or because of an ancestor. An available resource is used
//!
//! - wholly, if a claim takes it or an ancestor as a whole;
//! - by its share, if claims take amounts of it: 16 of 64 cores are a quarter;
//! - by the average of its parts, if claims take only parts of it: one of eight GPUs is an eighth of a server.
//!
//! So nothing is counted twice and nothing is lost: a booked server counts as a used server among the servers and as
//! eight used GPUs among the GPUs. The overall figure counts the leaves of the tree, all with equal weight.
//!
//! The claim rule keeps overlapping claims apart, so seconds of use are a sum over claims. Each claim adds its time
//! with a weight for each type, computed once from the tree. `tests` checks this against the definition above, minute
//! by minute.

mod grid;
mod lead;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use berth_model::{Amount, Span};
use jiff::tz::TimeZone;

pub use grid::{Buckets, Grid, Step, gather};
pub use lead::{BARS_H, LeadTimes, PERCENTS};

use grid::Column;

/// A resource, identified by its index in the input list.
#[derive(Debug, Clone)]
pub struct Part {
    /// The index of its parent resource.
    pub parent: Option<usize>,
    /// The index of its type.
    pub kind: usize,
    pub capacity: Option<Amount>,
    /// When it is out by itself, in any order; the times of its ancestors need not be repeated.
    pub out: Vec<Span>,
}

/// The resources that the overall figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    Leaves,
    /// The resources of one type.
    Kind(usize),
}

/// Collects claims, in any order.
#[derive(Debug)]
pub struct Ledger {
    grid: Grid,
    nodes: Vec<Node>,
    /// The indexes of the resources, each before its descendants, so that a subtree is a contiguous range.
    order: Vec<usize>,
    /// One for each type, and the last for the overall figure.
    used: Vec<Column>,
    available: Vec<Column>,
    resources: Vec<usize>,
}

#[derive(Debug, Clone)]
struct Node {
    kind: usize,
    capacity: Option<Amount>,
    is_counted: bool,
    /// The range of its subtree in `order`.
    run: (usize, usize),
    /// When it is out for any reason: in order, no two touching.
    out: Vec<Span>,
    /// When it or any descendant is out.
    some_out: Vec<Span>,
    /// The weights of a claim on all of it: in `above` for the columns of its ancestors, in `weights` for all
    /// columns.
    above: Vec<(usize, f64)>,
    weights: Vec<(usize, f64)>,
}

/// The seconds of one type, or of everything, in each cell of the grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// How many resources were counted.
    pub resources: usize,
    pub available_s: Vec<f64>,
    pub used_s: Vec<f64>,
}

/// The final figures.
#[derive(Debug, Clone)]
pub struct Usage {
    pub grid: Grid,
    /// By the index of the type.
    pub kinds: Vec<Measured>,
    pub all: Measured,
}

impl Ledger {
    /// `kinds` is the number of types. A parent that is not in the list counts as none.
    pub fn new(
        span: Span,
        zone: TimeZone,
        parts: Vec<Part>,
        kinds: usize,
        counted: Counted,
    ) -> Self {
        let grid = Grid::new(span, zone);
        let columns = vec![grid.column(); kinds + 1];
        let mut ledger = Ledger {
            nodes: Vec::new(),
            order: Vec::new(),
            used: columns.clone(),
            available: columns,
            resources: vec![0; kinds + 1],
            grid,
        };
        ledger.grow(span, parts, counted);
        ledger.count_available(span);
        ledger
    }

    /// The buckets of the grid, before any claim is added.
    pub fn buckets(&self, step: Step) -> Buckets {
        self.grid.buckets(step)
    }

    fn all(&self) -> usize {
        self.used.len() - 1
    }

    fn grow(&mut self, span: Span, parts: Vec<Part>, counted: Counted) {
        let count = parts.len();
        let parents: Vec<Option<usize>> = parts
            .iter()
            .map(|part| part.parent.filter(|parent| *parent < count))
            .collect();
        let mut children = vec![Vec::new(); count];
        for (number, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent].push(number);
            }
        }
        let mut waiting: Vec<usize> = (0..count).filter(|n| parents[*n].is_none()).collect();
        while let Some(number) = waiting.pop() {
            self.order.push(number);
            waiting.extend(&children[number]);
        }
        let all = self.all();
        let node = |(number, part): (usize, &Part)| Node {
            kind: part.kind,
            capacity: part.capacity,
            is_counted: match counted {
                Counted::Leaves => children[number].is_empty(),
                Counted::Kind(kind) => part.kind == kind,
            },
            run: (0, 0),
            out: Vec::new(),
            some_out: Vec::new(),
            above: Vec::new(),
            weights: Vec::new(),
        };
        self.nodes = parts.iter().enumerate().map(node).collect();
        // From the top down: the values of the parent are known.
        for (place, number) in self.order.iter().copied().enumerate() {
            self.nodes[number].run = (place, place + 1);
            let mut out: Vec<Span> = parts[number]
                .out
                .iter()
                .filter_map(|out| out.intersection(span))
                .collect();
            let mut above: BTreeMap<usize, f64> = BTreeMap::new();
            if let Some(parent) = parents[number] {
                out.extend(&self.nodes[parent].out);
                let share = 1.0 / children[parent].len() as f64;
                let parent = &self.nodes[parent];
                for (column, weight) in &parent.above {
                    *above.entry(*column).or_default() += share * weight;
                }
                for column in parent.columns(all) {
                    *above.entry(column).or_default() += share;
                }
            }
            self.nodes[number].out = merged(out);
            self.nodes[number].above = above.into_iter().collect();
        }
        // From the bottom up: the values of the descendants are known.
        let mut below: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); count];
        let mut some_out: Vec<Vec<Span>> = vec![Vec::new(); count];
        for number in self.order.iter().rev().copied() {
            for column in self.nodes[number].columns(all) {
                *below[number].entry(column).or_default() += 1.0;
            }
            let mut own = std::mem::take(&mut some_out[number]);
            own.extend(&self.nodes[number].out);
            let own = merged(own);
            let end = self.nodes[number].run.1;
            if let Some(parent) = parents[number] {
                some_out[parent].extend(&own);
                let run = &mut self.nodes[parent].run;
                run.1 = run.1.max(end);
                for (column, weight) in below[number].clone() {
                    *below[parent].entry(column).or_default() += weight;
                }
            }
            let mut weights = std::mem::take(&mut below[number]);
            let node = &mut self.nodes[number];
            for (column, weight) in &node.above {
                *weights.entry(*column).or_default() += weight;
            }
            node.some_out = own;
            node.weights = weights.into_iter().collect();
        }
    }

    fn count_available(&mut self, span: Span) {
        let all = self.all();
        for node in &self.nodes {
            for column in node.columns(all) {
                self.resources[column] += 1;
            }
            for left in span.minus(&node.out) {
                let weights = node.columns(all).map(|column| (column, 1.0));
                self.grid.add(left, &mut self.available, weights);
            }
        }
    }

    /// Adds a claim on all of a resource or on an amount of it. Calls `tell` with its part of the overall figure:
    /// spans, each with the equivalent number of resources.
    pub fn add(
        &mut self,
        number: usize,
        taken: Span,
        amount: Option<Amount>,
        mut tell: impl FnMut(Span, f64),
    ) {
        let whole = self.grid.span();
        let Some(span) = whole.and_then(|whole| whole.intersection(taken)) else {
            return;
        };
        let Some(node) = self.nodes.get(number) else {
            return;
        };
        let share = match (amount, node.capacity) {
            (Some(amount), Some(of)) => (amount.get() as f64 / of.get() as f64).min(1.0),
            _ => 1.0,
        };
        let all = self.all();
        let next = node
            .some_out
            .partition_point(|out| out.end() <= span.start());
        let is_plain = node
            .some_out
            .get(next)
            .is_none_or(|out| span.end() <= out.start());
        if is_plain {
            let weights = node.weights.iter().map(|(c, weight)| (*c, share * weight));
            self.grid.add(span, &mut self.used, weights);
            tell(span, counted(&node.weights, all) * share);
            return;
        }
        for left in span.minus(&node.out) {
            let weights = node.above.iter().map(|(c, weight)| (*c, share * weight));
            self.grid.add(left, &mut self.used, weights);
            tell(left, counted(&node.above, all) * share);
        }
        for below in &self.order[node.run.0..node.run.1] {
            let below = &self.nodes[*below];
            for left in span.minus(&below.out) {
                let weights = below.columns(all).map(|column| (column, share));
                self.grid.add(left, &mut self.used, weights);
                if below.is_counted {
                    tell(left, share);
                }
            }
        }
    }

    pub fn close(self) -> Usage {
        let columns = self.used.iter().zip(&self.available).zip(&self.resources);
        let mut kinds: Vec<Measured> = columns
            .map(|((used, available), resources)| Measured {
                resources: *resources,
                available_s: self.grid.sums(available),
                used_s: self.grid.sums(used),
            })
            .collect();
        let nothing = Measured {
            resources: 0,
            available_s: Vec::new(),
            used_s: Vec::new(),
        };
        let all = kinds.pop().unwrap_or(nothing);
        Usage {
            grid: self.grid,
            kinds,
            all,
        }
    }
}

impl Node {
    /// The columns that count it.
    fn columns(&self, all: usize) -> impl Iterator<Item = usize> + use<> {
        let counted = self.is_counted.then_some(all);
        [self.kind].into_iter().chain(counted)
    }
}

impl Measured {
    pub fn available_total_s(&self) -> f64 {
        self.available_s.iter().sum()
    }

    pub fn used_total_s(&self) -> f64 {
        self.used_s.iter().sum()
    }
}

fn counted(weights: &[(usize, f64)], all: usize) -> f64 {
    let found = weights.iter().find(|(column, _)| *column == all);
    found.map_or(0.0, |(_, weight)| *weight)
}

/// The same time in order, without overlaps.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start() <= last.end() => *last = last.hull(span),
            _ => merged.push(span),
        }
    }
    merged
}
