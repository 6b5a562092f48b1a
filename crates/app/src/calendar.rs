//! The calendar as one person sees it, and what is free.

use std::collections::BTreeSet;

use berth_engine::free::{Occupancy, Outlook, free_until};
use berth_engine::rights::Action;
use berth_engine::tree::Tree;
use berth_model::reference::{ResourceReference, SiteReference, TypeReference};
use berth_model::{Amount, Claim, ResourceId, Span, Take};
use berth_store::{Conn, claims, inventory};
use jiff::{SignedDuration, Timestamp};

use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::inventory::{ResourceFilter, ResourceView, page};
use crate::place::Place;
use crate::seen::{Conflict, SeenClaim, seen};

/// What part of the calendar to show.
#[derive(Debug, Clone)]
pub struct CalendarRequest {
    pub span: Span,
    pub resources: Vec<ResourceReference>,
    pub under: Option<ResourceReference>,
    pub kind: Option<TypeReference>,
}

/// Where to look for free time.
#[derive(Debug, Clone)]
pub struct FreeRequest {
    pub filter: ResourceFilter,
    pub window: Span,
    /// Shorter stretches are of no use to whoever asks.
    pub at_least: SignedDuration,
}

/// When one resource is free.
#[derive(Debug, Clone)]
pub struct Free {
    pub view: ResourceView,
    pub spans: Vec<(Span, Option<Amount>)>,
    /// If free at the start of the window, until when; none if busy then or free beyond the window.
    pub until: Option<Timestamp>,
    pub free_at_start: bool,
}

/// Entries are few for a person and many for a campus; past this the caller narrows the question. A cut answer would
/// show taken time as free, so there is none.
const ENTRIES_MAX: u64 = 50_000;

pub(crate) async fn entries(
    conn: &mut Conn,
    rows: &BTreeSet<ResourceId>,
    span: Span,
) -> Result<Vec<claims::Entry>> {
    let entries = claims::calendar(conn, rows, span, ENTRIES_MAX + 1).await?;
    if entries.len() as u64 > ENTRIES_MAX {
        return Err(Error::TooMuch(format!(
            "more than {ENTRIES_MAX} bookings lie in that time; ask for fewer resources or a shorter time"
        )));
    }
    Ok(entries)
}

impl App {
    /// What occupies the wanted resources, and what above them does, by start.
    pub async fn calendar(
        &self,
        caller: &Caller,
        site: &SiteReference,
        request: &CalendarRequest,
    ) -> Result<(Place, Vec<SeenClaim>, Directory)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeCalendar)
            .await?;
        let mut directory = Directory::with_site(&place.site);
        let wanted = self
            .calendar_rows(&mut reader, &place, request, &mut directory)
            .await?;
        let entries = entries(&mut reader, &wanted, request.span).await?;
        let mut shown: Vec<SeenClaim> = entries
            .into_iter()
            .filter_map(|entry| seen(&place, caller, entry))
            .collect();
        let owners = shown.iter().filter_map(SeenClaim::owner);
        directory.learn_people(&mut reader, owners).await?;
        shown.sort_by_key(|entry| (entry.claim.span, entry.claim.id));
        Ok((place, shown, directory))
    }

    /// The resources asked for, and those above them: a booked rack occupies its servers.
    async fn calendar_rows(
        &self,
        conn: &mut Conn,
        place: &Place,
        request: &CalendarRequest,
        directory: &mut Directory,
    ) -> Result<BTreeSet<ResourceId>> {
        if request.under.is_none() && request.kind.is_none() && !request.resources.is_empty() {
            let (ids, names) = split(&request.resources);
            let wanted = inventory::wanted(conn, place.id(), ids, names).await?;
            if wanted.len() < request.resources.iter().collect::<BTreeSet<_>>().len() {
                return Err(Error::NotFound("resource"));
            }
            for wanted in &wanted {
                directory.add_type(&wanted.kind);
                directory.add_resource(&wanted.resource);
                wanted
                    .above
                    .iter()
                    .for_each(|above| directory.add_resource(above));
            }
            directory.learn_resources(conn, []).await?;
            return Ok(directory.resources.keys().copied().collect());
        }
        let filter = ResourceFilter {
            kind: request.kind.clone(),
            under: request.under.clone(),
            ..Default::default()
        };
        let (views, all) = self.matching(conn, place, &filter).await?;
        let (ids, names) = split(&request.resources);
        let asked = |view: &&ResourceView| {
            request.resources.is_empty()
                || ids.contains(&view.resource.id)
                || names.iter().any(|name| name == view.resource.name.as_str())
        };
        let mut rows = BTreeSet::new();
        for view in views.iter().filter(asked) {
            let mut next = Some(view.resource.id);
            while let Some(id) = next.filter(|id| rows.insert(*id)) {
                next = all.resources.get(&id).and_then(|resource| resource.parent);
            }
        }
        *directory = all;
        Ok(rows)
    }

    /// When the matching resources, by name from the one after `after`, are free.
    pub async fn free(
        &self,
        caller: &Caller,
        site: &SiteReference,
        request: &FreeRequest,
        after: &str,
        limit: usize,
    ) -> Result<(Place, Vec<Free>, Directory)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeFreeBusy)
            .await?;
        let window = request.window;
        let (mut views, directory) = self.matching(&mut reader, &place, &request.filter).await?;
        page(&mut views, after, limit);
        let tree = Tree::new(
            directory
                .resources
                .values()
                .map(|resource| (resource.id, resource.parent)),
        )
        .map_err(|error| Error::Internal(error.to_string()))?;
        // What is taken above or below a resource takes it too.
        let mut relevant = BTreeSet::new();
        for view in &views {
            relevant.extend(tree.ancestors(view.resource.id));
            relevant.extend(tree.descendants(view.resource.id));
            relevant.insert(view.resource.id);
        }
        let standing: Vec<Claim> = entries(&mut reader, &relevant, window)
            .await?
            .into_iter()
            .map(|entry| entry.claim)
            .collect();
        let occupancy = Occupancy::new(&tree, &standing);
        let mut free = Vec::new();
        for view in views {
            let capacity = view
                .resource
                .capacity
                .as_ref()
                .map(|capacity| capacity.amount);
            let id = view.resource.id;
            let spans = occupancy.free_spans(id, Take::Exclusive, capacity, window);
            let (until, free_at_start) = match free_until(&spans, window, window.start()) {
                Outlook::Free { until } => (until, true),
                Outlook::Busy { .. } => (None, false),
            };
            let spans = spans
                .into_iter()
                .filter(|span| span.duration() >= request.at_least)
                .map(|span| (span, capacity));
            free.push(Free {
                spans: spans.collect(),
                until,
                free_at_start,
                view,
            });
        }
        Ok((place, free, directory))
    }

    /// Turns conflicting claims into what this caller may see of them.
    pub(crate) async fn explain(
        &self,
        conn: &mut Conn,
        place: &Place,
        caller: &Caller,
        pairs: Vec<(ResourceId, Claim)>,
        directory: &mut Directory,
    ) -> Result<Vec<Conflict>> {
        let ids = pairs.iter().map(|(_, claim)| claim.id).collect();
        let entries = claims::entries(conn, ids).await?;
        let touched = pairs
            .iter()
            .flat_map(|(wanted, claim)| [*wanted, claim.resource]);
        directory
            .learn_resources(conn, touched.collect::<BTreeSet<_>>())
            .await?;
        let mut conflicts = Vec::new();
        for (wanted, claim) in pairs {
            let entry = entries
                .iter()
                .find(|entry| entry.claim.id == claim.id)
                .cloned();
            let visible = entry.and_then(|entry| seen(place, caller, entry));
            conflicts.extend(visible.map(|claim| Conflict { wanted, claim }));
        }
        let owners = conflicts
            .iter()
            .filter_map(|conflict| conflict.claim.owner());
        directory.learn_people(conn, owners).await?;
        Ok(conflicts)
    }
}

pub(crate) fn split(references: &[ResourceReference]) -> (Vec<ResourceId>, Vec<String>) {
    let (mut ids, mut names) = (Vec::new(), Vec::new());
    for reference in references {
        match reference {
            berth_model::Reference::Id(id) => ids.push(*id),
            berth_model::Reference::Name(name) => names.push(name.to_string()),
        }
    }
    (ids, names)
}
