//! OAuth, as a session's server does it to learn who its visitor is.
//!
//! Whoever comes there was let in by Berth already, so nobody is asked anything: this is a formality, and a narrow one. The
//! client is the session, its secret the server's own word, where it leads back to is our own record of its address, and
//! what is handed out names one visitor to one session.

use axum::Json;
use axum::extract::{FromRequestParts, Request, State};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use berth_api::paths;
use berth_app::sessions::{HUB_CLIENT, HubAsker};
use berth_app::{Caller, Error};
use berth_model::Text;
use berth_model::session::Session;
use berth_proxy::Label;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::asker::{FromRun, is_its_own};
use super::malformed;
use super::servers::BODY_MAX;
use crate::failure::Result;
use crate::request::{Content, Identity, Query, identify};
use crate::server::Server;
use crate::visits::hop;

/// The longest that is taken of what is only handed back.
const STATE_MAX: usize = 4096;
const CHALLENGE_MAX: usize = 128;

#[derive(Debug, Deserialize)]
pub struct Asked {
    client_id: String,
    redirect_uri: String,
    response_type: String,
    state: Option<String>,
    code_challenge: Option<String>,
    code_challenge_method: Option<String>,
}

/// Sends a browser back to the session with a code, if whoever is signed in may be there.
pub async fn authorize(State(server): State<Server>, request: Request) -> Result<Response> {
    let (mut parts, _) = request.into_parts();
    let Query(asked) = Query::<Asked>::from_request_parts(&mut parts, &server).await?;
    let label = client(&asked.client_id).ok_or_else(|| malformed("There is no such client."))?;
    let Identity::Known { caller, .. } = identify(&mut parts, &server).await else {
        // The session's own door leads to where people sign in, and back.
        let door = paths::open_session(&label);
        let base = server.config.base_path.as_str();
        return Ok(hop::see_other(&format!("{base}{door}")));
    };
    if asked.response_type != "code" {
        return Err(malformed(
            "Only codes are handed out: `response_type` is `code`.",
        ));
    }
    let challenge = match (
        &asked.code_challenge,
        asked.code_challenge_method.as_deref(),
    ) {
        (None, None) => None,
        (Some(challenge), Some("S256")) if challenge.len() <= CHALLENGE_MAX => {
            Some(challenge.clone())
        }
        _ => return Err(malformed("Only challenges by `S256` are taken.")),
    };
    if asked
        .state
        .as_ref()
        .is_some_and(|state| state.len() > STATE_MAX)
    {
        return Err(malformed("The state is too long."));
    }
    let (_, session) = server.app.session_at(&caller, label.as_str()).await?;
    let callback = callback(&server, &label);
    if asked.redirect_uri != callback {
        return Err(malformed("The session is not at this `redirect_uri`."));
    }
    let reason = reason(&server, &caller, &session).await?;
    let invitation = server.app.invite(&caller, label.as_str(), reason).await?;
    let code = server.app.hub_code(&invitation.code, challenge)?;
    let state = asked.state.as_deref().map(|state| ("state", state));
    let fields: Vec<_> = [("code", code.as_str())].into_iter().chain(state).collect();
    Ok(hop::see_other(&format!(
        "{callback}{}",
        hop::query(&fields)
    )))
}

fn client(id: &str) -> Option<Label> {
    id.strip_prefix(HUB_CLIENT)?.parse().ok()
}

fn callback(server: &Server, label: &Label) -> String {
    format!("{}oauth_callback", server.visits.url(label))
}

/// Who came to another's session for a reason comes for the same one; to one's own nobody needs any.
async fn reason(server: &Server, caller: &Caller, session: &Session) -> Result<Option<Text>> {
    if session.access(caller.id()).is_some() {
        return Ok(None);
    }
    let (site, id) = (session.site.into(), session.id.into());
    let opened = server.app.session_visits(caller, &site, &id).await?;
    let mut own = opened.visits.into_iter().filter(|one| one.is_open);
    let own = own.find(|one| one.visit.person == caller.id());
    let reason = own.and_then(|one| one.visit.reason);
    Ok(Some(reason.ok_or(Error::ReasonMissing)?))
}

#[derive(Debug, Deserialize)]
struct Spent {
    client_id: String,
    client_secret: String,
    grant_type: String,
    code: String,
    redirect_uri: String,
    code_verifier: Option<String>,
}

/// Hands out a word for a code, to the session's own server.
pub async fn token(
    State(server): State<Server>,
    from: Option<axum::Extension<FromRun>>,
    Content(body): Content<BODY_MAX>,
) -> Result<Response> {
    let text = std::str::from_utf8(&body).unwrap_or_default();
    let Ok(spent) = berth_api::parse::query::<Spent>(text) else {
        return Ok(refused("invalid_request"));
    };
    if spent.grant_type != "authorization_code" {
        return Ok(refused("unsupported_grant_type"));
    }
    let asker = server.app.hub_asker(&spent.client_secret).await?;
    let Some(asker @ HubAsker::Server { .. }) = asker else {
        return Ok(refused("invalid_client"));
    };
    if let Some(axum::Extension(FromRun(run))) = from {
        is_its_own(&server, &asker, run).await?;
    }
    let label = client(&spent.client_id);
    let own = asker.session().label.as_str();
    let Some(label) = label.filter(|label| label.as_str() == own) else {
        return Ok(refused("invalid_client"));
    };
    if spent.redirect_uri != callback(&server, &label) {
        return Ok(refused("invalid_grant"));
    }
    let proof = spent.code_verifier.map(|verifier| {
        let digest = Sha256::digest(verifier.as_bytes());
        URL_SAFE_NO_PAD.encode(digest)
    });
    let entered = server
        .app
        .hub_enter(label.as_str(), &spent.code, proof.as_deref());
    let Some((word, entered)) = entered.await? else {
        return Ok(refused("invalid_grant"));
    };
    let left = entered.expires_at.duration_since(server.app.now());
    let body = json!({
        "access_token": word,
        "token_type": "Bearer",
        "expires_in": left.as_secs().max(0),
        "scope": "",
    });
    Ok(Json(body).into_response())
}

/// As OAuth says it (RFC 6749, 5.2).
fn refused(error: &str) -> Response {
    let body = json!({ "error": error });
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}
