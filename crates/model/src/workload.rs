//! A workload: work that waits in a site's queue until there is room for it, runs, and ends in exactly one way.
//!
//! What is wanted ([`Ask`]), what is held (claims, made when a part of it begins) and what happened ([`Run`]) are three
//! things. An array is one workload however many tasks it has: those that have not begun are a set of numbers
//! ([`Tasks`]), and each that begins is a run of its own.

mod ask;
mod tasks;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use ask::{
    After, Array, Ask, AskError, AtOnce, Class, Cores, GpuCount, Gpus, Memory, Near, OnlyIf,
    Program, Seats, Serves, Task, TaskCount, Thousandths, Wish,
};
pub use tasks::{Tasks, TasksError};

use crate::claim::Amount;
use crate::id::{
    ClaimId, PersonId, ProjectId, ReservationId, ResourceId, RunId, SiteId, WorkloadId,
};
use crate::name::Text;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    pub id: WorkloadId,
    pub site: SiteId,
    /// Its number in its site: short enough to be typed.
    pub number: u64,
    pub owner: PersonId,
    pub project: Option<ProjectId>,
    pub ask: Ask,
    pub state: State,
    pub reason: Option<Text>,
    /// Those of its tasks that have not begun, or have to begin again.
    pub waiting: Tasks,
    pub counts: Counts,
    /// Since when it waits: its place in the queue, which it keeps when it has to begin again.
    pub since: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub version: u64,
}

/// How many of a workload's tasks run, and how those that are over have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Counts {
    pub running: u64,
    pub completed: u64,
    pub failed: u64,
}

#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// None of its tasks runs, and some are still to begin.
    Waiting,
    /// It waits, and is passed over until somebody lets it go on.
    Held,
    /// At least one of its tasks runs.
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl State {
    pub const ALL: &'static [State] = &[
        State::Waiting,
        State::Held,
        State::Running,
        State::Completed,
        State::Failed,
        State::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            State::Waiting => "WAITING",
            State::Held => "HELD",
            State::Running => "RUNNING",
            State::Completed => "COMPLETED",
            State::Failed => "FAILED",
            State::Cancelled => "CANCELLED",
        }
    }

    pub fn is_final(self) -> bool {
        matches!(self, State::Completed | State::Failed | State::Cancelled)
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for State {
    type Err = UnknownState;
    fn from_str(text: &str) -> Result<Self, UnknownState> {
        let known = State::ALL
            .iter()
            .copied()
            .find(|state| state.as_str().eq_ignore_ascii_case(text));
        known.ok_or_else(|| UnknownState(text.chars().take(64).collect()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a state: those are waiting, held, running, completed, failed and cancelled")]
pub struct UnknownState(String);

/// What the owner or time does to a workload that the state it is in does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is {state}, and so it cannot be {wanted}")]
pub struct NotNow {
    pub state: State,
    pub wanted: &'static str,
}

impl Counts {
    /// Whether any of its tasks runs, or has run to an end.
    pub fn has_begun(&self) -> bool {
        self.running + self.completed + self.failed > 0
    }
}

impl Workload {
    /// Passed over from now on; what runs goes on.
    pub fn hold(mut self) -> Result<Workload, NotNow> {
        match self.state {
            State::Waiting => {
                self.state = State::Held;
                Ok(self)
            }
            state => Err(NotNow {
                state,
                wanted: "held",
            }),
        }
    }

    pub fn release(mut self) -> Result<Workload, NotNow> {
        match self.state {
            State::Held => {
                self.state = State::Waiting;
                Ok(self)
            }
            state => Err(NotNow {
                state,
                wanted: "released",
            }),
        }
    }

    /// Nothing of it begins any more; it is over when the last of its runs is.
    pub fn cancel(mut self, now: Timestamp, reason: Option<Text>) -> Result<Workload, NotNow> {
        if self.state.is_final() {
            return Err(NotNow {
                state: self.state,
                wanted: "cancelled",
            });
        }
        self.waiting = Tasks::none();
        self.reason = reason;
        self.state = State::Cancelled;
        self.ended_at = Some(now);
        Ok(self)
    }

    /// These of its tasks begin no more, and the rest goes on. Those of them that run have to be told by whoever asks.
    pub fn cancel_tasks(
        mut self,
        tasks: &Tasks,
        now: Timestamp,
        reason: Option<Text>,
    ) -> Result<Workload, NotNow> {
        if self.state.is_final() {
            return Err(NotNow {
                state: self.state,
                wanted: "cancelled",
            });
        }
        self.waiting.remove_all(tasks);
        self.reason = reason.or(self.reason);
        Ok(self.settle(now))
    }

    /// How many of its tasks were cancelled: each of the others waits, runs or has come to its end.
    pub fn cancelled(&self) -> u64 {
        let Counts {
            running,
            completed,
            failed,
        } = self.counts;
        let others = self.waiting.len() + running + completed + failed;
        self.ask.task_count().saturating_sub(others)
    }

    /// Nothing more of it begins; what runs goes on, and says how it ends.
    pub fn give_up(mut self, now: Timestamp, reason: Option<Text>) -> Result<Workload, NotNow> {
        if self.counts.running == 0 || self.state.is_final() {
            return self.cancel(now, reason);
        }
        self.waiting = Tasks::none();
        self.reason = reason;
        Ok(self)
    }

    /// One of its tasks begins.
    pub fn begin(mut self, task: u32) -> Option<Workload> {
        let may_begin = matches!(self.state, State::Waiting | State::Running);
        if !may_begin || !self.waiting.remove(task) {
            return None;
        }
        self.counts.running += 1;
        self.state = State::Running;
        Some(self)
    }

    /// One of its runs is over. What was sent away waits again with its place kept, unless it was cancelled meanwhile.
    pub fn end(mut self, task: u32, outcome: &Outcome, now: Timestamp) -> Workload {
        self.counts.running = self.counts.running.saturating_sub(1);
        match outcome {
            Outcome::Completed => self.counts.completed += 1,
            Outcome::Preempted | Outcome::Checkpointed | Outcome::NodeFailed
                if self.ask.requeue && !self.state.is_final() =>
            {
                self.waiting.insert(task);
                // The reservation that it ran inside is about to end: it goes on in the site's own line.
                if *outcome == Outcome::Checkpointed {
                    self.ask.inside = None;
                }
            }
            // It is among those that neither wait nor run nor have come to their own end.
            Outcome::Cancelled => {}
            Outcome::Preempted
            | Outcome::Checkpointed
            | Outcome::NodeFailed
            | Outcome::Failed { .. }
            | Outcome::OutOfMemory
            | Outcome::CouldNotStart
            | Outcome::TimedOut => {
                self.counts.failed += 1;
            }
        }
        self.settle(now)
    }

    /// The state that follows from what is left to run. A cancelled workload stays so.
    fn settle(mut self, now: Timestamp) -> Workload {
        if self.state.is_final() || self.counts.running > 0 {
            return self;
        }
        if !self.waiting.is_empty() {
            if self.state == State::Running {
                self.state = State::Waiting;
            }
            return self;
        }
        self.state = match self.counts {
            Counts { failed: 1.., .. } => State::Failed,
            Counts { completed: 1.., .. } => State::Completed,
            _ => State::Cancelled,
        };
        self.ended_at = Some(now);
        self
    }
}

/// One task of a workload, from the moment its claims stood to the moment they were given back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub workload: WorkloadId,
    pub site: SiteId,
    pub task: u32,
    /// The how manieth try of this task it is, from one.
    pub attempt: u32,
    /// Which of the workload's wishes it got.
    pub wish: usize,
    /// The reservation inside which it runs: its owner's own, or one whose idle time is lent.
    pub inside: Option<ReservationId>,
    /// From when on it runs outside that, opportunistically, because the reservation's owner lets it go on after the end.
    #[serde(default)]
    pub kept_from: Option<Timestamp>,
    /// The run of a session whose idle GPUs it has, until that one's owner comes back.
    #[serde(default)]
    pub lent_by: Option<RunId>,
    /// The machine that keeps its processes, where only a server on that machine can see them.
    #[serde(default)]
    pub machine: Option<String>,
    pub pieces: Vec<RunPiece>,
    pub claims: Vec<ClaimId>,
    pub state: RunState,
    pub began: Timestamp,
    /// When it has to be over at the latest; earlier than its limit if it was told to make room.
    pub until: Timestamp,
    /// By when its supervisor has ended it, whatever that hears from now on: the latest `until` that it may have received.
    #[serde(default)]
    pub supervisor_until: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// How it came to its end, in a sentence for its owner, where whatever ran it could tell.
    #[serde(default)]
    pub said: Option<Text>,
    pub version: u64,
}

/// Why something is over by a moment at the latest. Everything has an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndsBy {
    /// The limit that it asked for.
    Limit,
    /// Somebody else has what it stands on from then on.
    Wall,
    /// The reservation inside which it runs is over.
    Reservation,
}

impl Run {
    /// The reservation inside whose claims it stands; none once it is kept after that.
    pub fn stands_inside(&self) -> Option<ReservationId> {
        self.inside.filter(|_| self.kept_from.is_none())
    }

    /// Why it has to be over when it has.
    pub fn ends_by(&self, wish: Option<&Wish>) -> EndsBy {
        let end = wish.and_then(|wish| self.began.checked_add(wish.limit).ok());
        match (
            end.is_some_and(|end| self.until < end),
            self.stands_inside(),
        ) {
            (false, _) => EndsBy::Limit,
            (true, Some(_)) => EndsBy::Reservation,
            (true, None) => EndsBy::Wall,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunState {
    /// Its claims stand; whatever runs it has not said yes yet.
    Starting,
    Running,
    /// It was told to end, and why.
    Stopping {
        because: Because,
        since: Timestamp,
    },
    Ended {
        outcome: Outcome,
    },
}

impl RunState {
    pub fn is_over(self) -> bool {
        matches!(self, RunState::Ended { .. })
    }

    /// What a run in this state has come to. One that was cancelled never begins again, whatever else became of it in
    /// the same moment.
    pub fn come_to(self, outcome: Outcome) -> Outcome {
        match (self, outcome) {
            (
                RunState::Stopping {
                    because: Because::Cancelled,
                    ..
                },
                Outcome::Preempted | Outcome::NodeFailed,
            ) => Outcome::Cancelled,
            (_, outcome) => outcome,
        }
    }
}

/// Why something was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// It made room for something firmer.
    Preempted,
    Cancelled,
    /// Its time was over.
    TimedOut,
    /// The reservation inside which it runs ends, and it is to go on elsewhere: it first writes down how far it has come.
    Checkpoint,
}

impl Because {
    /// What it comes to when it is gone.
    pub fn outcome(self) -> Outcome {
        match self {
            Because::Preempted => Outcome::Preempted,
            Because::Cancelled => Outcome::Cancelled,
            Because::TimedOut => Outcome::TimedOut,
            Because::Checkpoint => Outcome::Checkpointed,
        }
    }
}

/// How a run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = RunOutcome)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Completed,
    Failed {
        exit_code: i32,
    },
    /// It wanted more memory than its limit.
    OutOfMemory,
    /// Its program is missing, or its environment broken.
    CouldNotStart,
    TimedOut,
    Preempted,
    /// It wrote down how far it had come, and goes on elsewhere.
    Checkpointed,
    Cancelled,
    NodeFailed,
}

/// What one task of a gang has of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunPiece {
    pub node: ResourceId,
    pub cores_milli: u64,
    pub memory_mib: u64,
    pub gpus: Vec<RunGpu>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunGpu {
    pub gpu: ResourceId,
    /// None for all of it.
    pub share: Option<Amount>,
}

#[cfg(test)]
mod tests;
