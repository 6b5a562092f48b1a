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
use jiff::SignedDuration;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde_json::{Value, json};

/// How long the work may run.
const LIMIT: SignedDuration = SignedDuration::from_mins(30);

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
        let islands = [Island::new(0), Island::new(1)];
        let serve = async |island: &Island| {
            let database = database_over(&ground.url, island).await;
            let address = island.address;
            let config = format!(
                "listen = \"{address}:{{port}}\"\ndata_dir = \"{{directory}}\"\ndatabase = \"{database}\"\n\
                 rate_limit_per_s = 0\nqueue_backend = \"local\"\nmachine_site = \"lab\"\n"
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

    /// Submits work that runs until somebody cancels it, and says where it runs.
    async fn run(&self, by: usize) -> Job {
        let task = json!({"cores_milli": 200, "memory_mib": 64});
        let body = json!({
            "title": "work",
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
