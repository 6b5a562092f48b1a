//! Where a booking's time goes: the same bookings without HTTP, straight into the application.
//!
//! No goal of its own; it tells whether a slow `vs_bare` is the server's doing or the application's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use berth_app::clock::SystemClock;
use berth_app::closures::Offline;
use berth_app::reservations::{Item, NewReservation};
use berth_app::vault::Vault;
use berth_app::{App, Error, Settings};
use berth_model::Reference;
use berth_model::reservation::Privacy;
use berth_store::{Engine, Store};
use rand::RngExt;
use tokio_util::sync::CancellationToken;

use crate::booking::{CLIENTS, Slot};
use crate::lab::{Lab, RESOURCES};
use crate::report::{Report, say};

const LENGTH: Duration = Duration::from_secs(5);

pub async fn run(report: &mut Report) -> Result<()> {
    for (engine, name) in [(Engine::Sqlite, "sqlite"), (Engine::Postgres, "postgres")] {
        say(&format!(
            "direct on {name}: {CLIENTS} tasks, {RESOURCES} resources, {LENGTH:?}"
        ));
        let lab = Lab::build(engine, RESOURCES).await?;
        let store = Store::open(&lab.ground.url, 64).await?;
        let vault = Vault::from_key(&[1; 32]);
        let app = App::new(store, Arc::new(SystemClock), vault, Settings::default());
        let stop = CancellationToken::new();
        let controllers = berth_app::controllers::start(&app, Arc::new(Offline), &stop);
        report.add(
            format!("booking.{name}.direct_per_s"),
            rate(&app, &lab).await?,
        );
        stop.cancel();
        controllers.join_all().await;
    }
    Ok(())
}

async fn rate(app: &App, lab: &Lab) -> Result<f64> {
    let booked = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (app, address, booked) = (app.clone(), lab.address(), booked.clone());
        let token = lab.token.clone();
        tasks.spawn(async move {
            while started.elapsed() < LENGTH {
                let slot = Slot::among(&address.resources, rand::rng().random());
                let wish = NewReservation {
                    title: "bench".parse()?,
                    span: slot.span,
                    items: vec![Item {
                        resource: Reference::Id(slot.resource),
                        amount: None,
                    }],
                    project: None,
                    privacy: Privacy::Site,
                    parameters: Default::default(),
                    owner: None,
                    hold: false,
                    any: None,
                    pinned: false,
                    wait: None,
                    at_end: Default::default(),
                    lends: None,
                };
                let caller = app.caller_by_token(&token, "127.0.0.1").await?;
                match app.book(&caller, &address.site.into(), &wish).await {
                    Ok(_) => booked.fetch_add(1, Ordering::Relaxed),
                    Err(Error::Conflict { .. }) => 0,
                    Err(error) => bail!("a booking failed: {error}"),
                };
            }
            Ok(())
        });
    }
    for outcome in tasks.join_all().await {
        outcome?;
    }
    Ok(booked.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}
