//! Where something came free, in the order in which it did: what was once looked for in vain need only be looked for there.

use crate::fleet::NodeIndex;

/// How much of it somebody has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen(u64);

#[derive(Debug, Clone)]
pub(super) struct Freed {
    /// How many were forgotten before the first that is kept.
    forgotten: u64,
    nodes: Vec<NodeIndex>,
    kept_max: usize,
}

impl Freed {
    /// Of a ground of so many nodes. To keep more than a few times as many would be no quicker than to look at all of them.
    pub fn new(nodes: usize) -> Freed {
        Freed {
            forgotten: 0,
            nodes: Vec::new(),
            kept_max: 4 * nodes + 64,
        }
    }

    pub fn add(&mut self, node: NodeIndex) {
        if self.nodes.len() >= self.kept_max {
            self.forgotten += self.nodes.len() as u64;
            self.nodes.clear();
        }
        self.nodes.push(node);
    }

    pub fn seen(&self) -> Seen {
        Seen(self.forgotten + self.nodes.len() as u64)
    }

    /// Where something came free since, each node once; none where too much did to know.
    pub fn since(&self, seen: Seen) -> Option<Vec<NodeIndex>> {
        let first = seen.0.checked_sub(self.forgotten)? as usize;
        let mut nodes = self.nodes.get(first..)?.to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        Some(nodes)
    }
}
