//! Replays jobs on a machine of equal processors, around reservations, as the published tables do.

use berth_engine::queue::Micros;
use berth_engine::queue::planner::{Order, Policy};

use crate::outcome::Outcome;
use crate::policy::{Candidate, Reserve};
use crate::reserve;
use crate::swf::{self, Job, SECOND};
use crate::trace;
use crate::world;

const DAY: Micros = 24 * 3600 * SECOND;

/// A reservation of some processors.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wall {
    pub from: Micros,
    pub to: Micros,
    /// When the reservation was made.
    pub known: Micros,
    pub processors: Vec<u32>,
}

/// The settings of a replay.
#[derive(Debug, Clone)]
pub struct Play {
    pub processors: u32,
    pub times: Times,
    pub walls: Vec<Wall>,
}

/// The run times by which short jobs are distinguished from long ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// The requested times.
    Asked,
    /// Predictions from the owner's last jobs.
    Predicted,
}

/// Reservations of a tenth of the machine over the time of the jobs, each known seven days ahead. Each takes one to 32
/// processors for one to eight hours, and never more than half of the machine is reserved at once.
pub fn a_tenth_reserved(jobs: &[Job], processors: u32, seed: u64) -> Vec<Wall> {
    let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else {
        return Vec::new();
    };
    let tenth = Reserve {
        part: 0.1,
        ahead: 7 * DAY,
        seed,
    };
    let drawn = reserve::draw(processors as usize, first.submit, last.submit, &tenth);
    let wall = |drawn: reserve::Drawn| Wall {
        from: drawn.from,
        to: drawn.to,
        known: drawn.known,
        processors: drawn.nodes,
    };
    drawn.into_iter().map(wall).collect()
}

/// Replays all jobs, the shortest first: the published runs have no fair shares.
pub fn replay(jobs: &[Job], play: &Play) -> Outcome {
    let mut trace = swf::of_jobs(jobs, play.processors);
    let wall = |wall: &Wall| trace::Wall {
        from: wall.from,
        to: wall.to,
        known: wall.known,
        placement: reserve::whole(&trace.nodes, &wall.processors),
        holder: None,
    };
    trace.walls = play.walls.iter().map(wall).collect();
    let candidate = Candidate {
        policy: Policy::new(Order::Shortest),
        prediction: play.times == Times::Predicted,
        ..Candidate::new("shortest first")
    };
    world::play(&trace, &candidate, &mut |_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn jobs(count: usize, seed: u64) -> Vec<Job> {
        let mut random = Random::new(seed);
        let mut at = 0;
        let mut job = || {
            at += random.below(5400) as Micros * SECOND;
            let limit = (1 + random.below(600)) as Micros * 60 * SECOND;
            Job {
                submit: at,
                runs: (limit / (1 + random.below(5) as Micros)).max(SECOND),
                limit,
                processors: 1 + random.below(16) as u32,
                person: random.below(5) as i64,
                group: 0,
            }
        };
        (0..count).map(|_| job()).collect()
    }

    fn play(times: Times, walls: Vec<Wall>) -> Play {
        Play {
            processors: 16,
            times,
            walls,
        }
    }

    #[test]
    fn every_job_is_done_and_no_reservation_waits() {
        let jobs = jobs(250, 3);
        let walls = a_tenth_reserved(&jobs, 16, 1);
        assert!(!walls.is_empty());
        for walls in [Vec::new(), walls] {
            for times in [Times::Asked, Times::Predicted] {
                let outcome = replay(&jobs, &play(times, walls.clone()));
                assert_eq!(outcome.late_s, 0.0);
                assert!(
                    outcome.slowdown_mean >= 1.0 && outcome.slowdown_max >= outcome.slowdown_mean
                );
                let again = replay(&jobs, &play(times, walls.clone()));
                assert_eq!(outcome.slowdown_mean, again.slowdown_mean);
            }
        }
    }

    #[test]
    fn promises_are_kept_where_nobody_reserves() {
        let outcome = replay(&jobs(250, 9), &play(Times::Asked, Vec::new()));
        assert!(outcome.promises > 0, "the machine was never full");
        assert_eq!(outcome.broken, 0);
    }
}
