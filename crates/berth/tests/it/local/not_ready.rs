//! A machine that cannot make sandboxes when work starts: the start waits for it, and fails only after a while.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;

/// A machine whose bubblewrap fails until it is mended. It notes each try.
struct Unready {
    machine: Machine,
    folder: tempfile::TempDir,
}

impl Unready {
    fn new() -> Unready {
        let folder = tempfile::tempdir().expect("a folder");
        // The run's user starts bubblewrap.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
        let here = folder.path().display();
        fs::copy("/usr/bin/bwrap", folder.path().join("real")).expect("bubblewrap");
        let script = |name: &str, lines: String| {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{lines}\n")).expect("a script");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
            path
        };
        let bwrap = script(
            "bwrap",
            format!(
                "echo try >> {here}/tries\n[ -e {here}/mended ] || exit 7\nexec {here}/real \"$@\""
            ),
        );
        let mount = format!("mount --bind {} /usr/bin/bwrap", bwrap.display());
        let berth = env!("CARGO_BIN_EXE_berth");
        // Only the keeper and what it starts see the other bubblewrap.
        let program = script(
            "berth",
            format!("exec unshare --mount sh -c '{mount} && exec \"$0\" \"$@\"' {berth} \"$@\""),
        );
        let machine = Machine::with(|settings| settings.program.clone_from(&program));
        Unready { machine, folder }
    }

    fn tries(&self) -> usize {
        fs::read_to_string(self.folder.path().join("tries")).map_or(0, |text| text.lines().count())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn until_tried(&self, times: usize) {
        eventually("another try", async || {
            (self.tries() >= times).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_start_waits_until_the_sandbox_can_be_made() {
    let unready = Unready::new();
    let program =
        json!({"command": ["bash", "-c", "echo $WORD"], "environment": {"WORD": "hello"}});
    let (workload, run) = unready.machine.start(1, program).await;
    unready.until_tried(2).await;
    let sign = unready.machine.sign(&workload, &run).await;
    assert_eq!(sign, Sign::Running, "it waits");
    fs::write(unready.file("mended"), "").expect("a file");
    let (outcome, said, log) = unready.machine.until_over(&workload, &run).await;
    assert_eq!(outcome, Outcome::Completed, "{said} {log}");
    assert!(log.contains("the start is tried again"), "{log}");
    assert!(log.ends_with("hello\n"), "it begins once: {log}");
}

#[tokio::test]
async fn a_start_that_waits_for_its_sandbox_is_stopped_at_once() {
    let unready = Unready::new();
    let (workload, run) = unready.machine.start(1, json!({"command": ["true"]})).await;
    unready.until_tried(1).await;
    let stopping = Run {
        state: RunState::Stopping {
            because: Because::Cancelled,
            since: now(),
        },
        ..run
    };
    let job = Job {
        workload: &workload,
        run: &stopping,
    };
    let told = unready.machine.local.stop(job, Fence(1), now()).await;
    told.expect("it is told");
    let (outcome, ..) = unready.machine.until_over(&workload, &stopping).await;
    assert_eq!(outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn an_app_that_began_is_not_started_again_when_its_sandbox_is_killed() {
    let machine = Machine::new();
    let program =
        json!({"command": ["bash", "-c", "echo begins; exec -a not-ready-canary sleep 600"]});
    let (workload, run) = machine.start(1, program).await;
    let log = async || {
        machine
            .local
            .folder(run.id)
            .log_tail(1 << 10)
            .expect("a log")
    };
    eventually("the app", async || {
        log().await.contains("begins").then_some(())
    })
    .await;
    let keeper = fs::read_to_string(machine.local.folder(run.id).path().join("keeper"));
    let keeper = keeper.expect("a keeper").trim().to_owned();
    let children = std::process::Command::new("pgrep")
        .args(["-P", &keeper, "bwrap"])
        .output()
        .expect("pgrep");
    let sandbox = String::from_utf8_lossy(&children.stdout).trim().to_owned();
    let sandbox: i32 = sandbox.parse().expect("one sandbox");
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(sandbox),
        nix::sys::signal::Signal::SIGKILL,
    )
    .expect("it is ours");
    let (outcome, said, log) = machine.until_over(&workload, &run).await;
    assert_eq!(outcome, Outcome::Failed { exit_code: 137 }, "{said}");
    assert_eq!(log.matches("begins").count(), 1, "{log}");
}
