//! Keeps the reserve of the database's disk while the server runs ([`berth_store::reserve`]).

use std::path::{Path, PathBuf};
use std::time::Duration;

use berth_server::config::{Config, Database};
use berth_store::Store;
use tokio_util::sync::CancellationToken;

const LOOK_EVERY: Duration = Duration::from_secs(600);
/// Left to others when the reserve is filled: a transaction that finds no space would take theirs with it.
const LEFT_BYTES: u64 = 8 << 20;

/// Fills the reserve beside the server's start, and again when the database has grown into it.
pub fn keep(config: &Config, store: &Store, stop: &CancellationToken) {
    let Database::Sqlite(path) = &config.database else {
        return;
    };
    let path = path.clone();
    let (bytes, store, stop) = (
        config.database_reserve_mib << 20,
        store.clone(),
        stop.clone(),
    );
    tokio::spawn(async move {
        let mut is_new_log = true;
        loop {
            match fill(&store, path.clone(), bytes, is_new_log).await {
                Ok(()) => is_new_log = false,
                Err(error) => tracing::warn!(
                    "the database has no reserve for a full disk: {error:#}; trying again"
                ),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    });
}

async fn fill(store: &Store, path: PathBuf, bytes: u64, is_new_log: bool) -> anyhow::Result<()> {
    let missing = store.missing_reserve(bytes, is_new_log).await?;
    if missing.is_nothing() {
        return Ok(());
    }
    let free = tokio::task::spawn_blocking(move || free(&path)).await??;
    let needed = missing.file_bytes + missing.log_bytes + LEFT_BYTES;
    anyhow::ensure!(
        free >= needed,
        "its disk has {} MiB free and it needs {} MiB; make room there",
        free >> 20,
        needed >> 20
    );
    Ok(store.fill_reserve(missing).await?)
}

fn free(path: &Path) -> std::io::Result<u64> {
    let disk = rustix::fs::statvfs(path)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}
