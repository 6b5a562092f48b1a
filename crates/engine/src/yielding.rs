//! Softer claims give way to firmer ones.
//!
//! An opportunistic claim never refuses a firm one: the transaction that makes the firm claim first cuts the
//! yielding ones in its way to end where it starts. Among yielding claims the first come stays. A firm claim
//! never gives way; when firm claims alone stand in the way, nothing is cut at all.

use berth_model::claim::{Claim, Firmness};
use berth_model::{ClaimId, ResourceId};
use jiff::Timestamp;

use crate::rule::{Refusal, amount_of, conflicts, is_firm, is_holding, peak_amount};
use crate::tree::Tree;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Yield {
    pub claim: ClaimId,
    pub cut: Cut,
    /// When whoever runs it is told: its grace before the cut, or at once where that is too late.
    pub tell_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It ends at the firm claim's start.
    ShortenTo(Timestamp),
    /// It would not have begun by then, so nothing of it is left.
    Void,
}

/// What gives way for `new`, in the order of ids; or why even that would not make room.
///
/// `existing` may hold anything: only holding claims in the same container that overlap `new` are looked at.
/// `limit` is how much may be taken there by amount ([`crate::container::limit`]). A claim that takes an
/// amount asks no more to give way than it needs: those that began last are asked first, and of those that
/// began together the youngest.
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

/// A new claim on an amount, beside the firm claims on amounts of the same resource.
struct Sum<'a> {
    new: &'a Claim,
    wanted: u64,
    firm: Vec<&'a Claim>,
}

impl<'a> Sum<'a> {
    /// How much would be taken at once, with those of `soft` that stay.
    fn peak(&self, soft: &[&Claim]) -> u64 {
        let claims = self.firm.iter().chain(soft).copied();
        let (resource, container): (ResourceId, _) = (self.new.resource, self.new.container);
        peak_amount(claims, resource, container, self.new.span) + self.wanted
    }

    /// Those of `soft` that must go for the sum to fit, as few as will do.
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
        // Whoever began first is let stay first, and whoever no longer fits beside those goes. So the last
        // to begin are the ones asked, and nobody goes who would fit: each that goes was tried against
        // a set of claims that all stay.
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
