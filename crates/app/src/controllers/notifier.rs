//! Tells people what happened that concerns them, and reminds them of what is about to.

use std::time::Duration;

use berth_store::leases::Lease;
use tokio_util::sync::CancellationToken;

use super::lease::Keeper;
use crate::App;
use crate::error::Result;

/// How late a reminder may be, and how late somebody is told whatever happens to the bell.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// What happens together is told together; still soon enough for a page that shows it live.
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

/// Tells of what happened since the last time; says whether there may be more.
pub(super) async fn round(app: &App, lease: &Lease) -> Result<bool> {
    app.remind(lease).await?;
    app.tell_news(lease).await
}
