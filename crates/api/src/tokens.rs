//! API tokens: what programs sign in with.

use std::collections::BTreeSet;

use berth_model::person::{self, Scope};
use berth_model::{Text, TokenId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::list::List;
use crate::moment::Moment;
use crate::names::{Names, PersonRef};
use crate::secret::Revealed;

/// A token as its owner sees it; its secret was shown once, when it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    pub id: TokenId,
    pub owner: PersonRef,
    pub label: Text,
    pub scopes: BTreeSet<Scope>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl Token {
    pub fn new(token: person::Token, names: &Names) -> Self {
        Self {
            id: token.id,
            owner: names.person(token.person),
            label: token.label,
            scopes: token.scopes,
            created_at: token.created_at,
            expires_at: token.expires_at,
            last_used_at: token.last_used_at,
            revoked_at: token.revoked_at,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What it is for, so that its owner knows later which one to revoke.
    pub label: Text,
    #[schema(value_type = Vec<Scope>, min_items = 1, max_items = 3)]
    pub scopes: List<Scope, 1, 3>,
    pub expires_at: Moment,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CreatedToken {
    pub token: Token,
    /// Shown this once; only its hash is kept. Absent when an earlier request with the same key made the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub secret: Option<Revealed>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_token_without_scopes_is_refused() {
        let new = |scopes: serde_json::Value| {
            serde_json::from_value::<NewToken>(
                json!({"label": "ci", "scopes": scopes, "expires_at": "2027-01-01T00:00:00Z"}),
            )
        };
        assert!(new(json!(["read", "book"])).is_ok());
        assert!(new(json!([])).is_err());
        assert!(new(json!(["everything"])).is_err());
    }
}
