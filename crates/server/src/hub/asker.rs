//! Who asks the hub: a person with a token of Berth's or signed in, a session's own server, or that server about a visitor.

use axum::extract::FromRequestParts;
use berth_api::Code;
use berth_app::Caller;
use berth_app::queue::AttemptKind;
use berth_app::sessions::{HUB_WORD, HubAsker};
use berth_model::RunId;
use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::failure::{Failure, Result};
use crate::request::Signed;
use crate::server::Server;

/// That a request came by the narrow way out of this run's sandbox.
#[derive(Debug, Clone, Copy)]
pub struct FromRun(pub RunId);

#[derive(Debug)]
pub enum Asker {
    Person(Box<Caller>),
    Hub(Box<HubAsker>),
}

impl FromRequestParts<Server> for Asker {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self> {
        let from = parts.extensions.get::<FromRun>().copied();
        if let Some(word) = word(parts) {
            let asker = server.app.hub_asker(word).await?.ok_or_else(not_good)?;
            if let Some(FromRun(run)) = from {
                is_its_own(server, &asker, run).await?;
            }
            return Ok(Asker::Hub(Box::new(asker)));
        }
        // No token of a person's is any use from inside a sandbox: what runs there acts for nobody.
        if from.is_some() {
            return Err(not_good());
        }
        let Signed(caller) = Signed::from_request_parts(parts, server).await?;
        Ok(Asker::Person(Box::new(caller)))
    }
}

/// Refuses what names another session than the one whose run asks.
pub async fn is_its_own(server: &Server, asker: &HubAsker, run: RunId) -> Result<()> {
    let is_own = match asker {
        HubAsker::Server { run: own, .. } => *own == run,
        HubAsker::Visitor { session, .. } => server.app.is_run_of(session, run).await?,
    };
    if !is_own {
        server.app.note_attempt(run, AttemptKind::ForeignWord);
    }
    is_own.then_some(()).ok_or_else(not_good)
}

fn word(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (_, word) = value.trim().split_once(' ')?;
    Some(word.trim()).filter(|word| word.starts_with(HUB_WORD))
}

fn not_good() -> Failure {
    Failure::new(Code::AuthTokenInvalid)
}

/// A word that names somebody, and is good for nothing else.
pub fn not_for_this() -> Failure {
    Failure::new(Code::AuthNotAllowed)
        .detail("A session's server may speak of itself, and of nothing else.")
}
