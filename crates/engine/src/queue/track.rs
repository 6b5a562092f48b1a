//! A node's time ahead: what runs on it and until when, what is reserved of it, what was promised of it.
//!
//! The fleet knows one moment. A track knows when what is taken comes back and when what is free is wanted by others: how
//! much of a node something may have that begins now and lasts until some moment ([`Track::views`]), and from when on
//! so many tasks could begin and last so long ([`Track::room`]). Both look at the node as a whole, part by part, so a reservation
//! of one GPU is a wall to that GPU and to nothing beside it.

use std::ops::Range;

use crate::fleet::{Left, Piece};

use super::Micros;

/// What takes a part of a node for a time. The caller numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taker(pub u64);

/// A part of a node that somebody has for a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    pub by: Taker,
    pub from: Micros,
    pub to: Micros,
    pub part: Piece,
}

/// What is left of a node for something that begins now and has ended by then.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    pub until: Micros,
    pub left: Left,
}

/// From this moment on so many tasks could begin, until the next step says otherwise.
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
    /// A node on which nothing is taken.
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

    /// All that was taken by this one, or only what it would have taken from now on.
    pub fn release(&mut self, by: Taker) {
        self.taken.retain(|taken| taken.by != by);
    }

    /// Forgets what is over.
    pub fn forget(&mut self, now: Micros) {
        self.taken.retain(|taken| taken.to > now);
    }

    /// What is free at a moment. Where more is promised than there is, as when something overruns, nothing is free of it.
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

    /// What is free for all of a time.
    pub fn free_during(&self, from: Micros, to: Micros) -> Left {
        self.free_without(from, to, |_| false)
    }

    /// What would be free for all of a time, were those gone that can be sent away.
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

    /// What there is in all.
    pub fn cpu_milli(&self) -> u64 {
        self.all.cpu_milli
    }

    /// Who has something of it during a time.
    pub fn takers(&self, from: Micros, to: Micros) -> impl Iterator<Item = Taker> + '_ {
        let there = move |taken: &&Taken| taken.from < to && from < taken.to;
        self.taken.iter().filter(there).map(|taken| taken.by)
    }

    /// Lets a taker have what it has only until this moment.
    pub fn shorten(&mut self, by: Taker, to: Micros) {
        for taken in self.taken.iter_mut().filter(|taken| taken.by == by) {
            taken.to = taken.to.min(to);
        }
    }

    /// Lets a taker that should be gone have what it has until this moment.
    pub fn lengthen(&mut self, by: Taker, to: Micros) {
        for taken in self.taken.iter_mut().filter(|taken| taken.by == by) {
            taken.to = taken.to.max(to);
        }
    }

    /// What something may have that begins now, by when it ends: with each wall it has to be gone by, there is more. The
    /// last view is for what never ends; equal ones are told once.
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

    /// From when on how many tasks could begin here and last so long; `fits` says how many fit into what is left. The
    /// first step is where the time begins that is asked about, the last before its end.
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

    /// The first moment at which so many tasks could begin here and last so long.
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

    /// Every moment at which room may change, in order, until somebody has seen enough.
    fn each_step(
        &self,
        during: Range<Micros>,
        length: Micros,
        gone: impl Fn(Taker) -> bool,
        fits: impl Fn(&Left) -> u64,
        mut is_enough: impl FnMut(Step) -> bool,
    ) {
        // Room grows when something ends, and shrinks when the end of what begins now would reach a wall.
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
