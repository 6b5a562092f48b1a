//! Checks disk space before accepting work that will write: such work would otherwise fail later.

use berth_drivers::backend::DiskSpace;
use berth_model::PersonId;
use berth_model::workload::Ask;
use berth_store::{Conn, environments};
use jiff::SignedDuration;

use crate::App;
use crate::error::{Error, Result};

impl App {
    /// The backend's report on the disks to which new work of this person would write. Call it outside of every
    /// transaction, because it may take a moment.
    pub(crate) async fn disk_space(&self, person: PersonId) -> DiskSpace {
        let Some(backend) = &self.backend else {
            return DiskSpace::default();
        };
        backend.disk_space(person).await.unwrap_or_else(|trouble| {
            tracing::warn!(%trouble, "nothing is known of the disk space; the start will tell");
            DiskSpace::default()
        })
    }

    /// Whether a person may make one more environment of their own.
    pub(crate) async fn check_environments_limit(
        &self,
        conn: &mut Conn,
        owner: PersonId,
    ) -> Result<()> {
        let Some(limit) = self.settings.environments_bytes_max else {
            return Ok(());
        };
        let bytes = environments::bytes_of(conn, owner).await?;
        if bytes < limit {
            return Ok(());
        }
        let mib = |bytes: u64| bytes >> 20;
        Err(Error::DiskFull(format!(
            "your environments take {} MiB and their limit is {} MiB: remove one that you no longer need",
            mib(bytes),
            mib(limit)
        )))
    }
}

/// Refuses work that could not start because the disk is full.
pub(crate) fn check_space(space: &DiskSpace, ask: &Ask) -> Result<()> {
    let limits = ask.wishes.iter().map(|wish| wish.limit);
    let limit = limits.min().unwrap_or(SignedDuration::MAX);
    match space.why_not(limit) {
        Some(why) => Err(Error::DiskFull(why.to_owned())),
        None => Ok(()),
    }
}
