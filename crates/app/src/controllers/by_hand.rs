//! The controllers without their loops, for callers that control the time: a demo that replays two months in seconds,
//! or a test that must see the state at one exact moment.
//!
//! The controllers read the time from the app's clock. The caller sets that clock to [`ByHand::next_due`] and then
//! calls [`ByHand::catch_up`]. Everything then happens, and is recorded, at the moment at which it would really have
//! happened. `ByHand` takes the same leases as a server, so do not run it together with one.

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

    /// The next moment at which time alone changes something. It is never later than the real one.
    pub async fn next_due(&self) -> Result<Option<Timestamp>> {
        let mut reader = self.app.store.read().await?;
        let reservation = reservations::next_due(&mut reader).await?;
        let window = maintenance::next_due(&mut reader).await?;
        Ok([reservation, window].into_iter().flatten().min())
    }

    /// Processes everything that is due now.
    pub async fn catch_up(&mut self) -> Result<()> {
        let lease = self.reservations.ours().await?.ok_or_else(held_elsewhere)?;
        while super::reservations::round(&self.app, &lease).await? {}
        let lease = self.waitlist.ours().await?.ok_or_else(held_elsewhere)?;
        super::waitlist::serve(&self.app, &lease, None).await
    }

    /// Runs the queues once, and returns the next moment at which time alone changes something in them.
    pub async fn carry_queues_on(&mut self) -> Result<Option<Timestamp>> {
        let lease = self.queue.ours().await?.ok_or_else(held_elsewhere)?;
        let mut next: Option<Timestamp> = None;
        for site in self.app.sites_with_queues().await? {
            let again = Box::pin(self.app.carry_queue_on(&lease, site)).await?;
            next = next.into_iter().chain(again).min();
        }
        Ok(next)
    }

    /// Runs the sessions once, and returns the latest moment for the next call.
    pub async fn carry_sessions_on(&mut self) -> Result<Option<Timestamp>> {
        let lease = self.sessions.ours().await?.ok_or_else(held_elsewhere)?;
        self.app.carry_sessions_on(Authority::Lease(&lease)).await
    }

    /// Settles the environments that are being made, and cleans up after removed ones.
    pub async fn settle_environments(&mut self) -> Result<()> {
        let lease = self.environments.ours().await?.ok_or_else(held_elsewhere)?;
        let authority = Authority::Lease(&lease);
        self.app.settle_environments(authority).await?;
        self.app.bound_builds(authority).await
    }

    /// Removes expired data, and the records of runs that ended long ago.
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

    /// Notifies people of everything that has happened so far, and sends the reminders that are due. The first call
    /// only marks where to begin.
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
        // The first pass also writes reminders. The second pass turns them into notifications, after they have
        // numbers. The events of both passes need numbers, too.
        self.number().await?;
        while notifier::round(&self.app, &lease).await? {}
        self.number().await
    }

    /// Gives all leases back, so that a server can take over at once.
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
