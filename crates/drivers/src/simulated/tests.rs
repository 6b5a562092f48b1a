use berth_model::workload::{Because, Counts, State, Tasks};
use berth_model::{PersonId, RecutId, ResourceId, RunId, SiteId, WorkloadId};
use futures::executor::block_on;
use serde_json::json;
use uuid::Uuid;

use super::*;

const BEGAN: Timestamp = Timestamp::UNIX_EPOCH;

fn at(seconds: i64) -> Timestamp {
    BEGAN + SignedDuration::from_secs(seconds)
}

fn workload(command: &[&str]) -> Workload {
    let ask = json!({
        "title": "train", "class": "guaranteed", "level": null, "seats": [], "inside": null,
        "not_before": null, "deadline": null, "after": [], "array": null, "requeue": true,
        "program": {"command": command},
        "wishes": [{"task": {"cores_milli": 1000, "memory_mib": 1}, "limit": "PT1H"}],
    });
    Workload {
        id: WorkloadId(Uuid::from_u128(1)),
        site: SiteId(Uuid::from_u128(2)),
        number: 1,
        owner: PersonId(Uuid::from_u128(3)),
        project: None,
        ask: serde_json::from_value(ask).unwrap(),
        state: State::Running,
        reason: None,
        waiting: Tasks::none(),
        counts: Counts::default(),
        since: BEGAN,
        ended_at: None,
        version: 1,
    }
}

fn run(number: u128, state: RunState) -> Run {
    Run {
        id: RunId(Uuid::from_u128(number)),
        workload: WorkloadId(Uuid::from_u128(1)),
        site: SiteId(Uuid::from_u128(2)),
        task: 0,
        attempt: 1,
        wish: 0,
        inside: None,
        kept_from: None,
        lent_by: None,
        machine: None,
        pieces: Vec::new(),
        claims: Vec::new(),
        state,
        began: BEGAN,
        until: at(3600),
        supervisor_until: None,
        ended_at: None,
        said: None,
        version: 1,
    }
}

fn seen(backend: &Simulated, workload: &Workload, run: &Run, now: Timestamp) -> Sign {
    block_on(backend.look(&[Job { workload, run }], now))
        .unwrap()
        .remove(0)
}

#[test]
fn a_sleep_lasts_as_long_as_it_says_and_another_world_remembers_it_after_a_restart() {
    let (workload, run) = (workload(&["sleep", "10m"]), run(9, RunState::Running));
    let backend = Simulated::new(World::calm(7));
    assert_eq!(seen(&backend, &workload, &run, at(599)), Sign::Running);
    let over = Sign::Ended {
        at: at(600),
        outcome: Outcome::Completed,
        said: None,
    };
    assert_eq!(seen(&backend, &workload, &run, at(4000)), over);
    assert_eq!(
        seen(&Simulated::new(World::calm(7)), &workload, &run, at(600)),
        over
    );
    assert_eq!(
        backend.next(
            &[Job {
                workload: &workload,
                run: &run
            }],
            BEGAN
        ),
        Some(at(600))
    );
}

#[test]
fn what_is_told_to_stop_is_gone_within_the_slowest_end_and_never_after_its_time() {
    let workload = workload(&["sleep", "10h"]);
    let backend = Simulated::new(World::calm(7));
    for number in 0..200 {
        let stopping = RunState::Stopping {
            because: Because::Preempted,
            since: at(100),
        };
        let run = Run {
            until: at(110),
            ..run(number, stopping)
        };
        let Sign::Ended {
            at: gone, outcome, ..
        } = seen(&backend, &workload, &run, at(110))
        else {
            panic!("it is still there");
        };
        assert!(gone >= at(100) && gone <= at(110));
        assert_eq!(outcome, Outcome::Preempted);
    }
}

#[test]
fn about_so_many_fail_and_so_many_calls_are_not_answered() {
    let workload = workload(&["python", "train.py"]);
    let world = World {
        failing: 0.5,
        unanswered: 0.25,
        ..World::calm(1)
    };
    let backend = Simulated::new(world);
    let failed = (0..1000)
        .filter(|number| {
            let run = run(*number, RunState::Running);
            matches!(
                seen(&backend, &workload, &run, at(100_000)),
                Sign::Ended {
                    outcome: Outcome::Failed { .. },
                    ..
                }
            )
        })
        .count();
    assert!((400..600).contains(&failed), "{failed}");
    let run = run(1, RunState::Running);
    let start = || {
        block_on(backend.start(
            Job {
                workload: &workload,
                run: &run,
            },
            &nobody(),
            Fence(1),
            BEGAN,
        ))
    };
    let silent = (0..1000).filter(|_| start().is_err()).count();
    assert!((150..350).contains(&silent), "{silent}");
}

#[test]
fn a_server_that_lost_its_lease_is_refused() {
    let backend = Simulated::new(World::calm(1));
    let (workload, run) = (workload(&["sleep", "1"]), run(1, RunState::Running));
    let job = Job {
        workload: &workload,
        run: &run,
    };
    assert_eq!(
        block_on(backend.start(job, &nobody(), Fence(2), BEGAN)),
        Ok(())
    );
    assert_eq!(
        block_on(backend.start(job, &nobody(), Fence(1), BEGAN)),
        Err(Trouble::Fenced)
    );
}

fn nobody() -> Grant {
    Grant {
        has_neighbours: false,
        has_hub: false,
        package_index: None,
        person: PersonId(Uuid::nil()),
        login: "nobody".to_owned(),
        site: "here".to_owned(),
        project: None,
        nodes: Vec::new(),
        gpus: Vec::new(),
        environment: Default::default(),
        mounts: Vec::new(),
    }
}

fn recut(number: u128) -> Recut {
    Recut {
        id: RecutId(Uuid::from_u128(number)),
        site: SiteId(Uuid::from_u128(2)),
        workload: WorkloadId(Uuid::from_u128(1)),
        gpu: ResourceId(Uuid::from_u128(4)),
        slice: ResourceId(Uuid::from_u128(5)),
        gone: Vec::new(),
        profile: "3g.40gb".parse().unwrap(),
        at: 4,
        claims: Vec::new(),
        began: BEGAN,
        until: at(60),
        ended: None,
    }
}

#[test]
fn a_gpu_is_cut_after_a_while_however_often_it_is_asked_for_and_after_a_restart() {
    for number in 0..100 {
        let recut = recut(number);
        let ask = |now| block_on(Simulated::new(World::calm(7)).recut(&recut, Fence(1), now));
        let done = match ask(BEGAN) {
            Ok(Progress::UnderWay { again }) => again,
            done => {
                assert_eq!(done, Ok(Progress::Done));
                BEGAN
            }
        };
        assert!(done <= at(30));
        assert_eq!(ask(done), Ok(Progress::Done));
        assert_eq!(ask(at(1000)), Ok(Progress::Done));
    }
}

#[test]
fn what_is_not_cut_in_time_is_never_cut() {
    let slow = World {
        slowest_cut: SignedDuration::from_hours(100),
        ..World::calm(1)
    };
    let stubborn = World {
        uncut: 1.0,
        ..World::calm(1)
    };
    for world in [slow, stubborn] {
        let backend = Simulated::new(world);
        let ask = |now| block_on(backend.recut(&recut(1), Fence(1), now));
        assert!(matches!(ask(BEGAN), Ok(Progress::UnderWay { .. })));
        assert!(matches!(ask(at(60)), Err(Trouble::Refused(_))));
        assert!(matches!(ask(at(1_000_000)), Err(Trouble::Refused(_))));
    }
}

#[test]
fn what_writes_down_how_far_it_has_come_takes_longer_to_go() {
    let workload = workload(&["sleep", "10h"]);
    let backend = Simulated::new(World::calm(7));
    let gone = |number, because| {
        let stopping = RunState::Stopping {
            because,
            since: at(60),
        };
        let run = run(number, stopping);
        let sign = seen(&backend, &workload, &run, run.until);
        let Sign::Ended { at, outcome, .. } = sign else {
            panic!("it is still there: {sign:?}");
        };
        assert_eq!(outcome, because.outcome());
        at
    };
    for number in 0..50 {
        let slow = gone(number, Because::Checkpoint);
        assert!(slow >= gone(number, Because::Preempted));
        assert!(slow <= at(60 + 20 + 100));
    }
    assert!((0..50).any(|number| gone(number, Because::Checkpoint) > at(60 + 20)));
}
