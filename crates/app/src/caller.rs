//! The caller of a use case.

use std::collections::BTreeSet;

use berth_engine::rights::{Action, Standing, Verdict, decide};
use berth_model::audit::Actor;
use berth_model::person::{Person, Scope};
use berth_model::reference::PersonReference;
use berth_model::site::OutsiderView;
use berth_model::{PersonId, Reference, SignInId, TokenId};

use crate::error::{Error, Result};
use crate::once::Once;
use crate::version;

/// An authenticated person, and how they authenticated.
#[derive(Debug, Clone)]
pub struct Caller {
    pub person: Person,
    pub via: Via,
    /// All scopes for a browser's sign-in, otherwise the token's own.
    pub scopes: BTreeSet<Scope>,
    /// The client's address, if known, for the audit log.
    pub origin: String,
    /// The idempotency key of this request, if it has one.
    pub once: Option<Once>,
    /// The version that this request is meant for, if it names one.
    pub version: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    Session(SignInId),
    Token(TokenId),
    /// A command on the server's own machine, or a test.
    Direct,
}

impl Caller {
    /// A caller on the server's own machine, with all the rights of `person`.
    pub fn direct(person: Person) -> Self {
        let scopes = Scope::ALL.into_iter().collect();
        Self {
            person,
            via: Via::Direct,
            scopes,
            origin: "this machine".into(),
            once: None,
            version: None,
        }
    }

    pub fn id(&self) -> PersonId {
        self.person.id
    }

    /// Refuses a change that was made for another version than the current one.
    pub(crate) fn expects(&self, current: u64) -> Result<()> {
        version::expect(self.version, current)
    }

    /// Whether a reference names the caller.
    pub(crate) fn is(&self, person: &PersonReference) -> bool {
        match person {
            Reference::Id(id) => *id == self.id(),
            Reference::Name(login) => *login == self.person.login,
        }
    }

    pub(crate) fn actor(&self) -> Actor {
        Actor::Person(self.person.id)
    }

    pub(crate) fn origin_text(&self) -> String {
        match self.via {
            Via::Session(_) => format!("{} browser", self.origin),
            Via::Token(id) => format!("{} {id}", self.origin),
            Via::Direct => self.origin.clone(),
        }
    }

    /// Checks the permission table for something that belongs to no site.
    pub(crate) fn may(&self, action: Action, is_own: bool, what: &'static str) -> Result<()> {
        let standing = if self.person.global_admin {
            Standing::GlobalAdmin
        } else {
            Standing::Outsider(OutsiderView::Nothing)
        };
        verdict(decide(standing, is_own, &self.scopes, action), what)
    }
}

pub(crate) fn verdict(verdict: Verdict, what: &'static str) -> Result<()> {
    match verdict {
        Verdict::Yes => Ok(()),
        Verdict::NotAllowed { needs } => Err(Error::NotAllowed {
            needs: needs.to_owned(),
        }),
        Verdict::ScopeMissing { needs } => Err(Error::ScopeMissing {
            needs: needs.to_owned(),
        }),
        Verdict::NotFound => Err(Error::NotFound(what)),
    }
}
