//! Servers started, stopped and said to be in use, as JupyterHub's clients do it.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use berth_api::Code;
use berth_app::sessions::{HubAsker, NewSession, SessionChange, SessionView, hub_name};
use berth_app::{Caller, Error};
use berth_model::Reference;
use berth_model::session::State as Stage;
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::ask::{self, Options, Which};
use super::asker::{self, Asker};
use super::malformed;
use super::progress::Look;
use crate::failure::{Failure, Result};
use crate::request::{Content, Path, Signed};
use crate::server::Server;

/// No body that JupyterHub's clients send is larger.
pub const BODY_MAX: usize = 64 << 10;
/// How far ahead of ours a clock may be; JupyterHub allows the same.
const AHEAD_MAX: SignedDuration = SignedDuration::from_mins(59);
/// What is to be removed has this long to stop; after that it stays on the list.
const STOPPED_BY: Duration = Duration::from_secs(600);

pub async fn start_default(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(name): Path<String>,
    Content(body): Content<BODY_MAX>,
) -> Result<StatusCode> {
    start(&server, &caller, &name, &Which::default_one()?, &body).await
}

pub async fn start_named(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path((name, which)): Path<(String, String)>,
    Content(body): Content<BODY_MAX>,
) -> Result<StatusCode> {
    start(&server, &caller, &name, &Which::named(&which)?, &body).await
}

async fn start(
    server: &Server,
    caller: &Caller,
    name: &str,
    which: &Which,
    body: &[u8],
) -> Result<StatusCode> {
    let person = ask::person(server, caller, name).await?;
    if person.id != caller.id() {
        return Err(Failure::new(Code::AuthNotAllowed)
            .detail("A server runs as its owner, so nobody else starts it."));
    }
    let options = Options::read(body)?;
    let servers = own_at(server, caller, &options).await?;
    if let Some(known) = which.among(&servers) {
        return start_again(server, caller, known, options).await;
    }
    let (site, profile) = ask::place(server, caller, &options).await?;
    let new = NewSession {
        name: Some(which.session().clone()),
        profile,
        environment: options.environment,
        project: options.project.map(Reference::Name),
        inside: None,
    };
    match server.app.start_session(caller, &site, new).await {
        Ok(made) => Ok(begun(&made.value)),
        // Somebody else asked at the same time, and was faster.
        Err(Error::NameTaken(_)) => Ok(StatusCode::ACCEPTED),
        Err(error) => Err(error.into()),
    }
}

/// The caller's servers; at one site, if they name it.
async fn own_at(server: &Server, caller: &Caller, options: &Options) -> Result<Vec<SessionView>> {
    let mut servers = ask::servers_of(server, caller, &caller.person).await?;
    if let Some(site) = &options.site {
        servers.retain(|one| one.place.site.name.as_str() == site);
    }
    Ok(servers)
}

async fn start_again(
    server: &Server,
    caller: &Caller,
    known: &SessionView,
    options: Options,
) -> Result<StatusCode> {
    match known.session.state {
        Stage::Waiting | Stage::Starting => return Ok(StatusCode::ACCEPTED),
        Stage::Ready => return Err(malformed("The server is already running.")),
        Stage::Stopping => return Err(malformed("The server is pending stop.")),
        Stage::Stopped | Stage::Failed => {}
    }
    let (site, session) = (known.session.site.into(), known.session.id.into());
    let Options {
        profile,
        environment,
        ..
    } = options;
    let app = &server.app;
    let view = app.restart_session(caller, &site, &session, profile, environment, None);
    Ok(begun(&view.await?))
}

fn begun(view: &SessionView) -> StatusCode {
    match view.session.state {
        Stage::Ready => StatusCode::CREATED,
        _ => StatusCode::ACCEPTED,
    }
}

pub async fn stop_default(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(name): Path<String>,
    Content(body): Content<BODY_MAX>,
) -> Result<StatusCode> {
    let person = ask::person(&server, &caller, &name).await?;
    if is_to_be_removed(&body)? {
        return Err(malformed("The server without a name cannot be removed."));
    }
    let servers = ask::servers_of(&server, &caller, &person).await?;
    match Which::default_one()?.among(&servers) {
        Some(known) => stop(&server, &caller, known, false).await,
        // Everybody has one, started or not.
        None => Ok(StatusCode::NO_CONTENT),
    }
}

pub async fn stop_named(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path((name, which)): Path<(String, String)>,
    Content(body): Content<BODY_MAX>,
) -> Result<StatusCode> {
    let person = ask::person(&server, &caller, &name).await?;
    let which = Which::named(&which)?;
    let remove = is_to_be_removed(&body)?;
    let servers = ask::servers_of(&server, &caller, &person).await?;
    let known = which.among(&servers).ok_or_else(ask::no_server)?;
    stop(&server, &caller, known, remove).await
}

#[derive(Debug, Default, Deserialize)]
struct StopBody {
    #[serde(default)]
    remove: bool,
}

fn is_to_be_removed(body: &[u8]) -> Result<bool> {
    Ok(ask::json::<StopBody>(body)?.unwrap_or_default().remove)
}

async fn stop(
    server: &Server,
    caller: &Caller,
    known: &SessionView,
    remove: bool,
) -> Result<StatusCode> {
    let (site, session) = (known.session.site.into(), known.session.id.into());
    let app = &server.app;
    let state = match known.session.state {
        Stage::Waiting | Stage::Starting | Stage::Ready => {
            let change = SessionChange::Stop { reason: None };
            let view = app.change_session(caller, &site, &session, change).await?;
            view.session.state
        }
        state => state,
    };
    if !state.is_live() {
        if remove {
            app.remove_session(caller, &site, &session).await?;
        }
        return Ok(StatusCode::NO_CONTENT);
    }
    if remove {
        tokio::spawn(remove_once_stopped(Look::new(server, caller, known)));
    }
    Ok(StatusCode::ACCEPTED)
}

/// A server that is killed before this is done leaves the session on the list, stopped.
async fn remove_once_stopped(mut look: Look) {
    let done = async {
        loop {
            let view = look.now().await?;
            if !view.session.state.is_live() {
                return look.remove().await;
            }
            if !look.is_changed().await {
                return Ok(());
            }
        }
    };
    if let Ok(Err(error)) = tokio::time::timeout(STOPPED_BY, done).await {
        tracing::warn!("a stopped session was not removed: {}", error.cause());
    }
}

#[derive(Debug, Deserialize)]
struct ActivityBody {
    last_activity: Option<Timestamp>,
    #[serde(default)]
    servers: BTreeMap<String, Acted>,
}

#[derive(Debug, Deserialize)]
struct Acted {
    last_activity: Timestamp,
}

/// Says when something was last done in servers. Of a person as such nothing is kept.
pub async fn note_activity(
    State(server): State<Server>,
    asker: Asker,
    Path(name): Path<String>,
    Content(body): Content<BODY_MAX>,
) -> Result<StatusCode> {
    // Whose it is comes first: to others nothing of it exists, whatever they say.
    let person = match &asker {
        Asker::Person(caller) => Some(ask::person(&server, caller, &name).await?),
        Asker::Hub(_) => None,
    };
    let said: ActivityBody = ask::json(&body)?.ok_or_else(ask::not_an_object)?;
    if said.last_activity.is_none() && said.servers.is_empty() {
        return Err(malformed(
            "The body must have at least one of `last_activity` or `servers`.",
        ));
    }
    let now = server.app.now();
    let moments = said.servers.values().map(|one| one.last_activity);
    for at in moments.chain(said.last_activity) {
        if now.duration_until(at) > AHEAD_MAX {
            return Err(malformed("Nothing was done in the future."));
        }
    }
    let (caller, person) = match (asker, person) {
        (Asker::Person(caller), Some(person)) => (caller, person),
        (Asker::Hub(asker), _) => return note_own(&server, &asker, &name, &said).await,
        (Asker::Person(_), None) => return Err(ask::nobody()),
    };
    let servers = ask::servers_of(&server, &caller, &person).await?;
    let mut acted = Vec::new();
    for (name, one) in &said.servers {
        let known = Which::told(name)?.among(&servers).cloned();
        let known = known.ok_or_else(|| malformed(format!("There is no server `{name}`.")))?;
        acted.push((known, one.last_activity));
    }
    for (view, at) in acted {
        let (site, session) = (view.session.site.into(), view.session.id.into());
        let noted = server.app.note_activity(&caller, &site, &session, at);
        noted.await?;
    }
    Ok(StatusCode::OK)
}

/// A session's own server speaks of itself, and of nothing else.
async fn note_own(
    server: &Server,
    shown: &HubAsker,
    name: &str,
    said: &ActivityBody,
) -> Result<StatusCode> {
    let HubAsker::Server { session, owner, .. } = shown else {
        return Err(asker::not_for_this());
    };
    let own = hub_name(session);
    if owner.login.as_str() != name || said.servers.keys().any(|named| named != own) {
        return Err(asker::not_for_this());
    }
    if let Some(acted) = said.servers.get(own) {
        let noted = server.app.hub_activity(session.id, acted.last_activity);
        noted.await?;
    }
    Ok(StatusCode::OK)
}
