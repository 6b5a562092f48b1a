//! Notifies people of events that concern them, and reminds them of starts and ends.

use std::time::Duration;

use berth_store::leases::Lease;
use tokio_util::sync::CancellationToken;

use super::lease::Keeper;
use crate::App;
use crate::error::Result;

/// The longest delay of a reminder, and of a notification if a wake-up is lost.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Collects events that happen together into one pass. The delay is short enough for a page that shows them live.
const GATHER: Duration = Duration::from_millis(200);

pub(super) async fn run(app: App, mut keeper: Keeper, stop: CancellationToken) {
    let mut newest = app.tail.bell();
    loop {
        let work = async |lease| round(&app, &lease).await;
        let more = keeper
            .turn("people could not be told what happened", work)
            .await
            .has_more();
        if more && !stop.is_cancelled() {
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => break,
            rung = newest.changed() => {
                if rung.is_err() {
                    break;
                }
                tokio::time::sleep(GATHER).await;
            }
            () = keeper.rest(LOOK_EVERY) => {}
        }
    }
    keeper.give_back().await;
}

/// Sends notifications for the next events. Returns whether there may be more.
pub(super) async fn round(app: &App, lease: &Lease) -> Result<bool> {
    app.remind(lease).await?;
    app.tell_news(lease).await
}
