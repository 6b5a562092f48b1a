//! Passwords: argon2id, changed by their owner, reset by an admin's one-time link.

use berth_engine::rights::Action;
use berth_model::audit::Actor;
use berth_model::event::{Audience, EventKind};
use berth_model::person::{Person, PersonState};
use berth_model::reference::PersonReference;
use berth_model::{FieldErrors, PersonId};
use berth_store::{Conn, people, sign_ins};
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::{random_text, stored_hash};
use crate::App;
use crate::caller::{Caller, Via};
use crate::error::{Error, Result};
use crate::record::{By, Change};
use crate::transact::transact;

/// A secret text that allows its holder to set a new password, once.
#[derive(Debug, Clone)]
pub struct ResetLink {
    pub token: SecretString,
    pub expires_at: Timestamp,
}

const LINK_LIFE: SignedDuration = SignedDuration::from_hours(48);
/// Argon2 reads the whole password. Without a bound, a long one would be a cheap way to keep a core busy.
const PASSWORD_MAX_BYTES: usize = 1024;

/// The hash to verify against when there is no account, so that the answer takes equally long. No password matches it.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

impl App {
    pub(super) async fn check_password(&self, given: &str, hash: Option<&str>) -> Result<bool> {
        let exists = hash.is_some();
        let hash = hash.unwrap_or(NOBODY).to_owned();
        let verified = self.hasher.verify(given.into(), hash).await?;
        Ok(verified && exists)
    }

    pub(crate) async fn hash_password(
        &self,
        field: &str,
        password: &SecretString,
    ) -> Result<String> {
        let text = password.expose_secret();
        let least = self.settings.password_min_length;
        if text.chars().count() < least {
            return Err(FieldErrors::one(
                field,
                format!("a password needs at least {least} characters"),
            )
            .into());
        }
        if text.len() > PASSWORD_MAX_BYTES {
            return Err(FieldErrors::one(
                field,
                format!("a password has at most {PASSWORD_MAX_BYTES} bytes"),
            )
            .into());
        }
        self.hasher.hash(password.clone()).await
    }

    /// Changes the caller's own password. Ends all their other sign-ins, and revokes their API tokens on request.
    pub async fn change_password(
        &self,
        caller: &Caller,
        current: &SecretString,
        new: &SecretString,
        revoke_tokens: bool,
    ) -> Result<()> {
        caller.may(Action::ChangeOwnAccount, true, "account")?;
        let mut reader = self.store.read().await?;
        let hash = people::password_hash(&mut reader, caller.id()).await?;
        drop(reader);
        let person = &caller.person;
        let attempt = self
            .begin_attempt(&person.login, Some(person), &caller.origin)
            .await?;
        if !self
            .check_password(current.expose_secret(), hash.as_deref())
            .await?
        {
            return Err(FieldErrors::one("current", "this is not your current password").into());
        }
        let hash = self.hash_password("new", new).await?;
        transact!(self, tx => {
            self.attempt_succeeded(&mut tx, person, &attempt).await?;
            self.put_password(&mut tx, caller.id(), &hash).await?;
            if let Via::Session(id) = caller.via {
                sign_ins::end_others(&mut tx, caller.id(), id).await?;
            } else {
                sign_ins::end_all(&mut tx, caller.id()).await?;
            }
            let tokens_revoked = match revoke_tokens {
                true => sign_ins::revoke_all_tokens(&mut tx, caller.id(), self.now()).await?,
                false => 0,
            };
            let change = Change::new("person.password", None, caller.id())
                .after(json!({ "tokens_revoked": tokens_revoked }));
            self.record(&mut tx, caller, change.tell(EventKind::SignedOut, Audience::Person(caller.id()))).await
        })
    }

    pub(crate) async fn put_password(
        &self,
        conn: &mut Conn,
        person: PersonId,
        hash: &str,
    ) -> Result<()> {
        Ok(people::set_password(conn, person, hash, self.now()).await?)
    }

    /// Makes a one-time link for a person who cannot sign in. Its holder can act as that person, so it is shown once.
    pub async fn make_reset_link(
        &self,
        caller: &Caller,
        person: &PersonReference,
    ) -> Result<(Person, ResetLink)> {
        caller.may(Action::ManagePeople, false, "person")?;
        let mut reader = self.store.read().await?;
        let person = self.person(&mut reader, person).await?;
        drop(reader);
        if person.state != PersonState::Active {
            return Err(Error::InUse(format!(
                "`{}` is suspended; restore the account first",
                person.login
            )));
        }
        let link = transact!(self, tx => {
            let link = self.new_link(&mut tx, person.id).await?;
            self.record(&mut tx, caller, Change::new("person.reset_link", None, person.id)).await?;
            Ok(link)
        })?;
        Ok((person, link))
    }

    pub(crate) async fn new_link(&self, conn: &mut Conn, person: PersonId) -> Result<ResetLink> {
        let now = self.now();
        let link = ResetLink {
            token: random_text().into(),
            expires_at: now + LINK_LIFE,
        };
        let hash = stored_hash(link.token.expose_secret());
        sign_ins::insert_link(conn, person, &hash, now, link.expires_at).await?;
        Ok(link)
    }

    /// Sets a password by a one-time link. Ends all sign-ins and revokes all API tokens of that person: anybody who
    /// knew the old password may have made some.
    pub async fn reset_password(
        &self,
        token: &SecretString,
        new: &SecretString,
        origin: &str,
    ) -> Result<()> {
        // Hashing is expensive, so the link is checked first.
        let token = stored_hash(token.expose_secret());
        let mut reader = self.store.read().await?;
        if !sign_ins::is_link(&mut reader, &token, self.now()).await? {
            return Err(Error::LinkSpent);
        }
        drop(reader);
        let hash = self.hash_password("new_password", new).await?;
        let by = By {
            actor: Actor::Anonymous,
            origin: Some(origin.to_owned()),
            once: None,
        };
        transact!(self, tx => {
            let taken = sign_ins::take_link(&mut tx, &token, self.now()).await?;
            let person = taken.ok_or(Error::LinkSpent)?;
            self.put_password(&mut tx, person, &hash).await?;
            sign_ins::end_all(&mut tx, person).await?;
            let tokens_revoked = sign_ins::revoke_all_tokens(&mut tx, person, self.now()).await?;
            if let Some(person) = people::get(&mut tx, person).await? {
                self.forget_attempts(&mut tx, &person.login).await?;
            }
            let change = Change::new("person.password_reset", None, person)
                .after(json!({ "tokens_revoked": tokens_revoked }));
            self.record(&mut tx, by.clone(), change.tell(EventKind::SignedOut, Audience::Person(person))).await
        })
    }
}
