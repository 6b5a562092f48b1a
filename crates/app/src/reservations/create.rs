//! Books resources: drafts a reservation from a request, takes its claims under the claim rule, and writes it.

use std::collections::BTreeSet;

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::reference::{PersonReference, ProjectReference, SiteReference};
use berth_model::reservation::{self, AtEnd, HistoryEntry, Privacy, Reservation, State, Terms};
use berth_model::{
    Claim, ClaimId, FieldErrors, Holder, PersonId, ProjectId, ReservationId, ResourceId, SecretId,
    Selection, SiteId, Span, Take, Text,
};
use berth_store::booking::Booking;
use berth_store::inventory::{Wanted, wanted};
use berth_store::{Conn, booking, projects, reservations, secrets};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::check::{self, CheckedAnswers, Item, RawAnswers};
use super::hold::{Softer, is_taken};
use crate::App;
use crate::calendar::split;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::desk::{For, MADE_ROOM, RefusedBooking, Relocation, WaitFor};
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::place::Place;
use crate::record::{By, Change};
use crate::transact::transact;
use crate::vault::SecretPlace;

#[derive(Debug, Clone)]
pub struct NewReservation {
    pub title: Text,
    pub span: Span,
    pub items: Vec<Item>,
    pub project: Option<ProjectReference>,
    pub privacy: Privacy,
    pub parameters: RawAnswers,
    /// The owner of the booking. None means the caller.
    pub owner: Option<PersonReference>,
    /// Only hold it for a short time. [`App::take_reservation`] turns the hold into a booking.
    pub hold: bool,
    /// For a booking by kind: the `Selection` that was asked for. The items are the resources that were found.
    pub any: Option<Selection>,
    /// Never move the booking to other resources of its kind.
    pub pinned: bool,
    /// Join the waitlist if the resources are taken, instead of being refused.
    pub wait: Option<WaitFor>,
    pub at_end: AtEnd,
    pub lends: Option<bool>,
}

/// How long before its start a booking by kind is no longer moved.
const FREEZE: SignedDuration = SignedDuration::from_hours(2);

/// Long enough to read the alternatives, too short to block others by habit.
pub(crate) const HOLD_LIFE: SignedDuration = SignedDuration::from_secs(120);
pub(crate) const HOLDS_MAX: u64 = 3;

/// A reservation that was made, with everything it names.
#[derive(Debug, Clone)]
pub struct Booked {
    pub reservation: Reservation,
    pub directory: Directory,
}

/// The result that a booking would have.
pub type Preview = Result<State, Error>;

/// A booking that has passed every check except the database's.
pub(crate) struct Draft {
    pub reservation: Reservation,
    claims: Vec<Claim>,
    answers: CheckedAnswers,
    directory: Directory,
}

/// A booking request without its time. It is looked up and checked once, even if it is then drafted for many times.
pub(super) struct Order {
    pub owner: PersonId,
    project: Option<ProjectId>,
    title: Text,
    privacy: Privacy,
    pub takes: Vec<(ResourceId, Take)>,
    pub answers: CheckedAnswers,
    hold: bool,
    any: Option<Selection>,
    pinned: bool,
    at_end: AtEnd,
    lends: Option<bool>,
    pub directory: Directory,
}

/// Claims that the claim rule refused.
pub(crate) struct Taken {
    pub place: Place,
    pub of: For,
    pub claims: Vec<Claim>,
}

impl App {
    pub async fn book(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewReservation,
    ) -> Result<Made<Booked>> {
        let booked = self.book_uncounted(caller, site, new).await;
        self.tallied(site, booked)
    }

    async fn book_uncounted(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewReservation,
    ) -> Result<Made<Booked>> {
        match self.try_book(caller, site, new, &[]).await? {
            Ok(made) => Ok(made),
            Err(Taken { place, claims, .. }) if let Some(until_room) = new.wait => {
                self.wait_named(caller, place.id(), new, &claims, until_room)
                    .await
            }
            Err(taken) => Err(self.refused(caller, new, &taken).await),
        }
    }

    /// Books, after moving other bookings by kind out of the way. A refusal by the claim rule is not an error yet,
    /// because the caller may have another way.
    pub(crate) async fn try_book(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewReservation,
        moves: &[Relocation],
    ) -> Result<Result<Made<Booked>, Taken>> {
        let id = ReservationId(fresh(self.now()));
        let mut wanted = None;
        for softer in [Softer::LeftAlone, Softer::GiveWay] {
            let made = transact!(self, tx => {
                let place = self.booking_place(&mut tx, caller, site).await?;
                if let Some(earlier) = self.first_time(&mut tx, caller, id).await? {
                    return Ok(Made::before(self.booked(&mut tx, &place, earlier).await?));
                }
                let draft = self.draft(&mut tx, caller, &place, new, id).await?;
                let by = By::from(caller);
                let site = place.id();
                wanted = Some(Taken { place, of: draft.of(), claims: draft.claims.clone() });
                self.relocate(&mut tx, &by, site, moves, MADE_ROOM).await?;
                self.hold(&mut tx, &by, &draft.claims, softer).await?;
                self.write(&mut tx, caller, &draft).await?;
                Ok(Made::now(draft.booked()))
            });
            match made {
                Err(error) if is_taken(&error) => {
                    let claims = wanted.as_ref().map_or(&[][..], |taken| &taken.claims);
                    // Usually no claim would give way, and a second try would cost as much as the first.
                    if softer == Softer::GiveWay || !self.would_anyone_yield(claims).await? {
                        break;
                    }
                }
                made => {
                    if new.hold {
                        self.planned.notify_one();
                    }
                    self.falls_due(new.span.start());
                    return made.map(Ok);
                }
            }
        }
        wanted
            .map(Err)
            .ok_or_else(|| Error::Internal("a claim was refused that nobody made".into()))
    }

    /// The refusal, with alternatives.
    async fn refused(&self, caller: &Caller, new: &NewReservation, taken: &Taken) -> Error {
        let Taken { place, of, claims } = taken;
        let refusal = self.refusal(place, caller, claims, &[]).await;
        let refused = RefusedBooking {
            of: of.clone(),
            span: new.span,
            claims,
            standing: None,
        };
        self.with_alternatives(refusal, caller, place, Some(new), &refused)
            .await
    }

    /// The reservation that an earlier request with the caller's idempotency key made, if any.
    pub(crate) async fn made_before(
        &self,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<Option<Booked>> {
        let mut reader = self.store.read().await?;
        let Some(earlier) = self.earlier(&mut reader, caller).await? else {
            return Ok(None);
        };
        let place = self.place(&mut reader, caller, site, Action::Book).await?;
        self.booked(&mut reader, &place, earlier).await.map(Some)
    }

    /// Makes a booking including its claims, and then rolls it back. So the answer is the real one.
    pub async fn preview_booking(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewReservation,
    ) -> Result<Preview> {
        self.preview_with(caller, site, new, &[]).await
    }

    pub(crate) async fn preview_with(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewReservation,
        moves: &[Relocation],
    ) -> Result<Preview> {
        let mut reader = self.store.read().await?;
        let place = self.place(&mut reader, caller, site, Action::Book).await?;
        drop(reader);
        let mut tx = self.store.begin().await?;
        let id = ReservationId(fresh(self.now()));
        let draft = match self.draft(&mut tx, caller, &place, new, id).await {
            Ok(draft) => draft,
            Err(error) => {
                tx.withdraw().await?;
                return Ok(Err(error));
            }
        };
        let by = By::from(caller);
        let moved = self
            .relocate(&mut tx, &by, place.id(), moves, MADE_ROOM)
            .await;
        let held = match moved {
            Ok(()) => {
                self.hold(&mut tx, &by, &draft.claims, Softer::GiveWay)
                    .await
            }
            Err(error) => Err(error),
        };
        tx.withdraw().await?;
        Ok(match held {
            Ok(()) => Ok(draft.reservation.state),
            Err(error) if is_taken(&error) => {
                let (of, claims) = (draft.of(), draft.claims);
                let taken = Taken { place, of, claims };
                Err(self.refused(caller, new, &taken).await)
            }
            Err(error) => Err(error),
        })
    }

    /// Makes every decision that precedes the claim rule.
    pub(crate) async fn draft(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        new: &NewReservation,
        id: ReservationId,
    ) -> Result<Draft> {
        let mut draft = self.draft_unjudged(conn, caller, place, new, id).await?;
        let (booking, claims) = (&mut draft.reservation, &mut draft.claims);
        self.judge(conn, caller, place, &draft.directory, booking, claims)
            .await?;
        Ok(draft)
    }

    pub(crate) async fn draft_unjudged(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        new: &NewReservation,
        id: ReservationId,
    ) -> Result<Draft> {
        check::times(new.span, self.now())?;
        let order = self.order(conn, caller, place, new).await?;
        let (reservation, claims) = order.draft(place.id(), id, new.span, self.now());
        Ok(Draft {
            reservation,
            claims,
            answers: order.answers,
            directory: order.directory,
        })
    }

    /// Drafts one of many bookings that an order makes at different times. `beside` are the bookings of the same
    /// request that are not written yet.
    #[expect(
        clippy::too_many_arguments,
        reason = "an order, its time, and who asks where"
    )]
    pub(super) async fn draft_at(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        order: &Order,
        id: ReservationId,
        span: Span,
        beside: &[Reservation],
    ) -> Result<(Reservation, Vec<Claim>)> {
        check::times(span, self.now())?;
        let (mut booking, mut claims) = order.draft(place.id(), id, span, self.now());
        let (directory, drafted) = (&order.directory, (&mut booking, &mut claims));
        self.judge_beside(conn, caller, place, directory, beside, drafted)
            .await?;
        Ok((booking, claims))
    }

    /// Looks up and checks a booking request, except for its time.
    pub(super) async fn order(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        new: &NewReservation,
    ) -> Result<Order> {
        let mut directory = Directory::with_site(&place.site);
        let owner = self
            .booking_owner(conn, caller, place, new.owner.as_ref(), &mut directory)
            .await?;
        let project = self
            .booking_project(
                conn,
                caller,
                place,
                owner,
                new.project.as_ref(),
                &mut directory,
            )
            .await?;
        let references: Vec<_> = new.items.iter().map(|item| item.resource.clone()).collect();
        let (ids, names) = split(&references);
        let found = wanted(conn, place.id(), ids, names).await?;
        let matched = check::matched(&new.items, &found)?;
        check::active(matched.iter().map(|(wanted, _)| *wanted))?;
        let answers = check::answers(&matched, &new.parameters, &BTreeSet::new())?;
        let resources: Vec<_> = matched.iter().map(|(wanted, _)| *wanted).collect();
        learn(&mut directory, &resources);
        if new.hold && reservations::count_held(conn, owner).await? >= HOLDS_MAX {
            return Err(Error::TooManyHolds);
        }
        Ok(Order {
            owner,
            project,
            title: new.title.clone(),
            privacy: new.privacy,
            takes: matched
                .iter()
                .map(|(wanted, take)| (wanted.resource.id, *take))
                .collect(),
            answers,
            hold: new.hold,
            any: new.any.clone(),
            pinned: new.pinned,
            at_end: new.at_end,
            lends: new.lends,
            directory,
        })
    }

    pub(crate) async fn booking_owner(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        owner: Option<&PersonReference>,
        directory: &mut Directory,
    ) -> Result<PersonId> {
        let owner = match owner {
            // The membership is already locked, or the caller is a global admin, who books without being a member.
            None => caller.person.clone(),
            Some(owner) => {
                if caller.is(owner) {
                    caller.person.clone()
                } else {
                    place.may(caller, Action::BookForOthers, false, "person")?;
                    let what = "member of this site";
                    self.member_named(conn, place.id(), owner, what).await?
                }
            }
        };
        directory.add_person(&owner);
        Ok(owner.id)
    }

    pub(crate) async fn booking_project(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        owner: PersonId,
        project: Option<&ProjectReference>,
        directory: &mut Directory,
    ) -> Result<Option<ProjectId>> {
        let Some(project) = project else {
            return Ok(None);
        };
        let project = self.project(conn, place.id(), project).await?;
        let allowed = projects::member_since(conn, project.id, owner)
            .await?
            .is_some()
            || place.can(caller, Action::ManageProjects);
        if !allowed {
            let message = format!(
                "the booking's owner is not in the project `{}`",
                project.name
            );
            return Err(FieldErrors::one("project", message).into());
        }
        let id = project.id;
        directory.projects.insert(id, project);
        Ok(Some(id))
    }

    /// Writes the reservation, its secrets, its first history entry, the audit entry and the event.
    pub(crate) async fn write(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        draft: &Draft,
    ) -> Result<()> {
        let booking = self.booking(caller, draft.reservation.clone())?;
        booking::insert(conn, &booking).await?;
        self.keep_secrets(conn, &draft.reservation, &draft.answers)
            .await
    }

    /// The reservation with its first history entry, audit entry and event, ready to be written.
    pub(super) fn booking(&self, caller: &Caller, reservation: Reservation) -> Result<Booking> {
        let kind = match reservation.state {
            // The event `ReservationCreated` follows when it becomes a booking.
            State::Waiting => EventKind::ReservationWaiting,
            _ => EventKind::ReservationCreated,
        };
        let change = Change::new("reservation.create", Some(reservation.site), reservation.id)
            .after(&reservation)
            .tell_only(kind, Audience::Members, told(&reservation));
        let (entry, event) = self.written(caller, change);
        let event = event.ok_or_else(|| Error::Internal("a booking tells of itself".into()))?;
        let history = HistoryEntry {
            reservation: reservation.id,
            at: entry.at,
            from: None,
            to: reservation.state,
            span: reservation.span,
            by: Some(caller.id()),
            reason: None,
        };
        Ok(Booking {
            reservation,
            history,
            entry,
            event,
        })
    }

    pub(super) async fn keep_secrets(
        &self,
        conn: &mut Conn,
        of: &Reservation,
        answers: &CheckedAnswers,
    ) -> Result<()> {
        for (type_name, parameter, value) in &answers.secrets {
            let id = SecretId(fresh(self.now()));
            let place = SecretPlace {
                id,
                site: of.site,
                reservation: of.id,
                type_name,
                parameter,
            };
            let sealed = self
                .vault
                .seal(place, value)
                .map_err(|error| Error::Internal(error.to_string()))?;
            secrets::put(conn, &sealed).await?;
        }
        Ok(())
    }

    /// The current state of a reservation that an earlier request made.
    pub(crate) async fn booked(
        &self,
        conn: &mut Conn,
        place: &Place,
        id: ReservationId,
    ) -> Result<Booked> {
        let found = reservations::get(conn, place.id(), id).await?;
        let reservation = found.ok_or(Error::IdempotencyMismatch)?;
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

impl Order {
    /// The reservation that this order makes at a time, with its claims.
    fn draft(
        &self,
        site: SiteId,
        id: ReservationId,
        span: Span,
        now: Timestamp,
    ) -> (Reservation, Vec<Claim>) {
        let holder = Holder::Reservation(id);
        let claim = |(resource, take): &(ResourceId, Take)| {
            Claim::firm(ClaimId(fresh(now)), site, *resource, span, *take, holder)
        };
        let claims: Vec<Claim> = self.takes.iter().map(claim).collect();
        let reservation = Reservation {
            id,
            site,
            owner: self.owner,
            project: self.project,
            title: self.title.clone(),
            privacy: self.privacy,
            // `judge` decides whether the booking needs an approval.
            state: if self.hold {
                State::Held
            } else {
                State::Confirmed
            },
            state_reason: None,
            span,
            items: claims.iter().map(reservation::Item::from).collect(),
            parameters: self.answers.shown.clone(),
            terms: Terms {
                decide_by: self.hold.then(|| now + HOLD_LIFE),
                movable_until: movable_until(self.any.as_ref(), self.pinned, span, now),
                any: self.any.clone(),
                at_end: self.at_end,
                lends: self.lends,
                ..Terms::default()
            },
            occurrence: None,
            version: 1,
            created_at: now,
            updated_at: now,
        };
        (reservation, claims)
    }
}

/// Until when the booking may be moved to other resources of its kind.
pub(crate) fn movable_until(
    any: Option<&Selection>,
    pinned: bool,
    span: Span,
    now: Timestamp,
) -> Option<Timestamp> {
    let until = span.start() - FREEZE;
    (any.is_some() && !pinned && now < until).then_some(until)
}

impl Draft {
    /// The owner and the project of the booking.
    fn of(&self) -> For {
        let project = self.reservation.project;
        let project = project.and_then(|id| self.directory.projects.get(&id));
        For {
            owner: self.reservation.owner,
            project: project.map(|project| project.name.clone()),
        }
    }

    pub fn booked(self) -> Booked {
        Booked {
            reservation: self.reservation,
            directory: self.directory,
        }
    }
}

pub(super) fn learn(directory: &mut Directory, wanted: &[&Wanted]) {
    for wanted in wanted {
        directory.add_type(&wanted.kind);
        directory.add_resource(&wanted.resource);
    }
}

/// A reservation for the event stream, which every member reads. A private one shows only what the calendar shows.
pub(crate) fn told(reservation: &Reservation) -> serde_json::Value {
    let resources: Vec<_> = reservation.items.iter().map(|item| item.resource).collect();
    let mut told = json!({
        "reservation": reservation.id,
        "resources": resources,
        "start": reservation.span.start(),
        "end": reservation.span.end(),
        "state": reservation.state,
        "version": reservation.version,
    });
    if reservation.privacy == Privacy::Site {
        told["title"] = json!(reservation.title);
        told["owner"] = json!(reservation.owner);
        told["reason"] = json!(reservation.state_reason);
    }
    if let Some(occurrence) = reservation.occurrence {
        told["series"] = json!(occurrence.series);
    }
    told
}
