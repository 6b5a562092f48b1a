//! Turns plain numbers into an operation worth trying on a timeline.
//!
//! Operations drawn blindly are nearly all refused, since they name things that do not exist. This module reads the
//! state. It names existing resources and claims, respects containers and capacities about half of the time, and
//! occasionally names something wrong on purpose. The same numbers and the same state always give the same operation.
//! So a run is replayed from its seed, and a failing run shrinks number by number.

use berth_model::claim::{Amount, Claim, Firmness, Holder, Standing, Take};
use berth_model::{ClaimId, ReservationId, ResourceId, SiteId, Span};
use jiff::{SignedDuration, Timestamp};

use super::{Operation, Timeline};
use crate::rule::is_holding;

/// The input for one operation; any numbers are valid.
pub type Numbers = [u16; 16];

/// The site and the time range of the drawn claims. All moments are whole minutes from `start` on.
#[derive(Debug, Clone, Copy)]
pub struct Ground {
    pub site: SiteId,
    pub start: Timestamp,
    pub minutes: u16,
    /// The most resources that are added.
    pub resources: u16,
}

/// The next operation for a timeline in this state.
pub fn operation(ground: &Ground, timeline: &Timeline, numbers: &Numbers) -> Operation {
    Hand {
        ground,
        timeline,
        numbers: numbers.iter(),
    }
    .operation()
}

struct Hand<'a> {
    ground: &'a Ground,
    timeline: &'a Timeline,
    numbers: std::slice::Iter<'a, u16>,
}

impl<'a> Hand<'a> {
    /// A number below `end`; zero once all are used up.
    fn below(&mut self, end: u16) -> u16 {
        self.numbers.next().map_or(0, |number| number % end.max(1))
    }

    fn one_in(&mut self, times: u16) -> bool {
        self.below(times) == times - 1
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        let count = u16::try_from(from.len()).unwrap_or(u16::MAX);
        from.get(usize::from(self.below(count))).copied()
    }

    fn operation(&mut self) -> Operation {
        let wanted = usize::from(self.ground.resources);
        match self.below(32) {
            0..8 if self.timeline.tree.len() < wanted => self.add_resource(),
            0..12 => Operation::Insert(vec![self.new_claim(0)]),
            12..14 => Operation::Insert(vec![self.new_claim(0), self.new_claim(1)]),
            14..17 => Operation::InsertFirmly {
                claim: self.new_claim(0),
                now: self.moment(),
            },
            17..20 => {
                let (claim, span) = (self.claim(), self.other_span());
                Operation::SetSpan { claim, span }
            }
            20..22 => {
                let (claim, span) = (self.claim(), self.other_span());
                Operation::SetSpanWithInside { claim, span }
            }
            22..25 => {
                let (claim, resource) = (self.claim(), self.resource());
                let take = self.take(resource);
                Operation::Rebind {
                    claim,
                    resource,
                    take,
                }
            }
            25 => {
                let (claim, at) = (self.claim(), self.moment());
                Operation::Release { claim, at }
            }
            26 => {
                let (claim, at) = (self.claim(), self.moment());
                Operation::ReleaseWithInside { claim, at }
            }
            27..31 => Operation::MoveSubtree {
                resource: self.resource(),
                under: self.parent(),
            },
            _ => Operation::SetCapacity {
                resource: self.resource(),
                capacity: self.capacity(),
            },
        }
    }

    fn add_resource(&mut self) -> Operation {
        let next = self.timeline.tree.len() as u64;
        Operation::AddResource {
            resource: ResourceId::from_parts(next, &[0; 10]),
            parent: self.parent(),
            capacity: self.capacity(),
        }
    }

    fn resource(&mut self) -> ResourceId {
        let known: Vec<ResourceId> = self.timeline.tree.resources().collect();
        let stranger = ResourceId::from_parts(u64::from(u32::MAX), &[0; 10]);
        match self.one_in(64) {
            true => stranger,
            false => self.pick(&known).unwrap_or(stranger),
        }
    }

    fn parent(&mut self) -> Option<ResourceId> {
        (!self.one_in(5))
            .then(|| self.resource())
            .filter(|_| !self.timeline.tree.is_empty())
    }

    fn capacity(&mut self) -> Option<Amount> {
        let amount = u64::from(self.below(8)) + 1;
        self.one_in(3).then(|| Amount::new(amount).ok()).flatten()
    }

    fn fresh(&self, nth: u64) -> u64 {
        self.timeline.claims.len() as u64 + nth
    }

    fn holding(&self) -> Vec<&'a Claim> {
        self.timeline
            .claims()
            .filter(|claim| is_holding(claim))
            .collect()
    }

    fn claim(&mut self) -> ClaimId {
        let (holding, any) = (self.holding(), self.one_in(16));
        let all: Vec<ClaimId> = self.timeline.claims().map(|claim| claim.id).collect();
        let holding: Vec<ClaimId> = holding.into_iter().map(|claim| claim.id).collect();
        let unknown = ClaimId::from_parts(self.fresh(99), &[0; 10]);
        self.pick(if any { &all } else { &holding })
            .unwrap_or(unknown)
    }

    fn moment(&mut self) -> Timestamp {
        self.minute(self.ground.minutes)
    }

    fn minute(&mut self, end: u16) -> Timestamp {
        let minute = SignedDuration::from_mins(i64::from(self.below(end)));
        self.ground
            .start
            .checked_add(minute)
            .unwrap_or(self.ground.start)
    }

    /// Mostly short spans, so that many fit.
    fn span(&mut self) -> Span {
        let start = self.moment();
        let longest = if self.one_in(4) {
            self.ground.minutes
        } else {
            6
        };
        let minutes = i64::from(self.below(longest)) + 1;
        a_span(
            start,
            start
                .checked_add(SignedDuration::from_mins(minutes))
                .unwrap_or(start),
        )
    }

    /// A span within another, as most claims inside a claim need.
    fn span_within(&mut self, outer: Span) -> Span {
        let drawn = self.span();
        drawn.intersection(outer).unwrap_or(outer)
    }

    /// A claim's span changed at one end, or any other span.
    fn other_span(&mut self) -> Span {
        let drawn = self.span();
        let holding = self.holding();
        let near = holding
            .into_iter()
            .map(|claim| claim.span)
            .find(|span| span.overlaps(drawn));
        match (near, self.below(4)) {
            (Some(near), 0) => a_span(near.start(), drawn.end()),
            (Some(near), 1) => a_span(drawn.start(), near.end()),
            (Some(near), 2) => near.intersection(drawn).unwrap_or(near),
            _ => drawn,
        }
    }

    fn take(&mut self, resource: ResourceId) -> Take {
        let divisible = self.timeline.capacity(resource);
        let amount = u64::from(self.below(4)) + 1;
        // Claims on a divisible resource mostly take amounts; claims on an indivisible one almost never do.
        let shares = if divisible.is_some() {
            !self.one_in(5)
        } else {
            self.one_in(24)
        };
        match Amount::new(amount) {
            Ok(amount) if shares => Take::Amount(amount),
            _ => Take::Exclusive,
        }
    }

    /// Mostly a holding claim.
    fn container(&mut self) -> Option<&'a Claim> {
        let candidates = match self.one_in(12) {
            true => self.timeline.claims().collect(),
            false => self.holding(),
        };
        self.pick(&candidates)
    }

    fn new_claim(&mut self, nth: u64) -> Claim {
        let number = if self.one_in(32) { 0 } else { self.fresh(nth) };
        let container = self.one_in(3).then(|| self.container()).flatten();
        let (resource, span) = match container {
            Some(container) if !self.one_in(8) => {
                let reach = std::iter::once(container.resource)
                    .chain(self.timeline.tree.descendants(container.resource));
                let reach: Vec<ResourceId> = reach.collect();
                let resource = self.pick(&reach).unwrap_or(container.resource);
                (resource, self.span_within(container.span))
            }
            _ => (self.resource(), self.span()),
        };
        let grace = SignedDuration::from_mins(2);
        Claim {
            id: ClaimId::from_parts(number, &[0; 10]),
            site: self.ground.site,
            resource,
            span,
            take: self.take(resource),
            firmness: match self.one_in(3) {
                true => Firmness::Yielding { grace },
                false => Firmness::Firm,
            },
            container: container.map(|container| container.id),
            holder: Holder::Reservation(ReservationId::from_parts(number, &[0; 10])),
            standing: Standing::Holding,
        }
    }
}

/// The span between two moments in either order; one minute if they are equal.
fn a_span(a: Timestamp, b: Timestamp) -> Span {
    let (start, end) = (a.min(b), a.max(b));
    let later = start
        .checked_add(SignedDuration::from_mins(1))
        .unwrap_or(end);
    match Span::new(start, end.max(later)) {
        Ok(span) => span,
        Err(error) => panic!("the ground lies outside the years that are kept: {error}"),
    }
}
