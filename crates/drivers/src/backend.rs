//! Whatever runs workloads.
//!
//! Everything here may be asked twice: a server that was killed after it called and before it wrote that down asks
//! again. A backend therefore knows a run by its id, starts it once, and stops what it never started with a yes. What
//! comes with an older fence than it has seen is from a server that lost its lease, and is refused.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;

use berth_model::workload::{Outcome, Run, Workload};
use berth_model::{PersonId, Recut, ResourceId, RunId, Text};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use crate::door::Door;
use crate::environments::Shelf;
use crate::records::RunRecords;
use crate::supervisors::Supervisors;

/// A run and what it is a part of.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    pub workload: &'a Workload,
    pub run: &'a Run,
}

/// What only whoever granted a run knows of it: for whom it is, and what its resources are called by what runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub person: PersonId,
    pub login: String,
    /// Whether other people have accounts on the server.
    pub has_neighbours: bool,
    pub site: String,
    pub project: Option<String>,
    /// The names of the nodes it has something of.
    pub nodes: Vec<String>,
    pub gpus: Vec<String>,
    /// What is put into the environment of the program, beside what it asked for itself.
    pub environment: BTreeMap<String, String>,
    /// What it sees of other folders, such as a managed environment.
    pub mounts: Vec<Seen>,
    /// Whether it takes Berth for a JupyterHub, and finds it at [`HUB_PORT`] of its own network.
    pub has_hub: bool,
    /// The package index that it installs from, and reaches wherever that is; only for what makes an environment.
    pub package_index: Option<String>,
}

/// Where in its own network a run finds Berth's part of JupyterHub, if it has to.
pub const HUB_PORT: u16 = 8081;

/// A folder that a run sees, and under which name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub from: PathBuf,
    pub to: PathBuf,
    pub is_writable: bool,
}

/// The number of the lease under which a server acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence(pub u64);

/// What a backend sees of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    Running,
    Ended {
        at: Timestamp,
        outcome: Outcome,
        /// How it came to that, in a sentence for its owner.
        said: Option<Text>,
    },
    /// It was never started here, or nothing is left of it.
    Unknown,
    /// Its machine cannot be asked from here: it may run or not.
    Unreachable,
}

/// What a run has used up to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    pub cpu_us: u64,
    pub memory_bytes: u64,
    pub memory_peak_bytes: u64,
    /// How often something of it was killed for want of memory.
    pub out_of_memory: u64,
}

/// Signs that a run is at work, beside the processor time it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Life {
    /// When a file of its owner's last changed.
    pub written_at: Option<Timestamp>,
    /// Whether one of its GPUs has work to do.
    pub computes: bool,
}

/// How often something tried to cross the boundary of a run, since the run began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub run: RunId,
    pub kind: AttemptKind,
    pub times: u64,
}

/// What was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttemptKind {
    /// A connection to the run's relay with another key, or of another user.
    WrongKey,
    /// A message to the keeper that the first process of the sandbox does not send.
    StrangeMessage,
    /// The run showed the hub a word that names another session's server.
    ForeignWord,
    /// Something else than a file in place of one that the server reads of an environment.
    StrangeFile,
}

impl AttemptKind {
    const ALL: [AttemptKind; 4] = [
        AttemptKind::WrongKey,
        AttemptKind::StrangeMessage,
        AttemptKind::ForeignWord,
        AttemptKind::StrangeFile,
    ];

    pub fn word(self) -> &'static str {
        match self {
            AttemptKind::WrongKey => "wrong_key",
            AttemptKind::StrangeMessage => "strange_message",
            AttemptKind::ForeignWord => "foreign_word",
            AttemptKind::StrangeFile => "strange_file",
        }
    }

    pub fn from_word(word: &str) -> Option<AttemptKind> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    pub fn sentence(self) -> &'static str {
        match self {
            AttemptKind::WrongKey => "connections to the run did not have its key",
            AttemptKind::StrangeMessage => {
                "the run sent its keeper a message that Berth's own program never sends"
            }
            AttemptKind::ForeignWord => "the run used the hub token of another session",
            AttemptKind::StrangeFile => {
                "the environment that the run made has a link, a pipe or the like in place of a file"
            }
        }
    }
}

/// Work of at most this length starts although its owner's home is above its limit: without it nobody could clean up.
pub const CLEAN_UP_MAX: SignedDuration = SignedDuration::from_mins(10);

/// Whether there is disk space for something new of a person's: where there is not, a sentence for them says why.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskSpace {
    pub disk: Option<String>,
    pub home: Option<String>,
}

impl DiskSpace {
    /// Why something that may run for so long does not start; none where it does.
    pub fn why_not(&self, limit: SignedDuration) -> Option<&str> {
        let home = self.home.as_deref().filter(|_| limit > CLEAN_UP_MAX);
        self.disk.as_deref().or(home)
    }
}

/// How far a GPU is that is cut anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Ask again about then.
    UnderWay {
        again: Timestamp,
    },
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It may work another time.
    #[error("the backend does not answer: {0}")]
    NoAnswer(String),
    /// It is another server's to do, when that one carries the queues on.
    #[error("its machine cannot be reached from this server")]
    Unreachable,
    /// It will not work, whoever asks how often.
    #[error("the backend refuses: {0}")]
    Refused(String),
    #[error("another server has taken over")]
    Fenced,
}

pub type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, Trouble>> + Send + 'a>>;

pub trait Backend: Send + Sync + std::fmt::Debug {
    fn start<'a>(
        &'a self,
        job: Job<'a>,
        grant: &'a Grant,
        fence: Fence,
        now: Timestamp,
    ) -> Doing<'a, ()>;

    /// Tells a run to come to its end; by the run's own `until` it is made to. Where the reason is a checkpoint, it is
    /// first told to write down how far it has come, and has all the time until then, less the site's grace, for that.
    fn stop<'a>(&'a self, job: Job<'a>, fence: Fence, now: Timestamp) -> Doing<'a, ()>;

    /// Lets something that runs go on until its own `until`, which is later than it was.
    fn prolong<'a>(&'a self, _job: Job<'a>, _fence: Fence, _now: Timestamp) -> Doing<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// The machine that keeps the processes of what is placed on these nodes, where only a server there can ask after them.
    fn machine(&self, _nodes: &[ResourceId]) -> Option<String> {
        None
    }

    /// Whether this server can start and see work on a machine.
    fn reaches(&self, _machine: &str) -> bool {
        true
    }

    /// What has become of these, in their order.
    fn look<'a>(&'a self, jobs: &'a [Job<'a>], now: Timestamp) -> Doing<'a, Vec<Sign>>;

    /// Where a run that serves visitors lets them in, once it has begun.
    fn door<'a>(&'a self, _job: Job<'a>) -> Doing<'a, Option<Door>> {
        Box::pin(async { Ok(None) })
    }

    /// The last of what a run said, at most so many bytes; nothing where no log is kept.
    fn log<'a>(&'a self, _job: Job<'a>, _bytes: u64) -> Doing<'a, String> {
        Box::pin(async { Ok(String::new()) })
    }

    /// What a run has used up to now, where that is known.
    fn used<'a>(&'a self, _job: Job<'a>) -> Doing<'a, Option<Used>> {
        Box::pin(async { Ok(None) })
    }

    /// What else says that a run is at work. It may take a while to find out.
    fn life<'a>(&'a self, _job: Job<'a>) -> Doing<'a, Life> {
        Box::pin(async { Ok(Life::default()) })
    }

    /// Attempts on the boundaries of runs that no server has recorded yet.
    fn attempts(&self) -> Doing<'_, Vec<Attempt>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// These are recorded, and need not be told again.
    fn forget_attempts<'a>(&'a self, _recorded: &'a [Attempt]) -> Doing<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Whether GPUs can be cut anew here at all.
    fn can_cut(&self) -> bool {
        false
    }

    /// Cuts a GPU anew, or says how far that is: it is asked until it is done or refused. By the cut's own `until` it is
    /// done, or everything is as it was, and stays so.
    fn recut<'a>(
        &'a self,
        _recut: &'a Recut,
        _fence: Fence,
        _now: Timestamp,
    ) -> Doing<'a, Progress> {
        let why = "GPUs cannot be cut anew here";
        Box::pin(async move { Err(Trouble::Refused(why.into())) })
    }

    /// The socket by which what runs asks its server something, if it can.
    fn hub_socket(&self) -> Option<PathBuf> {
        None
    }

    /// Where it keeps managed environments, if it can.
    fn shelf(&self) -> Option<&dyn Shelf> {
        None
    }

    /// Whether there is disk space for something new of a person's.
    fn disk_space<'a>(&'a self, _person: PersonId) -> Doing<'a, DiskSpace> {
        Box::pin(async { Ok(DiskSpace::default()) })
    }

    /// What it keeps of runs that are over, where that is on a disk of its own.
    fn records(&self) -> Option<&dyn RunRecords> {
        None
    }

    /// The supervisors of the runs that it keeps on this server's own machine, if it keeps any there.
    fn supervisors(&self) -> Option<&dyn Supervisors> {
        None
    }

    /// When to look at these again, though nobody says that something has happened.
    fn next(&self, _jobs: &[Job<'_>], _now: Timestamp) -> Option<Timestamp> {
        None
    }
}
