//! Numbers new audit entries and events, and keeps every server's tail of events up to date.

use std::time::Duration;

use berth_store::leases::{self, Lease};
use berth_store::sequencer;
use tokio_util::sync::CancellationToken;

use super::lease::{Keeper, Turn};
use crate::App;
use crate::error::{Error, Result};

/// How often to look for rows that another server wrote. This server's own rows cause a wake-up.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);
const AFTER_TROUBLE: Duration = Duration::from_secs(1);

pub(super) async fn run(app: App, mut keeper: Keeper, stop: CancellationToken) {
    loop {
        let work = async |lease: Lease| number_some(&app, &lease).await;
        let pause = match keeper.turn("the sequencer could not work", work).await {
            Turn::Trouble => AFTER_TROUBLE,
            // Each pass is short, however many rows wait.
            Turn::Done { has_more: true } if !stop.is_cancelled() => continue,
            Turn::Done { .. } | Turn::NotOurs => LOOK_EVERY,
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = app.written.notified() => {}
            () = keeper.rest(pause) => {}
        }
    }
    keeper.give_back().await;
}

pub(super) async fn number_all(app: &App, lease: &Lease) -> Result<()> {
    while number_some(app, lease).await? {}
    Ok(())
}

/// Numbers a batch of rows, if there are any. Returns whether there may be more.
async fn number_some(app: &App, lease: &Lease) -> Result<bool> {
    let mut reader = app.store.read().await?;
    let work = sequencer::has_work(&mut reader).await?;
    drop(reader);
    if !work {
        return Ok(false);
    }
    let mut tx = app.store.begin().await?;
    leases::check(&mut tx, lease).await?;
    let numbered = match sequencer::step(&mut tx).await {
        Err(berth_store::Error::Retry) => return Ok(true),
        numbered => numbered?,
    };
    if numbered == 0 {
        return Ok(false);
    }
    tx.commit().await?;
    app.tail_stale.notify_one();
    Ok(true)
}

/// Copies newly numbered events, from any server, into this server's memory.
pub(super) async fn follow(app: App, stop: CancellationToken) {
    loop {
        let pause = match app.refresh_tail().await {
            Ok(0) => LOOK_EVERY,
            Ok(_) => continue,
            Err(error) => {
                if !matches!(error, Error::Store(_)) || !stop.is_cancelled() {
                    tracing::warn!(%error, "the newest events could not be read; trying again");
                }
                AFTER_TROUBLE
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = app.tail_stale.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}
