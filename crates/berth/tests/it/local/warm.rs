//! Warm servers, with the real JupyterLab: what a copy sees, may, and cannot; and that everything starts without one.
//!
//! A machine on which the server is not root has none, so these are for root; CI is.

use std::process::Command;

use berth_drivers::backend::{Backend, Fence, Job, Seen};
use berth_drivers::door;
use berth_drivers::environments::Prepared;
use berth_model::environment::INSIDE;
use berth_model::workload::{Outcome, Run, Workload};
use serde_json::json;
use std::time::Duration;

use super::{Machine, cache, eventually, grant, work};

/// Makes the environment where it is not made yet, and says how a run sees it.
fn jupyterlab() -> Seen {
    let made = Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(["env", "prepare", "jupyterlab", "--into"])
        .arg(cache())
        .output()
        .expect("it works");
    assert!(made.status.success(), "{made:?}");
    let key = Prepared::brought("jupyterlab").and_then(|one| one.key());
    let key = key.expect("it is known");
    Seen {
        from: cache().join(key.as_str()),
        to: format!("{INSIDE}/{}", Prepared::path(&key)).into(),
        is_writable: false,
    }
}

impl Machine {
    /// Starts a program of the environment, as an app.
    async fn app(&self, person: u128, seen: &Seen, command: &[&str]) -> (Workload, Run) {
        let (workload, run) = work(json!({"command": command, "serves": "socket"}));
        let environment = seen.to.display();
        let mut grant = grant(person);
        grant.mounts = vec![seen.clone()];
        grant.environment = [
            ("VIRTUAL_ENV", environment.to_string()),
            ("PATH", format!("{environment}/bin:/usr/bin:/bin")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let job = Job {
            workload: &workload,
            run: &run,
        };
        let begun = self.local.start(job, &grant, Fence(1), super::now()).await;
        begun.expect("it works");
        (workload, run)
    }

    /// Runs Python in it to its end.
    async fn python(&self, person: u128, seen: &Seen, code: &str) -> (Outcome, String, bool) {
        let (workload, run) = self.app(person, seen, &["ipython", "-c", code]).await;
        let was_warm = self.is_warm(&run);
        let (outcome, _, log) = self.until_over(&workload, &run).await;
        (outcome, log, was_warm)
    }

    fn is_warm(&self, run: &Run) -> bool {
        let spec = self.local.folder(run.id).spec().expect("it works");
        spec.warm.is_some()
    }

    /// The first starts cold; some time after that they are warm.
    async fn until_warm(&self, seen: &Seen) {
        eventually("a warm server", async || {
            let (outcome, log, was_warm) = self.python(9, seen, "print('done')").await;
            assert_eq!((outcome, log.as_str()), (Outcome::Completed, "done\n"));
            was_warm.then_some(())
        })
        .await;
    }
}

const LOOK: &str = "
import os, sys
print('read before:', 'jupyterlab.labapp' in sys.modules)
print('in the environment:', sys.prefix == os.environ['VIRTUAL_ENV'])
from jupyterlab.labapp import LabApp
print(LabApp.user_settings_dir.default_value)
print(os.getcwd(), os.environ['HOME'], os.getuid(), os.getgroups())
print(os.listdir('/home'), os.path.exists('/run/berth/warm.sock'))
print([line.split() for line in open('/proc/self/status') if line.startswith(('CapEff', 'CapBnd', 'NoNewPrivs'))])
print(sorted(int(name) for name in os.listdir('/proc') if name.isdigit())[:2])
print([line.split(':')[0].strip() for line in open('/proc/net/dev')][2:])
print(sorted(os.readlink(f'/proc/self/fd/{fd}').split(':')[0] for fd in range(64) if os.path.islink(f'/proc/self/fd/{fd}')))
open('mine', 'w').write('x')
try: open('/usr/mine', 'w')
except OSError as error: print(error.strerror)
";

#[tokio::test]
async fn a_copy_of_a_warm_server_is_its_person_in_their_sandbox_and_nothing_more() {
    let machine = Machine::new();
    let seen = jupyterlab();
    let (outcome, cold, was_warm) = machine.python(1, &seen, LOOK).await;
    assert!(!was_warm, "nobody has begun one yet");
    assert_eq!(outcome, Outcome::Completed, "{cold}");
    machine.until_warm(&seen).await;
    let (outcome, warm, was_warm) = machine.python(1, &seen, LOOK).await;
    assert!(was_warm);
    assert_eq!(outcome, Outcome::Completed, "{warm}");
    let cold = cold.replace("read before: False", "read before: True");
    assert_eq!(warm, cold, "but for that, nobody can tell them apart");
    assert!(
        warm.contains("/home/person1/.jupyter/lab/user-settings"),
        "{warm}"
    );
    assert!(warm.contains("['CapEff:', '0000000000000000']"), "{warm}");
}

/// Knocks at every socket that it has heard of, and writes to every descriptor that it was not given by name.
const KNOCK: &str = "
import os, socket
reached = []
def knock(address):
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    one.settimeout(2)
    try:
        one.connect(address)
        one.sendall(b'{}\\n' * 4096)
        reached.append(address)
    except OSError: pass
    one.close()
own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
own.bind('\\0own')
own.listen()
for path in os.environ['SOCKETS'].split(':'): knock(path)
for line in open('/proc/net/unix').read().splitlines()[1:]:
    name = (line.split() + [''])[7]
    if name: knock('\\0' + name[1:] if name.startswith('@') else name)
for fd in range(3, 256):
    try:
        if os.readlink(f'/proc/self/fd/{fd}').startswith('socket'):
            os.write(fd, b'{}\\n' * 4096)
            reached.append(fd)
    except OSError: pass
print(reached)
";

#[tokio::test]
async fn nothing_in_a_copy_reaches_the_warm_server() {
    let machine = Machine::new();
    let seen = jupyterlab();
    machine.until_warm(&seen).await;
    let sockets = std::fs::read_dir(machine.folder.path().join("warm")).expect("its folder");
    let sockets = sockets.map(|entry| entry.expect("an entry").path());
    let sockets = sockets.filter(|path| path.extension().is_some_and(|end| end == "sock"));
    let sockets: Vec<String> = sockets.map(|path| path.display().to_string()).collect();
    assert_eq!(sockets.len(), 1, "{sockets:?}");
    let attack = KNOCK.replace("os.environ['SOCKETS']", &format!("'{}'", sockets.join(":")));
    for person in 1..4 {
        let (outcome, log, was_warm) = machine.python(person, &seen, &attack).await;
        assert!(was_warm, "the one before did it no harm");
        assert_eq!(
            (outcome, log.as_str()),
            (Outcome::Completed, "['\\x00own']\n")
        );
    }
}

#[tokio::test]
async fn copies_are_held_to_their_limits_ended_and_told_of_like_any_other() {
    let machine = Machine::new();
    let seen = jupyterlab();
    machine.until_warm(&seen).await;
    let (outcome, log, was_warm) = machine.python(1, &seen, "import os; os._exit(3)").await;
    assert_eq!(
        (outcome, was_warm),
        (Outcome::Failed { exit_code: 3 }, true),
        "{log}"
    );
    let greedy = "x = bytearray(600 << 20)";
    let (outcome, log, was_warm) = machine.python(1, &seen, greedy).await;
    assert_eq!((outcome, was_warm), (Outcome::OutOfMemory, true), "{log}");
    let busy = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.05)";
    let (workload, run) = machine.app(1, &seen, &["ipython", "-c", busy]).await;
    assert!(machine.is_warm(&run));
    machine.until_said(&run, "ready").await;
    let (outcome, _) = machine.stop(&workload, &run).await;
    assert_eq!(outcome, Outcome::Cancelled);
    // A name that is nowhere is said to be, as when it starts cold.
    let (workload, run) = machine.app(1, &seen, &["no-such-program"]).await;
    let (outcome, ..) = machine.until_over(&workload, &run).await;
    assert!(matches!(
        outcome,
        Outcome::CouldNotStart | Outcome::Failed { .. }
    ));
}

#[tokio::test]
async fn people_at_the_same_time_get_copies_that_know_nothing_of_each_other() {
    let machine = Machine::new();
    let seen = jupyterlab();
    machine.until_warm(&seen).await;
    let mut running = Vec::new();
    for person in 1..=4 {
        let socket = "--ServerApp.sock=/run/berth/app.sock";
        let token = "--IdentityProvider.token=";
        let command = ["jupyter-lab", "--no-browser", socket, token];
        running.push(machine.app(person, &seen, &command).await);
    }
    for (workload, run) in &running {
        assert!(machine.is_warm(run));
        let job = Job { workload, run };
        let door = machine.local.door(job).await.expect("it works");
        let door = door.expect("it serves");
        eventually("its answer", async || {
            let path = "/api/status";
            let answer = door::ask(&door, path, Duration::from_secs(5)).await;
            answer.is_ok_and(|answer| answer.is_good()).then_some(())
        })
        .await;
    }
    let sockets: Vec<_> = running
        .iter()
        .map(|(_, run)| machine.local.folder(run.id).socket())
        .collect();
    let reach = format!(
        "import socket\nfor path in {sockets:?}:\n  try: socket.socket(socket.AF_UNIX).connect(path); print('reached', path)\n  except OSError as error: print(error.strerror)"
    );
    let (_, log, was_warm) = machine.python(5, &seen, &reach).await;
    assert!(was_warm && !log.contains("reached"), "{log}");
    for (workload, run) in &running {
        machine.stop(workload, run).await;
    }
}

#[tokio::test]
async fn without_its_warm_server_an_app_starts_all_the_same_and_the_next_server_has_one() {
    let machine = Machine::new();
    let seen = jupyterlab();
    machine.until_warm(&seen).await;
    let folder = machine.folder.path().join("warm");
    let key = seen
        .from
        .file_name()
        .expect("it works")
        .to_string_lossy()
        .into_owned();
    let socket = folder.join(format!("{key}.sock"));
    // Nobody answers there any more, though everybody believes so.
    std::fs::remove_file(&socket).expect("it works");
    let (outcome, log, was_warm) = machine.python(1, &seen, "print('done')").await;
    assert_eq!(
        (outcome, log.as_str(), was_warm),
        (Outcome::Completed, "done\n", true)
    );
    let again = Machine::server(machine.folder.path(), |_| {});
    let machine = Machine {
        local: again,
        ..machine
    };
    // It began by itself, so the first of this server may already be warm.
    eventually("the socket", async || socket.exists().then_some(())).await;
    machine.until_warm(&seen).await;
}
