//! Audit entries and events: numbered without gaps while many write, chained so that tampering shows.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use berth_model::audit::{Actor, AuditEntry};
use berth_model::event::{Audience, Event, EventKind, NumberedEvent};
use berth_model::{AuditId, EventId};
use berth_store::audit::Verification;
use berth_store::{Conn, Engine, Error, Refused, Result, Store, audit, events, sequencer};
use berth_testkit::wait;

use crate::support::{Home, fresh_id, hour, on_both, refusal, someone_waits, transact};

const WRITERS: u64 = 16;
const CHANGES: u64 = 20;
/// Long beside what it waits for, short beside a developer's patience.
const PATIENCE: Duration = Duration::from_secs(60);

on_both!(
    numbers_have_no_gaps_while_many_write,
    a_live_chain_verifies_at_any_time,
    what_is_not_chained_yet_is_not_shown_but_counted,
    a_change_that_did_not_happen_gets_no_number,
    the_log_only_grows,
    a_changed_entry_is_found,
    a_missing_entry_is_found,
    a_missing_end_is_found,
    a_changed_head_is_found,
    a_forged_entry_is_found,
);

fn entry(subject: &str) -> AuditEntry {
    AuditEntry {
        id: AuditId(fresh_id()),
        at: hour(0),
        actor: Actor::System,
        origin: Some("test".to_owned()),
        site: None,
        action: "test.write".to_owned(),
        subject: subject.to_owned(),
        before: None,
        after: Some(serde_json::json!({ "of": subject })),
        reason: None,
    }
}

fn event(subject: &str) -> Event {
    Event {
        id: EventId(fresh_id()),
        at: hour(0),
        kind: EventKind::SiteChanged,
        site: None,
        subject: subject.to_owned(),
        audience: Audience::Admins,
        data: serde_json::json!({}),
    }
}

/// One change: an audit entry and two events, as the server writes them.
async fn write(conn: &mut Conn, subject: &str) -> Result<()> {
    audit::insert(conn, &entry(subject)).await?;
    events::insert(conn, &event(subject)).await?;
    events::insert(conn, &event(subject)).await
}

async fn write_many(store: Store, writer: u64) {
    for change in 0..CHANGES {
        let mut tx = store.begin().await.expect("a transaction");
        write(&mut tx, &format!("{writer}.{change}"))
            .await
            .expect("a change");
        tx.commit().await.expect("a commit");
    }
}

/// One step of the sequencer; none if another one was at work on the same rows.
async fn step(store: &Store) -> Option<u64> {
    match transact(store, sequencer::step).await {
        Ok(numbered) => Some(numbered),
        Err(Error::Retry) => None,
        Err(error) => panic!("the sequencer failed: {error:?}"),
    }
}

async fn number_all(store: &Store) {
    while step(store).await != Some(0) {}
}

/// A reader that asks for what is new until it has seen so many, and finds every number in its place.
async fn follow(store: &Store, events_wanted: usize) -> Vec<NumberedEvent> {
    let mut seen: Vec<NumberedEvent> = Vec::new();
    wait::until("every event", PATIENCE, async || {
        let mut conn = store.read().await.expect("a connection to read");
        let last = seen.len() as u64;
        let new = events::after(&mut conn, last, 50).await.expect("events");
        for (expected, event) in (last + 1..).zip(&new) {
            assert_eq!(event.number, expected, "a gap, or a number twice");
        }
        seen.extend(new);
        seen.len() == events_wanted
    })
    .await;
    seen
}

async fn numbers_have_no_gaps_while_many_write(home: &Home) {
    let wanted = (WRITERS * CHANGES * 2) as usize;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write_many(home.store.clone(), writer)))
        .collect();
    // Two at once, as when a lease changes hands late: they may slow each other, never disagree.
    let number = async || {
        wait::until("everything numbered", PATIENCE, async || {
            step(&home.store).await;
            let mut conn = home.read().await;
            events::last_number(&mut conn).await.expect("a number") == wanted as u64
        })
        .await;
    };
    let read = async || follow(&home.store, wanted).await;
    let (seen, also_seen, (), ()) = tokio::join!(read(), read(), number(), number());
    assert_eq!(seen, also_seen, "all read the same");
    for writer in writers {
        writer.await.expect("a writer");
    }

    let ids: BTreeSet<EventId> = seen.iter().map(|event| event.event.id).collect();
    assert_eq!(ids.len(), wanted, "none twice");
    let read = |text: &str| text.parse::<u64>().expect("a number");
    let mut last_of: BTreeMap<u64, u64> = BTreeMap::new();
    for event in &seen {
        let (writer, change) = event.event.subject.split_once('.').expect("writer.change");
        let (writer, change) = (read(writer), read(change));
        let before = last_of.insert(writer, change).unwrap_or(0);
        assert!(before <= change, "{writer} wrote {before} before {change}");
    }

    number_all(&home.store).await;
    let found = verify(home).await;
    assert_eq!(
        (found.checked, found.unchained, found.broken),
        (WRITERS * CHANGES, 0, None)
    );
}

/// Two sequencers on the same rows, step by step: the second waits for the first, and finds that its rows have a number.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_sequencers_the_second_looks_again() {
    let home = Home::postgres().await;
    for is_audit in [true, false] {
        transact(&home.store, async |tx| match is_audit {
            true => audit::insert(tx, &entry("one")).await,
            false => events::insert(tx, &event("one")).await,
        })
        .await
        .expect("a row without a number");
        let mut first = home.store.begin().await.expect("a transaction");
        assert_eq!(sequencer::step(&mut first).await.expect("a step"), 1);
        let end_the_first = async {
            wait::until("the second to wait", PATIENCE, async || {
                someone_waits(&home).await
            })
            .await;
            first.commit().await.expect("a commit");
        };
        let (second, ()) = tokio::join!(step(&home.store), end_the_first);
        assert_eq!(second, None, "it was told to try again");
        assert_eq!(step(&home.store).await, Some(0), "all have their number");
    }
}

/// Verifying takes a while, and the world does not stand still meanwhile.
async fn a_live_chain_verifies_at_any_time(home: &Home) {
    let is_growing = Cell::new(true);
    let grow = async {
        for change in 0..60 {
            transact(&home.store, async |tx| write(tx, &change.to_string()).await)
                .await
                .expect("a change");
            number_all(&home.store).await;
        }
        is_growing.set(false);
    };
    let look = async {
        let mut looks = 0;
        while is_growing.get() {
            let found = verify(home).await;
            assert_eq!(found.broken, None, "after {looks} looks that found nothing");
            looks += 1;
        }
        looks
    };
    let ((), looks) = tokio::join!(grow, look);
    assert!(looks > 1, "the chain was not looked at while it grew");
}

async fn verify(home: &Home) -> Verification {
    let mut conn = home.read().await;
    audit::verify(&mut conn).await.expect("a verification")
}

/// What is wrong, as it is told.
fn said(found: &Verification) -> Option<String> {
    found.broken.as_ref().map(ToString::to_string)
}

async fn what_is_not_chained_yet_is_not_shown_but_counted(home: &Home) {
    let write_two = async || {
        transact(&home.store, async |tx| {
            write(tx, "one").await?;
            write(tx, "two").await
        })
        .await
        .expect("two changes");
    };
    write_two().await;
    number_all(&home.store).await;
    write_two().await;
    let found = verify(home).await;
    assert_eq!((found.checked, found.unchained, found.broken), (2, 2, None));
    let mut conn = home.read().await;
    assert_eq!(
        audit::of_all(&mut conn, &audit::Filter::default(), u64::MAX, 10)
            .await
            .expect("an answer")
            .len(),
        2
    );
    assert_eq!(
        events::after(&mut conn, 0, 10)
            .await
            .expect("an answer")
            .len(),
        4
    );
    assert!(sequencer::has_work(&mut conn).await.expect("an answer"));
    drop(conn);

    number_all(&home.store).await;
    let found = verify(home).await;
    assert_eq!((found.checked, found.unchained, found.broken), (4, 0, None));
    let mut conn = home.read().await;
    assert!(!sequencer::has_work(&mut conn).await.expect("an answer"));
}

async fn a_change_that_did_not_happen_gets_no_number(home: &Home) {
    for happens in [true, false, true] {
        let mut tx = home.store.begin().await.expect("a transaction");
        write(&mut tx, &happens.to_string())
            .await
            .expect("a change");
        if happens {
            tx.commit().await.expect("a commit");
        }
    }
    number_all(&home.store).await;
    let mut conn = home.read().await;
    let seen = events::after(&mut conn, 0, 10).await.expect("events");
    let numbers: Vec<u64> = seen.iter().map(|event| event.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert!(seen.iter().all(|event| event.event.subject == "true"));
}

/// Five entries, chained.
async fn five_chained(home: &Home) {
    for change in 1..=5 {
        transact(&home.store, async |tx| write(tx, &change.to_string()).await)
            .await
            .expect("a change");
    }
    number_all(&home.store).await;
    assert_eq!(verify(home).await.checked, 5);
}

async fn the_log_only_grows(home: &Home) {
    five_chained(home).await;
    transact(&home.store, async |tx| write(tx, "not chained").await)
        .await
        .expect("a change");
    for attempt in [
        "UPDATE audit_entry SET subject = 'x' WHERE number = 3",
        "UPDATE audit_entry SET number = 9 WHERE number = 3",
        "UPDATE audit_entry SET hash = hash WHERE number = 3",
        "UPDATE audit_entry SET number = NULL, hash = NULL WHERE number = 3",
        "UPDATE audit_entry SET subject = 'x' WHERE number IS NULL",
        "UPDATE audit_entry SET reason = 'x' WHERE number IS NULL",
        "DELETE FROM audit_entry WHERE number = 3",
        "DELETE FROM audit_entry WHERE number IS NULL",
    ] {
        let refused = refusal(home.raw(attempt).await);
        assert_eq!(refused, Some(Refused::AppendOnly), "{attempt}");
    }
    let found = verify(home).await;
    assert_eq!((found.checked, found.unchained, found.broken), (5, 1, None));
}

/// Does what the triggers forbid, as someone with the database's keys could.
async fn tamper(home: &Home, sql: &str) {
    let unguarded = match home.store.engine() {
        Engine::Sqlite => format!(
            "DROP TRIGGER IF EXISTS audit_entry_kept; DROP TRIGGER IF EXISTS audit_entry_unchanged; {sql}"
        ),
        Engine::Postgres => format!("ALTER TABLE audit_entry DISABLE TRIGGER USER; {sql}"),
    };
    home.raw(&unguarded).await.expect("tampering");
}

async fn a_changed_entry_is_found(home: &Home) {
    five_chained(home).await;
    // From the last entry to the first, since only the first that is wrong is named.
    for (number, change) in [
        (5, "subject = 'someone else'"),
        (4, "at = at + 1"),
        (3, "actor_kind = 'anonymous'"),
        (2, "origin = NULL"),
        (1, "reason = ''"),
    ] {
        let update = format!("UPDATE audit_entry SET {change} WHERE number = {number}");
        tamper(home, &update).await;
        let found = verify(home).await;
        let broken = format!("entry {number} was changed after it was written");
        assert_eq!(said(&found), Some(broken), "{change}");
        assert_eq!(found.checked, number - 1, "{change}");
    }
}

async fn a_missing_entry_is_found(home: &Home) {
    five_chained(home).await;
    tamper(home, "DELETE FROM audit_entry WHERE number = 3").await;
    let found = verify(home).await;
    assert_eq!(said(&found).as_deref(), Some("entry 3 is missing"));
    assert_eq!(found.checked, 2);
}

async fn a_missing_end_is_found(home: &Home) {
    five_chained(home).await;
    tamper(home, "DELETE FROM audit_entry WHERE number >= 4").await;
    let broken = said(&verify(home).await).expect("it is noticed");
    assert!(
        broken.starts_with("entry 4 and what came after it are missing"),
        "{broken}"
    );
}

async fn a_changed_head_is_found(home: &Home) {
    five_chained(home).await;
    let other = match home.store.engine() {
        Engine::Sqlite => "zeroblob(32)",
        Engine::Postgres => "decode(repeat('00', 32), 'hex')",
    };
    for (change, said_of_it) in [
        (
            format!("hash = {other}"),
            "entry 5 is not the recorded head",
        ),
        (
            "number = 4".to_owned(),
            "entry 5 was added behind the recorded head",
        ),
    ] {
        home.raw(&format!(
            "UPDATE sequence_head SET {change} WHERE name = 'audit'"
        ))
        .await
        .expect("tampering");
        assert_eq!(said(&verify(home).await).as_deref(), Some(said_of_it));
    }
}

/// An entry that was never written by Berth, put at the end with a made-up hash, or instead of one that was there.
async fn a_forged_entry_is_found(home: &Home) {
    five_chained(home).await;
    let id = match home.store.engine() {
        Engine::Sqlite => "randomblob(16), randomblob(32)",
        Engine::Postgres => "gen_random_uuid(), decode(repeat('ab', 32), 'hex')",
    };
    let forge = |number| {
        format!(
            "INSERT INTO audit_entry (id, hash, number, at, actor_kind, action, subject)
             VALUES ({id}, {number}, 0, 'system', 'test.forge', 'x')"
        )
    };
    home.raw(&forge(6)).await.expect("an insert is allowed");
    let broken = said(&verify(home).await);
    assert_eq!(
        broken.as_deref(),
        Some("entry 6 was changed after it was written")
    );
    tamper(
        home,
        &format!(
            "DELETE FROM audit_entry WHERE number IN (2, 6); {}",
            forge(2)
        ),
    )
    .await;
    let broken = said(&verify(home).await);
    assert_eq!(
        broken.as_deref(),
        Some("entry 2 was changed after it was written")
    );
}
