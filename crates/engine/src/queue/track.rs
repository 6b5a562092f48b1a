//! The timeline of one node: running workloads with their ends, reservations, and promises.
//!
//! The fleet knows one moment. A track knows when taken resources are released and when free ones are claimed by
//! others. It answers two questions: how much of the node a workload may have if it starts now and ends by some
//! moment ([`Track::views`]), and from when on how many tasks could start and last for some time ([`Track::room`]).
//! Both work on each part of the node separately: a reservation of one GPU is a wall for that GPU and for nothing
//! else.

use std::ops::Range;

use crate::fleet::{Left, Piece};

use super::Micros;

/// Holds a part of a node for a time: a workload or a reservation. The caller numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taker(pub u64);

/// A part of a node that a taker has for a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    pub by: Taker,
    pub from: Micros,
    pub to: Micros,
    pub part: Piece,
}

/// The part of a node that is free for a workload that starts now and ends by `until`.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    pub until: Micros,
    pub left: Left,
}

/// From `at` on, `tasks` tasks could start, until the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub at: Micros,
    pub tasks: u64,
}

#[derive(Debug, Clone)]
pub struct Track {
    all: Left,
    taken: Vec<Taken>,
}

impl Track {
    /// A node without any claims.
    pub fn new(all: Left) -> Track {
        Track {
            all,
            taken: Vec::new(),
        }
    }

    pub fn take(&mut self, by: Taker, from: Micros, to: Micros, part: Piece) {
        if from < to {
            self.taken.push(Taken { by, from, to, part });
        }
    }

    /// Removes all claims of this taker.
    pub fn release(&mut self, by: Taker) {
        self.taken.retain(|taken| taken.by != by);
    }

    /// Forgets claims that have ended.
    pub fn forget(&mut self, now: Micros) {
        self.taken.retain(|taken| taken.to > now);
    }

    /// The resources that are free at a moment. Where more is claimed than there is (a workload overruns its limit),
    /// zero is free.
    pub fn free_at(&self, at: Micros) -> Left {
        self.left_at(at, &|_| false)
    }

    fn left_at(&self, at: Micros, gone: &impl Fn(Taker) -> bool) -> Left {
        let mut left = self.all.clone();
        let there = |taken: &&Taken| taken.from <= at && at < taken.to && !gone(taken.by);
        for taken in self.taken.iter().filter(there) {
            subtract(&mut left, &taken.part);
        }
        left
    }

    /// The resources that are free during all of a time.
    pub fn free_during(&self, from: Micros, to: Micros) -> Left {
        self.free_without(from, to, |_| false)
    }

    /// The resources that would be free during all of a time if the takers in `gone` were removed.
    pub fn free_without(&self, from: Micros, to: Micros, gone: impl Fn(Taker) -> bool) -> Left {
        let mut left = self.left_at(from, &gone);
        let begins = self.taken.iter().map(|taken| taken.from);
        for at in begins.filter(|at| from < *at && *at < to) {
            left.narrow(&self.left_at(at, &gone));
        }
        left
    }

    pub fn taken(&self) -> &[Taken] {
        &self.taken
    }

    /// All CPU of the node.
    pub fn cpu_milli(&self) -> u64 {
        self.all.cpu_milli
    }

    /// The takers that have a part of the node at some moment of a time.
    pub fn takers(&self, from: Micros, to: Micros) -> impl Iterator<Item = Taker> + '_ {
        let there = move |taken: &&Taken| taken.from < to && from < taken.to;
        self.taken.iter().filter(there).map(|taken| taken.by)
    }

    /// Ends a taker at this moment if it would end later.
    pub fn shorten(&mut self, by: Taker, to: Micros) {
        for taken in self.taken.iter_mut().filter(|taken| taken.by == by) {
            taken.to = taken.to.min(to);
        }
    }

    /// Extends a taker that overruns its end to this moment.
    pub fn lengthen(&mut self, by: Taker, to: Micros) {
        for taken in self.taken.iter_mut().filter(|taken| taken.by == by) {
            taken.to = taken.to.max(to);
        }
    }

    /// The resources that a workload may have if it starts now, by its end. A workload that ends before a wall may
    /// have more. The last view is for workloads without an end; equal views appear once.
    pub fn views(&self, now: Micros) -> Vec<View> {
        let mut walls: Vec<Micros> = self
            .taken
            .iter()
            .map(|taken| taken.from)
            .filter(|from| *from > now)
            .collect();
        walls.sort_unstable();
        walls.dedup();
        let mut left = self.free_at(now);
        let mut views = Vec::new();
        for until in walls {
            let mut narrower = left.clone();
            narrower.narrow(&self.free_at(until));
            if narrower != left {
                let view = std::mem::replace(&mut left, narrower);
                views.push(View { until, left: view });
            }
        }
        views.push(View {
            until: Micros::MAX,
            left,
        });
        views
    }

    /// From which moments on how many tasks could start here and last for `length`. `fits` says how many tasks fit
    /// into the free resources. The first step is at the start of `during`, the last before its end.
    pub fn room(
        &self,
        during: Range<Micros>,
        length: Micros,
        gone: impl Fn(Taker) -> bool,
        fits: impl Fn(&Left) -> u64,
    ) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        self.each_step(during, length, gone, fits, |step| {
            if steps.last().is_none_or(|last| last.tasks != step.tasks) {
                steps.push(step);
            }
            false
        });
        steps
    }

    /// The first moment at which `enough` tasks could start here and last for `length`.
    pub fn first(
        &self,
        during: Range<Micros>,
        length: Micros,
        enough: u64,
        gone: impl Fn(Taker) -> bool,
        fits: impl Fn(&Left) -> u64,
    ) -> Option<Micros> {
        let mut first = None;
        self.each_step(during, length, gone, fits, |step| {
            first = (step.tasks >= enough).then_some(step.at);
            first.is_some()
        });
        first
    }

    /// Calls `is_enough` for every moment at which room may change, in order, until it returns true.
    fn each_step(
        &self,
        during: Range<Micros>,
        length: Micros,
        gone: impl Fn(Taker) -> bool,
        fits: impl Fn(&Left) -> u64,
        mut is_enough: impl FnMut(Step) -> bool,
    ) {
        // Room grows when a taker ends. It shrinks where a task that starts then would reach a wall.
        let there = |taken: &&Taken| !gone(taken.by);
        let mut moments = vec![during.start];
        let mut begins: Vec<(Micros, Option<Left>)> = Vec::new();
        for taken in self.taken.iter().filter(there) {
            moments.push(taken.to);
            moments.push(taken.from.saturating_sub(length) + 1);
            begins.push((taken.from, None));
        }
        moments.retain(|at| during.contains(at));
        moments.sort_unstable();
        moments.dedup();
        begins.sort_unstable_by_key(|(at, _)| *at);
        begins.dedup_by_key(|(at, _)| *at);
        for at in moments {
            let mut left = self.left_at(at, &gone);
            let mut tasks = fits(&left);
            let first = begins.partition_point(|(begin, _)| *begin <= at);
            let end = at.saturating_add(length);
            for (begin, known) in begins[first..]
                .iter_mut()
                .take_while(|(begin, _)| *begin < end)
            {
                if tasks == 0 {
                    break;
                }
                let then = known.get_or_insert_with(|| self.left_at(*begin, &gone));
                left.narrow(then);
                tasks = fits(&left);
            }
            if is_enough(Step { at, tasks }) {
                return;
            }
        }
    }
}

fn subtract(left: &mut Left, part: &Piece) {
    left.cpu_milli = left.cpu_milli.saturating_sub(part.cpu_milli);
    left.memory_bytes = left.memory_bytes.saturating_sub(part.memory_bytes);
    for taken in &part.gpus {
        if let Some(free) = left.gpus.get_mut(usize::from(taken.gpu)) {
            *free = free.saturating_sub(taken.thousandths);
        }
    }
}

#[cfg(test)]
mod tests;
