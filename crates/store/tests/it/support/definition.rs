//! The claim rule by its definition, over what a database holds: every pair compared, every start looked at.
//!
//! It shares no code with the store or the engine, knows nothing of codes, lines or triggers, and is as slow as it is
//! plain. An empty list means that every promise was kept.

use std::collections::{BTreeMap, BTreeSet};

use berth_model::{Claim, ClaimId, Resource, ResourceId, Standing, Take};

/// Everything that is wrong with the holding claims among `claims`, which are all that one site has.
pub fn broken(resources: &[Resource], claims: &[Claim]) -> Vec<String> {
    let tree: BTreeMap<ResourceId, &Resource> = resources.iter().map(|r| (r.id, r)).collect();
    let holding: Vec<&Claim> = claims
        .iter()
        .filter(|claim| claim.standing == Standing::Holding)
        .collect();
    let by_id: BTreeMap<ClaimId, &Claim> = holding.iter().map(|claim| (claim.id, *claim)).collect();

    let mut wrong = tree_is_broken(&tree);
    for (place, claim) in holding.iter().enumerate() {
        if !tree.contains_key(&claim.resource) {
            wrong.push(format!("{} holds what is gone", claim.id));
        }
        let others = &holding[place + 1..];
        let met = others.iter().filter(|other| conflict(&tree, claim, other));
        wrong.extend(met.map(|other| format!("{} and {} conflict", claim.id, other.id)));

        let container = claim.container.map(|id| by_id.get(&id).copied());
        match container {
            Some(None) => wrong.push(format!("{} lost its container", claim.id)),
            Some(Some(outer)) if !lies_within(&tree, claim, outer) => {
                wrong.push(format!("{} is outside {}", claim.id, outer.id));
            }
            _ => {}
        }
        if let Take::Amount(_) = claim.take {
            let room = room(&tree, claim, container.flatten());
            let taken = taken_at_start(&holding, claim);
            if taken > room {
                wrong.push(format!(
                    "{taken} of {room} are taken when {} starts",
                    claim.id
                ));
            }
        }
    }
    wrong
}

fn tree_is_broken(tree: &BTreeMap<ResourceId, &Resource>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (id, resource) in tree {
        match resource.parent.map(|parent| tree.get(&parent)) {
            Some(None) => wrong.push(format!("{id} hangs below what is gone")),
            Some(Some(parent)) if parent.capacity.is_some() => {
                wrong.push(format!("{id} hangs below a divisible resource"));
            }
            _ => {}
        }
        if way_up(tree, *id).len() > tree.len() {
            wrong.push(format!("{id} hangs in a circle"));
        }
    }
    wrong
}

/// The resource itself and all above it. A circle shows as a way longer than there are resources.
fn way_up(tree: &BTreeMap<ResourceId, &Resource>, from: ResourceId) -> Vec<ResourceId> {
    std::iter::successors(Some(from), |id| tree.get(id).and_then(|r| r.parent))
        .take(tree.len() + 1)
        .collect()
}

fn conflict(tree: &BTreeMap<ResourceId, &Resource>, a: &Claim, b: &Claim) -> bool {
    let one_is_above_the_other = way_up(tree, a.resource).contains(&b.resource)
        || way_up(tree, b.resource).contains(&a.resource);
    let meet_in_time = a.span.start() < b.span.end() && b.span.start() < a.span.end();
    let both_share = a.take != Take::Exclusive && b.take != Take::Exclusive;
    a.container == b.container && one_is_above_the_other && meet_in_time && !both_share
}

fn lies_within(tree: &BTreeMap<ResourceId, &Resource>, inner: &Claim, outer: &Claim) -> bool {
    outer.site == inner.site
        && outer.span.start() <= inner.span.start()
        && inner.span.end() <= outer.span.end()
        && way_up(tree, inner.resource).contains(&outer.resource)
        && (outer.take == Take::Exclusive || inner.take != Take::Exclusive)
}

/// How much there is to share where this claim stands.
fn room(tree: &BTreeMap<ResourceId, &Resource>, claim: &Claim, container: Option<&Claim>) -> u64 {
    match container.map(|container| container.take) {
        Some(Take::Amount(part)) => part.get(),
        _ => tree
            .get(&claim.resource)
            .and_then(|resource| resource.capacity.as_ref())
            .map_or(0, |capacity| capacity.amount.get()),
    }
}

/// What is taken rises only where a claim starts, so looking at every start finds the highest sum.
fn taken_at_start(holding: &[&Claim], claim: &Claim) -> u64 {
    let beside: BTreeSet<_> = holding
        .iter()
        .filter(|other| other.resource == claim.resource && other.container == claim.container)
        .filter(|other| {
            other.span.start() <= claim.span.start() && claim.span.start() < other.span.end()
        })
        .filter_map(|other| match other.take {
            Take::Amount(amount) => Some((other.id, amount.get())),
            Take::Exclusive => None,
        })
        .collect();
    beside.into_iter().map(|(_, amount)| amount).sum()
}
