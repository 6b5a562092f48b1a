//! Signing in, and what a person sees and changes of themselves.

use berth_model::person::{Scope, TimeZone};
use berth_model::site::{Membership, Role};
use berth_model::{LoginName, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::names::{Names, SiteRef};
use crate::patch::present;
use crate::people::{Email, Person};
use crate::schemas;
use crate::secret::{NewPassword, Password, Revealed};

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    pub login: LoginName,
    pub password: Password,
}

/// The session itself travels in a cookie that pages cannot read.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SignedIn {
    pub person: Person,
    /// Send it back in the header `X-CSRF-Token` with every request that changes something.
    pub csrf_token: Revealed,
}

/// Who is asking, and where they belong.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Me {
    pub person: Person,
    pub memberships: Vec<MySite>,
    /// Sites that I have asked to join and not heard from yet.
    pub asked: Vec<AskedSite>,
    /// For a browser's session; null when an API token asks.
    pub csrf_token: Option<Revealed>,
    /// What the API token may do; null for a browser's session, which may do all that its person may.
    pub scopes: Option<Vec<Scope>>,
}

/// A site that the person has asked to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AskedSite {
    pub site: SiteRef,
    pub since: Timestamp,
}

/// A site that the person belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MySite {
    pub site: SiteRef,
    pub role: Role,
    pub since: Timestamp,
}

impl MySite {
    pub fn new(membership: &Membership, names: &Names) -> Self {
        Self {
            site: names.site(membership.site),
            role: membership.role,
            since: membership.since,
        }
    }
}

/// Absent fields stay as they are; `null` clears the e-mail address.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfilePatch {
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
    pub time_zone: Option<TimeZone>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    pub current: Password,
    pub new: NewPassword,
    /// Revoke all my API tokens too: somebody may have made one who knew the old password.
    #[serde(default)]
    pub revoke_tokens: bool,
}

/// Sets a password with the token of a one-time link; nobody needs to be signed in.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordReset {
    pub token: Password,
    pub new_password: NewPassword,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_typed_to_sign_in_is_printed() {
        let text = r#"{"login":"ada","password":"canary"}"#;
        let sign_in: SignIn = serde_json::from_str(text).unwrap();
        assert!(!format!("{sign_in:?}").contains("canary"));
        assert_eq!(serde_json::to_string(&sign_in).unwrap(), text);
    }
}
