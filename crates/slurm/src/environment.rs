//! The variables that a job finds in its environment, named as Slurm names them.

use std::collections::BTreeMap;

use crate::hostlist::compress;

/// A task of an array and the array it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayTask {
    pub job_id: u64,
    pub index: u32,
    pub count: u32,
    pub min: u32,
    pub max: u32,
    pub step: u32,
}

/// One node of a job, and what the job has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobNode {
    pub name: String,
    pub cpus: u32,
    pub tasks: u32,
}

/// What a job's script is told on the first of its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: u64,
    pub name: String,
    pub user: String,
    pub uid: u32,
    pub gid: u32,
    pub account: Option<String>,
    pub partition: String,
    pub qos: Option<String>,
    pub reservation: Option<String>,
    pub cluster: String,
    pub array: Option<ArrayTask>,
    /// In the order of their names; the script runs on the first.
    pub nodes: Vec<JobNode>,
    pub tasks: u32,
    /// Only where it was asked for.
    pub tasks_per_node: Option<u32>,
    pub cpus_per_task: Option<u32>,
    /// As it was asked for, in mebibytes.
    pub memory_per_node_mib: Option<u64>,
    pub memory_per_cpu_mib: Option<u64>,
    pub memory_per_gpu_mib: Option<u64>,
    /// As it was asked for: `2`, `a100:2`.
    pub gpus: Option<String>,
    pub gpus_per_node: Option<String>,
    pub gpus_per_task: Option<String>,
    /// The numbers of the GPUs on this node, and what a program must name to see each.
    pub gpu_numbers: Vec<u32>,
    pub gpu_devices: Vec<String>,
    pub submit_dir: String,
    pub submit_host: String,
    pub dependency: Option<String>,
    pub restarts: u32,
    pub start_s: Option<i64>,
    pub end_s: Option<i64>,
}

/// The same on neighbouring nodes is written once: `4(x2),2`.
fn repeated(counts: impl Iterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for count in counts {
        match runs.last_mut() {
            Some((last, times)) if *last == count => *times += 1,
            _ => runs.push((count, 1)),
        }
    }
    let written = runs.iter().map(|(count, times)| match times {
        1 => count.to_string(),
        times => format!("{count}(x{times})"),
    });
    written.collect::<Vec<_>>().join(",")
}

/// Every variable, by name.
pub fn variables(job: &Job) -> BTreeMap<&'static str, String> {
    let mut all = BTreeMap::new();
    let mut set = |name: &'static str, value: String| {
        all.insert(name, value);
    };
    let names: Vec<_> = job.nodes.iter().map(|node| &node.name).collect();
    let list = compress(&names);
    for name in ["SLURM_JOB_ID", "SLURM_JOBID"] {
        set(name, job.id.to_string());
    }
    set("SLURM_JOB_NAME", job.name.clone());
    set("SLURM_JOB_USER", job.user.clone());
    set("SLURM_JOB_UID", job.uid.to_string());
    set("SLURM_JOB_GID", job.gid.to_string());
    set("SLURM_JOB_PARTITION", job.partition.clone());
    set("SLURM_CLUSTER_NAME", job.cluster.clone());
    for name in ["SLURM_JOB_NODELIST", "SLURM_NODELIST"] {
        set(name, list.clone());
    }
    for name in ["SLURM_JOB_NUM_NODES", "SLURM_NNODES"] {
        set(name, job.nodes.len().to_string());
    }
    for name in ["SLURM_NTASKS", "SLURM_NPROCS"] {
        set(name, job.tasks.to_string());
    }
    let cpus = job.nodes.iter().map(|node| node.cpus);
    set("SLURM_JOB_CPUS_PER_NODE", repeated(cpus));
    let tasks = job.nodes.iter().map(|node| node.tasks);
    set("SLURM_TASKS_PER_NODE", repeated(tasks));
    if let Some(first) = job.nodes.first() {
        set("SLURM_CPUS_ON_NODE", first.cpus.to_string());
        set("SLURMD_NODENAME", first.name.clone());
    }
    for name in [
        "SLURM_NODEID",
        "SLURM_PROCID",
        "SLURM_LOCALID",
        "SLURM_GTIDS",
    ] {
        set(name, "0".to_owned());
    }
    set("SLURM_SUBMIT_DIR", job.submit_dir.clone());
    set("SLURM_SUBMIT_HOST", job.submit_host.clone());
    let text = |value: &Option<String>| value.clone();
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let given = [
        ("SLURM_JOB_ACCOUNT", text(&job.account)),
        ("SLURM_JOB_QOS", text(&job.qos)),
        ("SLURM_JOB_RESERVATION", text(&job.reservation)),
        ("SLURM_JOB_DEPENDENCY", text(&job.dependency)),
        (
            "SLURM_NTASKS_PER_NODE",
            number(job.tasks_per_node.map(u64::from)),
        ),
        (
            "SLURM_CPUS_PER_TASK",
            number(job.cpus_per_task.map(u64::from)),
        ),
        ("SLURM_MEM_PER_NODE", number(job.memory_per_node_mib)),
        ("SLURM_MEM_PER_CPU", number(job.memory_per_cpu_mib)),
        ("SLURM_MEM_PER_GPU", number(job.memory_per_gpu_mib)),
        ("SLURM_GPUS", text(&job.gpus)),
        ("SLURM_GPUS_PER_NODE", text(&job.gpus_per_node)),
        ("SLURM_GPUS_PER_TASK", text(&job.gpus_per_task)),
        (
            "SLURM_JOB_START_TIME",
            job.start_s.map(|second| second.to_string()),
        ),
        (
            "SLURM_JOB_END_TIME",
            job.end_s.map(|second| second.to_string()),
        ),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            set(name, value);
        }
    }
    if job.restarts > 0 {
        set("SLURM_RESTART_COUNT", job.restarts.to_string());
    }
    if !job.gpu_numbers.is_empty() {
        let numbers: Vec<_> = job.gpu_numbers.iter().map(u32::to_string).collect();
        set("SLURM_JOB_GPUS", numbers.join(","));
        set("SLURM_GPUS_ON_NODE", numbers.len().to_string());
    }
    // Set even when empty: a program must not take GPUs that it was not given.
    set("CUDA_VISIBLE_DEVICES", job.gpu_devices.join(","));
    if let Some(task) = &job.array {
        set("SLURM_ARRAY_JOB_ID", task.job_id.to_string());
        set("SLURM_ARRAY_TASK_ID", task.index.to_string());
        set("SLURM_ARRAY_TASK_COUNT", task.count.to_string());
        set("SLURM_ARRAY_TASK_MIN", task.min.to_string());
        set("SLURM_ARRAY_TASK_MAX", task.max.to_string());
        set("SLURM_ARRAY_TASK_STEP", task.step.to_string());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        let node = |name: &str, cpus, tasks| JobNode {
            name: name.to_owned(),
            cpus,
            tasks,
        };
        Job {
            id: 363,
            name: "train".to_owned(),
            user: "ada".to_owned(),
            uid: 1000,
            gid: 100,
            account: None,
            partition: "batch".to_owned(),
            qos: None,
            reservation: None,
            cluster: "lab".to_owned(),
            array: None,
            nodes: vec![node("n1", 4, 2), node("n2", 4, 2), node("n3", 2, 1)],
            tasks: 5,
            tasks_per_node: None,
            cpus_per_task: Some(2),
            memory_per_node_mib: Some(100),
            memory_per_cpu_mib: None,
            memory_per_gpu_mib: None,
            gpus: None,
            gpus_per_node: Some("a100:2".to_owned()),
            gpus_per_task: None,
            gpu_numbers: vec![0, 1],
            gpu_devices: vec!["0".to_owned(), "1".to_owned()],
            submit_dir: "/home/ada".to_owned(),
            submit_host: "login".to_owned(),
            dependency: None,
            restarts: 0,
            start_s: Some(5),
            end_s: None,
        }
    }

    #[test]
    fn a_job_is_told_who_and_where_it_is() {
        let all = variables(&job());
        for (name, wanted) in [
            ("SLURM_JOB_ID", "363"),
            ("SLURM_JOBID", "363"),
            ("SLURM_JOB_NODELIST", "n[1-3]"),
            ("SLURM_NNODES", "3"),
            ("SLURM_NTASKS", "5"),
            ("SLURM_JOB_CPUS_PER_NODE", "4(x2),2"),
            ("SLURM_TASKS_PER_NODE", "2(x2),1"),
            ("SLURM_CPUS_PER_TASK", "2"),
            ("SLURM_MEM_PER_NODE", "100"),
            ("SLURM_GPUS_ON_NODE", "2"),
            ("SLURM_JOB_GPUS", "0,1"),
            ("CUDA_VISIBLE_DEVICES", "0,1"),
            ("SLURM_SUBMIT_DIR", "/home/ada"),
            ("SLURMD_NODENAME", "n1"),
        ] {
            assert_eq!(all.get(name).map(String::as_str), Some(wanted), "{name}");
        }
        for name in [
            "SLURM_ARRAY_TASK_ID",
            "SLURM_MEM_PER_CPU",
            "SLURM_GPUS",
            "SLURM_RESTART_COUNT",
        ] {
            assert_eq!(all.get(name), None, "{name}");
        }
    }

    #[test]
    fn a_job_without_gpus_sees_none() {
        let job = Job {
            gpu_numbers: Vec::new(),
            gpu_devices: Vec::new(),
            ..job()
        };
        assert_eq!(variables(&job)["CUDA_VISIBLE_DEVICES"], "");
    }

    #[test]
    fn a_task_knows_its_array() {
        let array = ArrayTask {
            job_id: 360,
            index: 3,
            count: 5,
            min: 1,
            max: 9,
            step: 2,
        };
        let job = Job {
            array: Some(array),
            ..job()
        };
        let all = variables(&job);
        assert_eq!(all["SLURM_ARRAY_JOB_ID"], "360");
        assert_eq!(all["SLURM_ARRAY_TASK_ID"], "3");
        assert_eq!(all["SLURM_ARRAY_TASK_STEP"], "2");
    }
}
