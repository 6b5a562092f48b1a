//! Carries the queues on: whenever something happens, whenever time alone changes something, and now and then.
//!
//! Each site's queue is carried on by a task of its own, so that a site that is large, or whose machines do not answer,
//! delays no other.

use std::collections::HashMap;
use std::time::Duration;

use berth_model::SiteId;
use berth_store::leases::Lease;
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::lease::{Keeper, Turn};
use crate::App;
use crate::error::Result;

/// Whatever happens to the bells, nothing waits longer than this for room that is there.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Many submit at once; they are planned for together.
const GATHER: Duration = Duration::from_millis(50);
/// How long a round waits for its sites. It comes back for those that take longer, and keeps the lease meanwhile.
const SITES_WAIT: Duration = Duration::from_secs(1);
const TROUBLE: &str = "the queues could not be carried on";

pub(super) async fn run(app: App, mut keeper: Keeper, stop: CancellationToken) {
    let mut newest = app.tail.bell();
    let mut sites = Sites::default();
    loop {
        let work = async |lease| {
            sites.carry_on(&app, &lease).await?;
            Ok(false)
        };
        let turn = keeper.turn(TROUBLE, work).await;
        if sites.have_taken(app.settings.round_limit) {
            keeper.give_up(TROUBLE).await;
            sites = Sites::default();
        }
        if turn == Turn::NotOurs {
            sites = Sites::default();
            app.queues.forget();
        }
        let pause = sites.pause(app.now());
        tokio::select! {
            () = stop.cancelled() => break,
            () = app.submitted.notified() => {
                tokio::time::sleep(GATHER).await;
                sites.look_at_all = true;
            }
            rung = newest.changed() => {
                if rung.is_err() {
                    break;
                }
                tokio::time::sleep(GATHER).await;
                sites.look_at_all = true;
            }
            () = sites.one_ended(&app) => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    drop(sites);
    keeper.give_back().await;
}

/// The sites whose queues are carried on at this moment. Dropped, they stop.
#[derive(Debug, Default)]
struct Sites {
    tasks: JoinSet<(SiteId, Option<Timestamp>)>,
    under_way: HashMap<SiteId, UnderWay>,
    /// When each is looked at again, though nothing happens.
    next: HashMap<SiteId, Timestamp>,
    /// Whether something has happened since all were looked at.
    look_at_all: bool,
}

#[derive(Debug)]
struct UnderWay {
    since: Instant,
    /// Whether something has happened since it began.
    is_due_again: bool,
}

impl Sites {
    /// Begins with the sites that are due, and waits for those that are quick.
    async fn carry_on(&mut self, app: &App, lease: &Lease) -> Result<()> {
        let now = app.now();
        let all = app.sites_with_queues().await?;
        let look_at_all = std::mem::take(&mut self.look_at_all);
        for site in all {
            let is_due = look_at_all || self.next.get(&site).is_none_or(|next| *next <= now);
            match self.under_way.get_mut(&site) {
                Some(under_way) => under_way.is_due_again |= look_at_all,
                None if is_due => self.begin(app, lease, site),
                None => {}
            }
        }
        let patience = Instant::now() + SITES_WAIT;
        while !self.tasks.is_empty() && timeout_at(patience, self.one_ended(app)).await.is_ok() {}
        Ok(())
    }

    fn begin(&mut self, app: &App, lease: &Lease, site: SiteId) {
        let (app, lease) = (app.clone(), lease.clone());
        self.tasks.spawn(async move {
            // A round is large, and has no place on its caller's stack.
            let next = Box::pin(app.carry_queue_on(&lease, site)).await;
            let next = next.unwrap_or_else(|error| {
                tracing::warn!(%error, %site, "a site's queue could not be carried on; trying again");
                None
            });
            (site, next)
        });
        let under_way = UnderWay {
            since: Instant::now(),
            is_due_again: false,
        };
        self.under_way.insert(site, under_way);
    }

    /// Waits until a site's round has ended; for ever, if there is none.
    async fn one_ended(&mut self, app: &App) {
        let (site, next) = match self.tasks.join_next().await {
            Some(Ok(ended)) => ended,
            // A task is only cancelled with this set, so it panicked: so does the controller.
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            None => return std::future::pending().await,
        };
        let now = app.now();
        let latest = now + LOOK_EVERY;
        let ended = self.under_way.remove(&site);
        let next = match ended.is_some_and(|ended| ended.is_due_again) {
            true => now,
            false => next.unwrap_or(latest).min(latest),
        };
        self.next.insert(site, next);
    }

    fn have_taken(&self, limit: Duration) -> bool {
        let mut under_way = self.under_way.values();
        under_way.any(|one| one.since.elapsed() >= limit)
    }

    /// How long nothing has to be done, unless something happens.
    fn pause(&self, now: Timestamp) -> Duration {
        // The lease is kept for those that are under way.
        let longest = match self.under_way.is_empty() {
            true => LOOK_EVERY,
            false => SITES_WAIT,
        };
        let next = self.next.iter();
        let next = next.filter(|(site, _)| !self.under_way.contains_key(site));
        let next = next.map(|(_, next)| now.duration_until(*next)).min();
        let next = next.and_then(|left| Duration::try_from(left).ok());
        next.unwrap_or(longest).clamp(GATHER, longest)
    }
}
