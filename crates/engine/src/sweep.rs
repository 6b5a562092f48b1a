//! Checks a finished set of claims for violations of the claim rule, in one pass through time.
//!
//! Tests run it over all claims of a database after load and crashes, a million claims and more. An administrator may
//! run it as an audit. It shares no state with the code that enforces the rule. It reports every conflicting pair,
//! every sum that is too high and every claim outside its container. An empty list means that there are no
//! violations.
//!
//! It skips void claims, since they occupied nothing. Past claims count with the time that they occupied. If the tree
//! or the capacities have changed since, pass only the holding claims, since a move does not rewrite history.

use std::collections::BTreeMap;

use berth_model::claim::{Amount, Claim, Standing};
use berth_model::{ClaimId, ResourceId, Span};
use jiff::Timestamp;

use crate::container;
use crate::rule::{amount_of, is_holding, usage};
use crate::tree::Tree;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// Both claims are on related resources at one time, and at least one takes the whole resource. The lower id
    /// comes first.
    Pair(ClaimId, ClaimId),
    /// The amounts taken at one time exceed the limit in this container.
    Sum {
        resource: ResourceId,
        container: Option<ClaimId>,
        from: Timestamp,
        taken: u64,
        limit: u64,
    },
    /// It exceeds its container, or its container does not exist.
    Outside(ClaimId),
    /// Its resource is not in the tree.
    Nowhere(ClaimId),
}

/// All violations among these claims of one site, in a fixed order.
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

/// The claims at the current moment of the sweep, by the place of their resource. The id is always present; the
/// `Option` only allows a bound below all ids of a place.
type Standings<'a> = BTreeMap<(usize, Option<ClaimId>), &'a Claim>;

fn pairs(tree: &Tree, claims: &[&Claim], found: &mut Vec<Broken>) {
    // Ends sort before starts, so that spans that touch do not overlap.
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
