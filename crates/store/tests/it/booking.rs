//! A booking's rows, written in one question, read back as if each had been written alone.

use berth_model::audit::{Actor, AuditEntry};
use berth_model::event::{Audience, Event, EventKind};
use berth_model::person::{Person, PersonState};
use berth_model::recurrence::{Pattern, Terms as PatternTerms};
use berth_model::reservation::{HistoryEntry, Item, Privacy, Reservation, State, Terms};
use berth_model::{
    AuditId, ClaimId, EventId, Occurrence, PersonId, ReservationId, Series, SeriesId, Take,
};
use berth_store::booking::Booking;
use berth_store::{audit, booking, events, people, reservations, sequencer, series};
use jiff::SignedDuration;
use jiff::civil::datetime;

use crate::support::lab::{Lab, span};
use crate::support::{Home, fresh_id, hour, on_both, transact};

on_both!(
    what_a_booking_writes_reads_back,
    a_booking_is_written_whole_or_not_at_all,
    a_series_is_written_like_so_many_bookings,
);

async fn owner(home: &Home) -> PersonId {
    let person = Person {
        id: PersonId(fresh_id()),
        login: "anna".parse().expect("a login"),
        display_name: "Anna".parse().expect("a name"),
        email: None,
        time_zone: "Europe/Rome".parse().expect("a time zone"),
        global_admin: false,
        state: PersonState::Active,
        version: 1,
        created_at: hour(0),
    };
    transact(&home.store, async |tx| people::insert(tx, &person).await)
        .await
        .expect("a person");
    person.id
}

async fn draft(home: &Home, lab: &Lab) -> Booking {
    let (owner, gpu) = (owner(home).await, lab.thing(None).await);
    let id = ReservationId(fresh_id());
    let reservation = Reservation {
        id,
        site: lab.site,
        owner,
        project: None,
        title: "Training".parse().expect("a title"),
        privacy: Privacy::Private,
        state: State::PendingApproval,
        state_reason: Some("asked for".parse().expect("a reason")),
        span: span(2, 5),
        items: vec![Item {
            resource: gpu,
            take: Take::Exclusive,
            claim: ClaimId(fresh_id()),
        }],
        parameters: Default::default(),
        terms: Terms {
            asks_leave: true,
            decide_by: Some(hour(2)),
            ..Terms::default()
        },
        occurrence: None,
        version: 1,
        created_at: hour(1),
        updated_at: hour(1),
    };
    let history = HistoryEntry {
        reservation: id,
        at: hour(1),
        from: None,
        to: reservation.state,
        span: reservation.span,
        by: Some(owner),
        reason: Some("why not".parse().expect("a reason")),
    };
    let entry = AuditEntry {
        id: AuditId(fresh_id()),
        at: hour(1),
        actor: Actor::Person(owner),
        origin: Some("192.0.2.7".to_owned()),
        site: Some(lab.site),
        action: "reservation.create".to_owned(),
        subject: id.to_string(),
        before: None,
        after: Some(serde_json::json!({ "title": "Training" })),
        reason: history.reason.clone(),
    };
    let event = Event {
        id: EventId(fresh_id()),
        at: hour(1),
        kind: EventKind::ReservationCreated,
        site: Some(lab.site),
        subject: id.to_string(),
        audience: Audience::Person(owner),
        data: serde_json::json!({ "reservation": id }),
    };
    Booking {
        reservation,
        history,
        entry,
        event,
    }
}

async fn what_a_booking_writes_reads_back(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let written = draft(home, &lab).await;
    transact(&home.store, async |tx| {
        booking::insert(tx, &written).await?;
        sequencer::step(tx).await
    })
    .await
    .expect("a booking");

    let id = written.reservation.id;
    let mut conn = home.read().await;
    let reservation = reservations::get(&mut conn, lab.site, id).await;
    assert_eq!(reservation.expect("an answer"), Some(written.reservation));
    let history = reservations::history(&mut conn, id).await;
    assert_eq!(history.expect("an answer"), [written.history]);
    let entries = audit::of_all(&mut conn, &audit::Filter::default(), u64::MAX, 10)
        .await
        .expect("entries");
    let entries: Vec<AuditEntry> = entries.into_iter().map(|chained| chained.entry).collect();
    assert_eq!(entries, [written.entry]);
    let events = events::after(&mut conn, 0, 10).await.expect("events");
    let events: Vec<Event> = events.into_iter().map(|numbered| numbered.event).collect();
    assert_eq!(events, [written.event]);

    let due = reservations::due(&mut conn, hour(2), 10)
        .await
        .expect("what is due");
    assert_eq!(due.len(), 1, "its time comes when it starts");
}

async fn a_booking_is_written_whole_or_not_at_all(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let mut wrong = draft(home, &lab).await;
    // Nobody of this name is known, which only the history's row finds out.
    wrong.history.by = Some(PersonId(fresh_id()));
    let written = transact(&home.store, async |tx| booking::insert(tx, &wrong).await).await;
    assert!(written.is_err());
    let mut conn = home.read().await;
    let found = reservations::get(&mut conn, lab.site, wrong.reservation.id).await;
    assert_eq!(found.expect("an answer"), None);
    assert!(!sequencer::has_work(&mut conn).await.expect("an answer"));
}

/// A series of three Mondays whose instances are written by one statement.
async fn a_series_is_written_like_so_many_bookings(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let first = draft(home, &lab).await;
    let pattern = Pattern::new(PatternTerms {
        start: datetime(2027, 3, 1, 9, 0, 0, 0),
        length: SignedDuration::from_hours(3),
        time_zone: "Europe/Rome".parse().expect("a zone"),
        recurrence: "FREQ=WEEKLY;COUNT=3".parse().expect("a rule"),
        except: [].into(),
    });
    let made = Series {
        id: SeriesId(fresh_id()),
        site: lab.site,
        owner: first.reservation.owner,
        title: first.reservation.title.clone(),
        privacy: Privacy::Private,
        pattern: pattern.expect("a pattern"),
        ends: hour(30),
        version: 1,
        created_at: hour(1),
        updated_at: hour(1),
    };
    let one = |nth: i64| {
        let mut one = first.clone();
        let id = ReservationId(fresh_id());
        one.reservation.id = id;
        // Quotes, escapes and other people's letters pass through JSON on the way.
        one.reservation.title = format!("\"{nth}\" \\ Größe \u{1f52c}")
            .parse()
            .expect("a title");
        one.reservation.span = span(10 * nth, 10 * nth + 5);
        one.reservation.occurrence = Some(Occurrence {
            series: made.id,
            start: datetime(2027, 3, nth as i8, 9, 0, 0, 0),
            differs: nth == 2,
        });
        one.history.reservation = id;
        one.history.span = one.reservation.span;
        one.entry.id = AuditId(fresh_id());
        one.entry.subject = id.to_string();
        one.event.id = EventId(fresh_id());
        one.event.subject = id.to_string();
        one
    };
    let written: Vec<Booking> = (1..4).map(one).collect();
    transact(&home.store, async |tx| {
        series::insert(tx, &made).await?;
        booking::insert_all(tx, &written).await?;
        sequencer::step(tx).await
    })
    .await
    .expect("a series");

    let mut conn = home.read().await;
    let found = series::get(&mut conn, lab.site, made.id).await;
    assert_eq!(found.expect("an answer"), Some(made.clone()));
    let instances = reservations::of_series(&mut conn, made.id).await;
    let expected: Vec<Reservation> = written.iter().map(|one| one.reservation.clone()).collect();
    assert_eq!(instances.expect("an answer"), expected);
    for one in &written {
        let history = reservations::history(&mut conn, one.reservation.id).await;
        assert_eq!(
            history.expect("an answer"),
            std::slice::from_ref(&one.history)
        );
    }
    let entries = audit::of_all(&mut conn, &audit::Filter::default(), u64::MAX, 10)
        .await
        .expect("entries");
    let mut entries: Vec<AuditEntry> = entries.into_iter().map(|chained| chained.entry).collect();
    entries.reverse();
    let expected: Vec<AuditEntry> = written.iter().map(|one| one.entry.clone()).collect();
    assert_eq!(entries, expected, "in the order of the instances");
    let events = events::after(&mut conn, 0, 10).await.expect("events");
    let events: Vec<Event> = events.into_iter().map(|numbered| numbered.event).collect();
    let expected: Vec<Event> = written.iter().map(|one| one.event.clone()).collect();
    assert_eq!(events, expected);
    let due = reservations::due(&mut conn, hour(100), 10)
        .await
        .expect("what is due");
    assert_eq!(due.len(), 3);
}
