//! The supervisor of a run: it accompanies the run from start to end, and outlives the server that started it.
//!
//! It holds the run's lock, starts the sandbox and its network, writes the log, and records how the run ended. It ends
//! the run at its deadline even if no server is running. If the supervisor is killed, the run dies with it.

use std::io;
use std::io::{Seek, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustix::fs::MemfdFlags;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::attempts::Attempts;
use super::cgroup::{Group, Groups};
use super::control::{self, Channel, Fate, ToKeeper, ToSandbox};
use super::folder::{End, Folder, How};
use super::hub::Hub;
use super::record_key::RunRecordKey;
use super::relay::Relay;
use super::spec::Spec;
use super::warm::bring::Bringing;
use super::{brood, network, shelf};
use crate::backend::AttemptKind;

/// Maximum size of a log; beyond it, the older half is dropped.
const LOG_BYTES: u64 = 8 << 20;
/// Timeout for creating the sandbox and its network.
const PREPARING: Duration = Duration::from_secs(60);
/// How long the start is retried on a machine that cannot make a sandbox yet: it may have just started, or be too busy.
const NOT_READY_MAX: Duration = Duration::from_secs(120);
/// The pause before the first retry; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// How long to wait for the last output of a process that has ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Supervises a run until it has ended. `program` is this program, which continues in the sandbox in another role.
pub async fn keep(folder: &Folder, program: &Path) -> io::Result<()> {
    // A signal that ends the server's terminal must not reach the processes that the server started.
    nix::unistd::setsid().ok();
    let record_key = RunRecordKey::read(io::stdin());
    let ears = Ears::open()?;
    let Some(_kept) = folder.keep()? else {
        return Ok(());
    };
    if folder.end()?.is_some() {
        return Ok(());
    }
    let run = folder.run();
    let run = run.ok_or_else(|| io::Error::other("the folder is not named after a run"))?;
    let group = Groups::find().map(|groups| groups.group(&run.0.simple().to_string()));
    if folder.is_of_an_older_version() {
        brood::end_those_of(run).await;
        return lost(folder, group.as_ref(), OLDER_VERSION).await;
    }
    let mut spec = folder.spec()?;
    if folder.has_begun() {
        if !spec.is_sandboxed {
            brood::end_those_of(run).await;
        }
        return lost(folder, group.as_ref(), KEEPER_KILLED).await;
    }
    // The server that asked it to end may already have reported that nothing of it runs.
    if folder.is_told_to_end() {
        return finish(folder, &stopped()).await;
    }
    if !spec.is_sandboxed {
        brood::take_in_orphans()?;
    }
    folder.begin()?;
    let (end, log) = match folder.take_environment(record_key.as_ref()) {
        Ok(environment) => {
            spec.environment = environment;
            let start = Start {
                folder,
                spec: &spec,
                program,
                group: group.as_ref(),
            };
            start.until_the_end(ears).await?
        }
        Err(error) => (could_not_start(error.to_string()), None),
    };
    let end = tell_of_full_disk(end, &spec.home);
    if !spec.is_sandboxed {
        brood::end_all().await;
    }
    clean_up(group.as_ref()).await;
    if let Some(log) = log {
        // No process is left that could write more, but its last output may still be on its way to the disk.
        tokio::time::timeout(LAST_WORDS, log).await.ok();
    }
    finish(folder, &end).await
}

/// Records how the run ended, and removes the run's own folder.
async fn finish(folder: &Folder, end: &End) -> io::Result<()> {
    folder.set_end(end)?;
    shelf::remove(&folder.io()).await.ok();
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a run has to end in time though no server is there to say what time it is"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

const TOLD_TO_END: &str = "it was told to end";
const KEEPER_KILLED: &str = "the process that watched over it was killed, and so it was ended";
const OLDER_VERSION: &str = "Berth was upgraded, and this version does not adopt work that the one before started; it was ended: start it again";

/// Ends a run that has lost its supervisor: nothing of it may be left.
async fn lost(folder: &Folder, group: Option<&Group>, said: &str) -> io::Result<()> {
    clean_up(group).await;
    let end = End {
        at: now(),
        how: How::Lost,
        said: said.to_owned(),
    };
    finish(folder, &end).await
}

async fn clean_up(group: Option<&Group>) {
    let Some(group) = group else { return };
    // A killed process takes a moment to disappear.
    for _ in 0..200 {
        if group.remove() {
            return;
        }
        group.kill();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Signals from the server. They are opened before anything runs, so that none is lost.
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

/// Everything that a run is started from.
#[derive(Clone, Copy)]
struct Start<'a> {
    folder: &'a Folder,
    spec: &'a Spec,
    /// This program, which continues in the sandbox in another role.
    program: &'a Path,
    group: Option<&'a Group>,
}

impl Start<'_> {
    /// Runs it. A sandbox that cannot be made yet is retried; an app that began is never started twice.
    async fn until_the_end(self, mut ears: Ears) -> io::Result<(End, Option<JoinHandle<()>>)> {
        let give_up_at = Instant::now() + NOT_READY_MAX;
        let mut pause = FIRST_PAUSE;
        loop {
            let why = match begin(self).await {
                Ok(running) => match running.see_it_through(self, &mut ears).await? {
                    Course::Ended(end, log) => return Ok((end, Some(log))),
                    Course::NoSandbox(why) => why,
                },
                Err(error) => error.to_string(),
            };
            clean_up(self.group).await;
            if !self.spec.is_sandboxed || Instant::now() >= give_up_at {
                return Ok((could_not_start(why), None));
            }
            let seconds = pause.as_secs();
            let line = format!("[berth: {why}; the start is tried again in {seconds} s]\n");
            append_to_log(self.folder, &line).await.ok();
            let until = self.folder.until()?;
            let left = Duration::try_from(now().duration_until(until)).unwrap_or_default();
            let is_over = tokio::select! {
                _ = ears.end.recv() => true,
                () = tokio::time::sleep(pause.min(left)) => self.folder.until()? <= now(),
            };
            if is_over || self.folder.is_told_to_end() {
                return Ok((stopped(), None));
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn stopped() -> End {
    End {
        at: now(),
        how: How::Stopped,
        said: TOLD_TO_END.to_owned(),
    }
}

fn could_not_start(said: String) -> End {
    End {
        at: now(),
        how: How::CouldNotStart,
        said,
    }
}

/// The result of a start.
enum Course {
    /// The task may still be writing the log.
    Ended(End, JoinHandle<()>),
    /// The sandbox ended before the app began.
    NoSandbox(String),
}

struct Running {
    sandbox: Child,
    channel: Arc<Channel>,
    fate: oneshot::Receiver<Fate>,
    /// Whether the sandbox was made and its first process began.
    has_started: Arc<AtomicBool>,
    attempts: Arc<Attempts>,
    log: JoinHandle<()>,
    /// Both end when this value is dropped.
    _network: Option<Child>,
    _relay: JoinSet<()>,
}

async fn begin(start: Start<'_>) -> io::Result<Running> {
    let Start {
        folder,
        spec,
        program,
        group,
    } = start;
    if !spec.is_sandboxed {
        make_open_folder(folder, spec.user)?;
    }
    let relay = spec.listens.as_ref().map(|_| Relay::open(folder));
    let relay = relay.transpose()?;
    let (channel, theirs) = control::pair()?;
    let channel = Arc::new(Channel::new(channel)?);
    let mut sandbox = Command::new(program)
        .args(["keeper", "enter"])
        .arg(folder.path())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let process = sandbox.id().unwrap_or_default();
    if let Some(group) = group {
        group.make(&spec.limits)?;
        group.enter(process)?;
    }
    let Some(said) = sandbox.stderr.take() else {
        return Err(io::Error::other("the sandbox has no pipes"));
    };
    let log = tokio::spawn(write_log(said, folder.log(), folder.older_log()));
    let first = tokio::time::timeout(PREPARING, channel.receive::<ToKeeper>()).await;
    let is_ready = matches!(&first, Ok(Ok(Some(first))) if first.message == ToKeeper::Ready);
    if !is_ready {
        sandbox.kill().await.ok();
        // Its last output is on its way.
        tokio::time::timeout(LAST_WORDS, log).await.ok();
        let tail = folder.log_tail(400).unwrap_or_default();
        return Err(io::Error::other(format!(
            "its sandbox could not be made: {}",
            tail.trim()
        )));
    }
    let network = match spec.is_sandboxed && spec.network.is_open {
        true => Some(network::bring(program, process, spec.user, PREPARING).await?),
        false => None,
    };
    channel.send(&ToSandbox::Go, None).await?;
    let settings = spec_in_memory(spec)?;
    channel
        .send(&ToSandbox::Start, Some(settings.as_fd()))
        .await?;
    let attempts = Arc::new(Attempts::of(spec.run, folder.work()?));
    let mut visits = JoinSet::new();
    if let Some(relay) = relay {
        visits.spawn(relay.let_in(channel.clone(), attempts.clone()));
    }
    let has_started = Arc::new(AtomicBool::new(false));
    let bringing = spec.warm.clone().zip(spec.user);
    let sandbox_talks = Conversation {
        channel: channel.clone(),
        has_started: has_started.clone(),
        attempts: attempts.clone(),
        hub: Hub::new(folder, spec.run)?,
        has_hub: spec.has_hub,
        warm: bringing.map(|(warm, user)| Bringing::new(warm, user)),
        group: group.cloned(),
    };
    let (tell, fate) = oneshot::channel();
    tokio::spawn(async move {
        if let Some(fate) = sandbox_talks.until_the_end().await {
            tell.send(fate).ok();
        }
    });
    Ok(Running {
        sandbox,
        channel,
        fate,
        has_started,
        attempts,
        log,
        _network: network,
        _relay: visits,
    })
}

/// Makes the folder for the run's socket and temporary files on a machine without a sandbox.
fn make_open_folder(folder: &Folder, user: Option<u32>) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, chown};
    let own = folder.io();
    for path in [own.clone(), own.join("tmp")] {
        std::fs::DirBuilder::new().mode(0o700).create(path)?;
    }
    // The inner folder comes first: once the outer folder is the user's, its contents cannot be trusted.
    match user {
        Some(_) => {
            chown(own.join("tmp"), user, user)?;
            chown(own, user, user)
        }
        None => Ok(()),
    }
}

/// Puts the spec into memory for the first process of the sandbox, which reads it once. There is no file on a disk that
/// something could replace.
fn spec_in_memory(spec: &Spec) -> io::Result<std::fs::File> {
    let memory = rustix::fs::memfd_create("berth-spec", MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(memory);
    file.write_all(&serde_json::to_vec(spec)?)?;
    file.rewind()?;
    Ok(file)
}

/// Answers the requests of the sandbox's first process while the run continues.
struct Conversation {
    channel: Arc<Channel>,
    has_started: Arc<AtomicBool>,
    attempts: Arc<Attempts>,
    hub: Hub,
    has_hub: bool,
    warm: Option<Bringing>,
    group: Option<Group>,
}

/// Maximum number of messages per second; further ones wait for the next second.
const MESSAGES_A_SECOND: u32 = 200;

impl Conversation {
    /// Returns how the app ended. It returns `None` if the sandbox ended without a message, or sent one that Berth's
    /// own program never sends. In the second case the supervisor stops listening.
    async fn until_the_end(mut self) -> Option<Fate> {
        let mut second = Instant::now();
        let mut heard = 0;
        loop {
            if second.elapsed() >= Duration::from_secs(1) {
                (second, heard) = (Instant::now(), 0);
            }
            heard += 1;
            if heard > MESSAGES_A_SECOND {
                tokio::time::sleep_until(second + Duration::from_secs(1)).await;
            }
            let received = match self.channel.receive::<ToKeeper>().await {
                Ok(Some(received)) => received,
                Ok(None) => return None,
                Err(_) => {
                    self.attempts.note(AttemptKind::StrangeMessage);
                    return None;
                }
            };
            let answered = match (received.message, received.sender) {
                (ToKeeper::Ended(fate), _) => return Some(fate),
                (ToKeeper::Started, _) => {
                    self.has_started.store(true, Ordering::SeqCst);
                    Ok(())
                }
                (ToKeeper::Hub, _) if self.has_hub => self.hub.connect(&self.channel).await,
                (ToKeeper::Fork, Some(inside)) => self.fork(inside).await,
                _ => {
                    self.attempts.note(AttemptKind::StrangeMessage);
                    return None;
                }
            };
            if answered.is_err() {
                return None;
            }
        }
    }

    /// Only the first request is answered with a fork.
    async fn fork(&mut self, inside: i32) -> io::Result<()> {
        let brought = match self.warm.take() {
            Some(warm) => warm.bring(inside, self.group.as_ref()).await.ok(),
            None => None,
        };
        match brought {
            Some(copy) => {
                self.channel
                    .send(&ToSandbox::Fork, Some(copy.as_fd()))
                    .await
            }
            None => self.channel.send(&ToSandbox::NoFork, None).await,
        }
    }
}

impl Running {
    async fn see_it_through(mut self, start: Start<'_>, ears: &mut Ears) -> io::Result<Course> {
        let Start { folder, group, .. } = start;
        let mut is_told = folder.is_told_to_end();
        if is_told {
            self.order(ToSandbox::Stop).await;
        }
        // When to stop a run that is saving a checkpoint.
        let mut ends_at: Option<Timestamp> = None;
        let status = loop {
            let until = folder.until()?;
            let next = ends_at
                .filter(|_| !is_told)
                .map_or(until, |at| at.min(until));
            let left = now().duration_until(next);
            let left = Duration::try_from(left.max(SignedDuration::ZERO)).unwrap_or_default();
            // The clock may be set and the deadline moved, so both are read again.
            let wait = left.min(Duration::from_secs(60));
            tokio::select! {
                status = self.sandbox.wait() => break status?,
                _ = ears.end.recv() => {
                    is_told = true;
                    self.order(ToSandbox::Stop).await;
                }
                _ = ears.save.recv() => {
                    self.order(ToSandbox::Checkpoint).await;
                    ends_at = Some(last_moment(now(), folder.until()?));
                }
                () = tokio::time::sleep(wait) => {
                    if !is_told && ends_at.is_some_and(|at| at <= now()) {
                        is_told = true;
                        self.order(ToSandbox::Stop).await;
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
        let fate = tokio::time::timeout(LAST_WORDS, self.fate).await;
        let fate = fate.ok().and_then(Result::ok);
        self.attempts.settle().ok();
        let out_of_memory = group.and_then(Group::used);
        let out_of_memory = out_of_memory.map_or(0, |used| used.out_of_memory);
        let is_told = is_told || ends_at.is_some();
        let has_started = self.has_started.load(Ordering::SeqCst);
        if fate.is_none() && !has_started && !is_told && out_of_memory == 0 {
            let code = status.code().unwrap_or(-1);
            return Ok(Course::NoSandbox(format!(
                "its sandbox did not start (exit code {code}); its log says why"
            )));
        }
        let (how, said) = judge(fate, is_told, out_of_memory > 0);
        let end = End {
            at: now(),
            how,
            said,
        };
        Ok(Course::Ended(end, self.log))
    }

    async fn order(&self, order: ToSandbox) {
        // A sandbox that does not listen is killed at its deadline.
        let sent = self.channel.send(&order, None);
        tokio::time::timeout(LAST_WORDS, sent).await.ok();
    }
}

/// Time to end after a checkpoint; half of the time that is left, if that is less.
const TO_END: SignedDuration = SignedDuration::from_secs(30);

fn last_moment(now: Timestamp, until: Timestamp) -> Timestamp {
    let left = now.duration_until(until).max(SignedDuration::ZERO);
    until.checked_sub(TO_END.min(left / 2)).unwrap_or(now)
}

/// The result, as a value for the machine and a sentence for its owner.
fn judge(fate: Option<Fate>, is_told: bool, ran_out_of_memory: bool) -> (How, String) {
    match fate {
        Some(Fate::CouldNotStart(why)) => (How::CouldNotStart, why),
        // However it ended: a run that was stopped has not completed its work.
        _ if is_told => (How::Stopped, TOLD_TO_END.to_owned()),
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
        None => (
            How::Signalled(9),
            "the first process of its sandbox was killed, and so it was ended".to_owned(),
        ),
    }
}

/// Reports a full disk as the likely cause of a failure, whichever cause the run itself reported.
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

/// Writes two files and drops the older one when the newer is full, so that a run cannot fill a disk. A full disk must
/// not stop the app: lost bytes are counted, and the log says so once there is room again.
async fn write_log(mut said: impl AsyncRead + Unpin, path: PathBuf, older: PathBuf) {
    let mut options = tokio::fs::OpenOptions::new();
    options.create(true).append(true).mode(0o600);
    let mut file = options.open(&path).await.ok();
    let mut written = 0;
    let mut lost: u64 = 0;
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = said.read(&mut buffer).await {
        if written > LOG_BYTES / 2 && tokio::fs::rename(&path, &older).await.is_ok() {
            file = None;
            written = 0;
        }
        if file.is_none() {
            file = options.open(&path).await.ok();
        }
        let Some(open) = &mut file else {
            lost += count as u64;
            continue;
        };
        if lost > 0 {
            let gap = format!("\n[berth: {lost} bytes are missing here: the disk was full]\n");
            if append(open, gap.as_bytes()).await.is_ok() {
                lost = 0;
            }
        }
        match append(open, &buffer[..count]).await {
            Ok(()) => written += count as u64,
            Err(_) => lost += count as u64,
        }
    }
}

/// Writes a line of the supervisor itself into the log, between two tries to start.
async fn append_to_log(folder: &Folder, line: &str) -> io::Result<()> {
    let mut options = tokio::fs::OpenOptions::new();
    options.create(true).append(true).mode(0o600);
    let mut file = options.open(folder.log()).await?;
    append(&mut file, line.as_bytes()).await
}

async fn append(file: &mut tokio::fs::File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes).await?;
    file.flush().await
}
