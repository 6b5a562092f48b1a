//! How a copy of a warm server comes into a sandbox.
//!
//! ```text
//! inside --(what to run, where it speaks)--> keeper --(that, the sandbox's namespaces)--> warm server -> its copy
//! ```
//!
//! Nothing in a sandbox reaches a warm server. The keeper takes one question, from the first process of the sandbox,
//! before anything else runs there; it puts the copy under the run's limits before that does anything. Wherever this
//! fails, the sandbox's first process hears `no`, or nothing more, and starts the app as any other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::{UnixListener, UnixStream};

use crate::local::cgroup::Group;
use crate::local::folder::Folder;
use crate::local::keeper::Fate;

const SOCKET: &str = "warm.sock";
/// As the warm server wants them.
const NAMESPACES: [&str; 7] = ["user", "net", "mnt", "pid", "ipc", "uts", "cgroup"];
/// A server that has nothing to do but this answers at once, or never.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a copy is to become.
#[derive(Debug, Serialize)]
pub struct Wanted<'a> {
    pub command: &'a [String],
    pub environment: &'a BTreeMap<String, String>,
    pub folder: &'a Path,
}

/// An app that was a copy of a warm server. Whoever watches over it says how it ended.
#[derive(Debug)]
pub struct Copy {
    pub process: i32,
    watcher: BufReader<UnixStream>,
}

impl Copy {
    pub async fn fate(&mut self) -> Fate {
        let mut line = String::new();
        let heard = self.watcher.read_line(&mut line).await;
        let fate = heard.ok().and_then(|_| serde_json::from_str(&line).ok());
        // Whoever watched was killed, and there is only one who does that.
        fate.unwrap_or(Fate::Signalled(nix::sys::signal::Signal::SIGKILL as i32))
    }
}

/// Asked by the first process of a sandbox: the app as a copy; none where it is to be started as any other.
pub async fn ask(own: &Path, wanted: &Wanted<'_>, speaks: [BorrowedFd<'_>; 2]) -> Option<Copy> {
    let mut stream = UnixStream::connect(own.join(SOCKET)).await.ok()?;
    let mut line = serde_json::to_vec(wanted).ok()?;
    line.push(b'\n');
    hand_over(&stream, &speaks.map(|one| one.as_raw_fd()))
        .await
        .ok()?;
    stream.write_all(&line).await.ok()?;
    let mut watcher = BufReader::new(stream);
    let mut answer = String::new();
    watcher.read_line(&mut answer).await.ok()?;
    let process = answer.trim().parse().ok()?;
    Some(Copy { process, watcher })
}

/// The keeper's part, ready before the sandbox is.
#[derive(Debug)]
pub struct Bringing {
    listener: UnixListener,
    socket: PathBuf,
    warm: PathBuf,
    user: u32,
}

impl Bringing {
    pub fn open(folder: &Folder, warm: PathBuf, user: u32) -> io::Result<Bringing> {
        let socket = folder.io().join(SOCKET);
        let listener = UnixListener::bind(&socket)?;
        Ok(Bringing {
            listener,
            socket,
            warm,
            user,
        })
    }

    /// Takes the one question, and sees to it that it is answered.
    pub async fn bring(self, group: Option<Group>) -> io::Result<()> {
        let (mut inside, _) = self.listener.accept().await?;
        std::fs::remove_file(&self.socket)?;
        let brought = tokio::time::timeout(PATIENCE, self.send_copy(&inside, group.as_ref()));
        match brought.await {
            Ok(Ok(())) => Ok(()),
            _ => inside.write_all(b"no\n").await,
        }
    }

    async fn send_copy(&self, inside: &UnixStream, group: Option<&Group>) -> io::Result<()> {
        let gone = || io::Error::other("the sandbox has gone");
        let process = inside.peer_cred()?.pid().ok_or_else(gone)?;
        let open = |name| File::open(format!("/proc/{process}/ns/{name}"));
        let spaces = NAMESPACES
            .iter()
            .map(open)
            .collect::<io::Result<Vec<_>>>()?;
        let mut handed = vec![inside.as_raw_fd()];
        handed.extend(spaces.iter().map(AsRawFd::as_raw_fd));
        let mut warm = BufReader::new(UnixStream::connect(&self.warm).await?);
        hand_over(warm.get_ref(), &handed).await?;
        warm.write_all(format!("{}\n", self.user).as_bytes())
            .await?;
        let mut copy = String::new();
        warm.read_line(&mut copy).await?;
        let copy = copy.trim().parse().map_err(io::Error::other)?;
        if let Some(group) = group {
            group.enter(copy)?;
        }
        warm.write_all(b"g").await
    }
}

/// One byte, with what comes with it.
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
