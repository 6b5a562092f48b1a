//! Asking a run's own web server something, as Berth and not as anybody's visitor: whether it answers yet, and what its
//! kernels do.

use std::io;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::{CONNECTION, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use crate::backend::Door;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    /// Whether what was asked for is there, or stands elsewhere.
    pub fn is_good(&self) -> bool {
        StatusCode::from_u16(self.status)
            .is_ok_and(|status| status.is_success() || status.is_redirection())
    }
}

/// No more is read of what it answers.
const BODY_MAX: usize = 1 << 20;

/// Asks for a path, with its slash at the beginning. What it answers is somebody else's program's, and not to be trusted.
pub async fn ask(door: &Door, path: &str, patience: Duration) -> io::Result<Answer> {
    let asked = tokio::time::timeout(patience, exchange(door, path));
    match asked.await {
        Ok(answer) => answer,
        Err(late) => Err(io::Error::new(io::ErrorKind::TimedOut, late)),
    }
}

async fn exchange(door: &Door, path: &str) -> io::Result<Answer> {
    let Door::Socket(socket) = door;
    let stream = UnixStream::connect(socket).await?;
    let talk = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = talk.map_err(io::Error::other)?;
    let request = Request::get(path)
        .header(HOST, "localhost")
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let answer = async {
        let response = sender.send_request(request).await;
        let (head, body) = response.map_err(io::Error::other)?.into_parts();
        let body = Limited::new(body, BODY_MAX).collect().await;
        let body = body.map_err(io::Error::other)?.to_bytes();
        Ok(Answer {
            status: head.status.as_u16(),
            body: body.to_vec(),
        })
    };
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        ended = connection => {
            ended.map_err(io::Error::other)?;
            answer.await
        }
    }
}
