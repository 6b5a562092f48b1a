//! Two servers on one PostgreSQL, each on a machine of its own where work really runs: in a network and with mounts of its
//! own, joined to the others by one cable. Each dies, or is cut off, in turn: the work on its machine goes on, keeps its
//! claims, and is not taken for ended.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::support::SOON;
use crate::support::ground::Ground;
use crate::support::http::{Http, Who};
use crate::support::island::Island;
use crate::support::world::World;
use berth_model::RunId;
use berth_store::Engine;
use berth_testkit::server::{BerthServer, Launch};
use berth_testkit::wait;
use jiff::{SignedDuration, Timestamp};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde_json::{Value, json};

/// How long the work may run.
const LIMIT: SignedDuration = SignedDuration::from_mins(30);

#[expect(
    clippy::disallowed_methods,
    reason = "what runs here runs in real time"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

struct Pair {
    ground: Ground,
    islands: [Island; 2],
    servers: [BerthServer; 2],
    apis: [Http; 2],
    ada: Who,
}

/// A job that was submitted, and the process that keeps it.
#[derive(Debug)]
struct Job {
    id: String,
    /// Of which server's machine.
    on: usize,
    keeper: i32,
}

impl Pair {
    async fn start() -> Pair {
        let ground = Ground::new(Engine::Postgres).await;
        let world = World::build(&ground.url).await;
        let (root, ada) = (world.who("root"), world.who("ada"));
        let mut first = ground.serve().await;
        let http = Http::new(&first.url(""));
        let lab = json!({"name": "lab", "title": "Lab", "time_zone": "UTC"});
        http.make(&root, "/sites", &lab).await;
        let member = http.request(&root, "PUT", "/sites/lab/members/ada");
        http.send(member.json(&json!({"role": "site_admin"})))
            .await
            .expect(200);
        first.kill9().expect("it ends");
        let islands = [Island::new(), Island::new()];
        let serve = async |island: &Island| {
            let database = database_over(&ground.url, island).await;
            let address = island.address;
            let config = format!(
                "listen = \"{address}:{{port}}\"\ndata_dir = \"{{directory}}\"\ndatabase = \"{database}\"\n\
                 rate_limit_per_s = 0\nqueue_backend = \"local\"\nmachine_site = \"lab\"\ncull_every_s = 1\ncull_warning_s = 1\n"
            );
            let mut launch = Launch::new(env!("CARGO_BIN_EXE_berth"), config);
            (launch.inside, launch.address) = (island.inside(), address);
            launch.start().await.expect("it starts")
        };
        let servers = [serve(&islands[0]).await, serve(&islands[1]).await];
        let apis = [0, 1].map(|number: usize| Http::new(&servers[number].url("")));
        Pair {
            ground,
            islands,
            servers,
            apis,
            ada,
        }
    }

    fn ask(&self, query: &str) -> String {
        let database = self.ground.database.as_ref().expect("PostgreSQL");
        database
            .execute(query)
            .expect("an answer")
            .trim()
            .to_owned()
    }

    /// The first server that carried the queue on.
    async fn leader(&self) -> usize {
        let leads = |number: &usize| {
            let log = self.servers[*number].log();
            log.contains("runs the controller `queue`")
        };
        wait::some("a server that carries the queue on", SOON, async || {
            (0..2).find(leads)
        })
        .await
    }

    /// The only server that is there leads; the other one is back when it does.
    async fn lead(&mut self, server: usize) {
        self.servers[1 - server].kill9().expect("it ends");
        self.run_as(server, "opportunistic").await;
        let other = self.servers[1 - server].restart().await;
        other.expect("it starts");
    }

    /// Submits work that runs until somebody cancels it, and says where it runs.
    async fn run(&self, by: usize) -> Job {
        self.run_as(by, "guaranteed").await
    }

    async fn run_as(&self, by: usize, class: &str) -> Job {
        let task = json!({"cores_milli": 200, "memory_mib": 64});
        let body = json!({
            "title": "work",
            "class": class,
            "wishes": [{"task": task, "limit": LIMIT}],
            "program": {"command": ["sleep", "1800"]},
        });
        let made = self.apis[by]
            .make(&self.ada, "/sites/lab/workloads", &body)
            .await;
        let id = made["id"].as_str().expect("an id").to_owned();
        wait::some("the work to run", SOON, async || {
            let run = self.newest_run(&id)?;
            let folder = run.0.simple().to_string();
            let kept = |number: &usize| self.keeper(*number, &folder).is_some();
            let on = [0, 1].into_iter().find(kept)?;
            let keeper = self.keeper(on, &folder)?;
            (self.state(by, &id).await == "RUNNING").then_some(Job {
                id: id.clone(),
                on,
                keeper,
            })
        })
        .await
    }

    fn newest_run(&self, workload: &str) -> Option<RunId> {
        let workload: berth_model::WorkloadId = workload.parse().ok()?;
        let found = self.ask(&format!(
            "SELECT id FROM run WHERE workload = '{}'",
            workload.0
        ));
        Some(RunId(found.parse().ok()?))
    }

    /// The process that keeps a run on a server's machine.
    fn keeper(&self, server: usize, folder: &str) -> Option<i32> {
        let lock: PathBuf = self.servers[server]
            .directory()
            .join("work/runs")
            .join(folder)
            .join("keeper");
        std::fs::read_to_string(lock).ok()?.trim().parse().ok()
    }

    /// The deadline that a run's supervisor has.
    fn deadline(&self, job: &Job) -> Timestamp {
        let folder = self.newest_run(&job.id).expect("its run").0.simple();
        let runs = self.servers[job.on].directory().join("work/runs");
        let until = std::fs::read_to_string(runs.join(folder.to_string()).join("until"));
        until.expect("a record").parse().expect("a moment")
    }

    async fn ends(&self, job: &Job) {
        wait::until("its supervisor to go", SOON, async || {
            kill(Pid::from_raw(job.keeper), None).is_err()
        })
        .await;
    }

    /// A column of its run, as text.
    fn of_run(&self, job: &Job, column: &str) -> String {
        let run = self.newest_run(&job.id).expect("its run").0;
        self.ask(&format!("SELECT {column} FROM run WHERE id = '{run}'"))
    }

    async fn state(&self, by: usize, workload: &str) -> Value {
        let path = format!("/sites/lab/workloads/{workload}");
        self.apis[by].get(&self.ada, &path).await.expect(200).json()["state"].clone()
    }

    /// It runs, holds what it held, and was never started a second time.
    async fn goes_on(&self, by: usize, job: &Job) {
        assert_eq!(self.state(by, &job.id).await, "RUNNING");
        let workload: berth_model::WorkloadId = job.id.parse().expect("an id");
        let runs = format!("SELECT count(*) FROM run WHERE workload = '{}'", workload.0);
        assert_eq!(self.ask(&runs), "1");
        self.holds(job);
    }

    /// Its process is alive, and its claims are as long as its limit.
    fn holds(&self, job: &Job) {
        kill(Pid::from_raw(job.keeper), None).expect("its keeper is alive");
        let workload: berth_model::WorkloadId = job.id.parse().expect("an id");
        let held = format!(
            "SELECT count(*) FROM claim WHERE standing = 'holding' AND holder = '{}' AND ends - starts = {}",
            workload.0,
            LIMIT.as_micros()
        );
        assert_ne!(self.ask(&held), "0");
    }

    /// Waits until a server whose cable was out answers again.
    async fn answers(&self, server: usize) {
        wait::until("its answer", SOON, async || {
            self.apis[server].get(&self.ada, "/me").await.status == 200
        })
        .await;
    }

    async fn cancel(&self, by: usize, job: &Job) {
        let path = format!("/sites/lab/workloads/{}/cancel", job.id);
        self.apis[by]
            .post(&self.ada, &path, &json!({}))
            .await
            .expect(200);
        self.gone(by, job).await;
    }

    /// Waits until it is cancelled, and nothing of it is left.
    async fn gone(&self, by: usize, job: &Job) {
        wait::until("the work to be over", SOON, async || {
            self.state(by, &job.id).await == "CANCELLED"
        })
        .await;
        wait::until("its keeper to go", SOON, async || {
            kill(Pid::from_raw(job.keeper), None).is_err()
        })
        .await;
    }
}

/// The database as a server on an island reaches it: over its cable.
async fn database_over(url: &str, island: &Island) -> String {
    let (name, query) = url
        .strip_prefix("postgresql:///")
        .and_then(|rest| rest.split_once('?'))
        .expect("the URL of a database behind a socket");
    let parts: HashMap<&str, &str> = query
        .split('&')
        .filter_map(|part| part.split_once('='))
        .collect();
    let socket = format!("{}/.s.PGSQL.{}", parts["host"], parts["port"]);
    let port = island.forward(Path::new(&socket)).await;
    format!(
        "postgresql://{}@{}:{port}/{name}",
        parts["user"], island.shore
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_on_another_servers_machine_is_unreachable_and_never_ended() {
    let mut pair = Pair::start().await;
    let first = pair.leader().await;
    let second = 1 - first;
    let one = pair.run(second).await;
    assert_eq!(
        one.on, first,
        "the leader starts work on its own machine only"
    );

    // The leader dies. Before the other one starts work, it looks at all runs and cannot see the first.
    pair.servers[first].kill9().expect("it ends");
    let two = pair.run(second).await;
    assert_eq!(two.on, second);
    pair.goes_on(second, &one).await;

    // It is back and stands by; then the other one is cut off from everything, and comes back too late.
    pair.servers[first].restart().await.expect("it starts");
    pair.islands[second].set_reachable(false);
    let three = pair.run(first).await;
    assert_eq!(three.on, first);
    pair.islands[second].set_reachable(true);
    for job in [&one, &two, &three] {
        pair.goes_on(first, job).await;
    }

    // The other way round: the first is cut off, and the second dies.
    pair.islands[first].set_reachable(false);
    let four = pair.run(second).await;
    assert_eq!(four.on, second);
    pair.islands[first].set_reachable(true);
    pair.servers[second].kill9().expect("it ends");
    pair.answers(first).await;
    for job in [&one, &two, &three, &four] {
        pair.goes_on(first, job).await;
    }

    // Each ends where it runs, when its server leads again.
    pair.cancel(first, &one).await;
    pair.goes_on(first, &two).await;
    // Nobody can tell it to end yet, so it keeps what it holds while others come and go.
    let path = format!("/sites/lab/workloads/{}/cancel", two.id);
    let asked = pair.apis[first].post(&pair.ada, &path, &json!({})).await;
    asked.expect(200);
    pair.cancel(first, &three).await;
    pair.holds(&two);
    pair.servers[second].restart().await.expect("it starts");
    pair.servers[first].kill9().expect("it ends");
    pair.gone(second, &two).await;
    pair.cancel(second, &four).await;
}

/// The leader cannot reach the run's machine. The machine's own server passes on what is written, and nobody takes the run for
/// ended whose supervisor may not have heard of its new deadline.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_lead_stops_the_work_on_its_own_machine() {
    let mut pair = Pair::start().await;
    let second = 1 - pair.leader().await;
    let first = 1 - second;
    pair.lead(second).await;
    let jobs = [
        pair.run_as(second, "opportunistic").await,
        pair.run_as(second, "opportunistic").await,
        pair.run_as(second, "opportunistic").await,
        pair.run_as(second, "opportunistic").await,
    ];
    let [cancelled, cut, ended, yielding] = &jobs;
    assert!(jobs.iter().all(|job| job.on == second));
    pair.servers[second].kill9().expect("it ends");
    let other = pair.run(first).await;
    assert_eq!(other.on, first);
    pair.servers[second].restart().await.expect("it starts");

    // The request comes to the server that can reach the run, and the other one leads.
    let path = format!("/sites/lab/workloads/{}/cancel", cancelled.id);
    let asked = pair.apis[second].post(&pair.ada, &path, &json!({})).await;
    asked.expect(200);
    pair.ends(cancelled).await;

    // The cable is out. Somebody books the node, and the work that yields has to be gone by then.
    pair.islands[second].set_reachable(false);
    let before = pair.deadline(yielding);
    let node: Value = serde_json::from_str(&pair.of_run(yielding, "pieces")).expect("pieces");
    let in_minutes = |minutes: i64| now() + SignedDuration::from_mins(minutes);
    let booking = json!({
        "resources": [{"resource": node[0]["node"]}], "start": in_minutes(5), "end": in_minutes(6), "title": "a demonstration",
    });
    let booked = pair.apis[first]
        .post(&pair.ada, "/sites/lab/reservations", &booking)
        .await;
    assert!(booked.status < 300, "{}", booked.json());
    assert_eq!(pair.deadline(yielding), before);
    assert_ne!(
        pair.of_run(yielding, "until"),
        before.as_microsecond().to_string()
    );
    // A deadline that was cut long ago, and that the supervisor has not received, ends nothing.
    let run = pair.newest_run(&cut.id).expect("its run").0;
    let long_ago = in_minutes(-10).as_microsecond();
    pair.ask(&format!(
        "UPDATE run SET until = {long_ago} WHERE id = '{run}'"
    ));
    // A leader that begins reads all of them anew.
    pair.servers[first].kill9().expect("it ends");
    pair.servers[first].restart().await.expect("it starts");
    let round = pair.run(first).await;
    assert_eq!(round.on, first);
    assert_eq!(pair.of_run(cut, "ended_at"), "");
    kill(Pid::from_raw(cut.keeper), None).expect("it runs");
    // What is over in the database although it runs does not go on when its server is back.
    let run = pair.newest_run(&ended.id).expect("its run").0;
    pair.ask(&format!(
        "UPDATE run SET ended_at = {long_ago} WHERE id = '{run}'"
    ));
    pair.islands[second].set_reachable(true);
    pair.ends(cut).await;
    pair.ends(ended).await;
    wait::until("the deadline to be passed on", SOON, async || {
        pair.deadline(yielding) < before
    })
    .await;
    kill(Pid::from_raw(yielding.keeper), None).expect("it has until the booking");
    let received =
        async || pair.of_run(yielding, "supervisor_until") == pair.of_run(yielding, "until");
    wait::until("the answer to be written down", SOON, received).await;
}

/// An app that computes for as long as it answers.
const BUSY: &str = r#"
import http.server, socketserver, sys, threading

class Busy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"busy")
    def log_message(self, *_):
        pass

def compute():
    while True:
        pass

threading.Thread(target=compute, daemon=True).start()
socketserver.ThreadingUnixStreamServer(sys.argv[1], Busy).serve_forever()
"#;

/// Each server looks after the sessions of its own machine, whoever holds which lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_busy_session_on_another_servers_machine_goes_on() {
    let mut pair = Pair::start().await;
    let first = pair.leader().await;
    let second = 1 - first;
    let path = "/sites/lab/queue/settings";
    let before = pair.apis[first]
        .get(&pair.ada, path)
        .await
        .expect(200)
        .json();
    let mut settings = before["settings"].clone();
    settings["profiles"] = json!({"busy": {
        "title": "Busy",
        "wishes": [{"task": {"cores_milli": 100, "memory_mib": 96}, "limit": "PT20M"}],
        "session": {"app": "busy", "idle": "PT3S"},
    }});
    settings["apps"] = json!({"busy": {
        "title": "Busy", "command": ["python3", "-c", BUSY, "{socket}"], "serves": "socket",
    }});
    let put = pair.apis[first]
        .request(&pair.ada, "PUT", path)
        .header("if-match", "*");
    pair.apis[first].send(put.json(&settings)).await.expect(200);
    let ask = json!({"profile": "busy"});
    let made = pair.apis[first]
        .make(&pair.ada, "/sites/lab/sessions", &ask)
        .await;
    let path = format!(
        "/sites/lab/sessions/{}",
        made["id"].as_str().expect("an id")
    );
    let seen = async |by: usize| pair.apis[by].get(&pair.ada, &path).await.expect(200).json();
    wait::until("the session to be ready", SOON, async || {
        seen(first).await["state"] == "ready"
    })
    .await;

    // The other server takes all leases over, and judges what it sees for as long as idle sessions have.
    pair.islands[first].set_reachable(false);
    pair.run(second).await;
    let idle_since = now();
    wait::until("the session to be idle for long", SOON, async || {
        let shown = seen(second).await;
        assert_eq!(shown["state"], "ready", "{shown}");
        let said = shown["said"].as_str().unwrap_or_default().to_owned();
        assert!(said.contains("cannot be reached"), "{said}");
        idle_since.duration_until(now()) > SignedDuration::from_secs(12)
    })
    .await;
    let fences = || pair.ask("SELECT string_agg(name || fence, ' ' ORDER BY name) FROM lease");
    let before = fences();
    // It goes on when its own server is back, which does not lead and looks after it all the same.
    pair.islands[first].set_reachable(true);
    pair.answers(first).await;
    let shown = seen(first).await;
    assert_eq!(
        (&shown["state"], &shown["said"]),
        (&json!("ready"), &Value::Null)
    );
    let starts = shown["starts"].as_array().expect("starts");
    assert_eq!(starts.len(), 1, "{shown}");
    let next = pair.apis[first]
        .make(&pair.ada, "/sites/lab/sessions", &ask)
        .await;
    let next = format!(
        "/sites/lab/sessions/{}",
        next["id"].as_str().expect("an id")
    );
    wait::until(
        "another session on the leader's machine",
        SOON,
        async || {
            pair.apis[first]
                .get(&pair.ada, &next)
                .await
                .expect(200)
                .json()["state"]
                == "ready"
        },
    )
    .await;
    assert_eq!(fences(), before, "leases do not wander without a reason");
    pair.servers[second].kill9().expect("it ends");
    let stop = format!("{path}/stop");
    pair.apis[first]
        .post(&pair.ada, &stop, &json!({}))
        .await
        .expect(200);
    wait::until("the session to stop", SOON, async || {
        seen(first).await["state"] == "stopped"
    })
    .await;
}
