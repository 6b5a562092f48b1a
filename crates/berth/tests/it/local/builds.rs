//! Builds of environments that attack the server, which measures, reads and seals what they made. While they are held
//! open, another person's build begins, completes and is sealed, and nothing outside of their folders is touched.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use berth_drivers::backend::{Attempt, AttemptKind, Seen};
use berth_drivers::environments::{Removed, Shelf};
use berth_model::EnvironmentId;

use super::*;

/// Where a build finds its folder.
const INSIDE: &str = "/opt/berth/environments/one";

/// What each puts in the place of the version of its interpreter, `$SECRET` being a file of root's outside.
const ATTACKS: [(&str, &str); 9] = [
    (
        "a device",
        "mkdir berth; mknod berth/python c 1 5 || ln -s /dev/zero berth/python",
    ),
    ("a FIFO", "mkdir berth; mkfifo berth/python"),
    ("a link", "mkdir berth; ln -s $SECRET berth/python"),
    (
        "a folder that is a link",
        "ln -s $(dirname $SECRET) berth; ln -s / root",
    ),
    (
        "a hard link",
        "mkdir berth; echo 3.11.2 > other; ln other berth/python",
    ),
    ("a directory", "mkdir -p berth/python"),
    (
        "a huge file",
        "mkdir berth; head -c 8M /dev/zero > berth/python",
    ),
    (
        "a sparse file",
        "mkdir berth; truncate -s 1T berth/python || truncate -s 8G berth/python",
    ),
    (
        "a file that is replaced while it is read",
        "mkdir berth; mkdir real; (while [ ! -e ~/release ]; do
            echo 3.11.2 > new; mv -T new berth/python
            ln -s $SECRET new; mv -T new berth/python
            mv -T real berth/folder; ln -s / real; mv -T real berth/link; rm berth/link; mv -T berth/folder real
         done) & swaps=$!",
    ),
];

struct Build {
    name: &'static str,
    id: EnvironmentId,
    workload: Workload,
    run: Run,
}

async fn begin(machine: &Machine, person: u128, name: &'static str, lines: &str) -> Build {
    let id = EnvironmentId(Uuid::now_v7());
    let lines = format!("cd {INSIDE}; {lines}");
    let (workload, run) = work(json!({"command": ["bash", "-c", lines]}));
    let mut grant = grant(person);
    grant.mounts.push(Seen {
        from: machine.local.made(id),
        to: INSIDE.into(),
        is_writable: true,
    });
    let job = Job {
        workload: &workload,
        run: &run,
    };
    let begun = machine.local.start(job, &grant, Fence(1), now()).await;
    begun.expect("it starts");
    Build {
        name,
        id,
        workload,
        run,
    }
}

/// The version that the server reads of what was made.
async fn sealed(machine: &Machine, build: &Build) -> Option<String> {
    let (outcome, said, log) = machine.until_over(&build.workload, &build.run).await;
    let name = build.name;
    assert_eq!(outcome, Outcome::Completed, "{name}: {said} {log}");
    machine.local.seal(build.id).await.expect(name).python
}

async fn attempts(machine: &Machine) -> Vec<Attempt> {
    machine.local.attempts().await.expect("they are counted")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_attacks_holds_nobody_up_and_reaches_nothing() {
    let machine = Machine::new();
    let secret = machine.folder.path().join("secret");
    std::fs::write(&secret, "9.9.9").expect("it works");
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).expect("it works");
    let mut attackers = Vec::new();
    for (name, attack) in ATTACKS {
        let lines = format!(
            "SECRET={}; {attack}; echo held; until [ -e ~/release ]; do sleep 0.05; done; \
             [ -z \"$swaps\" ] || {{ wait $swaps; ln -sfn $SECRET berth/python; }}; true",
            secret.display()
        );
        attackers.push(begin(&machine, 1, name, &lines).await);
    }
    for attacker in &attackers {
        machine.until_said(&attacker.run, "held").await;
        let size = machine.local.size(attacker.id).await.expect(attacker.name);
        assert!(size.bytes < 64 << 20, "{}: {size:?}", attacker.name);
    }
    let fine = "mkdir berth; echo 3.11.2 > berth/python";
    let other = begin(&machine, 2, "another's", fine).await;
    let version = sealed(&machine, &other).await;
    assert_eq!(version.as_deref(), Some("3.11.2"));
    assert_eq!(attempts(&machine).await, [], "nothing was read yet");
    for attacker in &attackers {
        let sign = machine.sign(&attacker.workload, &attacker.run).await;
        assert_eq!(sign, Sign::Running, "{} was held", attacker.name);
    }

    let home = machine.folder.path().join(format!("homes/{:032x}", 1));
    std::fs::write(home.join("release"), "").expect("it is our own machine");
    for attacker in &attackers {
        assert_eq!(sealed(&machine, attacker).await, None, "{}", attacker.name);
    }
    let about = std::fs::metadata(&secret).expect("it is there");
    assert_eq!((about.mode() & 0o7777, about.uid()), (0o600, 0));
    let mut seen: Vec<RunId> = attempts(&machine)
        .await
        .into_iter()
        .map(|attempt| {
            assert_eq!(attempt.kind, AttemptKind::StrangeFile);
            attempt.run
        })
        .collect();
    seen.sort_unstable();
    let mut expected: Vec<RunId> = attackers.iter().map(|one| one.run.id).collect();
    expected.sort_unstable();
    assert_eq!(seen, expected, "each is counted, and nobody else");
    for build in attackers.iter().chain([&other]) {
        let removed = machine.local.remove(build.id).await;
        assert_eq!(removed, Ok(Removed::Done), "{}", build.name);
    }
}
