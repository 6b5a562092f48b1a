//! A trace: past submissions, the nodes, and the reservations. It is the same type for every file format.

pub mod history;
mod limits;

use std::collections::HashMap;

use berth_engine::fleet::{Near, Need, Node, NodeIndex, Piece, Placement, Task, UNDIVIDED};
use berth_engine::queue::Micros;
use berth_engine::queue::planner::Class;

use crate::{Unreadable, openb, swf};

pub use limits::Limits;
pub(crate) use limits::{moment, name as check_name};

/// The history of a fleet. Times are in microseconds from one arbitrary moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The name of the trace, for people.
    pub title: String,
    pub nodes: Vec<Node>,
    /// By their starts; together they never take more of a node than it has.
    pub walls: Vec<Wall>,
    /// In the order of submission.
    pub arrivals: Vec<Arrival>,
    pub people: Vec<String>,
    pub projects: Vec<Project>,
    /// Workloads of the file that are not replayed, because they never ran, or ran outside the queue.
    pub left_out: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    pub name: String,
    pub weight: f64,
}

/// A reservation, and its holder if known: reserved time counts as the holder's use.
#[derive(Debug, Clone, PartialEq)]
pub struct Wall {
    pub from: Micros,
    pub to: Micros,
    /// When the reservation was made; never after its start.
    pub known: Micros,
    pub placement: Placement,
    pub holder: Option<Holder>,
}

/// A person of a project, by their indexes in the trace's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    pub project: usize,
    pub person: usize,
}

/// A submitted workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub submit: Micros,
    /// The run time without interruption; never longer than `limit`.
    pub runs: Micros,
    /// The time limit.
    pub limit: Micros,
    pub class: Class,
    pub level: i32,
    pub task: Task,
    pub tasks: u32,
    pub near: Near,
    pub owner: Holder,
}

impl Arrival {
    pub fn need(&self) -> Need {
        Need {
            tasks: self.tasks,
            near: self.near,
            ..Need::one(self.task)
        }
    }

    /// The total of all its tasks.
    pub fn load(&self) -> Load {
        let tasks = u64::from(self.tasks);
        Load {
            cpu_milli: self.task.cpu_milli.saturating_mul(tasks),
            memory_bytes: self.task.memory_bytes.saturating_mul(tasks),
            gpu_milli: u64::from(self.task.gpus.thousandths()).saturating_mul(tasks),
        }
    }
}

impl Trace {
    /// The same trace on a part of the nodes, evenly chosen, to simulate a smaller fleet. At least one node remains. A
    /// reservation loses its parts on removed nodes.
    pub fn on_part_of_the_fleet(mut self, part: f64) -> Trace {
        let all = self.nodes.len();
        let left = ((all as f64 * part.clamp(0.0, 1.0)).round() as usize).clamp(1, all.max(1));
        // The index of each node among the remaining ones.
        let place = |node: usize| node * left / all.max(1);
        let stays = |node: usize| node == 0 || place(node) != place(node - 1);
        let numbered = std::mem::take(&mut self.nodes).into_iter().enumerate();
        self.nodes = numbered
            .filter(|(number, _)| stays(*number))
            .map(|(_, node)| node)
            .collect();
        for wall in &mut self.walls {
            let pieces = &mut wall.placement.pieces;
            pieces.retain(|piece| stays(piece.node.0 as usize));
            for piece in pieces {
                piece.node = NodeIndex(place(piece.node.0 as usize) as u32);
            }
        }
        self.walls.retain(|wall| !wall.placement.pieces.is_empty());
        self
    }
}

/// An amount of a fleet's resources, on any nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    pub gpu_milli: u64,
}

impl Load {
    pub fn of_nodes(nodes: &[Node]) -> Load {
        nodes.iter().fold(Load::default(), |all, node| {
            all.and(Load {
                cpu_milli: node.cpu_milli,
                memory_bytes: node.memory_bytes,
                gpu_milli: node.gpus.len() as u64 * u64::from(UNDIVIDED),
            })
        })
    }

    pub fn of_placement(placement: &Placement) -> Load {
        let pieces = placement.pieces.iter();
        pieces.fold(Load::default(), |all, piece| {
            let gpus = piece.gpus.iter().map(|part| u64::from(part.thousandths));
            all.and(Load {
                cpu_milli: piece.cpu_milli,
                memory_bytes: piece.memory_bytes,
                gpu_milli: gpus.sum(),
            })
        })
    }

    pub fn and(self, more: Load) -> Load {
        Load {
            cpu_milli: self.cpu_milli.saturating_add(more.cpu_milli),
            memory_bytes: self.memory_bytes.saturating_add(more.memory_bytes),
            gpu_milli: self.gpu_milli.saturating_add(more.gpu_milli),
        }
    }

    pub fn without(self, less: Load) -> Load {
        Load {
            cpu_milli: self.cpu_milli.saturating_sub(less.cpu_milli),
            memory_bytes: self.memory_bytes.saturating_sub(less.memory_bytes),
            gpu_milli: self.gpu_milli.saturating_sub(less.gpu_milli),
        }
    }
}

/// The price per second: in GPUs where the fleet has any, else in cores. A workload that takes a larger part of the CPU
/// or memory than of the GPUs pays for that part, because nobody else can use the GPUs without it.
#[derive(Debug, Clone, Copy)]
pub struct Prices {
    fleet: Load,
}

impl Prices {
    pub fn of(fleet: Load) -> Prices {
        Prices { fleet }
    }

    /// The price of the whole fleet.
    pub fn whole(&self) -> f64 {
        match self.fleet.gpu_milli {
            0 => self.fleet.cpu_milli as f64 / 1000.0,
            gpu_milli => gpu_milli as f64 / 1000.0,
        }
    }

    pub fn rate(&self, load: Load) -> f64 {
        let part = |of: u64, all: u64| match all {
            0 => 0.0,
            all => of as f64 / all as f64 * self.whole(),
        };
        let memory = part(load.memory_bytes, self.fleet.memory_bytes);
        match self.fleet.gpu_milli {
            0 => memory.max(load.cpu_milli as f64 / 1000.0),
            _ => memory
                .max(part(load.cpu_milli, self.fleet.cpu_milli))
                .max(load.gpu_milli as f64 / 1000.0),
        }
    }
}

/// Reads a trace from the texts of its files: one of Berth's own history, one log in the Standard Workload Format, or
/// the two openb lists (nodes and pods). The texts themselves show which format it is.
pub fn read(texts: &[&str]) -> Result<Trace, Unreadable> {
    let begins = |text: &str, with: &str| text.trim_start().starts_with(with);
    match texts {
        [text] if begins(text, "{") => history::read(text),
        [text] if begins(text, "sn,") || begins(text, "name,") => Err(Unreadable {
            line: 1,
            what: "this is one openb list; give both, that of the nodes and that of the pods"
                .to_owned(),
        }),
        [text] => swf::trace(text),
        [nodes, pods] if begins(nodes, "sn,") => openb::trace(nodes, pods),
        [pods, nodes] if begins(nodes, "sn,") => openb::trace(nodes, pods),
        _ => Err(Unreadable {
            line: 1,
            what: "a trace is one file, or an openb list of nodes and one of pods".to_owned(),
        }),
    }
}

/// Assigns indexes to repeated names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

impl Names {
    pub fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    pub fn find(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    pub fn into_vec(self) -> Vec<String> {
        self.names
    }
}

/// The used resources of one node, part by part.
#[derive(Debug, Clone, Default)]
pub(crate) struct Taken {
    cpu_milli: u64,
    memory_bytes: u64,
    gpus: Vec<u32>,
}

impl Taken {
    pub fn add(&mut self, piece: &Piece) {
        self.cpu_milli = self.cpu_milli.saturating_add(piece.cpu_milli);
        self.memory_bytes = self.memory_bytes.saturating_add(piece.memory_bytes);
        for part in &piece.gpus {
            let place = usize::from(part.gpu);
            if self.gpus.len() <= place {
                self.gpus.resize(place + 1, 0);
            }
            self.gpus[place] = self.gpus[place].saturating_add(u32::from(part.thousandths));
        }
    }

    pub fn remove(&mut self, piece: &Piece) {
        self.cpu_milli = self.cpu_milli.saturating_sub(piece.cpu_milli);
        self.memory_bytes = self.memory_bytes.saturating_sub(piece.memory_bytes);
        for part in &piece.gpus {
            if let Some(taken) = self.gpus.get_mut(usize::from(part.gpu)) {
                *taken = taken.saturating_sub(u32::from(part.thousandths));
            }
        }
    }

    /// Adds everything that a placement takes of one node.
    pub fn add_on(&mut self, node: usize, placement: &Placement) {
        let here = placement.pieces.iter();
        here.filter(|piece| piece.node.0 as usize == node)
            .for_each(|piece| self.add(piece));
    }

    pub fn remove_on(&mut self, node: usize, placement: &Placement) {
        let here = placement.pieces.iter();
        here.filter(|piece| piece.node.0 as usize == node)
            .for_each(|piece| self.remove(piece));
    }

    pub fn fits(&self, node: &Node) -> bool {
        let is_there = |(gpu, taken): (usize, &u32)| {
            *taken == 0 || (gpu < node.gpus.len() && *taken <= u32::from(UNDIVIDED))
        };
        self.cpu_milli <= node.cpu_milli
            && self.memory_bytes <= node.memory_bytes
            && self.gpus.iter().enumerate().all(is_there)
    }
}

#[cfg(test)]
mod tests;
