//! The calendar as one person sees it, and free times.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::free::{Outlook, free_amounts, free_until};
use berth_engine::rights::Action;
use berth_engine::summary::{RowSum, StepGrid, SummedClaim, Summing};
use berth_engine::tree::Tree;
use berth_model::reference::{ResourceReference, SiteReference, TypeReference};
use berth_model::{Amount, Claim, ResourceId, Span};
use berth_store::claims::{Holders, OccupyingQuery};
use berth_store::{Conn, claims, inventory};
use jiff::{SignedDuration, Timestamp};

use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::inventory::{ResourceFilter, ResourceView, page};
use crate::place::Place;
use crate::seen::{Conflict, SeenClaim, seen, seen_class, sees_kinds};

/// The part of the calendar to show.
#[derive(Debug, Clone)]
pub struct CalendarRequest {
    pub span: Span,
    pub resources: Vec<ResourceReference>,
    pub under: Option<ResourceReference>,
    pub kind: Option<TypeReference>,
    /// How many entries to list one by one.
    pub entries_max: u64,
}

/// The calendar as one person sees it.
#[derive(Debug, Clone)]
pub struct CalendarView {
    /// The single entries, by start.
    pub entries: Vec<SeenClaim>,
    /// The sums of the claims that are too many to list.
    pub summary: Option<Summary>,
    pub directory: Directory,
}

/// Claims summed by resource and time step.
#[derive(Debug, Clone)]
pub struct Summary {
    pub grid: StepGrid,
    pub covers: SummaryCovers,
    pub rows: Vec<RowSum>,
}

/// Which claims are summed; the others are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryCovers {
    /// Workloads are the most numerous, and people look at bookings.
    Workloads,
    All,
}

/// Where to look for free time.
#[derive(Debug, Clone)]
pub struct FreeRequest {
    pub filter: ResourceFilter,
    pub window: Span,
    /// Leave out free times shorter than this.
    pub at_least: SignedDuration,
}

/// The free times of one resource.
#[derive(Debug, Clone)]
pub struct Free {
    pub view: ResourceView,
    pub spans: Vec<(Span, Option<Amount>)>,
    /// If free at the start of the window, the end of that free time. None if busy then, or free beyond the window.
    pub until: Option<Timestamp>,
    pub free_at_start: bool,
}

/// Which claims to sum so that at most `entries_max` entries are listed. None if all can be listed.
async fn covers(
    conn: &mut Conn,
    place: &Place,
    caller: &Caller,
    rows: &BTreeSet<ResourceId>,
    request: &CalendarRequest,
) -> Result<Option<SummaryCovers>> {
    let most = request.entries_max;
    let all = claims::count_up_to(conn, rows, request.span, Holders::All, most + 1).await?;
    if all <= most {
        return Ok(None);
    }
    if !sees_kinds(place, caller) {
        return Ok(Some(SummaryCovers::All));
    }
    let people = claims::count_up_to(conn, rows, request.span, Holders::People, most + 1).await?;
    Ok(Some(if people <= most {
        SummaryCovers::Workloads
    } else {
        SummaryCovers::All
    }))
}

async fn summarize(
    conn: &mut Conn,
    place: &Place,
    caller: &Caller,
    (rows, grid, covers): (&BTreeSet<ResourceId>, StepGrid, SummaryCovers),
    directory: &Directory,
) -> Result<Vec<RowSum>> {
    let capacity_of = |id| {
        let resource = directory.resources.get(&id);
        resource.and_then(|resource| Some(resource.capacity.as_ref()?.amount))
    };
    let mut summing = Summing::new(grid, capacity_of);
    let query = OccupyingQuery {
        resources: rows,
        // Whole steps, so that a step has the same sum whatever time around it is asked for.
        from: grid.start_of(0),
        to: grid.end(),
        holders: match covers {
            SummaryCovers::Workloads => Holders::Workloads,
            SummaryCovers::All => Holders::All,
        },
        own: caller.id(),
        batch: grid.step(),
    };
    claims::each_occupying(conn, query, |claim| {
        if let Some(class) = seen_class(place, caller, &claim) {
            summing.add(SummedClaim {
                resource: claim.resource,
                start_us: claim.start_us,
                end_us: claim.end_us,
                amount: claim.amount,
                class,
            });
        }
    })
    .await?;
    Ok(summing.finish())
}

/// The claims on a resource that no firm booking can move.
#[derive(Debug, Default)]
struct Standing {
    /// When a claim takes all of it. Adjacent spans are joined.
    whole: Vec<Span>,
    /// When a claim takes a part, and how much.
    shares: Vec<(Span, u64)>,
}

impl Standing {
    fn all(&self) -> impl Iterator<Item = Span> + '_ {
        let shares = self.shares.iter().map(|(span, _)| *span);
        self.whole.iter().copied().chain(shares)
    }
}

async fn standing(
    conn: &mut Conn,
    resources: &BTreeSet<ResourceId>,
    window: Span,
    caller: &Caller,
) -> Result<BTreeMap<ResourceId, Standing>> {
    let query = OccupyingQuery {
        resources,
        from: window.start(),
        to: window.end(),
        holders: Holders::All,
        own: caller.id(),
        batch: window.duration(),
    };
    let mut found: BTreeMap<ResourceId, Standing> = BTreeMap::new();
    let mut unreadable = None;
    claims::each_occupying(conn, query, |claim| {
        if !claim.is_in_the_way {
            return;
        }
        let span = match span_of(claim.start_us, claim.end_us) {
            Ok(span) => span,
            Err(error) => return unreadable = Some(error),
        };
        let standing = found.entry(claim.resource).or_default();
        match (claim.amount, standing.whole.last_mut()) {
            (Some(amount), _) => standing.shares.push((span, amount)),
            (None, Some(last)) if last.end() >= span.start() => *last = last.hull(span),
            (None, _) => standing.whole.push(span),
        }
    })
    .await?;
    match unreadable {
        Some(error) => Err(Error::Internal(error)),
        None => Ok(found),
    }
}

fn span_of(start_us: i64, end_us: i64) -> Result<Span, String> {
    let at = |micros| Timestamp::from_microsecond(micros).map_err(|error| error.to_string());
    Span::new(at(start_us)?, at(end_us)?).map_err(|error| error.to_string())
}

impl App {
    /// The claims on the requested resources and on their ancestors. If there are too many to list, sums the workloads'
    /// claims, and if that is not enough, all claims: a truncated answer would show taken time as free.
    pub async fn calendar(
        &self,
        caller: &Caller,
        site: &SiteReference,
        request: &CalendarRequest,
    ) -> Result<CalendarView> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeCalendar)
            .await?;
        let mut directory = Directory::with_site(&place.site);
        let rows = self
            .calendar_rows(&mut reader, &place, request, &mut directory)
            .await?;
        let covers = covers(&mut reader, &place, caller, &rows, request).await?;
        let listed = match covers {
            None => claims::calendar(&mut reader, &rows, request.span, Holders::All).await?,
            Some(SummaryCovers::Workloads) => {
                claims::calendar(&mut reader, &rows, request.span, Holders::People).await?
            }
            Some(SummaryCovers::All) => Vec::new(),
        };
        let mut entries: Vec<SeenClaim> = listed
            .into_iter()
            .filter_map(|entry| seen(&place, caller, entry))
            .collect();
        entries.sort_by_key(|entry| (entry.claim.span, entry.claim.id));
        let owners = entries.iter().filter_map(SeenClaim::owner);
        directory.learn_people(&mut reader, owners).await?;
        let summary = match covers {
            Some(covers) => {
                let grid = StepGrid::covering(request.span, rows.len());
                let question = (&rows, grid, covers);
                let rows = summarize(&mut reader, &place, caller, question, &directory).await?;
                Some(Summary { grid, covers, rows })
            }
            None => None,
        };
        Ok(CalendarView {
            entries,
            summary,
            directory,
        })
    }

    /// The requested resources and their ancestors: a booked rack occupies its servers.
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

    /// The free times of the matching resources, by name, starting after `after`.
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
        // A claim above or below a resource takes the resource, too.
        let mut relevant = BTreeSet::new();
        for view in &views {
            relevant.extend(tree.ancestors(view.resource.id));
            relevant.extend(tree.descendants(view.resource.id));
            relevant.insert(view.resource.id);
        }
        let standing = standing(&mut reader, &relevant, window, caller).await?;
        let closed = self.blackouts(&mut reader, caller, &place, window).await?;
        let mut free = Vec::new();
        for view in views {
            let capacity = view
                .resource
                .capacity
                .as_ref()
                .map(|capacity| capacity.amount);
            let id = view.resource.id;
            let others = tree.ancestors(id).chain(tree.descendants(id));
            let others = others.filter_map(|one| standing.get(&one));
            let mut taken: Vec<Span> = others.flat_map(Standing::all).collect();
            taken.extend(&closed);
            let own = standing.get(&id);
            taken.extend(own.into_iter().flat_map(|own| &own.whole));
            let shares = own.map_or(&[][..], |own| &own.shares);
            let spans: Vec<(Span, Option<Amount>)> = match capacity {
                Some(capacity) => free_amounts(capacity, window, &taken, shares)
                    .into_iter()
                    .map(|(span, left)| (span, Some(left)))
                    .collect(),
                None => {
                    let spans = window.minus(&taken).into_iter();
                    spans.map(|span| (span, None)).collect()
                }
            };
            let stretches = joined(spans.iter().map(|(span, _)| *span));
            let (until, free_at_start) = match free_until(&stretches, window, window.start()) {
                Outlook::Free { until } => (until, true),
                Outlook::Busy { .. } => (None, false),
            };
            let is_long_enough = |span: &Span| {
                let at = stretches.partition_point(|one| one.end() < span.end());
                let stretch = stretches.get(at);
                stretch.is_some_and(|stretch| stretch.duration() >= request.at_least)
            };
            let spans = spans.into_iter();
            free.push(Free {
                spans: spans.filter(|(span, _)| is_long_enough(span)).collect(),
                until,
                free_at_start,
                view,
            });
        }
        Ok((place, free, directory))
    }

    /// Converts conflicting claims into the form that this caller may see.
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

/// Spans in order, with adjacent ones joined.
fn joined(spans: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if last.end() == span.start() => *last = last.hull(span),
            _ => joined.push(span),
        }
    }
    joined
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
