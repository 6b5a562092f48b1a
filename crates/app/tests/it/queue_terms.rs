//! What can be asked of the queue beside room: another way, a time, seats; and what limits people: hours, budgets, grants.

use crate::support::told::set_status;
use crate::support::{Lab, name, on_both, site};
use berth_app::queue::{Act, NewGrant};
use berth_model::Status;
use berth_model::queue::{Hours, QuotaAmounts, QuotaSetting, Role};
use berth_model::workload::{Outcome, RunState, State};
use jiff::SignedDuration;
use serde_json::json;

on_both!(
    one_of_several_ways_is_taken,
    nothing_begins_before_it_may_and_what_is_too_late_is_given_up,
    seats_are_counted_with_reservations_of_them,
    what_is_urgent_by_an_admins_word_makes_others_go,
    a_budget_of_gpu_hours_is_never_exceeded,
    a_quota_can_be_larger_at_night,
    forecasts_are_kept_and_held_against_what_happened,
    work_inside_a_reservation_runs_there_and_ends_with_it,
    work_inside_a_reservation_waits_while_its_node_is_out_of_service,
    idle_time_is_lent_and_given_back,
    what_needed_something_that_failed_never_begins,
    one_person_at_their_limit_leaves_the_rest_to_others,
    what_is_out_of_service_is_not_given_out,
    what_waits_inside_a_reservation_that_is_given_up_is_given_up,
    what_runs_gets_more_time_unless_it_is_somebody_elses,
    what_ran_into_its_limit_is_over_though_time_passed_while_it_was_started,
);

async fn one_of_several_ways_is_taken(lab: Lab) {
    let lab = lab.with_queue().await;
    let taken = lab.submit(&lab.bob, lab.ask(3, 4, 50)).await;
    lab.round().await;
    assert_eq!(lab.state(taken).await, State::Running);
    // Eight GPUs on two nodes, or four on the one that is left, for twice as long.
    let mut ask = lab.ask(2, 4, 20);
    let mut other = ask["wishes"][0].clone();
    other["tasks"] = json!(1);
    other["limit"] = json!("PT2H");
    ask["wishes"]
        .as_array_mut()
        .expect("it is there")
        .push(other);
    let number = lab.submit(&lab.ada, ask).await;
    lab.round().await;
    let view = lab.workload_view(number).await;
    assert_eq!(view.workload.state, State::Running);
    assert_eq!((view.runs[0].wish, view.runs[0].pieces.len()), (1, 1));
    assert_eq!(view.runs[0].until, lab.at(2));
}

async fn nothing_begins_before_it_may_and_what_is_too_late_is_given_up(lab: Lab) {
    let lab = lab.with_queue().await;
    let mut ask = lab.ask(1, 1, 10);
    ask["not_before"] = json!(lab.at(3).to_string());
    let later = lab.submit(&lab.ada, ask).await;
    lab.submit(&lab.bob, lab.ask(4, 4, 55)).await;
    lab.round().await;
    let mut ask = lab.ask(1, 4, 10);
    ask["deadline"] = json!((lab.at(1) + SignedDuration::from_mins(30)).to_string());
    let deadline = lab.submit(&lab.ada, ask).await;
    lab.round().await;
    let reason = lab.workload_view(later).await.reason.expect("it waits");
    assert_eq!(reason.code, "not_before");
    lab.run_until(4).await;
    let view = lab.workload_view(later).await;
    assert_eq!(
        (view.workload.state, view.runs[0].began),
        (State::Completed, lab.at(3))
    );
    // Everything is taken until five minutes to nine, and an hour from then is after its deadline.
    let view = lab.workload_view(deadline).await;
    assert_eq!(view.workload.state, State::Cancelled);
    assert!(
        view.workload
            .reason
            .expect("it says why")
            .as_str()
            .contains("deadline")
    );
    assert!(view.runs.is_empty());
}

async fn seats_are_counted_with_reservations_of_them(lab: Lab) {
    let lab = lab.with_queue().await;
    lab.add("matlab", "server", None, Some(3)).await;
    let mut settings = lab
        .app
        .queue_settings(&lab.admin, &site())
        .await
        .expect("it is there")
        .settings;
    settings.roles.insert(name("server"), Role::Seats);
    lab.app
        .set_queue_settings(&lab.admin, &site(), None, settings)
        .await
        .expect("settings");
    lab.book(&lab.bob, &["matlab:2"], 0, 1).await;
    let mut ask = lab.ask(1, 1, 10);
    ask["seats"] = json!([{ "resource": "matlab", "amount": 2 }]);
    let two = lab.submit(&lab.ada, ask.clone()).await;
    ask["seats"] = json!([{ "resource": "matlab", "amount": 1 }]);
    let one = lab.submit(&lab.ada, ask).await;
    lab.round().await;
    assert_eq!(lab.state(one).await, State::Running);
    assert_eq!(lab.state(two).await, State::Waiting);
    lab.run_until(2).await;
    let view = lab.workload_view(two).await;
    assert_eq!(
        (view.workload.state, view.runs[0].began),
        (State::Completed, lab.at(1))
    );
}

async fn what_is_urgent_by_an_admins_word_makes_others_go(lab: Lab) {
    let lab = lab.with_queue().await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(lab.submit(&lab.bob, lab.ask(1, 4, 55)).await);
    }
    lab.round().await;
    let early = lab.at(0) + SignedDuration::from_mins(10);
    lab.wait_until_moment(early).await;
    let grant = NewGrant {
        project: None,
        person: Some(lab.ada.id().into()),
        until: lab.at(5),
        gpu_hours: 4,
        reason: "a thesis".parse().expect("it is there"),
    };
    assert!(
        lab.app
            .grant_urgency(&lab.ada, &site(), grant.clone())
            .await
            .is_err(),
        "she is no admin"
    );
    lab.app
        .grant_urgency(&lab.admin, &site(), grant)
        .await
        .expect("he is");
    let urgent = lab.submit(&lab.ada, lab.ask(1, 4, 30)).await;
    let beyond = lab.submit(&lab.ada, lab.ask(1, 4, 30)).await;
    lab.run_until(3).await;
    let view = lab.workload_view(urgent).await;
    assert_eq!(view.workload.state, State::Completed);
    assert!(
        view.runs[0].began <= early + SignedDuration::from_secs(35),
        "{}",
        view.runs[0].began
    );
    // Four GPUs for an hour were all of the budget.
    assert!(lab.workload_view(beyond).await.runs[0].began > early + SignedDuration::from_mins(25));
    let mut sent_away = 0;
    for number in held {
        let view = lab.workload_view(number).await;
        assert_eq!(view.workload.state, State::Completed);
        let preempted = RunState::Ended {
            outcome: Outcome::Preempted,
        };
        sent_away += view
            .runs
            .iter()
            .filter(|run| run.state == preempted)
            .count();
    }
    assert_eq!(sent_away, 1);
}

fn quota(amounts: QuotaAmounts, hours: Option<Hours>) -> QuotaSetting {
    QuotaSetting {
        project: Some(name("vision")),
        person: None,
        amounts,
        hours,
    }
}

async fn a_budget_of_gpu_hours_is_never_exceeded(lab: Lab) {
    let lab = lab.with_queue().await;
    let amounts = QuotaAmounts {
        gpu_hours_month: Some(3),
        ..QuotaAmounts::default()
    };
    lab.set_queue(vec![quota(amounts, None)]).await;
    let mut numbers = Vec::new();
    for _ in 0..5 {
        let made = lab
            .try_submit(&lab.ada, Some("vision"), lab.ask(1, 1, 60))
            .await
            .expect("it is taken");
        numbers.push(made.workload.number);
    }
    let free = lab
        .try_submit(&lab.ada, Some("genome"), lab.ask(1, 1, 10))
        .await
        .expect("it is taken");
    lab.run_until(6).await;
    assert_eq!(lab.state(free.workload.number).await, State::Completed);
    let mut hours = 0.0;
    let mut waiting = 0;
    for number in numbers {
        let view = lab.workload_view(number).await;
        waiting += usize::from(view.workload.state == State::Waiting);
        if let Some(reason) = view.reason {
            assert_eq!(reason.code, "budget");
        }
        let ended =
            |run: &berth_model::Run| run.began.duration_until(run.ended_at.expect("it is over"));
        hours += view
            .runs
            .iter()
            .map(|run| ended(run).as_secs_f64() / 3600.0)
            .sum::<f64>();
    }
    assert!(hours <= 3.0, "{hours}");
    assert_eq!(waiting, 2);
    // A server that comes later counts the same.
    let lab = lab.restarted().await;
    lab.round().await;
    assert_eq!(
        lab.app
            .shares(&lab.ada, &site())
            .await
            .expect("it is there")
            .shares
            .iter()
            .map(|one| one.gpus_milli)
            .sum::<u64>(),
        0
    );
    // The month ends, and with it the budget.
    lab.run_until(24 * 15).await;
    assert_eq!(
        lab.state(5).await,
        State::Failed,
        "an hour of work in an hour runs out of time"
    );
}

async fn a_quota_can_be_larger_at_night(lab: Lab) {
    let lab = lab.with_queue().await;
    let day = QuotaAmounts {
        gpus_milli: Some(2000),
        ..QuotaAmounts::default()
    };
    let night = QuotaAmounts {
        gpus_milli: Some(8000),
        ..QuotaAmounts::default()
    };
    let hours = Hours {
        days: Default::default(),
        from_minute: 20 * 60,
        to_minute: 6 * 60,
    };
    lab.set_queue(vec![quota(day, None), quota(night, Some(hours))])
        .await;
    for _ in 0..8 {
        lab.try_submit(&lab.ada, Some("vision"), lab.ask(1, 1, 50))
            .await
            .expect("it is taken");
    }
    lab.round().await;
    let held = async |lab: &Lab| {
        let shares = lab
            .app
            .shares(&lab.ada, &site())
            .await
            .expect("it is there");
        shares
            .shares
            .iter()
            .filter(|one| one.person.is_none())
            .map(|one| one.gpus_milli)
            .sum::<u64>()
    };
    assert_eq!(
        held(&lab).await,
        2000,
        "it is nine in the morning in Torino"
    );
    for _ in 0..30 {
        lab.try_submit(&lab.ada, Some("vision"), lab.ask(1, 1, 50))
            .await
            .expect("it is taken");
    }
    // Nine hours of two at a time are eighteen; at eight in the evening there are twenty left, and eight begin.
    lab.run_until(11).await;
    lab.wait_until_moment(lab.at(11) + SignedDuration::from_mins(5))
        .await;
    lab.round().await;
    assert_eq!(held(&lab).await, 8000);
}

async fn forecasts_are_kept_and_held_against_what_happened(lab: Lab) {
    let lab = lab.with_queue().await;
    for _ in 0..3 {
        lab.submit(&lab.bob, lab.ask(4, 4, 60)).await;
    }
    lab.round().await;
    let waiting = lab.workload_view(2).await.reason.expect("it waits");
    assert!(
        waiting.forecast.is_some_and(|at| at > lab.at(0)),
        "{waiting:?}"
    );
    lab.run_until(5).await;
    let mut reader = lab.app.store.read().await.expect("it is there");
    let place = lab
        .app
        .queue_settings(&lab.ada, &site())
        .await
        .expect("it is there")
        .place;
    let scored = berth_store::workloads::scored(&mut reader, place.id(), lab.at(0), 100)
        .await
        .expect("it is there");
    assert!(scored.len() >= 2, "{scored:?}");
    assert!(scored.iter().all(|one| one.began >= one.made_at));
}

/// A machine that this server does not reach is out of service in its plan, too.
async fn work_inside_a_reservation_waits_while_its_node_is_out_of_service(lab: Lab) {
    let lab = lab.with_queue().await;
    let booked = lab.book(&lab.ada, &["n0"], 1, 2).await;
    let mut ask = lab.ask(1, 2, 30);
    ask["inside"] = json!(booked.id);
    let inside = lab.submit(&lab.ada, ask).await;
    set_status(&lab, "n0", Status::Unavailable).await;
    lab.wait_until(1).await;
    lab.round().await;
    assert_eq!(lab.state(inside).await, State::Waiting);
    set_status(&lab, "n0", Status::Active).await;
    lab.wait_until_moment(lab.app.now()).await;
    lab.round().await;
    assert_eq!(lab.state(inside).await, State::Running);
}

async fn work_inside_a_reservation_runs_there_and_ends_with_it(lab: Lab) {
    let lab = lab.with_queue().await;
    let booked = lab.book(&lab.ada, &["n0"], 1, 2).await;
    // Everything else is taken, and stays so.
    let mut long = lab.ask(3, 4, 300);
    long["wishes"][0]["limit"] = json!("PT6H");
    lab.submit(&lab.bob, long).await;
    let mut ask = lab.ask(1, 2, 30);
    ask["inside"] = json!(booked.id);
    assert!(
        lab.try_submit(&lab.bob, None, ask.clone()).await.is_err(),
        "it is not bob's"
    );
    let inside = lab.submit(&lab.ada, ask.clone()).await;
    ask["program"]["command"] = json!(["sleep", "5h"]);
    let late = lab.submit(&lab.ada, ask).await;
    lab.round().await;
    assert_eq!(
        lab.workload_view(inside)
            .await
            .reason
            .map(|reason| reason.code),
        Some("inside")
    );
    lab.wait_until(1).await;
    lab.run_until(3).await;
    let view = lab.workload_view(inside).await;
    assert_eq!(
        (view.workload.state, view.runs[0].began),
        (State::Completed, lab.at(1))
    );
    assert_eq!(view.runs[0].inside, Some(booked.id));
    let view = lab.workload_view(late).await;
    assert_eq!(
        view.runs[0].state,
        RunState::Ended {
            outcome: Outcome::TimedOut
        }
    );
    assert!(
        view.runs[0].ended_at.expect("it ended") <= lab.at(2),
        "it ends with its reservation"
    );
}

async fn idle_time_is_lent_and_given_back(lab: Lab) {
    let lab = lab.with_queue().await;
    let mut settings = lab
        .app
        .queue_settings(&lab.admin, &site())
        .await
        .expect("it is there")
        .settings;
    settings.lends = true;
    lab.app
        .set_queue_settings(&lab.admin, &site(), None, settings)
        .await
        .expect("settings");
    let booked = lab.book(&lab.ada, &["n0", "n1", "n2", "n3"], 0, 4).await;
    lab.wait_until(0).await;
    let mut soft = lab.ask(1, 4, 120);
    soft["class"] = json!("opportunistic");
    soft["wishes"][0]["limit"] = json!("PT3H");
    let borrower = lab.submit(&lab.bob, soft).await;
    let firm = lab.submit(&lab.bob, lab.ask(1, 1, 10)).await;
    lab.round().await;
    assert_eq!(lab.state(borrower).await, State::Running);
    assert_eq!(
        lab.workload_view(borrower).await.runs[0].inside,
        Some(booked.id)
    );
    assert_eq!(
        lab.state(firm).await,
        State::Waiting,
        "only what can be sent away is lent to"
    );
    // The owner wants all of it back.
    let asked = lab.at(0) + SignedDuration::from_mins(20);
    lab.wait_until_moment(asked).await;
    let mut ask = lab.ask(4, 4, 30);
    ask["inside"] = json!(booked.id);
    let own = lab.submit(&lab.ada, ask).await;
    lab.run_until(8).await;
    let view = lab.workload_view(own).await;
    assert_eq!(view.workload.state, State::Completed);
    assert!(
        view.runs[0].began <= asked + SignedDuration::from_secs(35),
        "{}",
        view.runs[0].began
    );
    let view = lab.workload_view(borrower).await;
    assert_eq!(view.workload.state, State::Completed);
    assert!(view.runs.len() > 1, "it was sent away, and came back");
}

async fn what_needed_something_that_failed_never_begins(lab: Lab) {
    let lab = lab.with_queue().await;
    let fails = lab.submit(&lab.ada, lab.ask(1, 1, 300)).await;
    let mut slow = lab.ask(1, 1, 100);
    slow["wishes"][0]["limit"] = json!("PT2H");
    let completes = lab.submit(&lab.ada, slow).await;
    let id = async |number: u64| lab.workload_view(number).await.workload.id;
    let mut ask = lab.ask(1, 1, 10);
    ask["after"] = json!([{ "workload": id(fails).await }, { "workload": id(completes).await }]);
    let never = lab.submit(&lab.ada, ask).await;
    let mut ask = lab.ask(1, 1, 10);
    ask["after"] = json!([{ "workload": id(completes).await, "only_if": "begun" }]);
    let soon = lab.submit(&lab.ada, ask).await;
    lab.run_until(4).await;
    assert_eq!(lab.state(fails).await, State::Failed);
    assert_eq!(lab.state(completes).await, State::Completed);
    let view = lab.workload_view(never).await;
    assert_eq!((view.workload.state, view.runs.len()), (State::Waiting, 0));
    assert_eq!(
        view.reason.map(|reason| reason.code),
        Some("dependency_never")
    );
    let view = lab.workload_view(soon).await;
    assert_eq!(view.runs[0].began, lab.at(0), "it only had to have begun");
}

async fn one_person_at_their_limit_leaves_the_rest_to_others(lab: Lab) {
    let lab = lab.with_queue().await;
    let quota = QuotaSetting {
        project: None,
        person: Some(lab.ada.person.login.clone()),
        amounts: QuotaAmounts {
            gpus_milli: Some(4000),
            ..QuotaAmounts::default()
        },
        hours: None,
    };
    lab.set_queue(vec![quota]).await;
    for project in ["vision", "genome"] {
        for _ in 0..10 {
            lab.try_submit(&lab.ada, Some(project), lab.ask(1, 1, 50))
                .await
                .expect("it is taken");
        }
    }
    let others = lab.submit(&lab.bob, lab.ask(3, 4, 50)).await;
    lab.round().await;
    assert_eq!(lab.state(others).await, State::Running);
    let shares = lab
        .app
        .shares(&lab.ada, &site())
        .await
        .expect("they are there");
    let hers = shares
        .shares
        .iter()
        .filter(|one| one.person == Some(lab.ada.id()));
    assert_eq!(
        hers.map(|one| one.gpus_milli).sum::<u64>(),
        4000,
        "over both her projects"
    );
}

async fn what_is_out_of_service_is_not_given_out(lab: Lab) {
    let lab = lab.with_queue().await;
    let gpu = berth_model::Reference::Name(name("n1.gpu2"));
    let status = berth_model::Status::Unavailable;
    lab.app
        .set_status(&lab.admin, &site(), &gpu, None, status, None)
        .await
        .expect("an admin may");
    let all = lab.submit(&lab.ada, lab.ask(4, 4, 10)).await;
    let most = lab.submit(&lab.ada, lab.ask(3, 4, 10)).await;
    lab.round().await;
    assert_eq!(
        [lab.state(all).await, lab.state(most).await],
        [State::Waiting, State::Running]
    );
}

async fn what_waits_inside_a_reservation_that_is_given_up_is_given_up(lab: Lab) {
    let lab = lab.with_queue().await;
    let booked = lab.book(&lab.ada, &["n0"], 1, 4).await;
    let mut ask = lab.ask(1, 4, 50);
    ask["inside"] = json!(booked.id);
    let runs = lab.submit(&lab.ada, ask.clone()).await;
    let waits = lab.submit(&lab.ada, ask).await;
    lab.wait_until(1).await;
    lab.round().await;
    assert_eq!(
        [lab.state(runs).await, lab.state(waits).await],
        [State::Running, State::Waiting]
    );
    lab.app
        .cancel_reservation(&lab.ada, &site(), booked.id, None, None)
        .await
        .expect("it is hers");
    lab.run_until(3).await;
    let view = lab.workload_view(waits).await;
    assert_eq!(view.workload.state, State::Cancelled);
    assert!(view.workload.reason.is_some());
    let run = &lab.workload_view(runs).await.runs[0];
    assert!(run.ended_at.expect("it ended") <= lab.at(1) + SignedDuration::from_secs(31));
}

async fn what_runs_gets_more_time_unless_it_is_somebody_elses(lab: Lab) {
    let lab = lab.with_queue().await;
    let longer = |hours| Act::Extend {
        by: SignedDuration::from_hours(hours),
    };
    // It would take ninety minutes, and asked for an hour on all that there is.
    let number = lab.submit(&lab.ada, lab.ask(4, 4, 90)).await;
    let waits = lab.act(&lab.ada, number, longer(1)).await;
    assert!(waits.is_err(), "nothing of it runs yet");
    lab.round().await;
    assert!(
        lab.act(&lab.bob, number, longer(1)).await.is_err(),
        "it is hers"
    );
    let view = lab.act(&lab.ada, number, longer(1)).await.expect("it may");
    assert_eq!(view.runs[0].until, lab.at(2));
    let too_long = lab.act(&lab.ada, number, longer(1000)).await;
    assert!(too_long.is_err(), "nothing may run that long");
    lab.book(&lab.bob, &["n0"], 2, 3).await;
    let taken = lab.act(&lab.ada, number, longer(1)).await;
    assert!(
        taken.is_err(),
        "one of its nodes is somebody else's by then"
    );
    assert_eq!(lab.workload_view(number).await.runs[0].until, lab.at(2));
    lab.run_until(2).await;
    let view = lab.workload_view(number).await;
    assert_eq!(view.workload.state, State::Completed);
    assert_eq!(
        view.runs[0].ended_at,
        Some(lab.at(1) + SignedDuration::from_mins(30)),
        "it was not cut off after an hour"
    );
}

async fn what_ran_into_its_limit_is_over_though_time_passed_while_it_was_started(lab: Lab) {
    let lab = lab.with_queue().await;
    lab.let_time_pass(SignedDuration::from_millis(7));
    let number = lab.submit(&lab.ada, lab.ask(2, 1, 90)).await;
    lab.run_until(3).await;
    let view = lab.workload_view(number).await;
    let outcomes: Vec<RunState> = view.runs.iter().map(|run| run.state).collect();
    let timed_out = RunState::Ended {
        outcome: Outcome::TimedOut,
    };
    assert_eq!(outcomes, [timed_out], "it was not sent away to begin again");
    assert_eq!(view.workload.state, State::Failed);
}
