//! Moves a booking to other resources of its kind, so that another booking fits.

use std::collections::HashMap;

use berth_model::event::{Audience, EventKind};
use berth_model::reservation::{HistoryEntry, Item, Privacy, Reservation};
use berth_model::{Claim, ClaimId, Holder, ReservationId, ResourceId, SiteId, Take, Text};
use berth_store::booking::{self, Booking};
use berth_store::{Conn, Refused, claims, inventory, reservations};
use serde_json::json;

use crate::App;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::record::{By, Change};
use crate::reservations::{buffers, held_buffers, told};

/// The resources that a booking gives up and gets, computed for this version of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Relocation {
    pub reservation: ReservationId,
    pub version: u64,
    pub from: Vec<ResourceId>,
    pub to: Vec<ResourceId>,
}

/// The reason shown to the owner of a booking that was moved to make room.
pub(crate) const MADE_ROOM: &str = "moved to others of its kind, so that another booking fits";

impl App {
    /// Releases the resources of all these bookings first, and then claims the new ones. So two bookings can exchange
    /// places. Refuses with a conflict if a booking has changed since the moves were computed; the caller then computes
    /// them again.
    pub(crate) async fn relocate(
        &self,
        conn: &mut Conn,
        by: &By,
        site: SiteId,
        moves: &[Relocation],
        reason: &str,
    ) -> Result<()> {
        if moves.is_empty() {
            return Ok(());
        }
        inventory::keep_still(conn, site).await?;
        let now = self.now();
        let ids = moves.iter().map(|moved| moved.reservation).collect();
        let standing = reservations::all_locked(conn, site, ids).await?;
        let mut standing: HashMap<ReservationId, Reservation> =
            standing.into_iter().map(|one| (one.id, one)).collect();
        let (mut gone, mut taken, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        for moved in moves {
            let before = standing.remove(&moved.reservation);
            let as_planned = before.filter(|before| {
                before.version == moved.version
                    && before.movable_until().is_some_and(|until| now < until)
            });
            let Some(before) = as_planned else {
                return Err(berth_store::Error::Refused(Refused::Claim).into());
            };
            let (left, kept): (Vec<Item>, Vec<Item>) = before
                .items
                .iter()
                .cloned()
                .partition(|item| moved.from.contains(&item.resource));
            let take = left.first().map_or(Take::Exclusive, |item| item.take);
            gone.extend(left.iter().map(|item| item.claim));
            let claim = |resource: &ResourceId| {
                let (id, holder) = (ClaimId(fresh(now)), Holder::Reservation(before.id));
                Claim::firm(id, site, *resource, before.span, take, holder)
            };
            let new: Vec<Claim> = moved.to.iter().map(claim).collect();
            let items = kept.into_iter().chain(new.iter().map(Item::from)).collect();
            taken.extend(new);
            let after = Reservation {
                items,
                version: before.version + 1,
                updated_at: now,
                ..before.clone()
            };
            // Its buffers move with it.
            let had = held_buffers(conn, &before).await?;
            let had = had
                .iter()
                .filter(|claim| moved.from.contains(&claim.resource));
            gone.extend(had.map(|claim| claim.id));
            let has = buffers(&after, now).into_iter();
            taken.extend(has.filter(|claim| moved.to.contains(&claim.resource)));
            changed.push((before, after));
        }
        claims::release(conn, &gone, now).await?;
        self.make_way(conn, by, &taken).await?;
        claims::insert(conn, &taken).await?;
        let reason: Text = reason
            .parse()
            .map_err(|_| Error::Internal("a reason is a short text".into()))?;
        let written = changed
            .into_iter()
            .map(|(before, after)| self.moved(by, &before, after, &reason))
            .collect::<Result<Vec<_>>>()?;
        booking::move_all(conn, &written).await?;
        Ok(())
    }

    fn moved(
        &self,
        by: &By,
        before: &Reservation,
        after: Reservation,
        reason: &Text,
    ) -> Result<Booking> {
        let history = HistoryEntry {
            reservation: after.id,
            at: after.updated_at,
            from: Some(before.state),
            to: after.state,
            span: after.span,
            by: None,
            reason: Some(reason.clone()),
        };
        let mut data = told(&after);
        let resources = |of: &Reservation| -> Vec<ResourceId> {
            of.items.iter().map(|item| item.resource).collect()
        };
        data["from"] = json!(resources(before));
        if after.privacy == Privacy::Site {
            data["reason"] = json!(reason);
        }
        let change = Change::new("reservation.move", Some(after.site), after.id)
            .before(before)
            .after(&after)
            .because(Some(reason.clone()))
            .tell_only(EventKind::ReservationMoved, Audience::Members, data);
        let (entry, event) = self.written(by.clone(), change);
        let event = event.ok_or_else(|| Error::Internal("a move is told".into()))?;
        Ok(Booking {
            reservation: after,
            history,
            entry,
            event,
        })
    }
}
