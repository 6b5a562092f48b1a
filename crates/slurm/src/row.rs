//! A job as `squeue` shows it.

use std::fmt;

use jiff::Timestamp;

use crate::array::Array;
use crate::duration::TimeLimit;
use crate::state::JobState;

/// What a row is to an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Member {
    /// One task.
    Task { array: u64, index: u32 },
    /// The tasks that still wait, in one row.
    Waiting { array: u64, tasks: Array },
}

impl Member {
    pub fn array(&self) -> u64 {
        match self {
            Self::Task { array, .. } | Self::Waiting { array, .. } => *array,
        }
    }
}

/// `12_3`, `12_[4-9%2]`
impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task { array, index } => write!(f, "{array}_{index}"),
            Self::Waiting { array, tasks } => write!(f, "{array}_[{}]", tasks.shown()),
        }
    }
}

/// One line of `squeue`. None and empty are shown as Slurm shows what a job does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    /// Its own number, also of a task of an array.
    pub id: u64,
    pub member: Option<Member>,
    pub name: String,
    pub user: String,
    pub uid: u32,
    pub group: String,
    pub gid: u32,
    pub account: Option<String>,
    pub partition: String,
    pub qos: Option<String>,
    pub reservation: Option<String>,
    pub state: JobState,
    /// Why it waits or failed, without parentheses: `Resources`, `ReqNodeNotAvail, UnavailableNodes:n1`, `None`.
    pub reason: String,
    pub submitted: Timestamp,
    pub eligible: Option<Timestamp>,
    /// When it started, or is expected to.
    pub start: Option<Timestamp>,
    /// When it ended, or must.
    pub end: Option<Timestamp>,
    pub deadline: Option<Timestamp>,
    pub preempted: Option<Timestamp>,
    pub time_limit: TimeLimit,
    pub time_used_s: u64,
    pub nodes: u32,
    pub max_nodes: u32,
    pub cpus: u32,
    pub tasks: u32,
    pub cpus_per_task: u32,
    /// Per node or, where `is_memory_per_cpu`, per CPU.
    pub memory_mib: u64,
    pub is_memory_per_cpu: bool,
    /// `gres:gpu:a100:2`
    pub tres_per_node: Option<String>,
    pub tres_per_job: Option<String>,
    pub tres_per_task: Option<String>,
    /// `cpu=4,mem=8G,node=1,billing=4,gres/gpu=2`
    pub tres_alloc: Option<String>,
    /// Those it has.
    pub node_list: Vec<String>,
    /// Those it asked for, and those it did not want.
    pub required_nodes: Vec<String>,
    pub excluded_nodes: Vec<String>,
    /// Those it is expected to get.
    pub planned_nodes: Vec<String>,
    pub features: Option<String>,
    /// As [`crate::dependency::Dependencies`] prints it.
    pub dependency: Option<String>,
    pub priority: u32,
    pub nice: i32,
    pub comment: Option<String>,
    pub command: Option<String>,
    pub work_dir: String,
    pub stdout: String,
    pub stderr: String,
    pub stdin: String,
    /// Its nodes are its own.
    pub is_exclusive: bool,
    pub requeue: bool,
    pub restarts: u32,
    pub exit_code: u32,
}

impl JobRow {
    /// A job of which only this is known: it waits, and has asked for one CPU.
    pub fn pending(id: u64, name: &str, user: &str, partition: &str, submitted: Timestamp) -> Self {
        Self {
            id,
            member: None,
            name: name.to_owned(),
            user: user.to_owned(),
            uid: 0,
            group: user.to_owned(),
            gid: 0,
            account: None,
            partition: partition.to_owned(),
            qos: None,
            reservation: None,
            state: JobState::Pending,
            reason: "None".to_owned(),
            submitted,
            eligible: None,
            start: None,
            end: None,
            deadline: None,
            preempted: None,
            time_limit: TimeLimit::Unlimited,
            time_used_s: 0,
            nodes: 1,
            max_nodes: 1,
            cpus: 1,
            tasks: 1,
            cpus_per_task: 1,
            memory_mib: 0,
            is_memory_per_cpu: false,
            tres_per_node: None,
            tres_per_job: None,
            tres_per_task: None,
            tres_alloc: None,
            node_list: Vec::new(),
            required_nodes: Vec::new(),
            excluded_nodes: Vec::new(),
            planned_nodes: Vec::new(),
            features: None,
            dependency: None,
            priority: 0,
            nice: 0,
            comment: None,
            command: None,
            work_dir: "/".to_owned(),
            stdout: "/dev/null".to_owned(),
            stderr: "/dev/null".to_owned(),
            stdin: "/dev/null".to_owned(),
            is_exclusive: false,
            requeue: true,
            restarts: 0,
            exit_code: 0,
        }
    }

    /// The number of the array it belongs to, or its own.
    pub fn array_id(&self) -> u64 {
        self.member.as_ref().map_or(self.id, Member::array)
    }

    /// `12`, `12_3`, `12_[4-9%2]`. Slurm has no more room for it than this.
    pub fn shown_id(&self) -> String {
        const LENGTH_MAX: usize = 31;
        let member = self.member.as_ref().map(Member::to_string);
        let mut id = member.unwrap_or_else(|| self.id.to_string());
        id.truncate(LENGTH_MAX);
        id
    }

    /// One row for each task that waits, as `squeue -r` lists them.
    pub(crate) fn each_task(&self) -> Vec<Self> {
        match &self.member {
            Some(Member::Waiting { array, tasks }) => tasks
                .indices()
                .map(|index| Self {
                    member: Some(Member::Task {
                        array: *array,
                        index,
                    }),
                    ..self.clone()
                })
                .collect(),
            _ => vec![self.clone()],
        }
    }
}
