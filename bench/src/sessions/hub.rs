//! JupyterHub from its own package, with the simplest of its spawners and its own proxy.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use berth_testkit::port;
use berth_testkit::process::{self, Signal, Tethered, User};

use super::door::{Door, get};
use super::installed;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const PERSON: &str = "bench";
const STOP: Duration = Duration::from_secs(30);

/// Nobody is asked for a password, and servers are processes of this machine, without a sandbox. What the server is told
/// beside that is what Berth tells it, too.
const CONFIG: &str = r#"
import sys
c = get_config()
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.command = ["{chp}"]
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.spawner_class = "simple"
c.JupyterHub.db_url = "sqlite:///hub.sqlite"
c.JupyterHub.services = [{"name": "bench", "api_token": "{token}"}]
c.JupyterHub.load_roles = [
    {"name": "bench", "services": ["bench"], "scopes": ["admin:users", "admin:servers", "access:servers"]},
]
c.SimpleLocalProcessSpawner.home_dir_template = "{folder}/homes/{username}"
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.args = [
    "--allow-root",
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
]
"#;

#[derive(Debug)]
pub struct Hub {
    process: Tethered,
    door: Door,
    _folder: tempfile::TempDir,
}

impl Hub {
    pub async fn start(python: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let own = folder.path().display().to_string();
        let port = port::free();
        let config = CONFIG
            .replace("{port}", &port.to_string())
            .replace("{hub}", &port::free().to_string())
            .replace("{api}", &port::free().to_string())
            .replace("{chp}", &installed::chp()?.display().to_string())
            .replace("{token}", TOKEN)
            .replace("{folder}", &own);
        std::fs::write(folder.path().join("config.py"), config)?;
        let log = std::fs::File::create(folder.path().join("log"))?;
        // Told to end, it ends its proxy and its servers; killed, it would leave them behind.
        let mut command = process::command(python, User::Same, Signal::Term);
        command
            .args(["-m", "jupyterhub", "-f", "config.py"])
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let hub = Self {
            process: process::spawn(command)?,
            door: Door::Tcp(port),
            _folder: folder,
        };
        hub.door
            .until_usable(&get("localhost", "/hub/api/", ""))
            .await?;
        hub.asks("POST", "").await?;
        Ok(hub)
    }

    /// Starts the server, and knocks until it answers. The hub answers when its server does (or after ten seconds, that it
    /// will); to knock meanwhile would only keep it from its work.
    pub async fn click(&self) -> Result<Duration> {
        let started = Instant::now();
        self.asks("POST", "/server").await?;
        let path = format!("/user/{PERSON}/api/status");
        let request = get("localhost", &path, &authorization());
        self.door.until_usable(&request).await?;
        Ok(started.elapsed())
    }

    /// Stops the server; the hub answers when that is done.
    pub async fn end(&self) -> Result<()> {
        let answer = self.asks("DELETE", "/server").await?;
        ensure!(answer.starts_with("HTTP/1.1 204"), "{answer}");
        Ok(())
    }

    async fn asks(&self, method: &str, path: &str) -> Result<String> {
        let request = format!(
            "{method} /hub/api/users/{PERSON}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             {}Content-Length: 0\r\n\r\n",
            authorization()
        );
        let answer = self.door.ask(&request).await.context("the hub")?;
        ensure!(
            answer.starts_with("HTTP/1.1 2"),
            "{method} {path}: {answer}"
        );
        Ok(answer)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.process.stop(Signal::Term, STOP).ok();
    }
}

fn authorization() -> String {
    format!("Authorization: token {TOKEN}\r\n")
}
