//! Lays out a planned maintenance window around or over the bookings in its way.
//!
//! A window consists of ordinary claims, so it cannot overlap a booking. For every booking in the way an admin
//! chooses: keep it and lay the window around it, move it to other resources of its kind, or cancel it. The window is
//! laid out only when every booking has a choice, so that nobody loses a booking by oversight.

use berth_model::{ReservationId, ResourceId, Span};

use crate::tree::Tree;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The booking stays. The window leaves out its resources and time.
    Keep,
    /// The booking gets other resources for its time. The caller has found them.
    Move,
    /// The booking ends before the window. The server notifies its owner.
    Cancel,
}

/// A booking that may be in the window's way, and the choice for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InTheWay {
    pub reservation: ReservationId,
    /// The resources that it holds, and when.
    pub claims: Vec<(ResourceId, Span)>,
    pub choice: Option<Choice>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// The window's own claims, all exclusive; the claims of one resource are in order of time. They overlap neither
    /// each other nor a kept booking. A resource that kept bookings fill has none.
    pub claims: Vec<(ResourceId, Span)>,
    /// `cancel` and `moved` are in the order of the given bookings.
    pub cancel: Vec<ReservationId>,
    pub moved: Vec<ReservationId>,
}

/// The bookings in the way without a choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} booking(s) stand in the window's way; say for each whether to keep, to move or to cancel it", .0.len())]
pub struct Undecided(pub Vec<ReservationId>);

/// Lays out a window of `span` on `resources`. Bookings that are not in the way need no choice, and any choice for
/// them is ignored.
pub fn lay(
    tree: &Tree,
    span: Span,
    resources: &[ResourceId],
    bookings: &[InTheWay],
) -> Result<Layout, Undecided> {
    let is_met = |(resource, held): &(ResourceId, Span)| {
        held.overlaps(span)
            && resources
                .iter()
                .any(|wanted| tree.related(*wanted, *resource))
    };
    let in_the_way: Vec<&InTheWay> = bookings
        .iter()
        .filter(|booking| booking.claims.iter().any(is_met))
        .collect();
    let those = |choice: Option<Choice>| {
        let chosen = in_the_way
            .iter()
            .filter(move |booking| booking.choice == choice);
        chosen
            .map(|booking| booking.reservation)
            .collect::<Vec<_>>()
    };

    let undecided = those(None);
    if !undecided.is_empty() {
        return Err(Undecided(undecided));
    }
    let kept = in_the_way
        .iter()
        .filter(|booking| booking.choice == Some(Choice::Keep));
    let kept: Vec<(ResourceId, Span)> = kept
        .flat_map(|booking| booking.claims.iter().copied())
        .collect();
    Ok(Layout {
        claims: around(tree, span, resources, &kept),
        cancel: those(Some(Choice::Cancel)),
        moved: those(Some(Choice::Move)),
    })
}

fn around(
    tree: &Tree,
    span: Span,
    resources: &[ResourceId],
    kept: &[(ResourceId, Span)],
) -> Vec<(ResourceId, Span)> {
    // From the top of the tree downwards. If a server is listed together with its rack, the rack's window covers it,
    // except while a booking elsewhere in the rack interrupts that window.
    let mut downwards: Vec<ResourceId> = resources.to_vec();
    downwards.sort_by_key(|resource| (tree.depth(*resource), *resource));
    downwards.dedup();
    let mut laid: Vec<(ResourceId, Span)> = Vec::new();
    for resource in downwards {
        let taken = kept
            .iter()
            .chain(&laid)
            .filter(|(other, _)| tree.related(resource, *other));
        let holes: Vec<Span> = taken.map(|(_, held)| *held).collect();
        laid.extend(
            span.minus(&holes)
                .into_iter()
                .map(|piece| (resource, piece)),
        );
    }
    laid
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixture::{at, reservation, resource, span, tree};

    /// rack 0 > servers 1, 2; server 1 > GPUs 3, 4; rack 5.
    fn lab() -> Tree {
        tree(&[None, Some(0), Some(0), Some(1), Some(1), None])
    }

    fn booking(id: u64, claims: &[(u64, Span)], choice: Option<Choice>) -> InTheWay {
        let claims = claims
            .iter()
            .map(|(on, span)| (resource(*on), *span))
            .collect();
        InTheWay {
            reservation: reservation(id),
            claims,
            choice,
        }
    }

    #[test]
    fn nothing_is_laid_before_all_is_decided() {
        let bookings = [
            booking(1, &[(3, span(0, 5))], None),
            booking(2, &[(2, span(0, 5))], None),
            booking(3, &[(0, span(8, 9))], Some(Choice::Keep)),
            booking(4, &[(5, span(0, 5)), (1, span(9, 10))], None),
            booking(5, &[(1, span(10, 15))], None),
        ];
        let undecided = lay(&lab(), span(0, 10), &[resource(1)], &bookings).unwrap_err();
        assert_eq!(undecided, Undecided([1, 4].map(reservation).to_vec()));
        assert!(undecided.to_string().starts_with("2 booking(s)"));
    }

    #[test]
    fn the_window_goes_around_what_is_kept_and_over_the_rest() {
        let bookings = [
            booking(1, &[(3, span(2, 4)), (2, span(2, 4))], Some(Choice::Keep)),
            booking(2, &[(4, span(6, 8))], Some(Choice::Cancel)),
            booking(3, &[(5, span(0, 9))], Some(Choice::Cancel)),
            booking(4, &[(3, span(8, 9))], Some(Choice::Move)),
        ];
        let layout = lay(&lab(), span(0, 10), &[resource(1), resource(4)], &bookings).unwrap();
        let expected = [(1, span(0, 2)), (1, span(4, 10)), (4, span(2, 4))];
        assert_eq!(
            layout.claims,
            expected.map(|(on, span)| (resource(on), span))
        );
        assert_eq!(
            layout.cancel,
            [reservation(2)],
            "what is not in the way stays"
        );
        assert_eq!(layout.moved, [reservation(4)]);
    }

    #[test]
    fn a_kept_booking_can_leave_no_window_at_all() {
        let bookings = [booking(1, &[(0, span(-5, 50))], Some(Choice::Keep))];
        let layout = lay(&lab(), span(0, 10), &[resource(3)], &bookings).unwrap();
        assert_eq!(layout, Layout::default());
    }

    prop_compose! {
        fn a_booking()(
            id in 0u64..9,
            claims in prop::collection::vec((0u64..6, 0i64..20, 1i64..8), 1..3),
            choice in prop::sample::select(vec![Choice::Keep, Choice::Move, Choice::Cancel]),
        ) -> InTheWay {
            let held = |(on, start, length)| (on, span(start, start + length));
            let claims: Vec<(u64, Span)> = claims.into_iter().map(held).collect();
            booking(id, &claims, Some(choice))
        }
    }

    proptest! {
        /// Minute by minute: every wanted resource is under maintenance unless a kept booking is in the way. The
        /// window's claims overlap neither each other nor a kept booking.
        #[test]
        fn a_window_covers_all_it_can(
            bookings in prop::collection::vec(a_booking(), 0..6),
            wanted in prop::collection::vec(0u64..6, 1..4),
        ) {
            let (lab, window) = (lab(), span(2, 18));
            let wanted: Vec<ResourceId> = wanted.into_iter().map(resource).collect();
            let layout = lay(&lab, window, &wanted, &bookings).unwrap();
            let kept: Vec<(ResourceId, Span)> = bookings
                .iter()
                .filter(|booking| booking.choice == Some(Choice::Keep))
                .flat_map(|booking| booking.claims.clone())
                .collect();
            for minute in 2..18 {
                let now = |held: &&(ResourceId, Span)| held.1.contains_moment(at(minute));
                for resource in &wanted {
                    let related = |held: &&(ResourceId, Span)| lab.related(held.0, *resource);
                    let covered = layout.claims.iter().filter(now).any(|(on, _)| {
                        lab.is_at_or_below(*resource, *on)
                    });
                    let left_alone = kept.iter().filter(now).any(|held| related(&held));
                    prop_assert_eq!(covered, !left_alone, "{} at {}", resource, minute);
                }
            }
            for (place, a) in layout.claims.iter().enumerate() {
                prop_assert!(window.contains(a.1));
                for b in layout.claims[place + 1..].iter().chain(&kept) {
                    prop_assert!(!(lab.related(a.0, b.0) && a.1.overlaps(b.1)), "{a:?} {b:?}");
                }
            }
        }
    }
}
