//! The queue, end to end but for the network: submitted, planned, claimed, run by the simulated backend, given back.

use std::collections::HashSet;

use crate::support::{Lab, name, on_both, site};
use berth_app::queue::Act;
use berth_model::attribute::AttributeValue;
use berth_model::queue::{QuotaAmounts, QuotaSetting};
use berth_model::workload::{Because, Outcome, RunState, State};
use berth_model::{Reference, Standing};
use berth_store::claims;
use jiff::SignedDuration;
use serde_json::json;

on_both!(
    what_is_submitted_runs_with_claims_and_gives_them_back,
    what_does_not_fit_waits_with_a_reason_and_begins_when_there_is_room,
    a_gang_begins_whole,
    tasks_that_stand_apart_have_a_node_each,
    an_array_is_one_row_and_every_task_runs_once,
    what_is_opportunistic_makes_room_and_comes_back,
    a_reservation_is_a_wall,
    a_booking_cuts_what_is_opportunistic_short,
    what_is_held_is_passed_over_and_what_is_cancelled_is_told,
    single_tasks_are_cancelled_and_the_rest_goes_on,
    what_is_cancelled_while_it_makes_room_does_not_come_back,
    one_waits_for_another,
    a_project_never_holds_more_than_its_quota,
    a_server_that_takes_over_goes_on_where_the_other_stopped,
    what_runs_out_of_time_is_told_before_its_end,
    slices_and_shares_of_gpus_are_claimed_and_walls_stand_before_each_gpu,
);

async fn what_is_submitted_runs_with_claims_and_gives_them_back(lab: Lab) {
    let lab = lab.with_queue().await;
    let number = lab.submit(&lab.ada, lab.ask(1, 2, 10)).await;
    lab.round().await;
    let view = lab.workload_view(number).await;
    assert_eq!(view.workload.state, State::Running);
    let run = &view.runs[0];
    assert_eq!(run.state, RunState::Running);
    assert_eq!(run.pieces[0].gpus.len(), 2);
    assert_eq!(run.claims.len(), 4, "two GPUs, cores and memory");
    lab.run_until(1).await;
    let view = lab.workload_view(number).await;
    assert_eq!(view.workload.state, State::Completed);
    assert_eq!(
        view.runs[0].state,
        RunState::Ended {
            outcome: Outcome::Completed
        }
    );
    assert_eq!(
        view.runs[0].ended_at,
        Some(lab.at(0) + jiff::SignedDuration::from_mins(10))
    );
    let mut reader = lab.app.store.read().await.expect("it is there");
    for claim in &view.runs[0].claims {
        let claim = claims::get(&mut reader, *claim)
            .await
            .expect("it is there")
            .expect("it is there");
        assert_eq!(claim.standing, Standing::Past);
        assert_eq!(Some(claim.span.end()), view.runs[0].ended_at);
    }
}

async fn what_does_not_fit_waits_with_a_reason_and_begins_when_there_is_room(lab: Lab) {
    let lab = lab.with_queue().await;
    let mut numbers = Vec::new();
    for _ in 0..5 {
        numbers.push(lab.submit(&lab.ada, lab.ask(1, 4, 20)).await);
    }
    lab.round().await;
    let waiting = lab.workload_view(numbers[4]).await;
    assert_eq!(waiting.workload.state, State::Waiting);
    assert_eq!(waiting.reason.map(|reason| reason.code), Some("no_room"));
    let too_much = lab.submit(&lab.ada, lab.ask(1, 5, 20)).await;
    lab.run_until(1).await;
    for number in numbers {
        assert_eq!(lab.state(number).await, State::Completed);
    }
    assert_eq!(lab.state(too_much).await, State::Waiting);
}

async fn tasks_that_stand_apart_have_a_node_each(lab: Lab) {
    let lab = lab.with_queue().await;
    let mut ask = lab.ask(3, 1, 10);
    ask["wishes"][0]["apart"] = json!(true);
    let apart = lab.submit(&lab.ada, ask.clone()).await;
    ask["wishes"][0]["tasks"] = json!(5);
    let too_many = lab.submit(&lab.ada, ask).await;
    lab.round().await;
    let run = &lab.workload_view(apart).await.runs[0];
    let nodes: HashSet<_> = run.pieces.iter().map(|piece| piece.node).collect();
    assert_eq!(nodes.len(), 3);
    let reason = lab.workload_view(too_many).await.reason.expect("it waits");
    assert_eq!(reason.code, "never", "there are four nodes");
}

async fn a_gang_begins_whole(lab: Lab) {
    let lab = lab.with_queue().await;
    let small = lab.submit(&lab.bob, lab.ask(1, 1, 30)).await;
    lab.round().await;
    let gang = lab.submit(&lab.ada, lab.ask(4, 4, 10)).await;
    lab.round().await;
    assert_eq!(
        lab.state(gang).await,
        State::Waiting,
        "one of the sixteen GPUs is taken"
    );
    lab.run_until(1).await;
    assert_eq!(lab.state(small).await, State::Completed);
    let view = lab.workload_view(gang).await;
    assert_eq!(view.workload.state, State::Completed);
    assert_eq!(view.runs.len(), 1);
    assert_eq!(view.runs[0].pieces.len(), 4);
    assert_eq!(
        view.runs[0].began,
        lab.at(0) + jiff::SignedDuration::from_mins(30)
    );
}

async fn an_array_is_one_row_and_every_task_runs_once(lab: Lab) {
    let lab = lab.with_queue().await;
    let mut ask = lab.ask(1, 1, 5);
    ask["array"] = json!({ "tasks": "0-39", "at_once": 8 });
    let number = lab.submit(&lab.ada, ask).await;
    lab.round().await;
    let view = lab.workload_view(number).await;
    assert_eq!(
        view.workload.counts.running, 8,
        "no more at once than it asked for"
    );
    assert_eq!(view.workload.waiting.len(), 32);
    lab.run_until(2).await;
    let view = lab.workload_view(number).await;
    assert_eq!(view.workload.state, State::Completed);
    assert_eq!(view.workload.counts.completed, 40);
    let mut tasks: Vec<u32> = view.runs.iter().map(|run| run.task).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, (0..40).collect::<Vec<_>>());
}

async fn what_is_opportunistic_makes_room_and_comes_back(lab: Lab) {
    let lab = lab.with_queue().await;
    let mut soft = Vec::new();
    for _ in 0..4 {
        let mut ask = lab.ask(1, 4, 30);
        ask["class"] = json!("opportunistic");
        soft.push(lab.submit(&lab.bob, ask).await);
    }
    lab.round().await;
    lab.wait_until_moment(lab.at(0) + jiff::SignedDuration::from_mins(6))
        .await;
    let firm = lab.submit(&lab.ada, lab.ask(1, 4, 10)).await;
    lab.round().await;
    let told = lab.workload_view(firm).await.reason.expect("it waits");
    assert_eq!(told.code, "making_room");
    lab.run_until(2).await;
    assert_eq!(lab.state(firm).await, State::Completed);
    let began = lab.workload_view(firm).await.runs[0].began;
    let asked = lab.at(0) + jiff::SignedDuration::from_mins(6);
    assert!(
        began <= asked + jiff::SignedDuration::from_secs(35),
        "{began}"
    );
    let mut again = 0;
    for number in soft {
        let view = lab.workload_view(number).await;
        assert_eq!(view.workload.state, State::Completed);
        again += view.runs.len() - 1;
    }
    assert_eq!(again, 1, "one of them began twice");
}

async fn a_reservation_is_a_wall(lab: Lab) {
    let lab = lab.with_queue().await;
    lab.book(&lab.bob, &["n0", "n1", "n2", "n3"], 1, 2).await;
    lab.wait_until_moment(lab.at(0) + jiff::SignedDuration::from_mins(30))
        .await;
    let number = lab.submit(&lab.ada, lab.ask(1, 1, 10)).await;
    lab.round().await;
    assert_eq!(
        lab.state(number).await,
        State::Waiting,
        "its limit would reach into the reservation"
    );
    let mut short = lab.ask(1, 1, 10);
    short["wishes"][0]["limit"] = json!("PT20M");
    let short = lab.submit(&lab.ada, short).await;
    lab.round().await;
    assert_eq!(lab.state(short).await, State::Running);
    lab.run_until(4).await;
    let view = lab.workload_view(number).await;
    assert_eq!(view.workload.state, State::Completed);
    assert_eq!(view.runs[0].began, lab.at(2));
}

async fn a_booking_cuts_what_is_opportunistic_short(lab: Lab) {
    let lab = lab.with_queue().await;
    let mut ask = lab.ask(4, 4, 50);
    ask["class"] = json!("opportunistic");
    let number = lab.submit(&lab.ada, ask).await;
    lab.round().await;
    assert_eq!(lab.state(number).await, State::Running);
    let half = lab.at(0) + jiff::SignedDuration::from_mins(30);
    let mut wish = lab.wish(&["n2"], 0, 1);
    wish.span = berth_model::Span::new(half, lab.at(1)).expect("it is there");
    lab.app
        .book(&lab.bob, &site(), &wish)
        .await
        .expect("what is softer gives way");
    lab.run_until(3).await;
    let view = lab.workload_view(number).await;
    assert_eq!(view.workload.state, State::Completed);
    let first = view.runs.last().expect("it began");
    assert_eq!(
        first.state,
        RunState::Ended {
            outcome: Outcome::Preempted
        }
    );
    assert!(first.ended_at.expect("it ended") <= half);
    assert!(
        view.runs[0].began >= lab.at(1),
        "a gang of all nodes begins again when they are all free"
    );
}

async fn what_is_held_is_passed_over_and_what_is_cancelled_is_told(lab: Lab) {
    let lab = lab.with_queue().await;
    let number = lab.submit(&lab.ada, lab.ask(1, 1, 40)).await;
    lab.act(&lab.ada, number, Act::Hold)
        .await
        .expect("it waits");
    lab.round().await;
    let view = lab.workload_view(number).await;
    assert_eq!(
        (view.workload.state, view.reason.map(|reason| reason.code)),
        (State::Held, Some("held"))
    );
    assert!(
        lab.act(&lab.bob, number, Act::Release).await.is_err(),
        "it is not bob's"
    );
    lab.act(&lab.ada, number, Act::Release)
        .await
        .expect("it is held");
    lab.round().await;
    assert_eq!(lab.state(number).await, State::Running);
    lab.act(
        &lab.ada,
        number,
        Act::Cancel {
            tasks: None,
            reason: None,
        },
    )
    .await
    .expect("it runs");
    assert_eq!(lab.state(number).await, State::Cancelled);
    lab.run_until(1).await;
    let run = &lab.workload_view(number).await.runs[0];
    assert_eq!(
        run.state,
        RunState::Ended {
            outcome: Outcome::Cancelled
        }
    );
    assert!(run.ended_at.expect("it ended") <= lab.at(0) + jiff::SignedDuration::from_secs(30));
}

fn cancel(tasks: &str) -> Act {
    Act::Cancel {
        tasks: Some(tasks.parse().expect("tasks")),
        reason: None,
    }
}

async fn single_tasks_are_cancelled_and_the_rest_goes_on(lab: Lab) {
    let lab = lab.with_queue().await;
    let mut ask = lab.ask(1, 1, 40);
    ask["array"] = json!({ "tasks": "0-9", "at_once": 4 });
    let number = lab.submit(&lab.ada, ask).await;
    let mut needs_all = lab.ask(1, 1, 5);
    let id = lab.workload_view(number).await.workload.id;
    needs_all["after"] = json!([{ "workload": id }]);
    let needs_all = lab.submit(&lab.ada, needs_all).await;
    lab.round().await;
    for (who, tasks) in [(&lab.bob, "0"), (&lab.ada, "77")] {
        assert!(lab.act(who, number, cancel(tasks)).await.is_err());
    }
    let view = lab.act(&lab.ada, number, cancel("0,5-7")).await;
    let workload = view.expect("some wait and one runs").workload;
    assert_eq!(
        (workload.state, workload.waiting.to_string().as_str()),
        (State::Running, "4,8-9")
    );
    lab.run_until(3).await;
    let view = lab.workload_view(number).await;
    assert_eq!(
        (
            view.workload.state,
            view.workload.counts.completed,
            view.workload.cancelled()
        ),
        (State::Completed, 6, 4)
    );
    let first: Vec<_> = view.runs.iter().filter(|run| run.task == 0).collect();
    assert_eq!(first.len(), 1, "what was cancelled does not begin again");
    assert_eq!(
        first[0].state,
        RunState::Ended {
            outcome: Outcome::Cancelled
        }
    );
    assert!(first[0].ended_at.expect("it ended") <= lab.at(0) + SignedDuration::from_secs(30));
    assert!(!view.runs.iter().any(|run| (5..=7).contains(&run.task)));
    let reason = lab.workload_view(needs_all).await.reason.expect("it waits");
    assert_eq!(reason.code, "dependency_never", "not all were completed");
}

async fn what_is_cancelled_while_it_makes_room_does_not_come_back(lab: Lab) {
    let lab = lab.with_queue().await;
    let mut soft = lab.ask(4, 4, 50);
    soft["class"] = json!("opportunistic");
    soft["array"] = json!({ "tasks": "0-1" });
    let soft = lab.submit(&lab.ada, soft).await;
    lab.round().await;
    lab.wait_until_moment(lab.at(0) + SignedDuration::from_mins(10))
        .await;
    let firm = lab.submit(&lab.bob, lab.ask(1, 4, 20)).await;
    lab.round().await;
    let run = &lab.workload_view(soft).await.runs[0];
    let is_making_room = matches!(
        run.state,
        RunState::Stopping {
            because: Because::Preempted,
            ..
        }
    );
    assert!(is_making_room, "{:?}", run.state);
    lab.act(&lab.ada, soft, cancel("0"))
        .await
        .expect("it still runs");
    lab.run_until(3).await;
    let view = lab.workload_view(soft).await;
    let tries: Vec<u32> = view.runs.iter().map(|run| run.task).collect();
    assert_eq!(
        tries,
        [1, 0],
        "the other task ran, and the cancelled one not again"
    );
    assert_eq!(
        (view.workload.state, view.workload.cancelled()),
        (State::Completed, 1)
    );
    assert_eq!(lab.state(firm).await, State::Completed);
}

async fn one_waits_for_another(lab: Lab) {
    let lab = lab.with_queue().await;
    let first = lab.submit(&lab.ada, lab.ask(1, 1, 10)).await;
    let id = lab.workload_view(first).await.workload.id;
    let mut ask = lab.ask(1, 1, 10);
    ask["after"] = json!([{ "workload": id, "only_if": "completed" }]);
    let second = lab.submit(&lab.ada, ask.clone()).await;
    ask["after"] = json!([{ "workload": id, "only_if": "failed" }]);
    let never = lab.submit(&lab.ada, ask).await;
    lab.round().await;
    let reason = lab.workload_view(second).await.reason.expect("it waits");
    assert_eq!(reason.code, "dependency");
    lab.run_until(1).await;
    let view = lab.workload_view(second).await;
    assert_eq!(view.workload.state, State::Completed);
    assert_eq!(
        view.runs[0].began,
        lab.at(0) + jiff::SignedDuration::from_mins(10)
    );
    let reason = lab
        .workload_view(never)
        .await
        .reason
        .expect("it waits for ever");
    assert_eq!(reason.code, "dependency_never");
}

async fn a_project_never_holds_more_than_its_quota(lab: Lab) {
    let lab = lab.with_queue().await;
    let quota = |gpus| QuotaSetting {
        project: Some(name("vision")),
        person: None,
        amounts: QuotaAmounts {
            gpus_milli: Some(gpus),
            ..QuotaAmounts::default()
        },
        hours: None,
    };
    lab.set_queue(vec![quota(3000)]).await;
    for _ in 0..6 {
        lab.try_submit(&lab.ada, Some("vision"), lab.ask(1, 1, 10))
            .await
            .expect("it is taken");
    }
    lab.try_submit(&lab.bob, Some("genome"), lab.ask(1, 4, 10))
        .await
        .expect("it is taken");
    lab.round().await;
    let shares = lab
        .app
        .shares(&lab.ada, &site())
        .await
        .expect("they are there");
    let of = |project: &str| {
        let found = shares.shares.iter().find(|one| {
            let named = one
                .project
                .and_then(|id| shares.directory.projects.get(&id));
            one.person.is_none() && named.is_some_and(|known| known.name.as_str() == project)
        });
        found.expect("it asks for something").gpus_milli
    };
    assert_eq!((of("vision"), of("genome")), (3000, 4000));
    let waiting = lab.workload_view(6).await.reason.expect("it waits");
    assert_eq!(waiting.code, "quota");
    lab.run_until(1).await;
    assert_eq!(lab.state(6).await, State::Completed);
}

async fn a_server_that_takes_over_goes_on_where_the_other_stopped(lab: Lab) {
    let lab = lab.with_queue().await;
    let running = lab.submit(&lab.ada, lab.ask(2, 4, 30)).await;
    let waiting = lab.submit(&lab.ada, lab.ask(3, 4, 10)).await;
    lab.round().await;
    assert_eq!(lab.state(waiting).await, State::Waiting);
    let lab = lab.restarted().await;
    lab.round().await;
    assert_eq!(lab.state(running).await, State::Running);
    assert_eq!(
        lab.state(waiting).await,
        State::Waiting,
        "what runs still counts"
    );
    lab.run_until(1).await;
    assert_eq!(lab.state(running).await, State::Completed);
    assert_eq!(lab.state(waiting).await, State::Completed);
    assert_eq!(lab.workload_view(running).await.runs.len(), 1);
}

async fn what_runs_out_of_time_is_told_before_its_end(lab: Lab) {
    let lab = lab.with_queue().await;
    let number = lab.submit(&lab.ada, lab.ask(1, 1, 300)).await;
    lab.run_until(2).await;
    let view = lab.workload_view(number).await;
    assert_eq!(view.workload.state, State::Failed);
    assert_eq!(
        view.runs[0].state,
        RunState::Ended {
            outcome: Outcome::TimedOut
        }
    );
    assert!(view.runs[0].ended_at.expect("it ended") <= lab.at(1));
    let reference = Reference::Name(number);
    assert!(
        lab.app
            .get_workload(&lab.outsider, &site(), &reference)
            .await
            .is_err()
    );
}

async fn slices_and_shares_of_gpus_are_claimed_and_walls_stand_before_each_gpu(lab: Lab) {
    let lab = lab.with_queue().await;
    lab.add("n3.shared", "gpu", Some("n3"), Some(1000)).await;
    for slice in ["n2.gpu0.s0", "n2.gpu0.s1"] {
        let new = berth_app::inventory::NewResource {
            name: name(slice),
            kind: Reference::Name(name("slice")),
            parent: Some(Reference::Name(name("n2.gpu0"))),
            title: None,
            attributes: [(
                name("mig_profile"),
                AttributeValue::Text("1g.10gb".to_owned()),
            )]
            .into(),
            facts: Default::default(),
            capacity: None,
        };
        lab.app
            .create_resource(&lab.admin, &site(), new)
            .await
            .expect("a slice");
    }
    let with = |gpus: serde_json::Value| {
        let mut ask = lab.ask(1, 1, 30);
        ask["wishes"][0]["task"]["gpus"] = gpus;
        ask
    };
    let mut slices = Vec::new();
    for _ in 0..3 {
        slices.push(
            lab.submit(&lab.ada, with(json!({ "slice": "1g.10gb" })))
                .await,
        );
    }
    let half = lab.submit(&lab.ada, with(json!({ "share": 500 }))).await;
    let most = lab.submit(&lab.ada, with(json!({ "share": 600 }))).await;
    let unknown = lab
        .submit(&lab.ada, with(json!({ "slice": "7g.80gb" })))
        .await;
    lab.round().await;
    let states = [
        lab.state(slices[0]).await,
        lab.state(slices[1]).await,
        lab.state(slices[2]).await,
    ];
    assert_eq!(states, [State::Running, State::Running, State::Waiting]);
    assert_eq!(
        [lab.state(half).await, lab.state(most).await],
        [State::Running, State::Waiting]
    );
    let reason = lab.workload_view(unknown).await.reason.expect("it waits");
    assert_eq!(reason.code, "no_such_gpu");
    // The GPU that is cut cannot be booked whole while a slice of it is held, and its neighbours can.
    assert!(lab.try_book(&lab.bob, &["n2.gpu0"], 0, 1).await.is_err());
    lab.book(&lab.bob, &["n2.gpu1", "n2.gpu2", "n2.gpu3"], 0, 1)
        .await;
    let three = lab.submit(&lab.ada, lab.ask(1, 4, 10)).await;
    lab.round().await;
    let view = lab.workload_view(three).await;
    assert_eq!(
        view.workload.state,
        State::Running,
        "other nodes have four left"
    );
    lab.run_until(2).await;
    assert_eq!(lab.state(slices[2]).await, State::Completed);
    assert_eq!(lab.state(most).await, State::Completed);
}
