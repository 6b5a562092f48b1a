//! Looks over a finished set of claims for a broken promise, in one pass through time.
//!
//! Tests run it over everything a database holds after it was hammered and killed, a million claims and more,
//! and so may an administrator who doubts. It shares no state with whoever kept the promise. It reports every
//! pair that conflicts, every sum that is too high and every claim outside its container; an empty list means
//! that the rule was kept.
//!
//! Void claims occupied nothing and are passed over. Claims that are past count with what they occupied; give
//! only the holding ones where the tree or the capacities have changed since, for a move does not rewrite
//! history.

use std::collections::BTreeMap;

use berth_model::claim::{Amount, Claim, Standing};
use berth_model::{ClaimId, ResourceId, Span};
use jiff::Timestamp;

use crate::container;
use crate::rule::{amount_of, is_holding, usage};
use crate::tree::Tree;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// Both stand on related resources at one time, and not both by amount. The lower id comes first.
    Pair(ClaimId, ClaimId),
    /// More is taken at once than there is, in this container.
    Sum {
        resource: ResourceId,
        container: Option<ClaimId>,
        from: Timestamp,
        taken: u64,
        limit: u64,
    },
    /// It reaches beyond its container, or its container is not there.
    Outside(ClaimId),
    /// It is on a resource that the tree does not have.
    Nowhere(ClaimId),
}

/// Everything that is wrong with these claims of one site, in a fixed order.
pub fn broken<'a>(
    tree: &Tree,
    capacity: impl Fn(ResourceId) -> Option<Amount>,
    claims: impl IntoIterator<Item = &'a Claim>,
) -> Vec<Broken> {
    let claims: BTreeMap<ClaimId, &Claim> = claims
        .into_iter()
        .filter(|claim| claim.standing != Standing::Void)
        .map(|claim| (claim.id, claim))
        .collect();
    let mut found: Vec<Broken> = Vec::new();
    let mut scopes: BTreeMap<Option<ClaimId>, Vec<&Claim>> = BTreeMap::new();
    for claim in claims.values() {
        if !tree.contains(claim.resource) {
            found.push(Broken::Nowhere(claim.id));
            continue;
        }
        let container = claim.container.and_then(|id| claims.get(&id));
        let keeps_within = container.is_some_and(|container| {
            let outlives = is_holding(claim) && !is_holding(container);
            container::is_within(tree, claim, container) && !outlives && container.id != claim.id
        });
        if claim.container.is_some() && !keeps_within {
            found.push(Broken::Outside(claim.id));
        }
        scopes.entry(claim.container).or_default().push(claim);
    }
    for (scope, inside) in scopes {
        pairs(tree, &inside, &mut found);
        let container = scope.and_then(|id| claims.get(&id)).copied();
        sums(
            &inside,
            |resource| container::limit(capacity(resource), container),
            &mut found,
        );
    }
    found.sort();
    found
}

/// The claims standing at the moment the sweep has come to, by the place of their resource. An id is always
/// there; that it could be missing gives a bound below all ids of a place.
type Standings<'a> = BTreeMap<(usize, Option<ClaimId>), &'a Claim>;

fn pairs(tree: &Tree, claims: &[&Claim], found: &mut Vec<Broken>) {
    // Ends sort before starts, so that spans that touch do not meet.
    const END: u8 = 0;
    const START: u8 = 1;
    let mut changes: Vec<(Timestamp, u8, &Claim)> = Vec::with_capacity(claims.len() * 2);
    for claim in claims {
        changes.push((claim.span.start(), START, claim));
        changes.push((claim.span.end(), END, claim));
    }
    changes.sort_unstable_by_key(|(at, kind, claim)| (*at, *kind, claim.id));

    let mut standing = Standings::new();
    for (_, kind, claim) in changes {
        let Some(reach) = tree.reach(claim.resource) else {
            continue;
        };
        let key = (reach.start, Some(claim.id));
        if kind == END {
            standing.remove(&key);
            continue;
        }
        let at_or_below = standing.range((reach.start, None)..(reach.end, None));
        let above = tree
            .ancestors(claim.resource)
            .filter_map(|above| tree.reach(above));
        let above =
            above.flat_map(|above| standing.range((above.start, None)..(above.start + 1, None)));
        for (_, other) in at_or_below.chain(above) {
            if amount_of(claim).is_none() || amount_of(other).is_none() {
                found.push(Broken::Pair(claim.id.min(other.id), claim.id.max(other.id)));
            }
        }
        standing.insert(key, claim);
    }
}

fn sums(claims: &[&Claim], limit: impl Fn(ResourceId) -> Option<u64>, found: &mut Vec<Broken>) {
    type Shares = Vec<(Span, u64)>;
    let mut shares: BTreeMap<(ResourceId, Option<ClaimId>), Shares> = BTreeMap::new();
    for claim in claims {
        let share = amount_of(claim).map(|amount| (claim.span, amount));
        shares
            .entry((claim.resource, claim.container))
            .or_default()
            .extend(share);
    }
    for ((resource, container), shares) in shares {
        let limit = limit(resource).unwrap_or(0);
        let steps = usage(shares)
            .into_iter()
            .filter(|(_, taken)| *taken > limit);
        found.extend(steps.map(|(from, taken)| Broken::Sum {
            resource,
            container,
            from,
            taken,
            limit,
        }));
    }
}

#[cfg(test)]
#[path = "sweep/tests.rs"]
mod tests;
