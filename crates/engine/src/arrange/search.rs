//! The search for a re-arrangement.
//!
//! The search puts a unit on a slot. Each unit in the way there must find another slot, perhaps in the same manner.
//! Each unit is settled once. This reaches every existing arrangement: give every unit that is in the way its slot in
//! that arrangement. The unit with the fewest possible slots is placed first. Of its slots, the search prefers those
//! with the fewest units in the way, then the cheapest, then those nearest to the party's other units.
//!
//! The allowance of moves grows from zero upwards, so that a plan with few moves is found before one with many. A
//! crowded board can need more moves than the search can try one by one. Then slots exchange their units (the module
//! `exchange`). If that does not help, units are placed without backtracking. Units that were hard to place are then
//! displaced last, which ends most conflicts. One request never moves more than `MOVES_MAX` resources: people rely on
//! the resources that they were given. The number of steps is always bounded. If the units cannot fit at some single
//! moment, even with every exchange possible then, the search refuses at once.

use berth_model::Take;

use super::board::{Board, SlotId, UnitId};
use super::exchange::exchange;

/// The allowances of moves for the exhaustive search, tried in this order.
const ALLOWANCES: [usize; 6] = [0, 1, 2, 3, 5, 8];
/// Steps of the search for one allowance of moves.
const STEPS_MAX: usize = 250;
/// Slots tried for one unit at one step.
const BRANCHES_MAX: usize = 12;
/// Steps without backtracking, tried when the other methods found nothing.
const PLACINGS_MAX: usize = 2000;
/// The most resources that one request may move.
const MOVES_MAX: usize = 100;

/// Whether at some moment of the party's time there are too few slots for all units, even if the open slots of each
/// were assigned anew.
pub fn is_hopeless(board: &mut Board<'_>, party: usize, units: &[UnitId]) -> bool {
    let during = board.parties[party].during;
    if board.parties[party].take != Take::Exclusive {
        return false;
    }
    let starts = board.parties.iter().map(|other| other.during.0);
    let mut moments: Vec<i64> = starts
        .filter(|start| during.0 <= *start && *start < during.1)
        .collect();
    moments.sort_unstable();
    moments.dedup();
    moments.into_iter().any(|moment| {
        let mut deal = Deal::at(board, moment);
        !units.iter().all(|unit| deal.add(board, *unit))
    })
}

/// An assignment of slots to the units that overlap one moment.
struct Deal {
    owners: Vec<Option<UnitId>>,
}

impl Deal {
    fn at(board: &Board<'_>, moment: i64) -> Deal {
        let mut owners = vec![None; board.slots_len()];
        for (unit, slot) in board.at(moment) {
            let party = board.units[unit].party;
            if board.parties[party].take == Take::Exclusive {
                owners[slot] = Some(unit);
            }
        }
        Deal { owners }
    }

    /// Finds a slot for one more unit by an augmenting path: owners along the path move to other slots.
    fn add(&mut self, board: &mut Board<'_>, unit: UnitId) -> bool {
        let mut seen = Vec::new();
        self.find(board, unit, &mut seen)
    }

    fn find(&mut self, board: &mut Board<'_>, unit: UnitId, seen: &mut Vec<bool>) -> bool {
        let own = board.units[unit].slot;
        let open = board.open(board.units[unit].party).iter();
        let slots: Vec<SlotId> = open.map(|(slot, _)| *slot).chain(own).collect();
        self.owners.resize(board.slots_len(), None);
        seen.resize(board.slots_len(), false);
        // A free slot ends the path, so it looks for one before it moves any owner.
        if let Some(free) = slots.iter().find(|slot| self.owners[**slot].is_none()) {
            self.owners[*free] = Some(unit);
            return true;
        }
        for slot in slots {
            if std::mem::replace(&mut seen[slot], true) {
                continue;
            }
            if let Some(owner) = self.owners[slot]
                && self.find(board, owner, seen)
            {
                self.owners[slot] = Some(unit);
                return true;
            }
        }
        false
    }
}

/// Places these units and moves others where needed. If it finds no solution, it returns false and changes nothing.
pub fn solve(board: &mut Board<'_>, units: Vec<UnitId>) -> bool {
    for moves in ALLOWANCES {
        let mut search = Search {
            board,
            refuted: Vec::new(),
            steps: 0,
            is_cut: false,
        };
        let is_found = search.place(&mut units.clone(), moves);
        let is_cut = search.is_cut;
        if is_found {
            for unit in &mut board.units {
                unit.is_settled = false;
            }
            return true;
        }
        if !is_cut {
            // The search was complete.
            return false;
        }
    }
    let before = board.stands();
    let mut is_found = false;
    if exchange(board, &units) || jostle(board, units) {
        go_back(board, &before);
        is_found = moved(board, &before) <= MOVES_MAX;
    }
    if !is_found {
        restore(board, &before);
    }
    is_found
}

/// The number of units on another slot than before.
pub fn moved(board: &Board<'_>, before: &[Option<SlotId>]) -> usize {
    let units = board.units.iter().zip(before);
    units
        .filter(|(unit, slot)| slot.is_some() && unit.slot != **slot)
        .count()
}

/// Returns units to their old slots where these are free again, as long as that helps any unit.
fn go_back(board: &mut Board<'_>, before: &[Option<SlotId>]) {
    loop {
        let mut returned = false;
        for (unit, slot) in before.iter().enumerate() {
            let Some(old) = slot.filter(|old| board.units[unit].slot != Some(*old)) else {
                continue;
            };
            if board
                .in_the_way(unit, old)
                .is_some_and(|leaving| leaving.is_empty())
            {
                board.lift(unit);
                board.put(unit, old);
                returned = true;
            }
        }
        if !returned {
            return;
        }
    }
}

/// Puts each unit on the slot whose units were the easiest to place so far, and then places those again.
fn jostle(board: &mut Board<'_>, mut pending: Vec<UnitId>) -> bool {
    // How often a unit of the party displaced others.
    let mut hardness: Vec<u64> = vec![1; board.parties.len()];
    for _ in 0..PLACINGS_MAX {
        let Some(unit) = pending.pop() else {
            return true;
        };
        let party = board.units[unit].party;
        let open = board.open(party).to_vec();
        let best = open
            .into_iter()
            .filter_map(|(slot, cost)| {
                let leaving = board.in_the_way(unit, slot)?;
                let parties = leaving.iter().map(|unit| board.units[*unit].party);
                let hardness: u64 = parties.map(|party| hardness[party]).sum();
                Some(((hardness, leaving.len(), cost, slot), leaving))
            })
            .min();
        let Some(((.., slot), leaving)) = best else {
            return false;
        };
        if !leaving.is_empty() {
            hardness[party] += 1;
        }
        for other in leaving {
            board.lift(other);
            pending.push(other);
        }
        board.put(unit, slot);
    }
    pending.is_empty()
}

pub fn restore(board: &mut Board<'_>, slots: &[Option<SlotId>]) {
    let changed = |unit: &UnitId| board.units[*unit].slot != slots[*unit];
    let changed: Vec<UnitId> = (0..slots.len()).filter(changed).collect();
    for unit in &changed {
        board.lift(*unit);
    }
    for unit in changed {
        if let Some(slot) = slots[unit] {
            board.put(unit, slot);
        }
    }
}

struct Search<'b, 'a> {
    board: &'b mut Board<'a>,
    /// Slots that failed for a unit of a party. Units of one party are alike, so none of them tries these slots again
    /// during the step that tried them.
    refuted: Vec<(usize, SlotId)>,
    steps: usize,
    /// Whether a limit left some placement untried.
    is_cut: bool,
}

struct Opening {
    slot: SlotId,
    leaving: Vec<UnitId>,
}

impl Search<'_, '_> {
    fn place(&mut self, pending: &mut Vec<UnitId>, moves: usize) -> bool {
        if pending.is_empty() {
            return true;
        }
        self.steps += 1;
        if self.steps > STEPS_MAX {
            self.is_cut = true;
            return false;
        }
        let Some((at, options)) = self.most_constrained(pending, moves) else {
            return false;
        };
        let unit = pending.remove(at);
        let party = self.board.units[unit].party;
        let (waiting, refuted) = (pending.len(), self.refuted.len());
        for option in options {
            let moved: Vec<(UnitId, SlotId)> = option
                .leaving
                .iter()
                .filter_map(|unit| Some((*unit, self.board.lift(*unit)?)))
                .collect();
            self.board.put(unit, option.slot);
            self.board.units[unit].is_settled = true;
            pending.extend(&option.leaving);
            if self.place(pending, moves - moved.len()) {
                return true;
            }
            pending.truncate(waiting);
            self.board.units[unit].is_settled = false;
            self.board.lift(unit);
            for (unit, slot) in moved {
                self.board.put(unit, slot);
            }
            if self.steps > STEPS_MAX {
                break;
            }
            self.refuted.push((party, option.slot));
        }
        self.refuted.truncate(refuted);
        pending.insert(at, unit);
        false
    }

    /// The pending unit with the fewest possible slots, by its index in the list, and those slots, the best first.
    /// None if a party has fewer slots than it needs.
    fn most_constrained(
        &mut self,
        pending: &[UnitId],
        moves: usize,
    ) -> Option<(usize, Vec<Opening>)> {
        let mut best: Option<(usize, Vec<Opening>)> = None;
        let mut seen: Vec<usize> = Vec::new();
        for (at, unit) in pending.iter().enumerate() {
            let party = self.board.units[*unit].party;
            if seen.contains(&party) {
                continue;
            }
            seen.push(party);
            let alike = pending[at..]
                .iter()
                .filter(|unit| self.board.units[**unit].party == party);
            let needed = alike.count();
            let options = self.options(*unit, moves);
            if options.len() < needed {
                return None;
            }
            let fewer = |best: &(usize, Vec<Opening>)| options.len() < best.1.len();
            if best.as_ref().is_none_or(fewer) {
                best = Some((at, options));
            }
        }
        let (at, mut options) = best?;
        if options.len() > BRANCHES_MAX {
            self.is_cut = true;
            options.truncate(BRANCHES_MAX);
        }
        Some((at, options))
    }

    fn options(&mut self, unit: UnitId, moves: usize) -> Vec<Opening> {
        let party = self.board.units[unit].party;
        let open = self.board.open(party).to_vec();
        let fellows = self.board.slots_of(party);
        let mut options = Vec::new();
        for (slot, cost) in open {
            if self.refuted.contains(&(party, slot)) {
                continue;
            }
            let Some(leaving) = self.board.in_the_way(unit, slot) else {
                continue;
            };
            if leaving.len() > moves {
                self.is_cut = true;
                continue;
            }
            let spread = self.board.spread(slot, &fellows);
            options.push((
                (leaving.len(), cost, spread, slot),
                Opening { slot, leaving },
            ));
        }
        options.sort_by_key(|(rank, _)| *rank);
        options.into_iter().map(|(_, option)| option).collect()
    }
}
