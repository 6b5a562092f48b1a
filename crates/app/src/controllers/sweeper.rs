//! Removes expired data: sign-ins, one-time links, old failures, old idempotency keys, old events, old notifications,
//! old visits to sessions.

use std::time::Duration;

use berth_store::leases::Lease;
use berth_store::{events, leases, notifications, sign_ins, visits};
use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;

use super::lease::Keeper;
use crate::App;
use crate::error::Result;

pub(super) const SWEEP_EVERY: Duration = Duration::from_secs(600);
const KEPT: SignedDuration = SignedDuration::from_hours(24);
/// How long people can read old notifications.
const NOTIFICATIONS_KEPT: SignedDuration = SignedDuration::from_hours(90 * 24);

/// How long people can read the list of visitors of a session. An admin's visit stays in the audit log for ever.
const VISITS_KEPT: SignedDuration = SignedDuration::from_hours(90 * 24);
/// How many visits one transaction removes. Other transactions wait for it, so the number is small.
const VISITS_AT_ONCE: u64 = 500;

pub(super) async fn run(app: App, mut keeper: Keeper, stop: CancellationToken) {
    loop {
        let work = async |lease: Lease| sweep(&app, &lease).await;
        let turn = keeper.turn("the sweep failed", work).await;
        if turn.has_more() && !stop.is_cancelled() {
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = keeper.rest(SWEEP_EVERY) => {}
        }
    }
    keeper.give_back().await;
}

/// Removes expired data, visits in batches. Returns whether there may be more.
pub(super) async fn sweep(app: &App, lease: &Lease) -> Result<bool> {
    let now = app.now();
    let mut tx = app.store.begin().await?;
    leases::check(&mut tx, lease).await?;
    sign_ins::sweep(&mut tx, now, now - app.settings.session_idle, now - KEPT).await?;
    events::forget_before(&mut tx, now - app.settings.event_retention).await?;
    notifications::forget_before(&mut tx, now - NOTIFICATIONS_KEPT).await?;
    tx.commit().await?;
    let mut tx = app.store.begin().await?;
    leases::check(&mut tx, lease).await?;
    let swept = visits::sweep(&mut tx, now, now - VISITS_KEPT, VISITS_AT_ONCE).await?;
    tx.commit().await?;
    Ok(swept >= VISITS_AT_ONCE)
}
