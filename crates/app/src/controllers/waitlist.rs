//! Moves bookings away from failed resources, and gives freed room to waiting reservations.

use std::collections::BTreeSet;
use std::time::Duration;

use berth_model::SiteId;
use berth_model::event::EventKind;
use berth_store::leases::Lease;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lease::Keeper;
use crate::App;
use crate::error::Result;

/// The longest time that a reservation waits for free room, even if an event is missed.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Many bookings end at once at the end of a day. This delay serves their waiters in one pass.
const GATHER: Duration = Duration::from_millis(200);

pub(super) async fn run(app: App, mut keeper: Keeper, stop: CancellationToken) {
    let mut newest = app.tail.bell();
    // All sites at first, and again after a long silence.
    let mut sites = Where::Everywhere;
    let mut seen = app.tail.newest();
    // Fixed here, so that frequent events cannot postpone it.
    let mut look_everywhere_at = Instant::now() + LOOK_EVERY;
    loop {
        let work = async |lease: Lease| {
            round(&app, &lease, &sites).await?;
            Ok(false)
        };
        keeper
            .turn("those who wait could not be served", work)
            .await;
        loop {
            tokio::select! {
                () = stop.cancelled() => {
                    keeper.give_back().await;
                    return;
                }
                rung = newest.changed() => {
                    if rung.is_err() {
                        return;
                    }
                    tokio::time::sleep(GATHER).await;
                    sites = freed(&app, &mut seen);
                }
                () = keeper.rest(look_everywhere_at.saturating_duration_since(Instant::now())) => {
                    look_everywhere_at = Instant::now() + LOOK_EVERY;
                    sites = Where::Everywhere;
                }
            }
            if !matches!(&sites, Where::In(none) if none.is_empty()) {
                break;
            }
        }
    }
}

enum Where {
    Everywhere,
    In(BTreeSet<SiteId>),
}

/// The sites in which there may be more room than before.
fn freed(app: &App, seen: &mut u64) -> Where {
    let since = app.tail.after(*seen);
    *seen = app.tail.newest();
    let Some(since) = since else {
        return Where::Everywhere;
    };
    let letting_go = since.iter().filter(|one| lets_go(one.event.kind));
    Where::In(letting_go.filter_map(|one| one.event.site).collect())
}

fn lets_go(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::ReservationChanged
            | EventKind::ReservationMoved
            | EventKind::ReservationNoShow
            | EventKind::ReservationRejected
            | EventKind::ReservationCancelled
            | EventKind::ReservationEnded
            | EventKind::ReservationFailed
            | EventKind::MaintenanceCancelled
            | EventKind::MaintenanceEnded
            | EventKind::ClaimYielded
            | EventKind::WorkloadEnded
            | EventKind::WorkloadRequeued
            | EventKind::ResourceCreated
            | EventKind::ResourceChanged
            | EventKind::ResourceStatus
            | EventKind::ResourceMoved
            | EventKind::TypeChanged
    )
}

async fn round(app: &App, lease: &Lease, sites: &Where) -> Result<()> {
    match sites {
        Where::Everywhere => serve(app, lease, None).await,
        Where::In(sites) => {
            for site in sites {
                serve(app, lease, Some(*site)).await?;
            }
            Ok(())
        }
    }
}

/// Bookings on failed resources are moved first, because they were promised room. Then waiting reservations are served.
pub(super) async fn serve(app: &App, lease: &Lease, site: Option<SiteId>) -> Result<()> {
    for site in app.sites_in_trouble(site).await? {
        app.rescue(lease, site).await?;
    }
    app.serve_waiting(lease, site).await?;
    Ok(())
}
