//! Runs that an older version started, and runs that the database ended while their machine was away. The records of
//! an older version are where the run could write, so this version ends it with a sentence to its owner.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use super::*;

/// The folder of a run as that version made it, of a run that had begun.
fn record(machine: &Machine, run: &Run) {
    let folder = machine.local.folder(run.id);
    let path = folder.path();
    std::fs::create_dir_all(folder.io()).expect("it works");
    let files = [
        ("io/spec.json", "{}".to_owned()),
        ("until", run.until.to_string()),
        ("seen", "[]".to_owned()),
        ("begun", String::new()),
        ("keeper", String::new()),
    ];
    for (name, text) in files {
        std::fs::write(path.join(name), text).expect("it works");
    }
}

/// A keeper that lives on, as far as its lock tells.
fn keeper(machine: &Machine, run: &Run) -> Child {
    let hold = "import fcntl, os, sys, time\n\
                lock = open(sys.argv[1], 'r+')\n\
                fcntl.flock(lock, fcntl.LOCK_EX)\n\
                lock.write(str(os.getpid()))\n\
                lock.flush()\n\
                print('held', flush=True)\n\
                time.sleep(600)\n";
    let mut keeper = Command::new("python3")
        .args(["-c", hold])
        .arg(machine.local.folder(run.id).path().join("keeper"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let mut said = String::new();
    let output = keeper.stdout.as_mut().expect("its output");
    BufReader::new(output).read_line(&mut said).expect("a line");
    assert_eq!(said, "held\n");
    keeper
}

async fn is_ended_with_a_sentence(machine: &Machine, workload: &Workload, run: &Run) {
    let (outcome, said, _) = machine.until_over(workload, run).await;
    assert_eq!(outcome, Outcome::NodeFailed, "{said}");
    assert!(said.contains("Berth was upgraded"), "{said}");
}

#[tokio::test]
async fn what_an_older_version_still_keeps_is_ended_with_a_sentence() {
    let machine = Machine::new();
    let (workload, run) = work(json!({"command": ["true"], "serves": "socket"}));
    record(&machine, &run);
    let mut keeper = keeper(&machine, &run);
    is_ended_with_a_sentence(&machine, &workload, &run).await;
    let ended = keeper.wait().expect("it is ours");
    assert_eq!(ended.signal(), Some(9));
}

#[tokio::test]
async fn what_an_older_version_started_and_nobody_keeps_is_ended_with_a_sentence() {
    let machine = Machine::new();
    let (workload, run) = work(json!({"command": ["true"], "serves": "socket"}));
    record(&machine, &run);
    is_ended_with_a_sentence(&machine, &workload, &run).await;
}

/// As after a machine that was away for so long that the database settled its runs without it.
#[tokio::test]
async fn what_the_database_ended_while_its_keeper_was_killed_is_removed() {
    let machine = Machine::new();
    let program = json!({"command": ["bash", "-c", "echo ready; exec sleep 610"]});
    let (_, run) = machine.start(1, program).await;
    machine.until_said(&run, "ready").await;
    let folder = machine.local.folder(run.id);
    let killed = folder.signal_keeper(rustix::process::Signal::KILL);
    killed.expect("it runs");
    let records = machine.local.records().expect("it keeps records");
    eventually("its folder to go", async || {
        records.remove_folder(run.id).await.expect("it works");
        (!folder.path().exists()).then_some(())
    })
    .await;
    assert!(!is_listed("sleep 610"));
    let log = machine.folder.path().join("logs");
    let log = log.join(run.id.0.simple().to_string());
    assert_eq!(std::fs::read_to_string(log).expect("it is kept"), "ready\n");

    // Nor does one that never began stay.
    let late = Machine::with(|settings| settings.program = "/bin/true".into());
    let (_, run) = late.start(1, json!({"command": ["true"]})).await;
    let records = late.local.records().expect("it keeps records");
    records.remove_folder(run.id).await.expect("it works");
    assert!(!late.local.folder(run.id).path().exists());
}
