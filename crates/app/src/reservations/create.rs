//! Booking.

use std::collections::BTreeSet;

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::reference::{PersonReference, ProjectReference, SiteReference};
use berth_model::reservation::{self, HistoryEntry, Privacy, Reservation, State, Terms};
use berth_model::{
    Claim, ClaimId, FieldErrors, Holder, PersonId, ProjectId, ReservationId, SecretId, Span, Text,
};
use berth_store::inventory::{Wanted, wanted};
use berth_store::{Conn, booking, projects, reservations, secrets, sites};
use jiff::SignedDuration;
use serde_json::json;

use super::check::{self, CheckedAnswers, Item, RawAnswers};
use super::hold::{Softer, is_taken};
use crate::App;
use crate::calendar::split;
use crate::caller::Caller;
use crate::clock::fresh;
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
    /// Whose it is to be; the caller's own if none is named.
    pub owner: Option<PersonReference>,
    /// Only keep it free for a moment; [`App::take_reservation`] makes it a booking.
    pub hold: bool,
}

/// Long enough to read what is offered, too short to keep others out by habit.
pub(crate) const HOLD_LIFE: SignedDuration = SignedDuration::from_secs(120);
pub(crate) const HOLDS_MAX: u64 = 3;

/// A reservation that stands, with everything it names.
#[derive(Debug, Clone)]
pub struct Booked {
    pub reservation: Reservation,
    pub directory: Directory,
}

/// What a booking would come to.
pub type Preview = Result<State, Error>;

/// A booking that met every condition but the database's own.
struct Draft {
    reservation: Reservation,
    claims: Vec<Claim>,
    answers: CheckedAnswers,
    directory: Directory,
}

impl App {
    pub async fn book(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewReservation,
    ) -> Result<Made<Booked>> {
        let id = ReservationId(fresh(self.now()));
        let mut wanted = None;
        for softer in [Softer::LeftAlone, Softer::GiveWay] {
            let made = transact!(self, tx => {
                let place = self.booking_place(&mut tx, caller, site).await?;
                if let Some(earlier) = self.first_time(&mut tx, caller, id).await? {
                    return Ok(Made::before(self.booked(&mut tx, &place, earlier).await?));
                }
                let draft = self.draft(&mut tx, caller, &place, new, id).await?;
                wanted = Some((place, draft.claims.clone()));
                self.hold(&mut tx, &By::from(caller), &draft.claims, softer).await?;
                self.write(&mut tx, caller, &draft).await?;
                Ok(Made::now(draft.booked()))
            });
            match made {
                Err(error) if is_taken(&error) => {}
                made => {
                    if new.hold {
                        self.planned.notify_one();
                    }
                    self.falls_due(new.span.start());
                    return made;
                }
            }
        }
        match wanted {
            Some((place, claims)) => Err(self.refusal(&place, caller, &claims, &[]).await),
            None => Err(Error::Internal(
                "a claim was refused that nobody made".into(),
            )),
        }
    }

    /// Goes through with a booking up to the claims, and then withdraws it: the answer is the real one.
    pub async fn preview_booking(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewReservation,
    ) -> Result<Preview> {
        let mut reader = self.store.read().await?;
        let place = self.place(&mut reader, caller, site, Action::Book).await?;
        drop(reader);
        let mut tx = self.store.begin().await?;
        let draft = match self
            .draft(
                &mut tx,
                caller,
                &place,
                new,
                ReservationId(fresh(self.now())),
            )
            .await
        {
            Ok(draft) => draft,
            Err(error) => {
                tx.withdraw().await?;
                return Ok(Err(error));
            }
        };
        let held = self
            .hold(&mut tx, &By::from(caller), &draft.claims, Softer::GiveWay)
            .await;
        tx.withdraw().await?;
        Ok(match held {
            Ok(()) => Ok(draft.reservation.state),
            Err(error) if is_taken(&error) => {
                Err(self.refusal(&place, caller, &draft.claims, &[]).await)
            }
            Err(error) => Err(error),
        })
    }

    /// Everything that can be decided before the claim rule is asked.
    async fn draft(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        new: &NewReservation,
        id: ReservationId,
    ) -> Result<Draft> {
        let now = self.now();
        check::times(new.span, now)?;
        self.expect_open(conn, caller, place, new.span).await?;
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

        let holder = Holder::Reservation(id);
        let claims: Vec<Claim> = matched
            .iter()
            .map(|(wanted, take)| {
                let resource = wanted.resource.id;
                Claim::firm(
                    ClaimId(fresh(now)),
                    place.id(),
                    resource,
                    new.span,
                    *take,
                    holder,
                )
            })
            .collect();
        learn(
            &mut directory,
            &matched
                .iter()
                .map(|(wanted, _)| *wanted)
                .collect::<Vec<_>>(),
        );
        if new.hold && reservations::count_held(conn, owner).await? >= HOLDS_MAX {
            return Err(Error::TooManyHolds);
        }
        // An admin's booking needs nobody's leave but the admin's.
        let decided = place.can(caller, Action::DecideReservation);
        let asks = !decided && matched.iter().any(|(wanted, _)| wanted.kind.needs_approval);
        let reservation = Reservation {
            id,
            site: place.id(),
            owner,
            project,
            title: new.title.clone(),
            privacy: new.privacy,
            state: match (new.hold, asks) {
                (true, _) => State::Held,
                (false, true) => State::PendingApproval,
                (false, false) => State::Confirmed,
            },
            state_reason: None,
            span: new.span,
            items: claims
                .iter()
                .map(|c| reservation::Item {
                    resource: c.resource,
                    take: c.take,
                    claim: c.id,
                })
                .collect(),
            parameters: answers.shown.clone(),
            terms: Terms {
                asks_leave: asks,
                decide_by: new.hold.then(|| now + HOLD_LIFE),
                ..Terms::default()
            },
            version: 1,
            created_at: now,
            updated_at: now,
        };
        Ok(Draft {
            reservation,
            claims,
            answers,
            directory,
        })
    }

    async fn booking_owner(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        owner: Option<&PersonReference>,
        directory: &mut Directory,
    ) -> Result<PersonId> {
        let owner = match owner {
            // Held with the place already, or a global admin, who books without being a member.
            None => caller.person.clone(),
            Some(owner) => {
                let owner = self.person(conn, owner).await?;
                if owner.id != caller.id() {
                    place.may(caller, Action::BookForOthers, false, "person")?;
                    // Until the end, so that a removal of this member and their booking cannot pass each other by.
                    let role = sites::role_locked(conn, place.id(), owner.id).await?;
                    role.ok_or(Error::NotFound("member of this site"))?;
                }
                owner
            }
        };
        directory.add_person(&owner);
        Ok(owner.id)
    }

    pub(super) async fn booking_project(
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

    /// The reservation itself, its secrets, its first line of history, and the record of it.
    async fn write(&self, conn: &mut Conn, caller: &Caller, draft: &Draft) -> Result<()> {
        let reservation = &draft.reservation;
        let change = Change::new("reservation.create", Some(reservation.site), reservation.id)
            .after(reservation)
            .tell_only(
                EventKind::ReservationCreated,
                Audience::Members,
                told(reservation),
            );
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
        booking::insert(conn, reservation, &history, &entry, &event).await?;
        self.keep_secrets(conn, reservation, &draft.answers).await
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

    /// A reservation that an earlier request made, as it is now.
    async fn booked(&self, conn: &mut Conn, place: &Place, id: ReservationId) -> Result<Booked> {
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

impl Draft {
    fn booked(self) -> Booked {
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

/// A reservation for the event stream, which every member reads: of a private one only what the calendar shows.
pub(super) fn told(reservation: &Reservation) -> serde_json::Value {
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
    told
}
