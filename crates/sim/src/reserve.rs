//! Reservations added to a trace: whole nodes, at random, the same ones at every run.

use std::collections::BTreeMap;

use berth_engine::fleet::{Node, NodeIndex, Part, Piece, Placement, UNDIVIDED};
use berth_engine::queue::Micros;

use crate::policy::{Candidate, Reserve};
use crate::random::Random;
use crate::swf::SECOND;
use crate::trace::{Trace, Wall};

const HOUR: Micros = 3600 * SECOND;
const STEP: Micros = 900 * SECOND;
/// The most nodes of one reservation, which also never takes more than half of all nodes.
const WIDEST: usize = 32;

/// A reservation of some nodes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Drawn {
    pub from: Micros,
    pub to: Micros,
    pub known: Micros,
    pub nodes: Vec<u32>,
}

/// Draws reservations of one to eight hours each, until they reach the wanted part of the nodes' time between two
/// moments. They never take more than half of the nodes at once. None begins before `first + ahead`, so that each is
/// known in time.
pub(crate) fn draw(nodes: usize, first: Micros, last: Micros, reserve: &Reserve) -> Vec<Drawn> {
    let (from, to) = (first + reserve.ahead, last);
    let steps = usize::try_from((to - from) / STEP).unwrap_or(0);
    let wanted = (to - from) as f64 * nodes as f64 / (1.0 / reserve.part);
    let mut random = Random::new(reserve.seed);
    let mut taken: Vec<BTreeMap<Micros, Micros>> = vec![BTreeMap::new(); nodes / 2];
    let widest = taken.len().min(WIDEST);
    let mut drawn = Vec::new();
    let mut area = 0.0;
    let mut in_vain = 0;
    // If that much does not fit, stop after a thousand failed tries in a row.
    while area < wanted && steps > 0 && widest > 0 && in_vain < 1000 {
        let length = (1 + random.below(8)) as Micros * HOUR;
        let start = from + random.below(steps) as Micros * STEP;
        let end = start + length;
        let count = 1 + random.below(widest);
        let is_free = |(_, taken): &(u32, &BTreeMap<Micros, Micros>)| {
            let before = taken.range(..end).next_back();
            before.is_none_or(|(_, end)| *end <= start)
        };
        let free = (0..).zip(&taken).filter(is_free).map(|(one, _)| one);
        let chosen: Vec<u32> = free.take(count).collect();
        if chosen.len() < count {
            in_vain += 1;
            continue;
        }
        in_vain = 0;
        for one in &chosen {
            taken[*one as usize].insert(start, end);
        }
        area += count as f64 * length as f64;
        drawn.push(Drawn {
            from: start,
            to: end,
            known: start - reserve.ahead,
            nodes: chosen,
        });
    }
    drawn.sort();
    drawn
}

/// A placement of all resources of these nodes.
pub(crate) fn whole(nodes: &[Node], places: &[u32]) -> Placement {
    let part = |gpu: usize| Part {
        gpu: gpu as u16,
        thousandths: UNDIVIDED,
    };
    let piece = |place: &u32| {
        let node = nodes.get(*place as usize)?;
        Some(Piece {
            node: NodeIndex(*place),
            cpu_milli: node.cpu_milli,
            memory_bytes: node.memory_bytes,
            gpus: (0..node.gpus.len()).map(part).collect(),
        })
    };
    Placement {
        pieces: places.iter().filter_map(piece).collect(),
    }
}

/// The reservations under a policy, by their starts: the trace's own, and added ones on nodes that are free of those.
pub(crate) fn walls(trace: &Trace, candidate: &Candidate) -> Vec<Wall> {
    let mut walls = match candidate.keeps_reservations {
        true => trace.walls.clone(),
        false => Vec::new(),
    };
    let arrivals = &trace.arrivals;
    let (Some(first), Some(last), Some(reserve)) =
        (arrivals.first(), arrivals.last(), &candidate.reserve)
    else {
        return walls;
    };
    let mut own: Vec<Vec<(Micros, Micros)>> = vec![Vec::new(); trace.nodes.len()];
    for wall in &walls {
        for piece in &wall.placement.pieces {
            own[piece.node.0 as usize].push((wall.from, wall.to));
        }
    }
    for mut drawn in draw(trace.nodes.len(), first.submit, last.submit, reserve) {
        let is_free = |node: &u32| {
            let mut there = own[*node as usize].iter();
            !there.any(|(from, to)| *from < drawn.to && drawn.from < *to)
        };
        drawn.nodes.retain(is_free);
        if !drawn.nodes.is_empty() {
            walls.push(Wall {
                from: drawn.from,
                to: drawn.to,
                known: drawn.known,
                placement: whole(&trace.nodes, &drawn.nodes),
                holder: None,
            });
        }
    }
    walls.sort_by_key(|wall| (wall.from, wall.to, wall.known));
    walls
}
