//! Telling: from the stream of events to a row for each person whom one concerns.
//!
//! How far the stream has been told is kept in the database and moves in the transaction that writes what is told. So
//! whoever does this may be stopped anywhere, and another goes on: nothing is lost, and nobody is told twice.

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

/// What the reader of events is called, and that of the time.
const NEWS: &str = "notifications";
const REMINDERS: &str = "reminders";

/// How many events are read at once.
const BATCH: u64 = 500;
/// How often the place in time is written down while there is nobody to remind.
const NOTED_EVERY: SignedDuration = SignedDuration::from_mins(1);

impl App {
    /// Tells of the next events; says whether there may be more. The first time it only marks where to begin: what
    /// happened before anybody could be told is not news.
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

    /// Writes an event for everybody who is to be reminded of a start or an end. Each moment is passed once, also after
    /// a stop: how far time has been looked at moves with what is written.
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
        // What runs by rights, but nobody was there to start it yet.
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

    /// Says to a person's open pages how much they have not read; to nobody else. Nothing changed that the audit log
    /// would have to tell.
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

/// Moves a reader on. One that another has moved meanwhile must not act on what it read.
async fn go_on(conn: &mut Conn, name: &str, from: u64, to: u64) -> Result<()> {
    if readers::advance(conn, name, from, to).await? {
        Ok(())
    } else {
        Err(berth_store::Error::LeaseLost.into())
    }
}

/// Whoever has left for good is told nothing more.
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
    // Only its owner and the site's admins read it, who may know.
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

/// A moment as a reader's number.
fn micros(at: Timestamp) -> u64 {
    u64::try_from(at.as_microsecond()).unwrap_or(0)
}

fn moment(number: u64) -> Timestamp {
    let micros = i64::try_from(number).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}
