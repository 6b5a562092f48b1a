//! The claim rule by its definition: every pair compared, every start looked at. Slow, and therefore only for as many
//! claims as that can be done with; the sweep must come to the same verdict.

use std::collections::BTreeMap;

use berth_engine::tree::Tree;
use berth_model::{Amount, Claim, ResourceId, Take};

/// More pairs than this are left to the sweep.
const PAIRS_MAX: usize = 40_000_000;

/// What breaks the rule, or nothing at all where there is too much to compare.
pub fn breaches(
    tree: &Tree,
    capacity: impl Fn(ResourceId) -> Option<Amount>,
    claims: &[&Claim],
) -> Option<Vec<String>> {
    let mut by_resource: BTreeMap<ResourceId, Vec<&Claim>> = BTreeMap::new();
    for claim in claims {
        by_resource.entry(claim.resource).or_default().push(claim);
    }
    let mut pairs = Vec::new();
    for (one, mine) in &by_resource {
        for (other, theirs) in by_resource.range(*one..) {
            if is_at_or_above(tree, *one, *other) || is_at_or_above(tree, *other, *one) {
                pairs.push((mine, theirs));
            }
        }
    }
    let work: usize = pairs
        .iter()
        .map(|(mine, theirs)| mine.len() * theirs.len())
        .sum();
    if work > PAIRS_MAX {
        return None;
    }
    let mut found = Vec::new();
    for (mine, theirs) in pairs {
        for a in mine {
            let met = theirs
                .iter()
                .filter(|b| a.id < b.id || a.resource != b.resource);
            let met = met.filter(|b| meet(a, b));
            found.extend(met.map(|b| format!("{} meets {}", a.id, b.id)));
        }
    }
    for (resource, shares) in &by_resource {
        let room = capacity(*resource).map_or(0, Amount::get);
        for claim in shares.iter().filter(|claim| claim.take != Take::Exclusive) {
            let taken = taken_when_it_starts(claim, shares);
            if taken > room {
                found.push(format!(
                    "{taken} of {room} are taken when {} starts",
                    claim.id
                ));
            }
        }
    }
    Some(found)
}

fn is_at_or_above(tree: &Tree, above: ResourceId, below: ResourceId) -> bool {
    above == below || tree.ancestors(below).any(|ancestor| ancestor == above)
}

fn meet(a: &Claim, b: &Claim) -> bool {
    let both_share = a.take != Take::Exclusive && b.take != Take::Exclusive;
    let in_time = a.span.start() < b.span.end() && b.span.start() < a.span.end();
    a.container == b.container && in_time && !both_share
}

/// What is taken rises only where a claim starts, so looking at every start finds the highest sum.
fn taken_when_it_starts(claim: &Claim, shares: &[&Claim]) -> u64 {
    let at = claim.span.start();
    let then = shares.iter().filter(|other| {
        other.container == claim.container && other.span.start() <= at && at < other.span.end()
    });
    then.filter_map(|other| match other.take {
        Take::Amount(amount) => Some(amount.get()),
        Take::Exclusive => None,
    })
    .sum()
}
