//! Closure calendars: the holidays and blackouts of a site.

use berth_model::closure::{self, ClosureKind};
use berth_model::{ClosureId, FieldErrors, Name, Text};
use jiff::Timestamp;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::names::{Names, SiteRef};

/// A calendar of closed times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Closure {
    pub id: ClosureId,
    pub site: SiteRef,
    pub name: Name,
    pub kind: ClosureKind,
    /// Where it is read from, hourly. Null for one that was given as a file, and for those who may not change it,
    /// since such an address may be a secret.
    pub address: Option<String>,
    /// What of it was not understood.
    pub notes: Vec<String>,
    /// When it was last read with success: how old the closed times are.
    pub read_at: Timestamp,
    /// When that was last tried.
    pub tried_at: Timestamp,
    /// Why the last try failed; null if it did not.
    pub trouble: Option<String>,
    pub created_at: Timestamp,
    pub version: u64,
}

/// A calendar with its closed times, from some months ago to two years from now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClosureDetails {
    #[serde(flatten)]
    pub closure: Closure,
    pub closed: Vec<ClosedSpan>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClosedSpan {
    pub start: Timestamp,
    pub end: Timestamp,
    pub title: Text,
}

impl Closure {
    pub fn new(closure: &closure::Closure, shows_address: bool, names: &Names) -> Self {
        Self {
            id: closure.id,
            site: names.site(closure.site),
            name: closure.name.clone(),
            kind: closure.kind,
            address: closure.address.clone().filter(|_| shows_address),
            notes: closure.notes.clone(),
            read_at: closure.read_at,
            tried_at: closure.tried_at,
            trouble: closure.trouble.clone(),
            created_at: closure.created_at,
            version: closure.version,
        }
    }
}

impl From<&closure::ClosedSpan> for ClosedSpan {
    fn from(closed: &closure::ClosedSpan) -> Self {
        Self {
            start: closed.span.start(),
            end: closed.span.end(),
            title: closed.title.clone(),
        }
    }
}

/// A calendar to bring in: the text of an iCalendar file, or the address of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewClosure {
    pub name: Name,
    pub kind: ClosureKind,
    /// The whole text of an .ics file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1048576)]
    pub file: Option<String>,
    /// An https address, read now and then hourly. Addresses inside the server's own network are refused unless its
    /// configuration allows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2000, examples("https://www.campus.example/holidays.ics"))]
    pub address: Option<String>,
}

/// Where a new calendar comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    File(String),
    Address(String),
}

const ADDRESS_MAX: usize = 2000;

impl NewClosure {
    pub fn source(&self) -> Result<Source, FieldErrors> {
        match (&self.file, &self.address) {
            (Some(file), None) => Ok(Source::File(file.clone())),
            (None, Some(address)) => checked(address).map(Source::Address),
            _ => Err(FieldErrors::one(
                "address",
                "give the text of a file or an address, one of the two",
            )),
        }
    }
}

/// The address as it is asked for; `webcal` is what calendar programs call https.
fn checked(address: &str) -> Result<String, FieldErrors> {
    let refuse = |why: &str| Err(FieldErrors::one("address", why));
    if address.len() > ADDRESS_MAX {
        return refuse("must be at most 2000 characters");
    }
    let https = match address.strip_prefix("webcal://") {
        Some(rest) => format!("https://{rest}"),
        None => address.to_owned(),
    };
    let Ok(url) = Url::parse(&https) else {
        return refuse("is not an address such as https://www.example.org/holidays.ics");
    };
    if !matches!(url.scheme(), "https" | "http") || !url.has_host() {
        return refuse("must begin with https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("must not contain a name or password");
    }
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn source(new: serde_json::Value) -> Result<Source, FieldErrors> {
        let mut whole = json!({"name": "holidays", "kind": "holidays"});
        for (key, value) in new.as_object().unwrap() {
            whole[key] = value.clone();
        }
        serde_json::from_value::<NewClosure>(whole)
            .unwrap()
            .source()
    }

    #[test]
    fn a_calendar_is_a_file_or_an_address() {
        assert_eq!(source(json!({"file": "x"})), Ok(Source::File("x".into())));
        let address = "https://www.example.org/holidays.ics";
        let read = Source::Address(address.into());
        assert_eq!(source(json!({"address": address})), Ok(read.clone()));
        assert_eq!(
            source(json!({"address": "webcal://www.example.org/holidays.ics"})),
            Ok(read)
        );
        for bad in [
            json!({}),
            json!({"file": "x", "address": address}),
            json!({"address": "ftp://example.org/x"}),
            json!({"address": "file:///etc/passwd"}),
            json!({"address": "https://ada:canary@example.org/x"}),
            json!({"address": "holidays.ics"}),
        ] {
            let refused = source(bad.clone()).unwrap_err();
            assert_eq!(refused.0[0].field, "address", "{bad}");
            assert!(!refused.to_string().contains("canary"));
        }
    }
}
