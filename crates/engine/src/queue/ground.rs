//! The timeline of all nodes: where a workload could start now, and when and where it could start at the earliest.
//!
//! The ground keeps two views of each node, because a [`Fleet`] places quickly. The *near* view is what the node
//! has free until its next wall, if there is one. Of equal nodes, the gap before the nearest wall is filled first,
//! since only short workloads fit into it. The *far* view is what stays free for all time ahead. Capacity between
//! the two views is not offered to workloads that start now. It is little, and [`Ground::earliest`] sees all of it.

mod freed;
mod soonest;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use crate::fleet::{Fleet, Gpu, Mix, Near, Need, Node, NodeIndex, Placement};

use super::Micros;
use super::track::{Taken, Taker, Track};

use freed::Freed;
pub use freed::Seen;
use soonest::Soonest;

#[derive(Debug, Clone)]
pub struct Ground {
    tracks: Vec<Track>,
    near: Fleet,
    far: Fleet,
    /// The nodes of each taker, to find them again.
    stands: HashMap<Taker, Vec<NodeIndex>>,
    /// When a taker begins or ends on a node, so the views of the node change.
    turns: BinaryHeap<Reverse<(Micros, NodeIndex)>>,
    /// Nodes on which something was freed, now or ahead.
    freed: Freed,
    soonest: Soonest,
    now: Micros,
}

impl Ground {
    pub fn new(nodes: &[Node], mix: Mix, now: Micros) -> Ground {
        let far = Fleet::new(nodes, mix);
        let indexes = (0..nodes.len()).map(|number| NodeIndex(number as u32));
        let mut ground = Ground {
            tracks: indexes
                .clone()
                .map(|node| Track::new(far.left(node).cloned().unwrap_or_default()))
                .collect(),
            near: far.clone(),
            far,
            stands: HashMap::new(),
            turns: BinaryHeap::new(),
            freed: Freed::new(nodes.len()),
            soonest: Soonest::default(),
            now,
        };
        for node in indexes {
            ground.look_again(node);
        }
        ground
    }

    /// Drops all caches. This must change no answer.
    #[cfg(test)]
    pub(super) fn forget(&mut self) {
        self.near.forget();
        self.far.forget();
        self.soonest = Soonest::default();
    }

    /// Advances the clock: takers that have ended release their nodes, and walls that have begun count as taken.
    pub fn turn(&mut self, now: Micros) {
        self.now = self.now.max(now);
        let mut due = Vec::new();
        while let Some(Reverse((at, node))) = self.turns.peek().copied() {
            if at > self.now {
                break;
            }
            self.turns.pop();
            due.push(node);
        }
        due.sort_unstable();
        due.dedup();
        for node in due {
            self.tracks[node.0 as usize].forget(self.now);
            self.look_again(node);
        }
    }

    /// Whether an empty fleet could hold this need.
    pub fn could_hold(&self, need: &Need) -> bool {
        self.far.could_hold(need)
    }

    /// Where this need could start now and last for `length`.
    pub fn place(&mut self, need: &Need, length: Micros) -> Option<Placement> {
        let until_us = self.now.saturating_add(length);
        let need = Need { until_us, ..*need };
        self.near.place(&need).or_else(|| self.far.place(&need))
    }

    pub fn take(&mut self, by: Taker, from: Micros, to: Micros, placement: &Placement) {
        for piece in &placement.pieces {
            let node = piece.node;
            let Some(track) = self.tracks.get_mut(node.0 as usize) else {
                continue;
            };
            track.take(by, from, to, piece.clone());
            let on = self.stands.entry(by).or_default();
            if on.last() != Some(&node) {
                on.push(node);
                self.turns.push(Reverse((from, node)));
                self.turns.push(Reverse((to, node)));
            }
        }
        for node in self.stands.get(&by).cloned().unwrap_or_default() {
            self.look_again(node);
        }
    }

    /// Releases everything that this taker has.
    pub fn release(&mut self, by: Taker) {
        for node in self.stands.remove(&by).unwrap_or_default() {
            self.tracks[node.0 as usize].release(by);
            self.freed.add(node);
            self.look_again(node);
        }
    }

    /// Ends a taker at this moment if it would end later.
    pub fn shorten(&mut self, by: Taker, to: Micros) {
        self.free_ahead(by);
        self.change_end(by, to, Track::shorten);
    }

    /// Extends a taker that overruns its end to this moment.
    pub fn lengthen(&mut self, by: Taker, to: Micros) {
        self.change_end(by, to, Track::lengthen);
    }

    fn change_end(&mut self, by: Taker, to: Micros, change: fn(&mut Track, Taker, Micros)) {
        for node in self.stands.get(&by).cloned().unwrap_or_default() {
            change(&mut self.tracks[node.0 as usize], by, to);
            self.turns.push(Reverse((to, node)));
            self.look_again(node);
        }
    }

    /// Until when a placement that starts now could stay before another taker wants a part of it.
    pub fn open_until(&self, placement: &Placement) -> Micros {
        let until = |node: NodeIndex| {
            let own = placement.pieces.iter().filter(|piece| piece.node == node);
            let mut views = self.tracks[node.0 as usize].views(self.now);
            views.retain(|view| view.left.holds(own.clone()));
            views.last().map_or(self.now, |view| view.until)
        };
        let nodes = placement.pieces.iter().map(|piece| until(piece.node));
        nodes.min().unwrap_or(Micros::MAX)
    }

    /// Where a need could start at `from` and last for `length` if the takers in `gone` were removed: the nodes with
    /// the least cost per task.
    pub fn clearing(
        &self,
        need: &Need,
        from: Micros,
        length: Micros,
        gone: impl Fn(Taker) -> bool,
        cost: impl Fn(Taker) -> f64,
    ) -> Option<Placement> {
        let to = from.saturating_add(length);
        let enough = u64::from(need.tasks);
        let mut open: Vec<Clearing> = Vec::new();
        for (number, track) in (0..).zip(&self.tracks) {
            let node = NodeIndex(number);
            let left = track.free_without(from, to, &gone);
            let tasks = self.far.room(node, &left, need);
            if tasks >= if need.is_for_one_node() { enough } else { 1 } {
                let goers = track.takers(from, to).filter(|by| gone(*by));
                let lost = goers.map(&cost).sum();
                open.push(Clearing { lost, node, tasks });
            }
        }
        open.sort_by(|a, b| {
            a.by_task()
                .total_cmp(&b.by_task())
                .then(a.node.cmp(&b.node))
        });
        if need.at_least == Near::Rack && !need.is_for_one_node() {
            open = self.cheapest_rack(open, enough)?;
        }
        let nodes = open.iter().map(|one| (one.node, one.tasks));
        self.gather(need, nodes, from, to, gone)
    }

    /// Of the racks with room for all tasks, the one with the least cost.
    fn cheapest_rack(&self, open: Vec<Clearing>, enough: u64) -> Option<Vec<Clearing>> {
        let mut racks: BTreeMap<Option<u32>, Vec<Clearing>> = BTreeMap::new();
        for one in open {
            racks.entry(self.far.rack(one.node)).or_default().push(one);
        }
        let cost = |nodes: &Vec<Clearing>| {
            let (mut room, mut lost) = (0, 0.0);
            for one in nodes {
                room += one.tasks;
                lost += one.lost;
                if room >= enough {
                    return Some(lost);
                }
            }
            None
        };
        let racks = racks
            .into_values()
            .filter_map(|nodes| Some((cost(&nodes)?, nodes)));
        let cheapest = racks.min_by(|a, b| a.0.total_cmp(&b.0));
        cheapest.map(|(_, nodes)| nodes)
    }

    /// Whether a placement fits during a time together with all takers except `own`.
    pub fn stands(&self, placement: &Placement, from: Micros, to: Micros, own: Taker) -> bool {
        placement.pieces.iter().all(|piece| {
            let track = &self.tracks[piece.node.0 as usize];
            let left = track.free_without(from, to, |by| by == own);
            let there = placement.pieces.iter();
            left.holds(there.filter(|other| other.node == piece.node))
        })
    }

    /// The takers to remove for a placement to fit during a time, out of the takers in `gone`: as few as are needed,
    /// the cheapest first.
    pub fn in_the_way(
        &self,
        placement: &Placement,
        from: Micros,
        to: Micros,
        gone: impl Fn(Taker) -> bool,
        cost: impl Fn(Taker) -> f64,
    ) -> Vec<Taker> {
        let mut victims: Vec<Taker> = Vec::new();
        let mut nodes: Vec<NodeIndex> = placement.pieces.iter().map(|piece| piece.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            let track = &self.tracks[node.0 as usize];
            let own = placement.pieces.iter().filter(|piece| piece.node == node);
            let stands = |without: &[Taker]| {
                let left = track.free_without(from, to, |by| without.contains(&by));
                left.holds(own.clone())
            };
            let mut softer: Vec<Taker> = track.takers(from, to).filter(|by| gone(*by)).collect();
            softer.sort_by(|a, b| cost(*a).total_cmp(&cost(*b)).then(a.cmp(b)));
            softer.dedup();
            let mut sent: Vec<Taker> = victims.clone();
            for taker in softer {
                if stands(&sent) {
                    break;
                }
                if !sent.contains(&taker) {
                    sent.push(taker);
                }
            }
            // Keep the takers that turned out not to be in the way; try the most expensive first.
            for place in (victims.len()..sent.len()).rev() {
                let mut without = sent.clone();
                without.remove(place);
                if stands(&without) {
                    sent = without;
                }
            }
            victims = sent;
        }
        victims
    }

    /// All claims on a node, now and ahead.
    pub(super) fn taken(&self, node: NodeIndex) -> &[Taken] {
        let track = self.tracks.get(node.0 as usize);
        track.map_or(&[], Track::taken)
    }

    pub(super) fn rack(&self, node: NodeIndex) -> Option<u32> {
        self.far.rack(node)
    }

    /// All nodes with their CPU and their GPUs.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (NodeIndex, u64, &[Gpu])> {
        let nodes = (0..self.tracks.len() as u32).map(NodeIndex);
        nodes.map(|node| {
            (
                node,
                self.tracks[node.0 as usize].cpu_milli(),
                self.far.gpus(node),
            )
        })
    }

    fn look_again(&mut self, node: NodeIndex) {
        let views = self.tracks[node.0 as usize].views(self.now);
        let (Some(first), Some(last)) = (views.first(), views.last()) else {
            return;
        };
        self.near.put(node, first.left.clone(), first.until);
        self.far.put(node, last.left.clone(), Micros::MAX);
    }

    /// Placements for all tasks. Each node in turn gets as many as it has room for; `None` if the nodes do not
    /// suffice.
    fn gather(
        &self,
        need: &Need,
        nodes: impl Iterator<Item = (NodeIndex, u64)>,
        from: Micros,
        to: Micros,
        gone: impl Fn(Taker) -> bool,
    ) -> Option<Placement> {
        let mut more = u64::from(need.tasks);
        let mut pieces = Vec::new();
        for (node, room) in nodes {
            let taken = room.min(more);
            let left = self.tracks[node.0 as usize].free_without(from, to, &gone);
            pieces.extend(self.far.pick(node, left, need, taken as u32)?);
            more -= taken;
            if more == 0 {
                return Some(Placement { pieces });
            }
        }
        None
    }
}

/// A node with room for `tasks` tasks, and the cost of the takers that would have to go.
#[derive(Debug)]
struct Clearing {
    lost: f64,
    node: NodeIndex,
    tasks: u64,
}

impl Clearing {
    fn by_task(&self) -> f64 {
        self.lost / self.tasks.max(1) as f64
    }
}
