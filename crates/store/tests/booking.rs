//! A booking's rows, written in one question, read back as if each had been written alone.

mod support;

use berth_model::audit::{Actor, AuditEntry};
use berth_model::event::{Audience, Event, EventKind};
use berth_model::person::{Person, PersonState};
use berth_model::reservation::{HistoryEntry, Item, Privacy, Reservation, State, Terms};
use berth_model::{AuditId, ClaimId, EventId, PersonId, ReservationId, Take};
use berth_store::{audit, booking, events, people, reservations, sequencer};

use support::lab::{Lab, span};
use support::{Home, fresh_id, hour, on_both, transact};

on_both!(
    what_a_booking_writes_reads_back,
    a_booking_is_written_whole_or_not_at_all,
);

/// Everything one booking writes.
struct Booking {
    reservation: Reservation,
    history: HistoryEntry,
    entry: AuditEntry,
    event: Event,
}

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
        booking::insert(
            tx,
            &written.reservation,
            &written.history,
            &written.entry,
            &written.event,
        )
        .await?;
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
    let entries = audit::of_all(&mut conn, u64::MAX, 10)
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
    let written = transact(&home.store, async |tx| {
        booking::insert(
            tx,
            &wrong.reservation,
            &wrong.history,
            &wrong.entry,
            &wrong.event,
        )
        .await
    })
    .await;
    assert!(written.is_err());
    let mut conn = home.read().await;
    let found = reservations::get(&mut conn, lab.site, wrong.reservation.id).await;
    assert_eq!(found.expect("an answer"), None);
    assert!(!sequencer::has_work(&mut conn).await.expect("an answer"));
}
