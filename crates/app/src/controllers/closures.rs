//! Reads closure calendars again, hourly each.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::lease::Keeper;
use crate::App;
use crate::closures::{Fetch, look};
use crate::error::Result;

/// How often to look whether one is due.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Each brings its whole text along.
const BATCH: u64 = 4;

pub(super) async fn run(
    app: App,
    mut keeper: Keeper,
    fetch: Arc<dyn Fetch>,
    stop: CancellationToken,
) {
    loop {
        let worked = tokio::select! {
            () = stop.cancelled() => break,
            worked = round(&app, &mut keeper, fetch.as_ref()) => worked,
        };
        let more = worked.unwrap_or_else(|error| {
            tracing::warn!(%error, "closure calendars could not be read again; trying later");
            keeper.doubt();
            false
        });
        if more {
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
    keeper.give_back().await;
}

/// Looks again at what is due; says whether there may be more.
async fn round(app: &App, keeper: &mut Keeper, fetch: &dyn Fetch) -> Result<bool> {
    if keeper.ours().await?.is_none() {
        return Ok(false);
    }
    let due = app.closures_due(BATCH).await?;
    for (closure, source) in &due {
        let looked = look(closure, source, fetch).await;
        // Asked for anew after what may have taken long.
        let Some(lease) = keeper.ours().await? else {
            return Ok(false);
        };
        app.take_in_leased(&lease, closure, &looked).await?;
    }
    Ok(!due.is_empty())
}
