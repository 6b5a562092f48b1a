//! Applies one state transition of a reservation: state, claims, history, audit entry and event, in one transaction.

use berth_model::audit::Actor;
use berth_model::event::{Audience, EventKind};
use berth_model::reservation::{HistoryEntry, Reservation, State, Transition};
use berth_model::{ClaimId, Text};
use berth_store::{Conn, claims, reservations, secrets};

use super::buffers::held_buffers;
use super::create::told;
use crate::App;
use crate::error::{Error, Result};
use crate::record::{By, Change};

impl App {
    /// Applies a transition and everything that follows from it. Fails if another change came first.
    pub(crate) async fn step(
        &self,
        conn: &mut Conn,
        by: &By,
        before: Reservation,
        transition: Transition,
        reason: Option<Text>,
    ) -> Result<Reservation> {
        let same = before.clone();
        self.step_with(conn, by, before, same, transition, reason)
            .await
    }

    /// Applies a transition that also changes other fields. `with` has these fields.
    pub(crate) async fn step_with(
        &self,
        conn: &mut Conn,
        by: &By,
        before: Reservation,
        with: Reservation,
        transition: Transition,
        reason: Option<Text>,
    ) -> Result<Reservation> {
        let now = self.now();
        let mut after = Reservation {
            state: transition.to(),
            state_reason: reason.clone(),
            version: before.version + 1,
            updated_at: now,
            ..with
        };
        if transition.to() == State::Ending {
            self.begin_cleaning(conn, &before, &mut after, now).await?;
        }
        if transition.to().is_final() {
            let buffers = held_buffers(conn, &before).await?;
            let items = before.items.iter().map(|item| item.claim);
            let held: Vec<ClaimId> = items.chain(buffers.iter().map(|claim| claim.id)).collect();
            claims::release(conn, &held, now).await?;
            after.terms.clean_until = None;
            secrets::forget(conn, before.id).await?;
            // The time that it really had: cut short if it had begun, as booked if it never began.
            after.span = before.span.before(now).unwrap_or(before.span);
        }
        if !reservations::apply(conn, transition, &after, before.version).await? {
            return Err(Error::Version {
                current: before.version + 1,
            });
        }
        let entry = HistoryEntry {
            reservation: before.id,
            at: now,
            from: Some(before.state),
            to: after.state,
            span: after.span,
            by: match by.actor {
                Actor::Person(id) => Some(id),
                Actor::System | Actor::Anonymous => None,
            },
            reason: reason.clone(),
        };
        reservations::insert_history(conn, &entry).await?;
        let (action, kind) = if before.is_no_show(transition, now) {
            ("reservation.no_show", EventKind::ReservationNoShow)
        } else {
            words(transition)
        };
        let change = Change::new(action, Some(before.site), before.id)
            .before(&before)
            .after(&after)
            .because(reason)
            .tell_only(kind, Audience::Members, told(&after));
        self.record(conn, by.clone(), change).await?;
        Ok(after)
    }
}

/// The action in the audit log, and the kind of the event.
fn words(transition: Transition) -> (&'static str, EventKind) {
    match (transition.from(), transition.to()) {
        (State::Held, State::Confirmed | State::PendingApproval) => {
            ("reservation.take", EventKind::ReservationChanged)
        }
        (State::Waiting, State::Confirmed | State::PendingApproval) => {
            ("reservation.give", EventKind::ReservationCreated)
        }
        (State::Waiting, State::Held) => ("reservation.offer", EventKind::ReservationOffered),
        (_, State::Confirmed) => ("reservation.approve", EventKind::ReservationApproved),
        (_, State::Rejected) => ("reservation.reject", EventKind::ReservationRejected),
        (_, State::Cancelled) => ("reservation.cancel", EventKind::ReservationCancelled),
        (_, State::Starting) => ("reservation.start", EventKind::ReservationChanged),
        (_, State::Active) => ("reservation.activate", EventKind::ReservationStarted),
        (_, State::Ending) => ("reservation.end", EventKind::ReservationChanged),
        (_, State::Done) => ("reservation.finish", EventKind::ReservationEnded),
        (_, State::Failed) => ("reservation.fail", EventKind::ReservationFailed),
        // No transition leads to a first state.
        (_, State::Waiting) => ("reservation.wait", EventKind::ReservationWaiting),
        (_, State::Held) => ("reservation.hold", EventKind::ReservationChanged),
        (_, State::PendingApproval) => ("reservation.ask", EventKind::ReservationChanged),
    }
}
