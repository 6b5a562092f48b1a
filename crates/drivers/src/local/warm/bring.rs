//! How a fork of a fork server gets into a sandbox.
//!
//! ```text
//! inside --(asks)--> keeper --(a connection, the sandbox's namespaces)--> warm server -> its copy
//! inside --(what to run, where it writes)--> that connection --> the copy
//! ```
//!
//! Nothing in a sandbox reaches a fork server. The supervisor answers one request from the first process of the
//! sandbox, before anything else runs there. It puts the fork under the run's limits before the fork does anything. If
//! this fails, the sandbox's first process starts the app as an ordinary program.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::UnixStream;

use crate::local::cgroup::Group;
use crate::local::control::Fate;

/// Maximum length of an answer from a fork or a fork server.
const LINE_MAX: u64 = 4096;
/// In the order that the fork server expects.
const NAMESPACES: [&str; 7] = ["user", "net", "mnt", "pid", "ipc", "uts", "cgroup"];
/// A fork server has nothing else to do, so it answers at once or never.
const PATIENCE: Duration = Duration::from_secs(5);

/// The program that a fork becomes.
#[derive(Debug, Serialize)]
pub struct Wanted<'a> {
    pub command: &'a [String],
    pub environment: &'a BTreeMap<String, String>,
    pub folder: &'a Path,
}

/// An app that started as a fork. Its watcher reports how it ended.
#[derive(Debug)]
pub struct Copy {
    pub process: i32,
    watcher: BufReader<UnixStream>,
}

impl Copy {
    pub async fn fate(&mut self) -> Fate {
        let mut line = String::new();
        let heard = (&mut self.watcher)
            .take(LINE_MAX)
            .read_line(&mut line)
            .await;
        let fate = heard.ok().and_then(|_| serde_json::from_str(&line).ok());
        // The watcher was killed, so the app counts as killed.
        fate.unwrap_or(Fate::Signalled(nix::sys::signal::Signal::SIGKILL as i32))
    }
}

/// Called by the first process of a sandbox, on the connection that the supervisor handed it. Returns the app as a
/// fork; `None` if it must start as an ordinary program.
pub async fn ask(
    stream: UnixStream,
    wanted: &Wanted<'_>,
    speaks: [BorrowedFd<'_>; 2],
) -> Option<Copy> {
    let mut stream = stream;
    let mut line = serde_json::to_vec(wanted).ok()?;
    line.push(b'\n');
    hand_over(&stream, &speaks.map(|one| one.as_raw_fd()))
        .await
        .ok()?;
    stream.write_all(&line).await.ok()?;
    let mut watcher = BufReader::new(stream);
    let mut answer = String::new();
    (&mut watcher)
        .take(LINE_MAX)
        .read_line(&mut answer)
        .await
        .ok()?;
    let process = answer.trim().parse().ok()?;
    Some(Copy { process, watcher })
}

/// The supervisor's side.
#[derive(Debug)]
pub struct Bringing {
    warm: PathBuf,
    user: u32,
}

impl Bringing {
    pub fn new(warm: PathBuf, user: u32) -> Bringing {
        Bringing { warm, user }
    }

    /// Brings a fork into the namespaces of the sandbox's first process. Returns the connection to the fork.
    pub async fn bring(&self, inside: i32, group: Option<&Group>) -> io::Result<OwnedFd> {
        let brought = tokio::time::timeout(PATIENCE, self.send_copy(inside, group));
        brought.await.map_err(io::Error::other)?
    }

    async fn send_copy(&self, inside: i32, group: Option<&Group>) -> io::Result<OwnedFd> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        let open = |name| File::open(format!("/proc/{inside}/ns/{name}"));
        let spaces = NAMESPACES
            .iter()
            .map(open)
            .collect::<io::Result<Vec<_>>>()?;
        let mut handed = vec![theirs.as_raw_fd()];
        handed.extend(spaces.iter().map(AsRawFd::as_raw_fd));
        let mut warm = BufReader::new(UnixStream::connect(&self.warm).await?);
        hand_over(warm.get_ref(), &handed).await?;
        warm.write_all(format!("{}\n", self.user).as_bytes())
            .await?;
        let mut copy = String::new();
        (&mut warm).take(LINE_MAX).read_line(&mut copy).await?;
        let copy = copy.trim().parse().map_err(io::Error::other)?;
        if let Some(group) = group {
            group.enter(copy)?;
        }
        warm.write_all(b"g").await?;
        Ok(ours.into())
    }
}

/// Sends one byte with descriptors.
async fn hand_over(stream: &UnixStream, handed: &[RawFd]) -> io::Result<()> {
    let send = || {
        let byte = [io::IoSlice::new(b"\n")];
        let handed = [ControlMessage::ScmRights(handed)];
        let flags = MsgFlags::MSG_NOSIGNAL;
        sendmsg::<()>(stream.as_fd().as_raw_fd(), &byte, &handed, flags, None)?;
        Ok(())
    };
    stream.async_io(Interest::WRITABLE, send).await
}
