//! A narrow way out of a sandbox: to the server's own socket, where it answers as a JupyterHub to that one run.
//!
//! ```text
//! the app -> 127.0.0.1:8081 of its network -> inside -> hub.sock in the run's folder -> keeper -> hub.sock of the server
//! ```
//!
//! The keeper says first whose run it is, and nothing in the sandbox can say it in its place: the server's socket is not
//! there. Who asks for what is the server's to read; the keeper only passes it on.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use berth_model::RunId;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use super::folder::Folder;

/// How the sockets are called, the run's and the server's.
pub const SOCKET: &str = "hub.sock";
/// No id is longer.
const LINE_MAX: usize = 64;
/// The most connections of one run at a time; the next wait.
const AT_ONCE: usize = 16;

/// Where a server listens that keeps its runs and homes in this folder.
pub fn server_socket(work: &Path) -> PathBuf {
    work.join(SOCKET)
}

/// Passes on what comes by the run's socket, until its keeper ends.
pub(super) fn open(folder: &Folder, run: RunId) -> io::Result<()> {
    let listener = UnixListener::bind(folder.io().join(SOCKET))?;
    // A run's folder is in the folder of all runs, and that is in the server's.
    let work = folder.path().parent().and_then(Path::parent);
    let work = work.ok_or_else(|| io::Error::other("the run's folder is nowhere"))?;
    tokio::spawn(pass_on(listener, server_socket(work), run));
    Ok(())
}

async fn pass_on(listener: UnixListener, server: PathBuf, run: RunId) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    // The semaphore is never closed.
    while let Ok(place) = places.clone().acquire_owned().await
        && let Ok((mut asking, _)) = listener.accept().await
    {
        let server = server.clone();
        tokio::spawn(async move {
            let _place = place;
            // While no server is there, whoever asks is cut off, and asks again.
            if let Ok(mut answering) = UnixStream::connect(server).await
                && answering
                    .write_all(format!("{run}\n").as_bytes())
                    .await
                    .is_ok()
            {
                copy_bidirectional(&mut asking, &mut answering).await.ok();
            }
        });
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
