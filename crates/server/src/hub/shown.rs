//! People, servers and tokens in JupyterHub's shapes.

use berth_api::paths;
use berth_app::sessions::{HubAsker, SessionView, hub_name};
use berth_app::{Caller, Via};
use berth_model::person::{Person, Scope, Token};
use berth_model::session::State;
use serde_json::{Map, Value, json};

use super::API;
use crate::server::Server;

pub fn user(
    server: &Server,
    person: &Person,
    servers: &[SessionView],
    with_stopped: bool,
) -> Value {
    let mut listed = Map::new();
    for view in servers {
        let is_live = view.session.state.is_live();
        let name = hub_name(&view.session);
        let is_known = listed.contains_key(name);
        if is_live || (with_stopped && !is_known) {
            listed.insert(name.to_owned(), self::server(server, person, view));
        }
    }
    let default = listed.get("");
    let part = |part: &str| default.map_or(Value::Null, |one| one[part].clone());
    let is_ready = default.is_some_and(|one| one["ready"] == true);
    let roles: &[&str] = match person.global_admin {
        true => &["user", "admin"],
        false => &["user"],
    };
    json!({
        "kind": "user",
        "name": person.login,
        "admin": person.global_admin,
        "roles": roles,
        "groups": [],
        "server": if is_ready { part("url") } else { Value::Null },
        "pending": part("pending"),
        "created": person.created_at,
        "last_activity": servers.iter().map(|one| one.session.active_at).max(),
        "auth_state": null,
        "user_info": { "name": person.display_name, "display_name": person.display_name },
        "servers": listed,
    })
}

pub fn server(server: &Server, person: &Person, view: &SessionView) -> Value {
    let session = &view.session;
    let name = hub_name(&view.session);
    let progress = progress_path(server, person, name);
    let public = server.config.public_url.as_ref();
    let run = view.run.as_ref().filter(|run| !run.state.is_over());
    json!({
        "name": name,
        "display_name": name,
        "full_name": format!("{}/{name}", person.login),
        "last_activity": session.active_at,
        "started": run.map(|run| run.began),
        "pending": pending(session.state),
        "ready": session.state == State::Ready,
        "stopped": !session.state.is_live(),
        "url": view.url,
        "full_url": view.url,
        "progress_url": progress,
        "full_progress_url": public.map(|url| format!("{}{progress}", url.as_str())),
        "user_options": {
            "site": view.place.site.name,
            "profile": session.profile,
            "environment": session.environment,
        },
        "state": { "session": session.id, "state": session.state, "said": session.said },
    })
}

fn progress_path(server: &Server, person: &Person, name: &str) -> String {
    let path = match name {
        "" => paths::fill("/users/{}/server/progress", &[&person.login]),
        name => paths::fill("/users/{}/servers/{}/progress", &[&person.login, &name]),
    };
    format!("{}{API}{path}", server.config.base_path.as_str())
}

fn pending(state: State) -> Option<&'static str> {
    match state {
        State::Waiting | State::Starting => Some("spawn"),
        State::Stopping => Some("stop"),
        State::Ready | State::Stopped | State::Failed => None,
    }
}

/// What the caller may do, in JupyterHub's words for it.
pub fn scopes(caller: &Caller) -> Vec<String> {
    let own = |scope: &&str| format!("{scope}!user={}", caller.person.login);
    let mut all = Vec::new();
    for scope in &caller.scopes {
        all.extend(in_its_words(*scope).iter().map(own));
    }
    all.sort();
    all
}

pub fn in_its_words(scope: Scope) -> &'static [&'static str] {
    match scope {
        Scope::Read => &["read:users", "read:servers", "read:tokens"],
        Scope::Book => &["access:servers", "servers", "users:activity"],
        Scope::Manage => &["tokens"],
    }
}

/// Whom a word names, for the server that asks.
pub fn asker(asker: &HubAsker) -> Value {
    let (person, scope, session, owner) = match asker {
        HubAsker::Server { session, owner, .. } => (owner, "users:activity", session, owner),
        HubAsker::Visitor {
            session,
            owner,
            person,
        } => (person, "access:servers", session, owner),
    };
    let server = format!("{}/{}", owner.login, hub_name(session));
    json!({
        "kind": "user",
        "name": person.login,
        "admin": person.global_admin,
        "groups": [],
        "user_info": { "name": person.display_name, "display_name": person.display_name },
        "scopes": [format!("{scope}!server={server}")],
        "session_id": null,
        "token_id": null,
    })
}

pub fn token_id(caller: &Caller) -> Option<String> {
    match caller.via {
        Via::Token(id) => Some(id.to_string()),
        Via::Session(_) | Via::Direct => None,
    }
}

pub fn token(owner: &Person, token: &Token) -> Value {
    json!({
        "user": owner.login,
        "id": token.id,
        "kind": "api_token",
        "roles": [],
        "scopes": token.scopes,
        "created": token.created_at,
        "last_activity": token.last_used_at,
        "expires_at": token.expires_at,
        "note": token.label,
        "session_id": null,
        "oauth_client": "JupyterHub",
    })
}
