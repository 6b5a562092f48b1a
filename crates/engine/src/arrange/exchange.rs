//! Makes room by exchanging the units of two slots from some moment on.
//!
//! When similar resources are full, there is often room at every moment but never on one resource for long. Then a
//! unit begins on a slot that is free at its start. When another unit begins on that slot, the slot exchanges all
//! that follows with a slot that is free at that moment, up to the next moment at which both are free. So the unit
//! continues, and each exchange moves a handful of units. Placing units one by one would move a hundred for the same
//! result.

use std::cmp::Ordering;

use berth_model::Take;

use super::board::{Board, SlotId, Stand, UnitId};
use super::search::{moved, restore};

/// Number of first slots to try; the one with the fewest moves wins.
const BEGINNINGS_MAX: usize = 12;
/// Exchanges tried from one first slot, and how many of them at one moment.
const EXCHANGES_MAX: usize = 32;
const BRANCHES_MAX: usize = 3;

/// Places these units one after the other. If that is impossible, it returns false and changes nothing.
pub fn exchange(board: &mut Board<'_>, units: &[UnitId]) -> bool {
    let before = board.stands();
    for unit in units {
        let Some(begin) = best_beginning(board, *unit) else {
            unsettle(board, units);
            restore(board, &before);
            return false;
        };
        begin_on(board, *unit, begin);
        board.units[*unit].is_settled = true;
    }
    unsettle(board, units);
    true
}

fn unsettle(board: &mut Board<'_>, units: &[UnitId]) {
    for unit in units {
        board.units[*unit].is_settled = false;
    }
}

/// The first slot from which a unit can be placed with the fewest moves.
fn best_beginning(board: &mut Board<'_>, unit: UnitId) -> Option<SlotId> {
    let (start, _) = board.during(unit);
    let party = board.units[unit].party;
    if board.parties[party].take != Take::Exclusive {
        return None;
    }
    let open: Vec<SlotId> = board.open(party).iter().map(|(slot, _)| *slot).collect();
    let free = |slot: &SlotId| board.is_apart(*slot) && board.is_free_at(*slot, start);
    let beginnings: Vec<SlotId> = open.into_iter().filter(free).take(BEGINNINGS_MAX).collect();
    let before = board.stands();
    let mut best: Option<(usize, SlotId)> = None;
    for slot in beginnings {
        if begin_on(board, unit, slot) {
            let moves = moved(board, &before);
            if best.is_none_or(|(fewest, _)| moves < fewest) {
                best = Some((moves, slot));
            }
        }
        restore(board, &before);
    }
    best.map(|(_, slot)| slot)
}

/// Puts a unit on a slot that is free at its start, and exchanges the units that follow there. If that is impossible,
/// it returns false and changes nothing.
fn begin_on(board: &mut Board<'_>, unit: UnitId, slot: SlotId) -> bool {
    let (start, _) = board.during(unit);
    go_on(board, unit, slot, start, &mut 0)
}

/// Continues from `reached`; the slot is free up to that moment.
fn go_on(
    board: &mut Board<'_>,
    unit: UnitId,
    slot: SlotId,
    reached: i64,
    tried: &mut usize,
) -> bool {
    let (_, end) = board.during(unit);
    let next = board.from(slot, reached).first().copied();
    let Some(next) = next.filter(|next| next.during.0 < end) else {
        board.put(unit, slot);
        return true;
    };
    for exchange in best_exchanges(board, slot, next, end) {
        *tried += 1;
        if *tried > EXCHANGES_MAX {
            return false;
        }
        exchange.apply(board, slot);
        if go_on(board, unit, slot, next.during.0, tried) {
            return true;
        }
        exchange.undo(board, slot);
    }
    false
}

struct Exchange {
    with: SlotId,
    /// The units that leave the slot for the other, and the units that come from there.
    leaving: Vec<UnitId>,
    coming: Vec<UnitId>,
    /// How much longer the slot is then free.
    gained: i64,
}

impl Exchange {
    fn moves(&self) -> usize {
        self.leaving.len() + self.coming.len()
    }

    /// Compares the moves per time gained. It multiplies crosswise, since both are whole numbers.
    fn by_cost(&self, other: &Exchange) -> Ordering {
        let cost =
            |one: &Exchange, other: &Exchange| one.moves() as i128 * i128::from(other.gained);
        cost(self, other).cmp(&cost(other, self))
    }

    fn apply(&self, board: &mut Board<'_>, slot: SlotId) {
        self.put(board, self.with, slot);
    }

    fn undo(&self, board: &mut Board<'_>, slot: SlotId) {
        self.put(board, slot, self.with);
    }

    fn put(&self, board: &mut Board<'_>, leaving_to: SlotId, coming_to: SlotId) {
        for unit in self.leaving.iter().chain(&self.coming) {
            board.lift(*unit);
        }
        for unit in &self.leaving {
            board.put(*unit, leaving_to);
        }
        for unit in &self.coming {
            board.put(*unit, coming_to);
        }
    }
}

/// The best exchanges when `next` begins on `slot`, the best first.
fn best_exchanges(board: &mut Board<'_>, slot: SlotId, next: Stand, end: i64) -> Vec<Exchange> {
    let (party, from) = (board.units[next.unit].party, next.during.0);
    let others: Vec<SlotId> = board.open(party).iter().map(|(slot, _)| *slot).collect();
    let mut found: Vec<Exchange> = Vec::new();
    for with in others {
        if with != slot && board.is_apart(with) && board.is_free_at(with, from) {
            found.extend(exchange_of(board, slot, with, from, end));
        }
    }
    found.sort_by(Exchange::by_cost);
    found.truncate(BRANCHES_MAX);
    found
}

/// The exchange of two slots from a moment on. None if a unit may not move, or no time is gained.
fn exchange_of(
    board: &mut Board<'_>,
    slot: SlotId,
    with: SlotId,
    from: i64,
    end: i64,
) -> Option<Exchange> {
    let ours = board.from(slot, from).to_vec();
    let theirs = board.from(with, from).to_vec();
    let (mut here, mut there) = (0, 0);
    let mut until = from;
    // The exchange continues while either slot is occupied.
    loop {
        let next_here = ours.get(here).filter(|stand| stand.during.0 <= until);
        let next_there = theirs.get(there).filter(|stand| stand.during.0 < until);
        match (next_here, next_there) {
            (Some(stand), _) if stand.during.0 < until || until == from => {
                until = until.max(stand.during.1);
                here += 1;
            }
            (_, Some(stand)) => {
                until = until.max(stand.during.1);
                there += 1;
            }
            _ => break,
        }
    }
    let (leaving, coming) = (&ours[..here], &theirs[..there]);
    let free_until = match coming.first() {
        Some(first) => first.during.0,
        None => ours.get(here).map_or(end, |next| next.during.0),
    };
    let gained = free_until.min(end) - from;
    let may_go = gained > 0
        && leaving
            .iter()
            .all(|stand| board.may_stand(stand.unit, with))
        && coming.iter().all(|stand| board.may_stand(stand.unit, slot));
    may_go.then(|| Exchange {
        with,
        leaving: leaving.iter().map(|stand| stand.unit).collect(),
        coming: coming.iter().map(|stand| stand.unit).collect(),
        gained,
    })
}
