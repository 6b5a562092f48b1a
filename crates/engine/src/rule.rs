//! The claim rule: which claims may coexist.
//!
//! Two claims that overlap in time conflict if their resources are the same, or one is above the other, unless both
//! take amounts. The amounts of one resource never exceed its capacity. Claims in different containers are never
//! compared; [`crate::container`] has the rules for claims inside a container. Both databases enforce the claim rule
//! on their own. This plain version explains refusals and checks the databases.

use berth_model::claim::{Amount, Claim, Firmness, Standing};
use berth_model::{ClaimId, ResourceId, Span};
use jiff::Timestamp;

use crate::tree::{Tree, TreeError};

/// Why the timeline refuses a change. Lists of claims are in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the time is taken by {} other claim(s)", with.len())]
    Conflict { with: Vec<ClaimId> },
    #[error("the move would make {} pair(s) of claims conflict", pairs.len())]
    MoveConflict {
        /// The claim that would move with the subtree, then the claim that it would conflict with.
        pairs: Vec<(ClaimId, ClaimId)>,
    },
    #[error("{resource} has {capacity} to share here, and {peak} would be taken at once")]
    Amount {
        resource: ResourceId,
        capacity: u64,
        peak: u64,
    },
    #[error("{} claim(s) would reach beyond the claim they stand inside", claims.len())]
    OutsideContainer { claims: Vec<ClaimId> },
    #[error("{container} holds nothing that a claim could stand inside")]
    ContainerGone { container: ClaimId },
    #[error("{} claim(s) still stand inside; settle them first", claims.len())]
    HoldsOthers { claims: Vec<ClaimId> },
    #[error("{resource} is not divisible; take it as a whole, or give it a capacity")]
    NotDivisible { resource: ResourceId },
    #[error("{resource} cannot have both a capacity and children; what is shared is a leaf")]
    HasChildrenAndCapacity { resource: ResourceId },
    #[error("{claim} is not a claim that still holds something")]
    NotHolding { claim: ClaimId },
    #[error("there is already a claim {claim}")]
    Exists { claim: ClaimId },
    #[error(transparent)]
    Tree(#[from] TreeError),
}

pub fn is_holding(claim: &Claim) -> bool {
    claim.standing == Standing::Holding
}

pub fn is_firm(claim: &Claim) -> bool {
    claim.firmness == Firmness::Firm
}

/// The amount that a claim takes; none if it takes its resource whole.
pub fn amount_of(claim: &Claim) -> Option<u64> {
    claim.take.amount().map(Amount::get)
}

/// Whether two claims conflict. A claim never conflicts with itself, so a changed claim can be checked against the
/// state that contains it.
pub fn conflicts(tree: &Tree, a: &Claim, b: &Claim) -> bool {
    let both_share = amount_of(a).is_some() && amount_of(b).is_some();
    a.id != b.id
        && is_holding(a)
        && is_holding(b)
        && a.container == b.container
        && a.span.overlaps(b.span)
        && !both_share
        && tree.related(a.resource, b.resource)
}

/// The claims that `new` conflicts with, in the order of their ids.
pub fn conflicting<'a>(
    tree: &Tree,
    new: &Claim,
    claims: impl IntoIterator<Item = &'a Claim>,
) -> Vec<ClaimId> {
    let met = claims
        .into_iter()
        .filter(|other| conflicts(tree, new, other));
    let mut ids: Vec<ClaimId> = met.map(|other| other.id).collect();
    ids.sort();
    ids
}

/// The highest amount of a resource taken at one moment of `span`. Only those of `claims` count that hold an amount
/// of `resource` in `container`.
pub fn peak_amount<'a>(
    claims: impl IntoIterator<Item = &'a Claim>,
    resource: ResourceId,
    container: Option<ClaimId>,
    span: Span,
) -> u64 {
    let shares = claims.into_iter().filter(|claim| {
        is_holding(claim) && claim.resource == resource && claim.container == container
    });
    let within =
        shares.filter_map(|claim| Some((claim.span.intersection(span)?, amount_of(claim)?)));
    usage(within)
        .into_iter()
        .map(|(_, taken)| taken)
        .max()
        .unwrap_or(0)
}

/// The total amount from each moment on at which it changes; nothing before the first. All given amounts count: the
/// caller selects the claims.
pub fn usage(amounts: impl IntoIterator<Item = (Span, u64)>) -> Vec<(Timestamp, u64)> {
    let mut changes: Vec<(Timestamp, i128)> = Vec::new();
    for (span, amount) in amounts {
        changes.push((span.start(), i128::from(amount)));
        changes.push((span.end(), -i128::from(amount)));
    }
    changes.sort_unstable();
    let mut taken = 0;
    let mut steps: Vec<(Timestamp, u64)> = Vec::new();
    for (at, change) in changes {
        taken += change;
        // At one moment the negative changes come first, and each returns an amount taken earlier. So the sum is
        // never negative.
        let now_taken = u64::try_from(taken).unwrap_or(0);
        match steps.last_mut() {
            Some((last, amount)) if *last == at => *amount = now_taken,
            _ => steps.push((at, now_taken)),
        }
    }
    steps
}

#[cfg(test)]
#[path = "rule/tests.rs"]
mod tests;
