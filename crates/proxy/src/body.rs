//! Streams bodies: one part at a time, counted, and cut when the exchange is over.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

use crate::connection::Connection;
use crate::exchange::{Exchange, Watch};
use crate::failure::Failure;
use crate::pool::Pool;

pub(crate) type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Why a body ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("the visitor's access is over")]
    Over,
    #[error("nothing has moved for too long")]
    Idle,
    #[error("the app broke off")]
    App,
}

/// The body of a request, towards the app.
pub(crate) enum Upload {
    Empty,
    Parts(UnsyncBoxBody<Bytes, AnyError>, Arc<Exchange>),
}

impl Upload {
    pub fn new<B>(body: B, exchange: &Arc<Exchange>) -> Self
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<AnyError>,
    {
        if body.is_end_stream() {
            return Upload::Empty;
        }
        Upload::Parts(body.map_err(Into::into).boxed_unsync(), exchange.clone())
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Upload::Empty)
    }
}

impl HttpBody for Upload {
    type Data = Bytes;
    type Error = AnyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnyError>>> {
        let Upload::Parts(body, exchange) = self.get_mut() else {
            return Poll::Ready(None);
        };
        let frame = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            exchange.came_in(frame.data_ref().map_or(0, Bytes::len));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Upload::Empty => true,
            Upload::Parts(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Upload::Empty => SizeHint::with_exact(0),
            Upload::Parts(body, _) => body.size_hint(),
        }
    }
}

/// The body of a response, towards the visitor.
#[derive(Debug)]
pub struct Body(Kind);

#[derive(Debug)]
enum Kind {
    /// A page of the proxy's own.
    Page(Bytes),
    App(Box<Download>),
}

/// An app's response body and its connection. After the whole body, the connection goes back to the pool.
#[derive(Debug)]
pub(crate) struct Download {
    incoming: Incoming,
    connection: Option<Connection>,
    watch: Watch,
}

impl Body {
    pub(crate) fn page(text: impl Into<Bytes>) -> Self {
        Self(Kind::Page(text.into()))
    }

    pub(crate) fn download(incoming: Incoming, connection: Connection, watch: Watch) -> Self {
        Self(Kind::App(Box::new(Download {
            incoming,
            connection: Some(connection),
            watch,
        })))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match &mut self.get_mut().0 {
            Kind::Page(text) if text.is_empty() => Poll::Ready(None),
            Kind::Page(text) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(text))))),
            Kind::App(download) => download.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Page(text) => text.is_empty(),
            Kind::App(download) => download.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Page(text) => SizeHint::with_exact(text.len() as u64),
            Kind::App(download) => download.incoming.size_hint(),
        }
    }
}

impl Download {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        // First, so that an app that never pauses is cut as well.
        if let Poll::Ready(failure) = self.watch.poll(cx) {
            self.connection = None;
            return Poll::Ready(Some(Err(match failure {
                Failure::Slow => Broken::Idle,
                _ => Broken::Over,
            })));
        }
        let Poll::Ready(frame) = self.poll_app(cx) else {
            return Poll::Pending;
        };
        if let Some(Ok(frame)) = &frame {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            self.watch.exchange.went_out(bytes);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(|_| Broken::App)))
    }

    fn poll_app(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let frame = Pin::new(&mut self.incoming).poll_frame(cx);
        if let (Poll::Pending, Some(connection)) = (&frame, &mut self.connection) {
            // The end of the connection shows as the end of the body.
            let _ = connection.poll(cx);
            return Pin::new(&mut self.incoming).poll_frame(cx);
        }
        frame
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && self.incoming.is_end_stream()
        {
            Pool::put(&self.watch.exchange.route, connection);
        }
    }
}
