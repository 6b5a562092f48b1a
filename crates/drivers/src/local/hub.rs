//! A narrow way out of a sandbox: to the server's own socket, where the server answers as a JupyterHub to that one run.
//!
//! ```text
//! the app -> 127.0.0.1:8081 of its network -> inside -> keeper -> hub.sock of the server
//! ```
//!
//! The sandbox asks for a connection and the keeper hands it one. The keeper says first whose run it is, and nothing in the
//! sandbox can say that in its place: the server's socket is not there. The keeper reads nothing of what passes.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use berth_model::RunId;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

use super::control::{Channel, ToSandbox};
use super::folder::Folder;

/// What the server's socket is called.
const SOCKET: &str = "hub.sock";
/// No id is longer.
const LINE_MAX: usize = 64;
/// The most connections of one run at a time; the next wait.
const AT_ONCE: usize = 16;
/// The most that wait, too; the next are refused.
const WAITING: usize = 64;

/// Where a server listens that keeps its runs and homes in this folder.
pub fn server_socket(work: &Path) -> PathBuf {
    work.join(SOCKET)
}

/// The keeper's side of it.
#[derive(Debug)]
pub(super) struct Hub {
    server: PathBuf,
    run: RunId,
    waiting: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Hub {
    pub fn new(folder: &Folder, run: RunId) -> io::Result<Hub> {
        Ok(Hub {
            server: server_socket(folder.work()?),
            run,
            waiting: Arc::new(Semaphore::new(WAITING)),
            open: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// Answers one wish for a connection.
    pub async fn connect(&self, channel: &Channel) -> io::Result<()> {
        let Ok(waits) = self.waiting.clone().try_acquire_owned() else {
            return channel.send(&ToSandbox::HubRefused, None).await;
        };
        let (mut asking, theirs) = UnixStream::pair()?;
        channel.send(&ToSandbox::Hub, Some(theirs.as_fd())).await?;
        let (server, run, open) = (self.server.clone(), self.run, self.open.clone());
        tokio::spawn(async move {
            let _place = open.acquire_owned().await;
            drop(waits);
            // While no server is there, the app is cut off, and asks again.
            if let Ok(mut answering) = UnixStream::connect(server).await
                && answering
                    .write_all(format!("{run}\n").as_bytes())
                    .await
                    .is_ok()
            {
                copy_bidirectional(&mut asking, &mut answering).await.ok();
            }
        });
        Ok(())
    }
}

/// Whose run it is, as the keeper says it before anything else: its id, and the end of the line.
pub async fn heard(asking: &mut UnixStream) -> io::Result<RunId> {
    let mut line = Vec::with_capacity(LINE_MAX);
    loop {
        match asking.read_u8().await? {
            b'\n' => break,
            _ if line.len() == LINE_MAX => return Err(io::ErrorKind::InvalidData.into()),
            sign => line.push(sign),
        }
    }
    let text = std::str::from_utf8(&line).unwrap_or_default();
    text.parse().map_err(io::Error::other)
}
