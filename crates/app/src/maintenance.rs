//! Planned maintenance windows. For each booking in the way, an admin decides whether to move, cancel or keep it.

use std::collections::BTreeMap;

use berth_engine::arrange::Outage;
use berth_engine::maintenance::{Choice, InTheWay, Undecided, lay};
use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::reference::{ResourceReference, SiteReference};
use berth_model::reservation::State;
use berth_model::{
    Claim, ClaimId, Firmness, Holder, ReservationId, ResourceId, Span, Take, Text, WindowId,
};
use berth_store::{Conn, claims, inventory, maintenance, reservations};
use jiff::Timestamp;
use serde_json::json;

use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::desk::{Elsewhere, MADE_WAY, Way};
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::inventory::tree_of;
use crate::once::Made;
use crate::place::Place;
use crate::record::{By, Change};
use crate::reservations::hold::{Softer, is_taken};
use crate::seen::Conflict;
use crate::transact::transact;

pub use berth_engine::maintenance::Choice as WindowChoice;
pub use berth_store::maintenance::{Window, WindowState};

#[derive(Debug, Clone)]
pub struct NewWindow {
    pub title: Text,
    pub span: Span,
    pub resources: Vec<ResourceReference>,
    pub decisions: BTreeMap<ReservationId, Choice>,
}

/// A window with the spans that it occupies, and everything it names.
#[derive(Debug, Clone)]
pub struct WindowView {
    pub window: Window,
    pub parts: Vec<(ResourceId, Span)>,
    pub directory: Directory,
}

/// The result that planning a window would have.
#[derive(Debug, Clone)]
pub struct WindowPreview {
    /// Whether every booking in the way is decided, and every booking to be moved has another place.
    pub accepted: bool,
    pub parts: Vec<(ResourceId, Span)>,
    pub in_the_way: Vec<Met>,
    pub directory: Directory,
}

/// A booking in the way, and the decision about it.
#[derive(Debug, Clone)]
pub struct Met {
    pub conflict: Conflict,
    pub choice: Option<Choice>,
    /// Other resources for it. Searched unless it is kept or cancelled.
    pub instead: Option<Elsewhere>,
}

/// A planned window, before anything is written.
struct Draft {
    parts: Result<Vec<(ResourceId, Span)>, Vec<ReservationId>>,
    cancel: Vec<ReservationId>,
    moved: Vec<ReservationId>,
    bookings: Vec<(ResourceId, Claim)>,
    way: Way,
}

impl App {
    /// The bookings that a window would meet, and the window that would remain after the decisions so far.
    pub async fn preview_window(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewWindow,
    ) -> Result<WindowPreview> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::PlanMaintenance)
            .await?;
        still_to_come(new, self.now())?;
        let draft = self.draft_window(&mut reader, &place, new).await?;
        let mut directory = Directory::with_site(&place.site);
        let conflicts = self
            .explain(&mut reader, &place, caller, draft.bookings, &mut directory)
            .await?;
        let accepted = draft.parts.is_ok();
        let parts = draft.parts.unwrap_or_default();
        let instead = draft.way.instead.values().flat_map(|one| &one.resources);
        let named = parts.iter().map(|(resource, _)| resource).chain(instead);
        directory
            .learn_resources(&mut reader, named.copied())
            .await?;
        let in_the_way = conflicts.into_iter().map(|conflict| {
            let id = holder_reservation(&conflict.claim.claim);
            Met {
                conflict,
                choice: id.and_then(|id| new.decisions.get(&id)).copied(),
                instead: id.and_then(|id| draft.way.instead.get(&id)).cloned(),
            }
        });
        Ok(WindowPreview {
            accepted,
            parts,
            in_the_way: in_the_way.collect(),
            directory,
        })
    }

    /// Plans the window: cancels, moves or keeps each booking as decided, and claims the remaining time. All or
    /// nothing.
    pub async fn plan_window(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewWindow,
    ) -> Result<Made<WindowView>> {
        let now = self.now();
        let id = WindowId(fresh(now));
        let mut met = None;
        if new.decisions.values().any(|choice| *choice == Choice::Move) {
            // The first read of a board takes a while. It happens outside the transaction, so that no other request
            // waits.
            let mut reader = self.store.read().await?;
            let place = self
                .place(&mut reader, caller, site, Action::PlanMaintenance)
                .await?;
            drop(reader);
            self.board(place.id()).await?;
        }
        let made = transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::PlanMaintenance).await?;
            if let Some(earlier) = self.first_time(&mut tx, caller, id).await? {
                return Ok(Made::before(self.window_view(&mut tx, &place, earlier).await?));
            }
            still_to_come(new, now)?;
            let draft = self.draft_window(&mut tx, &place, new).await?;
            let parts = match draft.parts {
                Ok(parts) => parts,
                Err(undecided) => {
                    let mut directory = Directory::with_site(&place.site);
                    let conflicts = self.explain(&mut tx, &place, caller, draft.bookings, &mut directory).await?;
                    return Err(Error::InTheWay { undecided, conflicts, directory: Box::new(directory) });
                }
            };
            self.cancel_for_window(&mut tx, caller, &place, &draft.cancel, &new.title).await?;
            let by = By::from(caller);
            let moved = self.relocate(&mut tx, &by, place.id(), &draft.way.moves, MADE_WAY).await;
            // Another booking came first; the retry plans again.
            moved.map_err(|error| if is_taken(&error) { Error::Store(berth_store::Error::Retry) } else { error })?;
            self.ask_to_move(&mut tx, &by, &draft.way, id).await?;
            let window = Window {
                id,
                site: place.id(),
                title: new.title.clone(),
                span: new.span,
                state: WindowState::Planned,
                planned_by: Some(caller.id()),
                created_at: now,
                version: 1,
            };
            // The window begins after the cancelled bookings have ended: until then they had the place.
            let begins = self.now();
            let parts = parts.into_iter().filter_map(|(resource, span)| Some((resource, span.after(begins)?)));
            let held: Vec<Claim> = parts.map(|(resource, span)| claim(&window, resource, span, now)).collect();
            met = Some((place.clone(), held.clone()));
            if !held.is_empty() {
                self.hold(&mut tx, &by, &held, Softer::GiveWay).await?;
            }
            maintenance::insert(&mut tx, &window).await?;
            let told = json!({ "window": id, "title": new.title, "start": new.span.start(), "end": new.span.end(), "parts": held.len() });
            let record = Change::new("maintenance.plan", Some(place.id()), id)
                .after(json!({ "window": told, "cancelled": draft.cancel, "moved": draft.moved }))
                .tell_only(EventKind::MaintenancePlanned, Audience::Members, told);
            self.record(&mut tx, caller, record).await?;
            Ok(Made::now(self.window_view(&mut tx, &place, id).await?))
        });
        match (made, met) {
            (Err(error), Some((place, held))) if is_taken(&error) => {
                Err(self.refusal(&place, caller, &held, &[]).await)
            }
            (made, _) => {
                self.falls_due(new.span.end());
                made
            }
        }
    }

    async fn draft_window(&self, conn: &mut Conn, place: &Place, new: &NewWindow) -> Result<Draft> {
        let all = inventory::of_site(conn, place.id()).await?;
        let tree = tree_of(&all)?;
        let mut resources = Vec::new();
        for reference in &new.resources {
            resources.push(self.resource(conn, place.id(), reference).await?.id);
        }
        let mut bookings: BTreeMap<ClaimId, (ResourceId, Claim)> = BTreeMap::new();
        for resource in &resources {
            for claim in claims::overlapping(conn, *resource, new.span, None, u64::MAX >> 1).await?
            {
                // Yielding claims give way by themselves. Conflicts with other windows appear when the claims are
                // inserted.
                if claim.firmness == Firmness::Firm && holder_reservation(&claim).is_some() {
                    bookings.insert(claim.id, (*resource, claim));
                }
            }
        }
        let mut in_the_way: BTreeMap<ReservationId, InTheWay> = BTreeMap::new();
        for (_, claim) in bookings.values() {
            let Some(reservation) = holder_reservation(claim) else {
                continue;
            };
            let choice = new.decisions.get(&reservation).copied();
            let entry = in_the_way.entry(reservation).or_insert_with(|| InTheWay {
                reservation,
                claims: Vec::new(),
                choice,
            });
            entry.claims.push((claim.resource, claim.span));
        }
        let bookings = bookings.into_values().collect();
        // Only the future part can be maintained.
        let to_come = new.span.after(self.now()).unwrap_or(new.span);
        let outage = Outage {
            resources: &resources,
            span: to_come,
        };
        let way = self
            .find_ways(conn, place.id(), &outage, &in_the_way)
            .await?;
        for met in in_the_way.values_mut() {
            if met.choice == Some(Choice::Move) {
                met.choice = way.choice(met.reservation);
            }
        }
        let in_the_way: Vec<InTheWay> = in_the_way.into_values().collect();
        Ok(match lay(&tree, to_come, &resources, &in_the_way) {
            Ok(layout) => Draft {
                parts: Ok(layout.claims),
                cancel: layout.cancel,
                moved: layout.moved,
                bookings,
                way,
            },
            Err(Undecided(undecided)) => Draft {
                parts: Err(undecided),
                cancel: Vec::new(),
                moved: Vec::new(),
                bookings,
                way,
            },
        })
    }

    async fn cancel_for_window(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        cancel: &[ReservationId],
        title: &Text,
    ) -> Result<()> {
        let reason: Option<Text> = format!("cancelled for maintenance: {title}").parse().ok();
        for id in cancel {
            let found = reservations::get_locked(conn, place.id(), *id).await?;
            let mut reservation = found.ok_or(Error::NotFound("reservation"))?;
            // A running booking ends through `ending`. Both transitions happen here, because the window needs the
            // place now.
            for _ in 0..2 {
                let transition = match reservation.state {
                    State::Ending => {
                        // The maintenance includes the clean-up.
                        reservation.terms.clean_until = None;
                        reservation
                            .state
                            .due(reservation.span, &reservation.terms, self.now())
                    }
                    state if state.is_final() => None,
                    state => Some(state.cancel()?),
                };
                let Some(transition) = transition else { break };
                reservation = self
                    .step(
                        conn,
                        &By::from(caller),
                        reservation,
                        transition,
                        reason.clone(),
                    )
                    .await?;
            }
        }
        Ok(())
    }

    async fn window_view(
        &self,
        conn: &mut Conn,
        place: &Place,
        id: WindowId,
    ) -> Result<WindowView> {
        let window = maintenance::get(conn, place.id(), id)
            .await?
            .ok_or(Error::NotFound("maintenance window"))?;
        let mut parts: Vec<(ResourceId, Span)> = claims::all_of(conn, Holder::Maintenance(id))
            .await?
            .into_iter()
            .map(|c| (c.resource, c.span))
            .collect();
        parts.sort_by_key(|(resource, span)| (*span, *resource));
        let mut directory = Directory::with_site(&place.site);
        directory
            .learn_resources(conn, parts.iter().map(|(resource, _)| *resource))
            .await?;
        directory.learn_people(conn, window.planned_by).await?;
        Ok(WindowView {
            window,
            parts,
            directory,
        })
    }

    pub async fn get_window(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: WindowId,
    ) -> Result<WindowView> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeMaintenance)
            .await?;
        self.window_view(&mut reader, &place, id).await
    }

    /// Windows that end after `from`, by start.
    pub async fn list_windows(
        &self,
        caller: &Caller,
        site: &SiteReference,
        from: Timestamp,
        after: Option<(Timestamp, WindowId)>,
        limit: u64,
    ) -> Result<Vec<WindowView>> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeMaintenance)
            .await?;
        let mut views = Vec::new();
        for window in maintenance::list(&mut reader, place.id(), from, after, limit).await? {
            views.push(self.window_view(&mut reader, &place, window.id).await?);
        }
        Ok(views)
    }

    pub async fn cancel_window(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: WindowId,
        reason: Option<Text>,
    ) -> Result<WindowView> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeMaintenance).await?;
            place.may(caller, Action::PlanMaintenance, false, "maintenance window")?;
            let before = self.window_view(&mut tx, &place, id).await?;
            caller.expects(before.window.version)?;
            if !maintenance::finish(&mut tx, id, WindowState::Cancelled).await? {
                return Err(Error::WindowOver);
            }
            self.release_window(&mut tx, id).await?;
            let told = json!({ "window": id, "reason": reason });
            let record = Change::new("maintenance.cancel", Some(place.id()), id).because(reason.clone());
            self.record(&mut tx, caller, record.tell_only(EventKind::MaintenanceCancelled, Audience::Members, told)).await?;
            self.window_view(&mut tx, &place, id).await
        })
    }

    pub(crate) async fn release_window(&self, conn: &mut Conn, id: WindowId) -> Result<()> {
        let held: Vec<ClaimId> = claims::held_by(conn, Holder::Maintenance(id))
            .await?
            .into_iter()
            .map(|c| c.id)
            .collect();
        Ok(claims::release(conn, &held, self.now()).await?)
    }
}

fn still_to_come(new: &NewWindow, now: Timestamp) -> Result<()> {
    if new.span.end() <= now {
        let why = "a window that is over needs no planning".into();
        return Err(Error::InThePast(why));
    }
    Ok(())
}

fn holder_reservation(claim: &Claim) -> Option<ReservationId> {
    match claim.holder {
        Holder::Reservation(id) => Some(id),
        Holder::Maintenance(_) | Holder::Workload(_) => None,
    }
}

fn claim(window: &Window, resource: ResourceId, span: Span, now: Timestamp) -> Claim {
    let holder = Holder::Maintenance(window.id);
    Claim::firm(
        ClaimId(fresh(now)),
        window.site,
        resource,
        span,
        Take::Exclusive,
        holder,
    )
}
