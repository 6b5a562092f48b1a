//! What a workload asks of the fleet, and what it was given.

use super::node::{Models, NodeIndex, UNDIVIDED};
use super::pick::Link;

/// The GPUs of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gpus {
    None,
    /// So many undivided ones, all in one node.
    Whole(u16),
    /// So many thousandths of one.
    Share(u16),
}

impl Gpus {
    /// How much of all GPUs this is, in thousandths of one.
    pub fn thousandths(self) -> u32 {
        match self {
            Gpus::None => 0,
            Gpus::Whole(count) => u32::from(count) * u32::from(UNDIVIDED),
            Gpus::Share(share) => u32::from(share),
        }
    }
}

/// What one task takes. It stands in one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Task {
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    pub gpus: Gpus,
    /// The GPU models that will do.
    pub models: Models,
    /// How much memory each GPU has to have at least.
    pub gpu_memory_bytes: u64,
}

impl Task {
    /// No GPUs at all, and a whole one, each in one way only.
    pub(super) fn plain(self) -> Task {
        let gpus = match self.gpus {
            Gpus::Whole(0) | Gpus::Share(0) => Gpus::None,
            Gpus::Share(UNDIVIDED) => Gpus::Whole(1),
            gpus => gpus,
        };
        Task { gpus, ..self }
    }
}

/// How near to each other the tasks of a workload stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Near {
    Anywhere,
    Rack,
    Node,
    /// GPUs of one NVLink group, in one node.
    Link,
}

/// A workload's wish: equal tasks that start together or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Need {
    pub task: Task,
    pub tasks: u32,
    /// How near they would like to stand: where it cannot be met, the next wider one is tried, since a gang in two racks is
    /// better than a gang that waits.
    pub near: Near,
    /// How near they have to stand: if they cannot, they wait.
    pub at_least: Near,
    /// Whether each of its tasks stands in a node of its own.
    pub apart: bool,
    /// When it will have ended at the latest, in microseconds; nodes with an earlier wall are out.
    pub until_us: i64,
}

impl Need {
    /// Whether all of it has to stand in one node.
    pub fn is_for_one_node(&self) -> bool {
        self.tasks == 1 || self.at_least >= Near::Node
    }

    /// How many of its tasks one node may have at the most.
    pub(super) fn most_in_a_node(&self) -> u64 {
        match self.apart {
            true => 1,
            false => u64::from(self.tasks),
        }
    }

    /// Whether its GPUs have to be linked to each other; one is linked to itself.
    pub(super) fn link(&self) -> Link {
        let each = match self.task.gpus {
            Gpus::None | Gpus::Share(0) => 0,
            Gpus::Whole(count) => u32::from(count),
            Gpus::Share(_) => 1,
        };
        let takes_several = each.saturating_mul(self.tasks) > 1;
        match self.at_least == Near::Link && takes_several {
            true => Link::One,
            false => Link::Any,
        }
    }

    /// One task, anywhere, with no end in sight.
    pub fn one(task: Task) -> Need {
        Need {
            task,
            tasks: 1,
            near: Near::Anywhere,
            at_least: Near::Anywhere,
            apart: false,
            until_us: i64::MAX,
        }
    }
}

/// Where the tasks of a workload stand, one piece for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub pieces: Vec<Piece>,
}

/// What one task takes of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub node: NodeIndex,
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    pub gpus: Vec<Part>,
}

/// Some thousandths of the GPU with this number in its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub gpu: u16,
    pub thousandths: u16,
}
