//! Settles environments: what was made becomes ready, what failed is said and removed, what lies prepared is taken in.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::lease::Keeper;
use crate::App;

/// How often to look though no bell rang.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(10);

pub(super) async fn run(app: App, mut keeper: Keeper, stop: CancellationToken) {
    loop {
        let work = async |lease| {
            app.settle_environments(&lease).await?;
            Ok(false)
        };
        keeper.turn("environments could not be settled", work).await;
        tokio::select! {
            () = stop.cancelled() => break,
            () = app.run_ended.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
    keeper.give_back().await;
}
