//! People as administrators see and change them.

use berth_model::person::{self, PersonState};
use berth_model::{LoginName, PersonId, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::patch::present;
use crate::schemas;
use crate::secret::{NewPassword, Revealed};
use crate::text::text;

/// A person with an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Person {
    pub id: PersonId,
    pub login: LoginName,
    pub display_name: Text,
    pub email: Option<String>,
    #[schema(value_type = schemas::TimeZone)]
    pub time_zone: person::TimeZone,
    pub global_admin: bool,
    pub state: PersonState,
    pub version: u64,
    pub created_at: Timestamp,
}

impl From<person::Person> for Person {
    fn from(person: person::Person) -> Self {
        Self {
            id: person.id,
            login: person.login,
            display_name: person.display_name,
            email: person.email,
            time_zone: person.time_zone,
            global_admin: person.global_admin,
            state: person.state,
            version: person.version,
            created_at: person.created_at,
        }
    }
}

text! {
    /// An address for mail. Whether it works only a mail can tell; this keeps out what cannot.
    Email,
    3..=254,
    r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,189}$",
    |text| match text.split_once('@') {
        Some((local, domain)) => {
            (1..=64).contains(&local.len())
                && (1..=189).contains(&domain.len())
                && local.bytes().all(|b| {
                    b.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&b)
                })
                && domain.bytes().all(|b| b.is_ascii_alphanumeric() || b".-".contains(&b))
        }
        None => false,
    },
    "an e-mail address is written like ada@lab.example"
}

/// An account to make. Without a password the answer carries a one-time link to set one.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPerson {
    pub login: LoginName,
    pub display_name: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<Email>,
    /// UTC if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schemas::TimeZone>)]
    pub time_zone: Option<person::TimeZone>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<NewPassword>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CreatedPerson {
    pub person: Person,
    /// Present where no password was given, unless an earlier request with the same key made the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reset_link: Option<ResetLink>,
}

/// A one-time link with which a person sets a password. It is shown once, here.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ResetLink {
    pub link: Revealed,
    pub expires_at: Timestamp,
}

/// Absent fields stay as they are; `null` clears the e-mail address.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PersonPatch {
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub display_name: Option<Text>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<Email>)]
    pub email: Option<Option<Email>>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<schemas::TimeZone>, nullable = false)]
    pub time_zone: Option<person::TimeZone>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub global_admin: Option<bool>,
    /// A suspended person cannot sign in; what they hold stands.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub suspended: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn mail_addresses() {
        for good in ["ada@lab.example", "o'neil+berth@x", "a@b"] {
            assert!(good.parse::<Email>().is_ok(), "{good}");
        }
        let long = format!("{}@x", "a".repeat(65));
        for bad in ["", "@", "a@", "@b", "a b@c", "a@b@c", "a\0@b", "é@b", &long] {
            assert!(bad.parse::<Email>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_patch_tells_clearing_from_leaving_alone() {
        let patch: PersonPatch = serde_json::from_value(json!({"email": null})).unwrap();
        assert_eq!(patch.email, Some(None));
        assert_eq!(
            serde_json::to_value(&patch).unwrap(),
            json!({"email": null})
        );
        assert!(serde_json::from_value::<PersonPatch>(json!({"display_name": null})).is_err());
        assert!(serde_json::from_value::<PersonPatch>(json!({"admin": true})).is_err());
    }

    #[test]
    fn a_new_password_is_not_printed() {
        let new: NewPerson = serde_json::from_value(
            json!({"login": "ada", "display_name": "Ada", "password": "canary-canary"}),
        )
        .unwrap();
        assert!(!format!("{new:?}").contains("canary"));
        assert_eq!(
            serde_json::to_value(&new).unwrap()["password"],
            "canary-canary"
        );
    }
}
