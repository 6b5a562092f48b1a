//! Whether there is a server to talk to, and the schedule by which it dies.
//!
//! Deaths come after so many answers, at a point drawn within each stretch: a fast machine and a slow one see the same
//! schedule. From there it is a drawn moment to the blow, because an answer that was just counted is the quietest time
//! there is: what matters happens between a commit and its answer. A second blow, which strikes a server that is just
//! starting, is drawn in milliseconds too, since nothing can be counted then.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use berth_testkit::server::BerthServer;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::watch;

use super::ground::Ground;
use super::size::Size;

/// The longest from the answer that calls for a death to the blow.
const MOMENT: Duration = Duration::from_millis(20);
/// One death in this many is followed by another while the server starts, within this time.
const PAIRED: u32 = 4;
const STARTING: Duration = Duration::from_millis(150);

/// The server's lives, counted; clients wait here while it has none.
#[derive(Debug)]
pub struct Power {
    life: watch::Sender<Option<u64>>,
}

impl Power {
    pub fn on() -> Self {
        Self {
            life: watch::channel(Some(1)).0,
        }
    }

    /// The present life of the server; waits for one.
    pub async fn life(&self) -> Result<u64> {
        let mut life = self.life.subscribe();
        let alive = life.wait_for(Option::is_some).await?;
        alive.context("waited for a life")
    }

    /// Whether it is still the same life.
    pub fn is_still(&self, life: u64) -> bool {
        *self.life.borrow() == Some(life)
    }
}

/// How far the run has come.
#[derive(Debug)]
pub struct Progress {
    wanted: u64,
    begun: AtomicU64,
    done: watch::Sender<u64>,
}

impl Progress {
    pub fn towards(wanted: u64) -> Self {
        Self {
            wanted,
            begun: AtomicU64::new(0),
            done: watch::channel(0).0,
        }
    }

    /// Whether there is another operation to do; whoever asks must then do it.
    pub fn another(&self) -> bool {
        self.begun.fetch_add(1, Ordering::Relaxed) < self.wanted
    }

    pub fn done(&self) {
        self.done.send_modify(|done| *done += 1);
    }

    async fn reaches(&self, count: u64) -> Result<()> {
        self.done
            .subscribe()
            .wait_for(|done| *done >= count)
            .await?;
        Ok(())
    }
}

/// How often it died.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deaths {
    pub at_work: u64,
    pub while_starting: u64,
}

/// Kills the server by the schedule and brings it back each time.
pub async fn rule(
    server: &mut BerthServer,
    ground: &mut Ground,
    power: &Power,
    progress: &Progress,
    size: Size,
    seed: u64,
) -> Result<Deaths> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut deaths = Deaths::default();
    for death in 0..size.kills {
        let stretch = size.operations / size.kills;
        let within = random.random_range(0..stretch.max(1));
        progress.reaches(death * stretch + within).await?;
        tokio::time::sleep(random.random_range(Duration::ZERO..MOMENT)).await;

        power.life.send_replace(None);
        ground.cut(server)?;
        deaths.at_work += 1;
        if random.random_ratio(1, PAIRED) {
            let moment = random.random_range(Duration::ZERO..STARTING);
            let started = tokio::time::timeout(moment, server.restart()).await;
            if started.is_err() {
                ground.cut(server)?;
                deaths.while_starting += 1;
            }
        }
        if !server.is_running() {
            server.restart().await?;
        }
        power.life.send_replace(Some(death + 2));
    }
    Ok(deaths)
}
