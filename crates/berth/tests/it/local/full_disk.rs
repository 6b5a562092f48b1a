//! A disk that is full: what fails because of it says so, and a log goes on when there is room again.

use super::*;

/// A small disk of its own below a folder, for as long as this lives.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn at(path: PathBuf) -> SmallDisk {
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs"])
            .arg(&path)
            .status()
            .expect("it works");
        assert!(mounted.success(), "only root may mount");
        SmallDisk(path)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let umount = std::process::Command::new("umount").arg(&self.0).status();
        umount.expect("it works");
    }
}

#[tokio::test]
async fn what_fails_on_a_full_disk_says_that_it_is_full() {
    let machine = Machine::new();
    let disk = SmallDisk::at(machine.folder.path().join("homes"));
    let fill = "head -c 8M /dev/zero > all && echo written";
    let (outcome, said, log) = machine.shell(1, fill).await;
    assert_eq!(outcome, Outcome::Failed { exit_code: 1 }, "{log}");
    assert!(said.contains("the disk with its home is full"), "{said}");
    let (outcome, said, _) = machine.shell(1, "rm all; false").await;
    assert_eq!(outcome, Outcome::Failed { exit_code: 1 });
    assert!(!said.contains("full"), "{said}");
    drop(disk);
}

/// The log lies on the disk of the runs: what cannot be written is counted, and the app goes on.
#[tokio::test]
async fn a_log_survives_a_full_disk_and_says_what_is_missing() {
    let machine = Machine::new();
    let runs = machine.folder.path().join("runs");
    let disk = SmallDisk::at(runs.clone());
    let home = machine.folder.path().join(format!("homes/{:032x}", 1));
    let shell = "echo first; until [ -e full ]; do sleep 0.05; done; \
                 head -c 1000000 /dev/zero | tr '\\0' x; echo; echo said > said; \
                 until [ -e room ]; do sleep 0.05; done; echo last";
    let (workload, run) = machine
        .start(1, json!({"command": ["sh", "-c", shell]}))
        .await;
    let log = machine.local.folder(run.id).log();
    eventually("its first line", async || {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        said.contains("first").then_some(())
    })
    .await;
    let filler = runs.join("filler");
    let filled = std::fs::write(&filler, vec![0; 8 << 20]);
    assert!(filled.is_err(), "the disk is smaller than that");
    std::fs::write(home.join("full"), "").expect("it works");
    eventually("all that it says", async || {
        home.join("said").exists().then_some(())
    })
    .await;
    assert_eq!(machine.sign(&workload, &run).await, Sign::Running);
    std::fs::remove_file(&filler).expect("it works");
    std::fs::write(home.join("room"), "").expect("it works");
    let (outcome, said, log) = machine.until_over(&workload, &run).await;
    assert_eq!(outcome, Outcome::Completed, "{said}");
    let log = log.replace('x', "");
    assert!(
        log.contains("bytes are missing here: the disk was full"),
        "{log}"
    );
    assert!(log.ends_with("last\n"), "{log}");
    drop(disk);
}
