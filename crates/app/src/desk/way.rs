//! Finds other resources for the bookings in the way of a maintenance window, if the admin prefers to move them.
//!
//! Bookings by kind are moved. Some bookings name their resources, or start too soon to be moved. Their owners are
//! offered other resources and decide; until then the window keeps clear of these bookings.

use std::collections::BTreeMap;

use berth_engine::arrange::{Fate, Outage, replace};
use berth_engine::maintenance::{Choice, InTheWay};
use berth_model::reservation::Reservation;
use berth_model::{ReservationId, ResourceId, SiteId, WindowId};
use berth_store::{Conn, reservations};
use serde_json::json;

use super::movable::{MOVABLE_MAX, Movable, only_their_owners, troubled};
use super::moves::Relocation;
use super::outage::offer;
use crate::App;
use crate::error::Result;
use crate::record::By;

/// The reason shown to the owner of a booking that was moved for a window.
pub(crate) const MADE_WAY: &str =
    "moved to others of its kind, because maintenance is planned on what it had";

/// The resources that a booking in the way of a window could have instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    pub resources: Vec<ResourceId>,
    /// Only the owner may move it.
    pub owner_decides: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Way {
    /// The moves of the bookings in the way, and of other bookings that make room for them.
    pub moves: Vec<Relocation>,
    /// The bookings whose owners are asked to move them.
    asked: Vec<Reservation>,
    pub instead: BTreeMap<ReservationId, Elsewhere>,
}

impl Way {
    /// The choice that moving this booking amounts to: the window keeps clear of a booking that only its owner may
    /// move. None if there is no other place: the admin must still decide.
    pub fn choice(&self, booking: ReservationId) -> Option<Choice> {
        let instead = self.instead.get(&booking)?;
        Some(if instead.owner_decides {
            Choice::Keep
        } else {
            Choice::Move
        })
    }
}

impl App {
    /// Finds other places for all bookings in the way that the admin neither keeps nor cancels.
    pub(crate) async fn find_ways(
        &self,
        conn: &mut Conn,
        site: SiteId,
        outage: &Outage<'_>,
        in_the_way: &BTreeMap<ReservationId, InTheWay>,
    ) -> Result<Way> {
        let stays = |id: &ReservationId| {
            let met = in_the_way.get(id);
            met.is_some_and(|met| matches!(met.choice, Some(Choice::Keep | Choice::Cancel)))
        };
        if in_the_way.keys().all(stays) {
            return Ok(Way::default());
        }
        let now = self.now();
        // A booking that moves may meet another that can move, too.
        let held = in_the_way.values().flat_map(|met| &met.claims);
        let hull = held.fold(outage.span, |hull, (_, span)| hull.hull(*span));
        let mut movable = reservations::movable(conn, site, hull, now, MOVABLE_MAX).await?;
        movable.retain(|one| !stays(&one.id));
        let others = in_the_way.keys().copied();
        let others = others.filter(|id| !stays(id) && movable.iter().all(|one| one.id != *id));
        let owned = only_their_owners(conn, site, others, now).await?;

        let board = self.board(site).await?;
        let of = Movable::new(&board, &movable);
        let mut way = Way::default();
        for fate in replace(&board.busy, &of.bookings(), outage) {
            // A booking that would get less stays undecided, and then no move happens at all.
            let Fate::Moved(moved) = fate else { continue };
            if in_the_way.contains_key(&moved.booking) {
                let instead = Elsewhere {
                    resources: moved.to.clone(),
                    owner_decides: false,
                };
                way.instead.insert(moved.booking, instead);
            }
            way.moves.extend(of.relocation(moved));
        }
        let tree = board.busy.tree();
        let closed = |id: &ResourceId| outage.resources.iter().any(|one| tree.related(*one, *id));
        let mut spoken_for: Vec<ResourceId> =
            board.resources.keys().copied().filter(closed).collect();
        spoken_for.extend(way.moves.iter().flat_map(|moved| &moved.to));
        for booking in owned {
            let lost = in_the_way.get(&booking.id).map(|met| met.claims.iter());
            let lost: Vec<ResourceId> = lost.into_iter().flatten().map(|(on, _)| *on).collect();
            let resources = offer(&board, &booking, &lost, &spoken_for);
            if resources.is_empty() {
                continue;
            }
            spoken_for.extend(&resources);
            let instead = Elsewhere {
                resources,
                owner_decides: true,
            };
            way.instead.insert(booking.id, instead);
            way.asked.push(booking);
        }
        Ok(way)
    }

    /// Asks the owners of the bookings that only they may move.
    pub(crate) async fn ask_to_move(
        &self,
        conn: &mut Conn,
        by: &By,
        way: &Way,
        window: WindowId,
    ) -> Result<()> {
        for booking in &way.asked {
            let instead = way.instead.get(&booking.id).map(|one| &one.resources);
            let fate = json!({ "fate": "asked_to_move", "window": window, "instead": instead });
            let change = troubled("maintenance.ask", booking, fate);
            self.record(conn, by.clone(), change).await?;
        }
        Ok(())
    }
}
