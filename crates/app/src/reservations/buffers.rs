//! Buffers: the time before and after a reservation for setting up and cleaning up its resources.
//!
//! Claims of the reservation that are not among its items hold the buffers. They move with the reservation and end with
//! it. After its end the reservation stays `ending` until the clean-up is over; an early end makes the clean-up start
//! earlier.

use berth_model::reservation::{Item, Reservation, State};
use berth_model::{Claim, ClaimId, Holder, Span};
use berth_store::{Conn, claims};
use jiff::Timestamp;

use crate::App;
use crate::clock::fresh;
use crate::error::Result;

/// The claims that hold a reservation's buffers. Past time cannot be held any more.
pub(crate) fn buffers(of: &Reservation, now: Timestamp) -> Vec<Claim> {
    let (start, end) = (of.span.start(), of.span.end());
    let has_begun = !matches!(
        of.state,
        State::Held | State::PendingApproval | State::Confirmed
    );
    let set_up = Span::new((start - of.terms.set_up.duration()).max(now), start);
    let clean_up = Span::new(end, end + of.terms.clean_up.duration());
    // An empty buffer makes no span, and so no claim.
    let spans = [set_up.ok().filter(|_| !has_begun), clean_up.ok()];
    let claim = |item: &Item, span| {
        let (id, holder) = (ClaimId(fresh(now)), Holder::Reservation(of.id));
        Claim::firm(id, of.site, item.resource, span, item.take, holder)
    };
    let spans = spans.into_iter().flatten();
    spans
        .flat_map(|span| of.items.iter().map(move |item| claim(item, span)))
        .collect()
}

fn has_buffers(of: &Reservation) -> bool {
    !(of.terms.set_up.is_zero() && of.terms.clean_up.is_zero())
}

/// The claims that hold a reservation's buffers now. Reads the database only if there may be some.
pub(crate) async fn held_buffers(conn: &mut Conn, of: &Reservation) -> Result<Vec<Claim>> {
    if !has_buffers(of) {
        return Ok(Vec::new());
    }
    let mut held = claims::held_by(conn, Holder::Reservation(of.id)).await?;
    held.retain(|claim| of.items.iter().all(|item| item.claim != claim.id));
    Ok(held)
}

impl App {
    /// The reservation ends, perhaps early: releases its resources and starts the clean-up.
    pub(super) async fn begin_cleaning(
        &self,
        conn: &mut Conn,
        before: &Reservation,
        after: &mut Reservation,
        now: Timestamp,
    ) -> Result<()> {
        if before.terms.clean_up.is_zero() {
            return Ok(());
        }
        let (later, over): (Vec<Claim>, Vec<Claim>) = held_buffers(conn, before)
            .await?
            .into_iter()
            .partition(|claim| claim.span.start() >= before.span.end());
        let items = before.items.iter().map(|item| item.claim);
        let over: Vec<ClaimId> = over.iter().map(|claim| claim.id).chain(items).collect();
        claims::release(conn, &over, now).await?;
        let ended = before.span.end().min(now);
        let until = ended + before.terms.clean_up.duration();
        if ended < before.span.end() {
            for claim in &later {
                // The span lies within the time that was just released and the old buffer.
                if let Ok(span) = Span::new(ended, until) {
                    claims::set_span(conn, claim.id, span).await?;
                }
            }
        }
        after.span = before.span.before(now).unwrap_or(before.span);
        after.terms.clean_until = Some(until);
        Ok(())
    }
}
