//! Keeps the occupied time of a site's timeline, small enough for memory and fast enough to query in every request.
//!
//! Every place of the tree walk has a lane: the firm claims on exactly that resource, ordered by time, 24 bytes each.
//! A query about a resource reads its own lane, the lanes above it and the lanes below it, and no others. It finds
//! its time in each lane by bisection. A change finds its claim the same way and shifts the rest of one lane. So a
//! server can build this index once and update it with each commit.
//!
//! The same claims count as in [`crate::free`]: firm, holding, and not inside another claim. Buffers are ordinary
//! claims. The answers are advice; the database decides when a booking is made.

use std::borrow::Borrow;

use berth_model::claim::{Amount, Claim, Take};
use berth_model::{ResourceId, Span};
use jiff::{SignedDuration, Timestamp};

use crate::rule::{amount_of, is_firm, is_holding};
use crate::tree::Tree;

/// A span in microseconds, the unit of all searches.
pub(crate) type Stretch = (i64, i64);

pub(crate) fn stretch(span: Span) -> Stretch {
    (span.start().as_microsecond(), span.end().as_microsecond())
}

pub(crate) fn span((start, end): Stretch) -> Option<Span> {
    let at = |us| Timestamp::from_microsecond(us).ok();
    Span::new(at(start)?, at(end)?).ok()
}

/// A length in whole microseconds, the precision of spans. A negative length becomes 0.
pub(crate) fn length_us(length: SignedDuration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX).max(0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Held {
    pub start: i64,
    pub end: i64,
    /// The amount that it takes; 0 if it takes the whole resource.
    amount: u64,
}

impl Held {
    fn counting(claim: &Claim) -> Option<Held> {
        let counts = is_holding(claim) && is_firm(claim) && claim.container.is_none();
        let (start, end) = stretch(claim.span);
        let amount = amount_of(claim).unwrap_or(0);
        counts.then_some(Held { start, end, amount })
    }

    /// The amount that it takes of a shared resource.
    pub fn share(&self) -> i64 {
        i64::try_from(self.amount).unwrap_or(i64::MAX)
    }

    pub fn is_whole(&self) -> bool {
        self.amount == 0
    }
}

#[derive(Debug, Clone, Default)]
struct Lane {
    /// In order. Claims on the whole resource never overlap here; claims on amounts may.
    held: Vec<Held>,
    /// Length of the longest claim here. A claim that covers a moment starts at most this long before it.
    longest: i64,
}

impl Lane {
    /// Number of claims that start at `at` or before. Claims are spread almost evenly over a year. This guesses the
    /// position and then widens the range around the guess. A plain bisection would wait for memory at every step,
    /// and a search over all lanes would spend most of its time there.
    fn starting_by(&self, at: i64) -> usize {
        let (Some(first), Some(last)) = (self.held.first(), self.held.last()) else {
            return 0;
        };
        if at < first.start {
            return 0;
        }
        if last.start <= at {
            return self.held.len();
        }
        // Invariant: the claim at `low` starts by then, and the claim at `high` does not.
        let (mut low, mut high) = (0, self.held.len() - 1);
        let part = (at - first.start) as f64 / (last.start - first.start) as f64;
        let guess = ((part * high as f64) as usize).min(high);
        let mut step = 4;
        if self.held[guess].start <= at {
            low = guess;
            while low + step < high && self.held[low + step].start <= at {
                (low, step) = (low + step, 2 * step);
            }
            high = high.min(low + step);
        } else {
            high = guess;
            while low + step < high && self.held[high - step].start > at {
                (high, step) = (high - step, 2 * step);
            }
            low = low.max(high.saturating_sub(step));
        }
        let between = &self.held[low + 1..high];
        low + 1 + between.partition_point(|held| held.start <= at)
    }

    fn meeting(&self, (from, to): Stretch) -> impl Iterator<Item = &Held> {
        let earliest = from.saturating_sub(self.longest);
        let first = self.starting_by(earliest);
        let after = self.held[first..].iter();
        after
            .take_while(move |held| held.start < to)
            .filter(move |held| from < held.end)
    }

    /// Shrinks `free` to the free time around `during`, given the claims of this lane. Returns false if a claim
    /// overlaps `during`.
    fn narrow(&self, during: Stretch, free: &mut Stretch) -> bool {
        let next = self.starting_by(during.1 - 1);
        if let Some(after) = self.held.get(next) {
            free.1 = free.1.min(after.start);
        }
        for before in self.held[..next].iter().rev() {
            // No earlier claim ends later than this.
            if before.start.saturating_add(self.longest) <= free.0 {
                break;
            }
            if before.end > during.0 {
                return false;
            }
            free.0 = free.0.max(before.end);
        }
        true
    }

    fn note_length(&mut self, held: Held) {
        self.longest = self.longest.max(held.end - held.start);
    }
}

#[derive(Debug, Clone)]
pub struct Busy {
    tree: Tree,
    /// Indexed by place, as are all fields below.
    ids: Vec<ResourceId>,
    /// The place of the parent.
    parents: Vec<Option<u32>>,
    /// One past the last place of the subtree.
    ends: Vec<u32>,
    /// The shareable amount; 0 for an indivisible resource.
    capacities: Vec<u64>,
    lanes: Vec<Lane>,
}

/// Buffers that one search reuses for all its queries.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    taken: Vec<Stretch>,
    changes: Vec<(i64, i64)>,
}

impl Busy {
    /// Keeps those of the claims that count. It skips claims on resources of other sites.
    pub fn new(
        tree: Tree,
        capacity_of: impl Fn(ResourceId) -> Option<Amount>,
        claims: impl IntoIterator<Item = impl Borrow<Claim>>,
    ) -> Busy {
        let mut busy = Busy::bare(tree, capacity_of);
        for claim in claims {
            let claim = claim.borrow();
            if let (Some(held), Some(place)) = (Held::counting(claim), busy.place(claim.resource)) {
                busy.lanes[place].held.push(held);
                busy.lanes[place].note_length(held);
            }
        }
        for lane in &mut busy.lanes {
            lane.held.sort_unstable();
            lane.held.shrink_to_fit();
        }
        busy
    }

    fn bare(tree: Tree, capacity_of: impl Fn(ResourceId) -> Option<Amount>) -> Busy {
        let ids = tree.resources().collect();
        let place = |id| tree.reach(id).map(|reach| reach.start as u32);
        let parents = tree.resources().map(|id| tree.ancestors(id).next());
        let parents = parents.map(|parent| parent.and_then(place)).collect();
        let ends = tree
            .resources()
            .map(|id| tree.reach(id).map_or(0, |reach| reach.end as u32))
            .collect();
        let capacities = tree
            .resources()
            .map(|id| capacity_of(id).map_or(0, Amount::get))
            .collect();
        let lanes = vec![Lane::default(); tree.len()];
        Busy {
            tree,
            ids,
            parents,
            ends,
            capacities,
            lanes,
        }
    }

    /// Keeps the claims when the tree or the capacities change. Claims on removed resources are dropped.
    pub fn regrow(
        mut self,
        tree: Tree,
        capacity_of: impl Fn(ResourceId) -> Option<Amount>,
    ) -> Busy {
        let mut grown = Busy::bare(tree, capacity_of);
        for (place, id) in grown.tree.resources().enumerate() {
            if let Some(reach) = self.tree.reach(id) {
                grown.lanes[place] = std::mem::take(&mut self.lanes[reach.start]);
            }
        }
        grown
    }

    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Replaces the claims on exactly this resource.
    pub fn refill<'a>(&mut self, resource: ResourceId, claims: impl Iterator<Item = &'a Claim>) {
        let Some(place) = self.place(resource) else {
            return;
        };
        let mut lane = Lane {
            held: claims.filter_map(Held::counting).collect(),
            longest: 0,
        };
        lane.held.sort_unstable();
        for at in 0..lane.held.len() {
            lane.note_length(lane.held[at]);
        }
        self.lanes[place] = lane;
    }

    /// Adds a claim. Returns false if the claim does not count here.
    pub fn add(&mut self, claim: &Claim) -> bool {
        let (Some(held), Some(place)) = (Held::counting(claim), self.place(claim.resource)) else {
            return false;
        };
        let lane = &mut self.lanes[place];
        let at = lane.held.partition_point(|other| *other < held);
        lane.held.insert(at, held);
        lane.note_length(held);
        true
    }

    /// Removes an equal claim; returns false if there was none. Pass the claim as it was when it was added. Claims
    /// are not distinguished by id: of two with the same resource, span and amount, either one is removed.
    pub fn remove(&mut self, claim: &Claim) -> bool {
        let (Some(held), Some(place)) = (Held::counting(claim), self.place(claim.resource)) else {
            return false;
        };
        let lane = &mut self.lanes[place];
        let found = lane.held.binary_search(&held);
        if let Ok(at) = found {
            lane.held.remove(at);
        }
        found.is_ok()
    }

    /// Replaces a claim that was lengthened, moved, made firm or ended.
    pub fn change(&mut self, before: &Claim, after: &Claim) {
        self.remove(before);
        self.add(after);
    }

    /// Whether `take` of `resource` is free for all of `span`.
    pub fn is_free(&self, resource: ResourceId, take: Take, span: Span) -> bool {
        self.place(resource)
            .is_some_and(|place| self.is_free_at(place, take, stretch(span)))
    }

    /// The parts of `window` of at least this length in which `take` of `resource` is free, in order. No two of them
    /// touch.
    pub fn stretches(
        &self,
        resource: ResourceId,
        take: Take,
        window: Span,
        at_least: SignedDuration,
    ) -> Vec<Span> {
        let mut free = Vec::new();
        if let Some(place) = self.place(resource) {
            let (window, at_least) = (stretch(window), length_us(at_least));
            let keep = |part| free.extend(span(part));
            self.stretches_at(place, take, window, at_least, &mut Scratch::default(), keep);
        }
        free
    }

    pub(crate) fn place(&self, resource: ResourceId) -> Option<usize> {
        self.tree.reach(resource).map(|reach| reach.start)
    }

    pub(crate) fn resources_at(&self, places: &[usize]) -> Vec<ResourceId> {
        places.iter().map(|place| self.ids[*place]).collect()
    }

    pub(crate) fn parent(&self, place: usize) -> Option<usize> {
        self.parents[place].map(|parent| parent as usize)
    }

    /// One past the last place of the subtree that begins at `place`.
    pub(crate) fn end(&self, place: usize) -> usize {
        self.ends[place] as usize
    }

    fn above(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.parent(place), |above| self.parent(*above))
    }

    pub(crate) fn related(&self, a: usize, b: usize) -> bool {
        (a..self.end(a)).contains(&b) || (b..self.end(b)).contains(&a)
    }

    pub(crate) fn capacity(&self, place: usize) -> u64 {
        self.capacities[place]
    }

    /// The claims on `place`, above it or below it that overlap `during`, each with its place.
    pub(crate) fn meeting(
        &self,
        place: usize,
        during: Stretch,
    ) -> impl Iterator<Item = (usize, &Held)> {
        let places = self.above(place).chain(place..self.end(place));
        places.flat_map(move |at| {
            let met = self.lanes[at].meeting(during);
            met.map(move |held| (at, held))
        })
    }

    pub(crate) fn is_free_at(&self, place: usize, take: Take, during: Stretch) -> bool {
        match take {
            Take::Exclusive => self.meeting(place, during).next().is_none(),
            Take::Amount(_) => self
                .free_around(place, take, during, during, &mut Scratch::default())
                .is_some(),
        }
    }

    /// The free stretch of `window` that contains `during`; none if a part of `during` is occupied.
    pub(crate) fn free_around(
        &self,
        place: usize,
        take: Take,
        during: Stretch,
        window: Stretch,
        scratch: &mut Scratch,
    ) -> Option<Stretch> {
        if take == Take::Exclusive {
            let mut free = window;
            let mut places = self.above(place).chain(place..self.end(place));
            return places
                .all(|at| self.lanes[at].narrow(during, &mut free))
                .then_some(free);
        }
        let mut around = None;
        self.stretches_at(place, take, window, during.1 - during.0, scratch, |part| {
            if part.0 <= during.0 && during.1 <= part.1 {
                around = Some(part);
            }
        });
        around
    }

    /// Calls `visit` with each free part of `window` of at least this length, in order.
    pub(crate) fn stretches_at(
        &self,
        place: usize,
        take: Take,
        window: Stretch,
        at_least: i64,
        scratch: &mut Scratch,
        mut visit: impl FnMut(Stretch),
    ) {
        if !self.gather_taken(place, take, window, scratch) {
            return;
        }
        let mut keep = |from: i64, to: i64| {
            if from < to && to - from >= at_least {
                visit((from, to));
            }
        };
        let mut from = window.0;
        for &(start, end) in &scratch.taken {
            keep(from, start);
            from = from.max(end);
        }
        keep(from, window.1);
    }

    /// Collects in `scratch.taken`, by start, the parts of `window` in which `take` of `place` is not free. Returns
    /// false if that is all of it.
    fn gather_taken(
        &self,
        place: usize,
        take: Take,
        window: Stretch,
        scratch: &mut Scratch,
    ) -> bool {
        let Scratch { taken, changes } = scratch;
        taken.clear();
        changes.clear();
        let mut spare = 0;
        if let Take::Amount(wanted) = take {
            match self.capacity(place).checked_sub(wanted.get()) {
                Some(left) => spare = left,
                None => return false,
            }
        }
        let mut lanes_met = 0;
        for at in self.above(place).chain(place..self.end(place)) {
            let before = taken.len();
            for held in self.lanes[at].meeting(window) {
                if held.is_whole() || take == Take::Exclusive {
                    taken.push((held.start, held.end));
                } else {
                    let share = held.share();
                    changes.extend([(held.start, share), (held.end, -share)]);
                }
            }
            lanes_met += usize::from(taken.len() > before);
        }
        over(spare, changes, taken);
        // A single lane is already in order.
        if lanes_met > 1 || !changes.is_empty() {
            taken.sort_unstable();
        }
        true
    }
}

/// Adds to `taken` the stretches in which the sum of these changes exceeds `spare`.
fn over(spare: u64, changes: &mut [(i64, i64)], taken: &mut Vec<Stretch>) {
    changes.sort_unstable();
    let mut sum: i64 = 0;
    let mut since = None;
    for (at, change) in changes.iter() {
        sum = sum.saturating_add(*change);
        let is_over = u64::try_from(sum).is_ok_and(|sum| sum > spare);
        match since {
            None if is_over => since = Some(*at),
            Some(start) if !is_over => {
                taken.push((start, *at));
                since = None;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "busy/tests.rs"]
mod tests;
