//! Fixtures for the policy tests: a site in Rome, at the time Monday 2026-11-16 08:00.

use berth_model::policy::{Holiday, Policy, Scope};
use berth_model::site::Role;
use berth_model::{Name, Span};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde_json::{Value as Json, json};

use super::*;
use crate::fixture::{person, reservation, resource};

mod clock;
mod combining;
mod following;
mod properties;
mod refusals;

fn policy(written: Json) -> Policy {
    serde_json::from_value(written).unwrap()
}

fn scope(written: Json) -> Scope {
    serde_json::from_value(written).unwrap()
}

fn policies<const N: usize>(written: [(Json, Json); N]) -> Policies {
    let read = |(of, says)| (scope(of), policy(says));
    Policies::new(written.into_iter().map(read))
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn rome() -> TimeZone {
    TimeZone::get("Europe/Rome").unwrap()
}

fn calendar() -> Calendar {
    let holidays: Vec<Holiday> = serde_json::from_value(json!([
        {"name": "Immaculate Conception", "when": {"days": {"first": "2026-12-08", "last": "2026-12-08"}}},
        {"name": "Power works", "when": {"span": {"start": "2026-11-20T12:00:00Z", "end": "2026-11-20T13:00:00Z"}}},
    ]))
    .unwrap();
    Calendar::new(rome(), &holidays)
}

/// A moment on Rome's clock: `2026-11-16 08:00`.
fn at(clock: &str) -> Timestamp {
    let zoned: Zoned = format!("{}[Europe/Rome]", clock.replace(' ', "T"))
        .parse()
        .unwrap();
    zoned.timestamp()
}

fn now() -> Timestamp {
    at("2026-11-16 08:00")
}

/// Person 1, a member, books resource 1 of type `gpu-node` for no project.
fn booking(start: &str, minutes: i64) -> Booking {
    let start = at(start);
    Booking {
        id: None,
        person: person(1),
        role: Role::Member,
        project: None,
        types: [name("gpu-node")].into(),
        resources: vec![resource(1)],
        span: Span::new(start, start + SignedDuration::from_mins(minutes)).unwrap(),
        stands_from: None,
    }
}

/// The same, as an existing booking.
fn standing(id: u64, start: &str, minutes: i64) -> Booking {
    Booking {
        id: Some(reservation(id)),
        ..booking(start, minutes)
    }
}

fn for_project(booking: Booking, project: &str) -> Booking {
    Booking {
        project: Some(name(project)),
        ..booking
    }
}

fn judge(policies: &Policies, others: &[Booking], booking: &Booking) -> Result<Accepted, Refusal> {
    judge_at(policies, others, booking, now())
}

fn judge_at(
    policies: &Policies,
    others: &[Booking],
    booking: &Booking,
    now: Timestamp,
) -> Result<Accepted, Refusal> {
    let calendar = calendar();
    let ledger = Ledger::beside(booking, others, policies, &calendar);
    let desk = Desk {
        rules: &booking.rules(policies),
        calendar: &calendar,
        ledger: &ledger,
        now,
    };
    desk.judge(booking)
}
