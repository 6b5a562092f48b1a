//! The free resources of a site's nodes at one moment, and the placement of workloads on them.
//!
//! A workload's [`Need`] is one task or several equal ones, each with CPU, memory, and whole GPUs or a share of
//! one. Of the nodes with room, the fleet takes the one where the placement costs later workloads least, given the
//! usual mix of requests ([`Mix`]). Of equal nodes it takes the tightest, then the one with the nearest wall, then
//! the first. The same question always gets the same answer, and there is an answer whenever there is room.
//!
//! The fleet knows one moment only. A node's wall says by when each placement on it must end; the planner decides
//! on ends and order. The fleet must be quick, since a plan asks it a hundred thousand times. So it examines nodes
//! in the same state once (`classes`) and caches the results (`offers`).

mod ahead;
mod classes;
mod gang;
pub mod mig;
mod mix;
mod need;
mod node;
mod offers;
mod pick;

use std::collections::{BTreeMap, HashMap};

pub use mix::Mix;
pub use need::{Gpus, Near, Need, Part, Piece, Placement, Task};
pub use node::{Gpu, Left, Mode, Model, Models, Node, NodeIndex, UNDIVIDED};

use classes::{Classes, State};
use node::Kind;
use offers::Offers;
use pick::Bundle;

/// The nodes of a site and their free resources.
#[derive(Debug, Clone)]
pub struct Fleet {
    kinds: Vec<Kind>,
    /// Number of nodes of each kind.
    counts: Vec<u64>,
    classes: Classes,
    offers: Offers,
    walls_us: Vec<i64>,
    racks: BTreeMap<u32, Vec<u32>>,
    rack_of: Vec<u32>,
}

/// A placement that does not match the state of this fleet. The fleet is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("node {} does not have left what the placement takes", .0.0)]
    NotLeft(NodeIndex),
    #[error("node {} would have more left than it has in all", .0.0)]
    NotTaken(NodeIndex),
    #[error("there is no node {}", .0.0)]
    NoNode(NodeIndex),
}

impl Fleet {
    /// Nodes on which nothing is placed.
    pub fn new(nodes: &[Node], mix: Mix) -> Fleet {
        let mut kinds: Vec<Kind> = Vec::new();
        let mut counts: Vec<u64> = Vec::new();
        let mut kind_of = HashMap::new();
        let mut classes = Classes::default();
        let mut racks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (number, node) in (0..).zip(nodes) {
            let make = (node.cpu_milli, node.memory_bytes, &node.gpus);
            let kind = *kind_of.entry(make).or_insert_with(|| {
                kinds.push(Kind::of(node));
                counts.push(0);
                kinds.len() as u32 - 1
            });
            counts[kind as usize] += 1;
            let left = kinds[kind as usize].all();
            classes.add(State { kind, left }, node.until_us);
            racks.entry(node.rack).or_default().push(number);
        }
        Fleet {
            offers: Offers::new(mix, &kinds),
            kinds,
            counts,
            classes,
            walls_us: nodes.iter().map(|node| node.until_us).collect(),
            racks,
            rack_of: nodes.iter().map(|node| node.rack).collect(),
        }
    }

    /// Replaces the mix of usual requests.
    pub fn learn(&mut self, mix: Mix) {
        self.offers = Offers::new(mix, &self.kinds);
    }

    /// Drops all caches. This must change no answer.
    #[cfg(test)]
    pub(crate) fn forget(&mut self) {
        self.learn(self.offers.mix().clone());
    }

    /// The free resources of a node.
    pub fn left(&self, node: NodeIndex) -> Option<&Left> {
        let node = self.known(node).ok()?;
        Some(&self.classes.state_of(node).left)
    }

    /// Takes the resources of a placement.
    pub fn take(&mut self, placement: &Placement) -> Result<(), Unfit> {
        self.all_or_none(&placement.pieces, Fleet::take_piece, Fleet::give_back_piece)
    }

    /// Gives back the resources of a placement.
    pub fn give_back(&mut self, placement: &Placement) -> Result<(), Unfit> {
        self.all_or_none(&placement.pieces, Fleet::give_back_piece, Fleet::take_piece)
    }

    fn all_or_none(
        &mut self,
        pieces: &[Piece],
        go: fn(&mut Fleet, &Piece) -> Result<(), Unfit>,
        undo: fn(&mut Fleet, &Piece) -> Result<(), Unfit>,
    ) -> Result<(), Unfit> {
        for (done, piece) in pieces.iter().enumerate() {
            if let Err(unfit) = go(self, piece) {
                pieces[..done]
                    .iter()
                    .rev()
                    .try_for_each(|piece| undo(self, piece))?;
                return Err(unfit);
            }
        }
        self.forget_empty();
        Ok(())
    }

    fn forget_empty(&mut self) {
        if let Some(kept) = self.classes.forget_empty() {
            self.offers.keep(&kept);
        }
    }

    fn take_piece(&mut self, piece: &Piece) -> Result<(), Unfit> {
        let node = self.known(piece.node)?;
        let State { kind, left } = self.classes.state_of(node);
        let left = left.without(piece).ok_or(Unfit::NotLeft(piece.node))?;
        let state = State { kind: *kind, left };
        let wall_us = self.walls_us[node as usize];
        self.classes.take(node, state, wall_us);
        Ok(())
    }

    fn give_back_piece(&mut self, piece: &Piece) -> Result<(), Unfit> {
        let node = self.known(piece.node)?;
        let State { kind, left } = self.classes.state_of(node);
        let all = self.kinds[*kind as usize].all();
        let left = more(left, piece, &all).ok_or(Unfit::NotTaken(piece.node))?;
        let state = State { kind: *kind, left };
        let wall_us = self.walls_us[node as usize];
        self.classes.free(node, state, wall_us);
        Ok(())
    }

    fn known(&self, node: NodeIndex) -> Result<u32, Unfit> {
        match (node.0 as usize) < self.walls_us.len() {
            true => Ok(node.0),
            false => Err(Unfit::NoNode(node)),
        }
    }

    /// The node with the least loss by a bundle, as a piece for each task.
    fn best(&mut self, bundle: &Bundle, until_us: i64) -> Option<Vec<Piece>> {
        let look = self.offers.look(&self.kinds, &self.classes, bundle);
        let node = look.best(until_us)?;
        Some(self.pieces(bundle, node))
    }

    /// The same among the nodes of a rack.
    fn best_in(&mut self, bundle: &Bundle, rack: u32, until_us: i64) -> Option<Vec<Piece>> {
        let nodes = self.racks.get(&rack)?.iter();
        let walled = nodes.map(|node| (self.walls_us[*node as usize], *node));
        let reaching = walled.filter(|(wall_us, _)| *wall_us >= until_us);
        let look = self.offers.look(&self.kinds, &self.classes, bundle);
        let node = look.best_of(reaching)?;
        Some(self.pieces(bundle, node))
    }

    fn pieces(&mut self, bundle: &Bundle, node: u32) -> Vec<Piece> {
        let mut look = self.offers.look(&self.kinds, &self.classes, bundle);
        bundle.pieces(NodeIndex(node), look.chosen(node))
    }
}

/// `None` if the sum would exceed `all`.
fn more(left: &Left, piece: &Piece, all: &Left) -> Option<Left> {
    let mut gpus = left.gpus.clone();
    for part in &piece.gpus {
        let at = usize::from(part.gpu);
        let free = gpus.get(at)?.checked_add(part.thousandths)?;
        gpus[at] = Some(free).filter(|free| *free <= all.gpus[at])?;
    }
    let cpu_milli = left.cpu_milli.checked_add(piece.cpu_milli)?;
    let memory_bytes = left.memory_bytes.checked_add(piece.memory_bytes)?;
    let in_bounds = cpu_milli <= all.cpu_milli && memory_bytes <= all.memory_bytes;
    in_bounds.then_some(Left {
        cpu_milli,
        memory_bytes,
        gpus,
    })
}

#[cfg(test)]
mod tests;
