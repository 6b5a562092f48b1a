//! Accepts a hold as a booking, checks its owner in, and hands it over to somebody else.

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::reference::{PersonReference, SiteReference};
use berth_model::reservation::{CheckIn, HistoryEntry, Privacy, Reservation};
use berth_model::{FieldErrors, Occurrence, ReservationId, Text};
use berth_store::{Conn, projects, reservations};
use jiff::SignedDuration;
use serde_json::json;

use super::create::{Booked, told};
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::record::{By, Change};
use crate::transact::transact;
use crate::version;

/// People who come a little early may already check in.
const CHECK_IN_OPENS: SignedDuration = SignedDuration::from_mins(15);

impl App {
    /// Turns a hold into a booking. It already has its claims, so nobody can come in between.
    pub async fn take_reservation(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
        version: Option<u64>,
    ) -> Result<Booked> {
        let taken = transact!(self, tx => {
            let (place, mut before) =
                self.own_reservation(&mut tx, caller, site, id, Action::ChangeReservation).await?;
            version::expect(version, before.version)?;
            let transition = before.state.take(before.terms.asks_leave)?;
            if before.terms.decide_by.is_some_and(|by| by <= self.now()) {
                return Err(Error::HoldOver);
            }
            // The deadline of the hold is met. From now on the deadline of the approvals counts, if any.
            before.terms.wait_for_approvals(before.span.start());
            let after = self.step(&mut tx, &By::from(caller), before, transition, None).await?;
            self.booked_now(&mut tx, &place, after).await
        });
        self.planned.notify_one();
        taken
    }

    /// Checks the owner in. A second check-in, or one that was not required, changes nothing.
    pub async fn check_in(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
    ) -> Result<Booked> {
        transact!(self, tx => {
            let (place, before) =
                self.own_reservation(&mut tx, caller, site, id, Action::ChangeReservation).await?;
            let now = self.now();
            caller.expects(before.version)?;
            before.state.can_check_in()?;
            if !matches!(before.terms.check_in, CheckIn::Until(_)) {
                return self.booked_now(&mut tx, &place, before).await;
            }
            let opens = before.span.start() - CHECK_IN_OPENS;
            if now < opens {
                return Err(Error::CheckInEarly(opens));
            }
            let mut after = before.clone();
            after.terms.check_in = CheckIn::Done(now);
            let change = Noted {
                action: "reservation.check_in",
                kind: EventKind::ReservationCheckedIn,
                reason: None,
            };
            let after = self.rewrite(&mut tx, caller, &before, after, change).await?;
            self.booked_now(&mut tx, &place, after).await
        })
    }

    /// Hands a reservation over, unchanged, to another member of its site.
    pub async fn hand_over(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
        version: Option<u64>,
        to: &PersonReference,
        reason: Option<Text>,
    ) -> Result<Booked> {
        transact!(self, tx => {
            let (place, before) =
                self.own_reservation(&mut tx, caller, site, id, Action::ChangeReservation).await?;
            before.state.can_change()?;
            version::expect(version, before.version)?;
            let to = self.member_named(&mut tx, place.id(), to, "member of this site").await;
            let to = to.map_err(|error| match error {
                Error::NotFound(_) => FieldErrors::one("to", "is not a member of this site").into(),
                other => other,
            })?;
            if let Some(project) = before.project
                && projects::member_since(&mut tx, project, to.id).await?.is_none()
            {
                let message = "is not in the reservation's project; take it out of the project first";
                return Err(FieldErrors::one("to", message).into());
            }
            if to.id == before.owner {
                return self.booked_now(&mut tx, &place, before).await;
            }
            let occurrence = before.occurrence.map(Occurrence::differing);
            let after = Reservation { owner: to.id, occurrence, ..before.clone() };
            self.judge_hand_over(&mut tx, caller, &place, &after).await?;
            let change = Noted {
                action: "reservation.hand_over",
                kind: EventKind::ReservationHandedOver,
                reason: reason.clone(),
            };
            let after = self.rewrite(&mut tx, caller, &before, after, change).await?;
            self.booked_now(&mut tx, &place, after).await
        })
    }

    /// Writes a reservation whose state, time and claims do not change, with its history entry, audit entry and event.
    pub(super) async fn rewrite(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        before: &Reservation,
        after: Reservation,
        noted: Noted,
    ) -> Result<Reservation> {
        let after = Reservation {
            version: before.version + 1,
            updated_at: self.now(),
            ..after
        };
        if !reservations::update(conn, &after, before.version).await? {
            return Err(version::overtaken(before.version));
        }
        let entry = HistoryEntry {
            reservation: after.id,
            at: after.updated_at,
            from: Some(before.state),
            to: after.state,
            span: after.span,
            by: Some(caller.id()),
            reason: noted.reason.clone(),
        };
        reservations::insert_history(conn, &entry).await?;
        let mut data = told(&after);
        let mut audience = Audience::Members;
        if before.owner != after.owner {
            if after.privacy == Privacy::Private {
                // Nothing changed for the other members, and they may not know the owners of a private reservation.
                audience = Audience::Person(after.owner);
                data["owner"] = json!(after.owner);
            }
            data["from"] = json!(before.owner);
        }
        let change = Change::new(noted.action, Some(after.site), after.id)
            .before(before)
            .after(&after)
            .because(noted.reason)
            .tell_only(noted.kind, audience, data);
        self.record(conn, caller, change).await?;
        Ok(after)
    }

    pub(super) async fn booked_now(
        &self,
        conn: &mut Conn,
        place: &Place,
        reservation: Reservation,
    ) -> Result<Booked> {
        let mut directory = Directory::with_site(&place.site);
        directory
            .learn_reservations(conn, std::slice::from_ref(&reservation))
            .await?;
        Ok(Booked {
            reservation,
            directory,
        })
    }
}

/// The name of a change in the audit log and its kind in the event stream.
pub(super) struct Noted {
    pub action: &'static str,
    pub kind: EventKind,
    pub reason: Option<Text>,
}
