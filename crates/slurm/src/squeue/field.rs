//! The columns of `squeue`.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::amount::print_mib;
use crate::duration::short;
use crate::hostlist::compress;
use crate::row::{JobRow, Member};
use crate::state::JobState;
use crate::{duration::TimeLimit, moment};

/// What a column shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// A letter of `--format`, which many of the long names stand for as well.
    Letter(char),
    AllocNodes,
    AccrueTime,
    Cluster,
    CpusPerTask,
    Deadline,
    EligibleTime,
    ExitCode,
    JobId,
    MaxCpus,
    MaxNodes,
    NumTasks,
    PendingTime,
    PreemptTime,
    Requeue,
    Restarts,
    Stderr,
    Stdin,
    Stdout,
    TresAlloc,
    TresPerJob,
    TresPerTask,
    /// What no job of Berth's has: a heading and what Slurm shows in that case.
    Never(&'static str, &'static str),
}

use Field::{Letter, Never};

/// In the order of `%all`.
pub(super) const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The names of `--Format`.
pub(super) const NAMES: &[(&str, Field)] = &[
    ("Account", Letter('a')),
    ("AccrueTime", Field::AccrueTime),
    ("admin_comment", Never("ADMIN_COMMENT", "(null)")),
    ("AllocNodes", Field::AllocNodes),
    ("AllocSID", Never("ALLOC_SID", "0")),
    ("ArrayJobID", Letter('F')),
    ("ArrayTaskID", Letter('K')),
    ("AssocID", Never("ASSOC_ID", "0")),
    ("BatchFlag", Never("BATCH_FLAG", "1")),
    ("BatchHost", Letter('B')),
    ("BoardsPerNode", Never("BOARDS_PER_NODE", "0")),
    ("BurstBuffer", Never("BURST_BUFFER", "(null)")),
    ("BurstBufferState", Never("BURST_BUFFER_STATE", "(null)")),
    ("Cluster", Field::Cluster),
    ("ClusterFeature", Never("CLUSTER_FEATURES", "(null)")),
    ("Command", Letter('o')),
    ("Comment", Letter('k')),
    ("Container", Never("CONTAINER", "(null)")),
    ("Contiguous", Letter('O')),
    ("Cores", Letter('I')),
    ("CoreSpec", Letter('X')),
    ("cpus-per-task", Field::CpusPerTask),
    ("cpus-per-tres", Never("CPUS_PER_TRES", "N/A")),
    ("Deadline", Field::Deadline),
    ("DelayBoot", Never("DELAY_BOOT", "0:00")),
    ("Dependency", Letter('E')),
    ("DerivedEC", Never("DERIVED_EC", "0")),
    ("EligibleTime", Field::EligibleTime),
    ("EndTime", Letter('e')),
    ("exit_code", Field::ExitCode),
    ("Feature", Letter('f')),
    ("GroupID", Letter('G')),
    ("GroupName", Letter('g')),
    ("HetJobID", Never("HET_JOB_ID", "N/A")),
    ("HetJobIDSet", Never("HET_JOB_ID_SET", "N/A")),
    ("HetJobOffset", Never("HET_JOB_OFFSET", "N/A")),
    ("JobArrayID", Letter('i')),
    ("JobID", Field::JobId),
    ("Licenses", Letter('W')),
    ("MaxCPUs", Field::MaxCpus),
    ("MaxNodes", Field::MaxNodes),
    ("MCSLabel", Never("MCSLABEL", "(null)")),
    ("mem-per-tres", Never("MEM_PER_TRES", "N/A")),
    ("MinCpus", Letter('c')),
    ("MinMemory", Letter('m')),
    ("MinTime", Never("TIME_MIN", "0:00")),
    ("MinTmpDisk", Letter('d')),
    ("Name", Letter('j')),
    ("Network", Never("NETWORK", "(null)")),
    ("Nice", Letter('y')),
    ("NodeList", Letter('N')),
    ("NTPerBoard", Never("NTASKS_PER_BOARD", "0")),
    ("NTPerCore", Never("NTASKS_PER_CORE", "N/A")),
    ("NTPerNode", Never("NTASKS_PER_NODE", "0")),
    ("NTPerSocket", Never("NTASKS_PER_SOCKET", "N/A")),
    ("NumCPUs", Letter('C')),
    ("NumNodes", Letter('D')),
    ("NumTasks", Field::NumTasks),
    ("Origin", Never("ORIGIN", "NA")),
    ("OriginRaw", Never("ORIGIN_RAW", "NA")),
    ("OverSubscribe", Letter('h')),
    ("Partition", Letter('P')),
    ("PendingTime", Field::PendingTime),
    ("PreemptTime", Field::PreemptTime),
    ("Prefer", Never("PREFER", "(null)")),
    ("Priority", Letter('p')),
    ("PriorityLong", Letter('Q')),
    ("Profile", Never("PROFILE", "NotSet")),
    ("QOS", Letter('q')),
    ("Reason", Letter('r')),
    ("ReasonList", Letter('R')),
    ("Reboot", Never("REBOOT", "0")),
    ("ReqNodes", Letter('n')),
    ("ReqSwitch", Never("REQ_SWITCH", "0")),
    ("Requeue", Field::Requeue),
    ("Reservation", Letter('v')),
    ("ResizeTime", Never("RESIZE_TIME", "N/A")),
    ("RestartCnt", Field::Restarts),
    ("SchedNodes", Letter('Y')),
    ("SCT", Letter('z')),
    ("SelectJobInfo", Letter('s')),
    ("SiblingsActive", Never("ACTIVE_SIBLINGS", "NA")),
    ("SiblingsActiveRaw", Never("ACTIVE_SIBLINGS_RAW", "NA")),
    ("SiblingsViable", Never("VIABLE_SIBLINGS", "NA")),
    ("SiblingsViableRaw", Never("VIALBLE_SIBLINGS_RAW", "NA")),
    ("Sockets", Letter('H')),
    ("SPerBoard", Never("SOCKETS_PER_BOARD", "0")),
    ("StartTime", Letter('S')),
    ("State", Letter('T')),
    ("StateCompact", Letter('t')),
    ("STDERR", Field::Stderr),
    ("STDIN", Field::Stdin),
    ("STDOUT", Field::Stdout),
    ("SubmitTime", Letter('V')),
    ("system_comment", Never("SYSTEM_COMMENT", "(null)")),
    ("Threads", Letter('J')),
    ("TimeLeft", Letter('L')),
    ("TimeLimit", Letter('l')),
    ("TimeUsed", Letter('M')),
    ("tres-alloc", Field::TresAlloc),
    ("tres-bind", Never("TRES_BIND", "N/A")),
    ("tres-freq", Never("TRES_FREQ", "N/A")),
    ("tres-per-job", Field::TresPerJob),
    ("tres-per-node", Letter('b')),
    ("tres-per-socket", Never("TRES_PER_SOCKET", "N/A")),
    ("tres-per-task", Field::TresPerTask),
    ("UserID", Letter('U')),
    ("UserName", Letter('u')),
    ("Wait4Switch", Never("WAIT4SWITCH", "0:00")),
    ("WCKey", Letter('w')),
    ("WorkDir", Letter('Z')),
];

pub(super) fn of_letter(letter: char) -> Option<Field> {
    letter.is_ascii_alphabetic().then_some(Letter(letter))
}

pub(super) fn header(field: Field) -> &'static str {
    match field {
        Letter(letter) => match letter {
            'a' => "ACCOUNT",
            'A' | 'i' => "JOBID",
            'b' => "TRES_PER_NODE",
            'B' => "EXEC_HOST",
            'c' => "MIN_CPUS",
            'C' => "CPUS",
            'd' => "MIN_TMP_DISK",
            'D' => "NODES",
            'e' => "END_TIME",
            'E' => "DEPENDENCY",
            'f' => "FEATURES",
            'F' => "ARRAY_JOB_ID",
            'g' | 'G' => "GROUP",
            'h' => "OVER_SUBSCRIBE",
            'H' => "SOCKETS_PER_NODE",
            'I' => "CORES_PER_SOCKET",
            'j' => "NAME",
            'J' => "THREADS_PER_CORE",
            'k' => "COMMENT",
            'K' => "ARRAY_TASK_ID",
            'l' => "TIME_LIMIT",
            'L' => "TIME_LEFT",
            'm' => "MIN_MEMORY",
            'M' => "TIME",
            'n' => "REQ_NODES",
            'N' => "NODELIST",
            'o' => "COMMAND",
            'O' => "CONTIGUOUS",
            'p' | 'Q' => "PRIORITY",
            'P' => "PARTITION",
            'q' => "QOS",
            'r' => "REASON",
            'R' => "NODELIST(REASON)",
            'S' => "START_TIME",
            't' => "ST",
            'T' => "STATE",
            'u' => "USER",
            'U' => "UID",
            'v' => "RESERVATION",
            'V' => "SUBMIT_TIME",
            'w' => "WCKEY",
            'W' => "LICENSES",
            'x' => "EXC_NODES",
            'X' => "CORE_SPEC",
            'y' => "NICE",
            'Y' => "SCHEDNODES",
            'z' => "S:C:T",
            'Z' => "WORK_DIR",
            _ => "",
        },
        Field::AccrueTime => "ACCRUE_TIME",
        Field::AllocNodes => "ALLOC_NODES",
        Field::Cluster => "CLUSTER",
        Field::CpusPerTask => "CPUS_PER_TASK",
        Field::Deadline => "DEADLINE",
        Field::EligibleTime => "ELIGIBLE_TIME",
        Field::ExitCode => "EXIT_CODE",
        Field::JobId => "JOBID",
        Field::MaxCpus => "MAX_CPUS",
        Field::MaxNodes => "MAX_NODES",
        Field::NumTasks => "TASKS",
        Field::PendingTime => "PENDING_TIME",
        Field::PreemptTime => "PREEMPT_TIME",
        Field::Requeue => "REQUEUE",
        Field::Restarts => "RESTART_COUNT",
        Field::Stderr => "STDERR",
        Field::Stdin => "STDIN",
        Field::Stdout => "STDOUT",
        Field::TresAlloc => "TRES_ALLOC",
        Field::TresPerJob => "TRES_PER_JOB",
        Field::TresPerTask => "TRES_PER_TASK",
        Never(header, _) => header,
    }
}

/// What the rows do not say, but the columns show.
#[derive(Debug, Clone)]
pub struct View<'v> {
    pub now: Timestamp,
    pub zone: TimeZone,
    /// What this Berth calls itself.
    pub cluster: &'v str,
}

/// A length of time, of which Slurm never shows a part where it stands to the right.
pub(super) fn is_time(field: Field) -> bool {
    matches!(field, Letter('l' | 'L' | 'M'))
}

fn or(text: Option<&String>, nothing: &str) -> String {
    text.map_or_else(|| nothing.to_owned(), Clone::clone)
}

fn left(row: &JobRow) -> String {
    match row.time_limit {
        TimeLimit::Unlimited => "UNLIMITED".to_owned(),
        TimeLimit::Minutes(minutes) => {
            let limit = u64::from(minutes) * 60;
            short(limit.saturating_sub(row.time_used_s))
        }
    }
}

/// Why it waits or failed, in parentheses; otherwise where it is.
fn nodes_or_reason(row: &JobRow) -> String {
    if row.state == JobState::Pending || row.state.is_failure() {
        format!("({})", row.reason)
    } else {
        compress(&row.node_list)
    }
}

pub(super) fn value(field: Field, row: &JobRow, view: &View<'_>) -> String {
    let time = |moment: Option<Timestamp>| {
        moment.map_or_else(|| "N/A".to_owned(), |at| moment::print(at, &view.zone))
    };
    let null = |text: Option<&String>| or(text, "(null)");
    match field {
        Letter(letter) => match letter {
            'a' => null(row.account.as_ref()),
            'A' => row.id.to_string(),
            'b' => or(row.tres_per_node.as_ref(), "N/A"),
            'B' => or(row.node_list.first(), "n/a"),
            'c' => row.cpus_per_task.to_string(),
            'C' => row.cpus.to_string(),
            'd' | 'O' => "0".to_owned(),
            'D' => row.nodes.to_string(),
            // A job that has a start but no limit has no end.
            'e' if row.end.is_none() && row.start.is_some() => "NONE".to_owned(),
            'e' => time(row.end),
            'E' => null(row.dependency.as_ref()),
            'f' => null(row.features.as_ref()),
            'F' => row.array_id().to_string(),
            'g' => row.group.clone(),
            'G' => row.gid.to_string(),
            'h' => if row.is_exclusive { "NO" } else { "OK" }.to_owned(),
            'H' | 'I' | 'J' => "*".to_owned(),
            'i' => row.shown_id(),
            'j' => row.name.clone(),
            'k' => null(row.comment.as_ref()),
            'K' => match &row.member {
                None => "N/A".to_owned(),
                Some(Member::Task { index, .. }) => index.to_string(),
                Some(Member::Waiting { tasks, .. }) => tasks.shown(),
            },
            'l' => row.time_limit.to_string(),
            'L' => left(row),
            'm' => print_mib(row.memory_mib),
            'M' => short(row.time_used_s),
            'n' => compress(&row.required_nodes),
            'N' => compress(&row.node_list),
            'o' => null(row.command.as_ref()),
            'p' => format!("{:.14}", f64::from(row.priority) / f64::from(u32::MAX)),
            'P' => row.partition.clone(),
            'q' => null(row.qos.as_ref()),
            'Q' => row.priority.to_string(),
            'r' => row.reason.clone(),
            'R' => nodes_or_reason(row),
            'S' => time(row.start),
            't' => row.state.short().to_owned(),
            'T' => row.state.long().to_owned(),
            'u' => row.user.clone(),
            'U' => row.uid.to_string(),
            'v' => null(row.reservation.as_ref()),
            'V' => time(Some(row.submitted)),
            'w' | 'W' => "(null)".to_owned(),
            'x' => compress(&row.excluded_nodes),
            'X' => "N/A".to_owned(),
            'y' => row.nice.to_string(),
            'Y' if row.planned_nodes.is_empty() => "(null)".to_owned(),
            'Y' => compress(&row.planned_nodes),
            'z' => "*:*:*".to_owned(),
            'Z' => row.work_dir.clone(),
            _ => String::new(),
        },
        Field::AccrueTime | Field::EligibleTime => time(row.eligible),
        Field::AllocNodes => "N/A".to_owned(),
        Field::Cluster => view.cluster.to_owned(),
        Field::CpusPerTask => row.cpus_per_task.to_string(),
        Field::Deadline => time(row.deadline),
        Field::ExitCode => row.exit_code.to_string(),
        Field::JobId => row.id.to_string(),
        Field::MaxCpus => row.cpus.to_string(),
        Field::MaxNodes => row.max_nodes.to_string(),
        Field::NumTasks => row.tasks.to_string(),
        Field::PendingTime => {
            let until = match row.state {
                JobState::Pending => view.now,
                _ => row.start.unwrap_or(view.now),
            };
            let waited = until.as_second() - row.submitted.as_second();
            waited.max(0).to_string()
        }
        Field::PreemptTime => time(row.preempted),
        Field::Requeue => u8::from(row.requeue).to_string(),
        Field::Restarts => row.restarts.to_string(),
        Field::Stderr => row.stderr.clone(),
        Field::Stdin => row.stdin.clone(),
        Field::Stdout => row.stdout.clone(),
        Field::TresAlloc => or(row.tres_alloc.as_ref(), "N/A"),
        Field::TresPerJob => or(row.tres_per_job.as_ref(), "N/A"),
        Field::TresPerTask => or(row.tres_per_task.as_ref(), "N/A"),
        Never(_, value) => value.to_owned(),
    }
}
