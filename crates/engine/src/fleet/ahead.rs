//! Functions for planning ahead: they work on given states of nodes instead of the current ones.

use super::Fleet;
use super::classes::State;
use super::need::{Need, Piece};
use super::node::{Gpu, Left, NodeIndex};
use super::pick::{Bundle, Chosen, Link, fill, room_for, room_linked};

impl Fleet {
    /// Sets the free resources of a node, at most all of them, and its wall. Ignores unknown nodes.
    pub fn put(&mut self, node: NodeIndex, mut left: Left, until_us: i64) {
        let Ok(number) = self.known(node) else {
            return;
        };
        let before = self.classes.state_of(number);
        let kind = before.kind;
        left.narrow(&self.kinds[kind as usize].all());
        let is_less = left.is_within(&before.left);
        let old_us = std::mem::replace(&mut self.walls_us[number as usize], until_us);
        if old_us != until_us {
            self.classes.set_wall(number, old_us, until_us);
        }
        let state = State { kind, left };
        match is_less {
            true => self.classes.take(number, state, until_us),
            false => self.classes.free(number, state, until_us),
        }
        self.forget_empty();
    }

    /// How many tasks would fit into `left` of a node; counting stops at the number needed.
    pub fn room(&self, node: NodeIndex, left: &Left, need: &Need) -> u64 {
        let Ok(number) = self.known(node) else {
            return 0;
        };
        let kind = &self.kinds[self.classes.state_of(number).kind as usize];
        let (task, most) = (need.task.plain(), need.most_in_a_node());
        match need.link() {
            Link::Any => room_for(kind, left, &task, most),
            Link::One => room_linked(kind, left, &task, most),
        }
    }

    /// The rack of a node.
    pub fn rack(&self, node: NodeIndex) -> Option<u32> {
        self.rack_of.get(node.0 as usize).copied()
    }

    /// The nodes of each rack.
    pub fn racks(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = NodeIndex>)> {
        let racks = self.racks.iter();
        racks.map(|(rack, nodes)| (*rack, nodes.iter().map(|node| NodeIndex(*node))))
    }

    /// The GPUs of a node, by their numbers.
    pub fn gpus(&self, node: NodeIndex) -> &[Gpu] {
        let kind = |number: u32| &self.kinds[self.classes.state_of(number).kind as usize];
        self.known(node).map_or(&[], |number| &kind(number).gpus)
    }

    /// The pieces that `count` tasks would get from `left` of a node.
    pub fn pick(
        &self,
        node: NodeIndex,
        mut left: Left,
        need: &Need,
        count: u32,
    ) -> Option<Vec<Piece>> {
        let number = self.known(node).ok()?;
        let bundle = Bundle {
            task: need.task.plain(),
            count,
            link: need.link(),
        };
        let seen = self
            .offers
            .seen(&self.kinds, self.classes.state_of(number).kind);
        let mut chosen = Chosen::new();
        fill(seen, &mut left, &bundle, &mut chosen).then(|| bundle.pieces(node, &chosen))
    }
}
