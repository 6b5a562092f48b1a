//! A request in progress. It is counted, and it ends when its route closes, its visitor loses access, or it is idle for
//! too long.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::activity::now_ms;
use crate::failure::Failure;
use crate::proxy::Visitor;
use crate::routes::Route;

/// One of the open requests that a route may have. The slot is released on drop.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub route: Arc<Route>,
    /// Whether the data sent with it means that somebody is at work.
    is_work: bool,
    moved_ms: AtomicU64,
}

impl Exchange {
    pub fn begin(route: Arc<Route>, open_max: usize, is_work: bool) -> Result<Arc<Self>, Failure> {
        let before = route.tally.open.fetch_add(1, Relaxed);
        // Made first, so that a refusal releases the slot too.
        let exchange = Self {
            route,
            is_work,
            moved_ms: now_ms().into(),
        };
        if before >= open_max {
            return Err(Failure::Busy);
        }
        exchange.route.tally.asked();
        Ok(Arc::new(exchange))
    }

    /// Records a part of the request's body.
    pub fn came_in(&self, bytes: usize) {
        self.moved();
        self.route.tally.came_in(bytes);
        if self.is_work {
            self.route.tally.acted();
        }
    }

    /// Records a part of the response's body.
    pub fn went_out(&self, bytes: usize) {
        self.moved();
        self.route.tally.went_out(bytes);
    }

    fn moved(&self) {
        self.moved_ms.store(now_ms(), Relaxed);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.route.tally.open.fetch_sub(1, Relaxed);
    }
}

/// Ready when the route closes or the visitor's access ends.
pub(crate) type Over = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) fn over(route: &Route, visitor: &Visitor) -> Over {
    let (route, here) = (route.over.clone(), visitor.here.clone());
    let visitor = visitor.over.clone();
    Box::pin(async move {
        let _here = here;
        tokio::select! {
            () = route.cancelled() => {}
            () = visitor.cancelled() => {}
        }
    })
}

/// Ends an exchange early.
pub(crate) struct Watch {
    pub exchange: Arc<Exchange>,
    over: Over,
    idle: Duration,
    /// Made on the first poll that has to wait.
    timer: Option<Pin<Box<Sleep>>>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Watch").field(&self.exchange).finish()
    }
}

impl Watch {
    pub fn new(exchange: Arc<Exchange>, visitor: &Visitor, idle: Duration) -> Self {
        Self {
            over: over(&exchange.route, visitor),
            exchange,
            idle,
            timer: None,
        }
    }

    /// Ready when access ends, or when no byte has moved either way for too long.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Failure> {
        if self.over.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Failure::Ended);
        }
        loop {
            let end = |still: Duration| Instant::now() + self.idle.saturating_sub(still);
            let timer = self
                .timer
                .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end(Duration::ZERO))));
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            // Bytes do not reset the timer, as there are many of them; the timer checks when it fires.
            let moved_ms = self.exchange.moved_ms.load(Relaxed);
            let still = Duration::from_millis(now_ms().saturating_sub(moved_ms));
            if still >= self.idle {
                return Poll::Ready(Failure::Slow);
            }
            timer.as_mut().reset(end(still));
        }
    }

    /// The result of `work`, unless the watch ends it first.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(Ok(value)),
            Poll::Pending => self.poll(cx).map(Err),
        })
        .await
    }
}
