//! What use cases give back, in the words of the wire.

use berth_api::calendar::{CalendarEntry, Conflict, Details};
use berth_api::desk::{Alternative, AlternativeKind, AlternativePart};
use berth_api::names::{Names, PersonRef, ProjectRef, ResourceRef, SiteRef, TypeRef};
use berth_api::policies::{Acceptable, Breach};
use berth_app::{Directory, SeenClaim, desk};
use berth_engine::policy::{self, Accepts, Value};
use berth_model::policy::Length;
use jiff::SignedDuration;

/// The names that an answer needs, from what the use case met on its way.
pub fn names(directory: &Directory) -> Names {
    let mut names = Names::default();
    for person in directory.people.values() {
        names.add_person(PersonRef::from(person));
    }
    for site in directory.sites.values() {
        names.add_site(SiteRef::from(site));
    }
    for project in directory.projects.values() {
        names.add_project(ProjectRef::from(project));
    }
    for kind in directory.types.values() {
        names.add_type(TypeRef::from(kind));
    }
    for resource in directory.resources.values() {
        if let Some(kind) = directory.types.get(&resource.type_id) {
            names.add_resource(ResourceRef::new(resource, kind));
        }
    }
    names
}

/// A claim as the calendar shows it, with no more than its viewer may see.
pub fn entry(seen: &SeenClaim, names: &Names) -> CalendarEntry {
    match &seen.details {
        None => CalendarEntry::busy(&seen.claim, names),
        Some(details) => {
            let details = Details {
                title: details.title.clone(),
                owner: details.owner,
                state: details.state,
                mine: details.mine,
                is_buffer: details.is_buffer,
            };
            CalendarEntry::open(&seen.claim, details, names)
        }
    }
}

/// Conflicts as they cross the wire.
pub fn conflicts(found: &[berth_app::Conflict], directory: &Directory) -> Vec<Conflict> {
    let names = names(directory);
    let on_the_wire = |conflict: &berth_app::Conflict| Conflict {
        wanted: names.resource(conflict.wanted),
        claim: entry(&conflict.claim, &names),
    };
    found.iter().map(on_the_wire).collect()
}

/// What else could be had, as it crosses the wire.
pub fn alternatives(found: &[desk::Alternative], directory: &Directory) -> Vec<Alternative> {
    let names = names(directory);
    let on_the_wire = |found: &desk::Alternative| Alternative {
        kind: match found.kind {
            desk::AlternativeKind::Time => AlternativeKind::Time,
            desk::AlternativeKind::Elsewhere => AlternativeKind::Elsewhere,
            desk::AlternativeKind::Fewer => AlternativeKind::Fewer,
            desk::AlternativeKind::Split => AlternativeKind::Split,
            desk::AlternativeKind::Shorter => AlternativeKind::Shorter,
        },
        distance_s: found.distance.as_secs(),
        parts: found
            .parts
            .iter()
            .map(|part| AlternativePart {
                site: names.site(part.site),
                start: part.span.start(),
                end: part.span.end(),
                resources: part
                    .resources
                    .iter()
                    .map(|id| names.resource(*id))
                    .collect(),
                amount: found.take.amount(),
            })
            .collect(),
        holds: found.holds.clone(),
    };
    found.iter().map(on_the_wire).collect()
}

/// Broken rules as they cross the wire.
pub fn breaches(found: &[policy::Breach]) -> Vec<Breach> {
    let on_the_wire = |breach: &policy::Breach| Breach {
        rule: breach.rule,
        value: value(&breach.value),
        from: breach.from.clone(),
        detail: breach.to_string(),
        accepts: acceptable(&breach.accepts),
    };
    found.iter().map(on_the_wire).collect()
}

/// A rule's value as it stands in a policy.
pub fn value(value: &Value) -> serde_json::Value {
    let written = match value {
        Value::Length(length) | Value::Hours(length) => serde_json::to_value(length),
        Value::Step(step) => serde_json::to_value(step),
        Value::Count(count) => serde_json::to_value(count),
        Value::Flag(flag) => serde_json::to_value(flag),
        Value::Who(who) => serde_json::to_value(who),
        Value::OpeningHours(hours) => serde_json::to_value(hours),
        Value::Approval(rule) => serde_json::to_value(rule),
    };
    // Made of texts, numbers and lists of them, which always serialise.
    written.unwrap_or_default()
}

fn acceptable(accepts: &Accepts) -> Acceptable {
    let length = |time: SignedDuration| {
        Length::from_minutes(u32::try_from(time.as_mins()).unwrap_or(u32::MAX))
    };
    let nothing = Acceptable::default();
    match accepts {
        Accepts::Nothing | Accepts::Others | Accepts::Later => nothing,
        Accepts::Start(start) => Acceptable {
            start: start.as_ref().map(|start| start.timestamp()),
            ..nothing
        },
        Accepts::AtLeast(least) => Acceptable {
            at_least: Some(length(*least)),
            ..nothing
        },
        Accepts::AtMost(most) => Acceptable {
            at_most: Some(length(*most)),
            ..nothing
        },
        Accepts::Lengths(lengths) => Acceptable {
            lengths: lengths.iter().map(|one| length(*one)).collect(),
            ..nothing
        },
        Accepts::InWeek { left, start } => Acceptable {
            left_in_week: Some(length(*left)),
            start: start.as_ref().map(|start| start.timestamp()),
            ..nothing
        },
    }
}
