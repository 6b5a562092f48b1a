//! The first process in a sandbox: it starts the app, connects visitors to it and reaps orphans. When it ends,
//! everything in the sandbox ends. Without a sandbox, it kills the other processes itself.
//!
//! Its standard input is the channel to the supervisor. The app's output goes to its standard error. It has the run's
//! user and no more rights than the run, but the app cannot access its memory and descriptors.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::brood;
use super::control::{self, Channel, Fate, ToKeeper, ToSandbox};
use super::spec::{Listens, Spec};
use super::warm::bring::{self, Copy, Wanted};
use crate::backend::HUB_PORT;

/// Maximum length of a sentence about a failed start.
const SENTENCE_MAX: usize = 500;

/// Runs the spec that the supervisor hands over, and reports how the app ended.
pub async fn run() -> io::Result<()> {
    // A process that could trace this one could take over its channel to the supervisor.
    nix::sys::prctl::set_dumpable(false)?;
    let channel = io::stdin().as_fd().try_clone_to_owned()?;
    let spec = spec_from(&channel)?;
    let channel = Arc::new(Channel::new(channel)?);
    channel.send(&ToKeeper::Started, None).await?;
    if !spec.is_sandboxed {
        brood::take_in_orphans()?;
    }
    let fate = see_it_through(&spec, &channel).await;
    if !spec.is_sandboxed {
        brood::end_all().await;
    }
    channel.send(&ToKeeper::Ended(fate?), None).await
}

fn spec_from(channel: &OwnedFd) -> io::Result<Spec> {
    let first = control::receive::<ToSandbox>(channel)?;
    let spec = first.filter(|first| first.message == ToSandbox::Start);
    let spec = spec.and_then(|first| first.descriptor);
    let spec = spec.ok_or_else(|| io::Error::other("the keeper said nothing"))?;
    let mut text = Vec::new();
    File::from(spec).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Starts the app, and follows the supervisor's messages until the app ends.
async fn see_it_through(spec: &Spec, channel: &Arc<Channel>) -> io::Result<Fate> {
    let (asks, mut asking) = mpsc::channel(1);
    if spec.has_hub {
        let listener = TcpListener::bind(("127.0.0.1", HUB_PORT)).await?;
        tokio::spawn(let_out(listener, asks));
    }
    let mut ended = signal(SignalKind::child())?;
    let fork = match spec.warm {
        Some(_) => ask_for_fork(channel).await?,
        None => Forked::No,
    };
    let fork = match fork {
        Forked::By(fork) => Some(fork),
        Forked::No => None,
        Forked::Stopped => return Ok(Fate::Signalled(Signal::SIGTERM as i32)),
    };
    let (app, mut copy) = match start(spec, fork).await {
        Ok(started) => started,
        Err(error) => return Ok(Fate::CouldNotStart(could_not(spec, &error))),
    };
    let mut waiting: VecDeque<TcpStream> = VecDeque::new();
    loop {
        tokio::select! {
            _ = ended.recv() => {
                if let Some(fate) = take_in(app) {
                    return Ok(fate);
                }
            }
            fate = fate_of(&mut copy) => return Ok(fate),
            Some(asks) = asking.recv() => {
                channel.send(&ToKeeper::Hub, None).await?;
                waiting.push_back(asks);
            }
            heard = channel.receive::<ToSandbox>() => match heard {
                Ok(Some(heard)) => match heard.message {
                    ToSandbox::Stop => { killpg(app, Signal::SIGTERM).ok(); }
                    ToSandbox::Checkpoint => { killpg(app, Signal::SIGUSR1).ok(); }
                    ToSandbox::Visitor => { let_in(spec, heard.descriptor); }
                    ToSandbox::Hub => {
                        if let Some(asks) = waiting.pop_front() {
                            pass_on(asks, heard.descriptor);
                        }
                    }
                    ToSandbox::HubRefused => { waiting.pop_front(); }
                    ToSandbox::Go | ToSandbox::Start | ToSandbox::Fork | ToSandbox::NoFork => {}
                },
                // The supervisor is gone.
                Ok(None) | Err(_) => return Ok(Fate::Signalled(Signal::SIGKILL as i32)),
            }
        }
    }
}

/// The end of an app that is a fork, and so not a child of this process. It never returns for any other app.
async fn fate_of(copy: &mut Option<Copy>) -> Fate {
    match copy {
        Some(copy) => copy.fate().await,
        None => std::future::pending().await,
    }
}

/// Opens a connection that arrived as a descriptor.
fn handed(descriptor: Option<OwnedFd>) -> io::Result<UnixStream> {
    let descriptor = descriptor.ok_or_else(|| io::Error::other("nothing was handed over"))?;
    let stream = std::os::unix::net::UnixStream::from(descriptor);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Connects a visitor to the app.
fn let_in(spec: &Spec, visitor: Option<OwnedFd>) {
    let (Ok(mut visitor), Some(listens)) = (handed(visitor), spec.listens.clone()) else {
        return;
    };
    let socket = spec.places.own.join("app.sock");
    tokio::spawn(async move {
        match listens {
            Listens::Port(port) => {
                if let Ok(mut app) = TcpStream::connect(("127.0.0.1", port)).await {
                    app.set_nodelay(true).ok();
                    copy_bidirectional(&mut visitor, &mut app).await.ok();
                }
            }
            Listens::Socket => {
                if let Ok(mut app) = UnixStream::connect(socket).await {
                    copy_bidirectional(&mut visitor, &mut app).await.ok();
                }
            }
        }
    });
}

/// Accepts connections to the JupyterHub, one after the other.
async fn let_out(listener: TcpListener, asks: mpsc::Sender<TcpStream>) {
    while let Ok((asking, _)) = listener.accept().await {
        if asks.send(asking).await.is_err() {
            return;
        }
    }
}

fn pass_on(mut asking: TcpStream, hub: Option<OwnedFd>) {
    if let Ok(mut hub) = handed(hub) {
        tokio::spawn(async move { copy_bidirectional(&mut asking, &mut hub).await });
    }
}

enum Forked {
    By(UnixStream),
    No,
    /// The supervisor ended the run before the app began.
    Stopped,
}

/// Asks for a connection to a fork of the fork server.
async fn ask_for_fork(channel: &Channel) -> io::Result<Forked> {
    channel.send(&ToKeeper::Fork, None).await?;
    while let Some(answer) = channel.receive::<ToSandbox>().await? {
        match answer.message {
            ToSandbox::Fork => return Ok(Forked::By(handed(answer.descriptor)?)),
            ToSandbox::NoFork => return Ok(Forked::No),
            ToSandbox::Stop => return Ok(Forked::Stopped),
            // There is no app yet, so the visitor's connection closes, and the visitor comes again.
            _ => {}
        }
    }
    Ok(Forked::Stopped)
}

/// Starts the app: as a fork if the supervisor provided one, else as an ordinary program.
async fn start(spec: &Spec, fork: Option<UnixStream>) -> io::Result<(Pid, Option<Copy>)> {
    let home = spec.places.home.clone();
    let folder = match &spec.folder {
        None => home.clone(),
        Some(folder) if folder.is_dir() => folder.clone(),
        // The folder from which somebody submitted the job is usually on another machine.
        Some(folder) => {
            let folder = folder.display();
            writeln!(io::stderr(), "{folder} is not there; it begins in its home")?;
            home.clone()
        }
    };
    let mut words = spec.command.clone();
    if let Some(script) = &spec.script {
        let path = spec.places.temporary.join("berth-script");
        fs::write(&path, script)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        words.insert(0, path.display().to_string());
    }
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "there is nothing to run",
        ));
    };
    let said = io::stderr().as_fd().try_clone_to_owned()?;
    let output = open(&home, spec.output.as_ref())?;
    let errors = open(&home, spec.errors.as_ref().or(spec.output.as_ref()))?;
    let output = output.map_or_else(|| said.try_clone(), |file| Ok(file.into()))?;
    let errors = errors.map_or(said, OwnedFd::from);
    if let Some(fork) = fork {
        let wanted = Wanted {
            command: &words,
            environment: &spec.environment,
            folder: &folder,
        };
        let speaks = [output.as_fd(), errors.as_fd()];
        if let Some(copy) = bring::ask(fork, &wanted, speaks).await {
            return Ok((Pid::from_raw(copy.process), Some(copy)));
        }
    }
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(&spec.environment)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0);
    let child = command.spawn()?;
    Ok((Pid::from_raw(child.id() as i32), None))
}

fn open(home: &Path, path: Option<&PathBuf>) -> io::Result<Option<File>> {
    let open = |path: &PathBuf| {
        let path = home.join(path);
        File::options().append(true).create(true).open(path)
    };
    path.map(open).transpose()
}

/// Reaps every process that has ended, also those that the app started.
fn take_in(app: Pid) -> Option<Fate> {
    let mut fate = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(who, code)) if who == app => fate = Some(Fate::Exited(code)),
            Ok(WaitStatus::Signaled(who, signal, _)) if who == app => {
                fate = Some(Fate::Signalled(signal as i32));
            }
            Ok(WaitStatus::StillAlive) | Err(_) => return fate,
            Ok(_) => {}
        }
    }
}

fn could_not(spec: &Spec, error: &io::Error) -> String {
    let program = spec.command.first().map_or("its script", String::as_str);
    let said = match error.kind() {
        io::ErrorKind::NotFound => {
            format!("`{program}` is not there: neither on this machine nor in its environment")
        }
        io::ErrorKind::PermissionDenied => format!("`{program}` may not be run"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "there is no room left on the disk".to_owned()
        }
        _ => format!("`{program}` could not be started: {error}"),
    };
    said.chars().take(SENTENCE_MAX).collect()
}
