//! The state of a re-arrangement search: the movable bookings as units on slots, and the fixed claims as obstacles.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use berth_model::ResourceId;
use berth_model::claim::Take;

use super::{Booking, Wish};
use crate::busy::{Busy, Stretch, stretch};
use crate::placement::lowest;

/// An index in [`Board::slots`]. A slot is created on first use.
pub type SlotId = usize;
/// An index in [`Board::units`].
pub type UnitId = usize;

/// A booking or the request.
pub struct Party {
    pub during: Stretch,
    pub take: Take,
    /// The places that it may move to, with their costs.
    candidates: Vec<(usize, u64)>,
}

impl Party {
    pub fn wishing(busy: &Busy, wish: &Wish<'_>) -> Party {
        let lowest = lowest(busy, wish.candidates).into_iter();
        Party {
            during: stretch(wish.span),
            take: wish.take,
            candidates: lowest.map(|placed| (placed.place, placed.cost)).collect(),
        }
    }

    fn standing(busy: &Busy, booking: &Booking<'_>) -> Party {
        let places = booking.candidates.iter().filter_map(|id| busy.place(*id));
        Party {
            during: stretch(booking.span),
            take: booking.take,
            candidates: places.map(|place| (place, 0)).collect(),
        }
    }
}

/// One of the resources that a party has or needs.
pub struct Unit {
    pub party: usize,
    pub slot: Option<SlotId>,
    /// It has its new place in the current search and is not moved again.
    pub is_settled: bool,
}

#[derive(Clone, Copy)]
pub struct Stand {
    pub during: Stretch,
    pub unit: UnitId,
}

struct Slot {
    place: usize,
    /// By start.
    standing: Vec<Stand>,
    /// The slots above and below this one.
    kin: Vec<SlotId>,
}

pub struct Board<'a> {
    busy: &'a Busy,
    closed: &'a [(usize, Stretch)],
    pub parties: Vec<Party>,
    pub units: Vec<Unit>,
    /// By party: the indexes of its units.
    units_of: Vec<Range<UnitId>>,
    slots: Vec<Slot>,
    by_place: BTreeMap<usize, SlotId>,
    /// The claims of the movable bookings in `busy`, by place. `busy` counts them, and the board has them as units.
    lifted: HashMap<usize, Vec<(Stretch, Take)>>,
    /// By party, filled on first use: the slots without a fixed obstacle for it, with their costs.
    open: Vec<Option<Vec<(SlotId, u64)>>>,
}

fn meet(a: Stretch, b: Stretch) -> bool {
    a.0 < b.1 && b.0 < a.1
}

impl<'a> Board<'a> {
    pub fn new(busy: &'a Busy, movable: &[Booking<'_>], closed: &'a [(usize, Stretch)]) -> Self {
        let mut board = Board {
            busy,
            closed,
            parties: Vec::new(),
            units: Vec::new(),
            units_of: Vec::new(),
            slots: Vec::new(),
            by_place: BTreeMap::new(),
            lifted: HashMap::new(),
            open: Vec::new(),
        };
        for booking in movable {
            let party = Party::standing(busy, booking);
            let places = booking.resources.iter().filter_map(|id| busy.place(*id));
            let places: Vec<usize> = places.collect();
            for place in &places {
                let held = (party.during, party.take);
                board.lifted.entry(*place).or_default().push(held);
            }
            let (_, units) = board.seat(party, places.len());
            for (unit, place) in units.into_iter().zip(places) {
                let slot = board.slot(place);
                board.put(unit, slot);
            }
        }
        board
    }

    /// Adds a party of `count` units that have no slot yet.
    pub fn seat(&mut self, party: Party, count: usize) -> (usize, Vec<UnitId>) {
        let number = self.parties.len();
        self.parties.push(party);
        self.open.push(None);
        let first = self.units.len();
        self.units_of.push(first..first + count);
        self.units.extend((0..count).map(|_| Unit {
            party: number,
            slot: None,
            is_settled: false,
        }));
        (number, (first..first + count).collect())
    }

    /// The slot at a place, created on first use.
    fn slot(&mut self, place: usize) -> SlotId {
        if let Some(slot) = self.by_place.get(&place) {
            return *slot;
        }
        let new = self.slots.len();
        let upwards = std::iter::successors(self.busy.parent(place), |at| self.busy.parent(*at));
        let above = upwards.filter_map(|at| self.by_place.get(&at));
        let below = self.by_place.range(place..self.busy.end(place));
        let kin: Vec<SlotId> = above.chain(below.map(|(_, slot)| slot)).copied().collect();
        for slot in &kin {
            self.slots[*slot].kin.push(new);
        }
        self.slots.push(Slot {
            place,
            standing: Vec::new(),
            kin,
        });
        self.by_place.insert(place, new);
        new
    }

    pub fn slots_len(&self) -> usize {
        self.slots.len()
    }

    pub fn during(&self, unit: UnitId) -> Stretch {
        self.parties[self.units[unit].party].during
    }

    pub fn put(&mut self, unit: UnitId, slot: SlotId) {
        let during = self.during(unit);
        let standing = &mut self.slots[slot].standing;
        let at = standing.partition_point(|stand| stand.during < during);
        standing.insert(at, Stand { during, unit });
        self.units[unit].slot = Some(slot);
    }

    /// Removes a unit from its slot, and returns the slot.
    pub fn lift(&mut self, unit: UnitId) -> Option<SlotId> {
        let slot = self.units[unit].slot.take()?;
        self.slots[slot].standing.retain(|stand| stand.unit != unit);
        Some(slot)
    }

    /// The slot of each unit.
    pub fn stands(&self) -> Vec<Option<SlotId>> {
        self.units.iter().map(|unit| unit.slot).collect()
    }

    /// Whether no unit is above or below a slot, so that the search can treat it in isolation.
    pub fn is_apart(&self, slot: SlotId) -> bool {
        let mut kin = self.slots[slot].kin.iter();
        kin.all(|kin| self.slots[*kin].standing.is_empty())
    }

    /// Whether no unit occupies a slot across this moment; a unit may begin then.
    pub fn is_free_at(&self, slot: SlotId, moment: i64) -> bool {
        let mut standing = self.slots[slot].standing.iter();
        !standing.any(|stand| stand.during.0 < moment && moment < stand.during.1)
    }

    /// The units that begin on a slot at this moment or later, in order.
    pub fn from(&self, slot: SlotId, moment: i64) -> &[Stand] {
        let standing = &self.slots[slot].standing;
        let first = standing.partition_point(|stand| stand.during.0 < moment);
        &standing[first..]
    }

    /// Whether a unit that takes its whole resource could move to a slot if no other unit occupied it.
    pub fn may_stand(&mut self, unit: UnitId, slot: SlotId) -> bool {
        let party = self.units[unit].party;
        !self.units[unit].is_settled
            && self.parties[party].take == Take::Exclusive
            && self.slots_of(party).iter().all(|other| *other != slot)
            && self.open(party).iter().any(|(open, _)| *open == slot)
    }

    /// Removes from the board the units of a party that are on a closed resource, and returns them.
    pub fn lift_closed(&mut self, party: usize) -> Vec<UnitId> {
        let during = self.parties[party].during;
        let is_closed = |slot: SlotId| self.is_closed(self.slots[slot].place, during);
        let stands_closed = |unit: &UnitId| self.units[*unit].slot.is_some_and(is_closed);
        let units: Vec<UnitId> = self.units_of[party].clone().filter(stands_closed).collect();
        for unit in &units {
            self.lift(*unit);
        }
        units
    }

    fn is_closed(&self, place: usize, during: Stretch) -> bool {
        self.closed
            .iter()
            .any(|(closed, span)| meet(*span, during) && self.busy.related(*closed, place))
    }

    /// The slots without a fixed obstacle for this party, the cheapest first.
    pub fn open(&mut self, party: usize) -> &[(SlotId, u64)] {
        if self.open[party].is_none() {
            let candidates = std::mem::take(&mut self.parties[party].candidates);
            let Party { during, take, .. } = self.parties[party];
            let mut open: Vec<(SlotId, u64)> = Vec::new();
            for (place, cost) in candidates {
                if !self.is_denied(place, take, during) {
                    open.push((self.slot(place), cost));
                }
            }
            open.sort_by_key(|(slot, cost)| (*cost, self.slots[*slot].place));
            open.dedup();
            self.open[party] = Some(open);
        }
        self.open[party].as_deref().unwrap_or_default()
    }

    /// Whether a fixed claim or a closed resource is in the way.
    fn is_denied(&self, place: usize, take: Take, during: Stretch) -> bool {
        if self.is_closed(place, during) {
            return true;
        }
        let mut shared: Vec<usize> = Vec::new();
        for (at, held) in self.busy.meeting(place, during) {
            if !held.is_whole() {
                shared.push(at);
            } else if !self.is_piece(at, (held.start, held.end)) {
                return true;
            }
        }
        shared.dedup();
        match take {
            Take::Exclusive => shared.iter().any(|at| self.peak(*at, during, &[]) > 0),
            Take::Amount(wanted) => {
                let spare = self.spare(place, wanted.get());
                spare.is_none_or(|spare| self.peak(place, during, &[]) > spare)
            }
        }
    }

    /// Whether the exclusive claim on `place` at this time is a movable booking or a buffer of one. No other claim
    /// can overlap the time of that booking.
    fn is_piece(&self, place: usize, held: Stretch) -> bool {
        self.lifted.get(&place).is_some_and(|lifted| {
            lifted.iter().any(|(during, take)| {
                *take == Take::Exclusive && during.0 <= held.0 && held.1 <= during.1
            })
        })
    }

    fn spare(&self, place: usize, wanted: u64) -> Option<i64> {
        let left = self.busy.capacity(place).checked_sub(wanted)?;
        Some(i64::try_from(left).unwrap_or(i64::MAX))
    }

    /// The highest amount of a place taken at one moment of this time, by fixed claims and by these units.
    fn peak(&self, place: usize, during: Stretch, units: &[UnitId]) -> i64 {
        let mut changes: Vec<(i64, i64)> = Vec::new();
        let mut change = |span: Stretch, amount: i64| {
            if meet(span, during) {
                changes.extend([(span.0.max(during.0), amount), (span.1, -amount)]);
            }
        };
        for (_, held) in self
            .busy
            .meeting(place, during)
            .filter(|met| met.0 == place)
        {
            change((held.start, held.end), held.share());
        }
        for (span, take) in self.lifted.get(&place).into_iter().flatten() {
            change(*span, -share(*take));
        }
        for unit in units {
            let party = &self.parties[self.units[*unit].party];
            change(party.during, share(party.take));
        }
        changes.sort_unstable_by_key(|(at, _)| *at);
        let (mut sum, mut peak) = (0, 0);
        for moment in changes.chunk_by(|a, b| a.0 == b.0) {
            sum += moment.iter().map(|(_, change)| change).sum::<i64>();
            if moment[0].0 < during.1 {
                peak = peak.max(sum);
            }
        }
        peak
    }

    /// The units that must leave a slot for this unit to go there. None if it cannot go there because of settled
    /// units or because of another unit of its own party.
    pub fn in_the_way(&self, unit: UnitId, slot: SlotId) -> Option<Vec<UnitId>> {
        let party = self.units[unit].party;
        let Party { during, take, .. } = self.parties[party];
        let mut leaving = Vec::new();
        let mut sharing = Vec::new();
        for at in std::iter::once(slot).chain(self.slots[slot].kin.iter().copied()) {
            let standing = self.slots[at].standing.iter();
            let until = standing.take_while(|stand| stand.during.0 < during.1);
            for stand in until.filter(|stand| during.0 < stand.during.1) {
                let other = &self.units[stand.unit];
                if other.party == party {
                    return None;
                }
                let shares = self.parties[other.party].take != Take::Exclusive;
                if shares && take != Take::Exclusive {
                    sharing.push(stand.unit);
                } else if other.is_settled {
                    return None;
                } else {
                    leaving.push(stand.unit);
                }
            }
        }
        if let Take::Amount(wanted) = take {
            let spare = self.spare(self.slots[slot].place, wanted.get())?;
            leaving.extend(self.share_out(slot, during, spare, sharing)?);
        }
        Some(leaving)
    }

    /// The units that must leave a shared slot so that at most `spare` is taken, the largest first.
    fn share_out(
        &self,
        slot: SlotId,
        during: Stretch,
        spare: i64,
        mut sharing: Vec<UnitId>,
    ) -> Option<Vec<UnitId>> {
        let place = self.slots[slot].place;
        let amount = |unit: &UnitId| share(self.parties[self.units[*unit].party].take);
        sharing.sort_by_key(|unit| (!self.units[*unit].is_settled, -amount(unit), *unit));
        let settled = sharing.partition_point(|unit| self.units[*unit].is_settled);
        let mut leaving = Vec::new();
        while self.peak(place, during, &sharing) > spare {
            if sharing.len() == settled {
                return None;
            }
            leaving.push(sharing.remove(settled));
        }
        Some(leaving)
    }

    /// The units that hold a slot at this moment, each with its slot.
    pub fn at(&self, moment: i64) -> impl Iterator<Item = (UnitId, SlotId)> + '_ {
        let units = self.units.iter().enumerate();
        units.filter_map(move |(number, unit)| {
            let (start, end) = self.parties[unit.party].during;
            let slot = unit.slot?;
            (start <= moment && moment < end).then_some((number, slot))
        })
    }

    /// The number of places in the smallest subtree with this slot and the party's other units. Slots without a
    /// common root are further apart than all others.
    pub fn spread(&self, slot: SlotId, others: &[SlotId]) -> usize {
        let place = self.slots[slot].place;
        let mut upwards = std::iter::successors(Some(place), |place| self.busy.parent(*place));
        let covering = upwards.find(|top| {
            let reach = *top..self.busy.end(*top);
            others
                .iter()
                .all(|other| reach.contains(&self.slots[*other].place))
        });
        covering.map_or(usize::MAX, |top| self.busy.end(top) - top)
    }

    pub fn slots_of(&self, party: usize) -> Vec<SlotId> {
        let units = self.units[self.units_of[party].clone()].iter();
        units.filter_map(|unit| unit.slot).collect()
    }

    /// The resources of a party, in the order of the tree.
    pub fn standing_of(&self, party: usize) -> Vec<ResourceId> {
        let slots = self.slots_of(party).into_iter();
        let mut places: Vec<usize> = slots.map(|slot| self.slots[slot].place).collect();
        places.sort_unstable();
        self.busy.resources_at(&places)
    }

    pub fn in_order(&self, resources: &[ResourceId]) -> Vec<ResourceId> {
        let mut places: Vec<usize> = resources
            .iter()
            .filter_map(|id| self.busy.place(*id))
            .collect();
        places.sort_unstable();
        self.busy.resources_at(&places)
    }
}

fn share(take: Take) -> i64 {
    match take {
        Take::Exclusive => 0,
        Take::Amount(amount) => i64::try_from(amount.get()).unwrap_or(i64::MAX),
    }
}
