//! Keeping a lease: renewed while a round runs, given back when the server stops, and given up when a round does not end.

use std::time::{Duration, Instant};

use berth_model::Name;
use berth_store::Engine;
use berth_store::leases::{self, Lease};

use crate::App;
use crate::error::Result;

/// How long a server may be silent before another takes over.
const TTL_S: u32 = 5;
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// The same while nothing has to be done.
const RENEW_RESTING: Duration = Duration::from_secs(2);
/// How long a server leaves a controller that it gave up to others. It takes it again if nobody else wants it.
const LEFT_TO_OTHERS: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Keeper {
    app: App,
    name: &'static str,
    server: String,
    held: Option<(Lease, Instant)>,
    gave_up: Option<Instant>,
}

/// What came of a controller's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Done {
        has_more: bool,
    },
    /// Another server runs the controller.
    NotOurs,
    /// It is said in the log, and the next turn asks for the lease anew.
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

    /// The lease, if it is ours now: taken, kept or renewed.
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

    /// Rests for so long, and keeps the lease meanwhile: controllers that work on what one machine has stay on one server.
    pub async fn rest(&mut self, pause: Duration) {
        let until = Instant::now() + pause;
        // Only one server has an SQLite file, so there is no other that could take it.
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

    /// One round, if the lease is ours. One that does not end in its time is dropped, and the lease is another server's.
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
        // A round that takes longer than the lease lasts must not lose it half-way.
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

    /// Leaves the controller to another server, because a round did not end in its time.
    pub async fn give_up(&mut self, trouble: &'static str) {
        let seconds = self.app.settings.round_limit.as_secs();
        tracing::error!(
            controller = self.name,
            "{trouble}: a round did not end within {seconds} s; this server leaves the controller to another"
        );
        self.app.rounds.given_up(self.name, self.app.now());
        // The database may be what does not answer; then the lease runs out by itself.
        let given_back = tokio::time::timeout(RENEW_EVERY, self.give_back());
        given_back.await.ok();
        // Only one server has an SQLite file, so there is no other that could take it.
        if matches!(self.app.store.engine(), Engine::Postgres) {
            self.gave_up = Some(Instant::now());
        }
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
