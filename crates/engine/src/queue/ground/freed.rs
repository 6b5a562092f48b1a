//! The nodes on which something was freed, in order. A search that failed before needs to look at these nodes only.

use crate::fleet::NodeIndex;

/// A position in this list: the caller has seen everything before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen(u64);

#[derive(Debug, Clone)]
pub(super) struct Freed {
    /// Number of entries dropped before the first that is kept.
    forgotten: u64,
    nodes: Vec<NodeIndex>,
    kept_max: usize,
}

impl Freed {
    /// For a ground of `nodes` nodes. With more than a few times as many entries, looking at all nodes would be as
    /// quick.
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

    /// The nodes freed since `seen`, each once; `None` if entries since then were dropped.
    pub fn since(&self, seen: Seen) -> Option<Vec<NodeIndex>> {
        let first = seen.0.checked_sub(self.forgotten)? as usize;
        let mut nodes = self.nodes.get(first..)?.to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        Some(nodes)
    }
}
