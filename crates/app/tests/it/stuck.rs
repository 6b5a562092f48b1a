//! What hangs in the controller of the queues: a site whose backend does not answer delays no other site, and a server whose
//! round does not end leaves the controller to another, and says so.

use std::sync::Arc;
use std::time::Duration;

use crate::support::scripted::{Script, Scripted};
use crate::support::{Lab, VAULT, site};
use berth_app::closures::Offline;
use berth_app::inventory::{NewResource, NewType};
use berth_app::queue::NewWorkload;
use berth_app::{App, NewSite, Settings, controllers};
use berth_model::inventory::Capacity;
use berth_model::reference::{SiteReference, WorkloadReference};
use berth_model::site::OutsiderView;
use berth_model::workload::{RunState, State};
use berth_model::{Amount, Name, Reference, SiteId};
use berth_store::Engine;
use berth_testkit::wait;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Nothing here takes so long, but machines are busy.
const SOON: Duration = Duration::from_secs(60);

/// When a server gave up the controller of the queues, and who holds its lease.
async fn queue_health(lab: &Lab, server: &App) -> (bool, Option<String>) {
    let report = server.health_report(&lab.root).await.expect("a report");
    let queue = report
        .controllers
        .into_iter()
        .find(|one| one.name == "queue");
    let queue = queue.expect("the controller");
    (queue.gave_up.is_some(), queue.lease.map(|held| held.holder))
}

/// Two servers need PostgreSQL.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_round_hangs_leaves_the_queue_to_another() {
    let (hung, good) = (Scripted::new(), Scripted::new());
    let settings = Settings {
        round_limit: Duration::from_secs(1),
        ..Settings::default()
    };
    let lab = Lab::build(Engine::Postgres).await.with_queue().await;
    let lab = lab.with(settings, VAULT, Some(hung.clone()));
    let number = lab.submit(&lab.ada, lab.ask(1, 1, 30)).await;
    hung.script().look_hangs = true;
    let (stop, fetch) = (CancellationToken::new(), Arc::new(Offline));
    let mut first = controllers::start(&lab.app, fetch.clone(), &stop);
    wait::until("the first server to give up", SOON, async || {
        queue_health(&lab, &lab.app).await.0
    })
    .await;
    assert_eq!(
        lab.workload_view(number).await.workload.state,
        State::Waiting
    );

    let lab = lab.with(Settings::default(), VAULT, Some(good.clone()));
    let mut second = controllers::start(&lab.app, fetch, &stop);
    wait::until("the second server to start the work", SOON, async || {
        lab.workload_view(number).await.workload.state == State::Running
    })
    .await;
    assert_eq!(good.script().started.len(), 1);
    assert_eq!(hung.script().started.len(), 0);
    assert!(!queue_health(&lab, &lab.app).await.0, "it goes round");
    stop.cancel();
    while first.join_next().await.is_some() {}
    while second.join_next().await.is_some() {}
}

/// Another site with one node, made by somebody who may.
async fn second_site(lab: &Lab) -> SiteReference {
    let named = |text: &str| text.parse::<Name>().expect("a name");
    let new = NewSite {
        name: named("milano"),
        title: "Milano".parse().expect("text"),
        time_zone: "Europe/Rome".parse().expect("a zone"),
        outsiders_see: OutsiderView::Nothing,
    };
    lab.app.create_site(&lab.root, new).await.expect("a site");
    let milano = Reference::Name(named("milano"));
    for (resource, kind, parent, amount) in [
        ("m0", "node", None, None),
        ("m0.cpu", "cpu", Some("m0"), Some(16)),
        ("m0.memory", "memory", Some("m0"), Some(64)),
    ] {
        let new = NewType {
            name: named(kind),
            title: kind.parse().expect("text"),
            colour: "#1f77b4".parse().expect("a colour"),
            form: Default::default(),
            needs_approval: false,
        };
        lab.app
            .create_type(&lab.root, &milano, new)
            .await
            .expect("a type");
        let new = NewResource {
            name: named(resource),
            kind: Reference::Name(named(kind)),
            parent: parent.map(|parent| Reference::Name(named(parent))),
            title: None,
            attributes: Default::default(),
            facts: Default::default(),
            capacity: amount.map(|amount| Capacity {
                amount: Amount::new(amount).expect("an amount"),
                unit: named("units"),
            }),
        };
        let made = lab.app.create_resource(&lab.root, &milano, new).await;
        made.expect("a resource");
    }
    let settings = lab.app.queue_settings(&lab.admin, &site()).await;
    let mut settings = settings.expect("settings").settings;
    settings
        .roles
        .retain(|kind, _| !["gpu", "slice"].contains(&kind.as_str()));
    let set = lab
        .app
        .set_queue_settings(&lab.root, &milano, None, settings);
    set.await.expect("settings");
    milano
}

/// `set` makes the first site sick.
async fn a_sick_site_delays_no_other(engine: Engine, set: fn(&mut Script, SiteId)) {
    let scripted = Scripted::new();
    let lab = Lab::build(engine).await.with_queue().await;
    let lab = lab.with_backend(scripted.clone());
    let milano = second_site(&lab).await;
    // The first site is the first that a round looks at.
    let hung = lab.submit(&lab.ada, lab.ask(1, 1, 30)).await;
    let torino = lab.workload_view(hung).await.workload.site;
    set(&mut scripted.script(), torino);
    let mut ask = lab.ask(1, 1, 30);
    ask["wishes"][0]["task"] = json!({"cores_milli": 1000, "memory_mib": 1024});
    let other = NewWorkload {
        project: None,
        profile: None,
        is_held: false,
        ask: serde_json::from_value(ask).expect("an ask"),
    };
    let other = lab.app.submit(&lab.root, &milano, other).await;
    let other = Reference::Name(other.expect("it is taken").value.workload.number);
    let stop = CancellationToken::new();
    let mut controllers = controllers::start(&lab.app, Arc::new(Offline), &stop);
    let run_of = async |site: &SiteReference, work: &WorkloadReference| {
        let view = lab.app.get_workload(&lab.root, site, work).await;
        view.expect("it is there").runs.first().map(|run| run.state)
    };
    wait::until("the other site's work to run", SOON, async || {
        run_of(&milano, &other).await == Some(RunState::Running)
    })
    .await;
    let hung = run_of(&site(), &Reference::Name(hung)).await;
    assert!(matches!(hung, None | Some(RunState::Starting)), "{hung:?}");
    stop.cancel();
    while controllers.join_next().await.is_some() {}
}

fn hangs(script: &mut Script, at: SiteId) {
    script.start_hangs_at = Some(at);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_whose_backend_hangs_delays_no_other_on_sqlite() {
    a_sick_site_delays_no_other(Engine::Sqlite, hangs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_whose_backend_hangs_delays_no_other_on_postgres() {
    a_sick_site_delays_no_other(Engine::Postgres, hangs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_whose_round_panics_delays_no_other() {
    let panics = |script: &mut Script, at: SiteId| script.start_panics_at = Some(at);
    a_sick_site_delays_no_other(Engine::Sqlite, panics).await;
}

/// Nobody else's start waits for one that hangs, nor does a question about the queue.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_hangs_delays_no_other_in_its_site() {
    let scripted = Scripted::new();
    let lab = Lab::build(Engine::Sqlite).await.with_queue().await;
    let lab = lab.with_backend(scripted.clone());
    let hung = lab.submit(&lab.ada, lab.ask(1, 1, 30)).await;
    scripted.script().start_hangs_at = Some(lab.workload_view(hung).await.workload.site);
    lab.round().await;
    scripted.script().start_hangs_at = None;
    let other = lab.submit(&lab.bob, lab.ask(1, 1, 30)).await;
    lab.round().await;
    let state = async |number| lab.workload_view(number).await.runs[0].state;
    assert_eq!(state(other).await, RunState::Running);
    assert_eq!(state(hung).await, RunState::Starting);
    assert!(scripted.script().started.values().all(|count| *count == 1));
}
