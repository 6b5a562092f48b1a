//! Seals the variables that an earlier version stored in clear, once after the start. Rows are locked, so every server
//! may do it.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::App;

/// How long to wait after the database did not answer.
const PAUSE: Duration = Duration::from_secs(30);

pub(super) async fn run(app: App, stop: CancellationToken) {
    let mut sealed_some = false;
    while !stop.is_cancelled() {
        match app.seal_older_variables().await {
            Ok(true) => sealed_some = true,
            Ok(false) => break,
            Err(error) => {
                tracing::warn!(%error, "environment variables of older workloads could not be sealed; trying again");
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        }
    }
    if sealed_some {
        tracing::info!(
            "the environment variables of older workloads are sealed; copies of the database that were made before still have them in clear"
        );
    }
}
