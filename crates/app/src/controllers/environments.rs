//! Settles environments: what was made becomes ready, what failed is said and removed, what lies prepared is taken in.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::lease::{Keeper, Turn};
use crate::App;
use crate::authority::Authority;

/// How often to look though no bell rang.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(10);

const TROUBLE: &str = "environments could not be settled";

pub(super) async fn run(app: App, mut keeper: Keeper, stop: CancellationToken) {
    loop {
        let work = async |lease| {
            app.settle_environments(Authority::Lease(&lease)).await?;
            Ok(false)
        };
        let turn = keeper.turn(TROUBLE, work).await;
        if turn == Turn::NotOurs && app.has_own_machine() {
            let own = app.settle_environments(Authority::OwnMachine);
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
