//! The way in: from a session's address to Berth's own, where people are signed in, and back with a code.
//!
//! ```text
//! LABEL.sessions…/lab   no key                          -> 303 to berth…/open/LABEL?to=/lab
//! berth…/open/LABEL     signed in, and may come in      -> 303 to LABEL.sessions…/.berth/enter?code=…&to=/lab
//! LABEL.sessions…/.berth/enter   the code is spent for a key -> 303 to LABEL.sessions…/lab, with the key as a cookie
//! ```
//!
//! The code is good once, for a minute, and for one session. Where somebody is sent is made of our own record of the
//! session's address and a path; nothing of what was asked names a host.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use berth_api::{Code, paths};
use berth_app::sessions::{Entered, Invitation, Key};
use berth_app::{Caller, Error};
use berth_model::SessionId;
use berth_model::session::State as SessionState;
use berth_proxy::{Addressing, Label};
use http::header::{CACHE_CONTROL, LOCATION, REFERRER_POLICY, SET_COOKIE};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};

use super::path::Inside;
use super::{Visits, is_navigation, who};
use crate::failure::{Failure, Result};
use crate::request::{Identity, identify};
use crate::router::unknown;
use crate::server::Server;
use crate::throttle::admit_code;

/// What is Berth's own at a session's address.
pub const RESERVED: &str = "/.berth/";
const ENTER: &str = "enter";

/// Sends a browser to Berth's own address, to be let in.
pub fn to_berth(server: &Server, label: &Label, to: &Inside) -> Response {
    let home = &server.visits.home;
    let door = paths::open_session(&label);
    see_other(&format!("{home}{door}{}", query(&[("to", to.as_str())])))
}

/// Where a browser spends an invitation.
pub fn way_in(visits: &Visits, invitation: &Invitation, to: &Inside) -> Option<String> {
    let label: Label = invitation.session.label.parse().ok()?;
    let code = ("code", invitation.code.reveal());
    let query = query(&[code, ("to", to.as_str())]);
    let door = visits.addressing().url(&label);
    // A session's own address ends in a slash, and what is ours begins with one.
    Some(format!(
        "{}{RESERVED}{ENTER}{query}",
        door.trim_end_matches('/')
    ))
}

/// Reads where somebody wants to go.
pub fn wanted(to: Option<&str>) -> Inside {
    to.map_or_else(Inside::front, Inside::read)
}

/// Berth's own door to a session: shows who it is, and goes on with a code.
pub async fn open(
    State(server): State<Server>,
    label: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let (mut parts, _) = request.into_parts();
    let label = label.ok().and_then(|Path(label)| label.parse().ok());
    let Some(label) = label else {
        return unknown().await.into_response();
    };
    let to = wanted(Said::of(&parts).to.as_deref());
    let Identity::Known { caller, .. } = identify(&mut parts, &server).await else {
        return to_sign_in(&server, &label, &to);
    };
    match let_in(&server, &caller, &label, &to).await {
        Ok(response) => response,
        Err(failure) => failure.into_response(),
    }
}

async fn let_in(server: &Server, caller: &Caller, label: &Label, to: &Inside) -> Result<Response> {
    let (_, session) = server.app.session_at(caller, label.as_str()).await?;
    if session.state != SessionState::Ready {
        return Ok(to_waiting_page(server, session.id, to, None));
    }
    match server.app.invite(caller, label.as_str(), None).await {
        Ok(invitation) => way_in(&server.visits, &invitation, to)
            .map(|way| see_other(&way))
            .ok_or_else(|| Failure::new(Code::ObjectNotFound)),
        // Whoever comes as an admin says why, on a page.
        Err(Error::ReasonMissing) => {
            let ask = Some(("ask", "reason"));
            Ok(to_waiting_page(server, session.id, to, ask))
        }
        Err(error) => Err(error.into()),
    }
}

fn to_sign_in(server: &Server, label: &Label, to: &Inside) -> Response {
    if server.documents.app.is_none() {
        // There is no page to sign in at.
        return Failure::new(Code::AuthSignInRequired).into_response();
    }
    let next = paths::open_session(&label) + &query(&[("to", to.as_str())]);
    let base = server.config.base_path.as_str();
    see_other(&format!("{base}/sign-in{}", query(&[("next", &next)])))
}

fn to_waiting_page(
    server: &Server,
    session: SessionId,
    to: &Inside,
    ask: Option<(&str, &str)>,
) -> Response {
    let to = (!to.is_front()).then(|| ("to", to.as_str()));
    let fields: Vec<(&str, &str)> = ask.into_iter().chain(to).collect();
    let base = server.config.base_path.as_str();
    see_other(&format!("{base}/sessions/{session}{}", query(&fields)))
}

/// Answers for what is Berth's own at a session's address.
pub async fn own_page(
    server: &Server,
    label: &Label,
    page: &str,
    parts: &Parts,
) -> Result<Response> {
    let page = page.split('?').next().unwrap_or_default();
    if page != ENTER || parts.method != Method::GET {
        return Err(unknown().await);
    }
    admit_code(parts, server)?;
    let said = Said::of(parts);
    let to = wanted(said.to.as_deref());
    let code = Key::new(said.code.unwrap_or_default());
    let (key, entered) = match server.app.enter(label.as_str(), &code).await? {
        Some(entered) => entered,
        None => return spent(server, label, &to, parts).await,
    };
    let visits = &server.visits;
    let mut response = see_other(&door(visits.addressing(), label, &to));
    let cookie = cookie(server, label, &key, &entered)?;
    server.throttle.visit_keys.made(key.reveal());
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

/// A code that is good no more: who has come in already goes on, as after a step back; others are not let in.
async fn spent(server: &Server, label: &Label, to: &Inside, parts: &Parts) -> Result<Response> {
    if who(server, label, parts).await?.is_some() && is_navigation(parts) {
        return Ok(see_other(&door(server.visits.addressing(), label, to)));
    }
    Err(Failure::new(Code::SessionCodeSpent))
}

/// A place in a session, in full: our own record of its origin, and a path below its front door.
fn door(addressing: &Addressing, label: &Label, to: &Inside) -> String {
    let front = addressing.url(label);
    format!("{}{}", front.trim_end_matches('/'), to.as_str())
}

fn cookie(server: &Server, label: &Label, key: &Key, entered: &Entered) -> Result<HeaderValue> {
    let visits = &server.visits;
    let addressing = visits.addressing();
    let left = entered.expires_at.duration_since(server.app.now());
    let secure = if addressing.is_secure() {
        "; Secure"
    } else {
        ""
    };
    let text = format!(
        "{}={}; HttpOnly; SameSite=Lax; Path={}; Max-Age={}{secure}",
        visits.cookie,
        key.reveal(),
        addressing.base(label),
        left.as_secs().max(0),
    );
    let mut value = HeaderValue::from_str(&text)
        .map_err(|error| Failure::new(Code::ServerInternal).because(error))?;
    value.set_sensitive(true);
    Ok(value)
}

/// What an address may say beside its path. What cannot be read says nothing.
#[derive(Debug, Default, serde::Deserialize)]
struct Said {
    code: Option<String>,
    to: Option<String>,
}

impl Said {
    fn of(parts: &Parts) -> Said {
        let query = parts.uri.query().unwrap_or_default();
        berth_api::parse::query(query).unwrap_or_default()
    }
}

pub fn query(fields: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in fields {
        let before = if text.is_empty() { '?' } else { '&' };
        text.push(before);
        text.push_str(&paths::fill(&format!("{name}={{}}"), &[value]));
    }
    text
}

/// Sends a browser elsewhere. Where it came from is nobody's business, as its address may have held a code.
pub fn see_other(place: &str) -> Response {
    // Places are made of origins, labels and escaped fields, which a header may carry.
    let place = HeaderValue::from_str(place).unwrap_or_else(|_| HeaderValue::from_static("/"));
    let headers = [
        (LOCATION, place),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}
