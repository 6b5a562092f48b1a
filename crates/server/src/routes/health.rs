//! How the server is, for whoever looks after it.

use axum::Json;
use axum::extract::State;
use berth_api::health::{ControllerHealth, DatabaseHealth, DiskHealth, HealthReport, WeakBoundary};
use berth_api::paths;
use berth_app::{ControllerHealth as Found, HealthReport as Report, WeakBoundary as Weak};
use jiff::Timestamp;
use rustix::fs::statvfs;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::config::{Config, Database};
use crate::failure::Result;
use crate::request::Signed;
use crate::server::Server;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default().routes(routes!(get_health_report))
}

/// How the server, its controllers and its database are.
#[utoipa::path(
    get, path = paths::HEALTH_REPORT, tag = "health",
    responses((status = 200, description = "The report.", body = HealthReport))
)]
async fn get_health_report(
    State(server): State<Server>,
    Signed(caller): Signed,
) -> Result<Json<HealthReport>> {
    let report = server.app.health_report(&caller).await?;
    Ok(Json(shown(&report, disk(&server.config))))
}

fn shown(report: &Report, disk: Option<DiskHealth>) -> HealthReport {
    let up = report.now.duration_since(report.started_at).as_secs();
    let controllers = report.controllers.iter();
    HealthReport {
        version: report.version.to_owned(),
        now: report.now,
        started_at: report.started_at,
        uptime_s: up.max(0).unsigned_abs(),
        database: DatabaseHealth {
            engine: report.engine.to_owned(),
            engine_version: report.engine_version.clone(),
            size_bytes: report.size_bytes,
            schema_step: report.schema_step,
            schema_pending: report.schema_pending.clone(),
            disk,
        },
        controllers: controllers.map(|one| controller(one, report.now)).collect(),
        event_head: report.event_head,
        sequencer_lag_s: report.sequencer_lag.as_secs_f64(),
        weak_boundary: report.weak_boundary.map(weak_boundary),
    }
}

fn weak_boundary(weak: Weak) -> WeakBoundary {
    match weak {
        Weak::NoSandbox => WeakBoundary::NoSandbox,
        Weak::ServerUser => WeakBoundary::ServerUser,
        Weak::NoSandboxServerUser => WeakBoundary::NoSandboxServerUser,
    }
}

fn controller(found: &Found, now: Timestamp) -> ControllerHealth {
    let lease = found.lease.as_ref();
    let since = |at: Timestamp| now.duration_since(at).as_secs_f64().max(0.0);
    ControllerHealth {
        name: found.name.to_owned(),
        holder: lease.map(|lease| lease.holder.clone()),
        until: lease.and_then(|lease| lease.until),
        fence: lease.map(|lease| lease.fence),
        pause_s: found.pause.as_secs_f64(),
        last_round_s: found.last_round.map(since),
        gave_up_s: found.gave_up.map(since),
        lag_s: found.lag.as_secs_f64(),
    }
}

/// The disk on which the database lies, if it is a file of ours.
fn disk(config: &Config) -> Option<DiskHealth> {
    let Database::Sqlite(path) = &config.database else {
        return None;
    };
    let disk = statvfs(path.parent()?).ok()?;
    Some(DiskHealth {
        free_bytes: disk.f_bavail * disk.f_frsize,
        total_bytes: disk.f_blocks * disk.f_frsize,
    })
}
