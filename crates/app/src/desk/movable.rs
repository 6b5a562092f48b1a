//! Bookings of any of a kind that may still be moved, as the engine looks at them.

use std::collections::HashMap;

use berth_engine::arrange::{Booking, Move};
use berth_model::reservation::Reservation;
use berth_model::{ReservationId, ResourceId};

use super::board::Board;
use super::moves::Relocation;

/// More than this are not looked at at once; those that start first are.
pub(super) const MOVABLE_MAX: u64 = 2_000;

pub(super) struct Movable<'a> {
    of: HashMap<ReservationId, &'a Reservation>,
    /// What each may stand on and what it stands on, in the order of their starts.
    standing: Vec<(&'a Reservation, String, Vec<ResourceId>)>,
    /// What will do, by what was asked for: many ask for the same.
    kinds: HashMap<String, Vec<ResourceId>>,
}

impl<'a> Movable<'a> {
    pub fn new(board: &Board, of: &'a [Reservation]) -> Self {
        let mut kinds = HashMap::new();
        let mut standing = Vec::new();
        for one in of {
            let Some(what) = &one.terms.any else { continue };
            let kind = what.to_string();
            kinds.entry(kind.clone()).or_insert_with(|| {
                let candidates = board.candidates(what).into_iter();
                candidates.map(|one| one.resource).collect()
            });
            let resources = one.items.iter().map(|item| item.resource).collect();
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

    /// The move of a booking as it stands now.
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
