//! The GPUs of one node that a task gets, and the cost to later workloads.

use super::mix::{Lanes, Mix};
use super::need::{Gpus, Part, Piece, Task};
use super::node::{Group, Kind, Left, NodeIndex, UNDIVIDED};

/// A node with the data that the mix needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub kind: &'a Kind,
    pub mix: &'a Mix,
    pub met: &'a [Lanes],
}

impl Seen<'_> {
    pub fn worth(&self, left: &Left) -> i64 {
        self.mix.worth(self.kind, left, self.met)
    }
}

/// Equal tasks that must run on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Bundle {
    pub task: Task,
    pub count: u32,
    pub link: Link,
}

impl Bundle {
    /// A piece for each task, with the GPUs chosen on this node.
    pub fn pieces(&self, node: NodeIndex, chosen: &[u16]) -> Vec<Piece> {
        let (each, thousandths) = match self.task.gpus {
            Gpus::None => (0, 0),
            Gpus::Whole(count) => (usize::from(count), UNDIVIDED),
            Gpus::Share(share) => (1, share),
        };
        let part = |gpu: &u16| Part {
            gpu: *gpu,
            thousandths,
        };
        let piece = |task: usize| Piece {
            node,
            cpu_milli: self.task.cpu_milli,
            memory_bytes: self.task.memory_bytes,
            gpus: chosen[task * each..(task + 1) * each]
                .iter()
                .map(part)
                .collect(),
        };
        (0..self.count as usize).map(piece).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Link {
    Any,
    /// All GPUs of the bundle are linked to each other.
    One,
}

/// The numbers of the GPUs, task after task; each task has equally many.
pub(super) type Chosen = Vec<u16>;

/// Takes the bundle from `left` if it fits; otherwise `left` is unusable afterwards. A greedy choice always finds a
/// placement if there is one: any GPUs that one task takes reduce the room for equal tasks by exactly one.
pub(super) fn fill(seen: Seen, left: &mut Left, bundle: &Bundle, chosen: &mut Chosen) -> bool {
    chosen.clear();
    let groups = &seen.kind.groups;
    match bundle.link {
        Link::Any => fill_from(seen, left, bundle, groups, chosen),
        Link::One => {
            let all = left.clone();
            // The tightest group first, to keep the wider ones free.
            let mut linked: Vec<&Group> = groups.iter().filter(|group| group.linked).collect();
            linked.sort_by_key(|group| whole_free(group, &all));
            linked.into_iter().any(|group| {
                left.clone_from(&all);
                chosen.clear();
                fill_from(seen, left, bundle, std::slice::from_ref(group), chosen)
            })
        }
    }
}

fn fill_from(
    seen: Seen,
    left: &mut Left,
    bundle: &Bundle,
    groups: &[Group],
    chosen: &mut Chosen,
) -> bool {
    (0..bundle.count).all(|_| pick(seen, left, &bundle.task, groups, chosen))
}

/// Takes one task from `left`, with GPUs of these groups.
fn pick(seen: Seen, left: &mut Left, task: &Task, groups: &[Group], chosen: &mut Chosen) -> bool {
    let rest = (
        left.cpu_milli.checked_sub(task.cpu_milli),
        left.memory_bytes.checked_sub(task.memory_bytes),
    );
    let (Some(cpu_milli), Some(memory_bytes)) = rest else {
        return false;
    };
    left.cpu_milli = cpu_milli;
    left.memory_bytes = memory_bytes;
    let meets = |group: &&Group| group.meets(task.models, task.gpu_memory_bytes);
    let groups = groups.iter().filter(meets);
    match task.gpus {
        Gpus::None => true,
        Gpus::Whole(count) => take_whole(groups, left, count, chosen),
        Gpus::Share(share) => {
            let Some(gpu) = for_share(seen, left, groups, share) else {
                return false;
            };
            left.gpus[usize::from(gpu)] -= share;
            chosen.push(gpu);
            true
        }
    }
}

/// The GPU on which this share causes the least loss; the first of equal ones.
fn for_share<'a>(
    seen: Seen,
    left: &mut Left,
    groups: impl Iterator<Item = &'a Group>,
    share: u16,
) -> Option<u16> {
    let mut best: Option<u16> = None;
    let mut best_worth: Option<i64> = None;
    for group in groups {
        // Of the GPUs in a group with the same rest, one is enough to examine. Only a few rests are remembered;
        // examining one twice does no harm.
        let mut known = [u16::MAX; 4];
        for gpu in &group.gpus {
            let free = left.gpus[usize::from(*gpu)];
            if free < share || known.contains(&free) {
                continue;
            }
            known.rotate_right(1);
            known[0] = free;
            // A single candidate needs no comparison.
            let Some(rival) = best else {
                best = Some(*gpu);
                continue;
            };
            let to_beat = best_worth.unwrap_or_else(|| worth_without(seen, left, rival, share));
            let worth = worth_without(seen, left, *gpu, share);
            if worth > to_beat {
                best = Some(*gpu);
            }
            best_worth = Some(worth.max(to_beat));
        }
    }
    best
}

fn worth_without(seen: Seen, left: &mut Left, gpu: u16, share: u16) -> i64 {
    left.gpus[usize::from(gpu)] -= share;
    let worth = seen.worth(left);
    left.gpus[usize::from(gpu)] += share;
    worth
}

/// Takes whole GPUs: from the tightest group with enough of them, otherwise from as few groups as possible.
fn take_whole<'a>(
    groups: impl Iterator<Item = &'a Group>,
    left: &mut Left,
    count: u16,
    chosen: &mut Chosen,
) -> bool {
    let mut open: Vec<(usize, &Group)> = groups
        .map(|group| (whole_free(group, left), group))
        .collect();
    let mut more = usize::from(count);
    if open.iter().map(|(free, _)| free).sum::<usize>() < more {
        return false;
    }
    while more > 0 {
        let enough = |&&(free, _): &&(usize, &Group)| free >= more;
        let tightest = open.iter().filter(enough).min_by_key(|(free, _)| *free);
        // If no group has enough: the first of the largest. `max_by_key` would return the last.
        let largest = || open.iter().rev().max_by_key(|(free, _)| *free);
        let Some(&(free, group)) = tightest.or_else(largest) else {
            return false;
        };
        let from = free.min(more);
        let whole = |gpu: &&u16| left.gpus[usize::from(**gpu)] == UNDIVIDED;
        let start = chosen.len();
        chosen.extend(group.gpus.iter().filter(whole).take(from));
        for gpu in &chosen[start..] {
            left.gpus[usize::from(*gpu)] = 0;
        }
        open.retain(|(_, other)| !std::ptr::eq(*other, group));
        more -= from;
    }
    true
}

fn whole_free(group: &Group, left: &Left) -> usize {
    let whole = |gpu: &&u16| left.gpus[usize::from(**gpu)] == UNDIVIDED;
    group.gpus.iter().filter(whole).count()
}

/// How many such tasks fit; counting stops at `most`.
pub(super) fn room_for(kind: &Kind, left: &Left, task: &Task, most: u64) -> u64 {
    room_in(kind.groups.iter(), left, task, most)
}

/// How many such tasks fit with all their GPUs linked to each other.
pub(super) fn room_linked(kind: &Kind, left: &Left, task: &Task, most: u64) -> u64 {
    let linked = kind.groups.iter().filter(|group| group.linked);
    let room = linked.map(|group| room_in(std::iter::once(group), left, task, most));
    room.max().unwrap_or(0)
}

fn room_in<'a>(
    groups: impl Iterator<Item = &'a Group>,
    left: &Left,
    task: &Task,
    most: u64,
) -> u64 {
    let by = |have: u64, each: u64| have.checked_div(each).unwrap_or(most);
    let meeting = groups.filter(|group| group.meets(task.models, task.gpu_memory_bytes));
    let by_gpus = match task.gpus {
        Gpus::None => most,
        Gpus::Whole(count) => {
            let whole: usize = meeting.map(|group| whole_free(group, left)).sum();
            by(whole as u64, u64::from(count))
        }
        Gpus::Share(share) => {
            let gpus = meeting.flat_map(|group| &group.gpus);
            let free = gpus.map(|gpu| u64::from(left.gpus[usize::from(*gpu)]));
            free.map(|free| by(free, u64::from(share)))
                .fold(0, u64::saturating_add)
        }
    };
    most.min(by_gpus)
        .min(by(left.cpu_milli, task.cpu_milli))
        .min(by(left.memory_bytes, task.memory_bytes))
}
