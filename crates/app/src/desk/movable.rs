//! Bookings by kind that may still be moved, in the form that the engine reads. Also bookings that only their owners
//! may move: their owners are notified of what they could have instead.

use std::collections::HashMap;

use berth_engine::arrange::{Booking, Move};
use berth_model::event::{Audience, EventKind};
use berth_model::reservation::{Reservation, State};
use berth_model::{ReservationId, ResourceId, SiteId};
use berth_store::{Conn, reservations};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::board::Board;
use super::moves::Relocation;
use crate::error::Result;
use crate::record::Change;

/// At most this many bookings are considered, the earliest starts first.
pub(super) const MOVABLE_MAX: u64 = 2_000;

pub(super) struct Movable<'a> {
    of: HashMap<ReservationId, &'a Reservation>,
    /// For each booking, the key of its resources in `kinds` and the resources that it has, in the order of starts.
    standing: Vec<(&'a Reservation, String, Vec<ResourceId>)>,
    /// The resources that match, by the `Selection` that was asked for: many bookings ask for the same.
    kinds: HashMap<String, Vec<ResourceId>>,
}

impl<'a> Movable<'a> {
    pub fn new(board: &Board, of: &'a [Reservation]) -> Self {
        let mut kinds = HashMap::new();
        let mut standing = Vec::new();
        for one in of {
            let Some(what) = &one.terms.any else { continue };
            let resources: Vec<ResourceId> = one.items.iter().map(|item| item.resource).collect();
            // Only resources of the same types: the policies and approvals of these types have accepted the booking.
            let types = board.types_of(resources.iter().copied());
            let kind = format!("{what} {types:?}");
            kinds.entry(kind.clone()).or_insert_with(|| {
                let candidates = board.candidates(what).into_iter();
                let candidates = candidates.map(|one| one.resource);
                let is_of_them = |id: &ResourceId| {
                    board
                        .type_name(*id)
                        .is_some_and(|name| types.contains(name))
                };
                candidates.filter(is_of_them).collect()
            });
            standing.push((one, kind, resources));
        }
        Movable {
            of: of.iter().map(|one| (one.id, one)).collect(),
            standing,
            kinds,
        }
    }

    pub fn bookings(&self) -> Vec<Booking<'_>> {
        let all = self.standing.iter();
        all.filter_map(|(one, kind, resources)| {
            Some(Booking {
                id: one.id,
                span: one.held_span(),
                take: one.items.first()?.take,
                candidates: self.kinds.get(kind).map_or(&[], Vec::as_slice),
                resources,
            })
        })
        .collect()
    }

    pub fn get(&self, id: ReservationId) -> Option<&'a Reservation> {
        self.of.get(&id).copied()
    }

    /// The relocation of a booking from its current version.
    pub fn relocation(&self, moved: Move) -> Option<Relocation> {
        let booking = self.get(moved.booking)?;
        Some(Relocation {
            reservation: booking.id,
            version: booking.version,
            from: moved.from,
            to: moved.to,
        })
    }
}

/// The future bookings among `ids`. Only their owners may move them.
pub(super) async fn only_their_owners(
    conn: &mut Conn,
    site: SiteId,
    ids: impl Iterator<Item = ReservationId>,
    now: Timestamp,
) -> Result<Vec<Reservation>> {
    let mut owned = Vec::new();
    for id in ids {
        owned.extend(reservations::get(conn, site, id).await?);
    }
    owned.retain(|one| {
        matches!(one.state, State::PendingApproval | State::Confirmed) && one.span.start() > now
    });
    Ok(owned)
}

/// A `ReservationTroubled` change: it notifies the owner of trouble with a booking, and does not change the booking.
pub(super) fn troubled(action: &'static str, booking: &Reservation, mut fate: Value) -> Change {
    fate["reservation"] = json!(booking.id);
    fate["start"] = json!(booking.span.start());
    fate["end"] = json!(booking.span.end());
    Change::new(action, Some(booking.site), booking.id)
        .after(&fate)
        .tell_only(
            EventKind::ReservationTroubled,
            Audience::Person(booking.owner),
            fate,
        )
}
