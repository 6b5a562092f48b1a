//! Keeping a lease: renewed while we run, given back when we stop.

use std::time::{Duration, Instant};

use berth_model::Name;
use berth_store::leases::{self, Lease};

use crate::App;
use crate::error::Result;

/// How long a server may be silent before another takes over.
const TTL_S: u32 = 5;
const RENEW_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Keeper {
    app: App,
    name: &'static str,
    server: String,
    held: Option<(Lease, Instant)>,
}

impl Keeper {
    pub fn new(app: &App, name: &'static str, server: &str) -> Self {
        Self {
            app: app.clone(),
            name,
            server: server.to_owned(),
            held: None,
        }
    }

    /// The lease, if it is ours now: taken, kept or renewed.
    pub async fn ours(&mut self) -> Result<Option<Lease>> {
        if let Some((lease, renewed)) = &self.held
            && renewed.elapsed() < RENEW_EVERY
        {
            self.app.rounds.note(self.name, self.app.now());
            return Ok(Some(lease.clone()));
        }
        let name: Name = self
            .name
            .parse()
            .map_err(|error: berth_model::name::NameError| {
                crate::Error::Internal(error.to_string())
            })?;
        let mut tx = self.app.store.begin().await?;
        let lease = leases::acquire(&mut tx, &name, &self.server, TTL_S).await?;
        tx.commit().await?;
        if lease.is_some() && self.held.is_none() {
            tracing::info!(
                controller = self.name,
                "this server now runs the controller `{}`",
                self.name
            );
        }
        if lease.is_some() {
            self.app.rounds.note(self.name, self.app.now());
        }
        self.held = lease.clone().map(|lease| (lease, Instant::now()));
        Ok(lease)
    }

    /// Renews the lease for as long as it is polled; comes back only with what went wrong.
    async fn keep_on(&mut self) -> crate::Error {
        loop {
            tokio::time::sleep(RENEW_EVERY).await;
            match self.ours().await {
                Ok(Some(_)) => {}
                Ok(None) => return crate::Error::Store(berth_store::Error::Retry),
                Err(error) => return error,
            }
        }
    }

    /// One round, if the lease is ours; says whether there may be more. After trouble the next asks for the lease anew.
    pub async fn turn(
        &mut self,
        trouble: &'static str,
        round: impl AsyncFnOnce(Lease) -> Result<bool>,
    ) -> bool {
        let worked = match self.ours().await {
            Ok(Some(lease)) => {
                let round = round(lease);
                // A round that takes longer than the lease lasts must not lose it half-way.
                tokio::select! {
                    worked = round => worked,
                    error = self.keep_on() => Err(error),
                }
            }
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        worked.unwrap_or_else(|error| {
            tracing::warn!(%error, controller = self.name, "{trouble}; trying again");
            self.doubt();
            false
        })
    }

    /// Forgets the lease after an error, so that the next round asks again.
    pub fn doubt(&mut self) {
        self.held = None;
    }

    pub async fn give_back(&mut self) {
        let Some((lease, _)) = self.held.take() else {
            return;
        };
        let given = async {
            let mut tx = self.app.store.begin().await?;
            leases::give_back(&mut tx, &lease).await?;
            tx.commit().await
        };
        if let Err(error) = given.await {
            tracing::debug!(%error, controller = self.name, "could not give the lease back; it runs out by itself");
        }
    }
}
