//! The real `berth serve`, as a process that a test can kill.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{env, io};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::port;
use crate::process::{self, Signal, Tethered, User};

const READY_PATIENCE: Duration = Duration::from_secs(60);
const STOP_PATIENCE: Duration = Duration::from_secs(30);
const TAIL_LINES: usize = 60;

/// How to start a server, and how to know that it is ready.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program: `env!("CARGO_BIN_EXE_berth")` in the tests of the `berth` crate.
    pub binary: PathBuf,
    /// The text of the config file. `{port}` stands for the server's port on loopback. `{directory}` stands for the
    /// server's own directory, which outlives restarts.
    pub config: String,
    /// Words in front of the program, such as a command that starts it in a network of its own.
    pub inside: Vec<String>,
    /// The address on which the server listens, as seen from the test.
    pub address: Ipv4Addr,
    /// Further arguments after `serve --config FILE`.
    pub arguments: Vec<String>,
    /// Environment variables in addition to the inherited ones. Every inherited `BERTH_…` is removed, because a
    /// developer's own setting must not affect the tests.
    pub environment: Vec<(String, String)>,
    pub ready: Ready,
}

/// How to see that a server is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    /// This path answers 200 over plain HTTP.
    Path(String),
    /// The port accepts connections: for a server that speaks TLS.
    Listening,
}

impl Launch {
    pub fn new(binary: impl Into<PathBuf>, config: impl Into<String>) -> Self {
        Self {
            binary: binary.into(),
            config: config.into(),
            inside: Vec::new(),
            address: Ipv4Addr::LOCALHOST,
            arguments: Vec::new(),
            environment: Vec::new(),
            ready: Ready::Path("/readyz".to_owned()),
        }
    }

    /// Starts the server and waits until it is ready.
    pub async fn start(self) -> Result<BerthServer> {
        BerthServer::start(self).await
    }
}

/// A server that is running, killed or stopped; a running one is killed on drop. If the test is failing at that moment,
/// the end of the server's log goes to stderr.
#[derive(Debug)]
pub struct BerthServer {
    launch: Launch,
    directory: TempDir,
    port: u16,
    process: Option<Tethered>,
}

impl BerthServer {
    async fn start(launch: Launch) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("berth-server-").tempdir()?;
        let mut server = Self {
            launch,
            directory,
            port: port::free(),
            process: None,
        };
        server.launch_process().await?;
        Ok(server)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's own directory, `{directory}` in its config.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The config file it was started with.
    pub fn config_path(&self) -> PathBuf {
        self.directory().join("berth.toml")
    }

    /// `http://127.0.0.1:PORT` followed by the path, or the same with the address from [`Launch`].
    pub fn url(&self, path: &str) -> String {
        format!("http://{}:{}{path}", self.launch.address, self.port)
    }

    /// The process id of the server, while it is running.
    pub fn id(&self) -> Option<u32> {
        self.process.as_ref().map(Tethered::id)
    }

    /// Whether the server's process exists, ready or still starting.
    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// `kill -9`. Returns once the process is gone and its port is free.
    pub fn kill9(&mut self) -> Result<()> {
        self.running()?.kill9()?;
        self.process = None;
        Ok(())
    }

    /// Shuts the server down in an orderly way (SIGTERM), and returns its exit status.
    pub async fn stop(&mut self) -> Result<ExitStatus> {
        let mut process = self.process.take().context("the server is not running")?;
        let stopped =
            tokio::task::spawn_blocking(move || process.stop(Signal::Term, STOP_PATIENCE)).await?;
        stopped.with_context(|| format!("the server's last words:\n{}", self.log_tail()))
    }

    /// Restarts the server with the same config, directory and port. A running server is shut down first.
    pub async fn restart(&mut self) -> Result<()> {
        if self.process.is_some() {
            self.stop().await?;
        }
        self.launch_process().await
    }

    /// Everything that the server has written to stdout and stderr, over all restarts.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The end of the log.
    pub fn log_tail(&self) -> String {
        last_lines(&self.log(), TAIL_LINES).to_owned()
    }

    fn running(&mut self) -> Result<&mut Tethered> {
        self.process.as_mut().context("the server is not running")
    }

    fn log_path(&self) -> PathBuf {
        self.directory().join("log")
    }

    async fn launch_process(&mut self) -> Result<()> {
        let config = self
            .launch
            .config
            .replace("{port}", &self.port.to_string())
            .replace("{directory}", &self.directory().display().to_string());
        fs::write(self.config_path(), config)?;

        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())?;
        let binary = self.launch.binary.clone().into_os_string();
        let inside = self.launch.inside.iter().map(OsString::from);
        let mut words = inside.chain([binary]);
        let program = words.next().unwrap_or_default();
        let mut command = process::command(program, User::Same, Signal::Kill);
        command
            .args(words)
            .args(["serve", "--config"])
            .arg(self.config_path())
            .args(&self.launch.arguments);
        for (name, _) in env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"BERTH_") {
                command.env_remove(name);
            }
        }
        command.envs(
            self.launch
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        );
        command.current_dir(self.directory());
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        self.process = Some(process::spawn(command)?);
        self.wait_until_ready().await
    }

    async fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_PATIENCE;
        loop {
            // One timeout for each poll as well: a server that accepts and never answers is not ready.
            let look = tokio::time::timeout(Duration::from_secs(5), self.is_ready());
            if matches!(look.await, Ok(Ok(true))) {
                return Ok(());
            }
            if let Some(status) = self.running()?.ended()? {
                self.process = None;
                bail!(
                    "the server ended before it was ready ({status}):\n{}",
                    self.log_tail()
                );
            }
            ensure!(
                Instant::now() < deadline,
                "the server was not ready within {READY_PATIENCE:?}:\n{}",
                self.log_tail()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn is_ready(&self) -> io::Result<bool> {
        let mut stream = TcpStream::connect((self.launch.address, self.port)).await?;
        let Ready::Path(path) = &self.launch.ready else {
            return Ok(true);
        };
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}:{}\r\nconnection: close\r\n\r\n",
            self.launch.address, self.port
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(64 * 1024).read_to_end(&mut answer).await?;
        Ok(answer.split(|byte| *byte == b' ').nth(1) == Some(b"200"))
    }
}

impl Drop for BerthServer {
    fn drop(&mut self) {
        self.process = None;
        if std::thread::panicking() {
            eprintln!(
                "--- the end of berth's log (port {}):\n{}",
                self.port,
                self.log_tail()
            );
        }
    }
}

fn last_lines(text: &str, count: usize) -> &str {
    let start = text.trim_end().rmatch_indices('\n').nth(count - 1);
    start.map_or(text, |(newline, _)| &text[newline + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_last_lines() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last_lines("a\nb", 5), "a\nb");
        assert_eq!(last_lines("", 5), "");
    }
}
