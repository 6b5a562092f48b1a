//! A disk that hangs for one run: its own looks and orders fail in time, and all other runs go on.
//!
//! A FIFO without a writer in place of a run's record stands for the disk. Only root can put it there.

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_hangs_for_one_run_delays_no_other() {
    let machine = Machine::new();
    let sleep = json!({"command": ["sleep", "600"]});
    let (hung, hung_run) = machine.start(1, sleep.clone()).await;
    let (other, other_run) = machine.start(2, sleep.clone()).await;
    let runs = async |run: &(Workload, Run)| machine.sign(&run.0, &run.1).await == Sign::Running;
    let (hung, other) = ((hung, hung_run), (other, other_run));
    eventually("both", async || {
        (runs(&hung).await && runs(&other).await).then_some(())
    })
    .await;
    let record = machine.local.folder(hung.1.id).path().join("end.json");
    mkfifo(&record, Mode::S_IRWXU).expect("a FIFO");

    let jobs = [&hung, &other].map(|(workload, run)| Job { workload, run });
    for _ in 0..3 {
        let signs = machine.local.look(&jobs, now()).await.expect("signs");
        assert_eq!(signs, [Sign::Unreachable, Sign::Running]);
    }
    let stopped = machine.local.stop(jobs[0], Fence(1), now()).await;
    assert!(matches!(stopped, Err(Trouble::NoAnswer(_))), "{stopped:?}");
    let (outcome, said, _) = machine.shell(3, "true").await;
    assert_eq!(outcome, Outcome::Completed, "others start and end: {said}");

    // The disk is back.
    let writer = std::fs::File::options().write(true).open(&record);
    std::fs::remove_file(&record).expect("it is ours");
    drop(writer);
    eventually("the first run", async || runs(&hung).await.then_some(())).await;
    machine.stop(&hung.0, &hung.1).await;
    machine.stop(&other.0, &other.1).await;
}

/// A keeper that was started and never came: what is told to end then never begins, however late its keeper comes.
#[tokio::test]
async fn what_is_told_to_end_before_its_keeper_came_never_begins() {
    let late = Machine::with(|settings| settings.program = "/bin/true".into());
    let program = json!({"command": ["sh", "-c", "echo began > began"]});
    let (workload, run) = late.start(1, program).await;
    assert_eq!(
        late.sign(&workload, &run).await,
        Sign::Running,
        "it is waited for"
    );
    let stopping = Run {
        state: RunState::Stopping {
            because: Because::Cancelled,
            since: now(),
        },
        ..run.clone()
    };
    let sign = late.sign(&workload, &stopping).await;
    let Sign::Ended { outcome, .. } = sign else {
        panic!("{sign:?}");
    };
    assert_eq!(outcome, Outcome::Cancelled);
    // The keeper itself, at last.
    let keeper = std::process::Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(["keeper", "run"])
        .arg(late.local.folder(run.id).path())
        .stdin(std::process::Stdio::null())
        .status();
    assert!(keeper.expect("it runs").success());
    let end = late.local.folder(run.id).end().expect("a record");
    assert_eq!(end.expect("an end").said, "it was told to end");
    let home = late.folder.path().join(format!("homes/{:032x}", 1));
    assert!(!home.join("began").exists());
}
