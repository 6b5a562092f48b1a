//! `sacct`: what became of jobs.

mod field;
mod json;
mod row;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::UsageError;
use crate::argv::{self, Given, Operands, Opt, Takes, closest};
use crate::hostlist;
use crate::job_id::{self, JobRef};
use crate::layout::fit;
use crate::moment::{self, Lean};
use crate::state::{self, JobState};
use field::{FIELDS, Field};
pub use row::AccountingRow;

const DEFAULT: &str = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
const BRIEF: &str = "JobID,State,ExitCode";
/// What of Slurm's long list means something for a job as a whole.
const LONG: &str =
    "JobID,JobIDRaw,JobName,Partition,MaxRSS,AllocCPUS,Elapsed,State,ExitCode,ReqMem,AllocTRES";

/// What somebody wants of `sacct`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Help,
    Usage,
    Version,
    /// The names of all columns.
    HelpFormat,
    List(Box<Sacct>),
}

/// Which jobs, and how. An empty list asks for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sacct {
    pub jobs: Vec<JobRef>,
    pub users: Vec<String>,
    /// Everybody's, not only those of whoever asks.
    pub is_everybodys: bool,
    pub accounts: Vec<String>,
    pub partitions: Vec<String>,
    pub names: Vec<String>,
    pub qos: Vec<String>,
    pub nodes: Vec<String>,
    pub states: Option<Vec<JobState>>,
    /// What was not over before this, and had begun before that. From midnight on unless said otherwise, or ever for
    /// jobs that are named.
    pub since: Option<Timestamp>,
    pub until: Timestamp,
    pub is_json: bool,
    has_header: bool,
    style: Style,
    columns: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Style {
    Columns,
    /// Between delimiters, with one at the end or not.
    Delimited {
        delimiter: String,
        is_ended: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Column {
    name: &'static str,
    width: usize,
    is_left: bool,
    field: Field,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Accounts,
    AllUsers,
    Brief,
    Delimiter,
    End,
    Format,
    Help,
    HelpFormat,
    Jobs,
    Json,
    Long,
    Name,
    Nodes,
    NoHeader,
    Nothing,
    Parsable,
    Parsable2,
    Partition,
    Qos,
    Start,
    State,
    Usage,
    User,
    Version,
    Refused(&'static str),
}

const ONE_CLUSTER: Key = Key::Refused("there is one queue; leave it out");
const BY_FORMAT: Key = Key::Refused("list the jobs and choose among the lines");

const OPTIONS: &[Opt<Key>] = &[
    Opt::new("accounts", Some('A'), Takes::Value, Key::Accounts),
    Opt::new("allclusters", Some('L'), Takes::Nothing, ONE_CLUSTER),
    Opt::new("allocations", Some('X'), Takes::Nothing, Key::Nothing),
    Opt::new("allusers", Some('a'), Takes::Nothing, Key::AllUsers),
    Opt::new(
        "associations",
        Some('x'),
        Takes::Value,
        Key::Refused("use --accounts and --user"),
    ),
    Opt::new(
        "batch-script",
        Some('B'),
        Takes::Nothing,
        Key::Refused("look at it with `berth why`"),
    ),
    Opt::new("brief", Some('b'), Takes::Nothing, Key::Brief),
    Opt::new("cluster", None, Takes::Value, ONE_CLUSTER),
    Opt::new("clusters", Some('M'), Takes::Value, ONE_CLUSTER),
    Opt::new(
        "completion",
        Some('c'),
        Takes::Nothing,
        Key::Refused("leave it out: there is one record of each job"),
    ),
    Opt::new("constraints", Some('C'), Takes::Value, BY_FORMAT),
    Opt::new("delimiter", None, Takes::Value, Key::Delimiter),
    Opt::new("duplicates", Some('D'), Takes::Nothing, Key::Nothing),
    Opt::new("endtime", Some('E'), Takes::Value, Key::End),
    Opt::new(
        "env-vars",
        None,
        Takes::Nothing,
        Key::Refused("a job's environment is not kept"),
    ),
    Opt::new("federation", None, Takes::Nothing, ONE_CLUSTER),
    Opt::new("fields", None, Takes::Value, Key::Format),
    Opt::new(
        "file",
        Some('f'),
        Takes::Value,
        Key::Refused("jobs are kept in Berth's own store"),
    ),
    Opt::new("flags", Some('F'), Takes::Value, BY_FORMAT),
    Opt::new("format", Some('o'), Takes::Value, Key::Format),
    Opt::new("gid", Some('g'), Takes::Value, BY_FORMAT),
    Opt::new("group", None, Takes::Value, BY_FORMAT),
    Opt::new("help", Some('h'), Takes::Nothing, Key::Help),
    Opt::new("helpformat", Some('e'), Takes::Nothing, Key::HelpFormat),
    Opt::new("jobs", Some('j'), Takes::Value, Key::Jobs),
    Opt::new("json", None, Takes::Nothing, Key::Json),
    Opt::new("local", None, Takes::Nothing, Key::Nothing),
    Opt::new("long", Some('l'), Takes::Nothing, Key::Long),
    Opt::new("name", None, Takes::Value, Key::Name),
    Opt::new("ncpus", Some('I'), Takes::Value, BY_FORMAT),
    Opt::new("nnodes", Some('i'), Takes::Value, BY_FORMAT),
    Opt::new(
        "noconvert",
        None,
        Takes::Nothing,
        Key::Refused("memory is shown in its own unit; leave it out"),
    ),
    Opt::new("nodelist", Some('N'), Takes::Value, Key::Nodes),
    Opt::new("noheader", Some('n'), Takes::Nothing, Key::NoHeader),
    Opt::new("parsable", Some('p'), Takes::Nothing, Key::Parsable),
    Opt::new("parsable2", Some('P'), Takes::Nothing, Key::Parsable2),
    Opt::new("partition", Some('r'), Takes::Value, Key::Partition),
    Opt::new("qos", Some('q'), Takes::Value, Key::Qos),
    Opt::new("reason", Some('R'), Takes::Value, BY_FORMAT),
    Opt::new("starttime", Some('S'), Takes::Value, Key::Start),
    Opt::new("state", Some('s'), Takes::Value, Key::State),
    Opt::new("timelimit-max", Some('K'), Takes::Value, BY_FORMAT),
    Opt::new("timelimit-min", Some('k'), Takes::Value, BY_FORMAT),
    Opt::new(
        "truncate",
        Some('T'),
        Takes::Nothing,
        Key::Refused("times are shown as they were; leave it out"),
    ),
    Opt::new("uid", None, Takes::Value, Key::User),
    Opt::new(
        "units",
        None,
        Takes::Value,
        Key::Refused("memory is shown in its own unit; leave it out"),
    ),
    Opt::new("usage", Some('U'), Takes::Nothing, Key::Usage),
    Opt::new("use-local-uid", None, Takes::Nothing, Key::Nothing),
    Opt::new("user", Some('u'), Takes::Value, Key::User),
    Opt::new("verbose", Some('v'), Takes::Nothing, Key::Nothing),
    Opt::new("version", Some('V'), Takes::Nothing, Key::Version),
    Opt::new(
        "wckeys",
        Some('W'),
        Takes::Value,
        Key::Refused("use --accounts or --name"),
    ),
    Opt::new(
        "whole-hetjob",
        None,
        Takes::Perhaps,
        Key::Refused("jobs are of one kind; leave it out"),
    ),
    Opt::new("yaml", None, Takes::Nothing, Key::Refused("use --json")),
];

/// Which options there are.
pub fn help() -> String {
    argv::help("sacct [options]", OPTIONS, |key| match key {
        Key::Refused(instead) => Some(instead),
        _ => None,
    })
}

/// Reads a command line without the program's name. Times are read where `now` lives.
pub fn read(arguments: &[String], now: &Zoned) -> Result<Asked, UsageError> {
    let parsed = argv::parse(OPTIONS, arguments, Operands::Anywhere)?;
    if let Some(word) = parsed.operands.first() {
        return Err(UsageError::Operand(word.clone()));
    }
    let today = now.with().time(Time::midnight()).build().ok();
    let mut sacct = Sacct {
        jobs: Vec::new(),
        users: Vec::new(),
        is_everybodys: false,
        accounts: Vec::new(),
        partitions: Vec::new(),
        names: Vec::new(),
        qos: Vec::new(),
        nodes: Vec::new(),
        states: None,
        since: None,
        until: now.timestamp(),
        is_json: false,
        has_header: true,
        style: Style::Columns,
        columns: Vec::new(),
    };
    let (mut format, mut since) = (DEFAULT.to_owned(), None);
    let (mut delimiter, mut is_ended) = ("|".to_owned(), None);
    let time = |option: &Given<Key>| {
        moment::parse(option.text(), now, Lean::Back).map_err(|error| option.invalid(error))
    };
    for option in &parsed.options {
        match option.key {
            Key::Help => return Ok(Asked::Help),
            Key::Usage => return Ok(Asked::Usage),
            Key::Version => return Ok(Asked::Version),
            Key::HelpFormat => return Ok(Asked::HelpFormat),
            Key::Accounts => sacct.accounts = option.list(),
            Key::AllUsers => sacct.is_everybodys = true,
            Key::Brief => format = BRIEF.to_owned(),
            Key::Delimiter => delimiter = option.text().to_owned(),
            Key::End => sacct.until = time(option)?,
            Key::Format => format = option.text().to_owned(),
            Key::Jobs => sacct.jobs = job_id::list(option.text())?,
            Key::Json => sacct.is_json = true,
            Key::Long => format = LONG.to_owned(),
            Key::Name => sacct.names = option.list(),
            Key::Nodes => {
                let hosts = hostlist::expand(option.text());
                sacct.nodes = hosts.map_err(|error| option.invalid(error))?;
            }
            Key::NoHeader => sacct.has_header = false,
            Key::Nothing => {}
            Key::Parsable => is_ended = Some(true),
            Key::Parsable2 => is_ended = Some(false),
            Key::Partition => sacct.partitions = option.list(),
            Key::Qos => sacct.qos = option.list(),
            Key::Start => since = Some(time(option)?),
            Key::State => sacct.states = state::job_states(option)?,
            Key::User => sacct.users = option.list(),
            Key::Refused(instead) => {
                return Err(UsageError::Unsupported {
                    option: option.name.clone(),
                    instead: instead.to_owned(),
                });
            }
        }
    }
    if let Some(is_ended) = is_ended {
        sacct.style = Style::Delimited {
            delimiter,
            is_ended,
        };
    }
    sacct.since = match since {
        // Jobs that are named are meant whenever they were.
        None if !sacct.jobs.is_empty() => None,
        None => today.map(|today| today.timestamp()),
        given => given,
    };
    sacct.columns = columns(&format)?;
    Ok(Asked::List(Box::new(sacct)))
}

/// `JobID,JobName%30,State%-20`; a minus stands to the left. Names may be cut short.
fn columns(format: &str) -> Result<Vec<Column>, UsageError> {
    let mut columns = Vec::new();
    for part in format.split(',').filter(|part| !part.is_empty()) {
        let (name, width) = match part.split_once('%') {
            Some((name, width)) => (name, Some(width)),
            None => (part, None),
        };
        if name.eq_ignore_ascii_case("all") {
            columns.extend(FIELDS.iter().map(|known| column(*known, None)));
            continue;
        }
        let wrong = |reason: String| UsageError::invalid("--format", format, reason);
        let begins = |known: &str| {
            let start = known.get(..name.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        let exact = FIELDS
            .iter()
            .find(|known| known.0.eq_ignore_ascii_case(name));
        let found = exact.or_else(|| FIELDS.iter().find(|known| begins(known.0)));
        let found = found.ok_or_else(|| {
            let near = closest(FIELDS.iter().map(|known| known.0), name);
            let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            wrong(format!("there is no field `{name}`{near}"))
        })?;
        let width = width.map(|text| {
            let width: Option<i32> = text.parse().ok();
            width.ok_or_else(|| wrong(format!("`{text}` is no width")))
        });
        columns.push(column(*found, width.transpose()?));
    }
    Ok(columns)
}

fn column((name, width, field): (&'static str, usize, Field), wanted: Option<i32>) -> Column {
    /// The widest that makes sense.
    const WIDTH_MAX: u32 = 4096;
    Column {
        name,
        width: wanted.map_or(width, |wanted| {
            wanted.unsigned_abs().min(WIDTH_MAX) as usize
        }),
        is_left: wanted.map_or_else(|| field::is_left(name), |wanted| wanted < 0),
        field,
    }
}

/// The names of all columns, four on a line.
pub fn help_format() -> String {
    let lines = FIELDS.chunks(4).map(|line| {
        let names: Vec<_> = line
            .iter()
            .map(|(name, ..)| format!("{name:<19}"))
            .collect();
        names.join(" ") + "\n"
    });
    lines.collect()
}

impl Sacct {
    /// Whether a job is one of those asked for. `me` is the name of whoever asks.
    pub fn wants(&self, row: &AccountingRow, me: &str) -> bool {
        let among = |list: &[String], value: Option<&String>| {
            list.is_empty() || value.is_some_and(|value| list.contains(value))
        };
        let is_theirs = if !self.users.is_empty() {
            self.users.contains(&row.user) || self.users.contains(&row.uid.to_string())
        } else {
            self.is_everybodys || !self.jobs.is_empty() || row.user == me
        };
        let was_there = self
            .since
            .is_none_or(|since| row.end.is_none_or(|end| end >= since))
            && row.submitted <= self.until;
        let states = self.states.as_deref();
        is_theirs
            && was_there
            && states.is_none_or(|states| states.is_empty() || states.contains(&row.state))
            && among(&self.accounts, row.account.as_ref())
            && among(&self.partitions, Some(&row.partition))
            && among(&self.names, Some(&row.name))
            && among(&self.qos, row.qos.as_ref())
            && (self.nodes.is_empty() || row.node_list.iter().any(|n| self.nodes.contains(n)))
            && (self.jobs.is_empty()
                || self
                    .jobs
                    .iter()
                    .any(|job| job.means(row.id, row.member.as_ref())))
    }

    /// What is printed of these jobs; the caller has asked [`Self::wants`] of each.
    pub fn render(&self, rows: &[AccountingRow], zone: &TimeZone) -> String {
        if self.is_json {
            return json::document(rows);
        }
        let mut text = String::new();
        if self.has_header {
            // A heading that is too long is cut, but a value says that there was more.
            text.push_str(&self.line(|column| match self.style {
                Style::Columns => column.name.chars().take(column.width).collect(),
                Style::Delimited { .. } => column.name.to_owned(),
            }));
            if self.style == Style::Columns {
                text.push_str(&self.line(|column| "-".repeat(column.width)));
            }
        }
        for row in rows {
            text.push_str(&self.line(|column| field::value(column.field, row, zone)));
        }
        text
    }

    fn line(&self, value: impl Fn(&Column) -> String) -> String {
        let values = self.columns.iter().map(|column| (column, value(column)));
        match &self.style {
            Style::Delimited {
                delimiter,
                is_ended,
            } => {
                let values: Vec<_> = values.map(|(_, value)| value).collect();
                let end = if *is_ended { delimiter } else { "" };
                format!("{}{end}\n", values.join(delimiter))
            }
            Style::Columns => {
                let cells = values.map(|(column, value)| {
                    let is_cut = value.chars().count() > column.width;
                    let value = if is_cut && column.width > 0 {
                        value.chars().take(column.width - 1).chain(['+']).collect()
                    } else {
                        value
                    };
                    fit(&value, Some(column.width), !column.is_left) + " "
                });
                cells.collect::<String>() + "\n"
            }
        }
    }
}

#[cfg(test)]
mod tests;
