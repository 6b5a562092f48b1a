//! Keeps the demo's queues busy: at each site that has jobs, some workloads run and some wait, at any hour.

use anyhow::Context;
use berth_app::App;
use berth_app::controllers::ByHand;
use berth_app::queue::Count;

use super::chance::Chance;
use super::jobs::{self, SiteJobs};
use super::people::GLOBAL_ADMIN;
use super::places::reference;
use super::play::Player;
use super::script::Scene;

/// So many workloads wait at each site before the demo opens.
pub const WAITING_MIN: u64 = 6;
/// While so many wait, nobody submits more: a demo that is left running must not grow without end.
pub const WAITING_MAX: u64 = 40;

/// The largest site is full long before this many batches.
const BATCHES_MAX: usize = 60;
const BATCH: usize = 5;

/// What waits and runs in the site's queue.
pub async fn count(app: &App, player: &Player, site: &str) -> anyhow::Result<Count> {
    let admin = player.caller(GLOBAL_ADMIN).context("no admin")?;
    Ok(app.count_queue(admin, &reference(site)?).await?.all)
}

/// Submits work at each site until some of it runs and some waits.
pub async fn fill(
    app: &App,
    hand: &mut ByHand,
    player: &mut Player,
    chance: &Chance,
    day: i64,
) -> anyhow::Result<()> {
    for jobs in &jobs::SITES {
        let mut chance = chance.fork(jobs.site);
        for _ in 0..BATCHES_MAX {
            hand.carry_queues_on().await?;
            let count = count(app, player, jobs.site).await?;
            if count.running > 0 && count.waiting >= WAITING_MIN {
                break;
            }
            for _ in 0..BATCH {
                submit(app, player, jobs, &mut chance, day).await?;
            }
        }
    }
    Ok(())
}

/// Somebody submits a workload to the site's queue, unless too many wait there.
pub async fn submit_one(
    app: &App,
    player: &mut Player,
    jobs: &SiteJobs,
    chance: &mut Chance,
    day: i64,
) -> anyhow::Result<()> {
    match count(app, player, jobs.site).await?.waiting {
        WAITING_MAX.. => Ok(()),
        _ => submit(app, player, jobs, chance, day).await,
    }
}

async fn submit(
    app: &App,
    player: &mut Player,
    jobs: &SiteJobs,
    chance: &mut Chance,
    day: i64,
) -> anyhow::Result<()> {
    let Some((who, act)) = jobs.submission(chance, day) else {
        return Ok(());
    };
    let (at, who) = (app.now(), who.login);
    player.play(Scene { at, who, act }).await
}
