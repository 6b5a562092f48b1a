//! Events: in pages for those who catch up, and live for those who stay.
//!
//! A live stream says the number of each event, so that a client that was cut off goes on after the last one it
//! saw, without loss or repeat. The first frame carries only the number at which the stream begins, so that this
//! holds even for a client that is cut off before anything has happened.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use berth_api::events::{Event, EventPage, EventQuery, EventStreamQuery, Position};
use berth_api::headers::LAST_EVENT_ID;
use berth_api::{Code, Names, Problem, paths};
use berth_app::Caller;
use berth_app::events::Listener;
use berth_model::event::NumberedEvent;
use berth_model::site::Site;
use berth_model::{PersonId, SiteId};
use futures::stream::{self, Stream, StreamExt};
use http::HeaderMap;
use tokio::time::{Instant, sleep_until};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::failure::{Failure, Result};
use crate::metrics::Counted;
use crate::openapi::LastEventIdHeader;
use crate::request::{Query, Signed};
use crate::server::Server;
use crate::shares::Share;

/// Streams that one person may hold open: more than anyone's tabs, fewer than would hurt.
pub(crate) const STREAMS_MAX: usize = 20;
/// How often a silent stream shows that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How often a stream asks whether its listener may still listen. Whatever ends a welcome but time itself is told in the
/// stream, so this is for what runs out.
const WELCOME_CHECK: Duration = Duration::from_secs(15);
/// How long a browser waits before it connects again.
const RECONNECT: Duration = Duration::from_secs(2);

/// Asks a proxy to hand on each frame as it comes; nginx gathers answers otherwise, and would gather this one for ever.
const NOT_HELD_BACK: (&str, &str) = ("x-accel-buffering", "no");

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_events))
        .routes(routes!(stream_events))
}

/// Events after a number, as far as they concern me.
#[utoipa::path(
    get, path = paths::EVENTS, tag = "events", params(EventQuery),
    responses((status = 200, description = "Some events in order.", body = EventPage))
)]
async fn list_events(
    State(server): State<Server>,
    Signed(caller): Signed,
    Query(query): Query<EventQuery>,
) -> Result<Json<EventPage>> {
    let (site, limit) = (query.site.as_ref(), query.limit.get().into());
    let page = server
        .app
        .events_after(&caller, site, query.after.get(), limit)
        .await?;
    let names = site_names(&page.sites);
    let shown = |event: &Arc<NumberedEvent>| Event::new(event.as_ref().clone(), &names);
    Ok(Json(EventPage {
        items: page.events.iter().map(shown).collect(),
        after: page.position,
        more: page.more,
    }))
}

/// Events as they happen.
///
/// Server-sent events: `id` is the event's number, `event` its kind, `data` the event as JSON. Without `after`
/// and without `Last-Event-ID` the stream begins now. It ends when the session or token that opened it does; a
/// frame named `problem` then says why.
#[utoipa::path(
    get, path = paths::EVENT_STREAM, tag = "events", params(EventStreamQuery, LastEventIdHeader),
    responses((status = 200, description = "A stream without an end.", body = String,
        content_type = "text/event-stream"))
)]
async fn stream_events(
    State(server): State<Server>,
    Signed(caller): Signed,
    Query(query): Query<EventStreamQuery>,
    headers: HeaderMap,
) -> Result<impl IntoResponse> {
    let share = server.streams.take(caller.id()).ok_or_else(too_many)?;
    let after = last_event_id(&headers)?.or(query.after);
    let listener = server
        .app
        .follow(&caller, query.site.as_ref(), after.map(Position::get))
        .await?;
    let start = Frame::default()
        .id(listener.position().to_string())
        .retry(RECONNECT);
    let live = Live {
        next: heard(listener),
        caller,
        welcome_until: Instant::now() + WELCOME_CHECK,
        _counted: Counted::on(&server.metrics.listeners),
        _share: share,
        server,
    };
    let frames = stream::iter([Ok::<_, Infallible>(start)]).chain(live.frames());
    let stream = Sse::new(frames).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE));
    Ok(([NOT_HELD_BACK], stream))
}

fn too_many() -> Failure {
    Problem::new(Code::RequestRateLimited)
        .detail(format!("You have {STREAMS_MAX} live streams open already."))
        .hint("Close one of them first.")
        .retry_after_s(SIGN_OF_LIFE.as_secs())
        .into()
}

/// A browser sends the header by itself when it reconnects; an empty one means that it had seen nothing.
fn last_event_id(headers: &HeaderMap) -> Result<Option<Position>> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let wrong = || {
        Failure::new(Code::RequestMalformed)
            .detail("The header Last-Event-ID does not hold the number of an event.")
            .hint("Send the `id` of the last event that was seen, or leave the header out.")
    };
    let text = value.to_str().map_err(|_| wrong())?;
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse::<u64>().map_err(|_| wrong())?;
    Position::try_from(number).map(Some).map_err(|_| wrong())
}

type Heard =
    Pin<Box<dyn Future<Output = (Listener, berth_app::Result<Vec<Arc<NumberedEvent>>>)> + Send>>;

/// What is heard next, together with the listener, so that it can be waited for in several goes without ever
/// being dropped half-way.
fn heard(mut listener: Listener) -> Heard {
    Box::pin(async move {
        let events = listener.next().await;
        (listener, events)
    })
}

/// One open stream.
struct Live {
    next: Heard,
    server: Server,
    caller: Caller,
    welcome_until: Instant,
    _counted: Counted,
    _share: Share<PersonId>,
}

impl Live {
    fn frames(self) -> impl Stream<Item = Result<Frame, Infallible>> {
        let batches = stream::unfold(Some(self), |live| async move {
            let mut live = live?;
            let batch = live.batch().await?;
            let next = (!batch.is_last).then_some(live);
            Some((stream::iter(batch.frames.into_iter().map(Ok)), next))
        });
        batches.flatten()
    }

    /// The next frames; none when the server stops.
    async fn batch(&mut self) -> Option<Batch> {
        loop {
            tokio::select! {
                () = self.server.stop.cancelled() => return None,
                () = sleep_until(self.welcome_until) => {
                    match self.server.app.is_still_welcome(&self.caller).await {
                        Ok(true) => self.welcome_until = Instant::now() + WELCOME_CHECK,
                        Ok(false) => return Some(Batch::last(ended())),
                        Err(error) => return Some(Batch::last(error.into())),
                    }
                }
                (listener, events) = &mut self.next => return Some(match events {
                    Ok(events) => {
                        let names = site_names(&listener.site_names());
                        let frames = events.iter().map(|event| frame(event, &names)).collect();
                        self.next = heard(listener);
                        Batch { frames, is_last: false }
                    }
                    Err(berth_app::Error::Expired) => Batch::last(ended()),
                    Err(error) => Batch::last(error.into()),
                }),
            }
        }
    }
}

fn ended() -> Failure {
    Failure::new(Code::AuthSignInRequired)
        .detail("The session or token that opened this stream has ended.")
}

struct Batch {
    frames: Vec<Frame>,
    is_last: bool,
}

impl Batch {
    /// Says why the stream ends.
    fn last(failure: Failure) -> Self {
        let problem = failure.problem();
        if problem.status >= 500 {
            tracing::warn!("a stream of events ended: {}", failure.cause());
        }
        let frame = Frame::default().event(berth_api::client::PROBLEM_EVENT);
        let frames = frame.json_data(problem).into_iter().collect();
        Self {
            frames,
            is_last: true,
        }
    }
}

fn frame(numbered: &NumberedEvent, names: &Names) -> Frame {
    let frame = Frame::default()
        .id(numbered.number.to_string())
        .event(numbered.event.kind.as_str());
    // An event is made of JSON, so it always becomes JSON again.
    let event = Event::new(numbered.clone(), names);
    frame.data(serde_json::to_string(&event).unwrap_or_default())
}

fn site_names(sites: &HashMap<SiteId, Site>) -> Names {
    let mut names = Names::default();
    for site in sites.values() {
        names.add_site(site.into());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_stream_is_read_from_the_header() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(LAST_EVENT_ID, text.parse().unwrap());
            last_event_id(&headers).map(|place| place.map(Position::get))
        };
        assert_eq!(read("42").unwrap(), Some(42));
        assert_eq!(read("").unwrap(), None);
        assert_eq!(last_event_id(&HeaderMap::new()).unwrap(), None);
        for bad in ["x", "-1", "99999999999999999999", "9007199254740992"] {
            assert_eq!(read(bad).unwrap_err().status(), 400, "{bad}");
        }
    }
}
