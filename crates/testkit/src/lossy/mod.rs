//! A disk that drops unsynced writes at a crash: a filesystem over a backing directory. It is for tests of what really
//! survives a power cut. `kill -9` of a database proves little, because the kernel keeps everything that the dead
//! process wrote; this disk forgets it.
//!
//! The backing directory holds only synced data. Everything newer is in the memory of the `lossy-fs` process and is
//! lost with it: [`Mount::crash`], `SIGUSR1` and `kill -9` are all power cuts. Mounting the same backing directory
//! again means that the power is back.
//!
//! A crash takes away:
//! - Bytes and lengths: every write and truncation since the last fsync or fdatasync of that file (or
//!   write through `O_SYNC`, `O_DSYNC`). Closing a file syncs nothing. A shared memory map works and
//!   counts as written when the kernel writes its pages back, at the latest at the next fsync.
//! - Names, owners and modes: creation, renaming, linking and removal form one ordered journal for the
//!   whole disk, as in XFS. An fsync of a file or directory commits the journal up to the last change that
//!   touches it; a crash loses the rest. So fsync of a new file keeps its name, a rename counts after an
//!   fsync of the directory or the file, and a file renamed into place before its bytes were synced is
//!   found empty.
//!
//! The disk does not model:
//! - Unsynced writes that survive. A real disk may keep some of them, in any order or torn; this one
//!   keeps none. Only `kill -9` in the middle of an fsync leaves a part of that one fsync.
//! - `sync` and `syncfs`, which FUSE does not pass on, and `sync_file_range`, which promises nothing.
//! - Times: a file has only the time of its last change, and it is not kept.
//! - Sockets, pipes and devices are refused, extended attributes are unknown, and the free space is
//!   given as none. Put a server's socket elsewhere.
//!
//! It needs Linux, `/dev/fuse` and root, and works without libfuse.

mod content;
mod fuse;
mod journal;
mod serve;
mod tree;

use std::env;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};

pub use serve::{Until, serve};

use crate::repository;

/// The program that serves a disk.
const NAME: &str = "lossy-fs";

/// A mounted lossy disk, served by a separate process that cannot outlive this one.
///
/// Dropping it is a crash, so that nothing stays behind however the test ends.
#[derive(Debug)]
pub struct Mount {
    server: Child,
    mountpoint: PathBuf,
    mounted: bool,
}

impl Mount {
    /// Mounts the synced content of `backing` at `mountpoint`; both are existing directories.
    pub fn start(backing: &Path, mountpoint: &Path) -> Result<Self> {
        let mut server = Command::new(program()?)
            .args(["--until-stdin-closes".as_ref(), backing, mountpoint])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start lossy-fs")?;
        let stdout = server.stdout.take();
        let mut mount = Self {
            server,
            mountpoint: mountpoint.into(),
            mounted: false,
        };
        let mut line = String::new();
        BufReader::new(stdout.context("lossy-fs has no stdout")?).read_line(&mut line)?;
        ensure!(
            line == serve::READY,
            "lossy-fs could not mount: it says why on stderr"
        );
        mount.mounted = true;
        Ok(mount)
    }

    /// The process that serves the disk, for a test that wants to kill it.
    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Cuts the power: everything unsynced is lost. A program that still has files open then gets errors, or `SIGBUS`
    /// in a memory map. End such a program, because it may write into the bare mount point.
    pub fn crash(self) -> Result<()> {
        self.end(Signal::USR1)
    }

    /// Ends in an orderly way: everything written is kept.
    pub fn unmount(self) -> Result<()> {
        self.end(Signal::TERM)
    }

    fn end(mut self, signal: Signal) -> Result<()> {
        // Waiting would close the server's stdin. That is a second reason to end, and must not overtake the first.
        let _stdin = self.server.stdin.take();
        kill_process(Pid::from_child(&self.server), signal).context("signal lossy-fs")?;
        let status = self.server.wait().context("wait for lossy-fs")?;
        ensure!(
            status.success(),
            "lossy-fs failed ({status}): it says why on stderr"
        );
        self.mounted = false;
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Each call may find its work already done, and that is fine.
        let _ = self.server.kill();
        let _ = self.server.wait();
        if self.mounted {
            let _ = unmount(&self.mountpoint, UnmountFlags::DETACH);
        }
    }
}

/// Cargo puts programs one directory above the tests of the same profile. It builds them with the tests of this crate,
/// but not with the tests of another; in that case this function builds them.
fn program() -> Result<PathBuf> {
    let me = env::current_exe().context("where is this program?")?;
    let directories: Vec<&Path> = me.ancestors().skip(1).take(2).collect();
    let found = || {
        let programs = directories.iter().map(|directory| directory.join(NAME));
        programs.into_iter().find(|program| program.is_file())
    };
    if let Some(program) = found() {
        return Ok(program);
    }
    build(&me)?;
    found().with_context(|| format!("no {NAME} beside {}", me.display()))
}

/// Builds the program for the test `me`: `TARGET/PROFILE/deps/me`.
fn build(me: &Path) -> Result<()> {
    let profile = me.ancestors().nth(2);
    let (Some(profile), Some(target)) = (
        profile.and_then(Path::file_name).and_then(OsStr::to_str),
        profile.and_then(Path::parent).and_then(Path::to_str),
    ) else {
        bail!("{} does not lie where cargo puts tests", me.display());
    };
    // The only profile with a name that differs from its directory.
    let profile = if profile == "debug" { "dev" } else { profile };
    let package = concat!("--package=", env!("CARGO_PKG_NAME"));
    repository::cargo([
        "build",
        "--locked",
        "--quiet",
        package,
        &format!("--bin={NAME}"),
        &format!("--profile={profile}"),
        &format!("--target-dir={target}"),
    ])?;
    Ok(())
}
