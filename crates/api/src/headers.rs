//! The headers that Berth gives a meaning, and how their values are read and written.

use std::fmt;

use crate::text::text;

/// Makes a create safe to repeat: the same key answers with the object that the first one made.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// `true` on an answer that repeats an earlier one.
pub const IDEMPOTENCY_REPLAYED: &str = "idempotency-replayed";
/// Proves that a browser's request comes from Berth's own pages.
pub const CSRF_TOKEN: &str = "x-csrf-token";
/// Where a stream of events goes on after a cut.
pub const LAST_EVENT_ID: &str = "last-event-id";
/// The cookie of a signed-in browser.
pub const SESSION_COOKIE: &str = "berth_session";
/// The same over HTTPS at the root of a host: the prefix makes browsers refuse one that a neighbouring host set.
pub const HOST_SESSION_COOKIE: &str = "__Host-berth_session";
/// The media type of a problem (RFC 9457).
pub const PROBLEM_JSON: &str = "application/problem+json";

text! {
    /// A key chosen by the client, new for each thing it wants to make.
    IdempotencyKey,
    1..=200,
    "^[!-~]{1,200}$",
    |text| text.bytes().all(|b| b.is_ascii_graphic()),
    "an idempotency key is 1 to 200 printable ASCII characters without spaces"
}

/// The version of an object as its entity tag: `"7"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ETag(pub u64);

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

/// Which version a change is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IfMatch {
    /// `*`: whatever it is now.
    Any,
    Version(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("If-Match takes one entity tag as the server gave it, such as `\"7\"`, or `*`")]
pub struct IfMatchError;

impl IfMatch {
    pub fn admits(self, version: u64) -> bool {
        match self {
            IfMatch::Any => true,
            IfMatch::Version(wanted) => wanted == version,
        }
    }
}

impl std::str::FromStr for IfMatch {
    type Err = IfMatchError;
    fn from_str(text: &str) -> Result<Self, IfMatchError> {
        let text = text.trim();
        if text == "*" {
            return Ok(IfMatch::Any);
        }
        // A proxy that compresses marks the tag as weak; it still names the same version.
        text.strip_prefix("W/")
            .unwrap_or(text)
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'))
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|digits| digits.parse().ok())
            .map(IfMatch::Version)
            .ok_or(IfMatchError)
    }
}

impl fmt::Display for IfMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IfMatch::Any => f.write_str("*"),
            IfMatch::Version(version) => ETag(*version).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_match_reads_what_the_etag_writes() {
        assert_eq!(ETag(7).to_string().parse(), Ok(IfMatch::Version(7)));
        assert_eq!("W/\"7\"".parse(), Ok(IfMatch::Version(7)));
        assert_eq!("*".parse(), Ok(IfMatch::Any));
        for bad in [
            "",
            "7",
            "\"\"",
            "\"+7\"",
            "\"7\", \"8\"",
            "\"99999999999999999999\"",
        ] {
            assert_eq!(bad.parse::<IfMatch>(), Err(IfMatchError), "{bad}");
        }
    }

    #[test]
    fn keys_fit_a_header() {
        assert!("0b6c-retry/1".parse::<IdempotencyKey>().is_ok());
        for bad in ["", "a b", "é", "a\nb"] {
            assert!(bad.parse::<IdempotencyKey>().is_err(), "{bad}");
        }
    }
}
