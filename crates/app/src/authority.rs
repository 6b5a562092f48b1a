//! The authority of a controller for a change: the lease, or this server's own machine.

use berth_model::workload::Run;
use berth_store::Conn;
use berth_store::leases::{self, Lease};

use crate::App;
use crate::error::Result;

/// Only a machine's own server sees its runs and decides about them. The holder of the lease decides about everything
/// else.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Authority<'a> {
    Lease(&'a Lease),
    /// Another server holds the lease, but cannot see the runs on this server's machine.
    OwnMachine,
}

impl Authority<'_> {
    pub async fn check(self, conn: &mut Conn) -> Result<()> {
        match self {
            Authority::Lease(lease) => Ok(leases::check(conn, lease).await?),
            Authority::OwnMachine => Ok(()),
        }
    }
}

impl App {
    /// Whether this server decides the outcome of a run. Without a live run on a machine, the holder of the lease
    /// decides.
    pub(crate) fn judges(&self, authority: Authority<'_>, run: Option<&Run>) -> bool {
        let machine = run.filter(|run| !run.state.is_over());
        match machine.and_then(|run| run.machine.as_deref()) {
            Some(machine) => self.reaches(Some(machine)),
            None => matches!(authority, Authority::Lease(_)),
        }
    }

    /// Whether this server has a machine of its own that other servers cannot see.
    pub(crate) fn has_own_machine(&self) -> bool {
        let backend = self.backend.as_ref();
        backend.is_some_and(|backend| backend.supervisors().is_some())
    }
}
