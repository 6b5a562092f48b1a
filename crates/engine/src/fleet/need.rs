//! The request of a workload to the fleet, and the resulting placement.

use super::node::{Models, NodeIndex, UNDIVIDED};
use super::pick::Link;

/// The GPUs of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gpus {
    None,
    /// This many whole GPUs, all on one node.
    Whole(u16),
    /// This many thousandths of one GPU.
    Share(u16),
}

impl Gpus {
    /// All GPUs together, in thousandths of one.
    pub fn thousandths(self) -> u32 {
        match self {
            Gpus::None => 0,
            Gpus::Whole(count) => u32::from(count) * u32::from(UNDIVIDED),
            Gpus::Share(share) => u32::from(share),
        }
    }
}

/// The resources of one task, which runs on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Task {
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    pub gpus: Gpus,
    /// The GPU models that the task accepts.
    pub models: Models,
    /// Minimum memory of each GPU.
    pub gpu_memory_bytes: u64,
}

impl Task {
    /// Normalizes the two requests that can be written in several ways: no GPUs, and one whole GPU.
    pub(super) fn plain(self) -> Task {
        let gpus = match self.gpus {
            Gpus::Whole(0) | Gpus::Share(0) => Gpus::None,
            Gpus::Share(UNDIVIDED) => Gpus::Whole(1),
            gpus => gpus,
        };
        Task { gpus, ..self }
    }
}

/// How near to each other the tasks of a workload run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Near {
    Anywhere,
    Rack,
    Node,
    /// On GPUs of one NVLink group, on one node.
    Link,
}

/// The request of a workload: equal tasks that start together or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Need {
    pub task: Task,
    pub tasks: u32,
    /// The preferred nearness. If there is no room for it, the fleet tries the next wider one, since a gang in two
    /// racks is better than a gang that waits.
    pub near: Near,
    /// The required nearness. If there is no room for it, the workload waits.
    pub at_least: Near,
    /// Whether each task runs on a node of its own.
    pub apart: bool,
    /// The latest end of the workload, in microseconds; nodes with an earlier wall are excluded.
    pub until_us: i64,
}

impl Need {
    /// Whether all tasks must run on one node.
    pub fn is_for_one_node(&self) -> bool {
        self.tasks == 1 || self.at_least >= Near::Node
    }

    /// Maximum number of tasks on one node.
    pub(super) fn most_in_a_node(&self) -> u64 {
        match self.apart {
            true => 1,
            false => u64::from(self.tasks),
        }
    }

    /// Whether all GPUs must be linked to each other. A single GPU needs no link.
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

    /// One task, anywhere, without an end.
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

/// Where the tasks of a workload run, one piece for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub pieces: Vec<Piece>,
}

/// The allocation of one task on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub node: NodeIndex,
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    pub gpus: Vec<Part>,
}

/// Thousandths of the GPU with this number on its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub gpu: u16,
    pub thousandths: u16,
}
