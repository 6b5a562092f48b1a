//! Forecasts of start times. They are shown, stored, and later compared with the real starts.

use std::time::{Duration, Instant};

use berth_engine::queue::calibration::{Score, Told, score};
use berth_engine::queue::planner::Forecast;
use berth_model::WorkloadId;
use berth_store::leases::{self, Lease};
use berth_store::{queues, workloads};
use jiff::{SignedDuration, Timestamp};

use super::plan::{Plan, moment};
use crate::App;
use crate::error::Result;

/// Minimum time between forecasts. A forecast reads the whole waiting queue, and is wrong by minutes anyway.
const EVERY: Duration = Duration::from_secs(5);
/// A forecast is stored again if it changed by more than this, and by more than a fifth of the time left.
const CHANGE_MIN: SignedDuration = SignedDuration::from_mins(10);
/// Limit on the forecasts stored in one pass. Later passes store the rest.
const KEPT_MAX: usize = 200;

impl App {
    pub(super) async fn note_forecasts(&self, lease: &Lease, plan: &mut Plan) -> Result<()> {
        if plan
            .forecast_made
            .is_some_and(|made| made.elapsed() < EVERY)
        {
            return Ok(());
        }
        let now = self.now();
        plan.forecasts = Some(plan.planner.forecast(now.as_microsecond()));
        plan.forecast_made = Some(Instant::now());
        let news = plan.worth_keeping(now);
        if news.is_empty() {
            return Ok(());
        }
        let mut tx = self.store.begin().await?;
        leases::check(&mut tx, lease).await?;
        for (workload, starts) in &news {
            workloads::insert_forecast(&mut tx, plan.site, *workload, now, *starts).await?;
        }
        tx.commit().await?;
        for (workload, starts) in news {
            plan.kept_forecasts.insert(workload, starts);
        }
        Ok(())
    }
}

/// State of the queues of all sites, for monitoring.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueueFigures {
    pub waiting: u64,
    pub running: u64,
    /// How well last week's forecasts matched the real starts.
    pub forecasts: Option<Score>,
}

/// Older forecasts say nothing about today's.
const SCORED: SignedDuration = SignedDuration::from_hours(7 * 24);
const SCORED_MAX: u64 = 1000;

impl App {
    pub async fn queue_figures(&self) -> Result<QueueFigures> {
        let mut reader = self.store.read().await?;
        let (waiting, running) = workloads::counts(&mut reader).await?;
        let since = self.now() - SCORED;
        let mut told = Vec::new();
        for site in queues::sites(&mut reader).await? {
            for one in workloads::scored(&mut reader, site, since, SCORED_MAX).await? {
                let forecast = one.starts.as_microsecond();
                told.push(Told {
                    made: one.made_at.as_microsecond(),
                    forecast,
                    latest: forecast,
                    began: one.began.as_microsecond(),
                });
            }
        }
        Ok(QueueFigures {
            waiting,
            running,
            forecasts: score(&told),
        })
    }
}

impl Plan {
    /// When a workload is expected to start, if known.
    pub fn forecast(&self, workload: WorkloadId) -> Option<Timestamp> {
        let key = self.first_in_line(workload)?;
        match self.forecasts.as_ref()?.get(key)? {
            Forecast::At(at) | Forecast::Beyond(at) => Some(moment(at)),
            Forecast::Never => None,
        }
    }

    fn worth_keeping(&self, now: Timestamp) -> Vec<(WorkloadId, Timestamp)> {
        let is_news = |workload: &WorkloadId, starts: Timestamp| {
            let Some(kept) = self.kept_forecasts.get(workload) else {
                return true;
            };
            let change = starts.duration_until(*kept).abs();
            change > CHANGE_MIN.max(now.duration_until(starts) / 5)
        };
        let all = self
            .workloads
            .keys()
            .filter_map(|id| Some((*id, self.forecast(*id)?)));
        let mut news: Vec<_> = all.filter(|(id, starts)| is_news(id, *starts)).collect();
        news.sort_unstable();
        news.truncate(KEPT_MAX);
        news
    }
}
