//! A checker without any of the engine's own code: it walks up to parents and checks every minute.

use std::collections::BTreeMap;

use super::*;
use berth_model::claim::Firmness;

pub const MINUTES: u16 = 24;

fn way_up(parents: &BTreeMap<ResourceId, Option<ResourceId>>, from: ResourceId) -> Vec<ResourceId> {
    let way = std::iter::successors(Some(from), |id| parents.get(id).copied().flatten());
    // A cycle appears as a path with more entries than there are resources.
    way.take(parents.len() + 1).collect()
}

/// The first violation in a state, if any.
pub fn broken(state: &Timeline) -> Option<String> {
    let Timeline {
        parents,
        capacities,
        claims,
        ..
    } = state;
    let is_above = |above, below| way_up(parents, below).contains(&above);
    for &id in parents.keys() {
        if way_up(parents, id).len() > parents.len() {
            return Some(format!("{id} hangs in a circle"));
        }
    }
    for (_, parent) in parents.iter() {
        match parent {
            Some(parent) if !parents.contains_key(parent) => return Some("no parent".into()),
            Some(parent) if capacities.contains_key(parent) => return Some("not a leaf".into()),
            _ => {}
        }
    }
    let holding: Vec<&Claim> = claims
        .values()
        .filter(|claim| claim.standing == Standing::Holding)
        .collect();
    for claim in &holding {
        if !parents.contains_key(&claim.resource) {
            return Some(format!("{} is on no resource", claim.id));
        }
        if let Some(container) = claim.container {
            let Some(container) = holding.iter().find(|other| other.id == container) else {
                return Some(format!("{} has lost its container", claim.id));
            };
            let part_of_part = container.take == Take::Exclusive || claim.take != Take::Exclusive;
            let keeps_within = container.span.start() <= claim.span.start()
                && claim.span.end() <= container.span.end()
                && is_above(container.resource, claim.resource)
                && part_of_part
                && container.id != claim.id;
            if !keeps_within {
                return Some(format!("{} is outside its container", claim.id));
            }
        }
    }
    // A drawn span may begin in the last minute and last equally long.
    for minute in 0..i64::from(MINUTES) * 2 {
        let now: Vec<&&Claim> = holding
            .iter()
            .filter(|claim| claim.span.contains_moment(at(minute)))
            .collect();
        for a in &now {
            let peers = now.iter().filter(|b| b.container == a.container);
            for b in peers.clone().filter(|b| b.id != a.id) {
                let related = is_above(a.resource, b.resource) || is_above(b.resource, a.resource);
                let both_share = a.take != Take::Exclusive && b.take != Take::Exclusive;
                if related && !both_share {
                    return Some(format!("{} meets {} at minute {minute}", a.id, b.id));
                }
            }
            let Take::Amount(_) = a.take else { continue };
            let taken: u64 = peers
                .filter(|b| b.resource == a.resource)
                .map(|b| match b.take {
                    Take::Amount(amount) => amount.get(),
                    Take::Exclusive => 0,
                })
                .sum();
            let container = holding.iter().find(|other| Some(other.id) == a.container);
            let room = match container.map(|container| container.take) {
                Some(Take::Amount(part)) => part.get(),
                _ => capacities
                    .get(&a.resource)
                    .map_or(0, |capacity| capacity.get()),
            };
            if taken > room {
                return Some(format!("{taken} of {room} taken at minute {minute}"));
            }
        }
    }
    None
}

pub fn same(a: &Timeline, b: &Timeline) -> bool {
    (&a.parents, &a.capacities, &a.claims) == (&b.parents, &b.capacities, &b.claims)
}

/// Whether the state would be valid after the operation without any check.
pub fn expected(before: &Timeline, operation: &Operation) -> bool {
    let mut after = before.clone();
    let is_done = do_blindly(&mut after, operation);
    is_done && broken(&after).is_none()
}

/// Performs the operation without checks. Returns false only if a named thing does not exist, or a new one already
/// does.
fn do_blindly(state: &mut Timeline, operation: &Operation) -> bool {
    match operation {
        Operation::AddResource {
            resource,
            parent,
            capacity,
        } => {
            let capacity = capacity.map(|capacity| (*resource, capacity));
            state.capacities.extend(capacity);
            state.parents.insert(*resource, *parent).is_none()
        }
        // A container is inserted before the claims inside it, so each claim is checked in its turn.
        Operation::Insert(claims) => claims.iter().all(|claim| {
            let is_new = state.claims.insert(claim.id, claim.clone()).is_none();
            is_new && broken(state).is_none()
        }),
        Operation::InsertFirmly { claim, .. } => {
            if claim.firmness == Firmness::Firm {
                let soft = |other: &&Claim| {
                    other.container == claim.container && other.firmness != Firmness::Firm
                };
                let soft: Vec<ClaimId> = state.claims().filter(soft).map(|soft| soft.id).collect();
                soft.into_iter()
                    .for_each(|soft| end_with_inside(state, soft));
            }
            state.claims.insert(claim.id, claim.clone()).is_none()
        }
        Operation::SetSpan { claim, span } => change(state, *claim, |claim| claim.span = *span),
        Operation::Rebind {
            claim,
            resource,
            take,
        } => change(state, *claim, |claim| {
            (claim.resource, claim.take) = (*resource, *take)
        }),
        Operation::Release { claim, .. } => {
            change(state, *claim, |claim| claim.standing = Standing::Past)
        }
        Operation::ReleaseWithInside { claim, .. } => {
            let is_there = change(state, *claim, |_| {});
            end_with_inside(state, *claim);
            is_there
        }
        Operation::SetSpanWithInside { claim, span } => {
            for inner in with_inside(state, *claim).into_iter().skip(1) {
                change(state, inner, |inner| match inner.span.intersection(*span) {
                    Some(left) => inner.span = left,
                    None => inner.standing = Standing::Void,
                });
            }
            change(state, *claim, |claim| claim.span = *span)
        }
        Operation::MoveSubtree { resource, under } => {
            state.parents.insert(*resource, *under).is_some()
        }
        Operation::SetCapacity { resource, capacity } => {
            match capacity {
                Some(capacity) => state.capacities.insert(*resource, *capacity),
                None => state.capacities.remove(resource),
            };
            state.parents.contains_key(resource)
        }
    }
}

/// Changes a holding claim; false if there is none.
fn change(state: &mut Timeline, id: ClaimId, change: impl FnOnce(&mut Claim)) -> bool {
    match state.claims.get_mut(&id) {
        Some(claim) if claim.standing == Standing::Holding => {
            change(claim);
            true
        }
        _ => false,
    }
}

/// A claim and all claims inside it, at any depth.
fn with_inside(state: &Timeline, id: ClaimId) -> Vec<ClaimId> {
    let mut found = vec![id];
    while let Some(next) = state.claims().find(|claim| {
        let is_inside = claim
            .container
            .is_some_and(|container| found.contains(&container));
        is_inside && claim.standing == Standing::Holding && !found.contains(&claim.id)
    }) {
        found.push(next.id);
    }
    found
}

fn end_with_inside(state: &mut Timeline, id: ClaimId) {
    for id in with_inside(state, id) {
        change(state, id, |claim| claim.standing = Standing::Void);
    }
}
