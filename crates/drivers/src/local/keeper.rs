//! The process that stands by a run from its start to its end, and outlives the server that started it.
//!
//! It holds the run's lock, starts the sandbox and its network, writes the log, ends the run when its time is over
//! though no server is there to say so, and writes down how it ended. Killed itself, it takes the run with it.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::cgroup::{Group, Groups};
use super::enter::{GO, READY};
use super::folder::{End, Folder, How};
use super::sandbox;
use super::spec::Spec;
use super::warm::bring::Bringing;
use super::{brood, hub};

/// One letter each, from the keeper into the sandbox.
#[derive(Debug, Clone, Copy)]
pub struct Order;

impl Order {
    pub const STOP: u8 = b's';
    pub const CHECKPOINT: u8 = b'c';
}

/// What became of the app, as the first process in its sandbox saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    Exited(i32),
    Signalled(i32),
    CouldNotStart(String),
}

/// What a log may grow to before its older half goes.
const LOG_BYTES: u64 = 8 << 20;
/// How long the sandbox and its network may take to come.
const PREPARING: Duration = Duration::from_secs(60);

/// Keeps a run until it is over. `program` is this very program, which goes on inside as another.
pub async fn keep(folder: &Folder, program: &Path) -> io::Result<()> {
    // Whatever ends the server's terminal is not meant for what it started.
    nix::unistd::setsid().ok();
    let ears = Ears::open()?;
    let Some(_kept) = folder.keep()? else {
        return Ok(());
    };
    if folder.end()?.is_some() {
        return Ok(());
    }
    let spec = folder.spec()?;
    let group = Groups::find().map(|groups| groups.group(&spec.run.0.simple().to_string()));
    if folder.has_begun() {
        return lost(folder, &spec, group.as_ref()).await;
    }
    if !spec.is_sandboxed {
        brood::take_in_orphans()?;
    }
    folder.begin()?;
    let end = match begin(folder, &spec, program, group.as_ref()).await {
        Ok(run) => {
            let end = run.see_it_through(folder, group.as_ref(), ears).await?;
            tell_of_full_disk(end, &spec.home)
        }
        Err(error) => End {
            at: now(),
            how: How::CouldNotStart,
            said: error.to_string(),
        },
    };
    if !spec.is_sandboxed {
        brood::end_all().await;
    }
    clean_up(group.as_ref()).await;
    folder.set_end(&end)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a run has to end in time though no server is there to say what time it is"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

/// Its keeper was killed: nothing of it may be left.
async fn lost(folder: &Folder, spec: &Spec, group: Option<&Group>) -> io::Result<()> {
    if !spec.is_sandboxed {
        brood::end_those_of(spec.run).await;
    }
    clean_up(group).await;
    folder.set_end(&End {
        at: now(),
        how: How::Lost,
        said: "the process that watched over it was killed, and so it was ended".to_owned(),
    })
}

async fn clean_up(group: Option<&Group>) {
    let Some(group) = group else { return };
    // What is being killed takes a moment to go.
    for _ in 0..200 {
        if group.remove() {
            return;
        }
        group.kill();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What the server says to it: open before anything runs, so that nothing said is lost.
struct Ears {
    end: Signal,
    save: Signal,
}

impl Ears {
    fn open() -> io::Result<Ears> {
        Ok(Ears {
            end: signal(SignalKind::terminate())?,
            save: signal(SignalKind::user_defined1())?,
        })
    }
}

struct Running {
    sandbox: Child,
    orders: ChildStdin,
    fate: oneshot::Receiver<Fate>,
    /// Ends when this is dropped.
    _network: Option<Child>,
}

async fn begin(
    folder: &Folder,
    spec: &Spec,
    program: &Path,
    group: Option<&Group>,
) -> io::Result<Running> {
    if spec.is_sandboxed {
        for (name, text) in sandbox::settings(spec) {
            // They are made anew for every run, and so need not be on the disk when the machine stops.
            std::fs::write(folder.io().join(name), text)?;
        }
    } else {
        let mut private = std::fs::DirBuilder::new();
        private.mode(0o700).recursive(true);
        private.create(folder.io().join("tmp"))?;
    }
    if spec.has_hub {
        hub::open(folder, spec.run)?;
    }
    let bringing = match (&spec.warm, spec.user) {
        (Some(warm), Some(user)) => Some(Bringing::open(folder, warm.clone(), user)?),
        _ => None,
    };
    if let Some(user) = spec.user {
        let own = |path: PathBuf| std::os::unix::fs::chown(path, Some(user), Some(user));
        own(folder.io())?;
        for file in std::fs::read_dir(folder.io())? {
            own(file?.path())?;
        }
    }
    let mut command = Command::new(program);
    command
        .args(["keeper", "enter"])
        .arg(folder.path())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut sandbox = command.spawn()?;
    let process = sandbox.id().unwrap_or_default();
    if let Some(group) = group {
        group.make(&spec.limits)?;
        group.enter(process)?;
    }
    let gone = || io::Error::other("the sandbox has no pipes");
    let (Some(mut orders), Some(signs), Some(said)) = (
        sandbox.stdin.take(),
        sandbox.stdout.take(),
        sandbox.stderr.take(),
    ) else {
        return Err(gone());
    };
    tokio::spawn(write_log(said, folder.log()));
    let mut signs = BufReader::new(signs);
    let mut ready = vec![0; READY.len()];
    let heard = tokio::time::timeout(PREPARING, signs.read_exact(&mut ready)).await;
    if !matches!(heard, Ok(Ok(_))) {
        sandbox.kill().await.ok();
        let tail = folder.log_tail(400).unwrap_or_default();
        return Err(io::Error::other(format!(
            "its sandbox could not be made: {}",
            tail.trim()
        )));
    }
    let network = match spec.is_sandboxed && spec.network.is_open {
        true => Some(bring_network(process).await?),
        false => None,
    };
    if let Some(bringing) = bringing {
        tokio::spawn(bringing.bring(group.cloned()));
    }
    orders.write_all(&[GO]).await?;
    orders.flush().await?;
    let (tell, fate) = oneshot::channel();
    tokio::spawn(async move {
        let mut line = String::new();
        if signs.read_line(&mut line).await.is_ok()
            && let Ok(fate) = serde_json::from_str(&line)
        {
            tell.send(fate).ok();
        }
    });
    Ok(Running {
        sandbox,
        orders,
        fate,
        _network: network,
    })
}

/// A network in user space: its packets leave the machine as this process's own connections do, and find no way to
/// the machine's own addresses.
async fn bring_network(process: u32) -> io::Result<Child> {
    let mut command = Command::new("slirp4netns");
    command
        .args(["--configure", "--mtu=65520", "--disable-host-loopback"])
        .args(["--enable-sandbox", "--enable-seccomp"])
        .args(["--exit-fd=0", "--ready-fd=1"])
        .args([&process.to_string(), "tap0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut network = command
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("slirp4netns: {error}")))?;
    let mut ready = [0];
    let heard = match network.stdout.as_mut() {
        Some(stdout) => tokio::time::timeout(PREPARING, stdout.read_exact(&mut ready)).await,
        None => return Err(io::Error::other("slirp4netns has no output")),
    };
    match heard {
        Ok(Ok(_)) => Ok(network),
        _ => Err(io::Error::other(
            "its network did not come: slirp4netns does not work on this machine",
        )),
    }
}

impl Running {
    async fn see_it_through(
        mut self,
        folder: &Folder,
        group: Option<&Group>,
        mut ears: Ears,
    ) -> io::Result<End> {
        let mut is_told = folder.is_told_to_end();
        if is_told {
            self.order(Order::STOP).await;
        }
        // When what writes down how far it has come is told to end.
        let mut ends_at: Option<Timestamp> = None;
        let status = loop {
            let until = folder.until()?;
            let next = ends_at
                .filter(|_| !is_told)
                .map_or(until, |at| at.min(until));
            let left = now().duration_until(next);
            let left = Duration::try_from(left.max(SignedDuration::ZERO)).unwrap_or_default();
            // Clocks are set anew, and the end may be moved: it is looked at again.
            let wait = left.min(Duration::from_secs(60));
            tokio::select! {
                status = self.sandbox.wait() => break status?,
                _ = ears.end.recv() => {
                    is_told = true;
                    self.order(Order::STOP).await;
                }
                _ = ears.save.recv() => {
                    self.order(Order::CHECKPOINT).await;
                    ends_at = Some(last_moment(now(), folder.until()?));
                }
                () = tokio::time::sleep(wait) => {
                    if !is_told && ends_at.is_some_and(|at| at <= now()) {
                        is_told = true;
                        self.order(Order::STOP).await;
                    }
                    if folder.until()? <= now() {
                        is_told = true;
                        self.sandbox.start_kill()?;
                        if let Some(group) = group {
                            group.kill();
                        }
                        break self.sandbox.wait().await?;
                    }
                }
            }
        };
        let fate = self.fate.await.ok();
        let out_of_memory = group.map_or(0, |group| group.used().out_of_memory);
        let (how, said) = judge(
            fate,
            status,
            is_told || ends_at.is_some(),
            out_of_memory > 0,
        );
        Ok(End {
            at: now(),
            how,
            said,
        })
    }

    async fn order(&mut self, order: u8) {
        self.orders.write_all(&[order]).await.ok();
        self.orders.flush().await.ok();
    }
}

/// How long something that had time to save its work then has to end; half of what is left, where that is less.
const TO_END: SignedDuration = SignedDuration::from_secs(30);

fn last_moment(now: Timestamp, until: Timestamp) -> Timestamp {
    let left = now.duration_until(until).max(SignedDuration::ZERO);
    until.checked_sub(TO_END.min(left / 2)).unwrap_or(now)
}

/// What it comes to, in a word for the machine and a sentence for its owner.
fn judge(
    fate: Option<Fate>,
    status: std::process::ExitStatus,
    is_told: bool,
    ran_out_of_memory: bool,
) -> (How, String) {
    match fate {
        Some(Fate::CouldNotStart(why)) => (How::CouldNotStart, why),
        // However it took that: what was sent away has not come to the end of its work.
        _ if is_told => (How::Stopped, "it was told to end".to_owned()),
        Some(Fate::Exited(0)) => (How::Exited(0), "it ended by itself".to_owned()),
        Some(Fate::Signalled(9)) | None if ran_out_of_memory => (
            How::OutOfMemory,
            "it wanted more memory than its limit; ask for more, or use less at a time".to_owned(),
        ),
        Some(Fate::Exited(code)) => {
            let memory = if ran_out_of_memory {
                ", after a part of it was ended for wanting more memory than its limit"
            } else {
                ""
            };
            let said = format!("it ended with exit code {code}{memory}; its log says more");
            (How::Exited(code), said)
        }
        Some(Fate::Signalled(signal)) => (
            How::Signalled(signal),
            format!("it was ended by signal {signal}"),
        ),
        None => {
            let code = status.code().unwrap_or(-1);
            let said = format!("its sandbox did not start (exit code {code}); its log says why");
            (How::CouldNotStart, said)
        }
    }
}

/// What failed on a full disk most likely failed because of it, whatever it said itself.
fn tell_of_full_disk(end: End, home: &Path) -> End {
    let has_failed = match end.how {
        How::Exited(code) => code != 0,
        How::Signalled(_) | How::CouldNotStart => true,
        How::OutOfMemory | How::Stopped | How::Lost => false,
    };
    if !has_failed || !is_full(home) {
        return end;
    }
    let said = format!(
        "{}; the disk with its home is full: remove something there, then start it again",
        end.said
    );
    End { said, ..end }
}

fn is_full(home: &Path) -> bool {
    let Ok(disk) = nix::sys::statvfs::statvfs(home) else {
        return false;
    };
    let bytes = disk.blocks_available().saturating_mul(disk.fragment_size());
    bytes < 1 << 20 || (disk.files() > 0 && disk.files_available() == 0)
}

/// Two files, the older thrown away when the newer is full: whoever says too much fills no disk.
async fn write_log(mut said: impl AsyncRead + Unpin, path: PathBuf) -> io::Result<()> {
    let mut options = tokio::fs::OpenOptions::new();
    options.create(true).append(true).mode(0o600);
    let mut file = options.open(&path).await?;
    let mut written = 0;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = said.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        if written > LOG_BYTES / 2 {
            tokio::fs::rename(&path, path.with_extension("old")).await?;
            file = options.open(&path).await?;
            written = 0;
        }
        // A full disk must not stop the app: what cannot be written is not.
        if file.write_all(&buffer[..count]).await.is_ok() {
            file.flush().await.ok();
            written += count as u64;
        }
    }
}
