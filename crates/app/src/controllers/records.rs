//! Removes the records of runs that ended long ago from the disk of this server's backend. Every server has its own
//! disk, and the end of a run stays in the database for ever. So no lease is needed.

use std::time::Duration;

use berth_drivers::backend::Trouble;
use berth_model::RunId;
use berth_store::runs;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::App;
use crate::error::Result;

const LOOK_EVERY: Duration = Duration::from_secs(600);
/// How many runs one database query checks.
const AT_ONCE: usize = 500;

pub(super) async fn run(app: App, stop: CancellationToken) {
    loop {
        let removed = tokio::select! {
            () = stop.cancelled() => return,
            removed = remove_old(&app) => removed,
        };
        if let Err(error) = removed {
            tracing::warn!(%error, "the records of old runs could not be removed; trying again");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Safe to stop anywhere: the next call removes the rest.
pub(super) async fn remove_old(app: &App) -> Result<()> {
    let backend = app.backend.as_ref();
    let Some(records) = backend.and_then(|backend| backend.records()) else {
        return Ok(());
    };
    if let Err(trouble) = records.finish_removals().await {
        tracing::warn!(%trouble, "what is left of removed runs could not be found; trying again");
    }
    let before = app.now() - app.settings.run_retention;
    let folders = records.folders(before).await?;
    for run in ended_by(app, &folders, before).await? {
        note(run, records.remove_folder(run).await);
    }
    let before = app.now() - app.settings.log_retention;
    let logs = records.logs(before).await?;
    for run in ended_by(app, &logs, before).await? {
        note(run, records.remove_log(run).await);
    }
    Ok(())
}

/// The runs among `found` whose end before `moment` is in the database. The records of all other runs stay.
async fn ended_by(app: &App, found: &[RunId], moment: Timestamp) -> Result<Vec<RunId>> {
    let mut ended = Vec::new();
    for some in found.chunks(AT_ONCE) {
        let mut reader = app.store.read().await?;
        ended.extend(runs::ended_by(&mut reader, some, moment).await?);
    }
    Ok(ended)
}

/// Logs the failure and goes on, so that one run does not block the others.
fn note(run: RunId, removed: Result<(), Trouble>) {
    if let Err(trouble) = removed {
        tracing::warn!(%trouble, %run, "the records of a run could not be removed; trying again");
    }
}
