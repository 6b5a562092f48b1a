//! What use cases give back, in the words of the wire.

use berth_api::calendar::{CalendarEntry, Conflict, Details};
use berth_api::desk::{Alternative, AlternativeKind, AlternativePart};
use berth_api::names::{Names, PersonRef, ProjectRef, ResourceRef, SiteRef, TypeRef};
use berth_app::{Directory, SeenClaim, desk};
use berth_model::Take;

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
                amount: match found.take {
                    Take::Exclusive => None,
                    Take::Amount(amount) => Some(amount),
                },
            })
            .collect(),
        holds: found.holds.clone(),
    };
    found.iter().map(on_the_wire).collect()
}
