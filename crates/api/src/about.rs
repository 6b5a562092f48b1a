//! What a server says of itself before anybody has signed in.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct About {
    pub version: String,
    /// Whether there is anybody who could sign in; if not, `berth admin create` makes the first.
    pub is_set_up: bool,
    /// Whether an admin lets several people's work run on this machine even where the boundary of a run does not hold;
    /// every page says so.
    pub unsafe_shared_user: bool,
    /// Whether sessions run here at Berth's own address, so that what runs in one can act as its visitors elsewhere: only
    /// for people who trust each other.
    #[serde(default)]
    pub sessions_share_origin: bool,
    /// Who can sign in to a demo; null for everything else.
    pub demo: Option<Demo>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Demo {
    pub people: Vec<DemoPerson>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DemoPerson {
    pub login: String,
    pub password: String,
    /// Who they are, in a few words: "site admin of Torino".
    pub who: String,
}
