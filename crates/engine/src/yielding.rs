//! Firm claims preempt yielding claims.
//!
//! An opportunistic claim never blocks a firm one. The transaction that makes the firm claim first shortens the
//! yielding claims in its way to end where it starts. Among yielding claims the earlier one stays. A firm claim is
//! never preempted. If a firm claim is in the way, nothing is shortened at all.

use berth_model::claim::{Claim, Firmness};
use berth_model::{ClaimId, ResourceId};
use jiff::Timestamp;

use crate::rule::{Refusal, amount_of, conflicts, is_firm, is_holding, peak_amount};
use crate::tree::Tree;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Yield {
    pub claim: ClaimId,
    pub cut: Cut,
    /// When to notify the workload: its grace period before the cut, or at once if that time has passed.
    pub tell_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It ends at the start of the firm claim.
    ShortenTo(Timestamp),
    /// It would not have begun by then, so nothing remains of it.
    Void,
}

/// The claims that `new` preempts, in the order of ids, or the reason why preemption would not make room.
///
/// `existing` may hold any claims: only holding claims in the same container that overlap `new` count. `limit` is the
/// limit for amounts there ([`crate::container::limit`]). A claim on an amount preempts no more than it needs: the
/// claims that began last first, and of claims that began together the youngest first.
pub fn yield_plan<'a>(
    tree: &Tree,
    limit: Option<u64>,
    new: &Claim,
    existing: impl IntoIterator<Item = &'a Claim>,
    now: Timestamp,
) -> Result<Vec<Yield>, Refusal> {
    let peers = existing.into_iter().filter(|other| {
        is_holding(other)
            && other.id != new.id
            && other.container == new.container
            && other.span.overlaps(new.span)
    });
    let (in_the_way, beside): (Vec<&Claim>, Vec<&Claim>) =
        peers.partition(|other| conflicts(tree, new, other));
    let yields = |other: &Claim| is_firm(new) && !is_firm(other);

    let (mut giving_way, standing): (Vec<&Claim>, Vec<&Claim>) =
        in_the_way.into_iter().partition(|other| yields(other));
    if !standing.is_empty() {
        return Err(Refusal::Conflict {
            with: in_order(standing),
        });
    }
    if let Some(wanted) = amount_of(new) {
        let resource = new.resource;
        let capacity = limit.ok_or(Refusal::NotDivisible { resource })?;
        let shares = beside
            .into_iter()
            .filter(|other| other.resource == resource);
        let (soft, firm) = shares.partition(|other| yields(other));
        let sum = Sum { new, wanted, firm };
        giving_way.extend(sum.make_room(capacity, soft)?);
    }
    giving_way.sort_by_key(|claim| claim.id);
    Ok(giving_way
        .into_iter()
        .map(|claim| give_way(claim, new, now))
        .collect())
}

fn in_order(claims: Vec<&Claim>) -> Vec<ClaimId> {
    let mut ids: Vec<ClaimId> = claims.into_iter().map(|claim| claim.id).collect();
    ids.sort();
    ids
}

fn give_way(claim: &Claim, to: &Claim, now: Timestamp) -> Yield {
    let grace = match claim.firmness {
        Firmness::Firm => jiff::SignedDuration::ZERO,
        Firmness::Yielding { grace } => grace,
    };
    let end = to.span.start();
    let (cut, told_by) = match claim.span.before(end) {
        Some(_) => (Cut::ShortenTo(end), end.checked_sub(grace).unwrap_or(now)),
        None => (Cut::Void, now),
    };
    Yield {
        claim: claim.id,
        cut,
        tell_at: told_by.max(now),
    }
}

/// A new claim on an amount, and the firm claims on amounts of the same resource.
struct Sum<'a> {
    new: &'a Claim,
    wanted: u64,
    firm: Vec<&'a Claim>,
}

impl<'a> Sum<'a> {
    /// The highest total amount at one moment if the claims in `soft` stay.
    fn peak(&self, soft: &[&Claim]) -> u64 {
        let claims = self.firm.iter().chain(soft).copied();
        let (resource, container): (ResourceId, _) = (self.new.resource, self.new.container);
        peak_amount(claims, resource, container, self.new.span) + self.wanted
    }

    /// The claims in `soft` that must go for the sum to fit, as few as possible.
    fn make_room(
        &self,
        capacity: u64,
        mut soft: Vec<&'a Claim>,
    ) -> Result<Vec<&'a Claim>, Refusal> {
        let peak = self.peak(&[]);
        if peak > capacity {
            return Err(Refusal::Amount {
                resource: self.new.resource,
                capacity,
                peak,
            });
        }
        // Claims stay in the order of their starts, and a claim that no longer fits goes. So the last to begin are
        // preempted, and no claim goes that would fit: each was tried against a set of claims that all stay.
        soft.sort_by_key(|claim| (claim.span.start(), claim.id));
        let (mut staying, mut going) = (Vec::new(), Vec::new());
        for claim in soft {
            staying.push(claim);
            if self.peak(&staying) > capacity {
                staying.pop();
                going.push(claim);
            }
        }
        Ok(going)
    }
}

#[cfg(test)]
#[path = "yielding/tests.rs"]
mod tests;
