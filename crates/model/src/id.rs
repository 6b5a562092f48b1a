//! Identifiers: UUIDv7 inside, written with a prefix that says what they name (`rsv_01kc…`).
//!
//! The prefix makes a pasted identifier explain itself, and turns "a resource's id where a reservation's
//! was wanted" into a clear error instead of a puzzling "not found".

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// Crockford's base 32, lower case: no `i`, `l`, `o`, `u`, so that ids survive being read aloud.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ENCODED_LEN: usize = 26;

fn encode(id: Uuid) -> [u8; ENCODED_LEN] {
    let mut rest = id.as_u128();
    let mut out = [b'0'; ENCODED_LEN];
    for slot in out.iter_mut().rev() {
        *slot = ALPHABET[(rest & 31) as usize];
        rest >>= 5;
    }
    out
}

fn decode(text: &str) -> Option<Uuid> {
    // 26 digits carry 130 bits; a first digit above 7 would overflow the 128 of a UUID.
    if text.len() != ENCODED_LEN || text.as_bytes()[0] > b'7' {
        return None;
    }
    let mut value: u128 = 0;
    for byte in text.bytes() {
        let digit = ALPHABET.iter().position(|&c| c == byte)?;
        value = (value << 5) | digit as u128;
    }
    Some(Uuid::from_u128(value))
}

/// Why a text is not the identifier that was wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}: those look like `{prefix}_` followed by 26 letters and digits")]
pub struct ParseIdError {
    pub text: String,
    pub wanted: &'static str,
    pub prefix: &'static str,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal, $wanted:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Uuid);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            /// A fresh identifier that sorts by `unix_ms`; `random` supplies the rest.
            pub fn from_parts(unix_ms: u64, random: &[u8; 10]) -> Self {
                Self(uuid::Builder::from_unix_timestamp_millis(unix_ms, random).into_uuid())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let digits = encode(self.0);
                write!(f, concat!($prefix, "_{}"), std::str::from_utf8(&digits).unwrap_or_default())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;
            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                text.strip_prefix(concat!($prefix, "_")).and_then(decode).map(Self).ok_or_else(|| {
                    ParseIdError { text: text.chars().take(64).collect(), wanted: $wanted, prefix: $prefix }
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .pattern(Some(concat!("^", $prefix, "_[0-7][0-9a-hjkmnp-tv-z]{25}$")))
                    .examples([concat!($prefix, "_01kc3v9xwbe8rv5w2n9q3m7t4h")])
                    .into()
            }
        }
        impl utoipa::ToSchema for $name {}
    )*};
}

ids! {
    /// A person with an account, whatever sites they belong to.
    PersonId = "per", "a person's id";
    SiteId = "sit", "a site's id";
    ProjectId = "prj", "a project's id";
    TypeId = "typ", "a resource type's id";
    ResourceId = "res", "a resource's id";
    ClaimId = "clm", "a claim's id";
    ReservationId = "rsv", "a reservation's id";
    /// Bookings made together by one rule.
    SeriesId = "ser", "a series' id";
    /// A planned maintenance window.
    WindowId = "mnt", "a maintenance window's id";
    /// A workload of the queue.
    WorkloadId = "job", "a workload's id";
    /// One task of a workload, each time it begins.
    RunId = "run", "a run's id";
    /// An admin's word that somebody's work is urgent.
    GrantId = "grt", "a grant's id";
    /// A GPU that is cut anew.
    RecutId = "cut", "a cut's id";
    JoinRequestId = "joi", "a join request's id";
    TokenId = "tok", "an API token's id";
    /// A browser that somebody has signed in with.
    SignInId = "sgn", "a sign-in's id";
    /// A web app that somebody works in.
    SessionId = "ses", "a session's id";
    /// Somebody's way into a session, by one browser.
    VisitId = "vis", "a visit's id";
    /// One attempt to start a session.
    StartId = "sta", "a start's id";
    SecretId = "sec", "a stored secret's id";
    EventId = "evt", "an event's id";
    AuditId = "aud", "an audit entry's id";
    /// A feed for calendar programs.
    FeedId = "fed", "a calendar feed's id";
    /// A calendar of times at which a site is closed.
    ClosureId = "clo", "a closure calendar's id";
    /// A version of a managed environment.
    EnvironmentId = "env", "an environment's id";
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(bits: u128) {
            let id = ReservationId(Uuid::from_u128(bits));
            prop_assert_eq!(id.to_string().parse::<ReservationId>(), Ok(id));
        }

        #[test]
        fn any_text_is_answered_without_panic(text in "\\PC*") {
            text.parse::<ReservationId>().ok();
        }

        #[test]
        fn writing_keeps_the_order(a: u128, b: u128) {
            let (x, y) = (ClaimId(Uuid::from_u128(a)), ClaimId(Uuid::from_u128(b)));
            prop_assert_eq!(a.cmp(&b), x.to_string().cmp(&y.to_string()));
        }
    }

    #[test]
    fn another_kind_of_id_is_refused_by_name() {
        let resource = ResourceId(Uuid::from_u128(7)).to_string();
        let error = resource.parse::<ReservationId>().unwrap_err().to_string();
        assert!(error.contains("not a reservation's id"), "{error}");
    }
}
