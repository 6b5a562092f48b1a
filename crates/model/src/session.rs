//! A session: a web app that somebody works in, under a name of theirs and at an address of its own.
//!
//! It outlives what runs: stopped and started again it is the same session, with the same name, address and home. What
//! runs is a workload of its owner's, which holds the claims; a session says which one, and how far it has come.

mod catalogue;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use catalogue::{APP_TOKEN, Activity, App, AppError, catalogue};

use crate::id::{
    PersonId, ProjectId, ReservationId, SessionId, SignInId, SiteId, StartId, TokenId, VisitId,
    WorkloadId,
};
use crate::name::{Name, Text};
use crate::workload::Outcome;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub id: SessionId,
    pub site: SiteId,
    pub owner: PersonId,
    pub project: Option<ProjectId>,
    /// No other session of its owner at this site has it.
    pub name: Name,
    /// The first part of its host name. It is drawn by lot, and says nothing of whose or what it is.
    pub label: String,
    pub profile: Name,
    /// What its owner chose in place of the profile's environment.
    pub environment: Option<Text>,
    /// The reservation of its owner's inside which it runs.
    pub inside: Option<ReservationId>,
    pub state: State,
    /// What runs, or ran last.
    pub workload: Option<WorkloadId>,
    /// Why it is over, in a sentence for its owner.
    pub said: Option<Text>,
    /// Colleagues who may come in.
    pub shared: BTreeMap<PersonId, Access>,
    /// Since when it is in this state.
    pub since: Timestamp,
    /// When something was last done in it.
    pub active_at: Timestamp,
    /// Its owner wants it left alone until then, however idle it is.
    pub kept_until: Option<Timestamp>,
    /// When its owner was told that it will be stopped for being idle; nothing, once they came back.
    pub warned_at: Option<Timestamp>,
    /// Since when its GPUs, which nobody uses, are lent to opportunistic work; nothing, once its owner came back.
    pub lends_since: Option<Timestamp>,
    /// How many of its programs were ended for want of memory, as far as its owner was told.
    pub memory_kills: u64,
    pub created_at: Timestamp,
    pub version: u64,
}

/// How far a session has come.
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
#[schema(as = SessionState)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its workload waits in the queue.
    Waiting,
    /// Its program runs and does not answer yet.
    Starting,
    /// It answers.
    Ready,
    /// It was told to end.
    Stopping,
    /// Nothing of it runs; it can be started again.
    Stopped,
    /// The same, and it was not its owner who wanted that.
    Failed,
}

impl State {
    pub const ALL: &'static [State] = &[
        State::Waiting,
        State::Starting,
        State::Ready,
        State::Stopping,
        State::Stopped,
        State::Failed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Starting => "starting",
            State::Ready => "ready",
            State::Stopping => "stopping",
            State::Stopped => "stopped",
            State::Failed => "failed",
        }
    }

    /// Whether something of it waits or runs.
    pub fn is_live(self) -> bool {
        !matches!(self, State::Stopped | State::Failed)
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a colleague may do in a session.
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
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Look: nothing that changes anything is let through, and no socket, because what runs code runs by sockets.
    View,
    /// All that the owner may do inside.
    Edit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session is {state}, and so it cannot be {wanted}")]
pub struct NotNow {
    pub state: State,
    pub wanted: &'static str,
}

impl Session {
    /// A workload was submitted for it.
    pub fn start(mut self, workload: WorkloadId, now: Timestamp) -> Result<Session, NotNow> {
        if self.state.is_live() {
            return Err(self.not_now("started"));
        }
        self.workload = Some(workload);
        self.said = None;
        self.active_at = now;
        self.kept_until = None;
        self.warned_at = None;
        self.memory_kills = 0;
        Ok(self.into_state(State::Waiting, now))
    }

    /// It has its place, and its program begins.
    pub fn placed(self, now: Timestamp) -> Result<Session, NotNow> {
        match self.state {
            State::Waiting => Ok(self.into_state(State::Starting, now)),
            _ => Err(self.not_now("starting")),
        }
    }

    pub fn answers(mut self, now: Timestamp) -> Result<Session, NotNow> {
        match self.state {
            State::Starting => {
                self.active_at = now;
                Ok(self.into_state(State::Ready, now))
            }
            _ => Err(self.not_now("ready")),
        }
    }

    /// It was sent back into the queue: whoever waits for it sees that.
    pub fn waits_again(mut self, now: Timestamp) -> Result<Session, NotNow> {
        match self.state {
            State::Starting | State::Ready => {
                self.memory_kills = 0;
                Ok(self.into_state(State::Waiting, now))
            }
            _ => Err(self.not_now("waiting")),
        }
    }

    pub fn stop(mut self, said: Option<Text>, now: Timestamp) -> Result<Session, NotNow> {
        match self.state {
            State::Waiting | State::Starting | State::Ready => {
                self.said = said;
                Ok(self.into_state(State::Stopping, now))
            }
            _ => Err(self.not_now("stopped")),
        }
    }

    /// Nothing of it runs any more.
    pub fn over(mut self, end: End, now: Timestamp) -> Session {
        let state = match end {
            End::Wanted => State::Stopped,
            End::Failed => State::Failed,
        };
        self.warned_at = None;
        self.kept_until = None;
        self.into_state(state, now)
    }

    /// Something was done in it at that moment.
    pub fn active(mut self, at: Timestamp) -> Session {
        if at > self.active_at {
            self.active_at = at;
            self.warned_at = None;
            self.lends_since = None;
        }
        self
    }

    /// Its GPUs are lent from now on, or no longer. Only what answers and idles lends.
    pub fn lend(mut self, lends: bool, now: Timestamp) -> Session {
        let may = lends && self.state == State::Ready;
        self.lends_since = may.then(|| self.lends_since.unwrap_or(now));
        self
    }

    /// From when on its GPUs are lent, if nothing is done in it until then.
    pub fn lends_from(&self, after: SignedDuration) -> Timestamp {
        self.active_at.checked_add(after).unwrap_or(Timestamp::MAX)
    }

    /// When it is stopped if nothing is done in it until then.
    pub fn idle_until(&self, idle: SignedDuration) -> Timestamp {
        let by_itself = self.active_at.checked_add(idle).unwrap_or(Timestamp::MAX);
        self.kept_until
            .map_or(by_itself, |kept| kept.max(by_itself))
    }

    /// What this person may do inside; nothing, if none.
    pub fn access(&self, person: PersonId) -> Option<Access> {
        match person == self.owner {
            true => Some(Access::Edit),
            false => self.shared.get(&person).copied(),
        }
    }

    fn into_state(mut self, state: State, now: Timestamp) -> Session {
        self.state = state;
        self.since = now;
        self.lends_since = None;
        self
    }

    fn not_now(&self, wanted: &'static str) -> NotNow {
        NotNow {
            state: self.state,
            wanted,
        }
    }
}

/// Whether a session that is over was to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Wanted,
    Failed,
}

impl End {
    /// What becomes of a session whose run has come to this.
    pub fn of(outcome: Outcome) -> End {
        match outcome {
            Outcome::Completed
            | Outcome::Cancelled
            | Outcome::TimedOut
            | Outcome::Preempted
            | Outcome::Checkpointed => End::Wanted,
            Outcome::Failed { .. }
            | Outcome::OutOfMemory
            | Outcome::CouldNotStart
            | Outcome::NodeFailed => End::Failed,
        }
    }
}

/// One attempt to start a session, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    pub id: StartId,
    pub session: SessionId,
    pub site: SiteId,
    pub person: PersonId,
    pub profile: Name,
    pub workload: WorkloadId,
    /// Whether nobody asked for it: what failed was tried again.
    pub is_automatic: bool,
    pub asked_at: Timestamp,
    pub ready_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Whether it came to its end before it ever answered, and nobody wanted that.
    pub has_failed: bool,
    pub said: Option<Text>,
}

/// A profile that nobody starts until an admin lets them: too many of its starts failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pause {
    pub site: SiteId,
    pub profile: Name,
    pub since: Timestamp,
    pub said: Text,
}

/// Somebody's way into a session, by one browser. It lasts no longer than what they signed in with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    pub id: VisitId,
    pub session: SessionId,
    pub person: PersonId,
    /// What they had signed in with; it ends the visit when it ends.
    pub sign_in: Option<SignInId>,
    /// The API token that opened it, if one did; the visit ends with it.
    pub token: Option<TokenId>,
    pub access: Access,
    /// Why somebody came to whom it was not shared; its owner sees that.
    pub reason: Option<Text>,
    pub began: Timestamp,
    pub expires_at: Timestamp,
}

/// Of a profile: that it is for sessions, and how they are run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionProfile)]
pub struct SessionProfile {
    /// What is started: one of the catalogue, or of the site's own apps.
    #[schema(value_type = String)]
    pub app: Name,
    /// The managed environment it runs in, in place of the app's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Text>,
    /// It is stopped when nothing was done in it for so long.
    #[serde(default = "SessionProfile::usual_idle")]
    #[schema(value_type = String, examples("PT1H"))]
    pub idle: SignedDuration,
    /// Where the site lends: its GPUs are lent to opportunistic work when nothing was done in it for so long, until its
    /// owner comes back; never, if null.
    #[serde(default = "SessionProfile::usual_lend_after")]
    #[schema(value_type = Option<String>, examples("PT15M"))]
    pub lend_after: Option<SignedDuration>,
    /// The projects whose members may use it; everybody, if none are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub projects: Vec<Name>,
}

impl SessionProfile {
    pub fn of(app: Name) -> SessionProfile {
        SessionProfile {
            app,
            environment: None,
            idle: Self::usual_idle(),
            lend_after: Self::usual_lend_after(),
            projects: Vec::new(),
        }
    }

    fn usual_idle() -> SignedDuration {
        SignedDuration::from_secs(3600)
    }

    fn usual_lend_after() -> Option<SignedDuration> {
        Some(SignedDuration::from_mins(15))
    }
}

#[cfg(test)]
mod tests;
