//! Settles environments: marks built ones as ready, reports and removes failed ones, takes in prepared ones, and ends
//! builds that use too much disk.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::lease::{Keeper, Turn};
use crate::App;
use crate::authority::Authority;
use crate::error::Result;

/// The longest pause between two polls, even without a wake-up.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Measuring reads whole folders, so it is done less often.
const MEASURE_EVERY: Duration = Duration::from_secs(60);
const TROUBLE: &str = "environments could not be settled";

pub(super) async fn run(app: App, mut keeper: Keeper, stop: CancellationToken) {
    let mut measured = Instant::now();
    loop {
        let is_to_measure = measured.elapsed() >= MEASURE_EVERY;
        if is_to_measure {
            measured = Instant::now();
        }
        let work = async |lease| {
            round(&app, Authority::Lease(&lease), is_to_measure).await?;
            Ok(false)
        };
        let turn = keeper.turn(TROUBLE, work).await;
        if turn == Turn::NotOurs && app.has_own_machine() {
            let own = round(&app, Authority::OwnMachine, is_to_measure);
            match timeout(app.settings.round_limit, own).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "{TROUBLE}; trying again"),
                Err(_) => tracing::warn!("{TROUBLE}: the round took too long; trying again"),
            }
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = app.run_ended.notified() => {}
            () = app.shelving.ended() => {}
            () = keeper.rest(LOOK_EVERY) => {}
        }
    }
    keeper.give_back().await;
}

async fn round(app: &App, authority: Authority<'_>, is_to_measure: bool) -> Result<()> {
    app.settle_environments(authority).await?;
    if is_to_measure {
        app.bound_builds(authority).await?;
    }
    Ok(())
}
