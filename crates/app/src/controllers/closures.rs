//! Reads each closure calendar again every hour.

use std::sync::Arc;
use std::time::Duration;

use berth_store::leases::Lease;
use tokio_util::sync::CancellationToken;

use super::lease::Keeper;
use crate::App;
use crate::closures::{Fetch, look};
use crate::error::Result;

/// How often to check for calendars that are due.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Each calendar is loaded with its whole text, so the batch is small.
const BATCH: u64 = 4;

pub(super) async fn run(
    app: App,
    mut keeper: Keeper,
    fetch: Arc<dyn Fetch>,
    stop: CancellationToken,
) {
    loop {
        let work = async |lease: Lease| round(&app, &lease, fetch.as_ref()).await;
        let turn = keeper.turn("closure calendars could not be read again", work);
        let more = tokio::select! {
            () = stop.cancelled() => break,
            turn = turn => turn.has_more(),
        };
        if more {
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = keeper.rest(LOOK_EVERY) => {}
        }
    }
    keeper.give_back().await;
}

/// Reads the calendars that are due. Returns whether there may be more.
async fn round(app: &App, lease: &Lease, fetch: &dyn Fetch) -> Result<bool> {
    let due = app.closures_due(BATCH).await?;
    for (closure, source) in &due {
        let looked = look(closure, source, fetch).await;
        app.take_in_leased(lease, closure, &looked).await?;
    }
    Ok(!due.is_empty())
}
