//! Records attempts to cross the boundaries of runs. Every server checks its own machine, so no lease is needed.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::App;

const ASK_EVERY: Duration = Duration::from_secs(5);

pub(super) async fn run(app: App, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(ASK_EVERY) => {}
        }
        if let Err(error) = app.record_attempts().await {
            tracing::warn!(%error, "attempts on the boundaries of runs could not be recorded; trying again");
        }
    }
}
