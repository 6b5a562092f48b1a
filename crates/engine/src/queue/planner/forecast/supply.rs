//! The expected supply of everything that workloads wait for: GPUs of each model, CPU, room for tasks that must run
//! together, seats, and the rest of quotas.

use std::collections::{BTreeMap, BTreeSet};

use crate::fleet::{Gpu, Gpus, Mode, Model, Near, Need, UNDIVIDED};

use super::super::super::Micros;
use super::super::super::profile::{Floors, Profile};
use super::super::super::quota::{Counted, volume};
use super::super::super::seats;
use super::super::super::share::Account;
use super::super::super::track::Taker;
use super::super::{Ask, Key, Planner, RESERVED, Wish};

/// Maximum number of sizes of tasks together that have a supply of their own, the largest first.
const TOGETHER_MAX: usize = 16;
/// Stands for no limit. Sums of it do not overflow.
const UNLIMITED: i64 = 1 << 60;

/// Interchangeable resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Thousandths of a core.
    Cpu,
    /// Thousandths of GPUs of one model with this many bytes of memory.
    Gpu(Model, u64),
}

impl Kind {
    fn of(gpu: &Gpu) -> Option<Kind> {
        let kind = Kind::Gpu(gpu.model, gpu.memory_bytes);
        Some(kind).filter(|_| gpu.mode == Mode::Shared)
    }

    /// Whether a need consumes this kind. A need with GPUs is not measured by its CPU.
    fn serves(self, need: &Need) -> bool {
        match self {
            Kind::Cpu => need.task.gpus.thousandths() == 0,
            Kind::Gpu(model, memory_bytes) => {
                need.task.gpus.thousandths() > 0
                    && need.task.models.accept(model)
                    && need.task.gpu_memory_bytes <= memory_bytes
            }
        }
    }
}

/// The unit that tasks must share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Within {
    Node,
    Rack,
}

/// A supply. The supplies of nodes come first in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    All(Kind),
    /// Places for this amount of a kind within one node or rack.
    Together(Kind, Within, i64),
    Seats(seats::Pool),
    Quota(Account, Counted),
}

impl Thing {
    fn is_on_nodes(&self) -> bool {
        matches!(self, Thing::All(_) | Thing::Together(..))
    }
}

/// The size of a need, and the places it takes: within what, of what size, how many. No places if none is larger
/// than one GPU or core.
fn measure(need: &Need) -> (i64, Option<(Within, i64, i64)>) {
    let each = match need.task.gpus {
        Gpus::None | Gpus::Whole(0) | Gpus::Share(0) => need.task.cpu_milli as i64,
        gpus => i64::from(gpus.thousandths()),
    };
    let tasks = i64::from(need.tasks);
    let size = each.saturating_mul(tasks);
    let (within, unit, count) = match need.at_least {
        _ if need.is_for_one_node() => (Within::Node, size, 1),
        Near::Rack => (Within::Rack, size, 1),
        Near::Anywhere | Near::Node | Near::Link => (Within::Node, each, tasks),
    };
    let is_one = unit <= i64::from(UNDIVIDED);
    (size, (!is_one).then_some((within, unit, count)))
}

/// Index of a supply, and an amount of it.
type Want = (usize, i64);

type Changes = Vec<(Micros, i64)>;

#[derive(Debug)]
struct Supply {
    profile: Profile,
    floors: Floors,
}

/// The indexes of the supplies of one kind: all of it, and the places for tasks together.
#[derive(Debug)]
struct OfKind {
    kind: Kind,
    all: usize,
    together: Vec<(Within, i64, usize)>,
}

impl OfKind {
    fn of(all: Kind, places: &BTreeMap<Thing, usize>) -> Option<OfKind> {
        let together = |(thing, place): (&Thing, &usize)| match thing {
            Thing::Together(kind, within, unit) if *kind == all => Some((*within, *unit, *place)),
            _ => None,
        };
        Some(OfKind {
            kind: all,
            all: *places.get(&Thing::All(all))?,
            together: places.iter().filter_map(together).collect(),
        })
    }
}

#[derive(Debug)]
pub(super) struct Supplies {
    all: Vec<Supply>,
    places: BTreeMap<Thing, usize>,
    kinds: Vec<OfKind>,
    has_quotas: bool,
    /// Number of supplies of nodes; they come first.
    on_nodes: usize,
    /// The rest of budgets.
    budgets: BTreeMap<(Account, Counted), i128>,
}

impl Supplies {
    /// The supply now and ahead. Running workloads are subtracted until their expected end; reservations are
    /// subtracted, too.
    pub fn new(planner: &Planner, now: Micros) -> Supplies {
        let mut things: BTreeMap<Thing, (i64, Changes)> = BTreeMap::new();
        add_nodes(planner, now, &mut things);
        add_seats(planner, now, &mut things);
        add_quotas(planner, now, &mut things);
        let places: BTreeMap<Thing, usize> = things.keys().copied().zip(0..).collect();
        let kind = |thing: &Thing| match thing {
            Thing::All(kind) => OfKind::of(*kind, &places),
            _ => None,
        };
        let mut supplies = Supplies {
            all: Vec::new(),
            kinds: things.keys().filter_map(kind).collect(),
            has_quotas: things.keys().any(|thing| matches!(thing, Thing::Quota(..))),
            on_nodes: things
                .keys()
                .take_while(|thing| thing.is_on_nodes())
                .count(),
            places,
            budgets: budgets(planner, now),
        };
        let mut asked = vec![(Vec::new(), Vec::new()); things.len()];
        let mut wants = Vec::new();
        for ask in planner.asks.values() {
            for wish in ask.wishes() {
                for kind in supplies.kinds() {
                    if !supplies.serves(kind, &wish.need) {
                        continue;
                    }
                    supplies.wants(planner, ask, wish, kind, &mut wants);
                    for (number, amount) in &wants {
                        asked[*number].0.push(*amount);
                        asked[*number].1.push(length(wish));
                    }
                }
            }
        }
        let both = things.into_values().zip(asked);
        let supply = |((free, changes), (sizes, lengths)): ((i64, Changes), _)| Supply {
            profile: Profile::new(now, free, changes),
            floors: Floors::new(sizes, lengths, now),
        };
        supplies.all = both.map(supply).collect();
        supplies
    }

    /// The indexes of the kinds.
    pub fn kinds(&self) -> std::ops::Range<usize> {
        0..self.kinds.len()
    }

    pub fn serves(&self, kind: usize, need: &Need) -> bool {
        self.kinds[kind].kind.serves(need)
    }

    /// Everything that a variant takes if this kind serves it.
    fn wants(&self, planner: &Planner, ask: &Ask, wish: &Wish, kind: usize, wants: &mut Vec<Want>) {
        wants.clear();
        let of_kind = &self.kinds[kind];
        let (size, together) = measure(&wish.need);
        wants.push((of_kind.all, size));
        if let Some((within, unit, count)) = together {
            let mut places = of_kind.together.iter();
            let place = places.find(|place| (place.0, place.1) == (within, unit));
            wants.extend(place.map(|(.., place)| (*place, count)));
        }
        let mut add = |thing: Thing, amount: u64| {
            let place = self.places.get(&thing);
            wants.extend(place.map(|place| (*place, amount as i64)));
        };
        for (pool, count) in &ask.seats {
            add(Thing::Seats(*pool), *count);
        }
        if self.has_quotas {
            for account in planner.shares.up(ask.account) {
                for (counted, amount) in wish.amounts.each() {
                    add(Thing::Quota(account, counted), amount);
                }
            }
        }
    }

    /// When a variant could start at the earliest if this kind serves it.
    pub fn earliest(
        &mut self,
        planner: &Planner,
        ask: &Ask,
        wish: &Wish,
        kind: usize,
        from: Micros,
    ) -> Option<Micros> {
        let mut wants = Vec::with_capacity(4);
        self.wants(planner, ask, wish, kind, &mut wants);
        // An unknown pool has no seats.
        let is_known = |(pool, _): &seats::Count| self.places.contains_key(&Thing::Seats(*pool));
        if !ask.seats.iter().all(is_known) {
            return None;
        }
        let length = length(wish);
        let on_nodes = wants.partition_point(|(number, _)| *number < self.on_nodes);
        let (nodes, more) = wants.split_at(on_nodes);
        let mut begin = self.earliest_on_nodes(nodes, length)?.max(from);
        for (number, amount) in more {
            let supply = &mut self.all[*number];
            let floor = supply.floors.get(*amount, length);
            let alone = supply.profile.earliest(floor, *amount, length);
            let floor = alone.unwrap_or(Micros::MAX);
            supply.floors.raise(*amount, length, floor);
            begin = begin.max(alone?);
        }
        self.earliest_of_all(&wants, begin, length)
    }

    /// When the nodes have this much, in places large enough. Needs for places of the same size also need the same
    /// amount in all, so the result is a floor for them.
    fn earliest_on_nodes(&mut self, wants: &[Want], length: Micros) -> Option<Micros> {
        let (last, amount) = *wants.last()?;
        let floor = |(number, amount): &Want| self.all[*number].floors.get(*amount, length);
        let from = wants.iter().map(floor).max()?;
        let begin = self.earliest_of_all(wants, from, length);
        let floor = begin.unwrap_or(Micros::MAX);
        self.all[last].floors.raise(amount, length, floor);
        begin
    }

    /// The first moment from `from` on at which all supplies suffice.
    fn earliest_of_all(&self, wants: &[Want], from: Micros, length: Micros) -> Option<Micros> {
        let mut begin = from;
        let mut enough = 0;
        for (number, amount) in wants.iter().cycle() {
            if enough == wants.len() {
                break;
            }
            let supply = &self.all[*number];
            let next = supply.profile.earliest(begin, *amount, length)?;
            enough = if next == begin { enough + 1 } else { 1 };
            begin = next;
        }
        Some(begin)
    }

    /// Whether the rest of all budgets covers a variant.
    pub fn is_within_budgets(&self, planner: &Planner, ask: &Ask, wish: &Wish) -> bool {
        self.budgets.is_empty()
            || planner.shares.up(ask.account).all(|account| {
                wish.amounts.each().all(|(counted, amount)| {
                    let left = self.budgets.get(&(account, counted));
                    left.is_none_or(|left| volume(amount, wish.limit) as i128 <= *left)
                })
            })
    }

    pub fn take(&mut self, planner: &Planner, ask: &Ask, wish: &Wish, kind: usize, begin: Micros) {
        let mut wants = Vec::with_capacity(4);
        self.wants(planner, ask, wish, kind, &mut wants);
        if let (_, Some((within, unit, count))) = measure(&wish.need) {
            // Tasks together also take places of smaller sizes.
            for (other, smaller, place) in &self.kinds[kind].together {
                if *other == within && *smaller < unit {
                    wants.push((*place, count * (unit / smaller)));
                }
            }
        }
        let end = begin.saturating_add(length(wish));
        for (number, amount) in wants {
            self.all[number].profile.take(begin, end, amount);
        }
        if !self.budgets.is_empty() {
            for account in planner.shares.up(ask.account) {
                for (counted, amount) in wish.amounts.each() {
                    if let Some(left) = self.budgets.get_mut(&(account, counted)) {
                        *left -= volume(amount, length(wish)) as i128;
                    }
                }
            }
        }
    }
}

/// The expected run time.
pub(super) fn length(wish: &Wish) -> Micros {
    wish.expected.max(1)
}

/// The expected end of a taker; `None` for a promise, which the forecast handles itself.
fn likely_end(planner: &Planner, by: Taker, to: Micros, now: Micros) -> Option<Micros> {
    match planner.running.get(&Key(by.0)) {
        Some(running) => Some(running.likely_end(now)),
        None => (by.0 & RESERVED != 0).then_some(to),
    }
}

/// Adds the supply of nodes, and the places for tasks together.
fn add_nodes(planner: &Planner, now: Micros, things: &mut BTreeMap<Thing, (i64, Changes)>) {
    let wishes = planner.asks.values().flat_map(Ask::wishes);
    let together = wishes.filter_map(|wish| {
        let (within, unit, _) = measure(&wish.need).1?;
        Some((unit, within, wish.need.task.gpus.thousandths() > 0))
    });
    let together: BTreeSet<(i64, Within, bool)> = together.collect();
    let together: Vec<_> = together.into_iter().rev().take(TOGETHER_MAX).collect();
    let mut racks: BTreeMap<(Option<u32>, Kind), (i64, Changes)> = BTreeMap::new();
    let has_racks = together
        .iter()
        .any(|(_, within, _)| *within == Within::Rack);
    let mut add_places = |within: Within, kind: Kind, all: i64, changes: &mut Changes| {
        changes.sort_unstable();
        for (unit, where_, is_gpu) in &together {
            if *where_ == within && *is_gpu == (kind != Kind::Cpu) {
                let thing = Thing::Together(kind, within, *unit);
                let (free, steps) = things.entry(thing).or_default();
                *free += all / unit;
                add_steps(steps, all, *unit, changes);
            }
        }
        if within == Within::Node {
            let (free, steps) = things.entry(Thing::All(kind)).or_default();
            *free += all;
            steps.extend_from_slice(changes);
        }
    };
    let mut own: BTreeMap<Kind, (i64, Changes)> = BTreeMap::new();
    for (node, cpu_milli, gpus) in planner.ground.nodes() {
        own.entry(Kind::Cpu).or_default().0 = cpu_milli as i64;
        for kind in gpus.iter().filter_map(Kind::of) {
            own.entry(kind).or_default().0 += i64::from(UNDIVIDED);
        }
        for taken in planner.ground.taken(node) {
            let Some(to) = likely_end(planner, taken.by, taken.to, now) else {
                continue;
            };
            let mut take = |kind: Kind, amount: i64| {
                if let Some((_, changes)) = own.get_mut(&kind) {
                    changes.extend([(taken.from, -amount), (to, amount)]);
                }
            };
            take(Kind::Cpu, taken.part.cpu_milli as i64);
            for part in &taken.part.gpus {
                let gpu = gpus.get(usize::from(part.gpu));
                if let Some(kind) = gpu.and_then(Kind::of) {
                    take(kind, i64::from(part.thousandths));
                }
            }
        }
        for (kind, (all, mut changes)) in std::mem::take(&mut own) {
            add_places(Within::Node, kind, all, &mut changes);
            if has_racks {
                let rack = racks.entry((planner.ground.rack(node), kind)).or_default();
                rack.0 += all;
                rack.1.append(&mut changes);
            }
        }
    }
    for ((_, kind), (all, mut changes)) in racks {
        add_places(Within::Rack, kind, all, &mut changes);
    }
}

/// Adds the changes in the number of places of size `unit`, given the changes of the free amount.
fn add_steps(steps: &mut Changes, all: i64, unit: i64, changes: &Changes) {
    let (mut free, mut places) = (all, all / unit);
    for same in changes.chunk_by(|one, other| one.0 == other.0) {
        free += same.iter().map(|(_, change)| change).sum::<i64>();
        let then = free.max(0) / unit;
        if then != places {
            steps.push((same[0].0, then - places));
            places = then;
        }
    }
}

fn add_seats(planner: &Planner, now: Micros, things: &mut BTreeMap<Thing, (i64, Changes)>) {
    for (pool, total, held) in planner.seats.held() {
        let mut changes = Changes::new();
        for one in held {
            if let Some(to) = likely_end(planner, one.by, one.to, now) {
                changes.extend([(one.from, -(one.count as i64)), (to, one.count as i64)]);
            }
        }
        things.insert(Thing::Seats(pool), (total as i64, changes));
    }
}

/// Adds the limits of accounts, minus the amounts held by running workloads.
fn add_quotas(planner: &Planner, now: Micros, things: &mut BTreeMap<Thing, (i64, Changes)>) {
    if !planner.quotas.are_set() {
        return;
    }
    let amount = |limit: Option<u64>| limit.map_or(UNLIMITED, |limit| limit as i64);
    for (account, counted, limit, ahead) in planner.quotas.limits(&planner.shares) {
        let free = amount(limit);
        let mut before = free;
        let mut changes = Changes::new();
        for (at, limit) in ahead {
            changes.push((*at, amount(*limit) - before));
            before = amount(*limit);
        }
        things.insert(Thing::Quota(account, counted), (free, changes));
    }
    for running in planner.running.values() {
        let to = running.likely_end(now);
        for account in planner.shares.up(running.ask.account) {
            for (counted, amount) in running.wish().amounts.each() {
                if let Some((_, changes)) = things.get_mut(&Thing::Quota(account, counted)) {
                    changes.extend([(running.began, -(amount as i64)), (to, amount as i64)]);
                }
            }
        }
    }
}

/// The rest of budgets after all running workloads have ended.
fn budgets(planner: &Planner, now: Micros) -> BTreeMap<(Account, Counted), i128> {
    let left = planner.quotas.budgets(&planner.shares);
    let mut left: BTreeMap<(Account, Counted), i128> = left.collect();
    if left.is_empty() {
        return left;
    }
    for running in planner.running.values() {
        let length = running.likely_end(now).saturating_sub(running.began);
        for account in planner.shares.up(running.ask.account) {
            for (counted, amount) in running.wish().amounts.each() {
                if let Some(left) = left.get_mut(&(account, counted)) {
                    *left -= volume(amount, length) as i128;
                }
            }
        }
    }
    left
}
