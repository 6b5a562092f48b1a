//! The same questions answered by exhaustive search.

use super::super::*;

/// Whether any assignment of the tasks to nodes works.
pub fn fits(nodes: &[Node], left: &[Left], need: &Need) -> bool {
    let mut left = left.to_vec();
    any_way(nodes, &mut left, need, need.tasks)
}

fn any_way(nodes: &[Node], left: &mut Vec<Left>, need: &Need, tasks: u32) -> bool {
    if tasks == 0 {
        return true;
    }
    for at in 0..nodes.len() {
        let enough_cpu = left[at].cpu_milli >= need.task.cpu_milli;
        let enough_memory = left[at].memory_bytes >= need.task.memory_bytes;
        if nodes[at].until_us < need.until_us || !enough_cpu || !enough_memory {
            continue;
        }
        for gpus in ways(&nodes[at], &left[at], &need.task) {
            let before = left[at].clone();
            left[at].cpu_milli -= need.task.cpu_milli;
            left[at].memory_bytes -= need.task.memory_bytes;
            left[at].gpus = gpus;
            let fits = any_way(nodes, left, need, tasks - 1);
            left[at] = before;
            if fits {
                return true;
            }
        }
    }
    false
}

fn accepted(gpu: &Gpu, task: &Task) -> bool {
    let of_a_model = task.models.accept(gpu.model);
    gpu.mode == Mode::Shared && of_a_model && gpu.memory_bytes >= task.gpu_memory_bytes
}

/// The free part of each GPU after each way to give the task its GPUs.
fn ways(node: &Node, left: &Left, task: &Task) -> Vec<Vec<u16>> {
    let (count, each) = match task.gpus {
        Gpus::None => (0, 0),
        Gpus::Share(0) => (0, 0),
        Gpus::Share(share) => (1, share),
        Gpus::Whole(count) => (u32::from(count), UNDIVIDED),
    };
    let sets = (0u32..1 << node.gpus.len()).filter(|set| set.count_ones() == count);
    let way = |set: u32| {
        let mut gpus = left.gpus.clone();
        for (at, free) in gpus
            .iter_mut()
            .enumerate()
            .filter(|(at, _)| set >> at & 1 == 1)
        {
            let enough = accepted(&node.gpus[at], task) && *free >= each;
            *free = enough.then(|| *free - each)?;
        }
        Some(gpus)
    };
    sets.filter_map(way).collect()
}

pub fn is_what_was_asked_for(nodes: &[Node], need: &Need, placed: &Placement) -> bool {
    let task = need.task;
    let is_one_task = |piece: &Piece| {
        let node = &nodes[piece.node.0 as usize];
        let amounts = (piece.cpu_milli, piece.memory_bytes) == (task.cpu_milli, task.memory_bytes);
        let parts: u32 = piece
            .gpus
            .iter()
            .map(|part| u32::from(part.thousandths))
            .sum();
        let of_one = |part: &Part| match task.gpus {
            Gpus::Whole(_) => part.thousandths == UNDIVIDED,
            Gpus::None | Gpus::Share(_) => piece.gpus.len() == 1,
        };
        let accepted = |part: &Part| accepted(&node.gpus[usize::from(part.gpu)], &task);
        amounts
            && parts == task.gpus.thousandths()
            && piece.gpus.iter().all(of_one)
            && piece.gpus.iter().all(accepted)
            && node.until_us >= need.until_us
    };
    placed.pieces.len() == need.tasks as usize && placed.pieces.iter().all(is_one_task)
}

/// The free resources after a placement; `None` if they did not suffice.
pub fn without(left: &[Left], placed: &Placement) -> Option<Vec<Left>> {
    let mut left = left.to_vec();
    for piece in &placed.pieces {
        let node = &mut left[piece.node.0 as usize];
        node.cpu_milli = node.cpu_milli.checked_sub(piece.cpu_milli)?;
        node.memory_bytes = node.memory_bytes.checked_sub(piece.memory_bytes)?;
        for part in &piece.gpus {
            let free = &mut node.gpus[usize::from(part.gpu)];
            *free = free.checked_sub(part.thousandths)?;
        }
    }
    Some(left)
}
