//! Where an app or a proxy is knocked at: a port of this machine, or a socket in a folder.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// How often somebody who waits knocks again; the same at every door.
const KNOCK_EVERY: Duration = Duration::from_millis(10);
/// Nothing takes so long that comes at all.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Clone)]
pub enum Door {
    Tcp(u16),
    Unix(PathBuf),
}

pub trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// A connection through a door of either kind.
pub type Way = Box<dyn Bytes>;

impl Door {
    pub async fn open(&self) -> Result<Way> {
        Ok(match self {
            Door::Tcp(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port)).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Door::Unix(path) => Box::new(UnixStream::connect(path).await?),
        })
    }

    /// Sends one request on a connection of its own, and reads all that comes back.
    pub async fn ask(&self, request: &str) -> Result<String> {
        let mut way = self.open().await?;
        way.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        way.read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Knocks until the answer is 200.
    pub async fn until_usable(&self, request: &str) -> Result<()> {
        let mut last = String::new();
        let knocking = async {
            loop {
                last = match self.ask(request).await {
                    Ok(answer) if answer.starts_with("HTTP/1.1 200") => return,
                    Ok(answer) => answer,
                    Err(error) => error.to_string(),
                };
                tokio::time::sleep(KNOCK_EVERY).await;
            }
        };
        let came = tokio::time::timeout(PATIENCE, knocking).await;
        came.with_context(|| format!("nothing usable came; at last: {last}"))
    }
}

/// A request that has the connection closed behind it. `host` is what it is asked for by, `who` a line that shows who asks.
pub fn get(host: &str, path: &str, who: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{who}\r\n")
}
