//! When a workload could start at the earliest, and where.
//!
//! Many workloads ask for the same need on one node. So for each such question the ground keeps a floor of every
//! node: a moment before which the node has no room. New claims only raise the true moment above its floor. Where
//! something is freed, the floor falls again. The answer is the lowest floor that proves true, so the search
//! examines a few nodes instead of all. Floors are kept for rounded lengths, so that workloads with nearly the same
//! limit share them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::ops::Range;

use crate::fleet::{Left, Near, Need, NodeIndex, Placement};

use super::super::Micros;
use super::super::track::{Step, Taker};
use super::{Ground, Seen};

/// Maximum number of remembered questions: a bound on memory.
const QUESTIONS_MAX: usize = 256;

const HOUR: Micros = 3_600_000_000;
/// How far ahead each attempt looks, in microseconds. Most answers are near, and a nearer horizon is quicker.
const HORIZONS: [Micros; 4] = [2 * HOUR, 16 * HOUR, 120 * HOUR, Micros::MAX];

/// The need, a lower bound of its length, and a number that the caller gives to the set of takers to ignore.
type Question = (Need, Micros, u8);

#[derive(Debug, Clone, Default)]
pub(super) struct Soonest(HashMap<Question, Floors>);

#[derive(Debug, Clone)]
struct Floors {
    of: Vec<Micros>,
    lowest: BinaryHeap<Reverse<(Micros, NodeIndex)>>,
    seen: Seen,
}

impl Floors {
    fn new(nodes: usize, from: Micros, seen: Seen) -> Floors {
        let indexes = (0..nodes as u32).map(NodeIndex);
        Floors {
            of: vec![from; nodes],
            lowest: indexes.map(|node| Reverse((from, node))).collect(),
            seen,
        }
    }

    fn set(&mut self, node: NodeIndex, floor: Micros) {
        self.of[node.0 as usize] = floor;
        if floor < Micros::MAX {
            self.lowest.push(Reverse((floor, node)));
        }
    }

    /// Removes the lowest floor from the heap.
    fn pop(&mut self) -> Option<(Micros, NodeIndex)> {
        while let Some(Reverse((floor, node))) = self.lowest.pop() {
            if self.of[node.0 as usize] == floor {
                return Some((floor, node));
            }
        }
        None
    }
}

/// The power of two that is not longer. Without room for the rounded length there is none for the length itself.
fn rounded(length: Micros) -> Micros {
    match length.max(1).checked_ilog2() {
        Some(bits) => 1 << bits,
        None => 1,
    }
}

/// How many tasks a node has room for, and since when.
#[derive(Debug, Clone, Copy, Default)]
struct Room {
    since: Micros,
    tasks: u64,
}

impl Ground {
    /// The current position in the list of freed nodes.
    pub fn seen(&self) -> Seen {
        self.freed.seen()
    }

    /// The nodes freed since `seen`; `None` if too many were.
    pub fn freed_since(&self, seen: Seen) -> Option<Vec<NodeIndex>> {
        self.freed.since(seen)
    }

    /// A taker stays but may be preempted from now on. For higher classes its nodes count as freed.
    pub fn free_ahead(&mut self, by: Taker) {
        for node in self.stands.get(&by).into_iter().flatten() {
            self.freed.add(*node);
        }
    }

    /// The earliest moment from `from` on at which this need could start and last for `length`, and where, if the
    /// takers in `gone` were removed. `None` if it never could. `who_is_gone` numbers the set `gone`. For the same
    /// number the set may only grow, except that a taker may claim anew.
    pub fn soonest(
        &mut self,
        need: &Need,
        length: Micros,
        from: Micros,
        who_is_gone: u8,
        gone: impl Fn(Taker) -> bool + Copy,
    ) -> Option<(Micros, Placement)> {
        if !need.is_for_one_node() {
            return self.earliest(need, length, from, gone);
        }
        let short = rounded(length);
        let question = (*need, short, who_is_gone);
        let seen = self.freed.seen();
        let known = self.soonest.0.remove(&question);
        let since = known
            .as_ref()
            .and_then(|known| self.freed.since(known.seen));
        let mut floors = match (known, since) {
            (Some(mut known), Some(freed)) => {
                let is_higher = |node: &NodeIndex| known.of[node.0 as usize] > from;
                for node in freed.into_iter().filter(is_higher).collect::<Vec<_>>() {
                    known.set(node, from);
                }
                known
            }
            _ => Floors::new(self.tracks.len(), from, seen),
        };
        floors.seen = seen;
        let mut looked_at = Vec::new();
        let mut found: Option<(Micros, NodeIndex)> = None;
        while let Some((floor, node)) = floors.pop() {
            if found.is_some_and(|found| found <= (floor, node)) {
                looked_at.push((floor, node));
                break;
            }
            let ahead = floor.max(from)..Micros::MAX;
            let first = self.first_on(node, need, short, ahead, gone);
            let at = first.unwrap_or(Micros::MAX);
            let next = floors.lowest.peek();
            if first.is_none() || next.is_some_and(|Reverse(next)| *next < (at, node)) {
                floors.set(node, at);
                continue;
            }
            // The floor is true for the rounded length. It may also be true for the exact one.
            floors.of[node.0 as usize] = at;
            looked_at.push((at, node));
            let exact = self.first_on(node, need, length, at..Micros::MAX, gone);
            let exact = exact.map(|at| (at, node));
            found = found.into_iter().chain(exact).min();
        }
        floors.lowest.extend(looked_at.into_iter().map(Reverse));
        if self.soonest.0.len() >= QUESTIONS_MAX {
            self.soonest.0.clear();
        }
        self.soonest.0.insert(question, floors);
        let (at, node) = found?;
        let one = std::iter::once((node, u64::from(need.tasks)));
        let placement = self.gather(need, one, at, at.saturating_add(length), gone)?;
        Some((at, placement))
    }

    fn first_on(
        &self,
        node: NodeIndex,
        need: &Need,
        length: Micros,
        during: Range<Micros>,
        gone: impl Fn(Taker) -> bool,
    ) -> Option<Micros> {
        let fits = |left: &Left| self.tasks_in(node, left, need);
        let track = &self.tracks[node.0 as usize];
        track.first(during, length, u64::from(need.tasks), gone, fits)
    }

    fn tasks_in(&self, node: NodeIndex, left: &Left, need: &Need) -> u64 {
        self.far.room(node, left, need)
    }

    /// Like [`Ground::soonest`], but without a cache, and also for needs of several nodes.
    pub fn earliest(
        &self,
        need: &Need,
        length: Micros,
        from: Micros,
        gone: impl Fn(Taker) -> bool + Copy,
    ) -> Option<(Micros, Placement)> {
        HORIZONS.iter().find_map(|horizon| {
            let during = from..from.saturating_add(*horizon);
            self.earliest_during(need, length, during, gone)
        })
    }

    /// The earliest moment in `during` at which there is room. An earlier search found the end of `during` as the
    /// earliest moment; since then something was freed on the nodes in `freed` only. Without `freed`, all nodes are
    /// searched.
    pub fn earlier(
        &self,
        need: &Need,
        length: Micros,
        during: Range<Micros>,
        freed: Option<&[NodeIndex]>,
        gone: impl Fn(Taker) -> bool + Copy,
    ) -> Option<(Micros, Placement)> {
        let Some(freed) = freed else {
            return self.earliest_during(need, length, during, gone);
        };
        if need.is_for_one_node() {
            let first = |node: &NodeIndex| {
                let at = self.first_on(*node, need, length, during.clone(), gone)?;
                Some((at, *node))
            };
            let (at, node) = freed.iter().filter_map(first).min()?;
            let one = std::iter::once((node, u64::from(need.tasks)));
            let placement = self.gather(need, one, at, at.saturating_add(length), gone)?;
            return Some((at, placement));
        }
        // If no task fits on a freed node, the need has no more room than before.
        let helps = |node: &NodeIndex| {
            let fits = |left: &Left| self.tasks_in(*node, left, need);
            let track = &self.tracks[node.0 as usize];
            track.first(during.clone(), length, 1, gone, fits).is_some()
        };
        if !freed.iter().any(helps) {
            return None;
        }
        self.earliest_during(need, length, during, gone)
    }

    fn earliest_during(
        &self,
        need: &Need,
        length: Micros,
        during: Range<Micros>,
        gone: impl Fn(Taker) -> bool + Copy,
    ) -> Option<(Micros, Placement)> {
        if need.at_least == Near::Anywhere && !need.is_for_one_node() {
            let all = (0..self.tracks.len() as u32).map(NodeIndex);
            return self.earliest_among(all, need, length, during, gone);
        }
        // Tasks that must run near each other: search one node or rack after the other, each only for an earlier
        // moment than found so far.
        let mut best: Option<(Micros, Placement)> = None;
        let mut look = |nodes: &mut dyn Iterator<Item = NodeIndex>| {
            let end = best.as_ref().map_or(during.end, |(at, _)| *at);
            let found = self.earliest_among(nodes, need, length, during.start..end, gone);
            best = found.or(best.take());
        };
        if need.is_for_one_node() {
            for node in (0..self.tracks.len() as u32).map(NodeIndex) {
                look(&mut std::iter::once(node));
            }
        } else {
            for (_, mut nodes) in self.far.racks() {
                look(&mut nodes);
            }
        }
        best
    }

    fn earliest_among(
        &self,
        nodes: impl Iterator<Item = NodeIndex>,
        need: &Need,
        length: Micros,
        during: Range<Micros>,
        gone: impl Fn(Taker) -> bool + Copy,
    ) -> Option<(Micros, Placement)> {
        let mut changes: Vec<(Micros, NodeIndex, u64)> = Vec::new();
        for node in nodes {
            let fits = |left: &Left| self.tasks_in(node, left, need);
            let track = &self.tracks[node.0 as usize];
            let steps = track.room(during.clone(), length, gone, fits);
            let change = |Step { at, tasks }: Step| (at, node, tasks);
            // Most nodes have no room for a long time, and need not be sorted in.
            let steps = steps.into_iter().skip_while(|step| step.tasks == 0);
            changes.extend(steps.map(change));
        }
        changes.sort_unstable();
        let mut room: BTreeMap<NodeIndex, Room> = BTreeMap::new();
        let mut all = 0;
        let mut changes = changes.into_iter().peekable();
        while let Some((at, node, tasks)) = changes.next() {
            let known = room.entry(node).or_default();
            all = all - known.tasks + tasks;
            *known = Room { since: at, tasks };
            let is_last_of_moment = changes.peek().is_none_or(|(next, ..)| *next > at);
            if is_last_of_moment
                && all >= u64::from(need.tasks)
                && let Some(placement) = self.choose(need, &room, at, length, gone)
            {
                return Some((at, placement));
            }
        }
        None
    }

    /// Nodes for all tasks, given the room of each node. Nodes that became free last go first. Nodes that are free
    /// already stay available to all other workloads, such as short ones that end before `at`.
    fn choose(
        &self,
        need: &Need,
        room: &BTreeMap<NodeIndex, Room>,
        at: Micros,
        length: Micros,
        gone: impl Fn(Taker) -> bool + Copy,
    ) -> Option<Placement> {
        let mut open: Vec<_> = room.iter().filter(|(_, room)| room.tasks > 0).collect();
        open.sort_unstable_by_key(|(node, room)| (Reverse(room.since), room.tasks, **node));
        let nodes = open.iter().map(|(node, room)| (**node, room.tasks));
        self.gather(need, nodes, at, at.saturating_add(length), gone)
    }
}
