//! What is taken on a site's timeline, small enough to keep in memory and quick enough to ask per request.
//!
//! Every place of the tree's walk has a lane: the firm claims that stand on exactly that resource, in order of
//! time, 24 bytes each. A question about a resource looks at its own lane, at those above it and at those
//! below it, finds its time in each by bisection, and touches no other. A change finds its claim the same way
//! and shifts the rest of one lane. So a server can build this once and keep it current with what it commits.
//!
//! The same claims count as in [`crate::free`]: firm, holding, and not inside another claim. Buffers are claims
//! like any other. The answers are advice; the database has the last word when a booking is made.

use std::borrow::Borrow;

use berth_model::claim::{Amount, Claim, Take};
use berth_model::{ResourceId, Span};
use jiff::{SignedDuration, Timestamp};

use crate::rule::{amount_of, is_firm, is_holding};
use crate::tree::Tree;

/// A span in microseconds: what the searches reckon in.
pub(crate) type Stretch = (i64, i64);

pub(crate) fn stretch(span: Span) -> Stretch {
    (span.start().as_microsecond(), span.end().as_microsecond())
}

pub(crate) fn span((start, end): Stretch) -> Option<Span> {
    let at = |us| Timestamp::from_microsecond(us).ok();
    Span::new(at(start)?, at(end)?).ok()
}

/// A length in whole microseconds, the precision of spans; none is negative.
pub(crate) fn length_us(length: SignedDuration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX).max(0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Held {
    pub start: i64,
    pub end: i64,
    /// How much it takes by amount; 0 when it takes the whole.
    amount: u64,
}

impl Held {
    fn counting(claim: &Claim) -> Option<Held> {
        let counts = is_holding(claim) && is_firm(claim) && claim.container.is_none();
        let (start, end) = stretch(claim.span);
        let amount = amount_of(claim).unwrap_or(0);
        counts.then_some(Held { start, end, amount })
    }

    /// What it takes of a shared resource.
    pub fn share(&self) -> i64 {
        i64::try_from(self.amount).unwrap_or(i64::MAX)
    }

    pub fn is_whole(&self) -> bool {
        self.amount == 0
    }
}

#[derive(Debug, Clone, Default)]
struct Lane {
    /// In order. Claims that take the whole never overlap here; amounts may.
    held: Vec<Held>,
    /// No claim here is longer. What meets a moment therefore starts no earlier than this before it.
    longest: i64,
}

impl Lane {
    /// How many start at `at` or before. Claims spread over a year are about evenly spread, so this guesses and
    /// then widens around the guess: a plain bisection waits for memory at every step, and a search over all
    /// lanes would spend most of its time so.
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
        // Always: the claim at `low` starts by then, and the one at `high` does not.
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

    /// Makes `free`, a stretch that nothing here meets at `during`, as small as what stands here makes it; false
    /// when something does meet `during`.
    fn narrow(&self, during: Stretch, free: &mut Stretch) -> bool {
        let next = self.starting_by(during.1 - 1);
        if let Some(after) = self.held.get(next) {
            free.1 = free.1.min(after.start);
        }
        for before in self.held[..next].iter().rev() {
            // Nothing further back reaches this far.
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
    /// By place, as all below.
    ids: Vec<ResourceId>,
    /// The place of the parent.
    parents: Vec<Option<u32>>,
    /// One past the last place of the subtree.
    ends: Vec<u32>,
    /// How much there is to share; 0 where a resource is not divisible.
    capacities: Vec<u64>,
    lanes: Vec<Lane>,
}

/// Memory that one search lends to each of its questions.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    taken: Vec<Stretch>,
    changes: Vec<(i64, i64)>,
}

impl Busy {
    /// Takes any claims and keeps those that count. Those on resources of other sites are passed over.
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

    /// The same claims over a changed tree or changed capacities. What stood on a resource that is gone goes
    /// with it.
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

    /// What stands on exactly this resource now; forgets what stood there before.
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

    /// Whether the claim counts here and so was added.
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

    /// Whether a claim like this one, as it was when it was added, stood here and was taken away. Claims are
    /// not told apart by id: of two with the same resource, span and amount either may go.
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

    /// A claim that was `before` is now `after`: longer, elsewhere, firm, over.
    pub fn change(&mut self, before: &Claim, after: &Claim) {
        self.remove(before);
        self.add(after);
    }

    /// Whether `take` of `resource` could be booked for all of `span`.
    pub fn is_free(&self, resource: ResourceId, take: Take, span: Span) -> bool {
        self.place(resource)
            .is_some_and(|place| self.is_free_at(place, take, stretch(span)))
    }

    /// The parts of `window` of at least this length in which `take` of `resource` could be booked, in order;
    /// no two touch.
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

    /// What stands on `place`, above it or below it at some time of `during`, each with its place.
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

    /// The free stretch of `window` that `during` lies in; none when it is not all free.
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

    /// Gives `visit` the free parts of `window` of at least this length, in order.
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

    /// Puts into `scratch.taken`, by start, what `take` of `place` cannot have of `window`. False: all of it.
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
        // One lane is in order already.
        if lanes_met > 1 || !changes.is_empty() {
            taken.sort_unstable();
        }
        true
    }
}

/// Adds to `taken` when these changes sum to more than `spare`.
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
