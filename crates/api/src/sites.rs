//! Sites, as far as the one who asks may see them.

use berth_model::branding::Accent;
use berth_model::person::TimeZone;
use berth_model::site::{self, OutsiderView};
use berth_model::{Name, SiteId, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::names::SiteRef;
use crate::patch::present;
use crate::schemas;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Site {
    pub id: SiteId,
    pub name: Name,
    pub title: Text,
    #[schema(value_type = schemas::TimeZone)]
    pub time_zone: TimeZone,
    pub outsiders_see: OutsiderView,
    /// Its own colour, which is seen on light and on dark pages; null where it has none.
    #[schema(value_type = Option<schemas::Colour>)]
    pub accent: Option<Accent>,
    /// What its logo is known by, another one for every image; null where it has none.
    pub logo: Option<String>,
    /// What the one who asks is to this site.
    pub standing: SiteStanding,
    /// How much of it the one who asks can see.
    pub you_see: Sight,
    pub version: u64,
    pub created_at: Timestamp,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SiteStanding {
    Outsider,
    Member,
    SiteAdmin,
    GlobalAdmin,
}

/// Ordered: each step includes those before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Sight {
    /// That it exists, and a way to ask to join.
    Name,
    Catalogue,
    FreeBusy,
    /// All that its members see.
    Everything,
}

/// One of the caller's sites, with what the caller has to do there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SiteActivity {
    pub site: SiteRef,
    /// The caller's own reservations that are not over.
    pub reservations: u64,
    /// The caller's own workloads that wait or run, without those of sessions.
    pub workloads: u64,
    /// The caller's own sessions that are not stopped.
    pub sessions: u64,
    /// Reservations that wait for the caller's approval.
    pub approvals: u64,
    /// When anybody last changed something there; null where nobody ever did.
    pub last_activity: Option<Timestamp>,
}

impl Site {
    pub fn new(site: site::Site, standing: SiteStanding) -> Self {
        Self {
            id: site.id,
            name: site.name,
            title: site.title,
            time_zone: site.time_zone,
            outsiders_see: site.outsiders_see,
            accent: site.accent,
            logo: site.logo,
            standing,
            you_see: Sight::of(standing, site.outsiders_see),
            version: site.version,
            created_at: site.created_at,
        }
    }
}

impl Sight {
    fn of(standing: SiteStanding, outsiders_see: OutsiderView) -> Self {
        match (standing, outsiders_see) {
            (SiteStanding::Outsider, OutsiderView::Catalogue) => Sight::Catalogue,
            (SiteStanding::Outsider, OutsiderView::FreeBusy) => Sight::FreeBusy,
            // A site that shows nothing is not shown at all; if it were, its name is all one could see.
            (SiteStanding::Outsider, OutsiderView::Nothing | OutsiderView::Name) => Sight::Name,
            (SiteStanding::Member | SiteStanding::SiteAdmin | SiteStanding::GlobalAdmin, _) => {
                Sight::Everything
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSite {
    pub name: Name,
    pub title: Text,
    #[schema(value_type = schemas::TimeZone)]
    pub time_zone: TimeZone,
    /// Nothing, if left out: a site opens itself on purpose, not by oversight.
    #[serde(default = "closed")]
    pub outsiders_see: OutsiderView,
}

fn closed() -> OutsiderView {
    OutsiderView::Nothing
}

/// Absent fields stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SitePatch {
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub name: Option<Name>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub title: Option<Text>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<schemas::TimeZone>, nullable = false)]
    pub time_zone: Option<TimeZone>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub outsiders_see: Option<OutsiderView>,
    /// Null takes it away. It must have a contrast of at least 3 to 1 on white and on near-black.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<schemas::Colour>)]
    pub accent: Option<Option<Accent>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_site_is_closed_unless_it_says_otherwise() {
        let text = r#"{"name":"torino","title":"Torino","time_zone":"Europe/Rome"}"#;
        let new: NewSite = serde_json::from_str(text).unwrap();
        assert_eq!(new.outsiders_see, OutsiderView::Nothing);
        let nowhere = text.replace("Rome", "Atlantis");
        let said = serde_json::from_str::<NewSite>(&nowhere)
            .unwrap_err()
            .to_string();
        assert!(said.contains("not a time zone"), "{said}");
    }

    #[test]
    fn outsiders_see_what_the_site_set_and_members_see_all() {
        assert_eq!(
            Sight::of(SiteStanding::Outsider, OutsiderView::FreeBusy),
            Sight::FreeBusy
        );
        assert_eq!(
            Sight::of(SiteStanding::Outsider, OutsiderView::Nothing),
            Sight::Name
        );
        assert_eq!(
            Sight::of(SiteStanding::Member, OutsiderView::Nothing),
            Sight::Everything
        );
    }
}
