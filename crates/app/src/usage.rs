//! The usage of a site: how much, by whom and when, and the outcomes of bookings.
//!
//! Every request computes the figures from claims and reservations, so no stored figure can contradict them.
//! [`berth_engine::usage`] defines what is counted.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use berth_engine::rights::Action;
use berth_engine::usage::{
    Buckets, Counted, Grid, LeadTimes, Ledger, Measured, Part, Step, gather,
};
use berth_model::reference::{SiteReference, TypeReference};
use berth_model::reservation::State;
use berth_model::site::Site;
use berth_model::{FieldErrors, PersonId, ProjectId, ResourceId, Span, Status, TypeId};
use berth_store::usage::{self, Booking, Thing};
use berth_store::{Conn, inventory, sites};
use jiff::{SignedDuration, Timestamp};

use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::Result;
use crate::reservations::LENGTH_MAX;

/// The longest time of a request: a year, and a month to compare with.
pub const RANGE_MAX: SignedDuration = SignedDuration::from_hours(400 * 24);
pub const BUCKETS_MAX: usize = 1000;
/// How many people and projects are named; the others are summed.
pub const RANKED_MAX: usize = 20;
/// The default time: the days up to now.
const USUALLY: SignedDuration = SignedDuration::from_hours(30 * 24);
/// A cancellation later than this before the start hardly lets anybody else use the time.
pub const SHORT_NOTICE: SignedDuration = SignedDuration::from_hours(24);
const HOURS_OF_THE_WEEK: usize = 7 * 24;
/// How many sites are read at once.
const SITES_AT_ONCE: u64 = 500;

#[derive(Debug, Clone)]
pub struct UsageRequest {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub step: Step,
    /// Count only resources of this type.
    pub kind: Option<TypeReference>,
    /// Only the caller's own use.
    pub mine: bool,
}

/// Whole seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seconds {
    pub available: u64,
    pub used: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    pub resources: usize,
    pub total: Seconds,
    /// One for each bucket.
    pub buckets: Vec<Seconds>,
}

/// The usage of one person or project.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Share {
    /// One for each bucket. Empty if nothing was used.
    pub used_s: Vec<f64>,
    /// Bookings that start within the time, without cancelled and rejected ones, holds and waiting reservations.
    pub bookings: u64,
}

impl Share {
    pub fn total_s(&self) -> f64 {
        self.used_s.iter().sum()
    }

    fn join(mut self, other: &Share) -> Share {
        self.used_s
            .resize(self.used_s.len().max(other.used_s.len()), 0.0);
        for (sum, one) in self.used_s.iter_mut().zip(&other.used_s) {
            *sum += one;
        }
        self.bookings += other.bookings;
        self
    }
}

/// The greatest shares, and the sum of the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking<K> {
    pub first: Vec<(K, Share)>,
    pub others: usize,
    pub rest: Share,
}

/// The outcomes of the bookings that start within the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// All except rejected and cancelled ones, holds, and waiting reservations.
    pub bookings: u64,
    pub no_shows: u64,
    pub cancelled: u64,
    /// Of the cancelled ones, those on short notice.
    pub cancelled_late: u64,
    pub rejected: u64,
    pub failed: u64,
}

/// One reason why bookings were refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalCount {
    pub code: String,
    pub rule: Option<String>,
    pub count: u64,
}

#[derive(Debug, Clone)]
pub struct SiteUsage {
    pub site: Site,
    pub span: Span,
    pub kind: Option<TypeId>,
    pub buckets: Vec<Span>,
    pub all: Figures,
    /// By the name of the type.
    pub kinds: Vec<(TypeId, Figures)>,
    pub people: Ranking<PersonId>,
    /// None stands for bookings without a project.
    pub projects: Ranking<Option<ProjectId>>,
    /// From Monday at midnight, hour by hour.
    pub week: Vec<Seconds>,
    pub leads: LeadTimes,
    pub outcomes: Outcomes,
    /// None for a request of only the caller's own use, because refusals are not counted by person.
    pub refusals: Option<Vec<RefusalCount>>,
    pub directory: Directory,
}

/// A request with its defaults filled in and its names looked up.
struct Question {
    span: Span,
    step: Step,
    kind: Option<TypeId>,
    mine: Option<PersonId>,
}

impl App {
    /// The usage of a site. Its admins see all of it, its members their own.
    pub async fn usage(
        &self,
        caller: &Caller,
        site: &SiteReference,
        request: &UsageRequest,
    ) -> Result<SiteUsage> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeUsage)
            .await?;
        place.may(caller, Action::SeeUsage, request.mine, "site")?;
        let span = self.asked_span(request.from, request.to)?;
        let zone = place.site.time_zone.rules();
        let buckets = Grid::new(span, zone).buckets(request.step).spans.len();
        if buckets > BUCKETS_MAX {
            let message = format!(
                "these would be {buckets} buckets, and at most {BUCKETS_MAX} are shown: choose longer ones, or a shorter time"
            );
            return Err(FieldErrors::one("bucket", message).into());
        }
        let kind = match &request.kind {
            Some(kind) => Some(self.resource_type(&mut reader, place.id(), kind).await?.id),
            None => None,
        };
        let question = Question {
            span,
            step: request.step,
            kind,
            mine: request.mine.then(|| caller.id()),
        };
        self.work_out(&mut reader, &place.site, &question).await
    }

    /// The sums of every site.
    pub async fn usage_of_all(
        &self,
        caller: &Caller,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
    ) -> Result<(Span, Vec<SiteUsage>)> {
        caller.may(Action::SeeAllUsage, false, "site")?;
        let question = Question {
            span: self.asked_span(from, to)?,
            step: Step::Week,
            kind: None,
            mine: None,
        };
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let mut reader = self.store.read().await?;
            let page =
                sites::list_for(&mut reader, caller.id(), true, &after, SITES_AT_ONCE).await?;
            let Some((last, _)) = page.last() else {
                return Ok((question.span, found));
            };
            after = last.name.to_string();
            for (site, _) in page {
                found.push(self.work_out(&mut reader, &site, &question).await?);
            }
        }
    }

    fn asked_span(&self, from: Option<Timestamp>, to: Option<Timestamp>) -> Result<Span> {
        let to = to.unwrap_or_else(|| self.now());
        let from = from.unwrap_or(to - USUALLY);
        let span =
            Span::new(from, to).map_err(|error| FieldErrors::one("to", error.to_string()))?;
        if span.duration() > RANGE_MAX {
            let message = "at most 400 days are looked at at once";
            return Err(FieldErrors::one("from", message).into());
        }
        Ok(span)
    }

    async fn work_out(
        &self,
        conn: &mut Conn,
        site: &Site,
        question: &Question,
    ) -> Result<SiteUsage> {
        let span = question.span;
        let things = usage::things(conn, site.id, span).await?;
        let outs = outs(conn, site, &things, span).await?;
        let mut kinds: Vec<TypeId> = things.iter().map(|thing| thing.kind).collect();
        kinds.extend(question.kind);
        kinds.sort_unstable();
        kinds.dedup();
        let number_of_kind = |kind| kinds.binary_search(&kind).unwrap_or_default();
        let counted = question
            .kind
            .map_or(Counted::Leaves, |kind| Counted::Kind(number_of_kind(kind)));
        let parts = parts(&things, outs, number_of_kind);
        let zone = site.time_zone.rules();
        let mut ledger = Ledger::new(span, zone.clone(), parts, kinds.len(), counted);
        let buckets = ledger.buckets(question.step);

        let is_asked_for =
            |owner: Option<PersonId>| question.mine.is_none() || question.mine == owner;
        let mut people: HashMap<PersonId, Share> = HashMap::new();
        let mut projects: HashMap<Option<ProjectId>, Share> = HashMap::new();
        let resources: Vec<ResourceId> = things.iter().map(|thing| thing.id).collect();
        usage::taken(conn, &resources, span, LENGTH_MAX, |taken| {
            if !is_asked_for(taken.owner) {
                return;
            }
            let mut shares = taken.owner.map(|owner| {
                let person = people.entry(owner).or_default();
                (person, projects.entry(taken.project).or_default())
            });
            ledger.add(taken.place, taken.span, taken.amount, |span, times| {
                if let Some((person, project)) = &mut shares {
                    buckets.spread(span, times, &mut person.used_s);
                    buckets.spread(span, times, &mut project.used_s);
                }
            });
        })
        .await?;

        let mut leads = Vec::new();
        let mut outcomes = Outcomes::default();
        usage::bookings(conn, site.id, span, |booking| {
            if !is_asked_for(Some(booking.owner)) {
                return;
            }
            if outcomes.count(&booking) {
                leads.push(booking.span.start().duration_since(booking.created_at));
                people.entry(booking.owner).or_default().bookings += 1;
                projects.entry(booking.project).or_default().bookings += 1;
            }
        })
        .await?;

        let refusals = match question.mine {
            Some(_) => None,
            None => {
                let day = |at: Timestamp| zone.to_datetime(at).date();
                let last = span.end() - SignedDuration::from_micros(1);
                let (from, to) = (day(span.start()), day(last));
                Some(usage::refusals(conn, site.id, from, to).await?)
            }
        };
        let measured = ledger.close();
        let (people, projects) = (ranking(people), ranking(projects));
        let mut directory = Directory::with_site(site);
        let named: Vec<PersonId> = people.first.iter().map(|(id, _)| *id).collect();
        directory.learn_people(conn, named).await?;
        let named: Vec<ProjectId> = projects.first.iter().filter_map(|(id, _)| *id).collect();
        directory.learn_projects(conn, named).await?;
        for kind in inventory::types_named(conn, kinds.clone()).await? {
            directory.add_type(&kind);
        }
        let week = measured.grid.hours_of_the_week();
        let gathered = |cells: &[f64]| gather(&week, HOURS_OF_THE_WEEK, cells);
        let week = pairs(
            gathered(&measured.all.available_s),
            gathered(&measured.all.used_s),
        );
        let mut kinds: Vec<(TypeId, Figures)> = kinds
            .into_iter()
            .zip(&measured.kinds)
            .map(|(kind, one)| (kind, figures(one, &buckets)))
            .collect();
        let name = |kind: &TypeId| directory.types.get(kind).map(|kind| kind.name.clone());
        kinds.sort_by_key(|(kind, _)| name(kind));
        let reason = |(code, rule, count)| RefusalCount { code, rule, count };
        Ok(SiteUsage {
            site: site.clone(),
            span,
            kind: question.kind,
            all: figures(&measured.all, &buckets),
            kinds,
            buckets: buckets.spans,
            people,
            projects,
            week,
            leads: LeadTimes::of(leads),
            outcomes,
            refusals: refusals.map(|all| all.into_iter().map(reason).collect()),
            directory,
        })
    }
}

/// When each resource was itself unavailable: not created yet, removed, out of service or under maintenance.
async fn outs(
    conn: &mut Conn,
    site: &Site,
    things: &[Thing],
    span: Span,
) -> Result<HashMap<ResourceId, Vec<Span>>> {
    let mut outs: HashMap<ResourceId, Vec<Span>> = HashMap::new();
    let mut put = |resource, from, to| {
        if let Ok(out) = Span::new(from, to) {
            outs.entry(resource).or_default().push(out);
        }
    };
    for thing in things {
        put(thing.id, span.start(), thing.created_at.min(span.end()));
        if let Some(removed_at) = thing.removed_at {
            put(thing.id, removed_at, span.end());
        }
    }
    let changes = usage::status_changes(conn, site.id, span.end()).await?;
    for (nth, (resource, status, at)) in changes.iter().enumerate() {
        // Until the next change. Without one, the status lasts to the end of the span.
        let next = changes.get(nth + 1).filter(|next| next.0 == *resource);
        if *status != Status::Active {
            let until = next.map_or(span.end(), |next| next.2);
            put(*resource, (*at).max(span.start()), until);
        }
    }
    for (resource, window) in usage::maintained(conn, site.id, span).await? {
        put(resource, window.start(), window.end());
    }
    Ok(outs)
}

fn parts(
    things: &[Thing],
    mut outs: HashMap<ResourceId, Vec<Span>>,
    number_of_kind: impl Fn(TypeId) -> usize,
) -> Vec<Part> {
    let numbers: BTreeMap<ResourceId, usize> = things
        .iter()
        .enumerate()
        .map(|(number, thing)| (thing.id, number))
        .collect();
    let part = |thing: &Thing| Part {
        parent: thing
            .parent
            .and_then(|parent| numbers.get(&parent).copied()),
        kind: number_of_kind(thing.kind),
        capacity: thing.capacity,
        out: outs.remove(&thing.id).unwrap_or_default(),
    };
    things.iter().map(part).collect()
}

impl Outcomes {
    /// Counts a booking. Returns whether it was one that should have taken place.
    fn count(&mut self, booking: &Booking) -> bool {
        match booking.state {
            // Nothing was promised yet.
            State::Waiting | State::Held => return false,
            State::Cancelled => {
                // A hold that expired, or a reservation that waited in vain, was never a booking.
                if !matches!(booking.cancelled_from, Some(State::Held | State::Waiting)) {
                    self.cancelled += 1;
                    let notice = booking.span.start().duration_since(booking.updated_at);
                    self.cancelled_late += u64::from(notice < SHORT_NOTICE);
                }
                return false;
            }
            State::Rejected => {
                self.rejected += 1;
                return false;
            }
            State::Failed => self.failed += 1,
            State::PendingApproval
            | State::Confirmed
            | State::Starting
            | State::Active
            | State::Ending
            | State::Done => {}
        }
        self.bookings += 1;
        let is_over = matches!(booking.state, State::Ending | State::Done);
        // An owner who ended the booking before the check-in deadline gave it back. A no-show is released only at the
        // deadline or later.
        let awaited = booking.awaited_until;
        self.no_shows += u64::from(is_over && awaited.is_some_and(|by| by <= booking.span.end()));
        true
    }
}

fn ranking<K: Copy + Eq + Hash + Ord>(all: HashMap<K, Share>) -> Ranking<K> {
    let mut first: Vec<(K, Share)> = all.into_iter().collect();
    // Ties are ordered by id, so that the same request gets the same answer.
    first.sort_by(|(a, x), (b, y)| {
        let by_use = y.total_s().total_cmp(&x.total_s());
        by_use.then(y.bookings.cmp(&x.bookings)).then(a.cmp(b))
    });
    let others = first.split_off(first.len().min(RANKED_MAX));
    let rest = others
        .iter()
        .fold(Share::default(), |sum, (_, one)| sum.join(one));
    Ranking {
        first,
        others: others.len(),
        rest,
    }
}

fn figures(measured: &Measured, buckets: &Buckets) -> Figures {
    Figures {
        resources: measured.resources,
        total: pair(measured.available_total_s(), measured.used_total_s()),
        buckets: pairs(
            buckets.gather(&measured.available_s),
            buckets.gather(&measured.used_s),
        ),
    }
}

fn pairs(available: Vec<f64>, used: Vec<f64>) -> Vec<Seconds> {
    let both = available.into_iter().zip(used);
    both.map(|(available, used)| pair(available, used))
        .collect()
}

/// If the tree has changed since, a past figure may exceed the available time. So the result is capped.
fn pair(available: f64, used: f64) -> Seconds {
    let available = whole(available);
    Seconds {
        available,
        used: whole(used).min(available),
    }
}

/// Seconds are positive and far below the limit of `u64`.
fn whole(seconds: f64) -> u64 {
    seconds.round() as u64
}
