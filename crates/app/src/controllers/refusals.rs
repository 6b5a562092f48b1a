//! Writes each server's counts of refused bookings to the database. Every server writes its own, so no lease is needed.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::App;

const WRITE_EVERY: Duration = Duration::from_secs(5);

pub(super) async fn run(app: App, stop: CancellationToken) {
    loop {
        let is_last = tokio::select! {
            () = stop.cancelled() => true,
            () = tokio::time::sleep(WRITE_EVERY) => false,
        };
        if let Err(error) = app.write_refusals().await {
            tracing::warn!(%error, "counts of refused bookings could not be written; trying again");
        }
        if is_last {
            return;
        }
    }
}
