//! What people here ask for, as far as it is known: the yardstick by which a free piece of a node is worth more or
//! less.
//!
//! A node's worth is how much of its free GPUs could be used, as the mean of two views:
//! - *piecewise*: for each shape in the mix, the GPUs on which at least one more such task would fit, weighted by how
//!   often the shape is asked for. It is the complement of the fragmentation of "Beware of Fragmentation" (ATC 2023)
//!   and knows which gaps nobody fits in.
//! - *fluid*: as much as the node's CPU and memory could feed if tasks were a liquid with the mix's mean of CPU and
//!   memory per GPU. It knows what the first cannot: that eight free GPUs with CPU for one task are worth one.
//!
//! Both fall as things are placed, and what a placement loses beyond what it uses is the harm it does to those who come
//! next.

use std::collections::BTreeMap;

use super::need::{Gpus, Task};
use super::node::{Kind, Left, Models, UNDIVIDED};

/// How often each shape of task is asked for; the most frequent ones, and only those with GPUs, since what is to be
/// kept usable is the GPUs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mix {
    asks: Vec<Ask>,
    /// The shapes' CPU and memory and weight, those of one [`Ask`] next to each other. The three are apart, and small
    /// numbers, so that the compiler can compare several at once: a plan reads them millions of times.
    cpu_milli: Vec<i32>,
    memory_mib: Vec<i32>,
    weight: Vec<i32>,
    /// How many GPUs, in [`UNIT`]s, the mix would use for each unit of CPU and memory.
    gpus_per_cpu_milli: f64,
    gpus_per_memory_mib: f64,
}

/// Shapes with the same wish for GPUs.
#[derive(Debug, Clone, PartialEq)]
struct Ask {
    gpus: Gpus,
    models: Models,
    gpu_memory_bytes: u64,
    shapes: std::ops::Range<usize>,
}

/// One thousandth of a GPU's worth. The weights of all shapes add up to it, about.
const UNIT: i64 = 1 << 16;

const MIB: u64 = 1 << 20;

impl Mix {
    /// As many as make a difference: on the openb lists 32 shapes are a tenth of a per cent worse and 151 no better.
    /// Not more than the bits of [`Kind`]'s sets.
    pub const SHAPES_MAX: usize = 64;

    /// The mix of these tasks, each with how often it was asked for.
    pub fn of(tasks: impl IntoIterator<Item = (Task, u64)>) -> Mix {
        let mut counts: BTreeMap<Task, u64> = BTreeMap::new();
        for (task, count) in tasks {
            if task.gpus.thousandths() > 0 && count > 0 {
                *counts.entry(task).or_default() += count;
            }
        }
        let mut shapes: Vec<(Task, u64)> = counts.into_iter().collect();
        let fluid = Fluid::of(&shapes);
        shapes.sort_by_key(|(task, count)| (std::cmp::Reverse(*count), *task));
        shapes.truncate(Mix::SHAPES_MAX);
        shapes.sort_by_key(|(task, _)| (task.gpus, task.models, task.gpu_memory_bytes, *task));
        let total: u64 = shapes.iter().map(|(_, count)| count).sum();
        let mut mix = Mix {
            gpus_per_cpu_milli: fluid.gpus_per_cpu_milli,
            gpus_per_memory_mib: fluid.gpus_per_memory_mib,
            ..Mix::default()
        };
        for (task, count) in shapes {
            mix.push(task, count as f64 / total as f64);
        }
        mix
    }

    /// How many shapes it has.
    pub fn shapes(&self) -> usize {
        self.weight.len()
    }

    fn push(&mut self, task: Task, part: f64) {
        let at = self.weight.len();
        self.cpu_milli.push(small(task.cpu_milli));
        self.memory_mib.push(small(task.memory_bytes.div_ceil(MIB)));
        self.weight.push((part * UNIT as f64) as i32);
        let wish = |ask: &Ask| (ask.gpus, ask.models, ask.gpu_memory_bytes);
        match self.asks.last_mut() {
            Some(ask) if wish(ask) == (task.gpus, task.models, task.gpu_memory_bytes) => {
                ask.shapes.end = at + 1;
            }
            _ => self.asks.push(Ask {
                gpus: task.gpus,
                models: task.models,
                gpu_memory_bytes: task.gpu_memory_bytes,
                shapes: at..at + 1,
            }),
        }
    }

    /// For each group of a kind's GPUs, which of the asks it would do for, as bits.
    pub(super) fn asks_met(&self, kind: &Kind) -> Vec<u64> {
        let met = |group: &super::node::Group| {
            let asks = self.asks.iter().enumerate();
            asks.filter(|(_, ask)| group.meets(ask.models, ask.gpu_memory_bytes))
                .fold(0, |bits, (number, _)| bits | 1 << number)
        };
        kind.groups.iter().map(met).collect()
    }

    /// What a node in this state is worth, in [`UNIT`]s of a thousandth of a GPU, both views added.
    pub(super) fn worth(&self, kind: &Kind, left: &Left, asks_met: &[u64]) -> i64 {
        let free: i64 = left.gpus.iter().map(|free| i64::from(*free)).sum();
        if free == 0 {
            return 0;
        }
        self.piecewise(kind, left, asks_met) + self.fluid(left, free * UNIT)
    }

    fn fluid(&self, left: &Left, free: i64) -> i64 {
        // Never beyond 2^53, where a float would cease to be exact about whole numbers: the smallest of the three counts.
        let by_cpu = (left.cpu_milli as f64 * self.gpus_per_cpu_milli) as i64;
        let by_memory = ((left.memory_bytes / MIB) as f64 * self.gpus_per_memory_mib) as i64;
        free.min(by_cpu).min(by_memory)
    }

    fn piecewise(&self, kind: &Kind, left: &Left, asks_met: &[u64]) -> i64 {
        let cpu_milli = small(left.cpu_milli);
        let memory_mib = small(left.memory_bytes / MIB);
        let mut worth = 0;
        for (number, ask) in self.asks.iter().enumerate() {
            let groups = kind.groups.iter().zip(asks_met);
            let meeting = groups.filter(|(_, met)| *met >> number & 1 == 1);
            let gpus = meeting.flat_map(|(group, _)| &group.gpus);
            let free = gpus.map(|gpu| left.gpus[usize::from(*gpu)]);
            let usable = match ask.gpus {
                Gpus::None => 0,
                Gpus::Share(share) => free.filter(|free| *free >= share).map(i64::from).sum(),
                Gpus::Whole(count) => {
                    let whole = free.filter(|free| *free == UNDIVIDED).count();
                    match whole >= usize::from(count) {
                        true => whole as i64 * i64::from(UNDIVIDED),
                        false => 0,
                    }
                }
            };
            if usable > 0 {
                worth += usable * self.weight_fed(&ask.shapes, cpu_milli, memory_mib);
            }
        }
        worth
    }

    /// The weight of those of these shapes that so much CPU and memory would do for.
    fn weight_fed(&self, shapes: &std::ops::Range<usize>, cpu_milli: i32, memory_mib: i32) -> i64 {
        let needs = self.cpu_milli[shapes.clone()]
            .iter()
            .zip(&self.memory_mib[shapes.clone()]);
        let fed: i32 = needs
            .zip(&self.weight[shapes.clone()])
            .map(|((cpu, memory), weight)| {
                let fits = (cpu_milli >= *cpu) & (memory_mib >= *memory);
                weight * i32::from(fits)
            })
            .sum();
        i64::from(fed)
    }
}

/// The mean of CPU and memory that the mix uses with a GPU, the other way round.
struct Fluid {
    gpus_per_cpu_milli: f64,
    gpus_per_memory_mib: f64,
}

impl Fluid {
    fn of(shapes: &[(Task, u64)]) -> Fluid {
        let sum = |amount: fn(&Task) -> f64| -> f64 {
            let amounts = shapes
                .iter()
                .map(|(task, count)| amount(task) * *count as f64);
            amounts.sum()
        };
        let gpus = sum(|task| f64::from(task.gpus.thousandths())) * UNIT as f64;
        // A mix that uses no CPU at all is limited by none; a tiny need says the same without a special case.
        let cpu_milli = sum(|task| task.cpu_milli as f64).max(1.0);
        let memory_mib = sum(|task| task.memory_bytes as f64 / MIB as f64).max(1.0);
        Fluid {
            gpus_per_cpu_milli: gpus / cpu_milli,
            gpus_per_memory_mib: gpus / memory_mib,
        }
    }
}

fn small(amount: u64) -> i32 {
    i32::try_from(amount).unwrap_or(i32::MAX)
}
