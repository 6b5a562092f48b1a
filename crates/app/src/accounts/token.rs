//! API tokens: scoped, expiring, shown once, stored as a hash.

use std::collections::BTreeSet;

use berth_engine::rights::{Action, may_hand_on};
use berth_model::event::{Audience, EventKind};
use berth_model::person::{Person, PersonState, Scope, Token};
use berth_model::reference::PersonReference;
use berth_model::{FieldErrors, Text, TokenId};
use berth_store::sign_ins;
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;

use super::{random_text, stored_hash};
use crate::App;
use crate::caller::{Caller, Via};
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::record::Change;
use crate::transact::transact;

#[derive(Debug, Clone)]
pub struct NewToken {
    pub label: Text,
    pub scopes: BTreeSet<Scope>,
    pub expires_at: Timestamp,
}

/// Lets scanners recognise a token in a log or a repository.
const PREFIX: &str = "berth_";
const LIFE_MAX: SignedDuration = SignedDuration::from_hours(366 * 24);
const USED_PRECISION: SignedDuration = SignedDuration::from_mins(15);

/// Whether a text has the form of a token. Other texts are not looked up.
pub fn is_token(text: &str) -> bool {
    text.starts_with(PREFIX)
}

impl App {
    /// Creates a token. Only this answer contains the secret; a repeated request does not show it again.
    pub async fn create_token(
        &self,
        caller: &Caller,
        new: NewToken,
    ) -> Result<Made<(Token, Option<SecretString>)>> {
        caller.may(Action::ManageOwnTokens, true, "account")?;
        let now = self.now();
        if new.expires_at <= now || new.expires_at > now + LIFE_MAX {
            return Err(FieldErrors::one(
                "expires_at",
                "a token lives at most a year, and must not have ended yet",
            )
            .into());
        }
        if !may_hand_on(&caller.scopes, &new.scopes) {
            let needs = "a token cannot make one that may do more than itself".into();
            return Err(Error::NotAllowed { needs });
        }
        let secret = format!("{PREFIX}{}", random_text());
        let token = Token {
            id: TokenId(fresh(now)),
            person: caller.id(),
            label: new.label,
            scopes: new.scopes,
            created_at: now,
            expires_at: new.expires_at,
            last_used_at: None,
            revoked_at: None,
        };
        transact!(self, tx => {
            if let Some(earlier) = self.first_time(&mut tx, caller, token.id).await? {
                let known = sign_ins::tokens_of(&mut tx, caller.id()).await?;
                let token = known.into_iter().find(|token| token.id == earlier).ok_or(Error::IdempotencyMismatch)?;
                return Ok(Made::before((token, None)));
            }
            sign_ins::insert_token(&mut tx, &token, &stored_hash(&secret)).await?;
            self.record(&mut tx, caller, Change::new("token.create", None, token.id).after(&token)).await?;
            Ok(Made::now((token.clone(), Some(SecretString::from(secret.as_str())))))
        })
    }

    /// The caller to whom a token belongs, limited to the token's scopes.
    pub async fn caller_by_token(&self, secret: &str, origin: &str) -> Result<Caller> {
        if !is_token(secret) {
            return Err(Error::TokenUnknown);
        }
        let now = self.now();
        let mut reader = self.store.read().await?;
        let found = sign_ins::find_token(&mut reader, &stored_hash(secret)).await?;
        drop(reader);
        let (token, person) = found.ok_or(Error::TokenUnknown)?;
        if token.revoked_at.is_some() || person.state != PersonState::Active {
            return Err(Error::TokenUnknown);
        }
        if token.expires_at <= now {
            return Err(Error::Expired);
        }
        if token
            .last_used_at
            .is_none_or(|used| now > used + USED_PRECISION)
        {
            transact!(self, tx => {
                Ok(sign_ins::touch_token(&mut tx, token.id, now).await?)
            })?;
        }
        Ok(Caller {
            person,
            via: Via::Token(token.id),
            scopes: token.scopes,
            origin: origin.to_owned(),
            once: None,
            version: None,
        })
    }

    /// The caller's own tokens, or, for a global admin, anybody's.
    pub async fn tokens(
        &self,
        caller: &Caller,
        person: Option<&PersonReference>,
    ) -> Result<(Person, Vec<Token>)> {
        let mut reader = self.store.read().await?;
        let person = match person {
            None => {
                caller.may(Action::SeeOwnTokens, true, "account")?;
                caller.person.clone()
            }
            Some(person) => {
                caller.may(Action::SeeAnyTokens, false, "person")?;
                self.person(&mut reader, person).await?
            }
        };
        let tokens = sign_ins::tokens_of(&mut reader, person.id).await?;
        Ok((person, tokens))
    }

    pub async fn revoke_token(
        &self,
        caller: &Caller,
        person: Option<&PersonReference>,
        id: TokenId,
    ) -> Result<()> {
        let owner = match person {
            None => {
                caller.may(Action::ManageOwnTokens, true, "account")?;
                caller.id()
            }
            Some(person) => {
                caller.may(Action::RevokeAnyToken, false, "person")?;
                let mut reader = self.store.read().await?;
                self.person(&mut reader, person).await?.id
            }
        };
        transact!(self, tx => {
            if !sign_ins::revoke_token(&mut tx, owner, id, self.now()).await? {
                return Err(Error::NotFound("live token"));
            }
            let change = Change::new("token.revoke", None, id);
            self.record(&mut tx, caller, change.tell(EventKind::TokenRevoked, Audience::Person(owner))).await
        })
    }
}
