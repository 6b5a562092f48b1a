//! `scancel`: which jobs are to end, or get a signal.

use crate::argv::{self, Operands, Opt, Takes};
use crate::job_id::JobRef;
use crate::state::JobState;
use crate::{UsageError, hostlist, signal};

/// What somebody wants of `scancel`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Help,
    Usage,
    Version,
    Cancel(Scancel),
}

/// Which jobs. Those named must also meet the rest; without names, everything that meets it is meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scancel {
    pub jobs: Vec<JobRef>,
    pub user: Option<String>,
    /// Only those of whoever asks.
    pub is_mine: bool,
    pub account: Option<String>,
    pub name: Option<String>,
    pub partition: Option<String>,
    pub qos: Option<String>,
    pub reservation: Option<String>,
    pub nodes: Vec<String>,
    /// Pending, running or suspended.
    pub state: Option<JobState>,
    /// Sent instead of ending the job; its name without `SIG`.
    pub signal: Option<String>,
    pub to: SignalTo,
    /// Ask before each.
    pub is_interactive: bool,
    /// Say nothing of jobs that have ended already.
    pub is_quiet: bool,
    pub is_verbose: bool,
}

/// Who gets the signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignalTo {
    /// What the batch shell started.
    #[default]
    Steps,
    /// The batch shell alone.
    Shell,
    Everything,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Account,
    Batch,
    Full,
    Help,
    Interactive,
    Me,
    Name,
    Nodes,
    Nothing,
    Partition,
    Qos,
    Quiet,
    Reservation,
    Signal,
    State,
    Usage,
    User,
    Verbose,
    Version,
    Refused(&'static str),
}

const ONE_CLUSTER: Key = Key::Refused("there is one queue; leave it out");

const OPTIONS: &[Opt<Key>] = &[
    Opt::new("account", Some('A'), Takes::Value, Key::Account),
    Opt::new("batch", Some('b'), Takes::Nothing, Key::Batch),
    Opt::new("cluster", None, Takes::Value, ONE_CLUSTER),
    Opt::new("clusters", Some('M'), Takes::Value, ONE_CLUSTER),
    Opt::new("ctld", None, Takes::Nothing, Key::Nothing),
    Opt::new("full", Some('f'), Takes::Nothing, Key::Full),
    Opt::new("help", None, Takes::Nothing, Key::Help),
    Opt::new(
        "hurry",
        Some('H'),
        Takes::Nothing,
        Key::Refused("there are no burst buffers; leave it out"),
    ),
    Opt::new("interactive", Some('i'), Takes::Nothing, Key::Interactive),
    Opt::new("jobname", None, Takes::Value, Key::Name),
    Opt::new("me", None, Takes::Nothing, Key::Me),
    Opt::new("name", Some('n'), Takes::Value, Key::Name),
    Opt::new("nodelist", Some('w'), Takes::Value, Key::Nodes),
    Opt::new("partition", Some('p'), Takes::Value, Key::Partition),
    Opt::new("qos", Some('q'), Takes::Value, Key::Qos),
    Opt::new("quiet", Some('Q'), Takes::Nothing, Key::Quiet),
    Opt::new("reservation", Some('R'), Takes::Value, Key::Reservation),
    Opt::new("sibling", None, Takes::Value, ONE_CLUSTER),
    Opt::new("signal", Some('s'), Takes::Value, Key::Signal),
    Opt::new("state", Some('t'), Takes::Value, Key::State),
    Opt::new("usage", None, Takes::Nothing, Key::Usage),
    Opt::new("user", Some('u'), Takes::Value, Key::User),
    Opt::new("verbose", Some('v'), Takes::Nothing, Key::Verbose),
    Opt::new("version", Some('V'), Takes::Nothing, Key::Version),
    Opt::new(
        "wckey",
        None,
        Takes::Value,
        Key::Refused("name the jobs with --name or --account"),
    ),
];

/// Which options there are.
pub fn help() -> String {
    argv::help(
        "scancel [options] [job[_task]…]",
        OPTIONS,
        |key| match key {
            Key::Refused(instead) => Some(instead),
            _ => None,
        },
    )
}

/// Reads a command line without the program's name.
pub fn read(arguments: &[String]) -> Result<Asked, UsageError> {
    let parsed = argv::parse(OPTIONS, arguments, Operands::Anywhere)?;
    let mut scancel = Scancel::default();
    for option in &parsed.options {
        let some = || Some(option.text().to_owned());
        match option.key {
            Key::Help => return Ok(Asked::Help),
            Key::Usage => return Ok(Asked::Usage),
            Key::Version => return Ok(Asked::Version),
            Key::Account => scancel.account = some(),
            Key::Batch => scancel.to = SignalTo::Shell,
            Key::Full => scancel.to = SignalTo::Everything,
            Key::Interactive => scancel.is_interactive = true,
            Key::Me => scancel.is_mine = true,
            Key::Name => scancel.name = some(),
            Key::Nodes => {
                let hosts = hostlist::expand(option.text());
                scancel.nodes = hosts.map_err(|error| option.invalid(error))?;
            }
            Key::Nothing => {}
            Key::Partition => scancel.partition = some(),
            Key::Qos => scancel.qos = some(),
            Key::Quiet => scancel.is_quiet = true,
            Key::Reservation => scancel.reservation = some(),
            Key::Signal => {
                let name = signal::name(option.text());
                let name = name.ok_or_else(|| option.invalid("there is no such signal"))?;
                scancel.signal = Some(name);
            }
            Key::State => {
                let state = JobState::named(option.text()).filter(|state| {
                    use JobState::{Pending, Running, Suspended};
                    matches!(state, Pending | Running | Suspended)
                });
                let known = "write PENDING, RUNNING or SUSPENDED";
                scancel.state = Some(state.ok_or_else(|| option.invalid(known))?);
            }
            Key::User => scancel.user = some(),
            Key::Verbose => scancel.is_verbose = true,
            Key::Refused(instead) => {
                return Err(UsageError::Unsupported {
                    option: option.name.clone(),
                    instead: instead.to_owned(),
                });
            }
        }
    }
    for word in &parsed.operands {
        if word.contains('.') {
            return Err(UsageError::Unsupported {
                option: word.clone(),
                instead: "jobs are not divided into steps; name the job".to_owned(),
            });
        }
        scancel.jobs.extend(crate::job_id::list(word)?);
    }
    if scancel.names_nothing() {
        return Err(UsageError::NoJob);
    }
    Ok(Asked::Cancel(scancel))
}

impl Scancel {
    /// Without any of these every job of the queue would be meant.
    fn names_nothing(&self) -> bool {
        self.jobs.is_empty()
            && self.user.is_none()
            && !self.is_mine
            && self.account.is_none()
            && self.name.is_none()
            && self.partition.is_none()
            && self.qos.is_none()
            && self.reservation.is_none()
            && self.nodes.is_empty()
            && self.state.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cancel(line: &str) -> Result<Scancel, String> {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        match read(&words) {
            Ok(Asked::Cancel(scancel)) => Ok(scancel),
            Ok(other) => Err(format!("{other:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn jobs_are_named_by_number_or_by_what_they_are() {
        let scancel = cancel("12 13_4 -t pd 14_[1-5] -u ada -n train -s usr1 -b").unwrap();
        let jobs: Vec<_> = scancel.jobs.iter().map(JobRef::to_string).collect();
        assert_eq!(jobs, ["12", "13_4", "14_[1-5]"]);
        assert_eq!(scancel.state, Some(JobState::Pending));
        assert_eq!(scancel.user.as_deref(), Some("ada"));
        assert_eq!(scancel.signal.as_deref(), Some("USR1"));
        assert_eq!(scancel.to, SignalTo::Shell);
        assert!(cancel("--me").unwrap().is_mine);
        assert_eq!(cancel("1,2").unwrap().jobs.len(), 2);
    }

    #[test]
    fn nothing_is_cancelled_by_mistake() {
        assert_eq!(cancel("").unwrap_err(), "No job identification provided");
        assert_eq!(cancel("-Q").unwrap_err(), "No job identification provided");
        assert_eq!(cancel("abc").unwrap_err(), "Invalid job id abc");
        for line in [
            "1-3",
            "1_[1-",
            "-t FOO 1",
            "-t CD 1",
            "-s FOO 1",
            "5.0",
            "--wckey=x",
            "-j 5",
        ] {
            assert!(cancel(line).is_err(), "{line}");
        }
    }
}
