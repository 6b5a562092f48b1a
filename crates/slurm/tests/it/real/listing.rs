//! The same jobs and nodes, printed by both. The rows are made of what `scontrol` shows.

use std::time::Duration;

use berth_slurm::amount::memory_mib;
use berth_slurm::array::Array;
use berth_slurm::duration::TimeLimit;
use berth_slurm::sinfo::{self, NodeRow, PartitionRow, Reason};
use berth_slurm::squeue::{self, View};
use berth_slurm::state::{JobState, NodeState};
use berth_slurm::{JobRow, Member, hostlist};
use berth_testkit::slurm::Cluster;
use berth_testkit::wait;
use jiff::Timestamp;
use serde_json::Value;

use super::show::Shown;
use super::{me, now, words, zone};

/// How long Slurm may take to start a few jobs: a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

const SQUEUE: &[&str] = &[
    "",
    "-l",
    "-h",
    "--start",
    "-r",
    "-t all",
    "-t PD",
    "-t r,cg",
    "--me",
    "-u nobody,0",
    "-n held,later",
    "-p batch",
    "-A lab",
    "-w n1",
    "-w n[2-4]",
    "-j 1,2",
    "-j 2_2",
    "-S i",
    "-S -i",
    "-S t,-i",
    "-S j,i",
    "-S -p,i",
    "-S P,-u,i",
    "-S l,i",
    "-S D,i",
    "-o %i",
    "-o %.18i|%9P|%.3j|%8u|%T",
    "-o %A~%F~%K~%a~%b~%c~%C~%d~%D",
    "-o %E~%f~%g~%G~%h~%H~%I~%j~%J",
    "-o %k~%l~%L~%m~%M~%n~%N~%o~%O",
    "-o %p~%P~%q~%Q~%r~%R~%S~%t~%T",
    "-o %u~%U~%v~%V~%w~%W~%x~%X~%y~%z~%Z",
    "-o <%5i>~100%%~",
    "-S i -o %.1A|%.1C|%.1D|%.2M|%2M|%.2l|%2l|%.2L|%2L|%.3p|%.3Q|%.5S|%5S|%.1y|%.1m|%.1c",
    "-S i -O TimeLimit:.2|,TimeUsed:.2|,NumCPUs:.1|,StartTime:.5|,TimeLeft:2|",
    "-S i -o %e",
    "-O jobid,name,state",
    "-O JobArrayID:10,UserName:.6,Name:5|,TimeLimit:8",
    "-O jobid:,name:x",
    "-O Account,ArrayJobID,ArrayTaskID,BatchHost,Command,Comment",
    "-O Contiguous,Cores,CoreSpec,cpus-per-task,Dependency,DerivedEC",
    "-O EligibleTime,exit_code,Feature,GroupID,GroupName,HetJobID",
    "-O MaxCPUs,MaxNodes,MinCpus,MinMemory,MinTmpDisk,Nice,NodeList",
    "-O NTPerBoard,NTPerCore,NTPerNode,NumCPUs,NumNodes,NumTasks",
    "-O OverSubscribe,Partition,PreemptTime,Priority,PriorityLong",
    "-O QOS,Reason,ReasonList,Reboot,ReqNodes,ReqSwitch,Requeue",
    "-O Reservation,ResizeTime,RestartCnt,SchedNodes,SCT,Sockets",
    "-O StartTime,StateCompact,STDERR:60,STDIN,STDOUT:60,SubmitTime",
    "-O Threads,TimeLeft,TimeUsed,tres-bind,tres-per-job,tres-per-node",
    "-O tres-per-task,UserID,Wait4Switch,WCKey,WorkDir:50,Prefer",
];

const SINFO: &[&str] = &[
    "",
    "-l",
    "-h",
    "-N",
    "-N -l",
    "-s",
    "-R",
    "-R -l",
    "-p long",
    "-p batch -h",
    "-p nosuch",
    "-n n1,n2",
    "-t idle",
    "-t drain",
    "-t down,mix",
    "-N -t drain",
    "-e",
    "-r",
    "-d",
    "-o %N",
    "-o %P|%t|%D|%N|%C|%G|%m|%c",
    "-o %a~%A~%b~%B~%c~%C~%d~%D",
    "-o %E~%f~%F~%g~%G~%h~%H~%I",
    "-o %l~%L~%m~%M~%N~%o~%p~%P~%r~%R",
    "-p batch -o %s~%S~%t~%T~%u~%U~%V~%w~%X~%Y~%z~%Z",
    "-o %c~%m~%z",
    "-e -o %c~%m~%z",
    "-o %20P|%.5a|%.3D|%6t|",
    "-O partition,nodelist,statelong:.12,cpus,memory,gres:30",
    "-O Available,CPUsState,Disk,Features,features_act,Groups",
    "-O NodeAI,NodeAIOT,NodeHost,Nodes,OverSubscribe,PartitionName",
    "-O PreemptMode,PriorityTier,PriorityJobFactor,Root,Size",
    "-p batch -O SocketCoreThread,Sockets,StateCompact,Threads,Time,User,UserLong,Weight",
];

fn time(text: Option<String>) -> Option<Timestamp> {
    let civil: jiff::civil::DateTime = text?.parse().expect("a moment");
    Some(civil.to_zoned(zone()).expect("in this zone").timestamp())
}

fn seconds(text: &str) -> u64 {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let clock = clock
        .split(':')
        .map(|part| part.parse::<u64>().expect("a number"));
    days.parse::<u64>().expect("days") * 86_400 + clock.fold(0, |sum, part| sum * 60 + part)
}

fn limit(text: &str) -> TimeLimit {
    text.parse().expect("a limit")
}

fn hosts(text: Option<String>) -> Vec<String> {
    hostlist::expand(&text.unwrap_or_default()).expect("hosts")
}

/// `name(12)`
fn named(text: &str) -> (String, u32) {
    let (name, number) = text.split_once('(').expect("a name and a number");
    (
        name.to_owned(),
        number.trim_end_matches(')').parse().expect("a number"),
    )
}

/// What Slurm cuts short is given in full here.
fn indices(text: &str) -> Array {
    let whole = "1,4,9,16,25,36,49,64,81,100,121,144,169,196,225,256,289,324%5";
    let text = if text.contains("...") { whole } else { text };
    text.parse().expect("indices")
}

fn job(shown: &Shown) -> JobRow {
    let (user, uid) = named(shown.get("UserId"));
    let (group, gid) = named(shown.get("GroupId"));
    let number = |key| u32::try_from(shown.number(key)).expect("a small number");
    let member = shown.some("ArrayJobId").map(|array| {
        let array = array.parse().expect("a number");
        let tasks = shown.get("ArrayTaskId");
        match tasks.parse() {
            // Slurm writes one task that waits like several.
            Ok(index) if shown.get("JobState") != "PENDING" => Member::Task { array, index },
            _ => Member::Waiting {
                array,
                tasks: indices(tasks),
            },
        }
    });
    let (memory, is_per_cpu) = match shown.some("MinMemoryCPU") {
        Some(memory) => (memory, true),
        None => (shown.get("MinMemoryNode").to_owned(), false),
    };
    let most = shown
        .get("NumNodes")
        .split_once('-')
        .map(|(_, most)| most.parse().expect("a number"));
    JobRow {
        member,
        uid,
        group,
        gid,
        account: shown.some("Account"),
        qos: shown.some("QOS"),
        state: JobState::named(shown.get("JobState")).expect("a state"),
        reason: shown.get("Reason").replace('_', " "),
        eligible: time(shown.some("EligibleTime")),
        start: time(shown.some("StartTime")),
        end: time(shown.some("EndTime")),
        deadline: time(shown.some("Deadline")),
        time_limit: limit(shown.get("TimeLimit")),
        time_used_s: seconds(shown.get("RunTime")),
        nodes: number("NumNodes"),
        max_nodes: most.unwrap_or(number("NumNodes")),
        cpus: number("NumCPUs"),
        tasks: number("NumTasks"),
        cpus_per_task: number("CPUs/Task"),
        memory_mib: memory_mib(&memory).expect("memory"),
        is_memory_per_cpu: is_per_cpu,
        tres_per_node: shown.some("TresPerNode"),
        tres_per_job: shown.some("TresPerJob"),
        tres_per_task: shown.some("TresPerTask"),
        node_list: hosts(shown.some("NodeList")),
        required_nodes: hosts(shown.some("ReqNodeList")),
        excluded_nodes: hosts(shown.some("ExcNodeList")),
        planned_nodes: hosts(shown.some("SchedNodeList")),
        features: shown.some("Features"),
        dependency: shown.some("Dependency"),
        priority: number("Priority"),
        nice: shown.get("Nice").parse().expect("a number"),
        comment: shown.some("Comment"),
        command: shown.some("Command"),
        work_dir: shown.get("WorkDir").to_owned(),
        stdout: shown.get("StdOut").to_owned(),
        stderr: shown.get("StdErr").to_owned(),
        stdin: shown.get("StdIn").to_owned(),
        is_exclusive: shown.get("OverSubscribe") == "NO",
        requeue: shown.get("Requeue") == "1",
        restarts: number("Restarts"),
        exit_code: shown
            .get("ExitCode")
            .split(':')
            .next()
            .and_then(|code| code.parse().ok())
            .map_or(0, |code: u32| code << 8),
        ..JobRow::pending(
            shown.number("JobId"),
            shown.get("JobName"),
            &user,
            shown.get("Partition"),
            time(shown.some("SubmitTime")).expect("a time"),
        )
    }
}

fn node(shown: &Shown) -> NodeRow {
    let number = |key| u32::try_from(shown.number(key)).expect("a small number");
    let mut flags = shown.get("State").split('+');
    let base = flags.next().unwrap_or_default();
    let flags: Vec<_> = flags.collect();
    let is_draining = flags.contains(&"DRAIN");
    let state = match base.to_lowercase().as_str() {
        "mixed" | "allocated" if is_draining => NodeState::Draining,
        _ if is_draining => NodeState::Drained,
        base => *NodeState::ALL
            .iter()
            .find(|state| state.long() == base)
            .expect("a state"),
    };
    let reason = shown.some("Reason").map(|text| {
        let (text, by) = text.split_once(" [").expect("who said so");
        let (user, since) = by.trim_end_matches(']').split_once('@').expect("and when");
        Reason {
            text: text.to_owned(),
            user: user.to_owned(),
            // Only whoever runs the test gives reasons here.
            uid: me().1,
            since: time(Some(since.to_owned())),
        }
    });
    NodeRow {
        hostname: shown.get("NodeHostName").to_owned(),
        address: shown.get("NodeAddr").to_owned(),
        state,
        is_responding: !flags.contains(&"NOT_RESPONDING"),
        cpus_allocated: number("CPUAlloc"),
        sockets: number("Sockets"),
        cores_per_socket: number("CoresPerSocket"),
        threads_per_core: number("ThreadsPerCore"),
        disk_mib: shown.number("TmpDisk"),
        weight: number("Weight"),
        features: shown.some("AvailableFeatures"),
        gres: shown.some("Gres"),
        reason,
        ..NodeRow::idle(
            shown.get("NodeName"),
            number("CPUTot"),
            shown.number("RealMemory"),
        )
    }
}

fn partition(shown: &Shown) -> PartitionRow {
    PartitionRow {
        is_default: shown.get("Default") == "YES",
        availability: shown.get("State").to_lowercase(),
        time_limit: limit(shown.get("MaxTime")),
        default_time: Some(shown.get("DefaultTime"))
            .filter(|text| *text != "NONE")
            .map(limit),
        over_subscribe: shown.get("OverSubscribe").to_owned(),
        ..PartitionRow::open(shown.get("PartitionName"), hosts(shown.some("Nodes")))
    }
}

/// The first line of a long list is when it was printed, which is not the same twice.
fn without_date(text: String, line: &str) -> String {
    let is_dated = line.split(' ').any(|word| word == "-l");
    let skipped = text.split_once('\n').map(|(_, rest)| rest.to_owned());
    skipped.filter(|_| is_dated).unwrap_or(text)
}

struct Comparison<'c> {
    cluster: &'c Cluster,
    wrong: Vec<String>,
}

impl Comparison<'_> {
    /// What a program prints while what `scontrol` shows of `what` stays the same, and that.
    fn while_still(&self, what: &str, program: &str, line: &str) -> (String, Vec<Shown>) {
        let arguments = words(line);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        for _ in 0..500 {
            let show = || {
                self.cluster
                    .output("scontrol", &["show", what, "-o"])
                    .expect("scontrol")
            };
            let before = show();
            let said = self.cluster.output(program, &arguments).expect(program);
            if before == show() {
                return (said, Shown::all(&before));
            }
        }
        panic!("Slurm never stood still for `{program} {line}`");
    }

    fn compare(&mut self, program: &str, line: &str, ours: String, theirs: String) {
        let (ours, theirs) = (without_date(ours, line), without_date(theirs, line));
        if ours != theirs {
            self.wrong.push(format!(
                "{program} {line}\n--- Slurm\n{theirs}--- Berth\n{ours}"
            ));
        }
    }

    fn squeue(&mut self, line: &str) {
        let (theirs, shown) = self.while_still("job", "squeue", line);
        let squeue::Asked::List(asked) = squeue::read(&words(line)).expect("good") else {
            panic!("{line} is no list");
        };
        let rows: Vec<JobRow> = shown.iter().map(job).collect();
        let (me, _) = me();
        let rows = rows
            .into_iter()
            .filter(|row| asked.wants(row, &me))
            .collect();
        let view = View {
            now: now().timestamp(),
            zone: zone(),
            cluster: "lab",
        };
        self.compare("squeue", line, asked.render(rows, &view), theirs);
    }

    /// Programs that read JSON find each key that Berth prints where Slurm prints it, with a value of its kind.
    fn json(&mut self, program: &str, list: &str) {
        let theirs = self.cluster.output(program, &["--json"]).expect(program);
        let theirs: Value = serde_json::from_str(&theirs).expect("JSON");
        let line = words("--json");
        let ours = match program {
            "squeue" => {
                let Ok(squeue::Asked::List(asked)) = squeue::read(&line) else {
                    panic!("a list");
                };
                let view = View {
                    now: now().timestamp(),
                    zone: zone(),
                    cluster: "lab",
                };
                let row = JobRow::pending(1, "a", "b", "c", now().timestamp());
                asked.render(vec![row], &view)
            }
            _ => {
                let Ok(sinfo::Asked::List(asked)) = sinfo::read(&line) else {
                    panic!("a list");
                };
                let partition = PartitionRow::open("p", vec!["n".to_owned()]);
                let nodes = [NodeRow::idle("n", 1, 1)];
                asked.render(&[partition], &nodes, now().timestamp(), &zone())
            }
        };
        let ours: Value = serde_json::from_str(&ours).expect("JSON");
        let kind = |value: &Value| match value {
            Value::Number(_) | Value::Null => "a number",
            Value::String(_) => "a text",
            Value::Bool(_) => "yes or no",
            Value::Array(_) => "a list",
            Value::Object(_) => "a thing",
        };
        for (key, value) in ours[list][0].as_object().expect("an object") {
            match theirs[list][0].get(key) {
                Some(their) if kind(their) == kind(value) => {}
                other => self.wrong.push(format!(
                    "{program} --json: {key} is {value}; Slurm: {other:?}"
                )),
            }
        }
    }

    fn sinfo(&mut self, line: &str) {
        let (theirs, shown) = self.while_still("node", "sinfo", line);
        let sinfo::Asked::List(asked) = sinfo::read(&words(line)).expect("good") else {
            panic!("{line} is no list");
        };
        let nodes: Vec<NodeRow> = shown.iter().map(node).collect();
        let partitions = self
            .cluster
            .output("scontrol", &["show", "partition", "-o"]);
        let partitions: Vec<_> = Shown::all(&partitions.expect("partitions"))
            .iter()
            .map(partition)
            .collect();
        let ours = asked.render(&partitions, &nodes, now().timestamp(), &zone());
        self.compare("sinfo", line, ours, theirs);
    }
}

#[tokio::test]
async fn squeue_and_sinfo_print_what_slurm_prints() {
    let cluster = Cluster::start().await.expect("a small Slurm");
    // The jobs end by themselves should this test be killed.
    let submit = |line: &str, command: &str| {
        let wrap = format!("--wrap={command}");
        let words = words(line);
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        arguments.extend(["--parsable", "-o", "/dev/null", &wrap]);
        cluster.output("sbatch", &arguments).expect("a job");
    };
    submit(
        "-J runs -N2 -n 3 --gres=gpu:a100:1 --mem=100 -t 1-0 -A lab -w n[1-2]",
        "exec sleep 300",
    );
    submit(
        "-J array --array=1-3,10-12%1 --mem=1G -t 30 --comment=some~words",
        "exec sleep 300",
    );
    submit("-J fails --mem=100 -t 5", "exit 3");
    wait::until("two jobs to run and one to fail", PATIENCE, async || {
        let states = cluster.output("squeue", &["-h", "-t", "R,F", "-o", "%t"]);
        let mut states: Vec<String> = states
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect();
        states.sort();
        states == ["F", "R", "R"]
    })
    .await;
    cluster
        .output(
            "scontrol",
            &[
                "update",
                "nodename=n3",
                "state=drain",
                "reason=bad fan, see ticket 17",
            ],
        )
        .expect("drain a node");
    cluster
        .output(
            "scontrol",
            &["update", "nodename=n4", "state=down", "reason=x"],
        )
        .expect("a node down");
    submit("-J held -H -N 2-3 -c 2 --exclusive --nice=5", "true");
    submit(
        "-J a-rather-long-name -H --array=0-20 -x n1 -C fast",
        "true",
    );
    submit(
        "-J later --begin=now+1hour -t 90 -p long --mem-per-cpu=10",
        "true",
    );
    submit(
        "-J depends -d afterok:1 --mem=10 --gpus=2 --no-requeue -D /tmp",
        "true",
    );
    submit("-J gone -H --mem=1", "true");
    cluster.output("scancel", &["-n", "gone"]).expect("cancel");
    let many = "-J many -H --array=1,4,9,16,25,36,49,64,81,100,121,144,169,196,225,256,289,324%5";
    submit(many, "true");
    let mut comparison = Comparison {
        cluster: &cluster,
        wrong: Vec::new(),
    };
    for line in SQUEUE {
        comparison.squeue(line);
    }
    for line in SINFO {
        comparison.sinfo(line);
    }
    comparison.json("squeue", "jobs");
    comparison.json("sinfo", "nodes");
    let wrong = comparison.wrong;
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
