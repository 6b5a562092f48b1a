//! Finds the bookings that a site file would break: bookings on resources that it removes, and bookings that would
//! conflict after it moves resources.

use std::collections::{BTreeSet, HashMap};

use berth_engine::plan::{Plan, Step};
use berth_engine::rule::conflicts;
use berth_engine::tree::Tree;
use berth_model::declared::Declared;
use berth_model::{Claim, Name, ResourceId};
use berth_store::{Conn, claims};

use super::Present;
use crate::error::{Error, Result};

/// Nobody reads more than this before acting.
const SHOWN_MAX: usize = 100;

/// Each resource that the plan cannot remove or move, with a claim that prevents it.
pub(super) async fn in_the_way(
    conn: &mut Conn,
    present: &Present,
    wanted: &Declared,
    plan: &Plan,
) -> Result<Vec<(ResourceId, Claim)>> {
    let id = |name: &Name| present.resources.get(name).map(|resource| resource.id);
    let removed = plan.steps.iter().filter_map(|step| match step {
        Step::RemoveResource(name) => id(name),
        _ => None,
    });
    let removed: Vec<ResourceId> = removed.collect();
    let moved = plan.steps.iter().filter_map(|step| match step {
        Step::MoveResource(name) => id(name),
        _ => None,
    });
    let moved: Vec<ResourceId> = moved.collect();
    let mut met = Vec::new();
    if !removed.is_empty() {
        let held = claims::holding_on(conn, removed).await?;
        met.extend(held.into_iter().map(|claim| (claim.resource, claim)));
    }
    if !moved.is_empty() {
        met.extend(would_meet(conn, present, wanted, &moved).await?);
    }
    met.truncate(SHOWN_MAX);
    Ok(met)
}

async fn would_meet(
    conn: &mut Conn,
    present: &Present,
    wanted: &Declared,
    moved: &[ResourceId],
) -> Result<Vec<(ResourceId, Claim)>> {
    let before = tree(present, None)?;
    let after = tree(present, Some(wanted))?;
    // Two claims can only conflict if the resource of one is below the other's. The lowest moved resource between them
    // already carries the lower one, and gets the upper one as a new ancestor.
    let newly_above = |id: ResourceId| {
        let above: Vec<ResourceId> = after
            .ancestors(id)
            .filter(|above| before.contains(*above) && !before.is_at_or_below(id, *above))
            .collect();
        above
    };
    let above: BTreeSet<ResourceId> = moved.iter().flat_map(|id| newly_above(*id)).collect();
    let standing = by_resource(claims::holding_on(conn, above.into_iter().collect()).await?);
    let mut going: Vec<(ResourceId, Vec<ResourceId>)> = Vec::new();
    for id in moved {
        let taken: Vec<ResourceId> = newly_above(*id)
            .into_iter()
            .filter(|above| standing.contains_key(above))
            .collect();
        if !taken.is_empty() {
            let along = std::iter::once(*id).chain(before.descendants(*id));
            let along = along.filter(|it| after.is_at_or_below(*it, *id));
            going.extend(along.map(|it| (it, taken.clone())));
        }
    }
    let ids: BTreeSet<ResourceId> = going.iter().map(|(id, _)| *id).collect();
    let coming = by_resource(claims::holding_on(conn, ids.into_iter().collect()).await?);
    let mut met = Vec::new();
    for (id, above) in going {
        let mine = coming.get(&id).into_iter().flatten();
        for mine in mine {
            let theirs = above
                .iter()
                .filter_map(|above| standing.get(above))
                .flatten();
            for theirs in theirs.filter(|theirs| conflicts(&after, mine, theirs)) {
                met.push((mine.resource, theirs.clone()));
                if met.len() >= SHOWN_MAX {
                    return Ok(met);
                }
            }
        }
    }
    Ok(met)
}

fn by_resource(claims: Vec<Claim>) -> HashMap<ResourceId, Vec<Claim>> {
    let mut found: HashMap<ResourceId, Vec<Claim>> = HashMap::new();
    for claim in claims {
        found.entry(claim.resource).or_default().push(claim);
    }
    found
}

/// The current resource tree, or the one that the file declares. New resources have no bookings, so the walk towards
/// the root skips new parents.
fn tree(present: &Present, wanted: Option<&Declared>) -> Result<Tree> {
    let wanted = wanted.and_then(|wanted| wanted.resources.as_ref());
    let now = present.declared.resources.as_ref();
    let parent_of = |name: &Name| -> Option<&Name> {
        let declared = wanted.and_then(|wanted| wanted.get(name));
        let declared = declared.or_else(|| now.and_then(|now| now.get(name)));
        declared.and_then(|resource| resource.parent.as_ref())
    };
    let existing_above = |name: &Name| {
        std::iter::successors(parent_of(name), |name| parent_of(name))
            .find_map(|name| present.resources.get(name))
            .map(|resource| resource.id)
    };
    let links = present
        .resources
        .iter()
        .map(|(name, resource)| (resource.id, existing_above(name)));
    Tree::new(links).map_err(|_| Error::Cycle)
}
