//! Chooses N of the candidates for a booking when several sets would do.
//!
//! The criteria, in this order:
//! - The set that exceeds the request least, by the cost that the caller gives to each candidate. So large machines
//!   stay free for bookings that need them.
//! - The resources nearest to each other: the set with the smallest common subtree.
//! - The tightest fit in time, so that long free stretches stay long.
//! - The order of the tree, so that the same question always gets the same answer.
//!
//! Taking a candidate above another candidate would take both. So only the lowest candidates are considered; whenever
//! the upper one is free, so are they.

use berth_model::claim::Take;
use berth_model::{ResourceId, Span};

use crate::busy::{Busy, Scratch, Stretch, stretch};

/// A resource that meets the request, and by how much it exceeds it. The unit is arbitrary, but the same for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub resource: ResourceId,
    pub cost: u64,
}

/// A candidate by its place in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Placed {
    pub place: usize,
    pub cost: u64,
}

/// How far around a span its fit is measured: two free months and two free years are equally loose.
const FIT_WITHIN_US: i64 = 14 * 24 * 3_600_000_000;

/// Chooses `count` of the candidates that are free for all of `span`, in the order of the tree; none if fewer are
/// free. If a candidate is listed twice, the lower cost counts.
pub fn choose(
    busy: &Busy,
    candidates: &[Candidate],
    take: Take,
    count: usize,
    span: Span,
) -> Option<Vec<ResourceId>> {
    let chosen = choose_placed(busy, &lowest(busy, candidates), take, count, stretch(span))?;
    Some(busy.resources_at(&chosen))
}

/// The candidates of this tree that have no other candidate below them, in the order of the tree.
pub(crate) fn lowest(busy: &Busy, candidates: &[Candidate]) -> Vec<Placed> {
    let placed = |candidate: &Candidate| {
        let place = busy.place(candidate.resource)?;
        let cost = candidate.cost;
        Some(Placed { place, cost })
    };
    let mut places: Vec<Placed> = candidates.iter().filter_map(placed).collect();
    places.sort_unstable();
    places.dedup_by_key(|placed| placed.place);
    let next: Vec<usize> = places.iter().skip(1).map(|placed| placed.place).collect();
    let mut next = next.into_iter();
    // In the order of the walk, the next candidate after an upper candidate is below it.
    places.retain(|placed| {
        next.next()
            .is_none_or(|next| next >= busy.end(placed.place))
    });
    places
}

/// [`choose`] for candidates that are in the order of the tree, none above another. Returns places in that order.
pub(crate) fn choose_placed(
    busy: &Busy,
    candidates: &[Placed],
    take: Take,
    count: usize,
    during: Stretch,
) -> Option<Vec<usize>> {
    let mut scratch = Scratch::default();
    let window = (during.0 - FIT_WITHIN_US, during.1 + FIT_WITHIN_US);
    let mut free_with_slack = |candidate: &Placed| {
        let place = candidate.place;
        let (from, to) = busy.free_around(place, take, during, window, &mut scratch)?;
        let slack = (to - from) - (during.1 - during.0);
        Some((candidate.cost, Open { place, slack }))
    };
    let free = candidates.iter().filter_map(&mut free_with_slack);
    let mut by_cost: Vec<(u64, Open)> = free.collect();
    if by_cost.len() < count {
        return None;
    }
    by_cost.sort_by_key(|(cost, _)| *cost);
    let dearest = by_cost[..count].last().map_or(0, |(cost, _)| *cost);
    // All candidates cheaper than the dearest needed one are taken. The choice is among those of equal, highest cost.
    let sure = by_cost.partition_point(|(cost, _)| *cost < dearest);
    let end = by_cost.partition_point(|(cost, _)| *cost <= dearest);
    let place = |(_, open): &(u64, Open)| open.place;
    let mut chosen: Vec<usize> = by_cost[..sure].iter().map(place).collect();
    let open: Vec<Open> = by_cost[sure..end].iter().map(|(_, open)| *open).collect();
    let within = home(busy, &chosen, &open, count - sure);
    gather(busy, within, &open, count - sure, &mut chosen);
    chosen.sort_unstable();
    Some(chosen)
}

#[derive(Debug, Clone, Copy)]
struct Open {
    place: usize,
    /// How much free time would remain around the booking.
    slack: i64,
}

/// Those of `open` in the subtree at `within`, or all if it is none. `open` is in the order of the tree.
fn inside<'a>(busy: &Busy, within: Option<usize>, open: &'a [Open]) -> &'a [Open] {
    let Some(top) = within else { return open };
    let first = open.partition_point(|open| open.place < top);
    let end = open.partition_point(|open| open.place < busy.end(top));
    &open[first..end]
}

/// The top of the smallest subtree that contains all of `sure` and `more` of `open`; none is the whole site.
fn home(busy: &Busy, sure: &[usize], open: &[Open], more: usize) -> Option<usize> {
    let covers = |top: usize| {
        sure.iter()
            .all(|place| (top..busy.end(top)).contains(place))
    };
    // Every suitable subtree contains a sure place, or otherwise an open one.
    let starts: Vec<usize> = match sure.first() {
        Some(first) => vec![*first],
        None => open.iter().map(|open| open.place).collect(),
    };
    let mut seen = vec![false; busy.tree().len()];
    let mut best: Option<(usize, i64, usize)> = None;
    for start in starts {
        let upwards = std::iter::successors(Some(start), |place| busy.parent(*place));
        for top in upwards {
            if std::mem::replace(&mut seen[top], true) {
                break;
            }
            let size = busy.end(top) - top;
            let here = inside(busy, Some(top), open);
            if best.is_some_and(|(smallest, ..)| size > smallest) {
                break;
            }
            if here.len() < more || !covers(top) {
                continue;
            }
            let mut slacks: Vec<i64> = here.iter().map(|open| open.slack).collect();
            slacks.sort_unstable();
            let loose = slacks[..more]
                .iter()
                .fold(0, |sum: i64, slack| sum.saturating_add(*slack));
            if best.is_none_or(|best| (size, loose, top) < best) {
                best = Some((size, loose, top));
            }
            break;
        }
    }
    best.map(|(_, _, top)| top)
}

/// Takes `more` of the open places in a subtree. It takes all from one branch if one has enough. Otherwise it takes
/// whole branches, the fullest first, and the rest from the remaining branches.
fn gather(busy: &Busy, within: Option<usize>, open: &[Open], more: usize, chosen: &mut Vec<usize>) {
    let here = inside(busy, within, open);
    if more == 0 || here.is_empty() {
        return;
    }
    if here.len() <= more {
        chosen.extend(here.iter().map(|open| open.place));
        return;
    }
    let mut branches = branches(busy, within, here);
    if branches.iter().all(|branch| branch.len() == 1) {
        let mut tightest: Vec<&Open> = here.iter().collect();
        tightest.sort_by_key(|open| (open.slack, open.place));
        chosen.extend(tightest[..more].iter().map(|open| open.place));
        return;
    }
    branches.sort_by_key(|branch| (std::cmp::Reverse(branch.len()), branch[0].place));
    let mut more = more;
    while more > 0 && !branches.is_empty() {
        // Of the branches that have enough, the last one is left emptiest.
        let enough = branches.partition_point(|branch| branch.len() >= more);
        let branch = branches.remove(enough.saturating_sub(1));
        let taken = branch.len().min(more);
        let top = branch_top(busy, within, branch[0].place);
        gather(busy, Some(top), branch, taken, chosen);
        more -= taken;
    }
}

/// Splits the open places of a subtree by the branch below its top.
fn branches<'a>(busy: &Busy, within: Option<usize>, here: &'a [Open]) -> Vec<&'a [Open]> {
    let mut rest = here;
    let mut branches = Vec::new();
    while let Some(first) = rest.first() {
        let end = busy.end(branch_top(busy, within, first.place));
        let (branch, after) = rest.split_at(rest.partition_point(|open| open.place < end));
        branches.push(branch);
        rest = after;
    }
    branches
}

fn branch_top(busy: &Busy, within: Option<usize>, place: usize) -> usize {
    let mut top = place;
    while let Some(parent) = busy.parent(top)
        && Some(parent) != within
        && Some(top) != within
    {
        top = parent;
    }
    top
}

#[cfg(test)]
#[path = "placement/tests.rs"]
mod tests;
