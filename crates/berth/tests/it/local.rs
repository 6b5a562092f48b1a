//! Work as processes of this machine, with the real sandbox: what it sees, what it may use, and that it outlives whoever
//! started it. A machine without bubblewrap fails these; `make test` installs it.

mod builds;
mod full_disk;
mod homes;
mod hung;
mod locked;
mod names;
mod not_ready;
mod older;
mod quota;
mod variables;
mod warm;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use berth_drivers::backend::{Backend, Fence, Grant, Job, Sign, Trouble};
use berth_drivers::door;
use berth_drivers::local::disk::DiskLimits;
use berth_drivers::local::network::Range;
use berth_drivers::local::record_key::RecordKey;
use berth_drivers::local::{Local, Settings};
use berth_model::workload::{
    Because, Counts, Outcome, Run, RunPiece, RunState, State, Tasks, Workload,
};
use berth_model::{PersonId, ResourceId, RunId, SiteId, WorkloadId};
use berth_testkit::repository;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

#[expect(
    clippy::disallowed_methods,
    reason = "what runs here runs in real time"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

struct Machine {
    folder: tempfile::TempDir,
    local: Arc<Local>,
}

impl Machine {
    fn new() -> Machine {
        Self::with(|_| {})
    }

    /// Where the boundary of a run does not hold, and an admin wants it so.
    fn shared_without_a_sandbox() -> Machine {
        Self::with(|settings| {
            settings.has_sandbox = false;
            settings.is_shared = true;
        })
    }

    fn with(set: impl Fn(&mut Settings)) -> Machine {
        let folder = tempfile::tempdir().expect("it works");
        let local = Self::server(folder.path(), set);
        Machine { folder, local }
    }

    fn server(folder: &Path, set: impl Fn(&mut Settings)) -> Arc<Local> {
        let is_root = nix::unistd::Uid::effective().is_root();
        let mut settings = Settings {
            folder: folder.to_owned(),
            program: env!("CARGO_BIN_EXE_berth").into(),
            first_user: is_root.then_some(200_000),
            closed: vec![Range::new([203, 0, 113, 0].into(), 24)],
            opened: Vec::new(),
            opened_names: Vec::new(),
            database_host: None,
            has_network: true,
            has_sandbox: true,
            sandbox_again: None,
            is_shared: false,
            prepared: Some(cache()),
            warm_max: 1,
            disk: DiskLimits::default(),
            record_key: RecordKey::new([9; 32].into()),
        };
        set(&mut settings);
        Arc::new(Local::new(settings).expect("it works"))
    }

    async fn start(&self, person: u128, program: Value) -> (Workload, Run) {
        let (workload, run) = work(program);
        self.begin(person, &workload, &run).await;
        (workload, run)
    }

    async fn begin(&self, person: u128, workload: &Workload, run: &Run) {
        let begun = self.try_begin(person, workload, run).await;
        begun.expect("it works");
    }

    async fn try_begin(&self, person: u128, workload: &Workload, run: &Run) -> Result<(), Trouble> {
        let grant = grant(person);
        let job = Job { workload, run };
        self.local.start(job, &grant, Fence(1), now()).await
    }

    async fn sign(&self, workload: &Workload, run: &Run) -> Sign {
        let jobs = [Job { workload, run }];
        self.local
            .look(&jobs, now())
            .await
            .expect("it works")
            .remove(0)
    }

    /// A visitor's connection, with the run's key.
    async fn visit(
        &self,
        workload: &Workload,
        run: &Run,
    ) -> std::io::Result<tokio::net::UnixStream> {
        let door = self.local.door(Job { workload, run }).await;
        let door = door.expect("it works").expect("it serves visitors");
        door::connect(&door).await
    }

    async fn until_over(&self, workload: &Workload, run: &Run) -> (Outcome, String, String) {
        let over = eventually("the run to be over", async || {
            match self.sign(workload, run).await {
                Sign::Ended { outcome, .. } => Some(outcome),
                _ => None,
            }
        });
        let outcome = over.await;
        let folder = self.local.folder(run.id);
        let said = folder
            .end()
            .expect("it works")
            .map_or_else(String::new, |end| end.said);
        (outcome, said, folder.log_tail(1 << 16).expect("it works"))
    }

    /// Runs a shell's lines to their end.
    async fn shell(&self, person: u128, lines: &str) -> (Outcome, String, String) {
        let program = json!({"command": ["bash", "-c", lines]});
        let (workload, run) = self.start(person, program).await;
        self.until_over(&workload, &run).await
    }
}

fn grant(person: u128) -> Grant {
    Grant {
        person: PersonId(Uuid::from_u128(person)),
        login: format!("person{person}"),
        site: "here".to_owned(),
        project: None,
        nodes: vec!["berth".to_owned()],
        gpus: Vec::new(),
        environment: Default::default(),
        mounts: Vec::new(),
        has_neighbours: true,
        has_hub: false,
        package_index: None,
    }
}

/// Where environments are prepared: between runs of the tests as well.
fn cache() -> PathBuf {
    repository::cache().join("environments")
}

/// Looks until it is there. Nothing here takes minutes, but machines are busy.
async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "waited for {what}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn work(program: Value) -> (Workload, Run) {
    let ask = json!({
        "title": "work", "class": "guaranteed", "level": null, "seats": [], "inside": null,
        "not_before": null, "deadline": null, "after": [], "array": null, "requeue": true,
        "program": program,
        "wishes": [{"task": {"cores_milli": 500, "memory_mib": 200}, "limit": "PT1H"}],
    });
    let now = now();
    let workload = Workload {
        id: WorkloadId(Uuid::now_v7()),
        site: SiteId(Uuid::nil()),
        number: 7,
        owner: PersonId(Uuid::nil()),
        project: None,
        ask: serde_json::from_value(ask).expect("it works"),
        state: State::Running,
        reason: None,
        waiting: Tasks::none(),
        counts: Counts::default(),
        since: now,
        ended_at: None,
        version: 1,
    };
    let run = Run {
        id: RunId(Uuid::now_v7()),
        workload: workload.id,
        site: workload.site,
        task: 0,
        attempt: 1,
        wish: 0,
        inside: None,
        kept_from: None,
        lent_by: None,
        machine: None,
        pieces: vec![RunPiece {
            node: ResourceId(Uuid::nil()),
            cores_milli: 500,
            memory_mib: 200,
            gpus: Vec::new(),
        }],
        claims: Vec::new(),
        state: RunState::Running,
        began: now,
        until: now + SignedDuration::from_hours(1),
        supervisor_until: None,
        ended_at: None,
        said: None,
        version: 1,
    };
    (workload, run)
}

/// The processes that a process has started.
fn children(of: i32) -> Vec<i32> {
    let listed = std::process::Command::new("ps")
        .args(["-o", "pid=", "--ppid", &of.to_string()])
        .output()
        .expect("it works");
    let listed = String::from_utf8(listed.stdout).expect("numbers");
    let numbers = listed.split_whitespace().map(str::parse);
    numbers.collect::<Result<_, _>>().expect("numbers")
}

/// It reads what the run sends, so whoever takes it over must not be root.
#[tokio::test]
async fn what_forwards_the_packets_of_a_run_is_not_root() {
    let machine = Machine::new();
    let program = json!({"command": ["bash", "-c", "echo ready; exec sleep 609"]});
    let (workload, run) = machine.start(1, program).await;
    machine.until_said(&run, "ready").await;
    let kept = machine.local.folder(run.id).kept().expect("it works");
    let berth_drivers::local::folder::Kept::By(keeper) = kept else {
        panic!("{kept:?}");
    };
    let file = |process: i32, name: &str| {
        std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default()
    };
    // It makes a process of its own for the namespaces that it enters.
    let mut found = children(keeper);
    found.retain(|process| file(*process, "comm").trim() == "slirp4netns");
    assert_eq!(found.len(), 1, "one of this run");
    found.extend(children(found[0]));
    for process in found {
        let status = file(process, "status");
        for ids in ["Uid:", "Gid:", "Groups:"] {
            let line = status.lines().find_map(|line| line.strip_prefix(ids));
            let mut ids = line.expect("they are listed").split_whitespace();
            assert!(ids.all(|id| id == "200000"), "{process}: {status}");
        }
    }
    machine.stop(&workload, &run).await;
}

/// As after a restore by somebody who forgot whose it was.
#[tokio::test]
async fn what_runs_finds_its_home_again_and_says_how_it_ended() {
    let machine = Machine::new();
    let (outcome, said, log) = machine
        .shell(
            1,
            "echo for later > kept; id -un; pwd; echo $CUDA_VISIBLE_DEVICES.; exit 3",
        )
        .await;
    assert_eq!(outcome, Outcome::Failed { exit_code: 3 }, "{said} {log}");
    assert_eq!(log, "person1\n/home/person1\n.\n");
    assert!(said.contains("exit code 3"), "{said}");
    let (outcome, _, log) = machine.shell(1, "cat kept").await;
    assert_eq!((outcome, log.as_str()), (Outcome::Completed, "for later\n"));
}

/// The sandbox is laid out in a folder of that place, which nobody else sees.
#[tokio::test]
async fn a_server_may_keep_its_data_below_mnt() {
    let folder = tempfile::tempdir_in("/mnt").expect("only root may");
    let local = Machine::server(folder.path(), |_| {});
    let machine = Machine { folder, local };
    let (outcome, said, log) = machine.shell(1, "echo here > kept; cat kept").await;
    assert_eq!(
        (outcome, log.as_str()),
        (Outcome::Completed, "here\n"),
        "{said}"
    );
}

#[tokio::test]
async fn nobody_reads_anothers_home_processes_socket_or_settings() {
    let machine = Machine::new();
    let theirs = json!({"command": ["bash", "-c", "echo secret > diary; exec -a canary sleep 600"],
        "environment": {"TOKEN": "canary-token"}});
    let (workload, run) = machine.start(1, theirs).await;
    let diary = machine
        .folder
        .path()
        .join(format!("homes/{:032x}/diary", 1));
    eventually("the diary", async || diary.exists().then_some(())).await;
    let folder = machine.folder.path().display();
    let look = format!(
        "ls /home; ls -A {folder} 2>&1; cat {}; ps ax -o args; cat /proc/*/environ | tr '\\0' '\\n'; \
         cat /etc/shadow; ls /root /mnt /var/lib; ls /sys/fs/cgroup; id -u; grep CapEff /proc/self/status; touch /usr/x /x; unshare -Ur true",
        diary.display()
    );
    let (_, _, log) = machine.shell(2, &look).await;
    for hidden in ["secret", "canary", "person1", "keeper run"] {
        assert!(!log.contains(hidden), "`{hidden}` is seen:\n{log}");
    }
    assert!(log.starts_with("person2\n"), "{log}");
    assert!(log.contains("CapEff:\t0000000000000000"), "{log}");
    assert!(log.contains("Read-only file system"), "{log}");
    assert!(log.contains("unshare: unshare failed"), "{log}");
    // Nor is anything of it told to whoever lists the machine's processes.
    let listed = std::process::Command::new("ps")
        .args(["axww", "-o", "args"])
        .output()
        .expect("it works");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(!listed.contains("canary-token"));
    machine.stop(&workload, &run).await;
}

impl Machine {
    /// Tells it to end, with a second to do so, and waits until it has.
    async fn stop(&self, workload: &Workload, run: &Run) -> (Outcome, String) {
        let now = now();
        let told = Run {
            state: RunState::Stopping {
                because: Because::Cancelled,
                since: now,
            },
            until: now + SignedDuration::from_secs(1),
            ..run.clone()
        };
        let job = Job {
            workload,
            run: &told,
        };
        self.local.stop(job, Fence(1), now).await.expect("it works");
        let (outcome, _, log) = self.until_over(workload, &told).await;
        (outcome, log)
    }
}

#[tokio::test]
async fn what_is_told_to_end_may_tidy_up_and_what_does_not_is_made_to() {
    let machine = Machine::new();
    let polite = "trap 'echo tidied up; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let (workload, run) = machine
        .start(1, json!({"command": ["bash", "-c", polite]}))
        .await;
    machine.until_said(&run, "ready").await;
    let (_, log) = machine.stop(&workload, &run).await;
    assert!(log.ends_with("tidied up\n"), "{log}");
    let deaf = "trap '' TERM; (setsid sleep 601 &); echo ready; while :; do sleep 0.05; done";
    let (workload, run) = machine
        .start(1, json!({"command": ["bash", "-c", deaf]}))
        .await;
    machine.until_said(&run, "ready").await;
    let (outcome, _) = machine.stop(&workload, &run).await;
    assert_eq!(outcome, Outcome::Cancelled);
    let listed = std::process::Command::new("ps")
        .args(["ax", "-o", "args"])
        .output()
        .expect("it works");
    assert!(
        !String::from_utf8_lossy(&listed.stdout).contains("sleep 601"),
        "its children, too"
    );
}

impl Machine {
    async fn until_said(&self, run: &Run, words: &str) {
        let folder = self.local.folder(run.id);
        let said = async || {
            let log = folder.log_tail(1 << 16).expect("it works");
            if let Some(end) = folder.end().expect("it works") {
                panic!("it is over: {end:?} {log}");
            }
            log.contains(words).then_some(())
        };
        eventually(words, said).await;
    }
}

#[tokio::test]
async fn what_is_to_save_its_work_is_told_so_before_it_is_told_to_end() {
    let machine = Machine::new();
    let saves = "trap 'echo saved' USR1; trap 'echo ended; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let (workload, run) = machine
        .start(1, json!({"command": ["bash", "-c", saves]}))
        .await;
    machine.until_said(&run, "ready").await;
    let told = Run {
        state: RunState::Stopping {
            because: Because::Checkpoint,
            since: now(),
        },
        until: now() + SignedDuration::from_secs(4),
        ..run
    };
    let job = Job {
        workload: &workload,
        run: &told,
    };
    machine
        .local
        .stop(job, Fence(1), now())
        .await
        .expect("it works");
    let (_, _, log) = machine.until_over(&workload, &told).await;
    let own = |line: &&str| ["ready", "saved", "ended"].contains(line);
    let said: Vec<&str> = log.lines().filter(own).collect();
    assert_eq!(said, ["ready", "saved", "ended"], "{log}");
}

#[tokio::test]
async fn a_greedy_program_is_ended_and_its_owner_told_why() {
    let machine = Machine::new();
    let eat = "exec python3 -c 'x = bytearray(600 << 20); print(len(x))'";
    let (outcome, said, log) = machine.shell(1, eat).await;
    assert_eq!(outcome, Outcome::OutOfMemory, "{said} {log}");
    assert!(said.contains("more memory than its limit"), "{said}");
}

#[tokio::test]
async fn a_script_runs_though_it_was_submitted_from_a_folder_of_another_machine() {
    let machine = Machine::new();
    let script = json!({"script": "#!/bin/sh\npwd; echo done >&2", "folder": "/project/vision", "output": "out-%j.txt"});
    let (workload, run) = machine.start(1, script).await;
    let (outcome, said, log) = machine.until_over(&workload, &run).await;
    assert_eq!(outcome, Outcome::Completed, "{said} {log}");
    assert_eq!(log, "/project/vision is not there; it begins in its home\n");
    let home = machine.folder.path().join(format!("homes/{:032x}", 1));
    let output = std::fs::read_to_string(home.join("out-7.txt")).expect("it works");
    assert_eq!(output, "/home/person1\ndone\n");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let machine = Machine::new();
    let (workload, run) = machine.start(1, json!({"command": ["jupiter-lab"]})).await;
    let (outcome, said, _) = machine.until_over(&workload, &run).await;
    assert_eq!(outcome, Outcome::CouldNotStart);
    assert!(said.contains("`jupiter-lab` is not there"), "{said}");
}

#[tokio::test]
async fn nothing_reaches_the_metadata_address_the_machine_itself_or_what_the_admin_closed() {
    let machine = Machine::new();
    let listener = std::net::TcpListener::bind("0.0.0.0:0").expect("it works");
    let port = listener.local_addr().expect("it works").port();
    let own = berth_drivers::local::machine::own_addresses().expect("it works");
    let mut tries = vec!["169.254.169.254/80".to_owned(), "203.0.113.9/80".to_owned()];
    tries.push(format!("127.0.0.1/{port}"));
    tries.push(format!("10.0.2.2/{port}"));
    for address in &own {
        tries.push(format!("{address}/{port}"));
    }
    let lines: String = tries
        .iter()
        .map(|to| format!("(timeout 20 bash -c '</dev/tcp/{to}' && echo reached {to}) 2>&1; "))
        .collect();
    let (outcome, said, log) = machine
        .shell(
            1,
            &format!("{lines} ip route del unreachable 203.0.113.0/24; true"),
        )
        .await;
    assert_eq!(outcome, Outcome::Completed, "{said}");
    assert!(!log.contains("reached"), "{log}");
    assert!(log.contains("No route to host"), "{log}");
    assert!(log.contains("Operation not permitted"), "{log}");
}

#[tokio::test]
async fn an_app_is_visited_by_its_socket_and_by_no_other_way() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let machine = Machine::new();
    let serve = json!({"command": ["python3", "-m", "http.server", "8888", "--bind", "127.0.0.1"], "serves": {"port": 8888}});
    let (workload, run) = machine.start(1, serve).await;
    let answer = eventually("an answer", async || {
        let mut stream = machine.visit(&workload, &run).await.ok()?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        (!answer.is_empty()).then_some(answer)
    });
    assert!(answer.await.starts_with("HTTP/1.0 200"));
    std::net::TcpStream::connect("127.0.0.1:8888").expect_err("nobody is there");
    let (_, _, log) = machine
        .shell(2, "(</dev/tcp/127.0.0.1/8888) 2>&1; ls -l /run/berth")
        .await;
    assert!(log.contains("Connection refused"), "{log}");
    machine.stop(&workload, &run).await;
}

#[tokio::test]
async fn a_new_server_finds_what_runs_and_starts_nothing_twice() {
    let machine = Machine::new();
    let program =
        json!({"command": ["bash", "-c", "echo started >> starts; echo ready; exec sleep 600"]});
    let (workload, run) = machine.start(1, program).await;
    machine.until_said(&run, "ready").await;
    let folder = machine.folder.path().to_owned();
    let machine = Machine {
        local: Machine::server(&folder, |_| {}),
        folder: machine.folder,
    };
    assert_eq!(machine.sign(&workload, &run).await, Sign::Running);
    machine.begin(1, &workload, &run).await;
    machine.begin(1, &workload, &run).await;
    let (outcome, _) = machine.stop(&workload, &run).await;
    assert_eq!(outcome, Outcome::Cancelled);
    machine.begin(1, &workload, &run).await;
    let starts =
        std::fs::read_to_string(folder.join(format!("homes/{:032x}/starts", 1))).expect("it works");
    assert_eq!(starts, "started\n");
}

#[tokio::test]
async fn a_keeper_that_is_killed_takes_its_run_with_it() {
    let machine = Machine::new();
    let program = json!({"command": ["bash", "-c", "echo ready; exec -a orphan-to-be sleep 602"]});
    let (workload, run) = machine.start(1, program).await;
    machine.until_said(&run, "ready").await;
    let kept = machine.local.folder(run.id).kept().expect("it works");
    let berth_drivers::local::folder::Kept::By(keeper) = kept else {
        panic!("{kept:?}");
    };
    let keeper = nix::unistd::Pid::from_raw(keeper);
    nix::sys::signal::kill(keeper, nix::sys::signal::Signal::SIGKILL).expect("it works");
    let (outcome, said, _) = machine.until_over(&workload, &run).await;
    assert_eq!(outcome, Outcome::NodeFailed, "{said}");
    let listed = std::process::Command::new("ps")
        .args(["ax", "-o", "args"])
        .output()
        .expect("it works");
    assert!(!String::from_utf8_lossy(&listed.stdout).contains("orphan-to-be"));
}

#[tokio::test]
async fn a_run_ends_in_time_though_no_server_is_there() {
    let machine = Machine::new();
    let (workload, mut run) = work(json!({"command": ["sleep", "603"]}));
    run.until = now() + SignedDuration::from_secs(2);
    machine.begin(1, &workload, &run).await;
    let (outcome, _, _) = machine.until_over(&workload, &run).await;
    assert_eq!(outcome, Outcome::TimedOut);
}

#[tokio::test]
async fn who_lost_the_lease_starts_nothing() {
    let machine = Machine::new();
    let (workload, run) = machine.start(1, json!({"command": ["true"]})).await;
    let job = Job {
        workload: &workload,
        run: &run,
    };
    machine
        .local
        .stop(job, Fence(5), now())
        .await
        .expect("it works");
    let late = machine.local.stop(job, Fence(4), now()).await;
    assert_eq!(late, Err(Trouble::Fenced));
    machine.until_over(&workload, &run).await;
}

#[tokio::test]
async fn where_the_boundary_does_not_hold_several_people_are_refused_and_one_is_not() {
    for (has_sandbox, own_users) in [(false, true), (true, false), (false, false)] {
        let machine = Machine::with(|settings| {
            settings.has_sandbox = has_sandbox;
            settings.first_user = settings.first_user.filter(|_| own_users);
        });
        let (workload, run) = work(json!({"command": ["true"]}));
        let refused = machine.try_begin(1, &workload, &run).await;
        let Err(Trouble::Refused(why)) = refused else {
            panic!("{refused:?}");
        };
        assert!(why.contains("unsafe_shared_user"), "{why}");
        assert_eq!(machine.sign(&workload, &run).await, Sign::Unknown);
        let job = Job {
            workload: &workload,
            run: &run,
        };
        let alone = Grant {
            has_neighbours: false,
            ..grant(1)
        };
        let started = machine.local.start(job, &alone, Fence(1), now()).await;
        started.expect("the machine is their own");
        let (outcome, said, log) = machine.until_over(&workload, &run).await;
        assert_eq!(outcome, Outcome::Completed, "{said} {log}");
    }
}

#[tokio::test]
async fn whoever_answers_for_a_machine_without_a_sandbox_may_share_it() {
    let machine = Machine::shared_without_a_sandbox();
    let program = json!({"command": ["bash", "-c", "echo ready; exec sleep 605"]});
    let (workload, run) = machine.start(1, program).await;
    machine.until_said(&run, "ready").await;
    let (outcome, said, log) = machine.shell(2, "id -u").await;
    assert_eq!(outcome, Outcome::Completed, "{said} {log}");
    assert_ne!(log.trim(), "0", "nobody's work runs as root");
    machine.stop(&workload, &run).await;
}

#[tokio::test]
async fn without_a_sandbox_nothing_of_a_run_is_left_either() {
    let machine = Machine::shared_without_a_sandbox();
    let deaf = "trap '' TERM; (setsid sleep 606 &); echo ready; while :; do sleep 0.05; done";
    let (workload, run) = machine
        .start(1, json!({"command": ["bash", "-c", deaf]}))
        .await;
    machine.until_said(&run, "ready").await;
    let (outcome, _) = machine.stop(&workload, &run).await;
    assert_eq!(outcome, Outcome::Cancelled);
    assert!(!is_listed("sleep 606"), "its children, too");
    // What goes by itself takes along what it left behind.
    let leaves = "(setsid sleep 607 &); echo gone";
    let (outcome, said, log) = machine.shell(1, leaves).await;
    assert_eq!(outcome, Outcome::Completed, "{said} {log}");
    assert!(!is_listed("sleep 607"));
    // And so does a keeper that is killed.
    let (workload, run) = machine
        .start(
            1,
            json!({"command": ["bash", "-c", "echo ready; exec sleep 608"]}),
        )
        .await;
    machine.until_said(&run, "ready").await;
    let kept = machine.local.folder(run.id).kept().expect("it works");
    let berth_drivers::local::folder::Kept::By(keeper) = kept else {
        panic!("{kept:?}");
    };
    let keeper = nix::unistd::Pid::from_raw(keeper);
    nix::sys::signal::kill(keeper, nix::sys::signal::Signal::SIGKILL).expect("it works");
    let (outcome, said, _) = machine.until_over(&workload, &run).await;
    assert_eq!(outcome, Outcome::NodeFailed, "{said}");
    assert!(!is_listed("sleep 608"));
}

#[tokio::test]
async fn without_a_sandbox_scripts_and_visitors_find_their_way() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let machine = Machine::shared_without_a_sandbox();
    let script = json!({"script": "#!/bin/sh\necho in $(basename $TMPDIR); touch $TMPDIR/x; pwd"});
    let (workload, run) = machine.start(1, script).await;
    let (outcome, said, log) = machine.until_over(&workload, &run).await;
    assert_eq!(outcome, Outcome::Completed, "{said} {log}");
    assert!(log.starts_with("in tmp\n"), "{log}");
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("it works");
    let number = port.local_addr().expect("it works").port();
    drop(port);
    let serve = json!({"command": ["python3", "-m", "http.server", number.to_string(), "--bind", "127.0.0.1"], "serves": {"port": number}});
    let (workload, run) = machine.start(1, serve).await;
    let answer = eventually("an answer", async || {
        let mut stream = machine.visit(&workload, &run).await.ok()?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        (!answer.is_empty()).then_some(answer)
    });
    assert!(answer.await.starts_with("HTTP/1.0 200"));
    machine.stop(&workload, &run).await;
}

fn is_listed(program: &str) -> bool {
    let listed = std::process::Command::new("ps")
        .args(["ax", "-o", "args"])
        .output()
        .expect("it works");
    String::from_utf8_lossy(&listed.stdout).contains(program)
}
