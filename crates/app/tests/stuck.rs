//! A controller whose round does not end: its server leaves it to another, which goes on, and says so.

mod support;

use std::sync::Arc;
use std::time::Duration;

use berth_app::closures::Offline;
use berth_app::{App, Settings, controllers};
use berth_model::workload::State;
use berth_store::Engine;
use berth_testkit::wait;
use support::scripted::Scripted;
use support::{Lab, VAULT};
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
