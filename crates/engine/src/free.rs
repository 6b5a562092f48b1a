//! When a resource is free: the parts of a window that a new firm booking could take.
//!
//! Only firm claims on the site's own timeline count. A firm booking preempts yielding claims, and claims inside a
//! booking concern only its holder. The answer is advice for people and forms; the database decides when the booking
//! is made.

use berth_model::claim::{Amount, Claim, Take};
use berth_model::{ResourceId, Span};
use jiff::Timestamp;

use crate::rule::{amount_of, is_firm, is_holding, usage};
use crate::tree::Tree;

/// The claims that count, ordered by the place of their resource in the tree. A query reads only the claims that
/// matter to its resource. Build it once to query many resources.
#[derive(Debug, Clone)]
pub struct Occupancy<'a> {
    tree: &'a Tree,
    by_place: Vec<(usize, &'a Claim)>,
}

impl<'a> Occupancy<'a> {
    /// Keeps the firm, holding claims on the site's own timeline.
    pub fn new(tree: &'a Tree, claims: impl IntoIterator<Item = &'a Claim>) -> Self {
        let counting = claims
            .into_iter()
            .filter(|claim| is_holding(claim) && is_firm(claim) && claim.container.is_none());
        let mut by_place: Vec<(usize, &Claim)> = counting
            .filter_map(|claim| Some((tree.reach(claim.resource)?.start, claim)))
            .collect();
        by_place.sort_by_key(|(place, claim)| (*place, claim.span, claim.id));
        Occupancy { tree, by_place }
    }

    fn at_places(&self, from: usize, to: usize) -> impl Iterator<Item = &'a Claim> + '_ {
        let first = self.by_place.partition_point(|(place, _)| *place < from);
        let end = self.by_place.partition_point(|(place, _)| *place < to);
        self.by_place[first..end].iter().map(|(_, claim)| *claim)
    }

    /// The claims on `resource`, above it and below it.
    fn related(&self, resource: ResourceId) -> impl Iterator<Item = &'a Claim> + '_ {
        let below = self.tree.reach(resource).unwrap_or(0..0);
        let above = self
            .tree
            .ancestors(resource)
            .filter_map(|above| self.tree.reach(above));
        self.at_places(below.start, below.end)
            .chain(above.flat_map(|above| self.at_places(above.start, above.start + 1)))
    }

    /// The parts of `window` in which `take` of `resource` is free, in order. `capacity` is the shareable amount of
    /// the resource; without a capacity no amount is ever free.
    pub fn free_spans(
        &self,
        resource: ResourceId,
        take: Take,
        capacity: Option<Amount>,
        window: Span,
    ) -> Vec<Span> {
        if !self.tree.contains(resource) {
            return Vec::new();
        }
        let meeting = self
            .related(resource)
            .filter(|claim| claim.span.overlaps(window));
        match take {
            Take::Exclusive => {
                let taken: Vec<Span> = meeting.map(|claim| claim.span).collect();
                window.minus(&taken)
            }
            Take::Amount(wanted) => {
                let room = capacity.map_or(0, Amount::get);
                let Some(spare) = room.checked_sub(wanted.get()) else {
                    return Vec::new();
                };
                let (shared, whole): (Vec<&Claim>, Vec<&Claim>) =
                    meeting.partition(|claim| amount_of(claim).is_some());
                let mut taken: Vec<Span> = whole.into_iter().map(|claim| claim.span).collect();
                taken.extend(over(spare, &shared));
                window.minus(&taken)
            }
        }
    }
}

/// The spans in which these claims together take more than `spare`.
fn over(spare: u64, claims: &[&Claim]) -> Vec<Span> {
    let steps = usage(
        claims
            .iter()
            .filter_map(|claim| Some((claim.span, amount_of(claim)?))),
    );
    let segments = steps.windows(2).filter(|step| step[0].1 > spare);
    segments
        .filter_map(|step| Span::new(step[0].0, step[1].0).ok())
        .collect()
}

/// [`Occupancy::free_spans`] for a single query.
pub fn free_spans<'a>(
    tree: &'a Tree,
    resource: ResourceId,
    take: Take,
    capacity: Option<Amount>,
    claims: impl IntoIterator<Item = &'a Claim>,
    window: Span,
) -> Vec<Span> {
    Occupancy::new(tree, claims).free_spans(resource, take, capacity, window)
}

/// The amount left of a divisible resource, wherever any is left. `taken` lists the times when others hold all of it;
/// `shares` lists the amounts that others hold, and when. In order; neighbours differ in the amount left.
pub fn free_amounts(
    capacity: Amount,
    window: Span,
    taken: &[Span],
    shares: &[(Span, u64)],
) -> Vec<(Span, Amount)> {
    let steps = usage(shares.iter().copied());
    let used_at = |at: Timestamp| {
        let next = steps.partition_point(|(from, _)| *from <= at);
        next.checked_sub(1).map_or(0, |last| steps[last].1)
    };
    let mut left: Vec<(Span, Amount)> = Vec::new();
    for open in window.minus(taken) {
        let cuts = steps.iter().map(|(at, _)| *at);
        let cuts = cuts.filter(|at| open.start() < *at && *at < open.end());
        let mut starts: Vec<Timestamp> = [open.start()].into_iter().chain(cuts).collect();
        starts.dedup();
        let ends = starts.iter().skip(1).copied().chain([open.end()]);
        for (start, end) in starts.iter().zip(ends) {
            let spare = capacity.get().saturating_sub(used_at(*start));
            let (Ok(spare), Ok(span)) = (Amount::new(spare), Span::new(*start, end)) else {
                continue;
            };
            match left.last_mut() {
                Some((last, amount)) if *amount == spare && last.end() == span.start() => {
                    *last = last.hull(span);
                }
                _ => left.push((span, spare)),
            }
        }
    }
    left
}

/// Whether a resource is free at a moment, and until when. Without an end the state lasts to the end of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    Free { until: Option<Timestamp> },
    Busy { until: Option<Timestamp> },
}

/// Reads from the free spans of `window` whether the resource is free at `now`, and for how long.
pub fn free_until(free: &[Span], window: Span, now: Timestamp) -> Outlook {
    let before_the_end = |at: Timestamp| Some(at).filter(|at| *at < window.end());
    match free.iter().find(|span| now < span.end()) {
        Some(span) if span.start() <= now => Outlook::Free {
            until: before_the_end(span.end()),
        },
        next => Outlook::Busy {
            until: next.map(|span| span.start()),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixture::{But, at, claim, resource, span, tree};
    use crate::rule::{conflicts, peak_amount};

    /// rack 0 > server 1 > GPU 2, CPU 3; rack 4.
    fn lab() -> Tree {
        tree(&[None, Some(0), Some(1), Some(1), None])
    }

    #[test]
    fn a_gpu_is_free_when_nothing_above_or_below_is_booked() {
        let lab = lab();
        let claims = [
            claim(1, 0, span(10, 20)),
            claim(2, 2, span(30, 40)),
            claim(3, 3, span(50, 60)).amount(1),
            claim(4, 2, span(70, 80)).yielding(),
            claim(5, 2, span(70, 80)).over(),
            claim(6, 2, span(12, 13)).inside(1),
            claim(7, 4, span(0, 90)),
        ];
        let free = |on| {
            free_spans(
                &lab,
                resource(on),
                Take::Exclusive,
                None,
                &claims,
                span(0, 90),
            )
        };
        assert_eq!(free(2), [span(0, 10), span(20, 30), span(40, 90)]);
        assert_eq!(
            free(1),
            [span(0, 10), span(20, 30), span(40, 50), span(60, 90)]
        );
        assert_eq!(free(4), []);
        assert_eq!(free(99), [], "another site's resource");
    }

    #[test]
    fn an_amount_is_free_where_enough_is_left() {
        let lab = lab();
        let claims = [
            claim(1, 3, span(0, 20)).amount(4),
            claim(2, 3, span(10, 30)).amount(4),
            claim(3, 1, span(40, 50)),
        ];
        let free = |wanted, capacity| {
            let take = Take::Amount(Amount::new(wanted).unwrap());
            let capacity = Amount::new(capacity).ok();
            free_spans(&lab, resource(3), take, capacity, &claims, span(0, 60))
        };
        assert_eq!(free(2, 10), [span(0, 40), span(50, 60)]);
        assert_eq!(free(3, 10), [span(0, 10), span(20, 40), span(50, 60)]);
        assert_eq!(free(7, 10), [span(30, 40), span(50, 60)]);
        assert_eq!(free(11, 10), []);
        assert_eq!(free(1, 0), [], "not divisible");
    }

    #[test]
    fn what_is_left_of_seats_is_said_with_the_time() {
        let seats = |amount| Amount::new(amount).unwrap();
        let shares = [(span(0, 20), 4), (span(10, 30), 8), (span(35, 36), 12)];
        let left = free_amounts(seats(12), span(5, 60), &[span(40, 50)], &shares);
        assert_eq!(
            left,
            [
                (span(5, 10), seats(8)),
                (span(20, 30), seats(4)),
                (span(30, 35), seats(12)),
                (span(36, 40), seats(12)),
                (span(50, 60), seats(12)),
            ]
        );
        assert_eq!(
            free_amounts(seats(3), span(0, 9), &[], &[]),
            [(span(0, 9), seats(3))]
        );
    }

    #[test]
    fn the_outlook_says_until_when() {
        let window = span(0, 60);
        let free = [span(10, 20), span(30, 60)];
        let outlook = |now| free_until(&free, window, at(now));
        assert_eq!(
            outlook(0),
            Outlook::Busy {
                until: Some(at(10))
            }
        );
        assert_eq!(
            outlook(10),
            Outlook::Free {
                until: Some(at(20))
            }
        );
        assert_eq!(
            outlook(20),
            Outlook::Busy {
                until: Some(at(30))
            }
        );
        assert_eq!(outlook(59), Outlook::Free { until: None });
        assert_eq!(
            free_until(&[], window, at(5)),
            Outlook::Busy { until: None }
        );
    }

    prop_compose! {
        fn claims()(
            drawn in prop::collection::vec(
                (0u64..5, 0i64..50, 1i64..12, 1u64..6, any::<bool>()), 0..15),
        ) -> Vec<Claim> {
            let draw = |(id, (on, start, length, amount, soft))| {
                // The claim rule allows amounts only on leaves.
                let drawn = claim(id, on, span(start, start + length));
                let drawn = if on == 3 && amount < 5 { drawn.amount(amount) } else { drawn };
                if soft { drawn.yielding() } else { drawn }
            };
            (0..).zip(drawn).map(draw).collect()
        }
    }

    proptest! {
        /// A minute is free exactly when a booking of that minute would overlap no firm claim.
        #[test]
        fn free_spans_agree_with_every_minute(
            claims in claims(), on in 0u64..5, wanted in prop::option::of(1u64..6),
            start in 0i64..30, length in 1i64..40,
        ) {
            let lab = lab();
            let capacity = (on == 3).then(|| Amount::new(6).unwrap());
            let asked = |span| match wanted {
                Some(wanted) => claim(99, on, span).amount(wanted),
                None => claim(99, on, span),
            };
            let firm: Vec<Claim> = claims.iter().filter(|claim| is_firm(claim)).cloned().collect();
            let window = span(start, start + length);
            let free = free_spans(&lab, resource(on), asked(window).take, capacity, &claims, window);
            for minute in start..start + length {
                let booking = asked(span(minute, minute + 1));
                let meets = firm.iter().any(|claim| conflicts(&lab, &booking, claim));
                let fits = wanted.is_none_or(|wanted| {
                    let taken = peak_amount(&firm, resource(on), None, booking.span);
                    taken + wanted <= capacity.map_or(0, Amount::get)
                });
                let said = free.iter().any(|span| span.contains(booking.span));
                prop_assert_eq!(said, !meets && fits, "minute {}", minute);
            }
            for pair in free.windows(2) {
                prop_assert!(pair[0].end() < pair[1].start(), "in order, and no two that touch");
            }
        }
    }
}
