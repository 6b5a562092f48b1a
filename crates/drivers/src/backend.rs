//! Whatever runs workloads.
//!
//! Everything here may be asked twice: a server that was killed after it called and before it wrote that down asks
//! again. A backend therefore knows a run by its id, starts it once, and stops what it never started with a yes. What
//! comes with an older fence than it has seen is from a server that lost its lease, and is refused.

use std::pin::Pin;

use berth_model::workload::{Outcome, Run, Workload};
use jiff::Timestamp;

/// A run and what it is a part of.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    pub workload: &'a Workload,
    pub run: &'a Run,
}

/// The number of the lease under which a server acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence(pub u64);

/// What a backend sees of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Running,
    Ended {
        at: Timestamp,
        outcome: Outcome,
    },
    /// It was never started here, or nothing is left of it.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It may work another time.
    #[error("the backend does not answer: {0}")]
    NoAnswer(String),
    /// It will not work, whoever asks how often.
    #[error("the backend refuses: {0}")]
    Refused(String),
    #[error("another server has taken over")]
    Fenced,
}

pub type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, Trouble>> + Send + 'a>>;

pub trait Backend: Send + Sync + std::fmt::Debug {
    fn start<'a>(&'a self, job: Job<'a>, fence: Fence, now: Timestamp) -> Doing<'a, ()>;

    /// Tells a run to come to its end; by the run's own `until` it is made to. Where the reason is a checkpoint, it is
    /// first told to write down how far it has come, and has all the time until then, less the site's grace, for that.
    fn stop<'a>(&'a self, job: Job<'a>, fence: Fence, now: Timestamp) -> Doing<'a, ()>;

    /// What has become of these, in their order.
    fn look<'a>(&'a self, jobs: &'a [Job<'a>], now: Timestamp) -> Doing<'a, Vec<Sign>>;

    /// When something of these will next have happened, where the backend knows.
    fn next(&self, _jobs: &[Job<'_>]) -> Option<Timestamp> {
        None
    }
}
