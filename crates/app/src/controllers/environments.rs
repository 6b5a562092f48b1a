//! Settles environments: what was made becomes ready, what failed is said and removed, what lies prepared is taken in, and
//! what takes too much of the disk while it is made is ended.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::lease::Keeper;
use crate::App;

/// How often to look though no bell rang.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Measuring reads whole folders, so it is done less often.
const MEASURE_EVERY: Duration = Duration::from_secs(60);

pub(super) async fn run(app: App, mut keeper: Keeper, stop: CancellationToken) {
    let mut measured = Instant::now();
    loop {
        let is_to_measure = measured.elapsed() >= MEASURE_EVERY;
        if is_to_measure {
            measured = Instant::now();
        }
        let work = async |lease| {
            app.settle_environments(&lease).await?;
            if is_to_measure {
                app.bound_builds(&lease).await?;
            }
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
