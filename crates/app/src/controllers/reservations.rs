//! Starts and ends reservations and closes maintenance windows on time, also after a crash.

use berth_model::Text;
use berth_model::event::{Audience, EventKind};
use berth_model::reservation::{Reservation, State, Transition};
use berth_store::leases::{self, Lease};
use berth_store::maintenance::{self, Window, WindowState};
use berth_store::reservations;
use jiff::SignedDuration;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::lease::Keeper;
use crate::App;
use crate::error::{Error, Result};
use crate::record::{By, Change};

/// The longest pause between two polls. Nothing happens later than this after it is due, even if a wake-up is lost.
pub(super) const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(1);
const BATCH: u64 = 200;

pub(super) async fn run(app: App, mut keeper: Keeper, stop: CancellationToken) {
    loop {
        let work = async |lease| round(&app, &lease).await;
        let more = keeper
            .turn("reservations could not be carried on", work)
            .await
            .has_more();
        if more && !stop.is_cancelled() {
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = app.planned.notified() => {}
            () = keeper.rest(LOOK_EVERY.unsigned_abs()) => {}
        }
    }
    keeper.give_back().await;
}

/// Processes everything that is due. Returns whether there may be more.
pub(super) async fn round(app: &App, lease: &Lease) -> Result<bool> {
    let now = app.now();
    let mut reader = app.store.read().await?;
    let due = reservations::due(&mut reader, now, BATCH).await?;
    let windows = maintenance::due(&mut reader, now, BATCH).await?;
    drop(reader);
    let more = !due.is_empty() || !windows.is_empty();
    for reservation in &due {
        match carry_on(app, lease, reservation).await {
            // The owner changed it meanwhile. The next poll reads the new version.
            Ok(()) | Err(Error::Version { .. }) => {}
            Err(Error::Store(berth_store::Error::Retry)) => {}
            Err(error) => return Err(error),
        }
    }
    for window in &windows {
        close(app, lease, window).await?;
    }
    Ok(more)
}

/// Makes all transitions of one reservation that are due by now.
async fn carry_on(app: &App, lease: &Lease, due: &Reservation) -> Result<()> {
    let mut tx = app.store.begin().await?;
    leases::check(&mut tx, lease).await?;
    let Some(mut reservation) = reservations::get_locked(&mut tx, due.site, due.id).await? else {
        return Ok(());
    };
    while let Some(transition) =
        reservation
            .state
            .due(reservation.span, &reservation.terms, app.now())
    {
        let reason = app.due_reason(&reservation, transition);
        reservation = app
            .step(&mut tx, &By::SYSTEM, reservation, transition, reason)
            .await?;
    }
    tx.commit().await?;
    app.written.notify_one();
    Ok(())
}

async fn close(app: &App, lease: &Lease, window: &Window) -> Result<()> {
    let mut tx = app.store.begin().await?;
    leases::check(&mut tx, lease).await?;
    if maintenance::finish(&mut tx, window.id, WindowState::Ended).await? {
        app.release_window(&mut tx, window.id).await?;
        let record = Change::new("maintenance.end", Some(window.site), window.id);
        let told = json!({ "window": window.id, "title": window.title });
        app.record(
            &mut tx,
            By::SYSTEM,
            record.tell_only(EventKind::MaintenanceEnded, Audience::Members, told),
        )
        .await?;
    }
    tx.commit().await?;
    app.written.notify_one();
    Ok(())
}

impl App {
    /// The reason for a transition that time caused and that the owner may not expect. It is shown to the owner.
    fn due_reason(&self, of: &Reservation, transition: Transition) -> Option<Text> {
        let undecided = "nobody decided in time";
        let reason = match (transition.from(), transition.to()) {
            (State::Waiting, State::Cancelled) => "there was no room in time".to_owned(),
            (State::Held, State::Cancelled) => "the hold ran out before it was taken".to_owned(),
            (State::PendingApproval, State::Failed) => {
                "nobody decided before it was to start".to_owned()
            }
            (State::PendingApproval, State::Confirmed) => {
                format!("{undecided}; this site then approves")
            }
            (State::PendingApproval, State::Rejected) => {
                format!("{undecided}; this site then rejects")
            }
            (State::Confirmed, State::Failed) => {
                "its whole time passed while Berth was not running".to_owned()
            }
            (State::Active, State::Ending) if of.is_no_show(transition, self.now()) => {
                "nobody checked in, so it was released".to_owned()
            }
            _ => return None,
        };
        reason.parse().ok()
    }
}
