//! How large a job is: pieces that are equal, each in one node, which start together or not at all.

use berth_model::attribute::Requirement;
use berth_model::workload::{Cores, GpuCount, Gpus, Memory, Near, Task, TaskCount, Wish};
use berth_slurm::UsageError;
use berth_slurm::amount::Gres;
use berth_slurm::sbatch::{self, Batch};
use jiff::SignedDuration;

use super::{invalid, parsed, unsupported};

/// What a core gets where nothing is said of memory.
const MIB_PER_CORE: u64 = 2048;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    pub count: u32,
    /// Whether each is a node.
    pub is_nodes: bool,
    /// Slurm's tasks in each of them.
    pub tasks: u32,
    pub cores: u64,
    pub gpus: u64,
}

/// With nodes, a piece for each; otherwise one for each task, unless their GPUs cannot be parted.
pub fn pieces(batch: &Batch) -> Result<Pieces, UsageError> {
    let shape = batch.shape();
    let nodes = nodes(batch)?;
    let (count, tasks) = match nodes {
        Some(nodes) => (nodes, shape.tasks.div_ceil(nodes)),
        None if is_one_piece(batch, shape.tasks) => (1, shape.tasks),
        None => (shape.tasks, 1),
    };
    if let (Some(most), true) = (batch.tasks_per_node, batch.tasks.is_some())
        && tasks > most
    {
        return Err(UsageError::Conflict(
            "--nodes, --ntasks and --ntasks-per-node, of which the last leaves no room for all tasks,"
                .to_owned(),
        ));
    }
    Ok(Pieces {
        count,
        is_nodes: nodes.is_some() && count > 1,
        tasks,
        cores: u64::from(tasks) * u64::from(shape.cpus_per_task),
        gpus: gpus_of_piece(batch, count, tasks)?,
    })
}

/// How many nodes were asked for, in so many words or by how many tasks one takes.
fn nodes(batch: &Batch) -> Result<Option<u32>, UsageError> {
    let shape = batch.shape();
    let is_said =
        batch.nodes.is_some() || (!batch.gpus.is_empty() && !batch.gpus_per_node.is_empty());
    match (shape.nodes, batch.tasks_per_node, batch.tasks) {
        (Some(nodes), ..) if is_said && nodes.min != nodes.max => Err(unsupported(
            &format!("--nodes={}-{}", nodes.min, nodes.max),
            "name one number of nodes",
        )),
        (Some(nodes), ..) if is_said => Ok(Some(nodes.min)),
        (_, Some(per_node), Some(tasks)) => Ok(Some(tasks.div_ceil(per_node.max(1)))),
        (_, Some(_), None) => Ok(Some(1)),
        _ => Ok(None),
    }
}

fn is_one_piece(batch: &Batch, tasks: u32) -> bool {
    let whole = Batch::gpu_count(&batch.gpus);
    tasks == 1
        || !batch.gpus_per_node.is_empty()
        || (batch.gpus_per_task.is_empty() && !whole.is_multiple_of(u64::from(tasks)))
}

/// The GPUs may be said in three ways, which have to agree.
fn gpus_of_piece(batch: &Batch, count: u32, tasks: u32) -> Result<u64, UsageError> {
    let whole = Batch::gpu_count(&batch.gpus);
    if !whole.is_multiple_of(u64::from(count)) {
        return Err(unsupported(
            &format!("--gpus={whole} over {count} nodes"),
            "every node gets as many; say how many with --gpus-per-node",
        ));
    }
    let said = [
        (!batch.gpus.is_empty()).then(|| whole / u64::from(count)),
        (!batch.gpus_per_node.is_empty()).then(|| Batch::gpu_count(&batch.gpus_per_node)),
        (!batch.gpus_per_task.is_empty())
            .then(|| Batch::gpu_count(&batch.gpus_per_task).saturating_mul(u64::from(tasks))),
    ];
    let mut said = said.into_iter().flatten();
    let first = said.next().unwrap_or(0);
    if said.any(|other| other != first) {
        return Err(UsageError::Conflict(
            "--gpus, --gpus-per-node and --gpus-per-task, which ask for different numbers,"
                .to_owned(),
        ));
    }
    Ok(first)
}

pub fn wish(batch: &Batch, pieces: &Pieces, limit: SignedDuration) -> Result<Wish, UsageError> {
    let milli = pieces.cores.saturating_mul(1000);
    let cores = Cores::try_from(milli);
    let count = TaskCount::try_from(u64::from(pieces.count));
    Ok(Wish {
        tasks: count.map_err(|error| invalid("--ntasks", pieces.count, error))?,
        task: Task {
            cores_milli: cores.map_err(|error| invalid("--cpus-per-task", pieces.cores, error))?,
            cores_milli_limit: None,
            memory_mib: memory(batch, pieces)?,
            memory_mib_limit: None,
            gpus: gpus(batch, pieces.gpus)?,
        },
        limit,
        near: Near::Anywhere,
        at_least: Near::Anywhere,
        // Slurm's nodes are that many different ones.
        apart: pieces.is_nodes,
    })
}

fn memory(batch: &Batch, pieces: &Pieces) -> Result<Memory, UsageError> {
    let (option, mib) = match batch.memory {
        None => ("--mem", pieces.cores.saturating_mul(MIB_PER_CORE)),
        Some(sbatch::Memory::PerNode(mib)) => ("--mem", mib),
        Some(sbatch::Memory::PerCpu(mib)) => ("--mem-per-cpu", pieces.cores.saturating_mul(mib)),
        Some(sbatch::Memory::PerGpu(mib)) => ("--mem-per-gpu", pieces.gpus.saturating_mul(mib)),
    };
    Memory::try_from(mib).map_err(|error| invalid(option, mib, error))
}

fn gpus(batch: &Batch, count: u64) -> Result<Option<Gpus>, UsageError> {
    let model = model(batch)?;
    if count == 0 {
        return Ok(None);
    }
    let count = GpuCount::try_from(count).map_err(|error| invalid("--gpus", count, error))?;
    let gpus = match model {
        None => Gpus::Whole {
            count,
            with: Vec::new(),
        },
        Some(slice) if is_slice(slice) => Gpus::Slice {
            profile: parsed("--gpus", slice)?,
            count,
            with: Vec::new(),
        },
        // How the site spells the model does not matter: upper and lower case are the same.
        Some(model) => Gpus::Whole {
            count,
            with: vec![parsed::<Requirement>(
                "--gpus",
                &format!("gpu_model={model}"),
            )?],
        },
    };
    Ok(Some(gpus))
}

fn model(batch: &Batch) -> Result<Option<&str>, UsageError> {
    let said = [&batch.gpus, &batch.gpus_per_node, &batch.gpus_per_task];
    let all: Vec<&Gres> = said.into_iter().flatten().collect();
    let mut named = all.iter().filter_map(|gres| gres.model.as_deref());
    let first = named.next();
    let is_mixed =
        named.any(|other| Some(other) != first) || said.into_iter().any(|gpus| gpus.len() > 1);
    if is_mixed {
        return Err(unsupported(
            "--gpus of more than one model",
            "all GPUs of a job are of one model; name one, or none",
        ));
    }
    Ok(first)
}

/// As NVIDIA writes the slices of a GPU: `1g.10gb`.
fn is_slice(model: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parts = model.split_once("g.");
    parts.is_some_and(|(parts, memory)| {
        is_number(parts) && memory.strip_suffix("gb").is_some_and(is_number)
    })
}
