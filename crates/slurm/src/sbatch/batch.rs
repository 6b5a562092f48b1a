//! Everything that a submission asks for, each in a type that cannot be wrong.

use jiff::Timestamp;

use crate::amount::{Gres, Nodes};
use crate::array::Array;
use crate::dependency::Dependencies;
use crate::duration::TimeLimit;

/// A job as it was asked for. What is None or empty was not said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Never unsaid: a script's file name stands in, or `wrap`.
    pub name: String,
    pub account: Option<String>,
    /// In the order of preference.
    pub partitions: Vec<String>,
    pub qos: Option<String>,
    pub reservation: Option<String>,
    pub nodes: Option<Nodes>,
    pub tasks: Option<u32>,
    pub tasks_per_node: Option<u32>,
    pub cpus_per_task: Option<u32>,
    pub memory: Option<Memory>,
    /// Of the whole job.
    pub gpus: Vec<Gres>,
    pub gpus_per_node: Vec<Gres>,
    pub gpus_per_task: Vec<Gres>,
    /// Generic resources other than GPUs, per node.
    pub gres: Vec<Gres>,
    pub time_limit: Option<TimeLimit>,
    pub time_min: Option<TimeLimit>,
    pub array: Option<Array>,
    pub dependencies: Option<Dependencies>,
    pub begin: Option<Timestamp>,
    pub deadline: Option<Timestamp>,
    /// Patterns of file names, see [`crate::pattern`].
    pub output: Option<String>,
    pub error: Option<String>,
    pub input: Option<String>,
    pub open_mode: Option<OpenMode>,
    pub work_dir: Option<String>,
    pub comment: Option<String>,
    /// Features of nodes with `&`, `|`, `[]` and `*`, as they were written.
    pub constraint: Option<String>,
    pub requeue: Option<bool>,
    pub is_held: bool,
    pub exclusive: Option<Exclusive>,
    pub nice: i32,
    pub priority: Option<u32>,
    pub nodelist: Vec<String>,
    pub exclude: Vec<String>,
    pub mail: Vec<Mail>,
    pub mail_user: Option<String>,
    pub signal: Option<Signal>,
    pub switches: Option<Switches>,
    pub export: Option<Export>,
    pub manner: Manner,
}

/// How the submission itself is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Manner {
    /// Print the id alone.
    pub is_parsable: bool,
    /// Submit nothing, but say when it would start.
    pub is_only_a_test: bool,
    pub is_quiet: bool,
    /// Stay until the job has ended.
    pub waits: bool,
    pub is_verbose: bool,
}

/// In mebibytes. None at all per node means all that the node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    PerNode(u64),
    PerCpu(u64),
    PerGpu(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    Append,
    Truncate,
}

/// Whom a job's nodes are shared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusive {
    Nobody,
    /// Only jobs of the same person.
    SameUser,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mail {
    Begin,
    End,
    Fail,
    Requeue,
    InvalidDependency,
    StageOut,
    TimeLimit,
    /// At so many per cent of the time limit: 50, 80 or 90.
    TimeLimitPercent(u8),
    /// For each task of an array and not once for all.
    ArrayTasks,
}

/// A signal sent some time before the time limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// Without `SIG`: `USR1`, or a number.
    pub name: String,
    pub seconds_before: u16,
    /// To the batch shell alone, not to what it started.
    pub is_for_shell: bool,
    /// Allowed while a reservation that overlaps makes room.
    pub is_for_reservation: bool,
}

/// The most switches that the nodes may be spread over, and how long to wait for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    pub count: u32,
    pub wait: Option<TimeLimit>,
}

/// Which variables of the submitter's environment the job gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Export {
    All,
    None,
    /// These by name or with a value; everything else too if `and_all`.
    Some {
        and_all: bool,
        variables: Vec<(String, Option<String>)>,
    },
}

/// How large the job is, by Slurm's rules for what was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// None where it depends on how many tasks fit a node.
    pub nodes: Option<Nodes>,
    pub tasks: u32,
    pub cpus_per_task: u32,
}

impl Batch {
    /// How many GPUs of any model, of the whole job.
    pub fn gpu_count(gpus: &[Gres]) -> u64 {
        gpus.iter().map(|gres| gres.count).sum()
    }

    pub fn shape(&self) -> Shape {
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let gpus = Self::gpu_count(&self.gpus);
        let divided = |by: &[Gres]| {
            let parts = gpus.checked_div(Self::gpu_count(by));
            parts.filter(|parts| *parts > 0).map(count)
        };
        // So many GPUs, and so many on each node: that says how many nodes.
        let by_gpus = divided(&self.gpus_per_node).map(|nodes| Nodes {
            min: nodes,
            max: nodes,
        });
        let nodes = by_gpus.or(self.nodes);
        let least = nodes.map_or(1, |nodes| nodes.min);
        let tasks = if let Some(tasks) = self.tasks {
            tasks
        } else if let Some(per_node) = self.tasks_per_node {
            per_node.saturating_mul(least)
        } else {
            divided(&self.gpus_per_task).unwrap_or(least)
        };
        // A node without a task is not asked for, even if it was: Slurm says so and takes fewer.
        let nodes = nodes.map(|nodes| match self.tasks {
            Some(tasks) => Nodes {
                min: nodes.min.min(tasks),
                max: nodes.max.min(tasks),
            },
            None => nodes,
        });
        let one = Nodes { min: 1, max: 1 };
        Shape {
            nodes: nodes.or((tasks == 1).then_some(one)),
            tasks,
            cpus_per_task: self.cpus_per_task.unwrap_or(1),
        }
    }
}
