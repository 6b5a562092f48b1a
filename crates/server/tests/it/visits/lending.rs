//! A session's idle GPU is lent, and whoever sends something to the session has it back.

use berth_app::inventory::{NewResource, NewType};
use berth_app::queue::NewWorkload;
use berth_model::Reference;
use berth_model::session::Session;
use berth_model::workload::{Run, RunState};
use berth_store::sessions;
use berth_testkit::wait;
use jiff::SignedDuration;
use serde_json::json;

use super::browser::{Ask, PATIENCE};
use super::house::{House, Open, name, site};

/// The house gets one GPU, which sessions hold, and lends what idles.
async fn with_a_gpu(house: &House) {
    let admin = house.person("adele");
    let kind = NewType {
        name: name("gpu"),
        title: "GPU".parse().unwrap(),
        colour: "#1f77b4".parse().unwrap(),
        form: Default::default(),
        needs_approval: false,
    };
    house.app.create_type(admin, &site(), kind).await.unwrap();
    let gpu = NewResource {
        name: name("n1.gpu0"),
        kind: Reference::Name(name("gpu")),
        parent: Some(Reference::Name(name("n1"))),
        title: None,
        attributes: Default::default(),
        facts: Default::default(),
        capacity: None,
    };
    let made = house.app.create_resource(admin, &site(), gpu).await;
    made.unwrap();
    let before = house.app.queue_settings(admin, &site()).await;
    let mut settings = serde_json::to_value(before.unwrap().settings).unwrap();
    settings["lends"] = json!(true);
    settings["roles"]["gpu"] = json!("gpu");
    settings["profiles"]["lab"]["wishes"][0]["task"]["gpus"] = json!({"count": 1});
    let settings = serde_json::from_value(settings).unwrap();
    let set = house
        .app
        .set_queue_settings(admin, &site(), None, settings)
        .await;
    set.unwrap();
}

async fn read(house: &House, session: &Open) -> Session {
    let mut reader = house.app.store.read().await.unwrap();
    let found = sessions::get(&mut reader, session.id).await.unwrap();
    found.expect("it is there")
}

/// As if nothing had been done in it for a while.
async fn age(house: &House, session: &Open) {
    let mut tx = house.app.store.begin().await.unwrap();
    let found = sessions::get_locked(&mut tx, session.id).await.unwrap();
    let before = found.expect("it is there");
    let aged = Session {
        active_at: before.active_at - SignedDuration::from_mins(20),
        ..before.clone()
    };
    let is_written = sessions::update(&mut tx, &aged, before.version).await;
    assert!(is_written.unwrap(), "nobody came between");
    tx.commit().await.unwrap();
}

async fn newest_run(house: &House, number: u64) -> Option<Run> {
    let bob = house.person("bob");
    let view = house
        .app
        .get_workload(bob, &site(), &Reference::Name(number))
        .await;
    let runs = view.unwrap().runs;
    runs.into_iter().max_by_key(|run| run.attempt)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_something_to_a_session_has_its_gpu_back() {
    let house = House::open().await;
    with_a_gpu(&house).await;
    let session = house.session("ada", "lab").await;
    let browser = house.inside("ada", &session).await;
    age(&house, &session).await;
    let ask = json!({
        "title": "train", "class": "opportunistic", "level": null, "seats": [], "inside": null, "not_before": null,
        "deadline": null, "after": [], "array": null, "requeue": true,
        "program": {"command": ["train"]},
        "wishes": [{"task": {"cores_milli": 1000, "memory_mib": 1024, "gpus": {"count": 1}}, "limit": "PT30M"}],
    });
    let new = NewWorkload {
        project: None,
        profile: None,
        is_held: false,
        ask: serde_json::from_value(ask).unwrap(),
    };
    let made = house.app.submit(house.person("bob"), &site(), new).await;
    let number = made.unwrap().value.workload.number;
    wait::until("her GPU to be borrowed", PATIENCE, async || {
        let run = newest_run(&house, number).await;
        run.is_some_and(|run| run.lent_by.is_some() && run.state == RunState::Running)
    })
    .await;
    assert!(read(&house, &session).await.lends_since.is_some());
    // To look at it is not to work in it.
    browser.send(Ask::get(&session.at("lab"))).await.expect(200);
    let borrowed = newest_run(&house, number).await.unwrap();
    assert_eq!(borrowed.state, RunState::Running);

    let sent = Ask::new("POST", &session.at("api/cell")).header("origin", &session.origin());
    browser.send(sent.body("1 + 1".into())).await.expect(200);
    wait::until("who borrowed it to be told", PATIENCE, async || {
        let run = newest_run(&house, number).await;
        run.is_some_and(|run| {
            matches!(
                run.state,
                RunState::Stopping { .. } | RunState::Ended { .. }
            )
        })
    })
    .await;
    let back = read(&house, &session).await;
    assert_eq!(back.lends_since, None);
    assert!(back.active_at > borrowed.began);
    house.close().await;
}
