//! `squeue`: which jobs are wanted, in which order, and how they are shown.

mod field;
mod json;

use std::cmp::Ordering;

use crate::UsageError;
use crate::argv::{self, Given, Operands, Opt, Takes};
use crate::hostlist;
use crate::job_id::{self, JobRef, Tasks};
use crate::layout::{Cell, Layout};
use crate::row::{JobRow, Member};
use crate::state::{self, JobState};
pub use field::{Field, View};

const DEFAULT: &str = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
const LONG: &str = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
const START: &str = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
/// By partition, by state, by priority from the top, and the newest first.
const DEFAULT_SORT: &str = "P,t,-p,-A";

/// What somebody wants of `squeue`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Help,
    Usage,
    Version,
    List(Box<Squeue>),
}

/// Which jobs, and how. An empty list asks for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Squeue {
    pub users: Vec<String>,
    /// Only those of whoever asks.
    pub is_mine: bool,
    pub jobs: Vec<JobRef>,
    /// None for every state.
    pub states: Option<Vec<JobState>>,
    pub accounts: Vec<String>,
    pub partitions: Vec<String>,
    pub names: Vec<String>,
    pub qos: Vec<String>,
    pub reservation: Option<String>,
    pub nodes: Vec<String>,
    pub is_json: bool,
    has_header: bool,
    is_long: bool,
    /// One row for each task of an array.
    is_by_task: bool,
    layout: Layout<Field>,
    sort: Vec<(char, bool)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Account,
    Array,
    Format,
    LongFormat,
    Help,
    Jobs,
    Json,
    Long,
    Me,
    Name,
    Nodes,
    NoHeader,
    Partition,
    Qos,
    Reservation,
    Sort,
    Start,
    States,
    Usage,
    User,
    Version,
    /// What changes nothing here: there is one cluster, and nothing is hidden or converted.
    Nothing,
    Refused(&'static str),
}

const ONE_CLUSTER: &str = "there is one queue; leave it out";
const STEPS: &str = "jobs are not divided into steps; leave it out";

const OPTIONS: &[Opt<Key>] = &[
    Opt::new("account", Some('A'), Takes::Value, Key::Account),
    Opt::new("accounts", None, Takes::Value, Key::Account),
    Opt::new("all", Some('a'), Takes::Nothing, Key::Nothing),
    Opt::new("array", Some('r'), Takes::Nothing, Key::Array),
    Opt::new("array-unique", None, Takes::Nothing, Key::Array),
    Opt::new("cluster", None, Takes::Value, Key::Refused(ONE_CLUSTER)),
    Opt::new(
        "clusters",
        Some('M'),
        Takes::Value,
        Key::Refused(ONE_CLUSTER),
    ),
    Opt::new(
        "federation",
        None,
        Takes::Nothing,
        Key::Refused(ONE_CLUSTER),
    ),
    Opt::new("format", Some('o'), Takes::Value, Key::Format),
    Opt::new("Format", Some('O'), Takes::Value, Key::LongFormat),
    Opt::new("help", None, Takes::Nothing, Key::Help),
    Opt::new("hide", None, Takes::Nothing, Key::Nothing),
    Opt::new(
        "iterate",
        Some('i'),
        Takes::Value,
        Key::Refused("run it under watch(1)"),
    ),
    Opt::new("jobs", Some('j'), Takes::Perhaps, Key::Jobs),
    Opt::new("json", None, Takes::Nothing, Key::Json),
    Opt::new(
        "licenses",
        Some('L'),
        Takes::Value,
        Key::Refused("look at the column %b for what jobs asked for"),
    ),
    Opt::new("local", None, Takes::Nothing, Key::Nothing),
    Opt::new("long", Some('l'), Takes::Nothing, Key::Long),
    Opt::new("me", None, Takes::Nothing, Key::Me),
    Opt::new("name", Some('n'), Takes::Value, Key::Name),
    Opt::new(
        "noconvert",
        None,
        Takes::Nothing,
        Key::Refused("memory is shown in its own unit; leave it out"),
    ),
    Opt::new("node", None, Takes::Value, Key::Nodes),
    Opt::new("nodes", None, Takes::Value, Key::Nodes),
    Opt::new("nodelist", Some('w'), Takes::Value, Key::Nodes),
    Opt::new("noheader", Some('h'), Takes::Nothing, Key::NoHeader),
    Opt::new("partition", Some('p'), Takes::Value, Key::Partition),
    Opt::new("partitions", None, Takes::Value, Key::Partition),
    Opt::new(
        "priority",
        Some('P'),
        Takes::Nothing,
        Key::Refused("a job is listed once; sort with --sort=-p"),
    ),
    Opt::new("qos", Some('q'), Takes::Value, Key::Qos),
    Opt::new("reservation", Some('R'), Takes::Value, Key::Reservation),
    Opt::new("sibling", None, Takes::Nothing, Key::Refused(ONE_CLUSTER)),
    Opt::new("sort", Some('S'), Takes::Value, Key::Sort),
    Opt::new("start", None, Takes::Nothing, Key::Start),
    Opt::new("states", Some('t'), Takes::Value, Key::States),
    Opt::new("steps", Some('s'), Takes::Perhaps, Key::Refused(STEPS)),
    Opt::new("usage", None, Takes::Nothing, Key::Usage),
    Opt::new("user", Some('u'), Takes::Value, Key::User),
    Opt::new("users", None, Takes::Value, Key::User),
    Opt::new("verbose", Some('v'), Takes::Nothing, Key::Nothing),
    Opt::new("version", Some('V'), Takes::Nothing, Key::Version),
    Opt::new("yaml", None, Takes::Nothing, Key::Refused("use --json")),
];

/// Which options there are.
pub fn help() -> String {
    argv::help("squeue [options]", OPTIONS, |key| match key {
        Key::Refused(instead) => Some(instead),
        _ => None,
    })
}

/// Reads a command line without the program's name.
pub fn read(arguments: &[String]) -> Result<Asked, UsageError> {
    let arguments = with_jobs_attached(arguments);
    let parsed = argv::parse(OPTIONS, &arguments, Operands::Anywhere)?;
    if let Some(word) = parsed.operands.first() {
        return Err(UsageError::Operand(word.clone()));
    }
    let mut squeue = Squeue {
        users: Vec::new(),
        is_mine: false,
        jobs: Vec::new(),
        states: Some(Vec::new()),
        accounts: Vec::new(),
        partitions: Vec::new(),
        names: Vec::new(),
        qos: Vec::new(),
        reservation: None,
        nodes: Vec::new(),
        is_json: false,
        has_header: true,
        is_long: false,
        is_by_task: false,
        layout: Layout::all(&[]),
        sort: Vec::new(),
    };
    let (mut layout, mut sort, mut is_start) = (None, None, false);
    for option in &parsed.options {
        match option.key {
            Key::Help => return Ok(Asked::Help),
            Key::Usage => return Ok(Asked::Usage),
            Key::Version => return Ok(Asked::Version),
            Key::Account => squeue.accounts = option.list(),
            Key::Array => squeue.is_by_task = true,
            Key::Format => layout = Some(short_layout(option.text())?),
            Key::LongFormat => layout = Some(long_layout(option.text())?),
            Key::Jobs => squeue.jobs = job_id::list(option.text())?,
            Key::Json => squeue.is_json = true,
            Key::Long => squeue.is_long = true,
            Key::Me => squeue.is_mine = true,
            Key::Name => squeue.names = option.list(),
            Key::Nodes => {
                let hosts = hostlist::expand(option.text());
                squeue.nodes = hosts.map_err(|error| option.invalid(error))?;
            }
            Key::NoHeader => squeue.has_header = false,
            Key::Partition => squeue.partitions = option.list(),
            Key::Qos => squeue.qos = option.list(),
            Key::Reservation => squeue.reservation = Some(option.text().to_owned()),
            Key::Sort => sort = Some(read_sort(option)?),
            Key::Start => is_start = true,
            Key::States => squeue.states = state::job_states(option)?,
            Key::User => squeue.users = option.list(),
            Key::Nothing => {}
            Key::Refused(instead) => {
                return Err(UsageError::Unsupported {
                    option: option.name.clone(),
                    instead: instead.to_owned(),
                });
            }
        }
    }
    if is_start && squeue.states.as_ref().is_some_and(Vec::is_empty) {
        squeue.states = Some(vec![JobState::Pending]);
    }
    squeue.layout = match layout {
        Some(layout) => layout,
        None if is_start => short_layout(START)?,
        None if squeue.is_long => short_layout(LONG)?,
        None => short_layout(DEFAULT)?,
    };
    squeue.sort = sort.unwrap_or_else(|| {
        let default = if is_start { "S" } else { DEFAULT_SORT };
        sort_keys(default).unwrap_or_default()
    });
    Ok(Asked::List(Box::new(squeue)))
}

/// `-j` takes its jobs attached only, but Slurm takes them as a word of their own as well.
fn with_jobs_attached(arguments: &[String]) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let begins = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    for argument in arguments {
        match joined.last_mut() {
            Some(last) if last == "-j" && begins(argument) => last.push_str(argument),
            Some(last) if (last == "--jobs" || last == "--job") && begins(argument) => {
                *last = format!("--jobs={argument}");
            }
            _ => joined.push(argument.clone()),
        }
    }
    joined
}

fn short_layout(format: &str) -> Result<Layout<Field>, UsageError> {
    if format == "%all" {
        let letters: Vec<_> = field::LETTERS
            .chars()
            .filter_map(field::of_letter)
            .collect();
        return Ok(Layout::all(&letters));
    }
    Layout::short(format, field::of_letter)
}

fn long_layout(format: &str) -> Result<Layout<Field>, UsageError> {
    if format.eq_ignore_ascii_case("all") {
        return short_layout("%all");
    }
    Layout::long(format, field::NAMES)
}

/// The letters that rows can be sorted by.
const SORTABLE: &str = "aAbcCdDefFgGhiIjJklLmMnNopPqQrRSstTuUvVyYzZ";

fn read_sort(option: &Given<Key>) -> Result<Vec<(char, bool)>, UsageError> {
    sort_keys(option.text()).map_err(|wrong| option.invalid(format!("cannot sort by `{wrong}`")))
}

fn sort_keys(text: &str) -> Result<Vec<(char, bool)>, String> {
    let keys = text.split(',').map(|key| {
        let letters = key.trim_start_matches(['+', '-', '%', '.', '#']);
        let mut letters = letters.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) if SORTABLE.contains(letter) => Ok((letter, key.starts_with('-'))),
            _ => Err(key.to_owned()),
        }
    });
    keys.collect()
}

impl Squeue {
    /// Whether a job is one of those asked for. `me` is the name of whoever asks.
    pub fn wants(&self, row: &JobRow, me: &str) -> bool {
        let among = |list: &[String], value: Option<&String>| {
            list.is_empty() || value.is_some_and(|value| list.contains(value))
        };
        let has_state = match self.states.as_deref() {
            None => true,
            Some([]) => row.state.is_live(),
            Some(states) => states.contains(&row.state),
        };
        // Users may be given by their numbers.
        let uid = row.uid.to_string();
        let is_theirs = among(&self.users, Some(&row.user)) || self.users.contains(&uid);
        let on_node = self.nodes.is_empty() || row.node_list.iter().any(|n| self.nodes.contains(n));
        has_state
            && is_theirs
            && (!self.is_mine || row.user == me)
            && on_node
            && among(&self.accounts, row.account.as_ref())
            && among(&self.partitions, Some(&row.partition))
            && among(&self.names, Some(&row.name))
            && among(&self.qos, row.qos.as_ref())
            && (self.reservation.is_none() || self.reservation == row.reservation)
            && (self.jobs.is_empty() || self.jobs.iter().any(|job| is_named(job, row)))
    }

    /// What is printed of these jobs; the caller has asked [`Self::wants`] of each.
    pub fn render(&self, rows: Vec<JobRow>, view: &View<'_>) -> String {
        if self.is_json {
            return json::document(&rows, view);
        }
        let mut rows: Vec<JobRow> = rows.iter().flat_map(|row| self.divided(row)).collect();
        rows.sort_by(|one, other| self.order(one, other));
        let head: Option<fn(Field) -> &'static str> = self.has_header.then_some(field::header);
        let lines = self.layout.lines(rows.iter(), head, |field, row| Cell {
            text: field::value(field, row, view),
            is_kept: field::is_time(field),
        });
        if self.is_long && self.has_header {
            return crate::heading(view.now, &view.zone) + &lines;
        }
        lines
    }

    /// Tasks that wait stand on one line, unless each was asked for.
    fn divided(&self, row: &JobRow) -> Vec<JobRow> {
        if self.is_by_task {
            return row.each_task();
        }
        let named: Vec<_> = self.jobs.iter().filter(|job| is_named(job, row)).collect();
        let is_whole = named
            .iter()
            .any(|job| !matches!(job.tasks, Some(Tasks::These(_))));
        if named.is_empty() || is_whole {
            return vec![row.clone()];
        }
        let mut tasks = row.each_task();
        tasks.retain(|task| named.iter().any(|job| is_named(job, task)));
        tasks
    }

    fn order(&self, one: &JobRow, other: &JobRow) -> Ordering {
        for (letter, is_down) in &self.sort {
            let order = compare(*letter, one, other);
            let order = if *is_down { order.reverse() } else { order };
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }
}

fn is_named(job: &JobRef, row: &JobRow) -> bool {
    job.means(row.id, row.member.as_ref())
}

fn compare(letter: char, one: &JobRow, other: &JobRow) -> Ordering {
    let index = |row: &JobRow| match &row.member {
        None => None,
        Some(Member::Task { index, .. }) => Some((0, *index)),
        // What waits comes after the tasks that have started.
        Some(Member::Waiting { tasks, .. }) => Some((1, tasks.first())),
    };
    // No time yet is later than any.
    let time = |moment: Option<jiff::Timestamp>| (moment.is_none(), moment);
    match letter {
        'A' => one.id.cmp(&other.id),
        'i' | 'F' | 'K' => (one.array_id(), index(one)).cmp(&(other.array_id(), index(other))),
        // By name: what was cancelled comes before what waits.
        't' => one.state.short().cmp(other.state.short()),
        'T' => one.state.long().cmp(other.state.long()),
        'p' | 'Q' => one.priority.cmp(&other.priority),
        'M' => one.time_used_s.cmp(&other.time_used_s),
        'l' => one.time_limit.cmp(&other.time_limit),
        'L' => {
            let left = |row: &JobRow| {
                let limit = row.time_limit.seconds();
                limit.map_or(u64::MAX, |limit| limit.saturating_sub(row.time_used_s))
            };
            left(one).cmp(&left(other))
        }
        'S' => time(one.start).cmp(&time(other.start)),
        'e' => time(one.end).cmp(&time(other.end)),
        'V' => one.submitted.cmp(&other.submitted),
        'C' | 'c' => one.cpus.cmp(&other.cpus),
        'D' => one.nodes.cmp(&other.nodes),
        'm' => one.memory_mib.cmp(&other.memory_mib),
        'U' => one.uid.cmp(&other.uid),
        'G' => one.gid.cmp(&other.gid),
        'y' => one.nice.cmp(&other.nice),
        'a' => one.account.cmp(&other.account),
        'j' => one.name.cmp(&other.name),
        'P' => one.partition.cmp(&other.partition),
        'q' => one.qos.cmp(&other.qos),
        'u' => one.user.cmp(&other.user),
        'g' => one.group.cmp(&other.group),
        'v' => one.reservation.cmp(&other.reservation),
        'r' | 'R' => one.reason.cmp(&other.reason),
        'N' => one.node_list.cmp(&other.node_list),
        _ => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests;
