//! Sessions that really run: web servers as processes of this machine, in their sandboxes, started and stopped by the
//! program as people type it.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::desk::Desk;

const CONFIG: &str = "listen = \"127.0.0.1:{port}\"\ndata_dir = \"{directory}\"\nqueue_backend = \"local\"\nrate_limit_per_s = 0\nrate_limit_burst = 0\n";

const QUEUE: &str = r#"
roles: { node: node, cpu: cores, memory: memory }
grace: PT5S
profiles:
  files:
    title: A folder of files
    wishes: [{ task: { cores_milli: 100, memory_mib: 64 }, limit: PT1H }]
    session: { app: files }
  greedy:
    title: One that takes all the memory it can get
    wishes: [{ task: { cores_milli: 100, memory_mib: 64 }, limit: PT1H }]
    session: { app: greedy }
  broken:
    title: One whose program is missing
    wishes: [{ task: { cores_milli: 100, memory_mib: 64 }, limit: PT1H }]
    session: { app: broken }
  curves:
    title: One whose environment nobody has made
    wishes: [{ task: { cores_milli: 100, memory_mib: 64 }, limit: PT1H }]
    session: { app: tensorboard }
apps:
  files:
    title: Files
    command: [python3, -m, http.server, --bind, 127.0.0.1, "8000"]
    serves: { port: 8000 }
  greedy:
    title: Greedy
    command: [python3, -c, "x = [bytearray(1 << 20) for _ in range(4096)]"]
    serves: socket
  broken:
    title: Broken
    command: [no-such-program]
    serves: socket
"#;

async fn lab() -> Desk {
    Desk::with_admin_of(CONFIG).await.with_site(QUEUE)
}

fn show(desk: &Desk, session: &str) -> Value {
    let line = format!("session show {session} -o json");
    desk.run(&line).succeeds().json()
}

/// Looks until a session is in a state. Nothing here takes minutes, but machines are busy.
#[track_caller]
fn until(desk: &Desk, session: &str, state: &str) -> Value {
    let begun = Instant::now();
    loop {
        let found = show(desk, session);
        if found["state"] == state {
            return found;
        }
        let patience = Duration::from_secs(240);
        assert!(begun.elapsed() < patience, "waited for {state}: {found:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_started_stopped_started_again_and_removed() {
    let desk = lab().await;
    let started = desk.run("session start files").succeeds();
    assert!(
        started.stdout.contains("files is ready: http://"),
        "{started:?}"
    );
    let first = show(&desk, "files");
    assert_eq!(first["node"]["name"], "here");
    let log = desk.run("session log files").succeeds();
    assert!(log.stdout.contains("GET / HTTP/1.1"), "{log:?}");
    desk.run("session remove files").fails();
    desk.run("session stop files").succeeds();
    until(&desk, "files", "stopped");
    desk.run("session start files").succeeds();
    let second = until(&desk, "files", "ready");
    assert_eq!(second["url"], first["url"], "it has the same address");
    assert_eq!(second["starts"].as_array().map(Vec::len), Some(2));
    desk.run("session stop files").succeeds();
    until(&desk, "files", "stopped");
    desk.run("session remove files").succeeds();
    desk.run("session show files").ends_with(4);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_is_said_in_a_sentence() {
    let desk = lab().await;
    desk.run("session start broken --no-wait").succeeds();
    desk.run("session start greedy --no-wait").succeeds();
    let broken = until(&desk, "broken", "failed");
    let said = broken["said"].as_str().unwrap_or_default();
    assert!(said.contains("no-such-program"), "{said}");
    assert_eq!(broken["starts"].as_array().map(Vec::len), Some(5));
    assert_eq!(broken["is_given_up"], true);
    let greedy = until(&desk, "greedy", "failed");
    let said = greedy["said"].as_str().unwrap_or_default();
    assert!(said.contains("memory"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_app_needs_is_named_to_whoever_starts_it() {
    let desk = lab().await;
    let refused = desk.run("session start curves");
    refused.fails();
    assert!(
        refused.stderr.contains("berth env prepare tensorboard"),
        "{refused:?}"
    );
    desk.run("session show curves").ends_with(4);

    // As on a machine that has none of a desktop's programs.
    let known = berth_model::session::catalogue();
    let desktop = &known[&"desktop".parse().expect("a name")];
    let (program, arguments) = desktop.command.split_first().expect("a command");
    let mut started = std::process::Command::new(program);
    let ended = started.args(arguments).env("PATH", "/nowhere").output();
    let ended = ended.expect("there is a shell");
    assert_eq!(ended.status.code(), Some(127));
    let said = String::from_utf8_lossy(&ended.stderr);
    for package in ["tigervnc-standalone-server", "websockify", "icewm", "xterm"] {
        assert!(said.contains(package), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_finds_its_sessions_again() {
    let mut desk = lab().await;
    for name in ["one", "two", "three"] {
        let line = format!("session start files --name {name}");
        desk.run(&line).succeeds();
    }
    desk.run("session start files --name four --no-wait")
        .succeeds();
    desk.server_mut().kill9().expect("it runs");
    desk.server_mut().restart().await.expect("it starts again");
    for name in ["one", "two", "three", "four"] {
        let found = until(&desk, name, "ready");
        let starts = found["starts"].as_array().expect("its starts");
        assert_eq!(starts.len(), 1, "{found:#}");
    }
    // What ended while nobody looked is settled.
    desk.server_mut().kill9().expect("it runs");
    let keepers = keepers_below(desk.server().directory());
    assert_eq!(keepers.len(), 4);
    for keeper in keepers {
        nix::sys::signal::kill(keeper, nix::sys::signal::Signal::SIGKILL).expect("ours");
    }
    desk.server_mut().restart().await.expect("it starts again");
    for name in ["one", "two", "three", "four"] {
        let found = until(&desk, name, "failed");
        assert!(found["said"].is_string(), "{found:#}");
    }
}

/// The processes that stand by what runs below a folder: their command line names the run's own.
fn keepers_below(folder: &std::path::Path) -> Vec<nix::unistd::Pid> {
    let folder = folder.display().to_string();
    let processes = std::fs::read_dir("/proc").expect("it is there");
    let is_keeper = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("keeper\0run") && line.contains(&folder)
    };
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    processes
        .filter_map(Result::ok)
        .filter(is_keeper)
        .filter_map(number)
        .map(nix::unistd::Pid::from_raw)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_sessions_are_asked_for_at_once() {
    let desk = lab().await;
    let names: Vec<String> = (0..64).map(|number| format!("s{number}")).collect();
    for name in &names {
        let line = format!("session start files --name {name} --no-wait");
        desk.run(&line).succeeds();
    }
    let mut addresses = std::collections::BTreeSet::new();
    for name in &names {
        let found = until(&desk, name, "ready");
        assert_eq!(found["starts"].as_array().map(Vec::len), Some(1));
        addresses.insert(found["url"].as_str().expect("an address").to_owned());
    }
    assert_eq!(addresses.len(), 64);
    for name in &names {
        desk.run(&format!("session stop {name}")).succeeds();
    }
    for name in &names {
        until(&desk, name, "stopped");
    }
}
