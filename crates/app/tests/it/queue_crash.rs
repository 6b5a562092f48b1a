//! The queue's controller is cut off at any of its awaits, another server goes on, and the end is the same (promises R2,
//! R3 and R4): nothing that was acknowledged is lost, every task is done exactly once, and what was held is what was had.
//!
//! `BERTH_CRASH_POINTS` sets how many places are tried; the suite tries a few, spread over the whole story.

use std::collections::BTreeMap;

use crate::support::Lab;
use crate::support::queue::cut;
use berth_drivers::simulated::World;
use berth_model::workload::{Outcome, RunState, State};
use berth_model::{Holder, Standing};
use berth_store::{Engine, claims};
use jiff::SignedDuration;
use serde_json::json;

/// What people submit: opportunistic work that fills everything, an array, and a gang that makes others go.
async fn submit_first(lab: &Lab) -> Vec<u64> {
    let mut numbers = Vec::new();
    for _ in 0..4 {
        let mut ask = lab.ask(1, 3, 30);
        ask["class"] = json!("opportunistic");
        numbers.push(lab.submit(&lab.bob, ask).await);
    }
    let mut array = lab.ask(1, 1, 5);
    array["array"] = json!({ "tasks": "0-5", "at_once": 2 });
    numbers.push(lab.submit(&lab.ada, array).await);
    numbers
}

/// Plays the story; after so many polls of the controller it is cut off once, and another server goes on.
async fn play(lab: Lab, polls: usize) -> (Lab, Vec<u64>, usize) {
    let mut lab = lab;
    let mut left = polls;
    let mut was_cut = false;
    let mut numbers = submit_first(&lab).await;
    let arrives = lab.at(0) + SignedDuration::from_mins(8);
    let end = lab.at(4);
    let mut rounds = 0;
    loop {
        rounds += 1;
        assert!(rounds < 2000, "the story does not end");
        let next = match was_cut {
            true => lab.round().await,
            false => match cut(lab.round(), &mut left).await {
                Some(next) => next,
                None => {
                    was_cut = true;
                    lab = lab.restarted().await;
                    continue;
                }
            },
        };
        let now = lab.app.now();
        if numbers.len() == 5 && now < arrives && next.is_none_or(|next| next >= arrives) {
            lab.wait_until_moment(arrives).await;
            numbers.push(lab.submit(&lab.ada, lab.ask(4, 4, 10)).await);
            continue;
        }
        match next.filter(|next| *next <= end) {
            Some(next) => {
                lab.wait_until_moment(next.max(now + SignedDuration::from_millis(1)))
                    .await
            }
            None => break,
        }
    }
    (lab, numbers, polls - left)
}

/// Every task was completed exactly once, claims say what runs say, and nothing is held by anything that is over.
async fn check(lab: &Lab, numbers: &[u64], at: usize) {
    let mut reader = lab.app.store.read().await.expect("it is there");
    for number in numbers {
        let view = lab.workload_view(*number).await;
        let workload = &view.workload;
        assert_eq!(
            workload.state,
            State::Completed,
            "workload {number}, cut at {at}: {workload:?}"
        );
        let mut completed: BTreeMap<u32, usize> = BTreeMap::new();
        for run in &view.runs {
            let RunState::Ended { outcome } = run.state else {
                panic!("cut at {at}: a run of what is over goes on: {run:?}");
            };
            *completed.entry(run.task).or_default() += usize::from(outcome == Outcome::Completed);
            for claim in &run.claims {
                let claim = claims::get(&mut reader, *claim)
                    .await
                    .expect("it is there")
                    .expect("claims are kept");
                assert_ne!(claim.standing, Standing::Holding, "cut at {at}: {run:?}");
                if claim.standing == Standing::Past {
                    let had = (claim.span.start(), Some(claim.span.end()));
                    assert_eq!(had, (run.began, run.ended_at), "cut at {at}");
                }
            }
        }
        assert!(
            completed.values().all(|times| *times == 1),
            "cut at {at}: {completed:?}"
        );
        assert_eq!(
            completed.len() as u64,
            workload.counts.completed,
            "cut at {at}"
        );
        let all = claims::all_of(&mut reader, Holder::Workload(workload.id))
            .await
            .expect("it is there");
        let known: usize = view.runs.iter().map(|run| run.claims.len()).sum();
        assert_eq!(
            all.len(),
            known,
            "cut at {at}: claims that belong to no run"
        );
    }
}

/// So many places, spread over the story; those beyond its length are met in other worlds, where all takes other times.
async fn killed_at(engine: Engine, points: usize) {
    let whole = Lab::build(engine).await.with_queue().await;
    let (lab, numbers, polls) = play(whole, usize::MAX >> 1).await;
    check(&lab, &numbers, usize::MAX).await;
    let sent_away = lab.workload_view(numbers[0]).await.runs.len();
    assert!(polls > 100, "{polls} polls are no story");
    assert_eq!(
        sent_away, 2,
        "the gang made the others go, and they began again"
    );
    for point in 0..points {
        let at = match points <= polls {
            true => 1 + point * (polls - 2) / points.max(2),
            false => 1 + point % polls,
        };
        let world = World::calm(1 + (point / polls) as u64);
        let lab = Lab::build(engine).await.with_queue().await.in_world(world);
        let (lab, numbers, _) = play(lab, at).await;
        check(&lab, &numbers, at).await;
    }
}

fn points(in_the_suite: usize) -> usize {
    let points = std::env::var("BERTH_CRASH_POINTS").ok();
    points
        .and_then(|points| points.parse().ok())
        .unwrap_or(in_the_suite)
}

#[tokio::test]
async fn the_end_is_the_same_wherever_the_controller_is_killed() {
    killed_at(Engine::Sqlite, points(24)).await;
}

#[tokio::test]
async fn the_same_on_postgresql() {
    killed_at(Engine::Postgres, points(8)).await;
}

#[tokio::test]
async fn a_backend_that_does_not_always_answer_and_loses_nodes_changes_nothing_but_the_time() {
    let world = World {
        unanswered: 0.3,
        node_loss: 0.5,
        ..World::calm(5)
    };
    let lab = Lab::build(Engine::Sqlite)
        .await
        .with_queue()
        .await
        .in_world(world);
    let (lab, numbers, _) = play(lab, usize::MAX >> 1).await;
    lab.run_until(12).await;
    check(&lab, &numbers, 0).await;
    let mut lost = 0;
    for number in numbers {
        let runs = lab.workload_view(number).await.runs;
        let node_failed = RunState::Ended {
            outcome: Outcome::NodeFailed,
        };
        lost += runs.iter().filter(|run| run.state == node_failed).count();
    }
    assert!(lost > 0, "no node was lost");
}
