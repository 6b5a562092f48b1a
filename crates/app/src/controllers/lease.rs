//! Keeping a lease. It is renewed while a pass runs, given back when the server stops, and given up when a pass does
//! not end.

use std::time::{Duration, Instant};

use berth_model::Name;
use berth_store::Engine;
use berth_store::leases::{self, Lease};

use crate::App;
use crate::error::Result;

/// How long a server may be silent before another takes over.
const TTL_S: u32 = 5;
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// How often to renew while there is nothing to do.
const RENEW_RESTING: Duration = Duration::from_secs(2);
/// How long a server does not ask for a controller that it gave up. After that it takes the controller again if no
/// other server has it.
const LEFT_TO_OTHERS: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Keeper {
    app: App,
    name: &'static str,
    server: String,
    held: Option<(Lease, Instant)>,
    gave_up: Option<Instant>,
}

/// The result of one turn of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Done {
        has_more: bool,
    },
    /// Another server runs the controller.
    NotOurs,
    /// The error is in the log, and the next turn asks for the lease again.
    Trouble,
}

impl Turn {
    pub fn has_more(self) -> bool {
        self == Turn::Done { has_more: true }
    }
}

impl Keeper {
    pub fn new(app: &App, name: &'static str, server: &str) -> Self {
        Self {
            app: app.clone(),
            name,
            server: server.to_owned(),
            held: None,
            gave_up: None,
        }
    }

    /// The lease, if this server has it now. Takes or renews it if needed.
    pub async fn ours(&mut self) -> Result<Option<Lease>> {
        if let Some((lease, renewed)) = &self.held
            && renewed.elapsed() < RENEW_EVERY
        {
            return Ok(Some(lease.clone()));
        }
        let is_left = |at: Instant| at.elapsed() < LEFT_TO_OTHERS;
        if self.gave_up.is_some_and(is_left) {
            return Ok(None);
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
        self.held = lease.clone().map(|lease| (lease, Instant::now()));
        Ok(lease)
    }

    /// Renews the lease for as long as it is polled. Returns only on failure, with the error.
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

    /// Sleeps for `pause` and keeps the lease meanwhile. So a controller whose work depends on one machine stays on one
    /// server.
    pub async fn rest(&mut self, pause: Duration) {
        let until = Instant::now() + pause;
        // Only one server uses an SQLite file, so no other server could take the lease.
        let is_wanted = matches!(self.app.store.engine(), Engine::Postgres);
        while is_wanted && self.held.is_some() {
            let left = until.saturating_duration_since(Instant::now());
            tokio::time::sleep(left.min(RENEW_RESTING)).await;
            if left <= RENEW_RESTING {
                return;
            }
            if let Err(error) = self.ours().await {
                tracing::debug!(%error, controller = self.name, "the lease could not be renewed; the next round asks for it");
                self.doubt();
            }
        }
        tokio::time::sleep(until.saturating_duration_since(Instant::now())).await;
    }

    /// Runs one pass if this server has the lease. A pass that exceeds the time limit is dropped, and the lease goes to
    /// another server.
    pub async fn turn(
        &mut self,
        trouble: &'static str,
        round: impl AsyncFnOnce(Lease) -> Result<bool>,
    ) -> Turn {
        let lease = match self.ours().await {
            Ok(Some(lease)) => lease,
            Ok(None) => return Turn::NotOurs,
            Err(error) => return self.failed(&error, trouble),
        };
        let limit = self.app.settings.round_limit;
        // Renew during the pass: a pass that takes longer than the lease lasts must not lose it half-way.
        let worked = tokio::select! {
            worked = round(lease) => Some(worked),
            error = self.keep_on() => Some(Err(error)),
            () = tokio::time::sleep(limit) => None,
        };
        match worked {
            Some(Ok(has_more)) => {
                self.app.rounds.ended(self.name, self.app.now());
                Turn::Done { has_more }
            }
            Some(Err(error)) => self.failed(&error, trouble),
            None => {
                self.give_up(trouble).await;
                Turn::Trouble
            }
        }
    }

    fn failed(&mut self, error: &crate::Error, trouble: &'static str) -> Turn {
        tracing::warn!(%error, controller = self.name, "{trouble}; trying again");
        self.doubt();
        Turn::Trouble
    }

    /// Leaves the controller to another server, because a pass did not end within the time limit.
    pub async fn give_up(&mut self, trouble: &'static str) {
        let seconds = self.app.settings.round_limit.as_secs();
        tracing::error!(
            controller = self.name,
            "{trouble}: a round did not end within {seconds} s; this server leaves the controller to another"
        );
        self.app.rounds.given_up(self.name, self.app.now());
        // Perhaps the database does not answer. Then the lease expires by itself.
        let given_back = tokio::time::timeout(RENEW_EVERY, self.give_back());
        given_back.await.ok();
        // Only one server uses an SQLite file, so no other server could take the lease.
        if matches!(self.app.store.engine(), Engine::Postgres) {
            self.gave_up = Some(Instant::now());
        }
    }

    /// Forgets the lease after an error, so that the next pass asks for it again.
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
