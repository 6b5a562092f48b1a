//! WebSockets: the proxy forwards the upgrade request like any other. Once the app agrees, bytes go both ways until one
//! side closes or access ends.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::body::{Body, Upload};
use crate::connection::Stream;
use crate::exchange::{Exchange, Over, Watch, over};
use crate::failure::Failure;
use crate::frames::Frames;
use crate::head;
use crate::proxy::{Proxy, Visitor, unanswered};

const BUFFER_BYTES: usize = 16 * 1024;

/// Asks the app to open a socket. Any other response is passed on to the visitor.
pub(crate) async fn open(
    proxy: &Proxy,
    mut watch: Watch,
    visitor: &Visitor,
    mut parts: Parts,
    upload: Upload,
) -> Result<Response<Body>, Failure> {
    let Some(visitors_side) = parts.extensions.remove::<OnUpgrade>() else {
        return Err(Failure::Malformed);
    };
    if parts.method != Method::GET || !upload.is_empty() {
        return Err(Failure::Malformed);
    }
    add_upgrade(&mut parts.headers);
    let route = watch.exchange.route.clone();
    let asking = async {
        let mut connection = proxy.connect(&route).await?;
        let answer = connection.send(Request::from_parts(parts, upload)).await;
        let answer = answer.map_err(|refused| unanswered(&refused.into_error()))?;
        Ok((answer, connection))
    };
    let (mut answer, connection) = watch.during(asking).await??;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return proxy.answer(answer, connection, watch);
    }
    let agreed = answer.headers().get(UPGRADE);
    if !agreed.is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket")) {
        return Err(Failure::Nonsense);
    }
    head::for_visitor(&mut answer, &route, proxy.own());
    add_upgrade(answer.headers_mut());
    let (app, early) = watch.during(connection.into_stream()).await?;
    let socket = Socket::new(watch.exchange);
    let over = over(&route, visitor);
    tokio::spawn(carry(visitors_side, app, early, socket, over));
    Ok(answer.map(|_| Body::page("")))
}

fn add_upgrade(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
}

/// Copies bytes both ways. Both sides are closed when this ends, for any reason.
async fn carry(visitor: OnUpgrade, mut app: Stream, early: Bytes, socket: Socket, over: Over) {
    let talk = async {
        let upgraded = visitor.await.map_err(io::Error::other)?;
        let mut visitor = Watched {
            stream: TokioIo::new(upgraded),
            frames: Frames::default(),
            socket,
        };
        visitor.write_all(&early).await?;
        let (size, copy) = (BUFFER_BYTES, tokio::io::copy_bidirectional_with_sizes);
        copy(&mut visitor, &mut app, size, size).await
    };
    tokio::select! {
        () = over => tracing::debug!("a socket was cut, as access to it is over"),
        ended = talk => if let Err(error) = ended {
            tracing::debug!("a socket broke off: {error}");
        }
    }
}

/// An open socket, counted in its route's `sockets`.
struct Socket(Arc<Exchange>);

impl Socket {
    fn new(exchange: Arc<Exchange>) -> Self {
        exchange.route.tally.sockets.fetch_add(1, Relaxed);
        Self(exchange)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.0.route.tally.sockets.fetch_sub(1, Relaxed);
    }
}

/// The visitor's side of a socket. Messages from it mean that somebody is at work.
struct Watched {
    stream: TokioIo<Upgraded>,
    frames: Frames,
    socket: Socket,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let new = &buffer.filled()[before..];
        if !new.is_empty() {
            let is_message = self.frames.has_message(new);
            let tally = &self.socket.0.route.tally;
            tally.came_in(new.len());
            if is_message {
                tally.acted();
            }
        }
        read
    }
}

impl Watched {
    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.socket.0.route.tally.went_out(bytes);
        }
        written
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
