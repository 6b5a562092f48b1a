//! The backend interface: it starts, stops and observes runs.
//!
//! Every call must be idempotent: a server that was killed between a call and recording it repeats the call. A backend
//! therefore identifies a run by its id, starts it once, and accepts a stop for a run that it never started. It refuses
//! a call with an older fence than it has seen, because that server has lost its lease.

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

/// A run and its workload.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    pub workload: &'a Workload,
    pub run: &'a Run,
}

/// What the server knows of a run from its allocation: its person, and the names of its resources on the backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub person: PersonId,
    pub login: String,
    /// Whether other people have accounts on the server.
    pub has_neighbours: bool,
    pub site: String,
    pub project: Option<String>,
    /// Names of the nodes on which the run has an allocation.
    pub nodes: Vec<String>,
    pub gpus: Vec<String>,
    /// Environment variables for the program, in addition to those in its own request.
    pub environment: BTreeMap<String, String>,
    /// Folders mounted into the run, such as a managed environment.
    pub mounts: Vec<Seen>,
    /// Whether the app uses Berth as a JupyterHub, which it reaches at [`HUB_PORT`] of its own network.
    pub has_hub: bool,
    /// The package index to install from, which the run reaches wherever it is. Only environment builds have one.
    pub package_index: Option<String>,
}

/// Port in the run's own network at which it reaches Berth's part of JupyterHub, if it needs that.
pub const HUB_PORT: u16 = 8081;

/// A folder mounted into a run, and the path at which the run sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub from: PathBuf,
    pub to: PathBuf,
    pub is_writable: bool,
}

/// Fencing token: the number of the lease under which a server acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence(pub u64);

/// The state of a run, as a backend sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    Running,
    Ended {
        at: Timestamp,
        outcome: Outcome,
        /// Why it ended so, in a sentence for its owner.
        said: Option<Text>,
    },
    /// The backend never started the run, or nothing of it is left.
    Unknown,
    /// This server cannot ask the run's machine, so the run may or may not be running.
    Unreachable,
}

/// Resources that a run has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    pub cpu_us: u64,
    pub memory_bytes: u64,
    pub memory_peak_bytes: u64,
    /// How often the kernel killed a process of the run for lack of memory.
    pub out_of_memory: u64,
}

/// Signs that a run is active, in addition to the processor time that it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Life {
    /// When a file of the run's owner last changed.
    pub written_at: Option<Timestamp>,
    /// Whether one of the run's GPUs is busy.
    pub computes: bool,
}

/// How often somebody tried in one way to cross a run's boundary, counted since the run began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub run: RunId,
    pub kind: AttemptKind,
    pub times: u64,
}

/// The kind of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttemptKind {
    /// A connection to the run's relay with a wrong key, or from another user.
    WrongKey,
    /// A message to the supervisor that the first process of the sandbox never sends.
    StrangeMessage,
    /// The run showed the hub a token that belongs to another session's server.
    ForeignWord,
    /// Something other than a plain file in place of a file that the server reads from an environment.
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

/// Work with at most this time limit starts although its owner's home is above its limit. Otherwise the owner could not
/// clean up.
pub const CLEAN_UP_MAX: SignedDuration = SignedDuration::from_mins(10);

/// Whether the disks have space for something new of a person. A field that is set is a sentence for them that says why
/// not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskSpace {
    pub disk: Option<String>,
    pub home: Option<String>,
}

impl DiskSpace {
    /// Why work with this time limit does not start; `None` if it may start.
    pub fn why_not(&self, limit: SignedDuration) -> Option<&str> {
        let home = self.home.as_deref().filter(|_| limit > CLEAN_UP_MAX);
        self.disk.as_deref().or(home)
    }
}

/// Progress of a MIG repartition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The server should ask again at about this time.
    UnderWay {
        again: Timestamp,
    },
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// A retry may succeed.
    #[error("the backend does not answer: {0}")]
    NoAnswer(String),
    /// Only another server can do this, once that server runs the queues.
    #[error("its machine cannot be reached from this server")]
    Unreachable,
    /// No retry will succeed.
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

    /// Asks a run to end; at the run's own `until` the backend kills it. If the reason is a checkpoint, the backend
    /// first asks the run to save its progress. For that the run has all the time until `until`, less the site's grace
    /// period.
    fn stop<'a>(&'a self, job: Job<'a>, fence: Fence, now: Timestamp) -> Doing<'a, ()>;

    /// Lets a run continue until its own `until`, which is now later than before.
    fn prolong<'a>(&'a self, _job: Job<'a>, _fence: Fence, _now: Timestamp) -> Doing<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// The machine that holds the processes of work on these nodes, if only a server on that machine can observe them.
    fn machine(&self, _nodes: &[ResourceId]) -> Option<String> {
        None
    }

    /// Whether this server can start and observe work on a machine.
    fn reaches(&self, _machine: &str) -> bool {
        true
    }

    /// Returns the state of these runs, in the order of the jobs.
    fn look<'a>(&'a self, jobs: &'a [Job<'a>], now: Timestamp) -> Doing<'a, Vec<Sign>>;

    /// The endpoint of a run that serves visitors, once the run has begun.
    fn door<'a>(&'a self, _job: Job<'a>) -> Doing<'a, Option<Door>> {
        Box::pin(async { Ok(None) })
    }

    /// The end of a run's output, at most this many bytes; empty if the backend keeps no log.
    fn log<'a>(&'a self, _job: Job<'a>, _bytes: u64) -> Doing<'a, String> {
        Box::pin(async { Ok(String::new()) })
    }

    /// The resources that a run has used so far, if known.
    fn used<'a>(&'a self, _job: Job<'a>) -> Doing<'a, Option<Used>> {
        Box::pin(async { Ok(None) })
    }

    /// Other signs that a run is active. The call may take a while.
    fn life<'a>(&'a self, _job: Job<'a>) -> Doing<'a, Life> {
        Box::pin(async { Ok(Life::default()) })
    }

    /// Attempts on the boundaries of runs that no server has recorded yet.
    fn attempts(&self) -> Doing<'_, Vec<Attempt>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// The server has recorded these attempts, so the backend need not report them again.
    fn forget_attempts<'a>(&'a self, _recorded: &'a [Attempt]) -> Doing<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Whether this backend can repartition GPUs at all.
    fn can_cut(&self) -> bool {
        false
    }

    /// Repartitions a GPU, or reports the progress: the server repeats the call until the result is done or refused. By
    /// the repartition's own `until`, the GPU is either repartitioned or as it was before, and it stays so.
    fn recut<'a>(
        &'a self,
        _recut: &'a Recut,
        _fence: Fence,
        _now: Timestamp,
    ) -> Doing<'a, Progress> {
        let why = "GPUs cannot be cut anew here";
        Box::pin(async move { Err(Trouble::Refused(why.into())) })
    }

    /// The socket by which runs send requests to their server, if there is one.
    fn hub_socket(&self) -> Option<PathBuf> {
        None
    }

    /// Where the backend keeps managed environments, if it can keep any.
    fn shelf(&self) -> Option<&dyn Shelf> {
        None
    }

    /// Whether there is disk space for something new of a person.
    fn disk_space<'a>(&'a self, _person: PersonId) -> Doing<'a, DiskSpace> {
        Box::pin(async { Ok(DiskSpace::default()) })
    }

    /// The records of ended runs, if the backend keeps them on a disk of its own.
    fn records(&self) -> Option<&dyn RunRecords> {
        None
    }

    /// The supervisors of the runs on this server's own machine, if the backend keeps any there.
    fn supervisors(&self) -> Option<&dyn Supervisors> {
        None
    }

    /// When the server should poll these runs again, even if no event arrives.
    fn next(&self, _jobs: &[Job<'_>], _now: Timestamp) -> Option<Timestamp> {
        None
    }
}
