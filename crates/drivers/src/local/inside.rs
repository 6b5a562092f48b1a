//! The first process in a sandbox: it starts the app, lets visitors in, takes in what others leave behind, and when it
//! ends, so does everything. Without a sandbox it sees to that itself.
//!
//! It hears from the keeper on its standard input, and says there what became of the app on its standard output. What
//! the app says goes to its standard error.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, copy_bidirectional};
use tokio::net::unix::pipe;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};

use super::keeper::{Fate, Order};
use super::spec::{Listens, Spec};
use super::warm::bring::{self, Copy, Wanted};
use super::{brood, hub};
use crate::backend::HUB_PORT;

/// Runs what the folder of its own says.
pub async fn run(own: &Path) -> io::Result<Fate> {
    let spec: Spec = serde_json::from_slice(&fs::read(own.join("spec.json"))?)?;
    if spec.is_sandboxed {
        return see_it_through(&spec).await;
    }
    brood::take_in_orphans()?;
    let fate = see_it_through(&spec).await;
    brood::end_all().await;
    fate
}

async fn see_it_through(spec: &Spec) -> io::Result<Fate> {
    if let Some(Listens::Port(port)) = spec.listens {
        let listener = UnixListener::bind(spec.places.own.join("app.sock"))?;
        tokio::spawn(let_in(listener, port));
    }
    if spec.has_hub {
        let listener = TcpListener::bind(("127.0.0.1", HUB_PORT)).await?;
        tokio::spawn(let_out(listener, spec.places.own.join(hub::SOCKET)));
    }
    let mut ended = signal(SignalKind::child())?;
    let (app, mut copy) = match start(spec).await {
        Ok(started) => started,
        Err(error) => return Ok(Fate::CouldNotStart(could_not(spec, &error))),
    };
    let orders = io::stdin().as_fd().try_clone_to_owned()?;
    let mut orders = pipe::Receiver::from_owned_fd(orders)?;
    let mut order = [0];
    loop {
        tokio::select! {
            _ = ended.recv() => {
                if let Some(fate) = take_in(app) {
                    return Ok(fate);
                }
            }
            fate = fate_of(&mut copy) => return Ok(fate),
            heard = orders.read(&mut order) => match heard {
                Ok(1) if order[0] == Order::STOP => { killpg(app, Signal::SIGTERM).ok(); }
                Ok(1) if order[0] == Order::CHECKPOINT => { killpg(app, Signal::SIGUSR1).ok(); }
                // Whoever keeps it is gone.
                Ok(0) | Err(_) => return Ok(Fate::Signalled(Signal::SIGKILL as i32)),
                Ok(_) => {}
            }
        }
    }
}

/// What became of an app that is nobody's child here; never, of any other.
async fn fate_of(copy: &mut Option<Copy>) -> Fate {
    match copy {
        Some(copy) => copy.fate().await,
        None => std::future::pending().await,
    }
}

/// Passes everybody on who comes by the socket.
async fn let_in(listener: UnixListener, port: u16) {
    while let Ok((mut visitor, _)) = listener.accept().await {
        tokio::spawn(async move {
            if let Ok(mut app) = TcpStream::connect(("127.0.0.1", port)).await {
                app.set_nodelay(true).ok();
                copy_bidirectional(&mut visitor, &mut app).await.ok();
            }
        });
    }
}

/// Passes on to the keeper what asks for a JupyterHub.
async fn let_out(listener: TcpListener, socket: PathBuf) {
    while let Ok((mut asking, _)) = listener.accept().await {
        let socket = socket.clone();
        tokio::spawn(async move {
            if let Ok(mut keeper) = UnixStream::connect(socket).await {
                copy_bidirectional(&mut asking, &mut keeper).await.ok();
            }
        });
    }
}

/// Starts the app: as a copy of a warm server where it is to be one, else as a program like any other.
async fn start(spec: &Spec) -> io::Result<(Pid, Option<Copy>)> {
    let home = spec.places.home.clone();
    let folder = match &spec.folder {
        None => home.clone(),
        Some(folder) if folder.is_dir() => folder.clone(),
        // Where somebody stood when they submitted it is a folder of another machine, most often.
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
    if spec.warm.is_some() {
        let wanted = Wanted {
            command: &words,
            environment: &spec.environment,
            folder: &folder,
        };
        let speaks = [output.as_fd(), errors.as_fd()];
        if let Some(copy) = bring::ask(&spec.places.own, &wanted, speaks).await {
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

/// Takes in everything that has ended, whoever started it.
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
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("`{program}` is not there: neither on this machine nor in its environment")
        }
        io::ErrorKind::PermissionDenied => format!("`{program}` may not be run"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "there is no room left on the disk".to_owned()
        }
        _ => format!("`{program}` could not be started: {error}"),
    }
}
