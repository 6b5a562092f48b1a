//! GPUs that are cut anew for those who wait: only what is free goes, and wherever the controller is killed, the end is
//! the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::queue::cut;
use crate::support::{Lab, name, on_both, site};
use berth_app::Caller;
use berth_app::inventory::{NewResource, ResourceFilter};
use berth_drivers::simulated::World;
use berth_model::attribute::{AttributeValue, Attributes};
use berth_model::recut::{CutOutcome, Recut};
use berth_model::workload::State;
use berth_model::{Holder, Reference, Standing, Status};
use berth_store::{Engine, claims, recuts};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

on_both!(
    free_slices_are_cut_into_what_somebody_waits_for_who_then_runs,
    what_is_busy_or_reserved_for_later_is_not_cut,
    a_whole_gpu_is_cut_unless_its_node_is_reserved,
    a_gang_gets_all_its_slices_or_nothing_is_cut,
    nothing_is_done_for_what_the_hardware_cannot_have,
    a_gpu_that_could_not_be_cut_stays_as_it_was_and_rests,
    what_others_wait_for_is_not_cut_away,
);

async fn add(lab: &Lab, resource: &str, kind: &str, parent: &str, attributes: Attributes) {
    let new = NewResource {
        name: name(resource),
        kind: Reference::Name(name(kind)),
        parent: Some(Reference::Name(name(parent))),
        title: None,
        attributes,
        facts: Default::default(),
        capacity: None,
    };
    lab.app
        .create_resource(&lab.admin, &site(), new)
        .await
        .expect("a resource");
}

/// An A100 of 80 GB below `n0`.
async fn add_gpu(lab: &Lab) {
    let mig = AttributeValue::Text("7g.80gb".to_owned());
    add(lab, "mig", "gpu", "n0", [(name("mig"), mig)].into()).await;
}

async fn add_slice(lab: &Lab, slice: &str, profile: &str, at: u8) {
    let attributes = [
        (
            name("mig_profile"),
            AttributeValue::Text(profile.to_owned()),
        ),
        (name("mig_at"), AttributeValue::Number(at.into())),
    ];
    add(lab, slice, "slice", "mig", attributes.into()).await;
}

fn ask(lab: &Lab, tasks: u32, slice: &str, minutes: u32) -> Value {
    let mut ask = lab.ask(tasks, 1, minutes);
    ask["wishes"][0]["task"]["gpus"] = json!({ "slice": slice });
    ask
}

async fn submit(lab: &Lab, who: &Caller, ask: Value) -> u64 {
    Box::pin(lab.submit(who, ask)).await
}

/// What stands below the GPU, and its status.
async fn slices(lab: &Lab) -> BTreeMap<String, Status> {
    let filter = ResourceFilter {
        under: Some(Reference::Name(name("mig"))),
        ..ResourceFilter::default()
    };
    let (_, found, _) = lab
        .app
        .list_resources(&lab.ada, &site(), &filter, "", 100)
        .await
        .expect("a list");
    let found = found.into_iter().map(|one| one.resource);
    let below = found.filter(|one| one.name != name("mig"));
    below
        .map(|one| (one.name.to_string(), one.status))
        .collect()
}

async fn names(lab: &Lab) -> Vec<String> {
    slices(lab).await.into_keys().collect()
}

async fn cuts(lab: &Lab) -> Vec<Recut> {
    let place = lab
        .app
        .get_site(&lab.ada, &site())
        .await
        .expect("the site is there");
    let mut reader = lab.app.store.read().await.expect("it is there");
    recuts::recent(&mut reader, place.id(), Timestamp::UNIX_EPOCH)
        .await
        .expect("they are there")
}

async fn reason(lab: &Lab, number: u64) -> String {
    let view = lab.workload_view(number).await;
    view.reason.expect("it waits").code.to_owned()
}

/// The stories below are long, and without optimisation every call would take its place on their stack.
async fn round(lab: &Lab) -> Option<Timestamp> {
    Box::pin(lab.round()).await
}

/// Lets the queue go on for so many minutes.
async fn minutes(lab: &Lab, minutes: i64) {
    let end = lab.app.now() + SignedDuration::from_mins(minutes);
    for _ in 0..6000 {
        match round(lab).await.filter(|next| *next <= end) {
            // Time goes on, however soon somebody wants to look again.
            Some(next) => {
                let at_least = lab.app.now() + SignedDuration::from_secs(1);
                lab.wait_until_moment(next.max(at_least)).await;
            }
            None => break,
        }
    }
    lab.wait_until_moment(end).await;
    round(lab).await;
}

async fn free_slices_are_cut_into_what_somebody_waits_for_who_then_runs(lab: Lab) {
    let lab = lab.with_queue().await;
    add_gpu(&lab).await;
    add_slice(&lab, "s0", "1g.10gb", 0).await;
    let small = submit(&lab, &lab.bob, ask(&lab, 1, "1g.10gb", 30)).await;
    round(&lab).await;
    assert_eq!(lab.state(small).await, State::Running);
    add_slice(&lab, "s2", "2g.20gb", 2).await;
    add_slice(&lab, "s4", "1g.10gb", 4).await;
    add_slice(&lab, "s5", "1g.10gb", 5).await;
    let large = submit(&lab, &lab.ada, ask(&lab, 1, "3g.40gb", 30)).await;
    round(&lab).await;
    let view = lab.workload_view(large).await;
    assert_eq!(view.workload.state, State::Waiting);
    let why = view.reason.expect("it waits");
    assert_eq!(why.code, "cutting");
    assert!(why.words.ends_with("ready about 09:01"), "{}", why.words);
    let there = slices(&lab).await;
    let (active, cut) = (Status::Active, Status::Maintenance);
    let expected = [
        ("mig.3g.40gb-4", cut),
        ("s0", active),
        ("s2", active),
        ("s4", cut),
        ("s5", cut),
    ];
    let expected = expected.map(|(name, status)| (name.to_owned(), status));
    assert_eq!(there, BTreeMap::from(expected));
    let recut = cuts(&lab).await.remove(0);
    let mut reader = lab.app.store.read().await.expect("it is there");
    let held = claims::held_by(&mut reader, Holder::Workload(view.workload.id)).await;
    assert_eq!(held.expect("they are there").len(), 3);
    drop(reader);
    let promised = Box::pin(lab.try_book(&lab.bob, &["s4"], 24, 25)).await;
    assert!(promised.is_err(), "what goes is not promised");
    let (_, nodes, _) = lab
        .app
        .queue_nodes(&lab.ada, &site())
        .await
        .expect("the nodes");
    let node = nodes.iter().find(|node| node.gpus.len() > 4).expect("n0");
    let free = node.gpus.iter().filter(|gpu| gpu.free > 0).count();
    assert_eq!(free, 5, "four whole GPUs and one slice");

    minutes(&lab, 5).await;
    let view = lab.workload_view(large).await;
    assert_eq!(view.workload.state, State::Running);
    assert_eq!(view.runs[0].pieces[0].gpus[0].gpu, recut.slice);
    assert!(view.runs[0].began <= recut.until);
    assert_eq!(names(&lab).await, ["mig.3g.40gb-4", "s0", "s2"]);
    assert_eq!(lab.state(small).await, State::Running);
    let mut reader = lab.app.store.read().await.expect("it is there");
    for claim in &recut.claims {
        let claim = claims::get(&mut reader, *claim).await.expect("it is there");
        assert_eq!(claim.expect("it is kept").standing, Standing::Past);
    }
    drop(reader);
    lab.run_until(2).await;
    assert_eq!(lab.state(large).await, State::Completed);
    assert_eq!(cuts(&lab).await.len(), 1);
    Box::pin(lab.book(&lab.bob, &["mig.3g.40gb-4"], 24, 25)).await;
}

async fn what_is_busy_or_reserved_for_later_is_not_cut(lab: Lab) {
    let lab = lab.with_queue().await;
    add_gpu(&lab).await;
    add_slice(&lab, "s0", "1g.10gb", 0).await;
    let small = submit(&lab, &lab.bob, ask(&lab, 1, "1g.10gb", 30)).await;
    round(&lab).await;
    add_slice(&lab, "s4", "1g.10gb", 4).await;
    Box::pin(lab.book(&lab.bob, &["s4"], 20, 21)).await;
    let large = submit(&lab, &lab.ada, ask(&lab, 1, "3g.40gb", 30)).await;
    minutes(&lab, 20).await;
    assert_eq!(lab.state(small).await, State::Running);
    assert_eq!(reason(&lab, large).await, "no_such_gpu");
    assert!(cuts(&lab).await.is_empty());
    minutes(&lab, 60).await;
    assert_eq!(lab.state(small).await, State::Completed);
    assert_eq!(lab.state(large).await, State::Completed);
    assert_eq!(
        names(&lab).await,
        ["mig.3g.40gb-0", "s4"],
        "when it was free, what was busy went, and what is reserved is still there"
    );
}

async fn a_whole_gpu_is_cut_unless_its_node_is_reserved(lab: Lab) {
    let lab = lab.with_queue().await;
    add_gpu(&lab).await;
    let booked = lab.book(&lab.bob, &["n0"], 30, 31).await;
    let number = submit(&lab, &lab.ada, ask(&lab, 1, "2g.20gb", 10)).await;
    minutes(&lab, 5).await;
    assert_eq!(reason(&lab, number).await, "no_such_gpu");
    assert!(cuts(&lab).await.is_empty());
    lab.app
        .cancel_reservation(&lab.bob, &site(), booked.id, None, None)
        .await
        .expect("it is cancelled");
    lab.wait_until_moment(lab.app.now()).await;
    minutes(&lab, 20).await;
    assert_eq!(lab.state(number).await, State::Completed);
    assert_eq!(names(&lab).await.len(), 1);
}

async fn a_gang_gets_all_its_slices_or_nothing_is_cut(lab: Lab) {
    let lab = lab.with_queue().await;
    add_gpu(&lab).await;
    let three = submit(&lab, &lab.ada, ask(&lab, 3, "3g.40gb", 10)).await;
    minutes(&lab, 5).await;
    assert_eq!(lab.state(three).await, State::Waiting);
    assert!(cuts(&lab).await.is_empty(), "there is room for two");
    let two = submit(&lab, &lab.ada, ask(&lab, 2, "3g.40gb", 10)).await;
    minutes(&lab, 5).await;
    assert_eq!(lab.state(two).await, State::Running);
    assert_eq!(names(&lab).await, ["mig.3g.40gb-0", "mig.3g.40gb-4"]);
}

async fn nothing_is_done_for_what_the_hardware_cannot_have(lab: Lab) {
    let lab = lab.with_queue().await;
    add_gpu(&lab).await;
    let mut waiting = Vec::new();
    for profile in ["3g.20gb", "5g.40gb", "9g.90gb", "large"] {
        waiting.push(submit(&lab, &lab.ada, ask(&lab, 1, profile, 10)).await);
    }
    let mut of_another = ask(&lab, 1, "3g.40gb", 10);
    of_another["wishes"][0]["task"]["gpus"]["where"] = json!(["gpu_model=H100"]);
    waiting.push(submit(&lab, &lab.ada, of_another).await);
    minutes(&lab, 5).await;
    // Of a slice that does not say where it stands nobody knows what it leaves.
    let profile = AttributeValue::Text("1g.10gb".to_owned());
    let attributes = [(name("mig_profile"), profile)].into();
    add(&lab, "unplaced", "slice", "mig", attributes).await;
    waiting.push(submit(&lab, &lab.ada, ask(&lab, 1, "2g.20gb", 10)).await);
    minutes(&lab, 5).await;
    for number in waiting {
        assert_eq!(reason(&lab, number).await, "no_such_gpu", "{number}");
    }
    assert!(cuts(&lab).await.is_empty());
    assert_eq!(names(&lab).await, ["unplaced"]);
}

async fn a_gpu_that_could_not_be_cut_stays_as_it_was_and_rests(lab: Lab) {
    let stubborn = World {
        uncut: 1.0,
        ..World::calm(1)
    };
    let lab = lab.with_queue().await.in_world(stubborn);
    add_gpu(&lab).await;
    add_slice(&lab, "s4", "1g.10gb", 4).await;
    add_slice(&lab, "s0", "3g.40gb", 0).await;
    let number = submit(&lab, &lab.ada, ask(&lab, 2, "3g.40gb", 10)).await;
    minutes(&lab, 9).await;
    let there = slices(&lab).await;
    assert_eq!(there.into_values().collect::<Vec<_>>(), [Status::Active; 2]);
    assert_eq!(names(&lab).await, ["s0", "s4"]);
    let once = cuts(&lab).await;
    assert_eq!(once.len(), 1);
    assert_eq!(
        once[0].ended.map(|(_, outcome)| outcome),
        Some(CutOutcome::Failed)
    );
    let mut reader = lab.app.store.read().await.expect("it is there");
    let held = claims::held_by(&mut reader, Holder::Workload(once[0].workload)).await;
    assert!(held.expect("they are there").is_empty());
    drop(reader);
    assert_ne!(reason(&lab, number).await, "cutting");
    minutes(&lab, 4).await;
    assert_eq!(cuts(&lab).await.len(), 2, "it is tried again after a while");
}

async fn what_others_wait_for_is_not_cut_away(lab: Lab) {
    let lab = lab.with_queue().await;
    add_gpu(&lab).await;
    for at in [0, 1, 4, 5] {
        add_slice(&lab, &format!("s{at}"), "1g.10gb", at).await;
    }
    // More than there are at once, so that it waits for them while they are free.
    let mut gang = ask(&lab, 8, "1g.10gb", 10);
    gang["wishes"][0]["at_least"] = json!("node");
    let gang = submit(&lab, &lab.bob, gang).await;
    let large = submit(&lab, &lab.ada, ask(&lab, 1, "3g.40gb", 10)).await;
    minutes(&lab, 5).await;
    assert_eq!(lab.state(gang).await, State::Waiting);
    assert_eq!(lab.state(large).await, State::Waiting);
    assert!(cuts(&lab).await.is_empty());
    let act = berth_app::queue::Act::Cancel {
        reason: None,
        tasks: None,
    };
    lab.act(&lab.bob, gang, act).await.expect("it is cancelled");
    lab.wait_until_moment(lab.app.now()).await;
    minutes(&lab, 20).await;
    assert_eq!(lab.state(large).await, State::Completed);
}

/// How far a cut was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Far {
    NotBegun,
    UnderWay,
    Over,
}

/// One slice is busy and two are free when somebody comes who wants a large one; after so many polls the controller is
/// cut off once, and another server goes on. Says how many polls it took, and how far the cut was when it was cut off.
async fn play(polls: usize) -> (usize, Option<Far>) {
    let mut lab = Lab::build(Engine::Sqlite).await.with_queue().await;
    add_gpu(&lab).await;
    add_slice(&lab, "s0", "1g.10gb", 0).await;
    let small = submit(&lab, &lab.bob, ask(&lab, 1, "1g.10gb", 30)).await;
    round(&lab).await;
    add_slice(&lab, "s4", "1g.10gb", 4).await;
    add_slice(&lab, "s6", "1g.10gb", 6).await;
    let large = submit(&lab, &lab.ada, ask(&lab, 1, "3g.40gb", 10)).await;
    let (mut left, mut was_cut) = (polls, None);
    let end = lab.at(1);
    for _ in 0..500 {
        let next = match was_cut {
            Some(_) => round(&lab).await,
            None => match cut(lab.round(), &mut left).await {
                Some(next) => next,
                None => {
                    was_cut = Some(match cuts(&lab).await.first().map(|cut| cut.ended) {
                        None => Far::NotBegun,
                        Some(None) => Far::UnderWay,
                        Some(Some(_)) => Far::Over,
                    });
                    lab = lab.restarted().await;
                    continue;
                }
            },
        };
        let now = lab.app.now();
        match next.filter(|next| *next <= end) {
            Some(next) => lab.wait_until_moment(next.max(now)).await,
            None => break,
        }
    }
    for number in [small, large] {
        let view = lab.workload_view(number).await;
        assert_eq!(view.workload.state, State::Completed, "cut off at {polls}");
        assert_eq!(view.runs.len(), 1, "cut off at {polls}");
        let mut reader = lab.app.store.read().await.expect("it is there");
        let held = claims::held_by(&mut reader, Holder::Workload(view.workload.id)).await;
        assert_eq!(held.expect("they are there"), [], "cut off at {polls}");
    }
    let there = slices(&lab).await;
    let expected = [("mig.3g.40gb-4", Status::Active), ("s0", Status::Active)];
    let expected = expected.map(|(name, status)| (name.to_owned(), status));
    assert_eq!(there, BTreeMap::from(expected), "cut off at {polls}");
    let cuts = cuts(&lab).await;
    assert_eq!(cuts.len(), 1, "cut off at {polls}");
    assert!(matches!(cuts[0].ended, Some((_, CutOutcome::Done))));
    (polls - left, was_cut)
}

#[tokio::test]
async fn the_end_is_the_same_wherever_the_controller_is_killed() {
    let (polls, _) = play(usize::MAX >> 1).await;
    let points = std::env::var("BERTH_CRASH_POINTS")
        .ok()
        .and_then(|points| points.parse().ok());
    let points: usize = points.unwrap_or(24);
    let mut met = BTreeSet::new();
    for point in 0..points {
        let (_, far) = play(1 + point * (polls - 2) / points.max(2)).await;
        met.extend(far);
    }
    let all = [Far::NotBegun, Far::UnderWay, Far::Over];
    assert_eq!(met, all.into(), "it was killed in every part of the story");
}
