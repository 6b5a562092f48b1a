//! How far a server has come, told as it happens.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use berth_api::Code;
use berth_app::Caller;
use berth_app::events::Watch;
use berth_app::sessions::SessionView;
use berth_model::PersonId;
use berth_model::SessionId;
use berth_model::reference::SiteReference;
use berth_model::session::State as Stage;
use futures::stream::{self, Stream};
use serde_json::{Value, json};

use super::ask::{self, Which};
use super::malformed;
use crate::failure::{Failure, Result};
use crate::request::{Path, Signed};
use crate::server::Server;
use crate::shares::Share;

/// Why something waits changes without an event.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const SIGN_OF_LIFE: Duration = Duration::from_secs(8);

pub async fn follow_default(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(name): Path<String>,
) -> Result<impl IntoResponse> {
    follow(server, caller, &name, Which::default_one()?).await
}

pub async fn follow_named(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path((name, which)): Path<(String, String)>,
) -> Result<impl IntoResponse> {
    follow(server, caller, &name, Which::named(&which)?).await
}

async fn follow(
    server: Server,
    caller: Caller,
    name: &str,
    which: Which,
) -> Result<impl IntoResponse + use<>> {
    let person = ask::person(&server, &caller, name).await?;
    let servers = ask::servers_of(&server, &caller, &person).await?;
    let known = which.among(&servers).ok_or_else(ask::no_server)?;
    if matches!(known.session.state, Stage::Stopped | Stage::Stopping) {
        return Err(malformed("The server is not starting."));
    }
    let share = server.streams.take(caller.id());
    let share = share.ok_or_else(|| Failure::new(Code::RequestRateLimited))?;
    let progress = Progress {
        look: Look::new(&server, &caller, known),
        told: Value::Null,
        _share: share,
    };
    let keep = KeepAlive::new().interval(SIGN_OF_LIFE);
    let stream = Sse::new(progress.frames()).keep_alive(keep);
    Ok(([("x-accel-buffering", "no")], stream))
}

struct Progress {
    look: Look,
    told: Value,
    _share: Share<PersonId>,
}

impl Progress {
    fn frames(self) -> impl Stream<Item = Result<Frame, Infallible>> {
        stream::unfold(Some(self), |progress| async move {
            let mut progress = progress?;
            let event = progress.next().await?;
            let frame = Frame::default().data(event.to_string());
            let is_last = event["progress"] == 100;
            Some((Ok(frame), (!is_last).then_some(progress)))
        })
    }

    /// What is new; nothing when the server stops.
    async fn next(&mut self) -> Option<Value> {
        loop {
            let event = match self.look.now().await {
                Ok(view) => event(&view),
                Err(failure) => failed(&failure.problem().detail),
            };
            if event != self.told {
                self.told = event.clone();
                return Some(event);
            }
            if !self.look.is_changed().await {
                return None;
            }
        }
    }
}

fn event(view: &SessionView) -> Value {
    let said = view.session.said.as_ref().map(ToString::to_string);
    match view.session.state {
        Stage::Waiting => {
            let reason = view.reason.as_ref().map(|reason| reason.words.clone());
            let words = reason.or(said);
            let words = words.map_or_else(String::new, |words| format!(": {words}"));
            json!({ "progress": 10, "message": format!("It waits in the queue{words}") })
        }
        Stage::Starting => {
            json!({ "progress": 50, "message": "It has its place, and its program begins" })
        }
        Stage::Ready => json!({
            "progress": 100,
            "ready": true,
            "message": format!("Server ready at {}", view.url),
            "html_message": format!("Server ready at <a href=\"{0}\">{0}</a>", view.url),
            "url": view.url,
        }),
        Stage::Stopping | Stage::Stopped => failed("Spawn cancelled"),
        Stage::Failed => {
            let said = said.unwrap_or_else(|| "nobody knows why".to_owned());
            failed(&format!("Spawn failed: {said}"))
        }
    }
}

fn failed(message: &str) -> Value {
    json!({ "progress": 100, "failed": true, "message": message })
}

/// One session, looked at again whenever something happened to it.
pub struct Look {
    server: Server,
    caller: Caller,
    site: SiteReference,
    session: SessionId,
    watch: Watch,
}

impl Look {
    pub fn new(server: &Server, caller: &Caller, view: &SessionView) -> Look {
        Look {
            server: server.clone(),
            caller: caller.clone(),
            site: view.session.site.into(),
            session: view.session.id,
            watch: server.app.watch(),
        }
    }

    /// As it is now, if the caller may still see it.
    pub async fn now(&self) -> Result<SessionView> {
        let app = &self.server.app;
        if !app.is_still_welcome(&self.caller).await? {
            return Err(Failure::new(Code::AuthSignInRequired));
        }
        let session = self.session.into();
        let view = app.get_session(&self.caller, &self.site, &session);
        Ok(view.await?)
    }

    pub async fn remove(&self) -> Result<()> {
        let session = self.session.into();
        let removed = self
            .server
            .app
            .remove_session(&self.caller, &self.site, &session);
        Ok(removed.await?)
    }

    /// Waits until it may have changed; says no when the server stops.
    pub async fn is_changed(&mut self) -> bool {
        let subject = self.session.to_string();
        let changed = async {
            while let Some(events) = self.watch.next().await {
                if events.iter().any(|event| event.event.subject == subject) {
                    return;
                }
            }
        };
        tokio::select! {
            () = self.server.stop.cancelled() => false,
            () = changed => true,
            () = tokio::time::sleep(LOOK_EVERY) => true,
        }
    }
}
