//! Runs the queues: after every event, when time alone changes something, and at a regular interval.
//!
//! Each site's queue runs in its own task. So a site that is large, or whose machines do not answer, delays no other
//! site.

use std::any::Any;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use berth_model::SiteId;
use berth_store::leases::Lease;
use futures::FutureExt;
use jiff::Timestamp;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::lease::{Keeper, Turn};
use crate::App;
use crate::error::Result;

/// No job waits longer than this for free room, even if a wake-up is lost.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Collects jobs that many people submit at once into one plan.
const GATHER: Duration = Duration::from_millis(50);
/// How long a pass waits for its sites. For slower sites it returns later, and keeps the lease meanwhile.
const SITES_WAIT: Duration = Duration::from_secs(1);
/// How long a site is skipped after its pass panicked or exceeded the time limit.
const BACK_OFF: Duration = Duration::from_secs(30);
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
        if sites.leave_late_ones(app.settings.round_limit) == Late::All {
            keeper.give_up(TROUBLE).await;
            sites = Sites::default();
        }
        if turn == Turn::NotOurs {
            sites = Sites::default();
            app.queues.forget();
        }
        app.queues.lead(matches!(turn, Turn::Done { .. }));
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
            () = keeper.rest(pause) => {}
        }
    }
    drop(sites);
    app.queues.lead(false);
    app.queues.forget();
    keeper.give_back().await;
}

/// The sites whose queues are being processed. Dropping this aborts their tasks.
#[derive(Debug, Default)]
struct Sites {
    tasks: JoinSet<(SiteId, Ended)>,
    under_way: HashMap<SiteId, UnderWay>,
    /// When a pass of any site last ended.
    last_ended: Option<Instant>,
    /// When each site is polled next, even without an event.
    next: HashMap<SiteId, Timestamp>,
    /// The sites that are skipped, and until when.
    rest: HashMap<SiteId, Instant>,
    /// Whether an event has happened since the last poll of all sites.
    look_at_all: bool,
}

/// The result of a site's pass: the latest time for the next poll, or a panic.
type Ended = Result<Option<Timestamp>, Box<dyn Any + Send>>;

/// Whether passes exceed the time limit.
#[derive(Debug, PartialEq, Eq)]
enum Late {
    None,
    /// Other sites finish their passes, so these sites are at fault and not this server.
    Some,
    All,
}

#[derive(Debug)]
struct UnderWay {
    task: AbortHandle,
    since: Instant,
    /// Whether an event has happened since the pass began.
    is_due_again: bool,
}

impl Sites {
    /// Starts the passes of the sites that are due, and waits for the quick ones.
    async fn carry_on(&mut self, app: &App, lease: &Lease) -> Result<()> {
        let now = app.now();
        let all = app.sites_with_queues().await?;
        let look_at_all = std::mem::take(&mut self.look_at_all);
        self.rest.retain(|_, until| *until > Instant::now());
        for site in all {
            if self.rest.contains_key(&site) {
                continue;
            }
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
        let task = self.tasks.spawn(async move {
            // A pass is a large future, too large for its caller's stack.
            let round = Box::pin(app.carry_queue_on(&lease, site));
            // A panic in one site's pass must not stop the other sites.
            let ended = AssertUnwindSafe(round).catch_unwind().await;
            let next = ended.map(|next| {
                next.unwrap_or_else(|error| {
                    tracing::warn!(%error, %site, "a site's queue could not be carried on; trying again");
                    None
                })
            });
            (site, next)
        });
        let under_way = UnderWay {
            task,
            since: Instant::now(),
            is_due_again: false,
        };
        self.under_way.insert(site, under_way);
    }

    /// Waits until one site's pass has ended. Waits for ever if none runs.
    async fn one_ended(&mut self, app: &App) {
        let (site, ended) = match self.tasks.join_next().await {
            Some(Ok(ended)) => ended,
            // The task exceeded the time limit and was aborted.
            Some(Err(_)) => return,
            None => return std::future::pending().await,
        };
        let now = app.now();
        let latest = now + LOOK_EVERY;
        let under_way = self.under_way.remove(&site);
        self.last_ended = Some(Instant::now());
        let next = match ended {
            Err(_) => {
                tracing::error!(%site, "the round of a site's queue panicked; the site is left alone for a while");
                self.rest.insert(site, Instant::now() + BACK_OFF);
                latest
            }
            Ok(_) if under_way.is_some_and(|ended| ended.is_due_again) => now,
            Ok(next) => next.unwrap_or(latest).min(latest),
        };
        self.next.insert(site, next);
    }

    /// Aborts the passes that have run longer than `limit`. The other sites continue.
    fn leave_late_ones(&mut self, limit: Duration) -> Late {
        let late = |one: &UnderWay| one.since.elapsed() >= limit;
        let sites = self.under_way.iter().filter(|(_, one)| late(one));
        let sites: Vec<SiteId> = sites.map(|(site, _)| *site).collect();
        if sites.is_empty() {
            return Late::None;
        }
        let goes_round = self.last_ended.is_some_and(|at| at.elapsed() < limit);
        if !goes_round {
            return Late::All;
        }
        for site in sites {
            tracing::error!(%site, "the round of a site's queue took too long; the site is left alone for a while");
            if let Some(one) = self.under_way.remove(&site) {
                one.task.abort();
            }
            self.rest.insert(site, Instant::now() + BACK_OFF);
        }
        Late::Some
    }

    /// How long to sleep if no event happens.
    fn pause(&self, now: Timestamp) -> Duration {
        // Wake up early while passes run, because the lease must be renewed for them.
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
