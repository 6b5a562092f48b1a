//! Groups nodes in the same state into a class: a result for one node holds for all of them.
//!
//! A class is a state and never changes; placements move nodes from class to class. So every cached result of a
//! class stays true, and a state that returns finds its results again.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use super::node::Left;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub kind: u32,
    pub left: Left,
}

/// A node sorted by its wall. Of equal nodes, the nearest sufficient wall is found first, and nodes without a wall
/// are kept for long workloads.
pub(super) type Walled = (i64, u32);

/// This many empty classes cost little, and states return.
const EMPTY_KEPT: usize = 256;

#[derive(Debug, Clone, Default)]
pub(super) struct Classes {
    states: Vec<State>,
    by_state: HashMap<State, u32>,
    members: Vec<BTreeSet<Walled>>,
    /// The farthest wall of the nodes in each class; `i64::MIN` for an empty class.
    farthest_wall_us: Vec<i64>,
    of_node: Vec<u32>,
    empty: usize,
    freed: u64,
}

impl Classes {
    pub fn len(&self) -> usize {
        self.states.len()
    }

    pub fn state(&self, class: usize) -> &State {
        &self.states[class]
    }

    pub fn of(&self, node: u32) -> usize {
        self.of_node[node as usize] as usize
    }

    pub fn state_of(&self, node: u32) -> &State {
        self.state(self.of(node))
    }

    /// Whether a class has a node with its wall at this moment or later.
    pub fn reaches(&self, class: usize, until_us: i64) -> bool {
        self.farthest_wall_us[class] >= until_us
    }

    /// Of the nodes in a class with their wall at this moment or later, the one with the nearest wall.
    pub fn nearest_wall(&self, class: usize, until_us: i64) -> Option<Walled> {
        self.members[class].range((until_us, 0)..).next().copied()
    }

    /// Counts how often something was freed. While it stays the same, there is no more room than before.
    pub fn freed(&self) -> u64 {
        self.freed
    }

    /// Resets the count after a trial placement: everything taken since is given back and nothing was refused in
    /// between, so there is as much room as before.
    pub fn is_as_it_was(&mut self, freed: u64) {
        self.freed = freed;
    }

    /// Number of nodes in a class with their wall at this moment or later; counting stops at `most`.
    pub fn count_reaching(&self, class: usize, until_us: i64, most: u64) -> u64 {
        let reaching = self.members[class].range((until_us, 0)..);
        reaching.take(most as usize).count() as u64
    }

    /// Adds the next node.
    pub fn add(&mut self, state: State, until_us: i64) {
        let node = self.of_node.len() as u32;
        let class = self.class_of(state);
        self.of_node.push(class as u32);
        self.join(class, (until_us, node));
    }

    /// Moves a node to a state with less free.
    pub fn take(&mut self, node: u32, state: State, until_us: i64) {
        self.change(node, state, until_us);
    }

    /// Moves a node to a state with more free.
    pub fn free(&mut self, node: u32, state: State, until_us: i64) {
        self.freed += 1;
        self.change(node, state, until_us);
    }

    fn change(&mut self, node: u32, state: State, until_us: i64) {
        let class = self.class_of(state);
        self.leave(node, until_us);
        self.of_node[node as usize] = class as u32;
        self.join(class, (until_us, node));
    }

    pub fn set_wall(&mut self, node: u32, old_us: i64, new_us: i64) {
        self.freed += u64::from(new_us > old_us);
        self.leave(node, old_us);
        self.join(self.of(node), (new_us, node));
    }

    fn class_of(&mut self, state: State) -> usize {
        if let Some(class) = self.by_state.get(&state) {
            return *class as usize;
        }
        let class = self.states.len();
        self.states.push(state.clone());
        self.by_state.insert(state, class as u32);
        self.members.push(BTreeSet::new());
        self.farthest_wall_us.push(i64::MIN);
        self.empty += 1;
        class
    }

    fn join(&mut self, class: usize, node: Walled) {
        self.empty -= usize::from(self.members[class].is_empty());
        self.members[class].insert(node);
        self.look_at_walls(class);
    }

    fn leave(&mut self, node: u32, until_us: i64) {
        let class = self.of(node);
        self.members[class].remove(&(until_us, node));
        self.empty += usize::from(self.members[class].is_empty());
        self.look_at_walls(class);
    }

    fn look_at_walls(&mut self, class: usize) {
        let last = self.members[class].last();
        self.farthest_wall_us[class] = last.map_or(i64::MIN, |(until_us, _)| *until_us);
    }

    /// Drops classes without nodes if there are many. Returns the old numbers of the kept classes, in order.
    pub fn forget_empty(&mut self) -> Option<Vec<usize>> {
        let with_nodes = self.len() - self.empty;
        if self.empty <= with_nodes.max(EMPTY_KEPT) {
            return None;
        }
        let has_nodes = |class: &usize| !self.members[*class].is_empty();
        let kept: Vec<usize> = (0..self.len()).filter(has_nodes).collect();
        let mut new_number = vec![0; self.len()];
        for (new, old) in (0..).zip(&kept) {
            new_number[*old] = new;
        }
        for class in &mut self.of_node {
            *class = new_number[*class as usize];
        }
        self.states = keep(std::mem::take(&mut self.states), &kept);
        self.members = keep(std::mem::take(&mut self.members), &kept);
        self.farthest_wall_us = keep(std::mem::take(&mut self.farthest_wall_us), &kept);
        let numbered = self.states.iter().cloned().zip(0..);
        self.by_state = numbered.collect();
        self.empty = 0;
        Some(kept)
    }
}

/// The elements with these ascending numbers; numbers beyond the end are ignored.
pub(super) fn keep<T>(all: Vec<T>, kept: &[usize]) -> Vec<T> {
    let mut kept = kept.iter().peekable();
    let numbered = all.into_iter().enumerate();
    numbered
        .filter_map(|(at, element)| kept.next_if(|next| **next == at).map(|_| element))
        .collect()
}
