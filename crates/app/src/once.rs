//! Idempotency: a repeated create makes one object, and a repeated action happens once.
//!
//! A create claims its key for the object that it makes, and a repeated create reads that object. An action claims its
//! key with its first audit entry, in the transaction that changes something. A repeated action gets the first answer.

use berth_model::PersonId;
use berth_store::Conn;
use berth_store::idempotency::{self, Earlier};

use crate::App;
use crate::accounts::random_text;
use crate::caller::Caller;
use crate::error::{Error, Result};
use crate::transact::transact;

/// A caller's key for one request, and a keyed fingerprint of that request.
#[derive(Debug, Clone)]
pub struct Once {
    pub key: String,
    pub fingerprint: [u8; 32],
    /// For an action: the subject of its key. It is new for each request, so a request recognises its own claim.
    pub act: Option<String>,
}

/// Subjects with this prefix are actions; all others are ids of objects.
const ACT: &str = "act ";

impl Once {
    pub fn create(key: String, fingerprint: [u8; 32]) -> Self {
        Self {
            key,
            fingerprint,
            act: None,
        }
    }

    pub fn action(key: String, fingerprint: [u8; 32]) -> Self {
        Self {
            act: Some(format!("{ACT}{}", random_text())),
            key,
            fingerprint,
        }
    }
}

/// The result of an earlier action with the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repeated {
    /// Its answer.
    Answered(String),
    /// It was carried out, but its answer is unknown, or not stored yet.
    Done,
}

/// The result of a create.
#[derive(Debug, Clone)]
pub struct Made<T> {
    pub value: T,
    /// Whether an earlier request with the same key made it.
    pub replayed: bool,
}

impl<T> Made<T> {
    pub(crate) fn now(value: T) -> Self {
        Self {
            value,
            replayed: false,
        }
    }

    pub(crate) fn before(value: T) -> Self {
        Self {
            value,
            replayed: true,
        }
    }

    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Made<U> {
        Made {
            value: f(self.value),
            replayed: self.replayed,
        }
    }
}

impl App {
    /// A hash that identifies a request. Without the vault's key, nobody can guess the content of the request from it.
    pub fn fingerprint(&self, method: &str, address: &str, body: &[u8]) -> [u8; 32] {
        self.vault
            .fingerprint(&[method.as_bytes(), address.as_bytes(), body])
    }

    /// Claims the caller's key for `subject`. Returns the object that an earlier request with the same key made, if
    /// any.
    pub(crate) async fn first_time<I: std::str::FromStr + std::fmt::Display>(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        subject: I,
    ) -> Result<Option<I>> {
        let Some(once) = caller.once.as_ref().filter(|once| once.act.is_none()) else {
            return Ok(None);
        };
        let (key, subject) = (once.key.as_str(), subject.to_string());
        let earlier = idempotency::claim(
            conn,
            caller.id(),
            key,
            &once.fingerprint,
            &subject,
            self.now(),
        )
        .await?;
        same(earlier, once)
    }

    /// The object that an earlier request with the caller's key made, without claiming the key.
    pub(crate) async fn earlier<I: std::str::FromStr>(
        &self,
        conn: &mut Conn,
        caller: &Caller,
    ) -> Result<Option<I>> {
        let Some(once) = caller.once.as_ref().filter(|once| once.act.is_none()) else {
            return Ok(None);
        };
        let earlier = idempotency::get(conn, caller.id(), &once.key).await?;
        same(earlier, once)
    }

    /// Claims the key of an action that changes something. Refuses if an earlier request claimed it.
    pub(crate) async fn act_once(
        &self,
        conn: &mut Conn,
        person: PersonId,
        once: &Once,
    ) -> Result<()> {
        let Some(act) = &once.act else {
            return Ok(());
        };
        let (key, print) = (once.key.as_str(), &once.fingerprint);
        match idempotency::claim(conn, person, key, print, act, self.now()).await? {
            None => Ok(()),
            Some(earlier) if earlier.subject == *act => Ok(()),
            Some(earlier) if earlier.fingerprint == *print => Err(Error::DoneBefore),
            Some(_) => Err(Error::IdempotencyMismatch),
        }
    }

    /// The result of an earlier action of this person with this key and fingerprint, if any.
    pub async fn repeated(&self, person: PersonId, once: &Once) -> Result<Option<Repeated>> {
        let mut reader = self.store.read().await?;
        let earlier = idempotency::get(&mut reader, person, &once.key).await?;
        let is_same = |earlier: &Earlier| {
            earlier.subject.starts_with(ACT) && earlier.fingerprint == once.fingerprint
        };
        Ok(earlier.filter(is_same).map(|earlier| match earlier.answer {
            Some(answer) => Repeated::Answered(answer),
            None => Repeated::Done,
        }))
    }

    /// Stores the answer to an action, for a repeated request. Stores nothing for an action that changed nothing.
    pub async fn keep_answer(&self, person: PersonId, once: &Once, answer: &str) -> Result<()> {
        let Some(act) = &once.act else {
            return Ok(());
        };
        transact!(self, tx => {
            Ok(idempotency::keep_answer(&mut tx, person, &once.key, act, answer).await?)
        })
    }
}

fn same<I: std::str::FromStr>(earlier: Option<Earlier>, once: &Once) -> Result<Option<I>> {
    match earlier {
        None => Ok(None),
        // A key that was used for another kind of object has another fingerprint, so this parses.
        Some(earlier) if earlier.fingerprint == once.fingerprint => {
            let subject = earlier.subject.parse();
            subject.map(Some).map_err(|_| Error::IdempotencyMismatch)
        }
        Some(_) => Err(Error::IdempotencyMismatch),
    }
}
