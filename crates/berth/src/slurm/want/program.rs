//! What runs: the script with its arguments, where, and with which variables.

use std::collections::BTreeMap;
use std::path::Path;

use berth_model::workload::Program;
use berth_slurm::sbatch::{Batch, Export, Memory};
use berth_slurm::{UsageError, amount::Gres, environment, pattern};

use super::{shape, unsupported};
use crate::slurm::CLUSTER;

/// The text of a job, and what it is called with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub text: String,
    pub arguments: Vec<String>,
}

/// Where a job is submitted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    pub folder: String,
    pub host: String,
    pub partition: String,
    /// The environment of whoever submits.
    pub variables: BTreeMap<String, String>,
}

pub fn program(batch: &Batch, script: &Script, place: &Place) -> Result<Program, UsageError> {
    let output = batch.output.clone();
    let is_array = batch.array.is_some();
    let folder = match &batch.work_dir {
        Some(folder) => Path::new(&place.folder).join(folder).display().to_string(),
        None => place.folder.clone(),
    };
    Ok(Program {
        script: Some(with_arguments(script)?),
        environment: variables(batch, place)?,
        folder: Some(folder),
        output: Some(output.unwrap_or_else(|| pattern::default_output(is_array).to_owned())),
        errors: batch.error.clone(),
        ..Program::default()
    })
}

/// Arguments are set by a line of their own, since a workload keeps nothing but the text of its script.
fn with_arguments(script: &Script) -> Result<String, UsageError> {
    if script.arguments.is_empty() {
        return Ok(script.text.clone());
    }
    let (first, rest) = script.text.split_once('\n').unwrap_or((&script.text, ""));
    if !is_shell(first) {
        return Err(unsupported(
            "giving arguments to a script that is not for a shell",
            "write them into the script, or hand them over in variables with --export",
        ));
    }
    let quoted = |text: &String| format!("'{}'", text.replace('\'', r"'\''"));
    let quoted: Vec<_> = script.arguments.iter().map(quoted).collect();
    Ok(format!("{first}\nset -- {}\n{rest}", quoted.join(" ")))
}

/// Whether a script's first line, such as `#!/usr/bin/env bash` or `#!/bin/sh -l`, names a shell of Bourne's kind.
fn is_shell(first: &str) -> bool {
    let words = first.trim_start_matches("#!").split_whitespace();
    let mut names = words.map(|word| word.rsplit('/').next().unwrap_or(word));
    let name = match names.next() {
        Some("env") => names.find(|word| !word.starts_with('-')),
        name => name,
    };
    matches!(name, Some("sh" | "bash" | "dash" | "ash" | "ksh" | "zsh"))
}

/// What is not handed on with everything else: the key to all that a person may do, and what another job was told of
/// itself.
fn is_own(name: &str) -> bool {
    name == "BERTH_TOKEN" || name.starts_with("SLURM_")
}

fn variables(batch: &Batch, place: &Place) -> Result<BTreeMap<String, String>, UsageError> {
    let mut all = BTreeMap::new();
    let is_name = |name: &str| {
        !name.starts_with(|first: char| first.is_ascii_digit())
            && !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    // Functions that a shell exports have names that are none.
    let everything = place
        .variables
        .iter()
        .filter(|(name, _)| !is_own(name) && is_name(name));
    let everything = || {
        everything
            .clone()
            .map(|(name, value)| (name.clone(), value.clone()))
    };
    match &batch.export {
        None | Some(Export::None) => {}
        Some(Export::All) => all.extend(everything()),
        Some(Export::Some { and_all, variables }) => {
            if *and_all {
                all.extend(everything());
            }
            for (name, value) in variables {
                let value = value.as_ref().or_else(|| place.variables.get(name));
                all.extend(value.map(|value| (name.clone(), value.clone())));
            }
        }
    }
    all.extend(of_slurm(batch, place)?);
    Ok(all)
}

/// Those of Slurm's variables that are known before the job is: its number, nodes and GPUs are told by what runs it.
const KNOWN_AT_SUBMISSION: &[&str] = &[
    "SLURM_JOB_NAME",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_ACCOUNT",
    "SLURM_JOB_QOS",
    "SLURM_JOB_DEPENDENCY",
    "SLURM_CLUSTER_NAME",
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_CPUS_PER_TASK",
    "SLURM_MEM_PER_NODE",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_GPU",
    "SLURM_GPUS",
    "SLURM_GPUS_PER_NODE",
    "SLURM_GPUS_PER_TASK",
    "SLURM_SUBMIT_DIR",
    "SLURM_SUBMIT_HOST",
    "SLURM_ARRAY_TASK_COUNT",
    "SLURM_ARRAY_TASK_MIN",
    "SLURM_ARRAY_TASK_MAX",
    "SLURM_ARRAY_TASK_STEP",
];

fn of_slurm(batch: &Batch, place: &Place) -> Result<BTreeMap<String, String>, UsageError> {
    let memory = |wanted: fn(Memory) -> Option<u64>| batch.memory.and_then(wanted);
    let pieces = shape::pieces(batch)?;
    let array = batch.array.as_ref().map(|array| environment::ArrayTask {
        job_id: 0,
        index: 0,
        count: u32::try_from(array.len()).unwrap_or(u32::MAX),
        min: array.first(),
        max: array.last(),
        step: array.ranges().first().map_or(1, |range| range.step),
    });
    let job = environment::Job {
        id: 0,
        name: batch.name.clone(),
        user: String::new(),
        uid: 0,
        gid: 0,
        account: batch.account.clone(),
        partition: place.partition.clone(),
        qos: batch.qos.clone(),
        reservation: None,
        cluster: CLUSTER.to_owned(),
        array,
        nodes: Vec::new(),
        tasks: pieces
            .count
            .saturating_mul(pieces.tasks)
            .min(batch.shape().tasks),
        tasks_per_node: batch.tasks_per_node,
        cpus_per_task: batch.cpus_per_task,
        memory_per_node_mib: memory(|memory| match memory {
            Memory::PerNode(mib) => Some(mib),
            Memory::PerCpu(_) | Memory::PerGpu(_) => None,
        }),
        memory_per_cpu_mib: memory(|memory| match memory {
            Memory::PerCpu(mib) => Some(mib),
            Memory::PerNode(_) | Memory::PerGpu(_) => None,
        }),
        memory_per_gpu_mib: memory(|memory| match memory {
            Memory::PerGpu(mib) => Some(mib),
            Memory::PerNode(_) | Memory::PerCpu(_) => None,
        }),
        gpus: gpus(&batch.gpus),
        gpus_per_node: gpus(&batch.gpus_per_node),
        gpus_per_task: gpus(&batch.gpus_per_task),
        gpu_numbers: Vec::new(),
        gpu_devices: Vec::new(),
        submit_dir: place.folder.clone(),
        submit_host: place.host.clone(),
        dependency: batch
            .dependencies
            .as_ref()
            .map(|said| said.to_string().replace("(unfulfilled)", "")),
        restarts: 0,
        start_s: None,
        end_s: None,
    };
    let known = environment::variables(&job).into_iter();
    let known = known.filter(|(name, _)| KNOWN_AT_SUBMISSION.contains(name));
    Ok(known
        .map(|(name, value)| (name.to_owned(), value))
        .collect())
}

/// As it was asked for: `2`, `a100:2`.
fn gpus(said: &[Gres]) -> Option<String> {
    let one = |gres: &Gres| match &gres.model {
        Some(model) => format!("{model}:{}", gres.count),
        None => gres.count.to_string(),
    };
    let all: Vec<_> = said.iter().map(one).collect();
    (!all.is_empty()).then(|| all.join(","))
}
