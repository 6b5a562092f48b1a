//! The controllers without their loops, for whoever keeps the time: a demo that replays two months in seconds, a test
//! that must see the state of one exact moment.
//!
//! Time is asked of the app's clock as ever, so the caller sets that clock to [`ByHand::next_due`] and then calls
//! [`ByHand::catch_up`]; everything then happens, and is recorded, at the moment it would have happened. The leases
//! are taken like any server's, so this must not run beside one.

use berth_store::{maintenance, reservations};
use jiff::Timestamp;

use super::lease::Keeper;
use super::{notifier, records, sequencer, server_name, sweeper};
use crate::App;
use crate::authority::Authority;
use crate::error::{Error, Result};

#[derive(Debug)]
pub struct ByHand {
    app: App,
    reservations: Keeper,
    waitlist: Keeper,
    sequencer: Keeper,
    notifier: Keeper,
    queue: Keeper,
    sessions: Keeper,
    environments: Keeper,
    sweeper: Keeper,
}

impl ByHand {
    pub fn new(app: &App) -> Self {
        let server = server_name(app);
        Self {
            app: app.clone(),
            reservations: Keeper::new(app, "reservations", &server),
            waitlist: Keeper::new(app, "waitlist", &server),
            sequencer: Keeper::new(app, "sequencer", &server),
            notifier: Keeper::new(app, "notifier", &server),
            queue: Keeper::new(app, "queue", &server),
            sessions: Keeper::new(app, "sessions", &server),
            environments: Keeper::new(app, "environments", &server),
            sweeper: Keeper::new(app, "sweeper", &server),
        }
    }

    /// When time will next change something by itself; never later than it really does.
    pub async fn next_due(&self) -> Result<Option<Timestamp>> {
        let mut reader = self.app.store.read().await?;
        let reservation = reservations::next_due(&mut reader).await?;
        let window = maintenance::next_due(&mut reader).await?;
        Ok([reservation, window].into_iter().flatten().min())
    }

    /// Carries on everything that is due now.
    pub async fn catch_up(&mut self) -> Result<()> {
        let lease = self.reservations.ours().await?.ok_or_else(held_elsewhere)?;
        while super::reservations::round(&self.app, &lease).await? {}
        let lease = self.waitlist.ours().await?.ok_or_else(held_elsewhere)?;
        super::waitlist::serve(&self.app, &lease, None).await
    }

    /// Carries the queues on, and says when time will next change something in them.
    pub async fn carry_queues_on(&mut self) -> Result<Option<Timestamp>> {
        let lease = self.queue.ours().await?.ok_or_else(held_elsewhere)?;
        let mut next: Option<Timestamp> = None;
        for site in self.app.sites_with_queues().await? {
            let again = Box::pin(self.app.carry_queue_on(&lease, site)).await?;
            next = next.into_iter().chain(again).min();
        }
        Ok(next)
    }

    /// Carries sessions on, and says when to look again at the latest.
    pub async fn carry_sessions_on(&mut self) -> Result<Option<Timestamp>> {
        let lease = self.sessions.ours().await?.ok_or_else(held_elsewhere)?;
        self.app.carry_sessions_on(Authority::Lease(&lease)).await
    }

    /// Settles the environments that are made, and removes what is left of those that are no more.
    pub async fn settle_environments(&mut self) -> Result<()> {
        let lease = self.environments.ours().await?.ok_or_else(held_elsewhere)?;
        let authority = Authority::Lease(&lease);
        self.app.settle_environments(authority).await?;
        self.app.bound_builds(authority).await
    }

    /// Removes what has run out, and the records of runs that ended long ago.
    pub async fn sweep(&mut self) -> Result<()> {
        let lease = self.sweeper.ours().await?.ok_or_else(held_elsewhere)?;
        while sweeper::sweep(&self.app, &lease).await? {}
        records::remove_old(&self.app).await
    }

    /// Numbers and chains everything written so far, so that readers see it.
    pub async fn number(&mut self) -> Result<()> {
        let lease = self.sequencer.ours().await?.ok_or_else(held_elsewhere)?;
        sequencer::number_all(&self.app, &lease).await
    }

    /// Tells everyone whom it concerns what happened so far, and reminds them of what is near. The first time, it only
    /// marks where to begin.
    pub async fn notify(&mut self) -> Result<()> {
        let told = self.tell().await;
        if told.is_err() {
            self.notifier.doubt();
        }
        told
    }

    async fn tell(&mut self) -> Result<()> {
        self.number().await?;
        let lease = self.notifier.ours().await?.ok_or_else(held_elsewhere)?;
        while notifier::round(&self.app, &lease).await? {}
        // Reminders are told once they have their numbers, and so is that somebody was told.
        self.number().await?;
        while notifier::round(&self.app, &lease).await? {}
        self.number().await
    }

    /// Lets a server take over at once.
    pub async fn give_back(mut self) {
        if let Err(error) = self.app.write_refusals().await {
            tracing::debug!(%error, "counts of refused bookings could not be written");
        }
        self.reservations.give_back().await;
        self.waitlist.give_back().await;
        self.sequencer.give_back().await;
        self.notifier.give_back().await;
        self.queue.give_back().await;
        self.sessions.give_back().await;
        self.environments.give_back().await;
        self.sweeper.give_back().await;
    }
}

fn held_elsewhere() -> Error {
    Error::Internal("another server runs the controllers of this database".into())
}
