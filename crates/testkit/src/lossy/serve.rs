//! The process that serves a lossy disk: it mounts the disk, waits for the end, and ends.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, ensure};
use fuser::{Config, MountOption, Session, SessionACL};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::fuse::LossyFs;
use super::tree::Tree;

/// The server prints this on stdout once the disk can be used.
pub(super) const READY: &str = "mounted\n";

/// When to stop serving.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Until {
    /// At a signal.
    Signal,
    /// At a signal, or when stdin closes because the parent process is gone.
    SignalOrStdinCloses,
}

#[derive(Debug)]
enum End {
    Orderly,
    Crash,
    Failure(io::Error),
}

/// Serves `backing` at `mountpoint` until `SIGTERM` or `SIGINT` (orderly: everything is kept) or `SIGUSR1` (crash:
/// everything unsynced is dropped). The process must then exit at once, which closes the files that other processes
/// still have open here.
pub async fn serve(backing: &Path, mountpoint: &Path, until: Until) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut power_cut = signal(SignalKind::user_defined1())?;

    detach_if_dead(mountpoint)?;

    let (backing, mountpoint) = (backing.canonicalize()?, mountpoint.canonicalize()?);
    let nested = backing.starts_with(&mountpoint) || mountpoint.starts_with(&backing);
    ensure!(
        !nested,
        "backing directory and mount point must not lie in each other"
    );
    let lock = File::open(&backing)?;
    lock.try_lock()
        .with_context(|| format!("{} is being served already", backing.display()))?;
    allow_many_open_files()?;
    let fs = LossyFs::new(Tree::load(backing).context("read the backing directory")?);
    let session = mount(fs.clone(), &mountpoint)
        .with_context(|| format!("mount at {} (needs root, /dev/fuse)", mountpoint.display()))?;

    let (on_stdin, mut other) = mpsc::unbounded_channel();
    let on_unmount = on_stdin.clone();
    if until == Until::SignalOrStdinCloses {
        thread::spawn(move || {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            on_stdin.send(End::Crash)
        });
    }
    thread::spawn(move || {
        on_unmount.send(session.run().map_or_else(End::Failure, |()| End::Orderly))
    });
    io::stdout().write_all(READY.as_bytes())?;

    let end = tokio::select! {
        _ = terminate.recv() => End::Orderly,
        _ = interrupt.recv() => End::Orderly,
        _ = power_cut.recv() => End::Crash,
        Some(end) = other.recv() => end,
    };
    // The kernel still writes back mapped pages while it unmounts, so the tree is served until then.
    unmount(&mountpoint).with_context(|| format!("unmount {}", mountpoint.display()))?;
    let mut tree = fs.tree();
    match end {
        End::Orderly => tree
            .sync_all()
            .context("carry everything to the backing directory")?,
        End::Crash => {}
        End::Failure(error) => return Err(error).context("serve the kernel's requests"),
    }
    // Held until the process ends: from here on, no request gets an answer.
    std::mem::forget(tree);
    std::mem::forget(lock);
    Ok(())
}

/// Every file of the tree stays open, so that its bytes can be found even if its name changes.
fn allow_many_open_files() -> Result<(), Errno> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
}

/// Mounts for all users, including PostgreSQL's own, with the usual permission checks.
fn mount(fs: LossyFs, mountpoint: &Path) -> io::Result<Session<LossyFs>> {
    let mut config = Config::default();
    config.acl = SessionACL::All;
    config.mount_options = vec![
        MountOption::FSName("lossy-fs".into()),
        MountOption::DefaultPermissions,
    ];
    Session::new(fs, mountpoint, &config)
}

/// Unmounts and waits for the kernel's last writes; lazily if files are still open.
fn unmount(mountpoint: &Path) -> Result<(), Errno> {
    match rustix::mount::unmount(mountpoint, UnmountFlags::empty()) {
        Err(Errno::BUSY) => rustix::mount::unmount(mountpoint, UnmountFlags::DETACH),
        // Another process has unmounted it.
        Err(Errno::INVAL) => Ok(()),
        result => result,
    }
}

/// Detaches the mount of a server that was killed.
fn detach_if_dead(mountpoint: &Path) -> Result<()> {
    let dead = |error: io::Error| Errno::from_io_error(&error) == Some(Errno::NOTCONN);
    if mountpoint.metadata().is_err_and(dead) {
        rustix::mount::unmount(mountpoint, UnmountFlags::DETACH)
            .context("clear away a dead mount")?;
    }
    Ok(())
}
