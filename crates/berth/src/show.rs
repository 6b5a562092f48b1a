//! How the things of Berth look on a terminal, where more than one command shows them.

use berth_api::calendar::{CalendarEntry, Conflict, EntryKind};
use berth_api::desk::{Alternative, AlternativeKind};
use berth_api::members::Settlement;
use berth_api::names::{PersonRef, ResourceRef};
use berth_api::reservations::{Reservation, ReservedResource};
use berth_model::reservation::Privacy;
use berth_model::reservation::Waited;
use berth_model::{Amount, Status};
use jiff::Timestamp;

use crate::handle::ending;
use crate::table::{Column, Screen, Table, printable};
use crate::times::Times;

/// `Ada Lovelace (ada)`.
pub fn person(person: &PersonRef) -> String {
    if person.display_name == person.login {
        printable(&person.login)
    } else {
        printable(&format!("{} ({})", person.display_name, person.login))
    }
}

/// Who did something; Berth itself does what time calls for.
pub fn by(person: Option<&PersonRef>) -> String {
    person.map_or_else(|| "Berth".to_owned(), |person| person.login.clone())
}

/// `gpu-01`, or `3 of licences`.
pub fn taken(resource: &ResourceRef, amount: Option<Amount>) -> String {
    match amount {
        Some(amount) => format!("{} of {}", amount.get(), printable(&resource.name)),
        None => printable(&resource.name),
    }
}

pub fn resources(resources: &[ReservedResource]) -> String {
    let names: Vec<String> = resources
        .iter()
        .map(|reserved| taken(&reserved.resource, reserved.amount))
        .collect();
    names.join(", ")
}

/// What a reservation has, or what it waits for.
pub fn wanted(reservation: &Reservation) -> String {
    match &reservation.terms.wait {
        None => resources(&reservation.resources),
        Some(wait) => match &wait.wish {
            Waited::Any { what, .. } => what.to_string(),
            Waited::Named(named) => {
                let named = reservation.waits_for.iter().zip(named);
                let names: Vec<String> = named.map(|(it, one)| taken(it, one.amount)).collect();
                names.join(", ")
            }
        },
    }
}

/// A booking in one sentence's worth of words: `gpu-01, Fri 20 Nov 09:00–12:00 (3 h)`.
pub fn booking(reservation: &Reservation, times: &Times) -> String {
    format!(
        "{}, {} {}",
        resources(&reservation.resources),
        times.span(reservation.start, reservation.end),
        times.zone_name()
    )
}

/// A word of the wire as people read it: `site_admin` becomes `site admin`.
pub fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word.replace('_', " "),
        _ => String::new(),
    }
}

/// Who sees more than that the time is taken.
pub fn seen_by(privacy: Privacy) -> &'static str {
    match privacy {
        Privacy::Site => "the site's members",
        Privacy::Private => "its owner and the site's admins",
    }
}

/// A status, and whose it is where a resource above has set it.
pub fn status(status: Status, from: Option<&ResourceRef>) -> String {
    match from {
        Some(above) => format!("{status} (from {})", above.name),
        None => status.to_string(),
    }
}

/// Who or what holds a claim, as far as it is told.
pub fn holder(entry: &CalendarEntry) -> String {
    let what = match entry.kind {
        EntryKind::Busy => return "busy".to_owned(),
        EntryKind::Maintenance => Some("maintenance".to_owned()),
        EntryKind::Workload => Some("workload".to_owned()),
        EntryKind::Buffer => Some("buffer".to_owned()),
        EntryKind::Reservation if entry.mine => Some("you".to_owned()),
        EntryKind::Reservation => entry.owner.as_ref().map(|owner| owner.login.clone()),
    };
    match (what, &entry.title) {
        (Some(what), Some(title)) => format!("{what}: {title}"),
        (Some(what), None) => what,
        (None, Some(title)) => title.to_string(),
        (None, None) => "taken".to_owned(),
    }
}

/// The claims in the way of what was wanted.
pub fn conflicts(conflicts: &[Conflict], times: &Times, screen: Screen) -> String {
    let mut table = Table::new(
        [
            Column::left("WANTED"),
            Column::left("TAKEN"),
            Column::left("WHEN"),
            Column::left("BY").shrinks(1),
            Column::left("ID"),
        ],
        "Nothing is in the way.",
    );
    for conflict in conflicts {
        let claim = &conflict.claim;
        table.row([
            conflict.wanted.name.clone(),
            taken(&claim.resource, claim.amount),
            times.span(claim.start, claim.end),
            holder(claim),
            claim.reservation.map(ending).unwrap_or_default(),
        ]);
    }
    times.render(&table, screen)
}

/// What else could be had, a line for each, and how to take what is held.
pub fn alternatives(alternatives: &[Alternative], times: &Times) -> String {
    let mut text = "Instead you could have, the nearest first:\n".to_owned();
    for alternative in alternatives {
        let parts: Vec<String> = alternative
            .parts
            .iter()
            .map(|part| {
                let names: Vec<String> = part
                    .resources
                    .iter()
                    .map(|resource| taken(resource, part.amount))
                    .collect();
                let span = times.span(part.start, part.end);
                format!("{span} {}: {}", part.site.name, names.join(", "))
            })
            .collect();
        let what = match alternative.kind {
            AlternativeKind::Time => "another time",
            AlternativeKind::Elsewhere => "others as good",
            AlternativeKind::Fewer => "fewer",
            AlternativeKind::Split => "in two parts",
            AlternativeKind::Shorter => "not as long",
        };
        text += &format!("  {what:<14}  {}\n", parts.join(", then "));
        for hold in &alternative.holds {
            text += &format!("  {:<14}  berth reservation take {}\n", "", ending(*hold));
        }
    }
    text
}

/// What becomes of a leaver's claims and rights.
pub fn settlement(settlement: &Settlement, times: &Times, screen: Screen) -> String {
    let mut table = Table::new(
        [
            Column::left("ID"),
            Column::left("SITE"),
            Column::left("WHEN"),
            Column::left("BECOMES"),
            Column::left("TITLE").shrinks(1),
        ],
        "No reservation is affected.",
    );
    for reservation in &settlement.reservations {
        table.row([
            ending(reservation.id),
            reservation.site.name.clone(),
            times.span(reservation.start, reservation.end),
            reservation.state.to_string(),
            reservation.title.to_string(),
        ]);
    }
    let mut text = times.render(&table, screen);
    let verb = if settlement.applied {
        "were"
    } else {
        "would be"
    };
    if settlement.workloads > 0 {
        text += &format!("Jobs that {verb} cancelled: {}\n", settlement.workloads);
    }
    if settlement.sessions > 0 {
        text += &format!("Sessions that {verb} stopped: {}\n", settlement.sessions);
    }
    text += "Their files stay where they are.\n";
    if settlement.tokens_revoked > 0 {
        text += &format!(
            "API tokens that {verb} revoked: {}\n",
            settlement.tokens_revoked
        );
    }
    text
}

/// When something ends, said so that nobody has to reckon.
pub fn expires(at: Timestamp, times: &Times) -> String {
    times.moment_and_distance(at)
}
