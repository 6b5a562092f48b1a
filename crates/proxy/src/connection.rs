//! A connection to an app, and the endpoint it leads to.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::body::Upload;
use crate::failure::Failure;
use crate::proxy::Limits;

/// The endpoint of an app. It can only be on this machine.
#[derive(Debug, Clone)]
pub struct Upstream(Place);

#[derive(Debug, Clone)]
enum Place {
    Unix(PathBuf),
    Tcp(SocketAddr),
    Connector(Arc<dyn Connect>),
}

/// Opens connections to an app that requires more than an address.
pub trait Connect: std::fmt::Debug + Send + Sync {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<UnixStream>> + Send + '_>>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("apps are reached on this machine only")]
pub struct NotLoopback;

impl Upstream {
    pub fn unix(socket: impl Into<PathBuf>) -> Self {
        Self(Place::Unix(socket.into()))
    }

    pub fn connector(connector: impl Connect + 'static) -> Self {
        Self(Place::Connector(Arc::new(connector)))
    }

    pub fn tcp(address: SocketAddr) -> Result<Self, NotLoopback> {
        let is_here = address.ip().to_canonical().is_loopback() && address.port() != 0;
        is_here
            .then_some(Self(Place::Tcp(address)))
            .ok_or(NotLoopback)
    }

    pub(crate) async fn connect(&self, limits: &Limits) -> Result<Connection, Failure> {
        let stream = tokio::time::timeout(limits.connect, self.stream()).await;
        let stream = stream.map_err(|_| Failure::Slow)?.map_err(|error| {
            tracing::debug!("no connection to an app: {error}");
            Failure::Unreachable
        })?;
        let handshake = http1::Builder::new()
            .max_header_size(limits.head_bytes_max)
            .handshake(TokioIo::new(stream));
        let (sender, connection) = handshake.await.map_err(|_| Failure::Unreachable)?;
        Ok(Connection {
            sender,
            driver: Box::new(connection),
            is_over: false,
        })
    }

    async fn stream(&self) -> io::Result<Stream> {
        match &self.0 {
            Place::Unix(socket) => UnixStream::connect(socket).await.map(Stream::Unix),
            Place::Connector(connector) => connector.connect().await.map(Stream::Unix),
            Place::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

/// One HTTP connection. It has no task of its own: the exchange that waits for its response drives it. So an exchange
/// wakes only itself, and dropping it ends the connection.
pub(crate) struct Connection {
    sender: http1::SendRequest<Upload>,
    driver: Box<http1::Connection<TokioIo<Stream>, Upload>>,
    is_over: bool,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = out.debug_struct("Connection");
        shown
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Moves bytes. Ready when no more will come.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_over {
            ready!(Pin::new(&mut *self.driver).poll(cx)).ok();
            self.is_over = true;
        }
        Poll::Ready(())
    }

    /// Whether it can take another request now.
    pub fn is_free(&mut self) -> bool {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        self.poll(&mut cx).is_pending() && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of the response. Returns the request if none of it was sent.
    pub async fn send(
        &mut self,
        request: Request<Upload>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Upload>>> {
        let mut answer = pin!(self.sender.try_send_request(request));
        std::future::poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer);
            }
            // If the driver ends, the response is settled, one way or the other.
            let _ = self.poll(cx);
            answer.as_mut().poll(cx)
        })
        .await
    }

    /// The bare stream after an upgrade, and the bytes already read from it.
    pub async fn into_stream(mut self) -> (Stream, Bytes) {
        std::future::poll_fn(|cx| self.poll(cx)).await;
        let parts = self.driver.into_parts();
        (parts.io.into_inner(), parts.read_buf)
    }
}

/// The byte stream to and from an app.
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

macro_rules! either {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Unix(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Stream::Tcp(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cve_2022_21697_an_app_is_only_ever_on_this_machine() {
        for (address, expected) in [
            ("127.0.0.1:8888", true),
            ("127.9.9.9:1", true),
            ("[::1]:8888", true),
            ("[::ffff:127.0.0.1]:8888", true),
            ("127.0.0.1:0", false),
            ("0.0.0.0:8888", false),
            ("169.254.169.254:80", false),
            ("[::ffff:169.254.169.254]:80", false),
            ("10.0.0.1:80", false),
            ("[fe80::1]:80", false),
        ] {
            let upstream = Upstream::tcp(address.parse().unwrap());
            assert_eq!(upstream.is_ok(), expected, "{address}");
        }
    }
}
