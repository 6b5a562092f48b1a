use std::collections::BTreeSet;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

pub(crate) fn ask() -> Ask {
    serde_json::from_value::<Ask>(serde_json::json!({
        "title": "train", "class": "guaranteed", "level": null, "seats": [], "inside": null,
        "not_before": null, "deadline": null, "after": [], "array": null, "requeue": true, "program": {},
        "wishes": [{
            "task": {"cores_milli": 4000, "memory_mib": 8192, "gpus": {"count": 1}},
            "limit": "PT2H",
        }],
    }))
    .unwrap()
}

fn workload(tasks: &str) -> Workload {
    Workload {
        id: WorkloadId(Uuid::from_u128(1)),
        site: SiteId(Uuid::from_u128(2)),
        number: 1,
        owner: PersonId(Uuid::from_u128(3)),
        project: None,
        ask: Ask {
            array: Some(Array {
                tasks: tasks.parse().unwrap(),
                at_once: None,
            }),
            ..ask()
        },
        state: State::Waiting,
        reason: None,
        waiting: tasks.parse().unwrap(),
        counts: Counts::default(),
        since: Timestamp::UNIX_EPOCH,
        ended_at: None,
        version: 1,
    }
}

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

#[test]
fn an_array_is_over_when_its_last_task_is_and_has_failed_if_one_of_them_did() {
    let begun = workload("0-2").begin(0).unwrap().begin(2).unwrap();
    assert_eq!(
        (begun.state, begun.waiting.to_string().as_str()),
        (State::Running, "1")
    );
    let one = begun
        .end(0, &Outcome::Failed { exit_code: 1 }, NOW)
        .end(2, &Outcome::Completed, NOW);
    assert_eq!(one.state, State::Waiting);
    let over = one.begin(1).unwrap().end(1, &Outcome::Completed, NOW);
    assert_eq!((over.state, over.ended_at), (State::Failed, Some(NOW)));
}

#[test]
fn what_wrote_down_how_far_it_came_goes_on_outside_its_reservation_with_its_place_kept() {
    let mut inside = workload("0-1");
    inside.ask.inside = Some(ReservationId(Uuid::from_u128(9)));
    let stopped = inside.clone().begin(0).unwrap();
    let stopped = stopped.end(0, &Outcome::Preempted, NOW);
    assert_eq!(stopped.ask.inside, inside.ask.inside);
    let told = inside.clone().begin(0).unwrap();
    let told = told.end(0, &Outcome::Checkpointed, NOW);
    assert_eq!((told.state, told.ask.inside), (State::Waiting, None));
    assert_eq!((told.since, told.waiting), (inside.since, inside.waiting));
}

#[test]
fn what_made_room_waits_again_unless_it_was_cancelled_meanwhile() {
    let sent_away = workload("0")
        .begin(0)
        .unwrap()
        .end(0, &Outcome::Preempted, NOW);
    assert_eq!(
        (sent_away.state, sent_away.waiting.len()),
        (State::Waiting, 1)
    );
    let cancelled = workload("0").begin(0).unwrap().cancel(NOW, None).unwrap();
    let over = cancelled.end(0, &Outcome::Preempted, NOW);
    assert_eq!((over.state, over.waiting.len()), (State::Cancelled, 0));
    assert!(over.clone().begin(0).is_none());
    assert!(over.hold().is_err());
}

#[test]
fn tasks_that_are_cancelled_leave_and_the_rest_goes_on() {
    let tasks = |text: &str| text.parse::<Tasks>().unwrap();
    let begun = workload("0-4").begin(0).unwrap().begin(1).unwrap();
    let cancelled = begun.cancel_tasks(&tasks("1-3,9"), NOW, None).unwrap();
    assert_eq!(
        (cancelled.state, cancelled.waiting.to_string().as_str()),
        (State::Running, "4")
    );
    // The second was told to end; neither a lost node nor somebody firmer brings it back.
    let told = RunState::Stopping {
        because: Because::Cancelled,
        since: NOW,
    };
    for otherwise in [Outcome::Preempted, Outcome::NodeFailed] {
        let went_on = cancelled.clone().end(1, &told.come_to(otherwise), NOW);
        assert_eq!(
            (went_on.waiting.to_string().as_str(), went_on.cancelled()),
            ("4", 3)
        );
    }
    assert_eq!(told.come_to(Outcome::Completed), Outcome::Completed);
    let last = cancelled
        .end(1, &Outcome::Cancelled, NOW)
        .end(0, &Outcome::Completed, NOW);
    assert_eq!(last.state, State::Waiting);
    let over = last.cancel_tasks(&tasks("4"), NOW, None).unwrap();
    assert_eq!(
        (over.state, over.ended_at, over.cancelled()),
        (State::Completed, Some(NOW), 4)
    );
    assert!(over.cancel_tasks(&tasks("4"), NOW, None).is_err());
}

#[test]
fn who_cancels_every_task_has_cancelled_the_workload() {
    let held = workload("0-9").hold().unwrap();
    let some = held.cancel_tasks(&"0-4".parse().unwrap(), NOW, None);
    let some = some.unwrap();
    assert_eq!(some.state, State::Held);
    let all = some.cancel_tasks(&"5-9".parse().unwrap(), NOW, None);
    assert_eq!(all.unwrap().state, State::Cancelled);
}

#[test]
fn gpus_are_asked_for_in_exactly_one_way() {
    let read = |json| serde_json::from_value::<Gpus>(json);
    assert!(read(serde_json::json!({"count": 2, "where": ["gpu_model=A100"]})).is_ok());
    assert!(read(serde_json::json!({"share": 500})).is_ok());
    assert!(read(serde_json::json!({"slice": "1g.10gb"})).is_ok());
    for bad in [
        serde_json::json!({}),
        serde_json::json!({"count": 1, "share": 500}),
        serde_json::json!({"share": 1000}),
    ] {
        assert!(read(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn a_guarantee_beyond_its_limit_and_a_deadline_too_near_are_refused() {
    let mut over = ask();
    over.wishes[0].task.cores_milli_limit = Some(Cores::try_from(1).unwrap());
    assert_eq!(over.check(), Err(AskError::Guarantee));
    let mut torn = ask();
    torn.wishes[0].tasks = TaskCount::try_from(2).unwrap();
    torn.wishes[0].apart = true;
    assert!(torn.clone().check().is_ok());
    torn.wishes[0].at_least = Near::Node;
    assert_eq!(torn.check(), Err(AskError::Apart));
    let mut late = ask();
    late.not_before = Some(NOW);
    late.deadline = Some(NOW + jiff::SignedDuration::from_hours(1));
    assert_eq!(late.check(), Err(AskError::Deadline(NOW)));
}

#[test]
fn an_array_in_too_many_pieces_is_refused_and_one_that_falls_apart_is_read_back() {
    let mut odd = ask();
    odd.array = Some(Array {
        tasks: "0-30000:2".parse().unwrap(),
        at_once: None,
    });
    assert!(matches!(odd.clone().check(), Err(AskError::TooMany { .. })));
    let written = odd.array.unwrap().tasks.to_string();
    assert_eq!(written.parse::<Tasks>().unwrap().len(), 15_001);
}

#[test]
fn what_is_held_does_not_begin_and_what_is_given_up_ends_as_what_runs_of_it() {
    let held = workload("0").hold().unwrap();
    assert!(held.begin(0).is_none());
    let given_up = workload("0-1")
        .begin(0)
        .unwrap()
        .give_up(NOW, None)
        .unwrap();
    assert_eq!(
        (given_up.state, given_up.waiting.len()),
        (State::Running, 0)
    );
    assert_eq!(
        given_up.end(0, &Outcome::Completed, NOW).state,
        State::Completed
    );
    assert_eq!(
        workload("0").give_up(NOW, None).unwrap().state,
        State::Cancelled
    );
}

proptest! {
    #[test]
    fn a_set_of_tasks_is_a_set(steps in prop::collection::vec((any::<bool>(), 0u32..40), 0..120)) {
        let mut tasks = Tasks::none();
        let mut truth = BTreeSet::new();
        for (adds, task) in steps {
            if adds {
                tasks.insert(task);
                truth.insert(task);
            } else {
                prop_assert_eq!(tasks.remove(task), truth.remove(&task));
            }
            prop_assert_eq!(tasks.iter().collect::<Vec<_>>(), truth.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(tasks.len(), truth.len() as u64);
            prop_assert_eq!(tasks.to_string().parse::<Tasks>().unwrap(), tasks.clone());
        }
    }

    #[test]
    fn what_is_taken_out_at_once_is_what_is_taken_out_one_by_one(
        tasks in prop::collection::btree_set(0u32..60, 0..50), out in prop::collection::btree_set(0u32..60, 0..50)
    ) {
        let set = |all: &BTreeSet<u32>| all.iter().copied().collect::<Tasks>();
        let mut at_once = set(&tasks);
        at_once.remove_all(&set(&out));
        prop_assert_eq!(at_once, set(&tasks.difference(&out).copied().collect()));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9,:-]{0,30}|\\PC{0,20}") {
        text.parse::<Tasks>().ok();
    }
}

#[test]
fn a_set_of_tasks_has_its_bounds() {
    assert_eq!("0-99999".parse::<Tasks>().unwrap().len(), 100_000);
    assert_eq!(
        "0-100000".parse::<Tasks>(),
        Err(TasksError::TooMany { has: 100_001 })
    );
    assert_eq!("0-6:3,1".parse::<Tasks>().unwrap().to_string(), "0-1,3,6");
    assert!("5-3".parse::<Tasks>().is_err());
}
