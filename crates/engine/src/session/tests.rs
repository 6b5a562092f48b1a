use std::collections::BTreeMap;

use super::*;
use berth_model::workload::{Ask, Counts, Program, Tasks};
use berth_model::{PersonId, RunId, SessionId, SiteId, WorkloadId};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn session(state: State) -> Session {
    Session {
        id: SessionId::from_parts(1, &[1; 10]),
        site: SiteId::from_parts(2, &[2; 10]),
        owner: PersonId::from_parts(3, &[3; 10]),
        project: None,
        name: "lab".parse().unwrap(),
        label: "k3v9xwbe8rv5w2n9".to_owned(),
        profile: "small".parse().unwrap(),
        environment: None,
        inside: None,
        state,
        workload: Some(WorkloadId::from_parts(9, &[9; 10])),
        said: None,
        shared: BTreeMap::new(),
        since: at(100),
        active_at: at(100),
        kept_until: None,
        warned_at: None,
        lends_since: None,
        memory_kills: 0,
        created_at: at(0),
        version: 1,
    }
}

fn workload(state: WorkloadState) -> Workload {
    Workload {
        id: WorkloadId::from_parts(9, &[9; 10]),
        site: SiteId::from_parts(2, &[2; 10]),
        number: 1,
        owner: PersonId::from_parts(3, &[3; 10]),
        project: None,
        ask: Ask {
            title: "Session lab".parse().unwrap(),
            class: Default::default(),
            level: None,
            wishes: Vec::new(),
            seats: Vec::new(),
            inside: None,
            not_before: None,
            deadline: None,
            after: Vec::new(),
            array: None,
            requeue: false,
            program: Program::default(),
        },
        state,
        reason: None,
        waiting: Tasks::none(),
        counts: Counts::default(),
        since: at(0),
        ended_at: None,
        version: 1,
    }
}

fn run(state: RunState) -> Run {
    Run {
        id: RunId::from_parts(5, &[5; 10]),
        workload: WorkloadId::from_parts(9, &[9; 10]),
        site: SiteId::from_parts(2, &[2; 10]),
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
        began: at(100),
        until: at(10_000),
        supervisor_until: None,
        ended_at: None,
        said: None,
        version: 1,
    }
}

fn ended(outcome: Outcome) -> Run {
    run(RunState::Ended { outcome })
}

#[test]
fn it_is_asked_once_it_runs_and_for_five_minutes() {
    let running = run(RunState::Running);
    let job = workload(WorkloadState::Running);
    let next_at = |state, second| next(&session(state), Some(&job), Some(&running), at(second));
    assert_eq!(next_at(State::Waiting, 101), Next::Place);
    assert_eq!(next_at(State::Starting, 399), Next::Ask);
    assert_eq!(next_at(State::Starting, 400), Next::TooLate);
    assert_eq!(next_at(State::Ready, 9_000), Next::Nothing);
    assert_eq!(next_at(State::Stopping, 9_000), Next::Nothing);
    let starting = run(RunState::Starting);
    let waits = next(
        &session(State::Waiting),
        Some(&job),
        Some(&starting),
        at(101),
    );
    assert_eq!(waits, Next::Nothing);
}

#[test]
fn what_was_sent_away_waits_again() {
    let job = workload(WorkloadState::Waiting);
    let gone = ended(Outcome::Preempted);
    let next = next(&session(State::Ready), Some(&job), Some(&gone), at(200));
    assert_eq!(next, Next::WaitAgain);
}

#[test]
fn an_end_is_told_as_whatever_ran_it_tells_it() {
    let job = workload(WorkloadState::Failed);
    let mut out = ended(Outcome::OutOfMemory);
    let over = |state, run: &Run| next(&session(state), Some(&job), Some(run), at(200));
    let Next::Over { end, said } = over(State::Ready, &out) else {
        panic!("it is over");
    };
    assert_eq!(end, End::Failed);
    assert!(said.unwrap().as_str().contains("more memory"));
    out.said = "the limit of 2 GiB was reached".parse().ok();
    let Next::Over { said, .. } = over(State::Ready, &out) else {
        panic!("it is over");
    };
    assert_eq!(said, out.said);
}

#[test]
fn what_was_told_to_stop_has_not_failed() {
    let job = workload(WorkloadState::Cancelled);
    let killed = ended(Outcome::Failed { exit_code: 143 });
    let stopping = next(
        &session(State::Stopping),
        Some(&job),
        Some(&killed),
        at(200),
    );
    let over = Next::Over {
        end: End::Wanted,
        said: None,
    };
    assert_eq!(stopping, over);
}

#[test]
fn what_goes_before_it_ever_answered_has_failed() {
    let job = workload(WorkloadState::Completed);
    let gone = ended(Outcome::Completed);
    let early = next(&session(State::Starting), Some(&job), Some(&gone), at(200));
    assert!(matches!(
        early,
        Next::Over {
            end: End::Failed,
            ..
        }
    ));
    let late = next(&session(State::Ready), Some(&job), Some(&gone), at(200));
    assert!(matches!(
        late,
        Next::Over {
            end: End::Wanted,
            ..
        }
    ));
}
