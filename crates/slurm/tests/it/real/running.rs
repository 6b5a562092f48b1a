//! What a job finds when it runs.

use std::collections::BTreeMap;
use std::time::Duration;

use berth_slurm::environment::{self, Job, JobNode};
use berth_slurm::pattern::{self, Names};
use berth_testkit::slurm::Cluster;
use berth_testkit::wait;

use super::me;

/// How long Slurm may take to run a few jobs: seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Output is where the patterns say, and the environment what the variables say.
#[tokio::test]
async fn a_job_finds_its_files_and_its_variables_where_slurm_puts_them() {
    let cluster = Cluster::start().await.expect("a small Slurm");
    let submit = |line: &[&str]| {
        let arguments: Vec<&str> = ["--parsable", "--mem=100"]
            .iter()
            .chain(line)
            .copied()
            .collect();
        let id = cluster.output("sbatch", &arguments).expect("a job");
        id.trim().parse::<u64>().expect("a number")
    };
    let patterns = [
        "%x-%6j_%A.%u.%N",
        "%%j-%j-%2j-%t-%n-%s",
        r"plain\%j",
        "%J-%q-%12j",
        "%a-%0j",
        "%5x-%5N-%%%j",
        "x-%j%",
        r"b-\\%j",
        r"a\b-%j",
    ];
    let mut wanted = Vec::new();
    let (user, uid) = me();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let host = host.trim().split('.').next().unwrap_or_default().to_owned();
    for pattern in patterns {
        let id = submit(&["-J", "named", "-w", "n2", "-o", pattern, "--wrap=true"]);
        let names = Names {
            job_id: id,
            array: None,
            job_name: "named",
            user: &user,
            node: &host,
        };
        wanted.push(pattern::expand(pattern, &names));
    }
    let array = submit(&["--array=7", "-o", "task-%A_%3a", "--wrap=true"]);
    wanted.push(format!("task-{array}_007"));
    let job = submit(&[
        "-J",
        "told",
        "-N2",
        "-n",
        "3",
        "-c",
        "2",
        "--gpus-per-node=a100:2",
        "-w",
        "n[1-2]",
        "-A",
        "lab",
        "-o",
        "env",
        "--wrap=env -0 | sort -z | tr '\\0' '\\n' > told.tmp; mv told.tmp told",
    ]);
    wanted.push("told".to_owned());
    wait::until("every file to be there", PATIENCE, async || {
        wanted.iter().all(|name| cluster.path().join(name).exists())
    })
    .await;
    let told = std::fs::read_to_string(cluster.path().join("told")).expect("the variables");
    let told: BTreeMap<&str, &str> = told
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    let node = |name: &str, cpus, tasks| JobNode {
        name: name.to_owned(),
        cpus,
        tasks,
    };
    let number = |name: &str| told[name].parse::<u32>().expect("a number");
    let tasks = if told["SLURM_TASKS_PER_NODE"] == "2,1" {
        [2, 1]
    } else {
        [1, 2]
    };
    let job = Job {
        id: job,
        name: "told".to_owned(),
        user: user.clone(),
        uid,
        gid: number("SLURM_JOB_GID"),
        account: Some("lab".to_owned()),
        partition: "batch".to_owned(),
        qos: None,
        reservation: None,
        cluster: "lab".to_owned(),
        array: None,
        nodes: vec![
            node("n1", 2 * tasks[0], tasks[0]),
            node("n2", 2 * tasks[1], tasks[1]),
        ],
        tasks: 3,
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
        submit_dir: cluster.path().display().to_string(),
        submit_host: told["SLURM_SUBMIT_HOST"].to_owned(),
        dependency: None,
        restarts: 0,
        start_s: None,
        end_s: None,
    };
    let ours = environment::variables(&job);
    let wrong: Vec<_> = ours
        .iter()
        .filter(|(name, value)| told.get(**name) != Some(&value.as_str()))
        .map(|(name, value)| format!("{name}: {:?}, not {value}", told.get(name)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    // What only Slurm has is about its own inside.
    let inside = [
        "SLURM_CONF",
        "SLURM_PRIO_PROCESS",
        "SLURM_TASK_PID",
        "SLURM_TOPOLOGY_ADDR",
        "SLURM_TOPOLOGY_ADDR_PATTERN",
        "SLURM_NODE_ALIASES",
        "SLURM_WORKING_CLUSTER",
    ];
    let missing: Vec<_> = told
        .keys()
        .filter(|name| {
            name.starts_with("SLURM") && !ours.contains_key(**name) && !inside.contains(name)
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
