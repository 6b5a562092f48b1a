//! Idempotency: a create that comes twice makes one thing.

use berth_store::Conn;
use berth_store::idempotency::{self, Earlier};

use crate::App;
use crate::caller::Caller;
use crate::error::{Error, Result};

/// A caller's key for one request, and a fingerprint of what that request was.
#[derive(Debug, Clone)]
pub struct Once {
    pub key: String,
    pub fingerprint: [u8; 32],
}

/// What a create returns.
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
    /// Notes that this request makes `subject`, or says what an earlier one with the same key made instead.
    pub(crate) async fn first_time<I: std::str::FromStr + std::fmt::Display>(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        subject: I,
    ) -> Result<Option<I>> {
        let Some(once) = &caller.once else {
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

    /// What an earlier request with the caller's key made, without claiming the key.
    pub(crate) async fn earlier<I: std::str::FromStr>(
        &self,
        conn: &mut Conn,
        caller: &Caller,
    ) -> Result<Option<I>> {
        let Some(once) = &caller.once else {
            return Ok(None);
        };
        let earlier = idempotency::get(conn, caller.id(), &once.key).await?;
        same(earlier, once)
    }
}

fn same<I: std::str::FromStr>(earlier: Option<Earlier>, once: &Once) -> Result<Option<I>> {
    match earlier {
        None => Ok(None),
        // A key used for another kind of thing has another fingerprint, so this parses.
        Some(earlier) if earlier.fingerprint == once.fingerprint => {
            let subject = earlier.subject.parse();
            subject.map(Some).map_err(|_| Error::IdempotencyMismatch)
        }
        Some(_) => Err(Error::IdempotencyMismatch),
    }
}
