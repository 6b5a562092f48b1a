//! Signing in and out, and identifying the caller of a request.

use berth_engine::rights::Action;
use berth_model::audit::Actor;
use berth_model::event::{Audience, EventKind};
use berth_model::person::{Person, PersonState, Scope};
use berth_model::site::{JoinRequest, Membership, Site};
use berth_model::{LoginName, SignInId};
use berth_store::{people, sign_ins, sites};
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{random_text, stored_hash};
use crate::App;
use crate::caller::{Caller, Via};
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::record::{By, Change};
use crate::transact::transact;

/// The secret in a browser's cookie.
#[derive(Clone)]
pub struct SessionToken(String);

impl std::fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionToken")
    }
}

impl SessionToken {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether the text has the form of a token that Berth makes.
    pub fn is_well_formed(&self) -> bool {
        super::is_random_text(&self.0)
    }

    /// The token that a page must send back with every change. Another site can make the browser send the cookie, but
    /// can neither read the cookie nor compute this token.
    pub fn csrf_token(&self) -> String {
        let digest = Sha256::new()
            .chain_update(b"berth csrf\n")
            .chain_update(self.0.as_bytes())
            .finalize();
        digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    pub fn accepts_csrf(&self, given: &str) -> bool {
        self.csrf_token().as_bytes().ct_eq(given.as_bytes()).into()
    }
}

#[derive(Debug, Clone)]
pub struct SignedIn {
    pub person: Person,
    pub token: SessionToken,
    pub expires_at: Timestamp,
}

/// How stale "last seen" may get before it is written again. Without this, every request would cause a write.
const SEEN_PRECISION: SignedDuration = SignedDuration::from_mins(5);

/// The sites that a person belongs to, and the sites that they asked to join.
#[derive(Debug, Clone)]
pub struct Belonging {
    pub memberships: Vec<(Site, Membership)>,
    /// Requests to join that nobody has answered yet.
    pub asked: Vec<(Site, JoinRequest)>,
}

impl App {
    /// Checks a password. The answer and its duration are the same whether the account exists or not. The attempt is
    /// counted before anything is hashed.
    pub async fn sign_in(
        &self,
        login: &LoginName,
        password: &SecretString,
        origin: &str,
    ) -> Result<SignedIn> {
        let now = self.now();
        let mut reader = self.store.read().await?;
        let person = people::by_login(&mut reader, login)
            .await?
            .filter(|p| p.state == PersonState::Active);
        let hash = match &person {
            Some(person) => people::password_hash(&mut reader, person.id).await?,
            None => None,
        };
        drop(reader);
        let attempt = self.begin_attempt(login, person.as_ref(), origin).await?;
        let right = self
            .check_password(password.expose_secret(), hash.as_deref())
            .await?;
        let Some(person) = person.filter(|_| right) else {
            return Err(Error::WrongCredentials);
        };
        let token = SessionToken(random_text());
        let session = sign_ins::SignIn {
            id: SignInId(fresh(now)),
            person: person.id,
            created_at: now,
            last_seen_at: now,
            expires_at: now + self.settings.session_absolute,
        };
        let by = By {
            actor: Actor::Person(person.id),
            origin: Some(origin.to_owned()),
            once: None,
        };
        transact!(self, tx => {
            self.attempt_succeeded(&mut tx, &person, &attempt).await?;
            sign_ins::insert(&mut tx, &session, &stored_hash(&token.0)).await?;
            self.record(&mut tx, by.clone(), Change::new("session.start", None, person.id)).await
        })?;
        Ok(SignedIn {
            person,
            token,
            expires_at: session.expires_at,
        })
    }

    /// The caller to whom the first valid one of these cookies belongs.
    pub async fn caller_by_sessions(
        &self,
        tokens: &[SessionToken],
        origin: &str,
    ) -> Result<(Caller, SessionToken)> {
        let now = self.now();
        let hashes: Vec<_> = tokens.iter().map(|token| stored_hash(&token.0)).collect();
        let mut reader = self.store.read().await?;
        let all = hashes.iter().map(|hash| hash.to_vec()).collect();
        let mut found = sign_ins::find(&mut reader, all).await?;
        drop(reader);
        found.retain(|one| {
            one.person.state == PersonState::Active
                && now < one.session.expires_at
                && now < one.session.last_seen_at + self.settings.session_idle
        });
        let good = tokens.iter().zip(&hashes).find_map(|(token, hash)| {
            let one = found.iter().find(|one| one.token_hash == *hash)?;
            Some((token, one.clone()))
        });
        let (
            token,
            sign_ins::Found {
                session, person, ..
            },
        ) = good.ok_or(Error::Expired)?;
        if now > session.last_seen_at + SEEN_PRECISION {
            transact!(self, tx => {
                Ok(sign_ins::touch(&mut tx, session.id, now).await?)
            })?;
        }
        let scopes = Scope::ALL.into_iter().collect();
        let caller = Caller {
            person,
            via: Via::Session(session.id),
            scopes,
            origin: origin.to_owned(),
            once: None,
            version: None,
        };
        Ok((caller, token.clone()))
    }

    pub async fn sign_out(&self, caller: &Caller) -> Result<()> {
        let Via::Session(id) = caller.via else {
            return Err(Error::NotAllowed {
                needs: "only a browser session can sign out; revoke a token instead".into(),
            });
        };
        transact!(self, tx => {
            sign_ins::end(&mut tx, id).await?;
            let change = Change::new("session.end", None, caller.id());
            self.record(&mut tx, caller, change.tell(EventKind::SignedOut, Audience::Person(caller.id()))).await
        })
    }

    /// The memberships and open join requests of the caller's own account.
    pub async fn me(&self, caller: &Caller) -> Result<Belonging> {
        caller.may(Action::SeeOwnAccount, true, "account")?;
        let mut reader = self.store.read().await?;
        Ok(Belonging {
            memberships: sites::memberships_of(&mut reader, caller.id()).await?,
            asked: sites::join_requests_by(&mut reader, caller.id()).await?,
        })
    }
}
