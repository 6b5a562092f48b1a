//! The usual mix of requests, from which the fleet computes the worth of a node's free resources.
//!
//! The worth is the amount of free GPUs that could be used, as the sum of two views:
//! - *piecewise*: for each shape in the mix, the GPUs on which at least one more such task would fit, weighted by how
//!   often the shape is requested. It is the complement of the fragmentation of "Beware of Fragmentation" (ATC 2023)
//!   and detects gaps into which no task fits.
//! - *fluid*: the GPUs that the node's CPU and memory could feed if tasks were a liquid with the mix's mean of CPU and
//!   memory per GPU. It detects a case that the first view misses: eight free GPUs with CPU for one task are worth one.
//!
//! Both fall with each placement. The loss beyond the resources that the placement uses is its harm to later
//! workloads.

use std::collections::BTreeMap;

use super::need::{Gpus, Task};
use super::node::{Group, Kind, Left, Models, UNDIVIDED};

/// How often each shape of task is requested: the most frequent shapes, and only shapes with GPUs, since GPUs are
/// the resource to keep usable.
///
/// The shapes are stored in lanes: one array for each number, with the values of all shapes in a row and as small
/// as possible. So the compiler can compare several at once; a plan reads them millions of times. Lanes without a
/// shape have weight zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    cpu_milli: Lanes,
    memory_mib: Lanes,
    /// Number of whole GPUs; zero for a share.
    whole: Lanes,
    /// Thousandths of one GPU; more than any GPU has for shapes with whole GPUs.
    share: Lanes,
    weight: Lanes,
    /// The GPU models and the memory that each shape accepts.
    gpus: Vec<(Models, u64)>,
    fluid: Fluid,
}

/// A number for each shape.
pub(super) type Lanes = [i32; Mix::SHAPES_MAX];

/// The worth of a thousandth of a GPU that all shapes could use. The weights of all shapes add up to about this.
const UNIT: i64 = 1 << 16;

const MIB: u64 = 1 << 20;

impl Default for Mix {
    fn default() -> Mix {
        Mix::of([])
    }
}

impl Mix {
    /// Enough to make a difference: on the openb traces, 32 shapes are a little worse and 151 are no better.
    pub const SHAPES_MAX: usize = 64;

    /// The mix of these tasks, each with the number of its requests.
    pub fn of(tasks: impl IntoIterator<Item = (Task, u64)>) -> Mix {
        let mut counts: BTreeMap<Task, u64> = BTreeMap::new();
        for (task, count) in tasks {
            if task.gpus.thousandths() > 0 && count > 0 {
                *counts.entry(task.plain()).or_default() += count;
            }
        }
        let mut shapes: Vec<(Task, u64)> = counts.into_iter().collect();
        let fluid = Fluid::of(&shapes);
        shapes.sort_by_key(|(task, count)| (std::cmp::Reverse(*count), *task));
        shapes.truncate(Mix::SHAPES_MAX);
        let total: u64 = shapes.iter().map(|(_, count)| count).sum();
        let lanes = |number: &dyn Fn(&Task) -> i32| {
            let mut lanes: Lanes = [0; Mix::SHAPES_MAX];
            for (lane, (task, _)) in lanes.iter_mut().zip(&shapes) {
                *lane = number(task);
            }
            lanes
        };
        let mut weight: Lanes = [0; Mix::SHAPES_MAX];
        for (lane, (_, count)) in weight.iter_mut().zip(&shapes) {
            *lane = (*count as f64 / total as f64 * UNIT as f64) as i32;
        }
        let wish = |(task, _): &(Task, u64)| (task.models, task.gpu_memory_bytes);
        Mix {
            cpu_milli: lanes(&|task| small(task.cpu_milli)),
            memory_mib: lanes(&|task| small(task.memory_bytes.div_ceil(MIB))),
            whole: lanes(&|task| match task.gpus {
                Gpus::Whole(count) => i32::from(count),
                Gpus::None | Gpus::Share(_) => 0,
            }),
            share: lanes(&|task| match task.gpus {
                Gpus::Share(share) => i32::from(share),
                Gpus::None | Gpus::Whole(_) => i32::MAX,
            }),
            weight,
            gpus: shapes.iter().map(wish).collect(),
            fluid,
        }
    }

    /// Number of shapes.
    pub fn shapes(&self) -> usize {
        self.gpus.len()
    }

    /// For each group of GPUs of a kind, the shapes that it serves: all bits set in their lanes.
    pub(super) fn met_by(&self, kind: &Kind) -> Vec<Lanes> {
        let met = |group: &Group| {
            let mut met: Lanes = [0; Mix::SHAPES_MAX];
            for (lane, (models, memory_bytes)) in met.iter_mut().zip(&self.gpus) {
                *lane = -i32::from(group.meets(*models, *memory_bytes));
            }
            met
        };
        kind.groups.iter().map(met).collect()
    }

    /// The worth of a node in this state, in [`UNIT`]s for each thousandth of a GPU, as the sum of both views.
    pub(super) fn worth(&self, kind: &Kind, left: &Left, met: &[Lanes]) -> i64 {
        let free: i64 = left.gpus.iter().map(|free| i64::from(*free)).sum();
        match free {
            0 => 0,
            free => self.piecewise(kind, left, met) + self.fluid.worth(left, free * UNIT),
        }
    }

    fn piecewise(&self, kind: &Kind, left: &Left, met: &[Lanes]) -> i64 {
        let mut whole: Lanes = [0; Mix::SHAPES_MAX];
        let mut partly: Lanes = [0; Mix::SHAPES_MAX];
        for (group, met) in kind.groups.iter().zip(met) {
            let mut undivided = 0;
            for gpu in &group.gpus {
                match left.gpus[usize::from(*gpu)] {
                    0 => {}
                    UNDIVIDED => undivided += 1,
                    free => self.add_partly(&mut partly, i32::from(free), met),
                }
            }
            for (whole, met) in whole.iter_mut().zip(met) {
                *whole += undivided & met;
            }
        }
        let cpu_milli = small(left.cpu_milli);
        let memory_mib = small(left.memory_bytes / MIB);
        let mut worth = 0;
        for lane in 0..Mix::SHAPES_MAX {
            let fed = (cpu_milli >= self.cpu_milli[lane]) & (memory_mib >= self.memory_mib[lane]);
            let enough = whole[lane] >= self.whole[lane];
            let undivided = whole[lane] * i32::from(UNDIVIDED) * i32::from(enough);
            let weight = self.weight[lane] * i32::from(fed);
            worth += i64::from(undivided + partly[lane]) * i64::from(weight);
        }
        worth
    }

    /// A GPU with `free` left is usable for shapes that want no more than that.
    fn add_partly(&self, partly: &mut Lanes, free: i32, met: &Lanes) {
        for lane in 0..Mix::SHAPES_MAX {
            partly[lane] += free & met[lane] & -i32::from(free >= self.share[lane]);
        }
    }
}

/// The mix as a liquid: the thousandths of GPUs, in [`UNIT`]s, that it uses for each unit of CPU and memory.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fluid {
    per_cpu_milli: f64,
    per_memory_mib: f64,
}

impl Fluid {
    fn of(shapes: &[(Task, u64)]) -> Fluid {
        let sum = |amount: fn(&Task) -> f64| -> f64 {
            let amounts = shapes.iter();
            amounts
                .map(|(task, count)| amount(task) * *count as f64)
                .sum()
        };
        let gpus = sum(|task| f64::from(task.gpus.thousandths())) * UNIT as f64;
        // A mix that uses no CPU is not limited by CPU; a tiny amount avoids a special case.
        let cpu_milli = sum(|task| task.cpu_milli as f64).max(1.0);
        let memory_mib = sum(|task| task.memory_bytes as f64 / MIB as f64).max(1.0);
        Fluid {
            per_cpu_milli: gpus / cpu_milli,
            per_memory_mib: gpus / memory_mib,
        }
    }

    fn worth(&self, left: &Left, free: i64) -> i64 {
        let by_cpu = (left.cpu_milli as f64 * self.per_cpu_milli) as i64;
        let by_memory = ((left.memory_bytes / MIB) as f64 * self.per_memory_mib) as i64;
        free.min(by_cpu).min(by_memory)
    }
}

fn small(amount: u64) -> i32 {
    i32::try_from(amount).unwrap_or(i32::MAX)
}
