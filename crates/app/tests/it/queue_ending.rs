//! What becomes of work when its reservation ends, and of the reservation's idle time, by its owner's choice.

use crate::support::queue::cut;
use crate::support::{Lab, on_both, site};
use berth_app::reservations::ReservationChange;
use berth_model::queue::{QuotaAmounts, QuotaSetting};
use berth_model::reservation::{AtEnd, Reservation};
use berth_model::workload::{Because, Outcome, Run, RunState, State};
use berth_model::{Holder, Standing};
use berth_store::{Engine, claims};
use jiff::SignedDuration;
use serde_json::{Value, json};

on_both!(
    what_is_kept_runs_on_until_the_next_claim,
    what_is_kept_ends_at_its_own_limit,
    what_is_kept_gives_way_to_a_later_booking,
    what_is_kept_makes_room_for_firmer_work,
    nothing_is_kept_where_another_reservation_follows_at_once,
    what_is_kept_counts_against_quotas_from_then_on,
    nothing_is_kept_beyond_a_quota,
    a_server_that_was_away_at_the_end_keeps_it_all_the_same,
    what_has_to_write_down_how_far_it_came_is_told_in_time_and_goes_on_outside,
    the_owner_can_change_their_mind_while_it_runs,
    the_owner_lends_though_the_site_does_not,
    the_owner_does_not_lend_though_the_site_does,
);

/// Ada's: a node from one to two o'clock.
async fn booked(lab: &Lab, at_end: AtEnd, lends: Option<bool>) -> Reservation {
    let mut wish = lab.wish(&["n0"], 1, 2);
    (wish.at_end, wish.lends) = (at_end, lends);
    let made = lab.app.book(&lab.ada, &site(), &wish).await;
    made.expect("it is free").value.reservation
}

/// Two GPUs for six hours at most, inside a reservation.
fn inside(lab: &Lab, booked: &Reservation, minutes: u32) -> Value {
    let mut ask = lab.ask(1, 2, minutes);
    ask["inside"] = json!(booked.id);
    ask["wishes"][0]["limit"] = json!("PT6H");
    ask
}

/// The newest run of a workload.
async fn run(lab: &Lab, number: u64) -> Run {
    lab.workload_view(number).await.runs.remove(0)
}

fn ended(outcome: Outcome) -> RunState {
    RunState::Ended { outcome }
}

async fn change(lab: &Lab, of: &Reservation, change: ReservationChange) {
    lab.app
        .change_reservation(&lab.ada, &site(), of.id, None, &change)
        .await
        .expect("it is hers");
}

async fn what_is_kept_runs_on_until_the_next_claim(lab: Lab) {
    let lab = lab.with_queue().await;
    let booked = booked(&lab, AtEnd::Keep, None).await;
    lab.book(&lab.bob, &["n0"], 4, 5).await;
    let number = lab.submit(&lab.ada, inside(&lab, &booked, 300)).await;
    lab.wait_until(1).await;
    lab.run_until(3).await;
    let kept = run(&lab, number).await;
    assert_eq!(kept.state, RunState::Running);
    assert_eq!(kept.inside, Some(booked.id));
    assert_eq!((kept.kept_from, kept.until), (Some(lab.at(2)), lab.at(4)));
    // A server that comes later knows it, too.
    let lab = lab.restarted().await;
    lab.run_until(6).await;
    let view = lab.workload_view(number).await;
    assert_eq!(view.runs.len(), 1);
    assert_eq!(view.runs[0].state, ended(Outcome::Preempted));
    let gone = view.runs[0].ended_at.expect("it ended");
    assert!(lab.at(4) - SignedDuration::from_secs(30) <= gone && gone <= lab.at(4));
    assert_eq!(view.workload.state, State::Cancelled);
    assert!(
        view.workload.reason.is_some(),
        "its reservation is over, and it says so"
    );
    let mut reader = lab.app.store.read().await.expect("it is there");
    let had = claims::all_of(&mut reader, Holder::Workload(view.workload.id)).await;
    let had = had.expect("they are there");
    assert!(had.iter().all(|claim| claim.standing == Standing::Past));
    let (within, after): (Vec<_>, Vec<_>) = had.iter().partition(|claim| claim.container.is_some());
    assert!(within.iter().all(|claim| claim.span == lab.span(1, 2)));
    let of_its_own = berth_model::Span::new(lab.at(2), gone).expect("a span");
    assert!(after.iter().all(|claim| claim.span == of_its_own));
    assert_eq!(within.len(), after.len());
}

async fn what_is_kept_ends_at_its_own_limit(lab: Lab) {
    let lab = lab.with_queue().await;
    let booked = booked(&lab, AtEnd::Keep, None).await;
    let mut ask = inside(&lab, &booked, 300);
    ask["wishes"][0]["limit"] = json!("PT2H");
    let long = lab.submit(&lab.ada, ask).await;
    let short = lab.submit(&lab.ada, inside(&lab, &booked, 90)).await;
    lab.wait_until(1).await;
    lab.run_until(6).await;
    let long = run(&lab, long).await;
    assert_eq!(long.state, ended(Outcome::TimedOut));
    assert_eq!(long.until, lab.at(3));
    let half_past_two = lab.at(2) + SignedDuration::from_mins(30);
    let short = run(&lab, short).await;
    assert_eq!(short.state, ended(Outcome::Completed));
    assert_eq!(short.ended_at, Some(half_past_two));
}

async fn what_is_kept_gives_way_to_a_later_booking(lab: Lab) {
    let lab = lab.with_queue().await;
    let booked = booked(&lab, AtEnd::Keep, None).await;
    let number = lab.submit(&lab.ada, inside(&lab, &booked, 300)).await;
    lab.wait_until(1).await;
    lab.run_until(2).await;
    assert_eq!(run(&lab, number).await.until, lab.at(7));
    lab.book(&lab.bob, &["n0"], 3, 4).await;
    lab.run_until(5).await;
    let kept = run(&lab, number).await;
    assert_eq!(kept.state, ended(Outcome::Preempted));
    let gone = kept.ended_at.expect("it ended");
    assert!(lab.at(3) - SignedDuration::from_secs(30) <= gone && gone <= lab.at(3));
}

async fn what_is_kept_makes_room_for_firmer_work(lab: Lab) {
    let lab = lab.with_queue().await;
    let booked = booked(&lab, AtEnd::Keep, None).await;
    let number = lab.submit(&lab.ada, inside(&lab, &booked, 300)).await;
    lab.wait_until(1).await;
    lab.run_until(3).await;
    assert_eq!(lab.state(number).await, State::Running);
    let all = lab.submit(&lab.bob, lab.ask(4, 4, 30)).await;
    lab.run_until(5).await;
    let firm = run(&lab, all).await;
    assert!(firm.began <= lab.at(3) + SignedDuration::from_secs(35));
    assert_eq!(run(&lab, number).await.state, ended(Outcome::Preempted));
}

async fn nothing_is_kept_where_another_reservation_follows_at_once(lab: Lab) {
    let lab = lab.with_queue().await;
    let booked = booked(&lab, AtEnd::Keep, None).await;
    lab.book(&lab.bob, &["n0.gpu0"], 2, 3).await;
    let number = lab.submit(&lab.ada, inside(&lab, &booked, 300)).await;
    lab.wait_until(1).await;
    lab.run_until(4).await;
    let view = lab.workload_view(number).await;
    let first = view.runs.last().expect("it ran");
    assert_eq!(first.state, ended(Outcome::Preempted));
    assert!(first.ended_at.expect("it ended") <= lab.at(2));
    assert_eq!(first.kept_from, None);
}

fn ada_may_have(lab: &Lab, gpus_milli: u64) -> QuotaSetting {
    QuotaSetting {
        project: None,
        person: Some(lab.ada.person.login.clone()),
        amounts: QuotaAmounts {
            gpus_milli: Some(gpus_milli),
            ..QuotaAmounts::default()
        },
        hours: None,
    }
}

async fn what_is_kept_counts_against_quotas_from_then_on(lab: Lab) {
    let lab = lab.with_queue().await;
    lab.set_queue(vec![ada_may_have(&lab, 2000)]).await;
    let booked = booked(&lab, AtEnd::Keep, None).await;
    let kept = lab.submit(&lab.ada, inside(&lab, &booked, 300)).await;
    lab.wait_until(1).await;
    lab.round().await;
    let before = lab.submit(&lab.ada, lab.ask(1, 1, 10)).await;
    lab.run_until(2).await;
    assert_eq!(lab.state(before).await, State::Completed);
    assert_eq!(run(&lab, kept).await.kept_from, Some(lab.at(2)));
    let after = lab.submit(&lab.ada, lab.ask(1, 1, 10)).await;
    let lab = lab.restarted().await;
    lab.run_until(5).await;
    assert_eq!(lab.state(after).await, State::Waiting);
    lab.run_until(8).await;
    assert_eq!(lab.state(kept).await, State::Completed);
    let began = run(&lab, after).await.began;
    assert!(began >= lab.at(6), "{began}");
}

async fn nothing_is_kept_beyond_a_quota(lab: Lab) {
    let lab = lab.with_queue().await;
    lab.set_queue(vec![ada_may_have(&lab, 3000)]).await;
    let booked = booked(&lab, AtEnd::Keep, None).await;
    let number = lab.submit(&lab.ada, inside(&lab, &booked, 300)).await;
    lab.wait_until(1).await;
    lab.round().await;
    let mut outside = lab.ask(1, 2, 300);
    outside["wishes"][0]["limit"] = json!("PT6H");
    lab.submit(&lab.ada, outside).await;
    lab.run_until(3).await;
    let first = lab.workload_view(number).await.runs.pop().expect("it ran");
    assert_eq!(first.state, ended(Outcome::Preempted));
    assert!(first.ended_at.expect("it ended") <= lab.at(2));
}

async fn a_server_that_was_away_at_the_end_keeps_it_all_the_same(lab: Lab) {
    let lab = lab.with_queue().await;
    let booked = booked(&lab, AtEnd::Keep, None).await;
    let number = lab.submit(&lab.ada, inside(&lab, &booked, 300)).await;
    lab.wait_until(1).await;
    lab.round().await;
    let late = lab.at(2) + SignedDuration::from_mins(10);
    lab.wait_until_moment(late).await;
    let lab = lab.restarted().await;
    lab.run_until(3).await;
    let kept = run(&lab, number).await;
    assert_eq!(kept.state, RunState::Running);
    assert_eq!((kept.kept_from, kept.until), (Some(lab.at(2)), lab.at(7)));
}

async fn what_has_to_write_down_how_far_it_came_is_told_in_time_and_goes_on_outside(lab: Lab) {
    let lab = lab.with_queue().await;
    let booked = booked(&lab, AtEnd::Checkpoint, None).await;
    lab.book(&lab.bob, &["n0"], 2, 9).await;
    let number = lab.submit(&lab.ada, inside(&lab, &booked, 90)).await;
    let since = lab.workload_view(number).await.workload.since;
    lab.wait_until(1).await;
    lab.round().await;
    let told_at = lab.at(2) - SignedDuration::from_secs(150);
    lab.wait_until_moment(told_at - SignedDuration::from_secs(1))
        .await;
    let next = lab.round().await;
    assert_eq!(run(&lab, number).await.state, RunState::Running);
    assert_eq!(next, Some(told_at), "it is looked at again just then");
    lab.wait_until_moment(told_at).await;
    lab.round().await;
    let told = RunState::Stopping {
        because: Because::Checkpoint,
        since: told_at,
    };
    assert_eq!(run(&lab, number).await.state, told);
    lab.run_until(5).await;
    let view = lab.workload_view(number).await;
    assert_eq!(view.workload.state, State::Completed);
    assert_eq!(
        (view.workload.since, view.workload.ask.inside),
        (since, None)
    );
    let [again, first] = view.runs.as_slice() else {
        panic!("{:?}", view.runs);
    };
    assert_eq!(first.state, ended(Outcome::Checkpointed));
    let gone = first.ended_at.expect("it ended");
    assert!(gone <= lab.at(2));
    assert_eq!((again.inside, again.began), (None, gone));
}

async fn the_owner_can_change_their_mind_while_it_runs(lab: Lab) {
    let lab = lab.with_queue().await;
    let booked = booked(&lab, AtEnd::Stop, Some(true)).await;
    let number = lab.submit(&lab.ada, inside(&lab, &booked, 300)).await;
    lab.wait_until(1).await;
    lab.round().await;
    let keep = ReservationChange {
        at_end: Some(AtEnd::Keep),
        lends: Some(None),
        ..ReservationChange::default()
    };
    change(&lab, &booked, keep).await;
    let terms = lab.read(booked.id).await.terms;
    assert_eq!((terms.at_end, terms.lends), (AtEnd::Keep, None));
    lab.run_until(3).await;
    assert_eq!(run(&lab, number).await.state, RunState::Running);
}

/// Bob's, for all of a node, that can be sent away; everything but Ada's node is taken.
async fn borrower(lab: &Lab) -> u64 {
    let mut rest = lab.wish(&["n1", "n2", "n3"], 1, 2);
    rest.lends = Some(false);
    let made = lab.app.book(&lab.bob, &site(), &rest).await;
    made.expect("it is free");
    lab.wait_until(1).await;
    let mut soft = lab.ask(1, 4, 30);
    soft["class"] = json!("opportunistic");
    let number = lab.submit(&lab.bob, soft).await;
    lab.round().await;
    number
}

async fn the_owner_lends_though_the_site_does_not(lab: Lab) {
    let lab = lab.with_queue().await;
    let booked = booked(&lab, AtEnd::Stop, Some(true)).await;
    let number = borrower(&lab).await;
    assert_eq!(run(&lab, number).await.inside, Some(booked.id));
    // She no longer does, and it goes.
    let asked = lab.at(1) + SignedDuration::from_mins(10);
    lab.wait_until_moment(asked).await;
    let not = ReservationChange {
        lends: Some(Some(false)),
        ..ReservationChange::default()
    };
    change(&lab, &booked, not).await;
    lab.run_until(2).await;
    let sent_away = lab.workload_view(number).await.runs.pop().expect("it ran");
    assert_eq!(sent_away.state, ended(Outcome::Preempted));
    assert!(sent_away.ended_at.expect("it ended") <= asked + SignedDuration::from_secs(35));
    assert!(
        run(&lab, number).await.began >= lab.at(2),
        "only when hers is over it begins again"
    );
}

async fn the_owner_does_not_lend_though_the_site_does(lab: Lab) {
    let lab = lab.with_queue().await;
    let known = lab.app.queue_settings(&lab.admin, &site()).await;
    let mut settings = known.expect("it is there").settings;
    settings.lends = true;
    lab.app
        .set_queue_settings(&lab.admin, &site(), None, settings)
        .await
        .expect("settings");
    let booked = booked(&lab, AtEnd::Stop, Some(false)).await;
    let number = borrower(&lab).await;
    assert_eq!(lab.state(number).await, State::Waiting);
    let as_the_site = ReservationChange {
        lends: Some(None),
        ..ReservationChange::default()
    };
    change(&lab, &booked, as_the_site).await;
    lab.wait_until_moment(lab.at(1) + SignedDuration::from_secs(1))
        .await;
    lab.round().await;
    assert_eq!(run(&lab, number).await.inside, Some(booked.id));
}

#[tokio::test]
async fn wherever_a_server_is_killed_while_it_keeps_a_run_another_one_keeps_it() {
    let mut places = 0;
    // Close together at first: on a busy machine a round needs few polls, because the store has answered by the first.
    for polls in (0..8).chain((8..).step_by(5)) {
        let lab = Lab::build(Engine::Sqlite).await.with_queue().await;
        let booked = booked(&lab, AtEnd::Keep, None).await;
        let number = lab.submit(&lab.ada, inside(&lab, &booked, 300)).await;
        lab.wait_until(1).await;
        lab.round().await;
        let due = lab.at(2) - SignedDuration::from_secs(30);
        lab.wait_until_moment(due).await;
        let mut left = polls;
        let whole = cut(lab.round(), &mut left).await;
        let lab = lab.restarted().await;
        lab.run_until(3).await;
        let kept = run(&lab, number).await;
        assert_eq!(kept.state, RunState::Running, "cut after {polls}");
        assert_eq!((kept.kept_from, kept.until), (Some(lab.at(2)), lab.at(7)));
        let mut reader = lab.app.store.read().await.expect("it is there");
        let held = claims::all_of(&mut reader, Holder::Workload(kept.workload)).await;
        let held: Vec<_> = held.expect("they are there");
        assert_eq!(held.len(), kept.claims.len(), "cut after {polls}");
        if whole.is_some() {
            break;
        }
        places += 1;
    }
    assert!(places > 3, "{places} places are no round");
}
