//! Slurm's commands, by links to this program, against a site whose queue is simulated.

use std::fs;

use crate::support::desk::{Desk, Ended};

const CONFIG: &str =
    "listen = \"127.0.0.1:{port}\"\ndata_dir = \"{directory}\"\nqueue_backend = \"simulated\"\n";

const QUEUE: &str = r#"
roles: { node: node, cpu: cores, memory: memory, gpu: gpu, pool: seats }
levels: { urgent: { number: 5 } }
limit_max: PT48H
"#;

const SCRIPT: &str = "#!/bin/sh
#SBATCH --job-name=train
#SBATCH --account=vision --qos=urgent
#SBATCH -c 4 --mem=8G --time=1-0
#SBATCH --gpus=a100:1
echo $1
";

/// A site of one node with 8 cores, 32 GiB and two GPUs, its admin signed in, and the links in `bin`.
async fn cluster() -> Desk {
    let desk = Desk::with_admin_of(CONFIG).await;
    desk.write("queue.yaml", QUEUE);
    desk.write("train.sh", SCRIPT);
    for line in [
        "site create torino --title Torino --time-zone Europe/Rome",
        "site use torino",
        "member add ada --role site-admin",
        "project create vision --title Vision",
        "project add-member vision ada",
        "type create node --title Node",
        "type create cpu --title Cores",
        "type create memory --title Memory",
        "type create gpu --title GPU",
        "type create pool --title Pool",
        "resource add gpu-01 --type node",
        "resource add gpu-01.cpu --type cpu --in gpu-01 --capacity 8:cores",
        "resource add gpu-01.memory --type memory --in gpu-01 --capacity 32:gib",
        "resource add gpu-01.a --type gpu --in gpu-01 --attribute gpu_model=A100",
        "resource add gpu-01.b --type gpu --in gpu-01 --attribute gpu_model=A100",
        "resource add matlab --type pool --capacity 4:seats",
        "queue set queue.yaml",
        "slurm link bin",
    ] {
        desk.run(line).succeeds();
    }
    desk
}

#[track_caller]
fn says(ended: &Ended, words: &[&str]) {
    for word in words {
        assert!(ended.stdout.contains(word), "{word}: {ended:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_submitted_seen_cancelled_and_remembered() {
    let desk = cluster().await;
    let idle = desk.run_as("sinfo", "").succeeds();
    says(&idle, &["torino*", "up 2-00:00:00", "idle gpu-01"]);

    let mut watch = desk.start("event watch -o json --after 0");
    let made = desk.run_as("sbatch", "train.sh |a word|").succeeds();
    assert_eq!(made.stdout, "Submitted batch job 1\n");
    while !watch.next_line().contains("\"workload.started\"") {}
    let kept = desk.run("why 1 -o json").succeeds().json();
    let script = kept["program"]["script"].as_str().expect("a script");
    assert!(
        script.starts_with("#!/bin/sh\nset -- 'a word'\n#SBATCH"),
        "{script}"
    );

    let running = desk.run_as("squeue", "-h -o |%i %P %j %u %a %q %C %m %b %D %R|");
    says(
        &running.succeeds(),
        &["1 torino train ada vision urgent 4 8G gres:gpu:a100:1 1 gpu-01\n"],
    );
    let nodes = desk.run_as("sinfo", "-h -N -o |%N %t %C %G|").succeeds();
    assert_eq!(nodes.stdout, "gpu-01 mix 4/4/0/8 gpu:a100:2\n");

    let longer = desk.run("extend 1 30m").succeeds();
    says(&longer, &["1 may run until", "at the latest"]);

    let held = desk.run_as("sbatch", "--parsable -H -a 0-3%2 --wrap true");
    assert_eq!(held.succeeds().stdout, "2\n");
    let waiting = desk
        .run_as("squeue", "-h --me -t PD -o |%i %t %r %l|")
        .succeeds();
    assert_eq!(waiting.stdout, "2_[0-3%2] PD JobHeldUser 1-00:00:00\n");
    let after = desk.run_as(
        "sbatch",
        "-Q -d afterok:2 -t UNLIMITED --gres=matlab:1 --wrap true",
    );
    assert_eq!(after.succeeds().stdout, "");
    let third = desk.run_as("squeue", "-h -j 3 -o |%i %l %E|").succeeds();
    says(&third, &["3 2-00:00:00"]);

    desk.run_as("scancel", "2_1").succeeds();
    let rest = desk.run_as("squeue", "-h -j 2 -o %i").succeeds();
    assert_eq!(rest.stdout, "2_[0,2-3%2]\n");
    let gone = desk.run_as("scancel", "2_1");
    gone.ends_with(1);
    assert!(gone.stderr.contains("2_1: Job/step already"), "{gone:?}");
    desk.run_as("scancel", "--me -t PD").succeeds();
    desk.run_as("scancel", "1").succeeds();
    while !watch.next_line().contains("\"workload.cancelled\"") {}
    let again = desk.run_as("scancel", "2");
    again.ends_with(1);
    assert!(
        again.stderr.contains("already completing or completed"),
        "{again:?}"
    );
    let past = desk
        .run_as("sacct", "-n -P -o JobID,JobName,Account,State,ReqTRES")
        .succeeds();
    says(
        &past,
        &[
            "1|train|vision|",
            "2_[0-3%2]|wrap||CANCELLED|",
            "3|wrap||CANCELLED|",
            "cpu=4,mem=8G,node=1,billing=4,gres/gpu=1\n",
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_said_as_slurm_says_it() {
    let desk = cluster().await;
    for (program, line, words) in [
        (
            "sbatch",
            "--exclusive --wrap true",
            "sbatch: error: --exclusive is not supported",
        ),
        (
            "sbatch",
            "-q nothing --wrap true",
            "sbatch: error: level: there is no level `nothing`",
        ),
        ("sbatch", "-d afterok:99 --wrap true", "there is no job 99"),
        ("sbatch", "-p nowhere --wrap true", "sbatch: error:"),
        (
            "sbatch",
            "nowhere.sh",
            "sbatch: error: Unable to open file nowhere.sh",
        ),
        ("squeue", "-j 99", "squeue: error: Invalid job id specified"),
        (
            "scancel",
            "99",
            "Kill job error on job id 99: Invalid job id specified",
        ),
        (
            "scancel",
            "",
            "scancel: error: No job identification provided",
        ),
        ("sacct", "--wckeys=x", "sacct: error:"),
        ("sinfo", "--nonsense", "sinfo: error:"),
    ] {
        let refused = desk.run_as(program, line);
        refused.ends_with(1);
        assert!(refused.stderr.contains(words), "{refused:#?}");
    }
    let test = desk
        .run_as("sbatch", "--test-only -c 4 --wrap true")
        .succeeds();
    assert!(test.stderr.contains("4 processors"), "{test:?}");
    assert_eq!(desk.run_as("squeue", "-h").succeeds().stdout, "");
    let stranger = desk.another();
    stranger.run("slurm link bin").succeeds();
    let refused = stranger.run_as("squeue", "");
    refused.ends_with(1);
    assert!(
        refused.stderr.contains("squeue: error: which server?"),
        "{refused:?}"
    );
    says(
        &stranger.run_as("sbatch", "--version").succeeds(),
        &["slurm 22.05.8"],
    );
    says(
        &stranger.run_as("sbatch", "--help").succeeds(),
        &["--array"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sbatch_stays_until_the_job_is_over() {
    let desk = cluster().await;
    let mut waits = desk.start_as("sbatch", "--wait -H --wrap true");
    assert_eq!(waits.next_line(), "Submitted batch job 1");
    desk.run_as("scancel", "1").succeeds();
    assert_eq!(waits.end(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn links_replace_nothing_unasked() {
    let desk = Desk::with_admin().await;
    fs::create_dir(desk.home().join("bin")).expect("a folder");
    let own = desk.write("bin/squeue", "something of one's own");
    let refused = desk.run("slurm link bin");
    refused.ends_with(2);
    assert!(refused.stderr.contains("bin/squeue"), "{refused:?}");
    assert!(!desk.home().join("bin/sbatch").exists());
    desk.run("slurm link bin --force").succeeds();
    assert!(own.is_symlink() && desk.home().join("bin/sbatch").is_symlink());
    // Once more changes nothing, and needs no force.
    desk.run("slurm link bin").succeeds();
    let names = fs::read_dir(desk.home().join("bin")).expect("the folder");
    assert_eq!(names.count(), 5);
}

/// Three jobs on a machine of four processors.
const LOG: &str = "; MaxProcs: 4\n\
     1 0 -1 3600 4 -1 -1 4 7200 -1 1 1 1 -1 -1 -1 -1 -1\n\
     2 60 -1 600 2 -1 -1 2 900 -1 1 2 1 -1 -1 -1 -1 -1\n\
     3 120 -1 60 1 -1 -1 1 300 -1 1 3 2 -1 -1 -1 -1 -1\n";

#[tokio::test(flavor = "multi_thread")]
async fn what_if_is_asked_of_a_log_and_of_the_site() {
    let desk = cluster().await;
    desk.write("log.swf", LOG);
    desk.write("shares.toml", "order = \"shares\"\n");
    desk.write("shortest.toml", "order = \"shortest\"\n");
    let policies = "--policy shares.toml --policy shortest.toml --out page.html";
    let compared = desk
        .run(&format!("sim --trace log.swf {policies}"))
        .succeeds();
    says(
        &compared,
        &["shares", "shortest", "Wait, mean", "page.html"],
    );
    let page = fs::read_to_string(desk.home().join("page.html")).expect("a page");
    assert!(page.contains("<svg") && page.contains("shortest"));

    let mut watch = desk.start("event watch -o json --after 0");
    desk.run("submit --cores 2 --memory 4GiB --time 10m -- sleep 1")
        .succeeds();
    while !watch.next_line().contains("\"workload.ended\"") {}
    let ours = desk
        .run(&format!(
            "sim --since 1d {policies} --save-history history.jsonl"
        ))
        .succeeds();
    says(&ours, &["Starts"]);
    let history = fs::read_to_string(desk.home().join("history.jsonl")).expect("a history");
    assert!(
        history.contains("berth-history") && history.contains("\"start\""),
        "{history}"
    );
    let again = desk
        .run("sim --trace history.jsonl --out again.html")
        .succeeds();
    says(&again, &["default"]);
    desk.run("sim --trace page.html").ends_with(2);
}
