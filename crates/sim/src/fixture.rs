//! A small synthetic site with GPUs, for tests: six nodes, three projects, every class, and reservations.

use berth_engine::fleet::{Gpu, Gpus, Mode, Model, Models, Near, Node, Task};
use berth_engine::queue::Micros;
use berth_engine::queue::planner::Class;

use crate::random::Random;
use crate::reserve;
use crate::swf::SECOND;
use crate::trace::{Arrival, Holder, Project, Trace, Wall};

pub const HOUR: Micros = 3600 * SECOND;

pub fn nodes(count: u32) -> Vec<Node> {
    let gpu = Gpu {
        model: Model::new(0).unwrap(),
        memory_bytes: 80,
        link: None,
        mode: Mode::Shared,
    };
    let node = |rack| Node {
        cpu_milli: 32_000,
        memory_bytes: 512,
        gpus: vec![gpu; 4],
        rack,
        until_us: i64::MAX,
    };
    (0..count).map(|number| node(number / 2)).collect()
}

/// A workload with these GPUs in each of its tasks.
pub fn arrival(project: usize, submit: Micros, runs: Micros, gpus: Gpus) -> Arrival {
    Arrival {
        submit,
        runs,
        limit: 2 * runs,
        class: Class::Guaranteed,
        level: 0,
        task: Task {
            cpu_milli: 4000,
            memory_bytes: 16,
            gpus,
            models: Models::ANY,
            gpu_memory_bytes: 0,
        },
        tasks: 1,
        near: Near::Anywhere,
        owner: Holder {
            project,
            person: project,
        },
    }
}

pub fn trace(arrivals: Vec<Arrival>, nodes: Vec<Node>) -> Trace {
    let project = |name: &str| Project {
        name: name.to_owned(),
        weight: 1.0,
    };
    Trace {
        title: "A site that was made up".to_owned(),
        nodes,
        walls: Vec::new(),
        arrivals,
        people: ["ada", "bob", "cy"].map(str::to_owned).to_vec(),
        projects: ["biology", "chemistry", "physics <&>"]
            .map(project)
            .to_vec(),
        left_out: 0,
    }
}

/// Demand exceeds capacity, and workloads have every kind of shape. A tenth is reserved, half of that on short notice.
pub fn busy(count: usize, seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let mut at = 0;
    let mut one = || {
        at += random.below(1200) as Micros * SECOND;
        let limit = (1 + random.below(8)) as Micros * HOUR;
        let gpus = match random.below(6) {
            0 => Gpus::None,
            1 => Gpus::Share(300),
            2 => Gpus::Whole(4),
            _ => Gpus::Whole(1),
        };
        Arrival {
            runs: limit / (1 + random.below(4) as Micros),
            limit,
            class: match random.below(6) {
                0 => Class::Urgent,
                1 | 2 => Class::Opportunistic,
                _ => Class::Guaranteed,
            },
            tasks: if random.below(8) == 0 { 3 } else { 1 },
            ..arrival(random.below(3), at, HOUR, gpus)
        }
    };
    let arrivals = (0..count).map(|_| one()).collect();
    let mut trace = trace(arrivals, nodes(6));
    for step in 1..(at / (3 * HOUR)) {
        let from = step * 3 * HOUR;
        let node = step as u32 % 6;
        trace.walls.push(Wall {
            from,
            to: from + 2 * HOUR,
            known: from - if step % 2 == 0 { 12 * HOUR } else { HOUR },
            placement: reserve::whole(&trace.nodes, &[node]),
            holder: Some(Holder {
                project: 0,
                person: 0,
            }),
        });
    }
    trace
}
