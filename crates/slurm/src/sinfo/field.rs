//! The columns of `sinfo`, and which of them keep nodes on lines of their own.

use jiff::tz::TimeZone;

use super::row::{NodeRow, PartitionRow};
use crate::duration::TimeLimit;
use crate::hostlist::compress;
use crate::moment;

/// What a column shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// A letter of `--format`, which many of the long names stand for as well.
    Letter(char),
    AllocMem,
    GresUsed,
    /// What no node of Berth's has: a heading and what Slurm shows in that case.
    Never(&'static str, &'static str),
}

use Field::{Letter, Never};

pub(super) const LETTERS: &str = "aAbBcCdDeEfFgGhHIlLmMnNoOpPrRsStTuUvVwXYzZ";

pub(super) const NAMES: &[(&str, Field)] = &[
    ("AllocMem", Field::AllocMem),
    ("AllocNodes", Letter('S')),
    ("Available", Letter('a')),
    ("Cluster", Letter('V')),
    ("Comment", Never("COMMENT", "(null)")),
    ("Cores", Letter('Y')),
    ("CPUs", Letter('c')),
    ("CPUsLoad", Letter('O')),
    ("CPUsState", Letter('C')),
    ("DefaultTime", Letter('L')),
    ("Disk", Letter('d')),
    ("Extra", Never("EXTRA", "(null)")),
    ("Features", Letter('f')),
    ("features_act", Letter('b')),
    ("FreeMem", Letter('e')),
    ("Gres", Letter('G')),
    ("GresUsed", Field::GresUsed),
    ("Groups", Letter('g')),
    ("MaxCPUsPerNode", Letter('B')),
    ("Memory", Letter('m')),
    ("NodeAddr", Letter('o')),
    ("NodeAI", Letter('A')),
    ("NodeAIOT", Letter('F')),
    ("NodeHost", Letter('n')),
    ("NodeList", Letter('N')),
    ("Nodes", Letter('D')),
    ("OverSubscribe", Letter('h')),
    ("Partition", Letter('P')),
    ("PartitionName", Letter('R')),
    ("PreemptMode", Letter('M')),
    ("Priority", Letter('p')),
    ("PriorityJobFactor", Letter('I')),
    ("PriorityTier", Letter('p')),
    ("Reason", Letter('E')),
    ("Root", Letter('r')),
    ("Size", Letter('s')),
    ("SocketCoreThread", Letter('z')),
    ("Sockets", Letter('X')),
    ("StateCompact", Letter('t')),
    ("StateLong", Letter('T')),
    ("Threads", Letter('Z')),
    ("Time", Letter('l')),
    ("TimeStamp", Letter('H')),
    ("User", Letter('u')),
    ("UserLong", Letter('U')),
    ("Version", Letter('v')),
    ("Weight", Letter('w')),
];

pub(super) fn of_letter(letter: char) -> Option<Field> {
    LETTERS.contains(letter).then_some(Letter(letter))
}

pub(super) fn header(field: Field) -> &'static str {
    match field {
        Letter(letter) => match letter {
            'a' => "AVAIL",
            'A' => "NODES(A/I)",
            'b' => "ACTIVE_FEATURES",
            'B' => "MAX_CPUS_PER_NODE",
            'c' => "CPUS",
            'C' => "CPUS(A/I/O/T)",
            'd' => "TMP_DISK",
            'D' => "NODES",
            'e' => "FREE_MEM",
            'E' => "REASON",
            'f' => "AVAIL_FEATURES",
            'F' => "NODES(A/I/O/T)",
            'g' => "GROUPS",
            'G' => "GRES",
            'h' => "OVERSUBSCRIBE",
            'H' => "TIMESTAMP",
            'I' => "PRIO_JOB_FACTOR",
            'l' => "TIMELIMIT",
            'L' => "DEFAULTTIME",
            'm' => "MEMORY",
            'M' => "PREEMPT_MODE",
            'n' => "HOSTNAMES",
            'N' => "NODELIST",
            'o' => "NODE_ADDR",
            'O' => "CPU_LOAD",
            'p' => "PRIO_TIER",
            'P' | 'R' => "PARTITION",
            'r' => "ROOT",
            's' => "JOB_SIZE",
            'S' => "ALLOCNODES",
            't' | 'T' => "STATE",
            'u' | 'U' => "USER",
            'v' => "VERSION",
            'V' => "CLUSTER",
            'w' => "WEIGHT",
            'X' => "SOCKETS",
            'Y' => "CORES",
            'z' => "S:C:T",
            'Z' => "THREADS",
            _ => "",
        },
        Field::AllocMem => "ALLOCMEM",
        Field::GresUsed => "GRES_USED",
        Never(header, _) => header,
    }
}

/// Nodes that are shown on one line, and the partition they are shown for.
#[derive(Debug, Clone)]
pub(super) struct Group<'g> {
    pub partition: &'g PartitionRow,
    pub nodes: Vec<&'g NodeRow>,
}

/// Whether nodes with different values of it stand on different lines. Other columns sum up, or show a range.
pub(super) fn divides(field: Field, is_exact: bool) -> bool {
    match field {
        Letter('A' | 'C' | 'D' | 'F' | 'N') => false,
        Letter('c' | 'd' | 'e' | 'm' | 'O' | 'w' | 'X' | 'Y' | 'z' | 'Z') | Field::AllocMem => {
            is_exact
        }
        _ => true,
    }
}

pub(super) fn state(node: &NodeRow, is_long: bool) -> String {
    let name = if is_long {
        node.state.long()
    } else {
        node.state.short()
    };
    format!("{name}{}", if node.is_responding { "" } else { "*" })
}

/// The smallest, with a plus where others have more.
fn least(nodes: &[&NodeRow], of: impl Fn(&NodeRow) -> u64) -> String {
    let least = nodes.iter().map(|node| of(node)).min().unwrap_or(0);
    let is_more = nodes.iter().any(|node| of(node) > least);
    format!("{least}{}", if is_more { "+" } else { "" })
}

/// From the smallest to the largest.
fn range<T: Ord + Copy>(
    nodes: &[&NodeRow],
    of: impl Fn(&NodeRow) -> Option<T>,
    print: impl Fn(T) -> String,
) -> String {
    let values = || nodes.iter().filter_map(|node| of(node));
    match (values().min(), values().max()) {
        (Some(least), Some(most)) if least == most => print(least),
        (Some(least), Some(most)) => format!("{}-{}", print(least), print(most)),
        _ => "N/A".to_owned(),
    }
}

/// How much is in use, is free, can be neither, and is there in all.
fn shares(nodes: &[&NodeRow], of: impl Fn(&NodeRow) -> (u64, u64)) -> [u64; 4] {
    let mut shares = [0; 4];
    for node in nodes {
        let (busy, all) = of(node);
        shares[0] += busy;
        shares[if node.state.is_usable() { 1 } else { 2 }] += all - busy.min(all);
        shares[3] += all;
    }
    shares
}

fn time_limit(limit: TimeLimit) -> String {
    match limit {
        TimeLimit::Unlimited => "infinite".to_owned(),
        limit => limit.to_string(),
    }
}

pub(super) fn value(field: Field, group: &Group<'_>, zone: &TimeZone) -> String {
    let Group { partition, nodes } = group;
    let first = nodes.first();
    let null = |text: Option<&String>| text.map_or_else(|| "(null)".to_owned(), Clone::clone);
    let reason = first.and_then(|node| node.reason.as_ref());
    let letter = match field {
        Letter(letter) => letter,
        Field::AllocMem => return least(nodes, |node| node.memory_allocated_mib),
        Field::GresUsed => return null(first.and_then(|node| node.gres_used.as_ref())),
        Never(_, value) => return value.to_owned(),
    };
    match letter {
        'a' => partition.availability.clone(),
        'A' => {
            let [busy, idle, ..] = shares(nodes, |node| (u64::from(node.state.is_busy()), 1));
            format!("{busy}/{idle}")
        }
        'b' | 'f' => null(first.and_then(|node| node.features.as_ref())),
        'B' => "UNLIMITED".to_owned(),
        'c' => least(nodes, |node| u64::from(node.cpus)),
        'C' => {
            let cpus = |node: &NodeRow| (u64::from(node.cpus_allocated), u64::from(node.cpus));
            shares(nodes, cpus).map(|n| n.to_string()).join("/")
        }
        'd' => least(nodes, |node| node.disk_mib),
        'D' => nodes.len().to_string(),
        'e' => range(nodes, |node| node.memory_free_mib, |mib| mib.to_string()),
        'E' => reason.map_or("none", |reason| &reason.text).to_owned(),
        'F' => {
            let shares = shares(nodes, |node| (u64::from(node.state.is_busy()), 1));
            shares.map(|n| n.to_string()).join("/")
        }
        'g' => partition.groups.as_deref().unwrap_or("all").to_owned(),
        'G' => null(first.and_then(|node| node.gres.as_ref())),
        'h' => partition.over_subscribe.clone(),
        'H' => reason
            .and_then(|reason| reason.since)
            .map_or_else(|| "Unknown".to_owned(), |since| moment::print(since, zone)),
        'I' => partition.priority_job_factor.to_string(),
        'l' => time_limit(partition.time_limit),
        'L' => partition
            .default_time
            .map_or_else(|| "n/a".to_owned(), time_limit),
        'm' => least(nodes, |node| node.memory_mib),
        'M' => partition.preempt_mode.clone(),
        'n' => first.map_or_else(String::new, |node| node.hostname.clone()),
        'N' => {
            let names: Vec<_> = nodes.iter().map(|node| &node.name).collect();
            compress(&names)
        }
        'o' => first.map_or_else(String::new, |node| node.address.clone()),
        'O' => range(
            nodes,
            |node| node.cpu_load,
            |load| format!("{}.{:02}", load / 100, load % 100),
        ),
        'p' => partition.priority_tier.to_string(),
        'P' if partition.is_default => format!("{}*", partition.name),
        'P' | 'R' => partition.name.clone(),
        'r' => if partition.is_root_only { "yes" } else { "no" }.to_owned(),
        's' => match partition.max_nodes {
            None => format!("{}-infinite", partition.min_nodes),
            Some(most) if most == partition.min_nodes => most.to_string(),
            Some(most) => format!("{}-{most}", partition.min_nodes),
        },
        'S' => "all".to_owned(),
        't' => first.map_or_else(|| "n/a".to_owned(), |node| state(node, false)),
        'T' => first.map_or_else(|| "n/a".to_owned(), |node| state(node, true)),
        'u' => reason.map_or("Unknown", |reason| &reason.user).to_owned(),
        'U' => reason.map_or_else(
            || "Unknown".to_owned(),
            |reason| format!("{}({})", reason.user, reason.uid),
        ),
        'v' => first.map_or_else(String::new, |node| node.version.clone()),
        'V' => "N/A".to_owned(),
        'w' => least(nodes, |node| u64::from(node.weight)),
        'X' => least(nodes, |node| u64::from(node.sockets)),
        'Y' => least(nodes, |node| u64::from(node.cores_per_socket)),
        'Z' => least(nodes, |node| u64::from(node.threads_per_core)),
        'z' => format!(
            "{}:{}:{}",
            least(nodes, |node| u64::from(node.sockets)),
            least(nodes, |node| u64::from(node.cores_per_socket)),
            least(nodes, |node| u64::from(node.threads_per_core))
        ),
        _ => String::new(),
    }
}
