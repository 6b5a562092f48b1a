//! Places a whole workload: all of its tasks or none, as near to each other as they prefer and as there is room
//! for.

use super::Fleet;
use super::need::{Gpus, Near, Need, Piece, Placement};
use super::pick::{Bundle, Link, room_for};

impl Fleet {
    /// The best placement of this workload now; `None` if it does not fit. Takes nothing: only caches change.
    pub fn place(&mut self, need: &Need) -> Option<Placement> {
        if need.tasks == 0 {
            return Some(Placement { pieces: Vec::new() });
        }
        let near = need.near.max(need.at_least);
        // One task is always near itself, so only a link of its GPUs matters. Tasks on separate nodes can be in one
        // rack at the nearest.
        let near = match (need.tasks, need.apart) {
            (1, _) => near.max(Near::Node),
            (_, true) => near.min(Near::Rack),
            (_, false) => near,
        };
        let bundle = Bundle {
            task: need.task.plain(),
            count: need.tasks,
            link: Link::Any,
        };
        let has_to_be_linked = need.link() == Link::One;
        let mut pieces = None;
        if has_to_be_linked || (near == Near::Link && takes_several_gpus(&bundle)) {
            let linked = Bundle {
                link: Link::One,
                ..bundle
            };
            pieces = self.best(&linked, need.until_us);
        }
        if pieces.is_none() && near >= Near::Node && !has_to_be_linked {
            pieces = self.best(&bundle, need.until_us);
        }
        if pieces.is_none() && !need.is_for_one_node() {
            let one = Bundle { count: 1, ..bundle };
            pieces = match near {
                Near::Anywhere if !self.has_room(&one, need) => None,
                Near::Anywhere => self.gather(&one, &[(None, need.tasks)], need),
                Near::Rack | Near::Node | Near::Link => {
                    let racks = self.racks_for(&bundle, need)?;
                    let is_near_enough = need.at_least < Near::Rack || racks.len() == 1;
                    is_near_enough.then(|| self.gather(&one, &racks, need))?
                }
            };
        }
        pieces.map(|pieces| Placement { pieces })
    }

    /// Whether the tasks fit, each anywhere. Counting is much cheaper than placing, and most of a long queue does not
    /// fit.
    fn has_room(&mut self, one: &Bundle, need: &Need) -> bool {
        let look = self.offers.look(&self.kinds, &self.classes, one);
        look.has_room(need.tasks, need.most_in_a_node(), need.until_us)
    }

    /// Places the given number of tasks in each rack (`None`: the whole fleet), one after the other. Each goes to the
    /// node with the least loss after the tasks before it.
    fn gather(
        &mut self,
        one: &Bundle,
        from: &[(Option<u32>, u32)],
        need: &Need,
    ) -> Option<Vec<Piece>> {
        let until_us = need.until_us;
        let tasks = from
            .iter()
            .flat_map(|(rack, count)| std::iter::repeat_n(*rack, *count as usize));
        let freed = self.classes.freed();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut shut: Vec<(u32, i64)> = Vec::new();
        let mut whole = true;
        for rack in tasks {
            let found = match rack {
                None => self.best(one, until_us),
                Some(rack) => self.best_in(one, rack, until_us),
            };
            let piece = found.and_then(|pieces| pieces.into_iter().next());
            let taken = piece.filter(|piece| self.take_piece(piece).is_ok());
            whole = taken.is_some();
            let Some(piece) = taken else { break };
            if need.apart {
                // With `apart`, a node takes one task only.
                let node = piece.node.0;
                shut.push((node, self.wall_off(node, i64::MIN)));
            }
            pieces.push(piece);
        }
        for (node, until_us) in shut {
            self.wall_off(node, until_us);
        }
        for piece in pieces.iter().rev() {
            self.give_back_piece(piece).ok()?;
        }
        if whole {
            self.classes.is_as_it_was(freed);
        }
        self.forget_empty();
        whole.then_some(pieces)
    }

    /// Sets the wall of a node; returns the previous one.
    fn wall_off(&mut self, node: u32, until_us: i64) -> i64 {
        let before = std::mem::replace(&mut self.walls_us[node as usize], until_us);
        self.classes.set_wall(node, before, until_us);
        before
    }

    /// Distributes the tasks of a bundle over racks: all to the tightest rack with room for them. Otherwise as many as
    /// fit to the rack with the most room, and the rest likewise.
    fn racks_for(&self, bundle: &Bundle, need: &Need) -> Option<Vec<(Option<u32>, u32)>> {
        let mut room: Vec<(u64, u32)> = self
            .racks
            .iter()
            .map(|(rack, nodes)| (self.room_in(nodes, bundle, need), *rack))
            .collect();
        room.sort_unstable_by_key(|(room, rack)| (std::cmp::Reverse(*room), *rack));
        let mut more = u64::from(bundle.count);
        let mut from = Vec::new();
        while more > 0 {
            if room.is_empty() {
                return None;
            }
            let enough = room.partition_point(|(room, _)| *room >= more);
            let (room, rack) = room.remove(enough.saturating_sub(1));
            let taken = room.min(more);
            from.push((Some(rack), taken as u32));
            more -= taken;
        }
        Some(from)
    }

    /// Whether an empty fleet has room for the tasks, each anywhere.
    pub fn could_hold(&self, need: &Need) -> bool {
        let most = need.most_in_a_node();
        let kinds = self.kinds.iter().zip(&self.counts);
        let room = kinds.map(|(kind, count)| {
            room_for(kind, &kind.all(), &need.task, most).saturating_mul(*count)
        });
        room.fold(0, u64::saturating_add) >= u64::from(need.tasks)
    }

    fn room_in(&self, nodes: &[u32], bundle: &Bundle, need: &Need) -> u64 {
        let most = need.most_in_a_node();
        let reaching = nodes
            .iter()
            .filter(|node| self.walls_us[**node as usize] >= need.until_us);
        let room = reaching.map(|node| {
            let state = self.classes.state_of(*node);
            let kind = &self.kinds[state.kind as usize];
            room_for(kind, &state.left, &bundle.task, most)
        });
        room.fold(0, u64::saturating_add)
    }
}

fn takes_several_gpus(bundle: &Bundle) -> bool {
    let each = match bundle.task.gpus {
        Gpus::None => 0,
        Gpus::Whole(count) => u32::from(count),
        Gpus::Share(_) => 1,
    };
    each.saturating_mul(bundle.count) > 1
}
