//! Re-arranges bookings: makes room for a request by moving others, and moves bookings away from a failed resource.
//!
//! A booking of "any N of these" holds specific resources and is movable until it is frozen. A move keeps its span,
//! its number of resources and their kind; only the specific resources change. The caller lists only movable
//! bookings. Pinned bookings, frozen bookings and all other claims are fixed obstacles.
//!
//! Whether all bookings fit is hard to decide in general: it is graph colouring of the overlapping bookings with the
//! resources that each may have. The search is therefore bounded, and may refuse a request that an unlimited search
//! would accept. It never refuses a request that fits without any move. The module `search` describes the method.

use berth_model::claim::Take;
use berth_model::{ReservationId, ResourceId, Span};

use self::board::{Board, Party, UnitId};
use crate::busy::{Busy, stretch};
use crate::placement::{Candidate, choose};

mod board;
mod exchange;
mod search;

/// An existing booking that may be moved.
#[derive(Debug, Clone, Copy)]
pub struct Booking<'a> {
    pub id: ReservationId,
    /// The whole time that it holds, buffers included.
    pub span: Span,
    pub take: Take,
    /// The resources that it may use.
    pub candidates: &'a [ResourceId],
    /// The resources that it uses now; as many as were promised.
    pub resources: &'a [ResourceId],
}

/// A booking request: any `count` of the candidates for all of `span`, buffers included.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    pub span: Span,
    pub take: Take,
    pub count: usize,
    pub candidates: &'a [Candidate],
}

/// The resources that a booking gives up and the resources that replace them, each in the order of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    pub booking: ReservationId,
    pub from: Vec<ResourceId>,
    pub to: Vec<ResourceId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The resources for the request, in the order of the tree.
    pub resources: Vec<ResourceId>,
    /// The moves that must happen first, in the order of the given bookings. Either all of them happen, or none.
    pub moves: Vec<Move>,
}

/// Makes room for a request: without any move if possible, otherwise with as few moves as the search finds. `busy`
/// contains all claims, those of the movable bookings too.
pub fn accept(busy: &Busy, movable: &[Booking<'_>], wish: &Wish<'_>) -> Option<Plan> {
    let Wish {
        span,
        take,
        count,
        candidates,
    } = *wish;
    if let Some(resources) = choose(busy, candidates, take, count, span) {
        let moves = Vec::new();
        return Some(Plan { resources, moves });
    }
    let mut board = Board::new(busy, movable, &[]);
    let (party, units) = board.seat(Party::wishing(busy, wish), count);
    let is_found =
        !search::is_hopeless(&mut board, party, &units) && search::solve(&mut board, units);
    is_found.then(|| Plan {
        resources: board.standing_of(party),
        moves: moves(&board, movable).map(|(_, moved)| moved).collect(),
    })
}

/// Resources that are unusable for a time: broken, or under maintenance together with everything around them.
#[derive(Debug, Clone, Copy)]
pub struct Outage<'a> {
    pub resources: &'a [ResourceId],
    pub span: Span,
}

/// The effect of an outage on a booking. Each move lists the resources really given up and gained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It keeps its number of resources and its time.
    Moved(Move),
    /// It keeps or replaces some of its resources, but has fewer than promised.
    Reduced(Move),
    /// It loses all its resources.
    CannotBeHeld(Move),
}

/// Finds new resources for the movable bookings that an outage hits, and for the bookings that must move to make room
/// for them. Returns their fates in the order of the given bookings. The search places the earliest bookings first. A
/// booking that the outage does not hit never loses resources.
pub fn replace(busy: &Busy, movable: &[Booking<'_>], outage: &Outage<'_>) -> Vec<Fate> {
    let places = outage.resources.iter().filter_map(|id| busy.place(*id));
    let closed: Vec<_> = places.map(|place| (place, stretch(outage.span))).collect();
    let mut board = Board::new(busy, movable, &closed);
    let mut met: Vec<(usize, Vec<UnitId>)> = (0..movable.len())
        .map(|party| (party, board.lift_closed(party)))
        .filter(|(_, units)| !units.is_empty())
        .collect();
    met.sort_by_key(|(party, _)| (movable[*party].span, movable[*party].id));
    for (_, units) in met {
        if !search::solve(&mut board, units.clone()) {
            for unit in units {
                search::solve(&mut board, vec![unit]);
            }
        }
    }
    let fate = |(party, moved): (usize, Move)| match (
        board.standing_of(party).len(),
        movable[party].resources.len(),
    ) {
        (0, _) => Fate::CannotBeHeld(moved),
        (left, promised) if left < promised => Fate::Reduced(moved),
        _ => Fate::Moved(moved),
    };
    moves(&board, movable).map(fate).collect()
}

/// The bookings whose resources have changed, with their indexes.
fn moves<'a>(
    board: &'a Board<'_>,
    movable: &'a [Booking<'_>],
) -> impl Iterator<Item = (usize, Move)> + 'a {
    movable.iter().enumerate().filter_map(|(party, booking)| {
        let now = board.standing_of(party);
        let before = board.in_order(booking.resources);
        let without = |all: &[ResourceId], but: &[ResourceId]| -> Vec<ResourceId> {
            let left = all.iter().filter(|id| !but.contains(id));
            left.copied().collect()
        };
        let moved = Move {
            booking: booking.id,
            from: without(&before, &now),
            to: without(&now, &before),
        };
        (!moved.from.is_empty()).then_some((party, moved))
    })
}

#[cfg(test)]
#[path = "arrange/tests.rs"]
mod tests;
