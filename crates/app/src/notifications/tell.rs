//! Turns the stream of events into one row for each person whom an event concerns.
//!
//! The database stores the position in the stream. The position moves in the same transaction that writes the
//! notifications. So a server can stop anywhere and another can continue: no notification is lost or sent twice.

use std::collections::{BTreeSet, HashSet};

use berth_engine::notify::{Moment, REMIND_BEFORE, reminds};
use berth_model::event::{Audience, Event, EventKind};
use berth_model::notification::Notification;
use berth_model::person::PersonState;
use berth_model::reservation::{Reservation, State};
use berth_model::{EventId, PersonId};
use berth_store::leases::{self, Lease};
use berth_store::{Conn, events, notifications, people, readers, reservations};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::App;
use crate::clock::fresh;
use crate::error::Result;
use crate::reservations::told;
use crate::transact::transact;

/// The name of the event reader, and of the reminder reader.
const NEWS: &str = "notifications";
const REMINDERS: &str = "reminders";

/// How many events are read at once.
const BATCH: u64 = 500;
/// How often the reminder position is written while no reminder is due.
const NOTED_EVERY: SignedDuration = SignedDuration::from_mins(1);

impl App {
    /// Writes notifications for the next events. Returns whether there may be more. The first call only marks where to
    /// begin: earlier events are not news.
    pub(crate) async fn tell_news(&self, lease: &Lease) -> Result<bool> {
        let mut reader = self.store.read().await?;
        let Some(seen) = readers::position(&mut reader, NEWS).await? else {
            let newest = events::last_number(&mut reader).await?;
            drop(reader);
            self.begin(lease, NEWS, newest).await?;
            return Ok(false);
        };
        let news = events::after(&mut reader, seen, BATCH).await?;
        let Some(last) = news.last().map(|one| one.number) else {
            return Ok(false);
        };
        let mut told = self.whom_to_tell(&mut reader, &news).await?;
        only_those_who_are_there(&mut reader, &mut told).await?;
        drop(reader);
        transact!(self, tx => {
            leases::check(&mut tx, lease).await?;
            go_on(&mut tx, NEWS, seen, last).await?;
            let mut has_news = BTreeSet::new();
            for one in &told {
                if notifications::insert(&mut tx, one).await? {
                    has_news.insert(one.person);
                }
            }
            for person in has_news {
                self.tell_count(&mut tx, EventKind::NotificationCreated, person).await?;
            }
            Ok(())
        })?;
        Ok(news.len() as u64 == BATCH)
    }

    /// Writes an event for each reminder of a start or an end that is due. The position in time moves in the same
    /// transaction. So no moment is skipped or repeated, even after a stop.
    pub(crate) async fn remind(&self, lease: &Lease) -> Result<()> {
        let now = self.now();
        let mut reader = self.store.read().await?;
        let Some(noted) = readers::position(&mut reader, REMINDERS).await? else {
            drop(reader);
            return self.begin(lease, REMINDERS, micros(now)).await;
        };
        let passed = moment(noted);
        if now <= passed {
            return Ok(());
        }
        let (after, until) = (passed + REMIND_BEFORE, now + REMIND_BEFORE);
        let starting = reservations::starting(&mut reader, after, until).await?;
        let mut ending = reservations::ending(&mut reader, after, until).await?;
        // Reservations whose start is overdue: they still have to be reminded of their end.
        let overdue = reservations::due(&mut reader, now, BATCH).await?;
        let ends_soon = |one: &Reservation| {
            let end = one.span.end();
            one.state == State::Confirmed && after < end && end <= until
        };
        ending.extend(overdue.into_iter().filter(ends_soon));
        drop(reader);
        let starts = starting.iter().map(|one| (Moment::Start, one));
        let ends = ending.iter().map(|one| (Moment::End, one));
        let due: Vec<Event> = starts
            .chain(ends)
            .filter(|(of, one)| reminds(*of, one.span, now))
            .map(|(of, one)| reminder(of, one, now))
            .collect();
        if due.is_empty() && now.duration_since(passed) < NOTED_EVERY {
            return Ok(());
        }
        transact!(self, tx => {
            leases::check(&mut tx, lease).await?;
            go_on(&mut tx, REMINDERS, noted, micros(now)).await?;
            for event in &due {
                events::insert(&mut tx, event).await?;
            }
            Ok(())
        })
    }

    async fn begin(&self, lease: &Lease, name: &str, number: u64) -> Result<()> {
        transact!(self, tx => {
            leases::check(&mut tx, lease).await?;
            Ok(readers::begin(&mut tx, name, number).await?)
        })
    }

    /// Sends the number of unread notifications to a person's open pages, and to nobody else. It writes no audit entry,
    /// because nothing changed.
    pub(super) async fn tell_count(
        &self,
        conn: &mut Conn,
        kind: EventKind,
        person: PersonId,
    ) -> Result<u64> {
        let unread = notifications::unread(conn, person).await?;
        let now = self.now();
        let event = Event {
            id: EventId(fresh(now)),
            at: now,
            kind,
            site: None,
            subject: person.to_string(),
            audience: Audience::Person(person),
            data: json!({ "unread": unread }),
        };
        events::insert(conn, &event).await?;
        Ok(unread)
    }
}

/// Advances a reader. Fails if another server has advanced it meanwhile: this server must then not act on its data.
async fn go_on(conn: &mut Conn, name: &str, from: u64, to: u64) -> Result<()> {
    if readers::advance(conn, name, from, to).await? {
        Ok(())
    } else {
        Err(berth_store::Error::LeaseLost.into())
    }
}

/// Drops the notifications for people who were removed.
async fn only_those_who_are_there(conn: &mut Conn, told: &mut Vec<Notification>) -> Result<()> {
    let people: BTreeSet<PersonId> = told.iter().map(|one| one.person).collect();
    let known = people::named(conn, people.into_iter().collect()).await?;
    let there = known
        .iter()
        .filter(|person| person.state != PersonState::Removed);
    let there: HashSet<PersonId> = there.map(|person| person.id).collect();
    told.retain(|one| there.contains(&one.person));
    Ok(())
}

fn reminder(of: Moment, about: &Reservation, now: Timestamp) -> Event {
    let mut data = told(about);
    data["about"] = json!(of.as_str());
    // Only the owner and the site's admins read the reminder, and they may know the title.
    data["title"] = json!(about.title);
    Event {
        id: EventId(fresh(now)),
        at: now,
        kind: EventKind::ReservationReminder,
        site: Some(about.site),
        subject: about.id.to_string(),
        audience: Audience::Person(about.owner),
        data,
    }
}

/// A moment as a reader's position.
fn micros(at: Timestamp) -> u64 {
    u64::try_from(at.as_microsecond()).unwrap_or(0)
}

fn moment(number: u64) -> Timestamp {
    let micros = i64::try_from(number).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}
