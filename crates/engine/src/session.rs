//! Decides the next step of a session from its workload and its run.

use berth_model::Text;
use berth_model::session::{End, Session, State};
use berth_model::workload::{Outcome, Run, RunState, State as WorkloadState, Workload};
use jiff::{SignedDuration, Timestamp};

/// The next step for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Nothing,
    /// The session has its resources, and its program starts.
    Place,
    /// The app may be ready by now: ask it.
    Ask,
    /// The workload is waiting in the queue again.
    WaitAgain,
    /// The app did not answer within [`START_MAX`].
    TooLate,
    Over {
        end: End,
        said: Option<Text>,
    },
}

/// How long an app may take to answer for the first time.
pub const START_MAX: SignedDuration = SignedDuration::from_secs(300);

pub fn next(
    session: &Session,
    workload: Option<&Workload>,
    run: Option<&Run>,
    now: Timestamp,
) -> Next {
    let Some(workload) = workload.filter(|one| Some(one.id) == session.workload) else {
        return Next::Over {
            end: End::Failed,
            said: "what it ran as is gone".parse().ok(),
        };
    };
    let live = run.filter(|run| !run.state.is_over());
    if workload.state.is_final() && live.is_none() {
        return over(session, workload, run);
    }
    match (session.state, live) {
        (State::Waiting, Some(run)) if run.state == RunState::Running => Next::Place,
        (State::Starting, Some(_)) if session.since.duration_until(now) >= START_MAX => {
            Next::TooLate
        }
        (State::Starting, Some(run)) if run.state == RunState::Running => Next::Ask,
        (State::Starting | State::Ready, None) => match workload.state {
            WorkloadState::Waiting | WorkloadState::Held => Next::WaitAgain,
            _ => Next::Nothing,
        },
        _ => Next::Nothing,
    }
}

fn over(session: &Session, workload: &Workload, run: Option<&Run>) -> Next {
    let outcome = run.and_then(|run| match run.state {
        RunState::Ended { outcome } => Some(outcome),
        _ => None,
    });
    let was_told = session.state == State::Stopping;
    // A session whose app never answered has failed, whatever its outcome says.
    let never_answered = matches!(session.state, State::Waiting | State::Starting);
    let end = match outcome {
        _ if was_told => End::Wanted,
        Some(Outcome::Completed) if never_answered => End::Failed,
        Some(outcome) => End::of(outcome),
        None => End::Wanted,
    };
    let by_run = run.and_then(|run| run.said.clone());
    let said = match was_told {
        true => session.said.clone(),
        false => by_run
            .or_else(|| workload.reason.clone())
            .or_else(|| outcome.and_then(words)),
    };
    Next::Over { end, said }
}

/// Describes an outcome, for runs that ended without a message.
fn words(outcome: Outcome) -> Option<Text> {
    let words = match outcome {
        Outcome::Completed => "it ended by itself".to_owned(),
        Outcome::Failed { exit_code } => format!("its program ended with the code {exit_code}"),
        Outcome::OutOfMemory => {
            "it wanted more memory than its profile gives it; choose a larger one".to_owned()
        }
        Outcome::CouldNotStart => "its program could not be started".to_owned(),
        Outcome::TimedOut => "its time was over; start it again to go on".to_owned(),
        Outcome::Preempted => "it made room for a reservation".to_owned(),
        Outcome::Checkpointed => "its reservation is over".to_owned(),
        Outcome::Cancelled => "it was cancelled".to_owned(),
        Outcome::NodeFailed => "the machine that it ran on was lost; start it again".to_owned(),
    };
    words.parse().ok()
}

#[cfg(test)]
mod tests;
