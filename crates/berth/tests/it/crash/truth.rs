//! A small world in which everything is true, for [`super::doctored`] to lie about.

use std::collections::BTreeSet;

use berth_model::reservation::{Item, State};
use berth_model::{
    Amount, Claim, ClaimId, Firmness, Holder, ReservationId, ResourceId, SeriesId, SiteId, Span,
    Standing, Status, Take,
};
use jiff::Timestamp;
use uuid::Uuid;

use crate::proof::known::{Content, Known};
use crate::proof::ledger::{Account, Ledger, SeriesAccount, Told};
use crate::proof::stored::{Booking, Event, Place, Step, Stored};

const CAPACITY: u64 = 8;

pub fn at(hour: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + hour * 3600).expect("a moment in range")
}

pub fn span(from: i64, to: i64) -> Span {
    Span::new(at(from), at(to)).expect("a span that is not empty")
}

pub fn resource(number: u128) -> ResourceId {
    ResourceId(Uuid::from_u128(number))
}

pub fn booking(number: u128) -> ReservationId {
    ReservationId(Uuid::from_u128(number))
}

pub fn series(number: u128) -> SeriesId {
    SeriesId(Uuid::from_u128(number))
}

pub fn claim_id(number: u128) -> ClaimId {
    ClaimId(Uuid::from_u128(number))
}

pub fn share(amount: u64) -> Take {
    Take::Amount(Amount::new(amount).expect("a positive amount"))
}

/// A rack (1), a server in it (2), its cores (3).
fn lab() -> Stored {
    let mut stored = Stored::default();
    for (number, parent, capacity) in [
        (1, None, None),
        (2, Some(1), None),
        (3, Some(2), Some(CAPACITY)),
    ] {
        let place = Place {
            parent: parent.map(resource),
            capacity: capacity.map(|amount| Amount::new(amount).expect("a positive amount")),
            status: Status::Active,
        };
        stored.resources.insert(resource(number), place);
    }
    stored
}

/// A booking that was made and, if it is over, ran to its end; told as it happened.
pub fn book(
    stored: &mut Stored,
    ledger: &mut Ledger,
    number: u128,
    on: u128,
    take: Take,
    span: Span,
    state: State,
) {
    let id = booking(number);
    let content = Content {
        title: "a title".parse().expect("a title"),
        span,
        items: [(resource(on), take)].into(),
    };
    let life: &[State] = match state {
        State::Done => &[
            State::Confirmed,
            State::Starting,
            State::Active,
            State::Ending,
            State::Done,
        ],
        _ => &[State::Confirmed],
    };
    let mut trail: Vec<Step> = Vec::new();
    let mut history = Vec::new();
    for (version, state) in (1..).zip(life) {
        let after = Known {
            id,
            version,
            state: *state,
            content: content.clone(),
        };
        let before = trail.last().map(|step| step.after.clone());
        history.push((before.as_ref().map(|known| known.state), *state, span));
        let (action, kind) = match before {
            None => ("reservation.create", "reservation.created"),
            Some(_) => ("reservation.step", "reservation.changed"),
        };
        trail.push(Step {
            action: action.to_owned(),
            at: if before.is_none() {
                at(-100)
            } else {
                span.end()
            },
            by_a_person: before.is_none(),
            before,
            after,
        });
        stored.events.push(Event {
            number: Some(stored.events.len() as u64 + 1),
            kind: kind.to_owned(),
            subject: id.to_string(),
        });
    }
    stored.events_head = stored.events.len() as u64;
    let born = trail[0].after.clone();
    let now = trail.last().expect("a life").after.clone();
    let claim = Claim {
        id: claim_id(number),
        site: SiteId(Uuid::from_u128(1)),
        resource: resource(on),
        span,
        take,
        firmness: Firmness::Firm,
        container: None,
        holder: Holder::Reservation(id),
        standing: if now.state.holds() {
            Standing::Holding
        } else {
            Standing::Past
        },
    };
    let item = Item {
        resource: resource(on),
        take,
        claim: claim.id,
    };
    stored.claims.push(claim);
    stored.keys.push((format!("key-{number}"), id.to_string()));
    stored.bookings.insert(
        id,
        Booking {
            now,
            items: vec![item],
            history,
            trail,
        },
    );
    ledger.bookings.insert(
        id,
        Account {
            key: Some(format!("key-{number}")),
            told: vec![Told::answered(&born)],
            unsure: 0,
            last: born,
            waits_for: None,
        },
    );
}

/// Makes one series of bookings that were made.
fn bind(stored: &mut Stored, ledger: &mut Ledger, number: u128, of: &[u128]) {
    let id = series(number);
    let instances: BTreeSet<ReservationId> = of.iter().map(|one| booking(*one)).collect();
    for instance in &instances {
        let subject = instance.to_string();
        stored.keys.retain(|(_, of)| *of != subject);
        if let Some(account) = ledger.bookings.get_mut(instance) {
            account.key = None;
        }
    }
    stored.series.insert(id, instances.clone());
    stored.events.push(Event {
        number: Some(stored.events.len() as u64 + 1),
        kind: "series.created".to_owned(),
        subject: id.to_string(),
    });
    stored.events_head += 1;
    let key = format!("series-{number}");
    stored.keys.push((key.clone(), id.to_string()));
    ledger.series.insert(id, SeriesAccount { key, instances });
}

/// One booking that is over, one that holds, and two that share and are a series.
pub fn truth() -> (Stored, Ledger) {
    let (mut stored, mut ledger) = (lab(), Ledger::default());
    for (number, on, take, span, state) in [
        (1, 2, Take::Exclusive, span(0, 5), State::Done),
        (2, 1, Take::Exclusive, span(10, 20), State::Confirmed),
        (3, 3, share(5), span(20, 30), State::Confirmed),
        (4, 3, share(3), span(25, 35), State::Confirmed),
    ] {
        book(&mut stored, &mut ledger, number, on, take, span, state);
    }
    bind(&mut stored, &mut ledger, 1, &[3, 4]);
    (stored, ledger)
}
