//! Short constructors for nodes, needs and placements in the tests of the queue.

use crate::fleet::{
    Gpu, Gpus, Mode, Model, Models, Near, Need, Node, NodeIndex, Part, Piece, Placement, Task,
};

/// A node with this many cores and GPUs.
pub fn node(cores: u64, gpus: usize) -> Node {
    let gpu = Gpu {
        model: Model::new(0).unwrap(),
        memory_bytes: 80,
        link: None,
        mode: Mode::Shared,
    };
    Node {
        cpu_milli: cores * 1000,
        memory_bytes: 512,
        gpus: vec![gpu; gpus],
        rack: 0,
        until_us: i64::MAX,
    }
}

pub fn task(cpu_milli: u64, gpus: u16) -> Task {
    Task {
        cpu_milli,
        memory_bytes: 1,
        gpus: Gpus::Whole(gpus),
        models: Models::ANY,
        gpu_memory_bytes: 0,
    }
}

pub fn need(tasks: u32, cpu_milli: u64, gpus: u16) -> Need {
    Need {
        task: task(cpu_milli, gpus),
        tasks,
        near: Near::Anywhere,
        at_least: Near::Anywhere,
        apart: false,
        until_us: 0,
    }
}

/// Whole GPUs of a node, and some of its CPU.
pub fn piece(node: u32, cpu_milli: u64, gpus: &[u16]) -> Piece {
    let whole = |gpu: &u16| Part {
        gpu: *gpu,
        thousandths: 1000,
    };
    Piece {
        node: NodeIndex(node),
        cpu_milli,
        memory_bytes: 0,
        gpus: gpus.iter().map(whole).collect(),
    }
}

/// One GPU of a node.
pub fn one_gpu(node: u32, cpu_milli: u64, gpu: u16) -> Placement {
    Placement {
        pieces: vec![piece(node, cpu_milli, &[gpu])],
    }
}
