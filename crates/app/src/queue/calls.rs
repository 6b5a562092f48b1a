//! Calls to a site's backend. Each call runs in its own task with a deadline, and never while the site's plan is
//! locked.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use berth_drivers::backend::{Backend, Doing, Fence, Grant, Job, Trouble};
use berth_model::RunId;
use berth_model::workload::{Run, RunState, Workload};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

/// Concurrent calls of a site.
const AT_ONCE: usize = 16;
/// A call that takes longer gives its place to another call, and continues.
const KEEPS_PLACE: Duration = Duration::from_secs(1);
/// Deadline of a call. A later pass asks the backend again.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a pass waits for its calls. A later pass reads the answers that come later.
const ROUND_WAITS: Duration = Duration::from_millis(250);

pub(super) async fn in_time<T>(call: Doing<'_, T>) -> Result<T, Trouble> {
    let answer = timeout(ANSWER, call).await;
    answer.unwrap_or_else(|_| {
        let seconds = ANSWER.as_secs();
        Err(Trouble::NoAnswer(format!("it took more than {seconds} s")))
    })
}

/// Result of a call: the run as it was when the call began, and the backend's answer.
pub(super) type Answer = (Run, Result<(), Trouble>);

/// Input of a backend call about a run.
pub(super) struct Call {
    pub run: Run,
    pub workload: Arc<Workload>,
    /// Launch data of a start, or the error if the workload's secrets cannot be opened. `None` for other calls.
    pub start: Option<Result<(Grant, Workload), Trouble>>,
    pub fence: Fence,
    pub now: Timestamp,
}

/// A site's calls in progress. Dropping it aborts them.
#[derive(Debug)]
pub(crate) struct Calls {
    /// Fence of the lease under which the calls began.
    fence: Option<Fence>,
    tasks: JoinSet<Answer>,
    under_way: HashSet<RunId>,
    answered: Vec<Answer>,
    places: Arc<Semaphore>,
}

impl Default for Calls {
    fn default() -> Self {
        Calls {
            fence: None,
            tasks: JoinSet::new(),
            under_way: HashSet::new(),
            answered: Vec::new(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

impl Calls {
    /// Drops the calls that began under another lease.
    pub fn under(&mut self, fence: Fence) {
        if self.fence != Some(fence) {
            *self = Calls {
                fence: Some(fence),
                ..Calls::default()
            };
        }
    }

    pub fn is_under_way(&self, run: RunId) -> bool {
        self.under_way.contains(&run)
    }

    /// Begins a call, and wakes the queue when it ends. A call that completes at once, as in the simulator, needs no
    /// task.
    pub fn begin(&mut self, wake_up: &Arc<Notify>, backend: Arc<dyn Backend>, call: Call) {
        self.under_way.insert(call.run.id);
        let run = call.run.clone();
        let mut asked: BoxFuture<'static, Result<(), Trouble>> =
            Box::pin(async move { ask(backend.as_ref(), &call).await });
        if let Some(answer) = (&mut asked).now_or_never() {
            self.answered.push((run, answer));
            return;
        }
        let (wake_up, places) = (wake_up.clone(), self.places.clone());
        self.tasks.spawn(async move {
            let answer = in_turn(&places, asked).await;
            wake_up.notify_one();
            (run, answer)
        });
    }

    /// Returns the answers so far, after a short wait for quick calls.
    pub async fn answers(&mut self) -> Vec<Answer> {
        let patience = Instant::now() + ROUND_WAITS;
        while let Ok(Some(ended)) = timeout_at(patience, self.tasks.join_next()).await {
            match ended {
                Ok(answer) => self.answered.push(answer),
                // The call panicked, so its run is unknown. The calls may be repeated: the backend does each of them
                // only once.
                Err(_) => self.under_way.clear(),
            }
        }
        let answered = std::mem::take(&mut self.answered);
        for (run, _) in &answered {
            self.under_way.remove(&run.id);
        }
        answered
    }
}

/// Waits for a place and keeps it for a limited time, so a call that hangs does not block the others.
pub(crate) async fn in_turn<T>(places: &Semaphore, call: impl Future<Output = T> + Unpin) -> T {
    in_turn_for(KEEPS_PLACE, places, call).await
}

async fn in_turn_for<T>(
    longest: Duration,
    places: &Semaphore,
    mut call: impl Future<Output = T> + Unpin,
) -> T {
    // `acquire` fails only on a closed semaphore, and nobody closes this one.
    let place = places.acquire().await;
    if let Ok(done) = timeout(longest, &mut call).await {
        return done;
    }
    drop(place);
    call.await
}

async fn ask(backend: &dyn Backend, call: &Call) -> Result<(), Trouble> {
    let (run, fence, now) = (&call.run, call.fence, call.now);
    let job = Job {
        workload: &call.workload,
        run,
    };
    match (run.state, &call.start) {
        (RunState::Starting, Some(Ok((grant, workload)))) => {
            let job = Job { workload, ..job };
            in_time(backend.start(job, grant, fence, now)).await
        }
        (RunState::Starting, Some(Err(trouble))) => Err(trouble.clone()),
        (RunState::Stopping { .. }, _) => in_time(backend.stop(job, fence, now)).await,
        (RunState::Running, _) => in_time(backend.prolong(job, fence, now)).await,
        (RunState::Starting, None) | (RunState::Ended { .. }, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_that_hang_leave_their_places_to_others() {
        let places = Semaphore::new(2);
        let short = Duration::from_millis(1);
        let hung = (0..20).map(|_| in_turn_for(short, &places, std::future::pending::<()>()));
        let mut hung = futures::future::join_all(hung);
        // All of them hang, and each leaves its place after its turn.
        assert!((&mut hung).now_or_never().is_none());
        let other = in_turn_for(short, &places, Box::pin(async { 7 }));
        tokio::select! {
            _ = &mut hung => panic!("they hang"),
            answer = other => assert_eq!(answer, 7),
        }
    }
}
