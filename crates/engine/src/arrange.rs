//! Re-arranging: a wish that fits only when others move, and others that must move because a resource fails.
//!
//! A booking of "any N of these" holds definite resources and stays movable until it is frozen. A move keeps its
//! span, its number and its kind of resources; only which ones changes. What is pinned, frozen or anything
//! else stands fixed: the caller does not list it as movable, and it is then simply in the way.
//!
//! Finding out whether all fit is hard in general (it is colouring the meeting bookings with the resources each
//! may have), so the search is bounded and may refuse what an endless search would accept. It never
//! refuses what fits without any move. The module `search` says how it looks.

use berth_model::claim::Take;
use berth_model::{ReservationId, ResourceId, Span};

use self::board::{Board, Party, UnitId};
use crate::busy::{Busy, stretch};
use crate::placement::{Candidate, choose};

mod board;
mod exchange;
mod search;

/// A standing booking that may be moved.
#[derive(Debug, Clone, Copy)]
pub struct Booking<'a> {
    pub id: ReservationId,
    /// All the time it holds, buffers included.
    pub span: Span,
    pub take: Take,
    /// What it may stand on.
    pub candidates: &'a [ResourceId],
    /// What it stands on; as many as it was promised.
    pub resources: &'a [ResourceId],
}

/// A booking to be made: any `count` of the candidates for all of `span`, buffers included.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    pub span: Span,
    pub take: Take,
    pub count: usize,
    pub candidates: &'a [Candidate],
}

/// What a booking gives up and what it gets for it, each in the order of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    pub booking: ReservationId,
    pub from: Vec<ResourceId>,
    pub to: Vec<ResourceId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What the wish gets, in the order of the tree.
    pub resources: Vec<ResourceId>,
    /// What must move for it first, in the order in which the bookings were given. All of it happens, or none.
    pub moves: Vec<Move>,
}

/// Makes room for a wish: without any move where that is possible, else with as few as the search finds.
/// `busy` has everything that stands, the movable bookings too.
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

/// Resources that cannot be used for a time: broken, or taken for maintenance with everything around them.
#[derive(Debug, Clone, Copy)]
pub struct Outage<'a> {
    pub resources: &'a [ResourceId],
    pub span: Span,
}

/// What becomes of a booking in an outage. Each move says what it really gives up and gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It has as many as before, for the same time.
    Moved(Move),
    /// It keeps some of its resources, or gets others for some of them, but fewer than it was promised.
    Reduced(Move),
    /// Nothing of it is left.
    CannotBeHeld(Move),
}

/// New places for the movable bookings that an outage meets, and for those that move to make room for these,
/// in the order in which they were given. What starts first is placed first; nobody who is not met by
/// the outage gets less than before.
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

/// The bookings that do not stand where they stood, with their numbers.
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
