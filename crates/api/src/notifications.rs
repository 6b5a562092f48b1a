//! Notifications: what one is told of what happened.

use berth_model::event::EventKind;
use berth_model::reservation::{self, State};
use berth_model::{FieldErrors, ReservationId, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::events::Position;
use crate::list::List;
use crate::names::{Names, PersonRef, ResourceRef, SiteRef};
use crate::page::{Cursor, Limit};
use crate::reference::SiteReference;

/// One event, told to the person who reads this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Notification {
    /// The number of the event; the way to name a notification.
    pub number: u64,
    pub kind: EventKind,
    pub at: Timestamp,
    pub read: bool,
    /// Null for what concerns no site, or one that you may not see any more.
    pub site: Option<SiteRef>,
    /// The reservation it is about, as it is now; null where it is about none, or you may not see it any more.
    pub reservation: Option<ReservationRef>,
    /// The resource it is about; null where it is about none, it is gone, or you may not see it any more.
    pub resource: Option<ResourceRef>,
    /// Who did it, or who asks; null where it was Berth itself, or you may not know.
    pub by: Option<PersonRef>,
    /// All of it in an English sentence. Moments in it are in UTC.
    pub text: String,
    /// What the event says, with `as`: whether you are told as its `owner`, `former_owner`, `approver`, as an `admin` of
    /// the site, or of `oneself`. Empty where you may not see any more what it is about.
    pub data: Value,
}

/// Enough of a reservation to show which is meant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReservationRef {
    pub id: ReservationId,
    pub title: Text,
    pub owner: PersonRef,
    pub state: State,
    pub start: Timestamp,
    pub end: Timestamp,
    pub resources: Vec<ResourceRef>,
    pub version: u64,
}

impl ReservationRef {
    pub fn new(reservation: &reservation::Reservation, names: &Names) -> Self {
        let items = reservation.items.iter();
        Self {
            id: reservation.id,
            title: reservation.title.clone(),
            owner: names.person(reservation.owner),
            state: reservation.state,
            start: reservation.span.start(),
            end: reservation.span.end(),
            resources: items.map(|item| names.resource(item.resource)).collect(),
            version: reservation.version,
        }
    }
}

/// Some notifications, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NotificationPage {
    pub items: Vec<Notification>,
    /// Pass it as `cursor` to read on; null on the last page.
    pub next: Option<Cursor>,
    /// How many you have not read, of all kinds and in all sites.
    pub unread: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct NotificationQuery {
    /// Only those that were not read.
    #[serde(default)]
    #[param(required = false)]
    pub unread: bool,
    /// Only of one of these kinds; repeat it for several.
    #[serde(default)]
    #[param(inline, value_type = Vec<EventKind>, max_items = 20, required = false)]
    pub kind: List<EventKind, 0, 20>,
    /// Only those of this site.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub site: Option<SiteReference>,
    #[serde(default)]
    #[param(inline, required = false)]
    pub limit: Limit,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub cursor: Option<Cursor>,
}

/// Which to mark as read: these, or all up to one. Numbers that you were not told of are passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkRead {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Position>>, min_items = 1, max_items = 500)]
    pub numbers: Option<List<Position, 1, 500>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<Position>,
}

impl MarkRead {
    /// One of the two, and not both.
    pub fn check(&self) -> Result<(), FieldErrors> {
        match (&self.numbers, self.up_to) {
            (Some(_), None) | (None, Some(_)) => Ok(()),
            _ => Err(FieldErrors::one(
                "numbers",
                "say either `numbers` or `up_to`, not both",
            )),
        }
    }
}

/// Which to mark as not read. Numbers that you were not told of are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkUnread {
    #[schema(value_type = Vec<Position>, min_items = 1, max_items = 500)]
    pub numbers: List<Position, 1, 500>,
}

/// What is left to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Unread {
    pub unread: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn some_or_all_up_to_one_are_marked_not_both() {
        let is_good = |body: Value| {
            let read: MarkRead = serde_json::from_value(body).unwrap();
            read.check().is_ok()
        };
        assert!(is_good(json!({"numbers": [1, 2]})));
        assert!(is_good(json!({"up_to": 7})));
        assert!(!is_good(json!({"numbers": [1], "up_to": 7})));
        assert!(!is_good(json!({})));
        for bad in [
            json!({"numbers": []}),
            json!({"numbers": vec![1; 501]}),
            json!({"up_to": -1}),
            json!({"all": true}),
        ] {
            assert!(
                serde_json::from_value::<MarkRead>(bad.clone()).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_question_may_name_several_kinds() {
        let read = |text| serde_html_form::from_str::<NotificationQuery>(text);
        let asked = read("unread=true&kind=resource.status&kind=reservation.moved").unwrap();
        assert!(asked.unread);
        assert_eq!(asked.kind.as_slice().len(), 2);
        assert!(read("kind=nonsense").is_err());
    }
}
