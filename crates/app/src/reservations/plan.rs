//! Computes what a change of a reservation means for its claims.

use berth_model::reservation::{self, Reservation};
use berth_model::{Claim, ClaimId, Holder, Span, Take};
use berth_store::inventory::Wanted;
use jiff::Timestamp;

use crate::clock::fresh;

/// The resulting claims, kept apart because each group is written in its own way.
pub(super) struct Plan {
    pub span: Span,
    pub kept: Vec<(ClaimId, Take)>,
    pub dropped: Vec<ClaimId>,
    pub added: Vec<Claim>,
}

/// Which claims stay, which end and which are new.
pub(super) fn plan(
    before: &Reservation,
    matched: &[(&Wanted, Take)],
    span: Span,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan {
        span,
        kept: Vec::new(),
        dropped: Vec::new(),
        added: Vec::new(),
    };
    for item in &before.items {
        match matched
            .iter()
            .find(|(wanted, _)| wanted.resource.id == item.resource)
        {
            Some((_, take)) => plan.kept.push((item.claim, *take)),
            None => plan.dropped.push(item.claim),
        }
    }
    for (wanted, take) in matched {
        if !before
            .items
            .iter()
            .any(|item| item.resource == wanted.resource.id)
        {
            let holder = Holder::Reservation(before.id);
            let id = ClaimId(fresh(now));
            let claim = Claim::firm(id, before.site, wanted.resource.id, span, *take, holder);
            plan.added.push(claim);
        }
    }
    plan
}

impl Plan {
    pub fn items(&self, before: &Reservation) -> Vec<reservation::Item> {
        let kept = before.items.iter().filter_map(|item| {
            let (_, take) = self.kept.iter().find(|(claim, _)| *claim == item.claim)?;
            Some(reservation::Item {
                take: *take,
                ..item.clone()
            })
        });
        let added = self.added.iter().map(reservation::Item::from);
        kept.chain(added).collect()
    }

    /// The claims that the reservation adds: all of a claim that is new or has another amount, and the added time of
    /// the others.
    pub fn grown(&self, before: &Reservation) -> Vec<Claim> {
        let grown = self.wanted(before).into_iter().flat_map(|claim| {
            let had = before.items.iter().find(|item| item.claim == claim.id);
            let pieces = match had {
                Some(had) if had.take == claim.take => claim.span.minus(&[before.span]),
                _ => vec![claim.span],
            };
            pieces.into_iter().map(move |span| Claim {
                span,
                ..claim.clone()
            })
        });
        grown.collect()
    }

    /// All claims that the reservation would hold, to explain what is in its way.
    pub fn wanted(&self, before: &Reservation) -> Vec<Claim> {
        let kept = self.items(before).into_iter().map(|item| {
            let holder = Holder::Reservation(before.id);
            Claim::firm(
                item.claim,
                before.site,
                item.resource,
                self.span,
                item.take,
                holder,
            )
        });
        kept.collect()
    }
}
