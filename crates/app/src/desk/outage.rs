//! Handles failed resources: moves bookings by kind to other resources, and notifies every affected owner.
//!
//! Only UNAVAILABLE means that a resource has failed; the status MAINTENANCE moves no booking. A booking that has begun
//! stays where it is. This work is repeated after every change, so a server that dies half-way loses nothing.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::arrange::{Fate, Move, Outage, replace};
use berth_model::reservation::Reservation;
use berth_model::{Holder, ReservationId, ResourceId, SiteId, Span, Status};
use berth_store::leases::{self, Lease};
use berth_store::{claims, inventory, outage_notices, reservations};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::board::BoardGuard;
use super::movable::{MOVABLE_MAX, Movable, only_their_owners, troubled};
use super::moves::Relocation;
use crate::App;
use crate::error::{Error, Result};
use crate::record::By;
use crate::reservations::hold::is_taken;
use crate::transact::transact;

/// No booking is further ahead than this.
const AHEAD: SignedDuration = SignedDuration::from_hours(3 * 366 * 24);
const REASON: &str = "moved to others of its kind, because a resource is out of service";

impl App {
    /// The sites that have a failed resource now, or had one at the last poll. `site` limits this to one site.
    pub(crate) async fn sites_in_trouble(&self, site: Option<SiteId>) -> Result<BTreeSet<SiteId>> {
        let mut reader = self.store.read().await?;
        let now = inventory::sites_with(&mut reader, Status::Unavailable, site).await?;
        let before = outage_notices::sites(&mut reader).await?;
        let before = before
            .into_iter()
            .filter(|one| site.is_none_or(|site| site == *one));
        Ok(now.into_iter().chain(before).collect())
    }

    /// Moves bookings away from failed resources, and notifies the owners of the bookings that cannot move.
    pub(crate) async fn rescue(&self, lease: &Lease, site: SiteId) -> Result<()> {
        let board = self.board(site).await?;
        let failed: Vec<ResourceId> = board
            .resources
            .values()
            .filter(|resource| resource.status == Status::Unavailable)
            .map(|resource| resource.id)
            .collect();
        if failed.is_empty() {
            drop(board);
            return self.notify_of_fates(lease, site, &[]).await;
        }
        let now = self.now();
        let ahead =
            Span::new(now, now + AHEAD).map_err(|error| Error::Internal(error.to_string()))?;
        let mut reader = self.store.read().await?;
        let movable = reservations::movable(&mut reader, site, ahead, now, MOVABLE_MAX).await?;
        let tree = board.busy.tree();
        // If a node fails, its rack fails too for a booking of the whole rack.
        let above = failed.iter().flat_map(|id| tree.ancestors(*id)).collect();
        let mut held = claims::holding_on(&mut reader, above).await?;
        for resource in &failed {
            held.extend(claims::holding_below(&mut reader, *resource).await?);
        }
        let mut met: BTreeMap<ReservationId, Vec<ResourceId>> = BTreeMap::new();
        for claim in held {
            if let Holder::Reservation(id) = claim.holder {
                met.entry(id).or_default().push(claim.resource);
            }
        }
        let of = Movable::new(&board, &movable);
        let others = met.keys().copied().filter(|id| of.get(*id).is_none());
        let pinned = only_their_owners(&mut reader, site, others, now).await?;
        drop(reader);
        let outage = Outage {
            resources: &failed,
            span: ahead,
        };
        let fates = replace(&board.busy, &of.bookings(), &outage);
        let is_lost = |id| failed.iter().any(|failed| tree.related(*failed, id));
        let moves = fates.iter().filter_map(|fate| {
            let (Fate::Moved(moved) | Fate::Reduced(moved) | Fate::CannotBeHeld(moved)) = fate;
            of.relocation(without_loss(moved, is_lost)?)
        });
        let moves: Vec<Relocation> = moves.collect();
        drop(board);
        self.move_from_failed(lease, site, &moves).await?;
        // Offer only resources that remain after the moves.
        let board = self.board(site).await?;
        let offers: Vec<(Reservation, Vec<ResourceId>)> = pinned
            .into_iter()
            .map(|one| {
                let lost = met.get(&one.id).map_or(&[][..], Vec::as_slice);
                let offer = offer(&board, &one, lost, &[]);
                (one, offer)
            })
            .collect();
        drop(board);
        let mut outcomes: Vec<(&Reservation, Value)> = Vec::new();
        outcomes.extend(fates.iter().filter_map(|fate| {
            let (moved, word) = match fate {
                Fate::Moved(_) => return None,
                Fate::Reduced(moved) => (moved, "reduced"),
                Fate::CannotBeHeld(moved) => (moved, "cannot_be_held"),
            };
            let booking = of.get(moved.booking)?;
            let missing = moved.from.len().saturating_sub(moved.to.len());
            Some((booking, json!({ "fate": word, "missing": missing })))
        }));
        for (booking, offer) in &offers {
            let fate = if offer.is_empty() {
                json!({ "fate": "cannot_be_held" })
            } else {
                json!({ "fate": "offered", "instead": offer })
            };
            outcomes.push((booking, fate));
        }
        self.notify_of_fates(lease, site, &outcomes).await
    }

    async fn move_from_failed(
        &self,
        lease: &Lease,
        site: SiteId,
        moves: &[Relocation],
    ) -> Result<()> {
        if moves.is_empty() {
            return Ok(());
        }
        let done = transact!(self, tx => {
            leases::check(&mut tx, lease).await?;
            self.relocate(&mut tx, &By::SYSTEM, site, moves, REASON).await
        });
        match done {
            // Another booking came first. The next poll computes the moves again.
            Err(error) if is_taken(&error) => Ok(()),
            done => done,
        }
    }

    /// Notifies the owners of bookings whose outcome has changed, and forgets bookings that are no longer affected.
    async fn notify_of_fates(
        &self,
        lease: &Lease,
        site: SiteId,
        outcomes: &[(&Reservation, Value)],
    ) -> Result<()> {
        let mut reader = self.store.read().await?;
        let mut known = outage_notices::of_site(&mut reader, site).await?;
        drop(reader);
        for (booking, fate) in outcomes {
            if known.remove(&booking.id).as_ref() == Some(fate) {
                continue;
            }
            transact!(self, tx => {
                leases::check(&mut tx, lease).await?;
                outage_notices::put(&mut tx, site, booking.id, fate).await?;
                let change = troubled("outage.tell", booking, fate.clone());
                self.record(&mut tx, By::SYSTEM, change).await
            })?;
        }
        for well in known.into_keys() {
            transact!(self, tx => {
                leases::check(&mut tx, lease).await?;
                Ok(outage_notices::remove(&mut tx, well).await?)
            })?;
        }
        Ok(())
    }
}

/// The part of a move that is carried out: a booking gives up no more than it gets, unless another needs the resource.
/// A claim on a failed resource without a replacement stays, because the resource may come back.
fn without_loss(moved: &Move, is_lost: impl Fn(ResourceId) -> bool) -> Option<Move> {
    let (lost, healthy): (Vec<ResourceId>, Vec<ResourceId>) =
        moved.from.iter().partition(|id| is_lost(**id));
    let given_up = moved.to.len().max(healthy.len());
    let from: Vec<ResourceId> = healthy.into_iter().chain(lost).take(given_up).collect();
    (!from.is_empty()).then(|| Move {
        from,
        ..moved.clone()
    })
}

/// Equivalent resources for the `lost` ones of a booking that only its owner may move. Empty if there are not enough of
/// them outside `spoken_for`.
pub(super) fn offer(
    board: &BoardGuard,
    booking: &Reservation,
    lost: &[ResourceId],
    spoken_for: &[ResourceId],
) -> Vec<ResourceId> {
    let own = booking.items.iter().map(|item| item.resource);
    let out: Vec<ResourceId> = own.chain(spoken_for.iter().copied()).collect();
    let mut offered: Vec<ResourceId> = Vec::new();
    for item in booking
        .items
        .iter()
        .filter(|item| lost.contains(&item.resource))
    {
        let Some(kind) = board.common_kind(&[item.resource]) else {
            return Vec::new();
        };
        let others = board.of_kind(&kind, &out).into_iter();
        let mut free = others.map(|one| one.resource).filter(|id| {
            !offered.contains(id) && board.busy.is_free(*id, item.take, booking.held_span())
        });
        match free.next() {
            Some(found) => offered.push(found),
            None => return Vec::new(),
        }
    }
    offered
}
