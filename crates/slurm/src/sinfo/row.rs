//! Nodes and partitions as `sinfo` shows them.

use jiff::Timestamp;

use crate::duration::TimeLimit;
use crate::state::NodeState;

/// Why a node is out of use, who said so and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub text: String,
    pub user: String,
    pub uid: u32,
    pub since: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    pub name: String,
    pub hostname: String,
    pub address: String,
    pub state: NodeState,
    pub is_responding: bool,
    pub cpus: u32,
    pub cpus_allocated: u32,
    pub sockets: u32,
    pub cores_per_socket: u32,
    pub threads_per_core: u32,
    pub memory_mib: u64,
    pub memory_allocated_mib: u64,
    pub memory_free_mib: Option<u64>,
    /// In hundredths.
    pub cpu_load: Option<u32>,
    pub disk_mib: u64,
    pub weight: u32,
    /// Between commas.
    pub features: Option<String>,
    /// `gpu:a100:4`
    pub gres: Option<String>,
    pub gres_used: Option<String>,
    pub reason: Option<Reason>,
    pub version: String,
}

impl NodeRow {
    /// A node of which only this is known: nothing is wrong with it, and nothing runs.
    pub fn idle(name: &str, cpus: u32, memory_mib: u64) -> Self {
        Self {
            name: name.to_owned(),
            hostname: name.to_owned(),
            address: name.to_owned(),
            state: NodeState::Idle,
            is_responding: true,
            cpus,
            cpus_allocated: 0,
            sockets: 1,
            cores_per_socket: cpus,
            threads_per_core: 1,
            memory_mib,
            memory_allocated_mib: 0,
            memory_free_mib: None,
            cpu_load: None,
            disk_mib: 0,
            weight: 1,
            features: None,
            gres: None,
            gres_used: None,
            reason: None,
            version: String::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionRow {
    pub name: String,
    pub is_default: bool,
    /// `up`, `down`, `drain` or `inact`.
    pub availability: String,
    pub time_limit: TimeLimit,
    pub default_time: Option<TimeLimit>,
    pub min_nodes: u32,
    pub max_nodes: Option<u32>,
    pub is_root_only: bool,
    /// `NO`, `EXCLUSIVE`, `YES:4`, `FORCE:4`.
    pub over_subscribe: String,
    /// Who may use it; None for all.
    pub groups: Option<String>,
    pub preempt_mode: String,
    pub priority_tier: u32,
    pub priority_job_factor: u32,
    /// The names of its nodes.
    pub nodes: Vec<String>,
}

impl PartitionRow {
    /// A partition that is up, for all, without limits.
    pub fn open(name: &str, nodes: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            is_default: false,
            availability: "up".to_owned(),
            time_limit: TimeLimit::Unlimited,
            default_time: None,
            min_nodes: 1,
            max_nodes: None,
            is_root_only: false,
            over_subscribe: "NO".to_owned(),
            groups: None,
            preempt_mode: "OFF".to_owned(),
            priority_tier: 1,
            priority_job_factor: 1,
            nodes,
        }
    }
}
