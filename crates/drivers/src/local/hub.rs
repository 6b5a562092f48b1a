//! A narrow way out of a sandbox: to the server's own socket, where the server answers as a JupyterHub to that one run.
//!
//! ```text
//! the app -> 127.0.0.1:8081 of its network -> inside -> keeper -> hub.sock of the server
//! ```
//!
//! The sandbox asks for a connection, and the supervisor hands it one. The supervisor sends the run's id first. Nothing
//! in the sandbox can send another id, because the server's socket is not there. The supervisor does not read the
//! traffic.

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

/// The file name of the server's socket.
const SOCKET: &str = "hub.sock";
/// Maximum length of an id.
const LINE_MAX: usize = 64;
/// Maximum number of open connections of a run; further ones wait.
const AT_ONCE: usize = 16;
/// Maximum number of connections that wait; further ones are refused.
const WAITING: usize = 64;

/// The socket of the server that keeps its runs and homes in this folder.
pub fn server_socket(work: &Path) -> PathBuf {
    work.join(SOCKET)
}

/// The supervisor's side.
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

    /// Answers one request for a connection.
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
            // While no server is running, the connection closes, and the app asks again.
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

/// Reads the first line of a connection, in which the supervisor sends the run's id.
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
