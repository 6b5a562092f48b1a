//! Changes a reservation: its time, resources, title and answers. Also extends it and ends it early.

use std::collections::BTreeSet;

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::reference::{ProjectReference, SiteReference};
use berth_model::reservation::{self, AtEnd, HistoryEntry, Privacy, Reservation, State, Terms};
use berth_model::{
    Claim, ClaimId, FieldErrors, Holder, Name, Occurrence, ReservationId, Span, Take, Text,
};
use berth_store::inventory::{self, Wanted, wanted};
use berth_store::{Conn, claims, reservations, secrets};
use jiff::{SignedDuration, Timestamp};

use super::buffers::{buffers, held_buffers};
use super::check::{self, Item, RawAnswers};
use super::create::{Booked, learn, movable_until, told};
use super::hold::{Softer, is_taken};
use super::plan::{Plan, plan};
use crate::App;
use crate::calendar::split;
use crate::caller::Caller;
use crate::desk::RefusedBooking;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::record::{By, Change};
use crate::transact::transact;
use crate::version;

/// The fields that may change. An absent field stays unchanged.
#[derive(Debug, Clone, Default)]
pub struct ReservationChange {
    pub title: Option<Text>,
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
    pub items: Option<Vec<Item>>,
    pub project: Option<Option<ProjectReference>>,
    pub privacy: Option<Privacy>,
    pub parameters: Option<RawAnswers>,
    pub at_end: Option<AtEnd>,
    pub lends: Option<Option<bool>>,
}

/// Who changes reservations, where, and whether yielding claims give way to the change.
pub(super) struct Changing<'a> {
    pub caller: &'a Caller,
    pub place: &'a Place,
    pub softer: Softer,
    /// The last change that reached the claim rule. It serves to explain a refusal.
    pub tried: &'a mut Option<TriedChange>,
}

/// The claims that a change wanted.
pub(super) struct TriedChange {
    place: Place,
    before: Reservation,
    span: Span,
    claims: Vec<Claim>,
}

/// How to extend: an extension never shortens.
#[derive(Debug, Clone, Copy)]
pub enum Extension {
    By(SignedDuration),
    Until(Timestamp),
}

impl App {
    /// Changes a reservation that is still at `version`. None accepts any version.
    pub async fn change_reservation(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
        version: Option<u64>,
        change: &ReservationChange,
    ) -> Result<Booked> {
        let changed = self
            .change_uncounted(caller, site, id, version, change)
            .await;
        self.tallied(site, changed)
    }

    async fn change_uncounted(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
        version: Option<u64>,
        change: &ReservationChange,
    ) -> Result<Booked> {
        let mut tried = None;
        for softer in [Softer::LeftAlone, Softer::GiveWay] {
            let changed = transact!(self, tx => {
                let (place, before) = self.own_reservation(&mut tx, caller, site, id, Action::ChangeReservation).await?;
                before.state.can_change()?;
                version::expect(version, before.version)?;
                // An instance of a series that is changed alone now differs from the others.
                let occurrence = before.occurrence.map(Occurrence::differing);
                let mut changing = Changing { caller, place: &place, softer, tried: &mut tried };
                self.change_inside(&mut tx, &mut changing, before, change, occurrence).await
            });
            match changed {
                Err(error) if is_taken(&error) => {
                    if softer == Softer::GiveWay || !self.might_yield(tried.as_ref()).await? {
                        break;
                    }
                }
                other => {
                    self.planned.notify_one();
                    return other;
                }
            }
        }
        Err(self.change_refused(caller, tried).await)
    }

    /// Whether to try a refused change again with yielding claims giving way.
    pub(super) async fn might_yield(&self, tried: Option<&TriedChange>) -> Result<bool> {
        let claims = tried.map_or(&[][..], |tried| &tried.claims);
        self.would_anyone_yield(claims).await
    }

    /// The reason why the claim rule refused a change, with alternatives.
    pub(super) async fn change_refused(
        &self,
        caller: &Caller,
        tried: Option<TriedChange>,
    ) -> Error {
        let Some(tried) = tried else {
            return Error::Internal("a claim was refused that nobody made".into());
        };
        match self.explain_change(caller, tried).await {
            Ok(refusal) | Err(refusal) => refusal,
        }
    }

    async fn explain_change(&self, caller: &Caller, tried: TriedChange) -> Result<Error> {
        let TriedChange {
            place,
            before,
            span,
            claims,
        } = tried;
        let mut reader = self.store.read().await?;
        let own = claims::held_by(&mut reader, Holder::Reservation(before.id)).await?;
        let of = self.booked_for(&mut reader, &before).await?;
        drop(reader);
        let ids: Vec<ClaimId> = own.iter().map(|claim| claim.id).collect();
        let refusal = self.refusal(&place, caller, &claims, &ids).await;
        let refused = RefusedBooking {
            of,
            span,
            claims: &claims,
            standing: Some((&before, own)),
        };
        let refusal = self.with_alternatives(refusal, caller, &place, None, &refused);
        Ok(refusal.await)
    }

    pub async fn extend_reservation(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
        extension: Extension,
    ) -> Result<Booked> {
        let mut reader = self.store.read().await?;
        let (_, before) = self
            .own_reservation(&mut reader, caller, site, id, Action::ChangeReservation)
            .await?;
        drop(reader);
        caller.expects(before.version)?;
        let end = match extension {
            Extension::By(longer) => before
                .span
                .end()
                .checked_add(longer)
                .unwrap_or(before.span.end()),
            Extension::Until(end) => end,
        };
        if end <= before.span.end() {
            let (field, end) = (
                if matches!(extension, Extension::By(_)) {
                    "by"
                } else {
                    "until"
                },
                before.span.end(),
            );
            let message = format!("it ends at {end} already; to shorten it, set its end instead");
            return Err(FieldErrors::one(field, message).into());
        }
        let change = ReservationChange {
            end: Some(end),
            ..Default::default()
        };
        // The new end was computed from this version. With it, two simultaneous extensions do not overwrite each
        // other.
        self.change_reservation(caller, site, id, Some(before.version), &change)
            .await
    }

    /// The change itself, inside its transaction. `occurrence` is its place in a series afterwards.
    pub(super) async fn change_inside(
        &self,
        conn: &mut Conn,
        changing: &mut Changing<'_>,
        before: Reservation,
        change: &ReservationChange,
        occurrence: Option<Occurrence>,
    ) -> Result<Booked> {
        let (now, caller, place) = (self.now(), changing.caller, changing.place);
        let mut directory = Directory::with_site(&place.site);
        let span = new_span(&before, change, now)?;
        let items: Vec<Item> = match &change.items {
            Some(items) => items.clone(),
            None => before.items.iter().map(item_again).collect(),
        };
        let references: Vec<_> = items.iter().map(|item| item.resource.clone()).collect();
        let (ids, names) = split(&references);
        let found = wanted(conn, place.id(), ids, names).await?;
        let matched = check::matched(&items, &found)?;
        learn(
            &mut directory,
            &matched
                .iter()
                .map(|(wanted, _)| *wanted)
                .collect::<Vec<_>>(),
        );
        let plan = plan(&before, &matched, span, now);
        let begun = !matches!(before.state, State::PendingApproval | State::Confirmed);
        if begun && !(plan.added.is_empty() && plan.dropped.is_empty()) {
            return Err(FieldErrors::one(
                "resources",
                "its resources cannot change once it has begun",
            )
            .into());
        }
        let grows = self.check_growth(caller, place, &before, &matched, &plan)?;
        let gained: BTreeSet<Span> = plan.grown(&before).iter().map(|claim| claim.span).collect();
        for span in gained {
            self.expect_open(conn, caller, place, span).await?;
        }

        let project = match &change.project {
            None => before.project,
            Some(None) => None,
            Some(project) => {
                self.booking_project(
                    conn,
                    caller,
                    place,
                    before.owner,
                    project.as_ref(),
                    &mut directory,
                )
                .await?
            }
        };
        let stored: BTreeSet<(Name, Name)> = secrets::of_reservation(conn, before.id)
            .await?
            .into_iter()
            .map(|s| (s.type_name, s.parameter))
            .collect();
        let answers = match &change.parameters {
            Some(given) => Some(check::answers(&matched, given, &stored)?),
            // Other resources may have other forms. The forms of unchanged resources have been answered.
            None if change.items.is_some() => {
                Some(check::answers(&matched, &plain(&before), &stored)?)
            }
            None => None,
        };

        directory.learn_projects(conn, project).await?;
        let mut after = Reservation {
            title: change.title.clone().unwrap_or(before.title.clone()),
            privacy: change.privacy.unwrap_or(before.privacy),
            project,
            span,
            items: plan.items(&before),
            parameters: answers
                .as_ref()
                .map_or(before.parameters.clone(), |answers| answers.shown.clone()),
            terms: changed_terms(&before, change, span, now),
            occurrence,
            version: before.version + 1,
            updated_at: now,
            ..before.clone()
        };
        self.judge_change(conn, caller, place, &directory, &before, &mut after, grows)
            .await?;
        let (had, buffers) = if lies_otherwise(&before, &after) {
            (held_buffers(conn, &before).await?, buffers(&after, now))
        } else {
            (Vec::new(), Vec::new())
        };
        let wanted: Vec<Claim> = plan.wanted(&before);
        let tried = changing.tried.insert(TriedChange {
            place: place.clone(),
            before: before.clone(),
            span,
            claims: wanted.into_iter().chain(buffers.clone()).collect(),
        });
        if changing.softer == Softer::GiveWay {
            self.make_way(conn, &By::from(caller), &tried.claims)
                .await?;
        }
        // Buffers are released first and claimed last, because they lie on both sides of the changed time.
        let had: Vec<ClaimId> = had.iter().map(|claim| claim.id).collect();
        claims::release(conn, &had, now).await?;
        self.carry_out(conn, &plan, &before, now).await?;
        if !buffers.is_empty() {
            claims::insert(conn, &buffers).await?;
            self.spare_the_past(conn, &buffers).await?;
        }
        if !reservations::update(conn, &after, before.version).await? {
            return Err(version::overtaken(before.version));
        }
        if let Some(answers) = &answers {
            self.keep_secrets(conn, &after, answers).await?;
        }
        let entry = HistoryEntry {
            reservation: after.id,
            at: now,
            from: Some(before.state),
            to: after.state,
            span,
            by: Some(caller.id()),
            reason: None,
        };
        reservations::insert_history(conn, &entry).await?;
        let record = Change::new("reservation.change", Some(place.id()), after.id)
            .before(&before)
            .after(&after)
            .tell_only(
                EventKind::ReservationChanged,
                Audience::Members,
                told(&after),
            );
        self.record(conn, caller, record).await?;
        directory.learn_people(conn, [after.owner]).await?;
        Ok(Booked {
            reservation: after,
            directory,
        })
    }

    /// Checks the additional claims like a booking: the resources must be in service, and approval may be needed.
    /// Returns whether the reservation grows.
    fn check_growth(
        &self,
        caller: &Caller,
        place: &Place,
        before: &Reservation,
        matched: &[(&Wanted, Take)],
        plan: &Plan,
    ) -> Result<bool> {
        let longer = !before.span.contains(plan.span);
        let is_new = |wanted: &Wanted| {
            plan.added
                .iter()
                .any(|claim| claim.resource == wanted.resource.id)
        };
        let more = |wanted: &Wanted, take: &Take| match before
            .items
            .iter()
            .find(|item| item.resource == wanted.resource.id)
        {
            None => true,
            Some(item) => match (item.take, take) {
                (Take::Exclusive, _) => false,
                (Take::Amount(_), Take::Exclusive) => true,
                (Take::Amount(had), Take::Amount(wants)) => *wants > had,
            },
        };
        let growing: Vec<&Wanted> = matched
            .iter()
            .filter(|(wanted, take)| longer || is_new(wanted) || more(wanted, take))
            .map(|(wanted, _)| *wanted)
            .collect();
        check::active(growing.iter().copied())?;
        let waits =
            before.state == State::PendingApproval || place.can(caller, Action::DecideReservation);
        if !waits && let Some(wanted) = growing.iter().find(|wanted| wanted.kind.needs_approval) {
            let needs = format!(
                "`{}` needs an admin's approval: ask an admin of the site to extend it, or make a new reservation",
                wanted.resource.name
            );
            return Err(Error::NotAllowed { needs });
        }
        Ok(!growing.is_empty())
    }

    /// Releases claims first, then moves the kept ones, then adds new ones. So a reservation never conflicts with
    /// itself.
    async fn carry_out(
        &self,
        conn: &mut Conn,
        plan: &Plan,
        before: &Reservation,
        now: Timestamp,
    ) -> Result<()> {
        inventory::keep_still(conn, before.site).await?;
        claims::release(conn, &plan.dropped, now).await?;
        let kept = plan.kept.iter().map(|(claim, _)| *claim).collect();
        for claim in claims::in_order(conn, kept).await? {
            let shorter = plan.span != before.span && before.span.contains(plan.span);
            if shorter {
                claims::shrink(conn, claim, plan.span, now).await?;
            }
            let had = before.items.iter().find(|item| item.claim == claim);
            let had = had.map(|item| item.take);
            let wanted = plan.kept.iter().find(|(kept, _)| *kept == claim);
            if let Some((_, take)) = wanted
                && (had != Some(*take) || (plan.span != before.span && !shorter))
            {
                claims::reshape(conn, claim, plan.span, *take).await?;
            }
        }
        if !plan.added.is_empty() {
            claims::insert(conn, &plan.added).await?;
        }
        self.spare_the_past(conn, &plan.grown(before)).await
    }
}

/// The span after the change. The start is fixed once the reservation has begun, and the end never lies in the past.
fn new_span(before: &Reservation, change: &ReservationChange, now: Timestamp) -> Result<Span> {
    let start = change.start.unwrap_or(before.span.start());
    let end = change.end.unwrap_or(before.span.end());
    let field = if change.end.is_some() { "end" } else { "start" };
    let span = Span::new(start, end).map_err(|error| FieldErrors::one(field, error.to_string()))?;
    if span == before.span {
        return Ok(span);
    }
    let begun = !matches!(before.state, State::PendingApproval | State::Confirmed);
    if begun && span.start() != before.span.start() {
        return Err(FieldErrors::one("start", "it has begun, so its start cannot change").into());
    }
    if begun {
        if span.end() <= now {
            return Err(Error::InThePast(
                "its end would lie in the past; cancel it to end it now".into(),
            ));
        }
        check::length(span)?;
    } else {
        check::times(span, now)?;
    }
    Ok(span)
}

/// Whether the buffers must be replaced.
fn lies_otherwise(before: &Reservation, after: &Reservation) -> bool {
    let buffers = |of: &Reservation| (of.terms.set_up, of.terms.clean_up);
    before.span != after.span || before.items != after.items || buffers(before) != buffers(after)
}

/// The terms after the change. A change that names resources ends a booking by kind.
fn changed_terms(
    before: &Reservation,
    change: &ReservationChange,
    span: Span,
    now: Timestamp,
) -> Terms {
    let any = before.terms.any.clone().filter(|_| change.items.is_none());
    let pinned = before.terms.movable_until.is_none();
    Terms {
        movable_until: movable_until(any.as_ref(), pinned, span, now),
        any,
        at_end: change.at_end.unwrap_or(before.terms.at_end),
        lends: change.lends.unwrap_or(before.terms.lends),
        ..before.terms.clone()
    }
}

fn item_again(item: &reservation::Item) -> Item {
    Item {
        resource: berth_model::Reference::Id(item.resource),
        amount: item.take.amount(),
    }
}

/// The answers that are not secret, in the form of new answers.
fn plain(before: &Reservation) -> RawAnswers {
    let shown = |value: &serde_json::Value| value.as_str() != Some(reservation::MASK);
    let answers = before.parameters.iter().map(|(kind, answers)| {
        let answers = answers.iter().filter(|(_, value)| shown(value));
        (
            kind.clone(),
            answers
                .map(|(key, value)| (key.to_string(), value.clone()))
                .collect(),
        )
    });
    answers.collect()
}
