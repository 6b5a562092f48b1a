//! The environment variables of workloads. They are sealed at submission, and opened for a start and for their owner.
//!
//! People put passwords into them. So lists, events, audit entries and stored answers must not contain them, and the
//! queue plans without them. Seal them once for each workload, however many tasks it has.

use berth_model::Workload;
use berth_store::variables::{self, SealedVariables};
use berth_store::{Conn, workloads};

use crate::App;
use crate::error::{Error, Result};
use crate::transact::transact;
use crate::vault::{Variables, VaultError};

/// Workloads that one transaction seals. Other transactions wait for it.
const SEALED_AT_ONCE: u64 = 200;

impl App {
    /// Takes the variables out of a workload and seals them. Returns `None` if there are none.
    pub(crate) fn take_variables(
        &self,
        workload: &mut Workload,
    ) -> Result<Option<SealedVariables>> {
        let variables = std::mem::take(&mut workload.ask.program.environment);
        if variables.is_empty() {
            return Ok(None);
        }
        let sealed = self.vault.seal_variables(workload.id, &variables);
        sealed
            .map(Some)
            .map_err(|error| Error::Internal(error.to_string()))
    }

    /// Opens the variables of a workload. This fails if the key file was replaced.
    pub(crate) async fn variables(
        &self,
        conn: &mut Conn,
        of: &Workload,
    ) -> Result<Result<Variables, VaultError>> {
        if !of.ask.program.environment.is_empty() {
            // An earlier version stored them in clear text, and this version has not sealed them yet.
            return Ok(Ok(of.ask.program.environment.clone()));
        }
        let sealed = variables::of_workload(conn, of.id).await?;
        Ok(sealed.map_or_else(
            || Ok(Variables::new()),
            |sealed| self.vault.open_variables(of.id, &sealed),
        ))
    }

    /// The workload with its variables, for the start by its backend.
    pub(super) async fn to_start(
        &self,
        workload: &Workload,
    ) -> Result<Result<Workload, VaultError>> {
        let mut reader = self.store.read().await?;
        let variables = self.variables(&mut reader, workload).await?;
        Ok(variables.map(|variables| {
            let mut whole = workload.clone();
            whole.ask.program.environment = variables;
            whole
        }))
    }

    /// Seals some of the variables that an earlier version stored in clear text. Returns whether there may be more.
    pub(crate) async fn seal_older_variables(&self) -> Result<bool> {
        transact!(self, tx => {
            let found = variables::unsealed(&mut tx, SEALED_AT_ONCE).await?;
            for (site, id) in &found {
                let workload = workloads::get_locked(&mut tx, *site, *id).await?;
                let Some(mut workload) = workload else { continue };
                match self.take_variables(&mut workload)? {
                    Some(sealed) => variables::seal(&mut tx, &workload, &sealed).await?,
                    // Another server came first, or there is nothing to seal.
                    None => variables::forget_unsealed(&mut tx, *id).await?,
                }
            }
            Ok(!found.is_empty())
        })
    }
}
