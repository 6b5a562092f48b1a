//! A real Berth that runs notebooks on this machine, in their sandboxes, and somebody who starts and stops them.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use berth_store::Engine;
use berth_testkit::server::BerthServer;
use berth_testkit::wait;
use serde_json::{Value, json};

use super::door::{Door, get};
use super::load::Visitor;
use super::{cpu, installed};
use crate::lab::{Lab, binary};

const SITE: &str = "lab";
/// Machines are busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whether notebooks are copies of one that has read its code and waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starts {
    Cold,
    Warm,
}

/// It may use as much of the machine as a notebook that is started by hand.
const PROFILE: &str = "notebook";

const QUEUE: &str = r"
roles: { node: node, cpu: cores, memory: memory }
grace: PT5S
profiles:
  notebook:
    title: A notebook
    wishes: [{ task: { cores_milli: 1000, cores_milli_limit: 64000, memory_mib: 1024, memory_mib_limit: 4096 }, limit: PT1H }]
    session: { app: jupyterlab }
";

#[derive(Debug)]
pub struct Berth {
    lab: Lab,
    server: BerthServer,
    home: tempfile::TempDir,
}

/// A session that was started.
#[derive(Debug)]
pub struct Session {
    id: String,
    /// What is in the address bar.
    pub host: String,
}

impl Berth {
    pub async fn start(starts: Starts) -> Result<Self> {
        let lab = Lab::build(Engine::Sqlite, 0).await?;
        let prepared = installed::environments();
        let warm = match starts {
            Starts::Cold => 0,
            Starts::Warm => 1,
        };
        let more = format!(
            "queue_backend = \"local\"\nrate_limit_burst = 0\nwarm_servers = {warm}\n\
             prepared_environments = \"{}\"\n",
            prepared.display()
        );
        let server = lab.serve_with(&more).await?;
        let home = tempfile::tempdir()?;
        let berth = Self { lab, server, home };
        std::fs::write(berth.home.path().join("queue.yaml"), QUEUE)?;
        for line in [
            "type create node --title Node",
            "type create cpu --title Cores",
            "type create memory --title Memory",
            "resource add here --type node",
            "resource add here.cpu --type cpu --in here --capacity 64:cores",
            "resource add here.memory --type memory --in here --capacity 64:gib",
            "queue set queue.yaml",
        ] {
            berth.types(line)?;
        }
        wait::until("the environment to be taken in", PATIENCE, async || {
            let listed = berth.types("env list -o json").unwrap_or_default();
            let listed: Value = serde_json::from_str(&listed).unwrap_or_default();
            let items = listed["items"].as_array().cloned().unwrap_or_default();
            items
                .iter()
                .any(|item| item["name"] == "jupyterlab" && item["state"] == "ready")
        })
        .await;
        Ok(berth)
    }

    /// What a person would type after `berth`; gives what it says.
    fn types(&self, line: &str) -> Result<String> {
        let done = Command::new(binary()?)
            .args(line.split_whitespace())
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env("BERTH_SERVER", self.server.url(""))
            .env("BERTH_TOKEN", &self.lab.token)
            .env("BERTH_SITE", SITE)
            .output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "berth {line}: {said}");
        Ok(String::from_utf8(done.stdout)?)
    }

    pub fn door(&self) -> Door {
        Door::Tcp(self.server.port())
    }

    /// Presses the button, and knocks at the session's address until its app answers its owner.
    pub async fn click(&self) -> Result<(Session, Duration)> {
        let started = Instant::now();
        let session = self.begin().await?;
        let who = format!("Authorization: Bearer {}\r\n", self.lab.token);
        let request = get(&session.host, "/api/status", &who);
        let usable = self.door().until_usable(&request).await;
        let took = started.elapsed();
        if let Err(error) = usable {
            let log = self.types(&format!("session log {}", session.id));
            return Err(error.context(format!("{}\n{}", log?, self.server.log_tail())));
        }
        Ok((session, took))
    }

    /// The request that the page's button sends.
    async fn begin(&self) -> Result<Session> {
        let body = json!({ "profile": PROFILE });
        let made = self.asks("POST", "", &body).await?;
        let (id, url) = (made["id"].as_str(), made["url"].as_str());
        let host = url.and_then(|url| url.split('/').nth(2));
        Ok(Session {
            id: id.context("a session without an id")?.to_owned(),
            host: host.context("a session without an address")?.to_owned(),
        })
    }

    /// Stops it, waits until nothing of it runs, and takes it off the list.
    pub async fn end(&self, session: Session) -> Result<()> {
        let path = format!("/{}", session.id);
        self.asks("POST", &format!("{path}/stop"), &json!({}))
            .await?;
        wait::until("the session to be stopped", PATIENCE, async || {
            let now = self.asks("GET", &path, &Value::Null).await;
            now.is_ok_and(|now| now["state"] == "stopped")
        })
        .await;
        self.asks("DELETE", &path, &Value::Null).await?;
        Ok(())
    }

    /// Stops the server in order, and with it what waits to be copied.
    pub async fn stop(mut self) -> Result<()> {
        self.server.stop().await?;
        Ok(())
    }

    /// Comes in as a browser does, by a code that is good once, and keeps the key.
    pub async fn visitor(&self, session: &Session) -> Result<Visitor> {
        let path = format!("/{}/visits", session.id);
        let way = self.asks("POST", &path, &json!({})).await?;
        let way = way["url"].as_str().context("no way in")?;
        let path = way.splitn(4, '/').nth(3).context("no path in it")?;
        let request = get(&session.host, &format!("/{path}"), "");
        let answer = self.door().ask(&request).await?;
        let key = answer.split("berth_visit=").nth(1);
        let key = key.and_then(|rest| rest.split(';').next());
        Ok(Visitor {
            host: session.host.clone(),
            visit: key.context("no key was given")?.to_owned(),
        })
    }

    /// The files of the one session that runs: of all there were, the last that began.
    fn newest_run(&self) -> Result<PathBuf> {
        let runs = std::fs::read_dir(self.server.directory().join("work/runs"))?;
        let runs = runs.filter_map(|run| Some(run.ok()?.path()));
        // They are called by their ids, which grow with time.
        runs.max().context("nothing has run")
    }

    /// The socket that the session's app listens on.
    pub fn socket(&self) -> Result<PathBuf> {
        Ok(self.newest_run()?.join("io/app.sock"))
    }

    /// Whether the session is a copy of one that waited.
    pub fn is_warm(&self) -> Result<bool> {
        let spec = std::fs::read(self.newest_run()?.join("io/spec.json"))?;
        let spec: Value = serde_json::from_slice(&spec)?;
        Ok(!spec["warm"].is_null())
    }

    /// The process that stands by the one session that runs.
    fn keeper(&self) -> Result<u32> {
        let folder = self.server.directory().display().to_string();
        cpu::find(&["keeper run", &folder])
    }

    pub fn server_cpu_us(&self) -> Result<f64> {
        cpu::used_us(self.server.id().context("the server runs")?)
    }

    /// What the one session that runs has used, with all that belongs to it.
    pub fn session_cpu_us(&self) -> Result<f64> {
        cpu::used_by_all_below_us(self.keeper()?)
    }

    /// Asks the API for something about sessions.
    async fn asks(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let request = format!(
            "{method} /api/v1/sites/{SITE}/sessions{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.lab.token,
            body.len(),
        );
        let answer = self.door().ask(&request).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("half an answer")?;
        ensure!(head.starts_with("HTTP/1.1 2"), "{method} {path}: {answer}");
        Ok(serde_json::from_str(body).unwrap_or_default())
    }
}

/// What runs outlives its server, but it must not outlive whoever measures it, however that ends.
impl Drop for Berth {
    fn drop(&mut self) {
        self.server.kill9().ok();
        while let Ok(keeper) = self.keeper() {
            let killed = Command::new("kill")
                .args(["-9", &keeper.to_string()])
                .status();
            if !killed.is_ok_and(|status| status.success()) {
                return;
            }
        }
    }
}
