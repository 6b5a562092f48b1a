//! A whole PostgreSQL cluster in a temporary directory. A test can stop, crash and restart it.
//!
//! Nothing stays behind. The postmaster is tethered to this process and shuts down at once when the process is gone. A
//! small shell, the janitor, waits at the end of a pipe and then removes the directory. The pipe closes when this value
//! is dropped, and also when the process is killed.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::Address;
use crate::process::{self, Signal, Tethered, User};
use crate::tool;

const START_PATIENCE: Duration = Duration::from_secs(60);
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// As durable as a real server (the defaults, made explicit), reachable only through its socket, and with room for many
/// tests at a time.
const SETTINGS: &[&str] = &[
    "listen_addresses=",
    "port=5432",
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "max_connections=400",
    "shared_buffers=128MB",
    "log_min_messages=warning",
    "timezone=UTC",
];

/// Waits for the end of its input and of the postmaster, then removes the directory. Signals from the keyboard reach
/// the whole process group; the janitor ignores them, because it must clean up.
const JANITOR: &str = r#"
trap '' HUP INT QUIT TERM
cat >/dev/null
looks=0
while [ -e "$2/postmaster.pid" ] && [ "$looks" -lt 100 ]; do
    sleep 0.1
    looks=$((looks + 1))
done
rm -rf "$1"
"#;

/// A PostgreSQL cluster. Dropping it stops the server and removes its data.
#[derive(Debug)]
pub struct Server {
    /// The directory of its socket and its log, and usually of its data.
    directory: PathBuf,
    data: PathBuf,
    postmaster: Option<Tethered>,
    janitor: Child,
}

impl Server {
    /// Makes a new cluster and starts it.
    pub fn start() -> Result<Self> {
        // The cluster is new, so a crash of the machine during `initdb` loses nothing.
        Self::start_in(None, &["--no-sync"])
    }

    /// Makes a new cluster with its data on a separate disk, perhaps a lossy one, and starts it. Its other files, above
    /// all its socket, are elsewhere.
    pub fn start_on(disk: &Path) -> Result<Self> {
        Self::start_in(Some(disk), &[])
    }

    fn start_in(disk: Option<&Path>, initdb_options: &[&str]) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("berth-postgres-")
            .tempdir()?
            .keep();
        let data = disk.unwrap_or(&directory).join("data");
        let janitor = Command::new("sh")
            .args(["-c", JANITOR, "janitor"])
            .args([&directory, &data])
            .stdin(Stdio::piped())
            .spawn()
            .context("could not start a shell")?;
        let mut server = Self {
            directory,
            data,
            postmaster: None,
            janitor,
        };
        server.initialise(disk, initdb_options)?;
        server.resume()?;
        Ok(server)
    }

    /// The address of the admin database.
    pub fn address(&self) -> Address {
        Address::in_directory(&self.directory)
    }

    /// Restarts the server on its data, after `stop` or `crash`.
    pub fn resume(&mut self) -> Result<()> {
        ensure!(
            self.postmaster.is_none(),
            "this PostgreSQL is already running"
        );
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())?;
        let mut command = process::command(tool::find("postgres")?, user(), Signal::Quit);
        command.arg("-D").arg(&self.data);
        command.arg("-c").arg(format!(
            "unix_socket_directories={}",
            self.directory.display()
        ));
        command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        command.current_dir(&self.directory);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut postmaster = process::spawn(command)?;

        let deadline = Instant::now() + START_PATIENCE;
        while self.address().execute("SELECT 1").is_err() {
            if let Some(status) = postmaster.ended()? {
                bail!(
                    "postgres ended at once ({status}); it said:\n{}",
                    self.log()
                );
            }
            ensure!(
                Instant::now() < deadline,
                "postgres took no connection within {START_PATIENCE:?}; it said:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        self.postmaster = Some(postmaster);
        Ok(())
    }

    /// An orderly stop that waits for no client ("fast" shutdown).
    pub fn stop(&mut self) -> Result<()> {
        let mut postmaster = self
            .postmaster
            .take()
            .context("this PostgreSQL is not running")?;
        postmaster.stop(Signal::Int, STOP_PATIENCE)?;
        Ok(())
    }

    /// Crashes the server, which must recover at the next `resume`. This is an "immediate" shutdown: it kills every
    /// backend at once and writes no checkpoint.
    pub fn crash(&mut self) -> Result<()> {
        let mut postmaster = self
            .postmaster
            .take()
            .context("this PostgreSQL is not running")?;
        postmaster.stop(Signal::Quit, STOP_PATIENCE)?;
        Ok(())
    }

    /// The server's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn initialise(&self, disk: Option<&Path>, options: &[&str]) -> Result<()> {
        if let User::Named(name) = user() {
            let (user_id, group_id) = ids_of(name)?;
            for directory in disk.into_iter().chain([self.directory.as_path()]) {
                chown(directory, Some(user_id), Some(group_id))?;
            }
        }
        let mut command = process::command(tool::find("initdb")?, user(), Signal::Kill);
        command.arg("-D").arg(&self.data);
        command.args(["--username=postgres", "--auth=trust", "--encoding=UTF8"]);
        command.arg("--locale=C").args(options);
        command.current_dir(&self.directory);
        let output = command.output().context("could not run initdb")?;
        ensure!(
            output.status.success(),
            "initdb failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(())
    }

    fn log_path(&self) -> PathBuf {
        self.directory.join("log")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut postmaster) = self.postmaster.take() {
            postmaster.stop(Signal::Quit, STOP_PATIENCE).ok();
        }
        // Closing the pipe starts the janitor's work.
        drop(self.janitor.stdin.take());
        self.janitor.wait().ok();
    }
}

/// The user for PostgreSQL, which refuses to run as root. CI machines run tests as root.
fn user() -> User {
    if rustix::process::geteuid().is_root() {
        User::Named("postgres")
    } else {
        User::Same
    }
}

fn ids_of(user: &str) -> Result<(u32, u32)> {
    let passwd =
        fs::read_to_string(Path::new("/etc/passwd")).context("could not read /etc/passwd")?;
    passwd
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields[0] == user)
        .and_then(|fields| Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?)))
        .with_context(|| format!("there is no user `{user}` here: run `scripts/setup test`"))
}
