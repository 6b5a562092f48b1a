//! A backend that runs nothing and reports what would have happened.
//!
//! The seed and the run itself determine how long a run lasts, whether it fails and how long it takes to end. So there
//! is nothing to store, and the answers are the same after a restart. The command `sleep 600` lasts ten minutes; for
//! all others the length is drawn.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use berth_model::Recut;
use berth_model::workload::{Because, Outcome, Run, RunState, Workload};
use jiff::{SignedDuration, Timestamp};

use crate::backend::{Backend, Doing, Fence, Grant, Job, Progress, Sign, Trouble};

/// Parameters of the simulated world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct World {
    pub seed: u64,
    /// Fraction of runs that end with an error.
    pub failing: f64,
    /// Fraction of runs that lose their node.
    pub node_loss: f64,
    /// Fraction of calls that get no answer, although the backend may have carried them out.
    pub unanswered: f64,
    /// Maximum time that a run takes to end once it is asked to.
    pub slowest_end: SignedDuration,
    /// Fraction of MIG repartitions that fail.
    pub uncut: f64,
    /// Maximum time that a MIG repartition takes.
    pub slowest_cut: SignedDuration,
    /// Maximum time that a run takes, before that, to save a checkpoint.
    pub slowest_checkpoint: SignedDuration,
}

impl World {
    /// A world in which everything goes well.
    pub fn calm(seed: u64) -> World {
        World {
            seed,
            failing: 0.0,
            node_loss: 0.0,
            unanswered: 0.0,
            slowest_end: SignedDuration::from_secs(20),
            uncut: 0.0,
            slowest_cut: SignedDuration::from_secs(30),
            slowest_checkpoint: SignedDuration::from_secs(100),
        }
    }

    /// A world for a demo: one run in twenty-five fails.
    pub fn lively(seed: u64) -> World {
        World {
            failing: 0.04,
            ..World::calm(seed)
        }
    }
}

#[derive(Debug)]
pub struct Simulated {
    world: World,
    newest_fence: AtomicU64,
    calls: AtomicU64,
}

impl Simulated {
    pub fn new(world: World) -> Simulated {
        Simulated {
            world,
            newest_fence: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        }
    }

    /// A number from zero to one, always the same for this object and purpose.
    fn draw(&self, of: impl Hash, purpose: &str) -> f64 {
        let mut hasher = DefaultHasher::new();
        (self.world.seed, of, purpose).hash(&mut hasher);
        (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn answer(&self, fence: Fence) -> Result<(), Trouble> {
        let newest = self.newest_fence.fetch_max(fence.0, Ordering::SeqCst);
        if fence.0 < newest {
            return Err(Trouble::Fenced);
        }
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if self.draw(call, "unanswered") < self.world.unanswered {
            return Err(Trouble::NoAnswer("the simulated world is silent".into()));
        }
        Ok(())
    }

    /// How long a task lasts if nobody stops it. The length belongs to the task, so a restart does not change it.
    fn lasts(&self, workload: &Workload, run: &Run) -> SignedDuration {
        let limit = workload
            .ask
            .wishes
            .get(run.wish)
            .map_or(SignedDuration::ZERO, |wish| wish.limit);
        if let Some(said) = slept(&workload.ask.program.command) {
            return said;
        }
        // People ask for more time than they need: most use a fifth to nine tenths of it, and a few reach their limit.
        let part = self.draw((workload.id, run.task), "length");
        let part = 0.02 + 1.02 * part.powf(1.3);
        seconds(limit.as_secs_f64() * part).max(SignedDuration::from_secs(1))
    }

    /// How a run ends, and when.
    fn end(&self, job: Job<'_>) -> (Timestamp, Outcome) {
        let Job { workload, run } = job;
        let by_itself = run.began.checked_add(self.lasts(workload, run));
        let by_itself = by_itself.unwrap_or(Timestamp::MAX);
        let lost = self.draw(run.id, "node") < self.world.node_loss;
        let fails = self.draw(run.id, "failing") < self.world.failing;
        let ended = match (lost, fails) {
            (true, _) => (half_way(run.began, by_itself), Outcome::NodeFailed),
            (false, true) => (
                half_way(run.began, by_itself),
                Outcome::Failed { exit_code: 1 },
            ),
            (false, false) => (by_itself, Outcome::Completed),
        };
        let RunState::Stopping { because, since } = run.state else {
            return ended;
        };
        let mut longest = self.world.slowest_end.as_secs_f64();
        if because == Because::Checkpoint {
            longest += self.world.slowest_checkpoint.as_secs_f64();
        }
        let takes = longest * self.draw(run.id, "stopping");
        let gone = since
            .checked_add(seconds(takes))
            .unwrap_or(run.until)
            .min(run.until);
        // A run that had ended before it was asked to stop keeps its own end.
        if ended.0 <= since {
            ended
        } else {
            (gone, because.outcome())
        }
    }
}

/// Whole seconds: times have a precision of a microsecond, and nothing here needs that.
fn seconds(length: f64) -> SignedDuration {
    SignedDuration::from_secs(length as i64)
}

fn half_way(from: Timestamp, to: Timestamp) -> Timestamp {
    from.checked_add(seconds(from.duration_until(to).as_secs_f64() / 2.0))
        .unwrap_or(to)
}

/// How long `sleep 600` or `sleep 10m` lasts.
fn slept(command: &[String]) -> Option<SignedDuration> {
    let [program, length] = command else {
        return None;
    };
    if program != "sleep" {
        return None;
    }
    let (number, unit) = length.split_at(
        length
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(length.len()),
    );
    let unit_s = match unit {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let length = number.parse::<f64>().ok()?.clamp(0.0, 3.2e7);
    Some(seconds(length * unit_s))
}

impl Backend for Simulated {
    fn start<'a>(
        &'a self,
        _job: Job<'a>,
        _grant: &'a Grant,
        fence: Fence,
        _now: Timestamp,
    ) -> Doing<'a, ()> {
        Box::pin(async move { self.answer(fence) })
    }

    fn stop<'a>(&'a self, _job: Job<'a>, fence: Fence, _now: Timestamp) -> Doing<'a, ()> {
        Box::pin(async move { self.answer(fence) })
    }

    fn look<'a>(&'a self, jobs: &'a [Job<'a>], now: Timestamp) -> Doing<'a, Vec<Sign>> {
        let sign = move |job: &Job<'a>| match self.end(*job) {
            (at, outcome) if at <= now => Sign::Ended {
                at,
                outcome,
                said: None,
            },
            _ => Sign::Running,
        };
        Box::pin(async move { Ok(jobs.iter().map(sign).collect()) })
    }

    fn can_cut(&self) -> bool {
        true
    }

    fn recut<'a>(&'a self, recut: &'a Recut, fence: Fence, now: Timestamp) -> Doing<'a, Progress> {
        let answer = move || {
            self.answer(fence)?;
            // Some GPUs are quicker than others; none is repartitioned in no time.
            let share = 0.1 + 0.9 * self.draw(recut.id, "cutting");
            let takes = self.world.slowest_cut.as_secs_f64() * share;
            let done = recut.began.checked_add(seconds(takes));
            let done = done.unwrap_or(Timestamp::MAX);
            let fails = done > recut.until || self.draw(recut.id, "uncut") < self.world.uncut;
            match done.min(recut.until) {
                at if now < at => Ok(Progress::UnderWay { again: at }),
                _ if fails => Err(Trouble::Refused("the simulated GPU stays as it is".into())),
                _ => Ok(Progress::Done),
            }
        };
        Box::pin(async move { answer() })
    }

    fn next(&self, jobs: &[Job<'_>], _now: Timestamp) -> Option<Timestamp> {
        jobs.iter().map(|job| self.end(*job).0).min()
    }
}

#[cfg(test)]
mod tests;
