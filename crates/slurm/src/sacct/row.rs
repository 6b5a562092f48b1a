//! A job as `sacct` remembers it.

use jiff::Timestamp;

use crate::duration::TimeLimit;
use crate::row::Member;
use crate::state::JobState;

/// One line of `sacct`: a whole job, since Berth's jobs have no steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountingRow {
    pub id: u64,
    pub member: Option<Member>,
    pub name: String,
    pub user: String,
    pub uid: u32,
    pub group: String,
    pub gid: u32,
    pub account: Option<String>,
    pub cluster: String,
    pub partition: String,
    pub qos: Option<String>,
    pub reservation: Option<String>,
    pub state: JobState,
    /// Who cancelled it, by number.
    pub cancelled_by: Option<u32>,
    pub reason: String,
    pub exit_code: u32,
    pub exit_signal: u32,
    pub submitted: Timestamp,
    pub eligible: Option<Timestamp>,
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
    pub elapsed_s: u64,
    /// None where the partition's holds.
    pub time_limit: Option<TimeLimit>,
    pub req_cpus: u32,
    pub req_nodes: u32,
    pub req_memory_mib: u64,
    pub req_tres: Option<String>,
    pub alloc_cpus: u32,
    pub alloc_tres: Option<String>,
    pub node_list: Vec<String>,
    /// Seconds of CPU that it used.
    pub cpu_used_s: u64,
    pub max_rss_kib: Option<u64>,
    pub priority: u32,
    pub comment: Option<String>,
    pub constraints: Option<String>,
    pub submit_line: Option<String>,
    pub work_dir: String,
}

impl AccountingRow {
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
            cluster: "berth".to_owned(),
            partition: partition.to_owned(),
            qos: None,
            reservation: None,
            state: JobState::Pending,
            cancelled_by: None,
            reason: "None".to_owned(),
            exit_code: 0,
            exit_signal: 0,
            submitted,
            eligible: None,
            start: None,
            end: None,
            elapsed_s: 0,
            time_limit: None,
            req_cpus: 1,
            req_nodes: 1,
            req_memory_mib: 0,
            req_tres: None,
            alloc_cpus: 1,
            alloc_tres: None,
            node_list: Vec::new(),
            cpu_used_s: 0,
            max_rss_kib: None,
            priority: 0,
            comment: None,
            constraints: None,
            submit_line: None,
            work_dir: "/".to_owned(),
        }
    }

    pub fn shown_id(&self) -> String {
        match &self.member {
            None => self.id.to_string(),
            Some(member) => member.to_string(),
        }
    }

    /// How long it waited since it could have started.
    pub(super) fn waited_s(&self) -> Option<u64> {
        let (eligible, start) = (self.eligible?, self.start?);
        u64::try_from(start.as_second() - eligible.as_second()).ok()
    }
}
