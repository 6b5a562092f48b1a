//! The booking desk: any of a kind, when it can be had, and what else there is.

use berth_model::reservation::{AtEnd, Privacy};
use berth_model::{Amount, Count, FieldErrors, ReservationId, Selection, Span, Text};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::attributes::Where;
use crate::list::List;
use crate::moment::{Moment, Period};
use crate::names::{ResourceRef, SiteRef};
use crate::reference::{PersonReference, ProjectReference, SiteReference};
use crate::reservations::{FormAnswers, visible_in_site};
use crate::schemas;

/// What is wanted when any of a kind will do, for how long, and between when and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// A type's name, or what one of a resource's attributes says: `gpu-node`, `A100`.
    pub what: Text,
    /// Conditions on the attributes, all of which must hold.
    #[serde(default, rename = "where")]
    #[schema(value_type = Vec<Where>, max_items = 20, required = false)]
    pub with: List<Where, 0, 20>,
    /// How much of each, where they are divisible. If left out: one, where all that match are divisible, and else the
    /// whole of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Amount>,
    /// How many for how long; any one of these will do, the most welcome first.
    #[schema(value_type = Vec<Variant>, min_items = 1, max_items = 5)]
    pub variants: List<Variant, 1, 5>,
    /// It starts no earlier; now, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Moment>,
    /// It ends no later; eight weeks after `earliest`, if left out. As long after `earliest` as the only variant
    /// lasts, it is a fixed time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Moment>,
}

/// So many for so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WishVariant)]
pub struct Variant {
    #[serde(default)]
    pub count: Count,
    #[serde(rename = "for")]
    pub lasting: Period,
}

/// How far ahead is searched where nobody says.
const OUTLOOK: SignedDuration = SignedDuration::from_hours(8 * 7 * 24);

impl Wish {
    /// What is selected; how many is said by the variants.
    pub fn selection(&self) -> Selection {
        let first = self.variants.as_slice().first();
        Selection {
            what: self.what.clone(),
            count: first.map_or(Count::ONE, |variant| variant.count),
            with: self
                .with
                .as_slice()
                .iter()
                .map(|one| one.requirement().clone())
                .collect(),
            amount: self.amount,
        }
    }

    pub fn window(&self, now: Timestamp) -> Result<Span, FieldErrors> {
        let start = self.earliest.map_or(now, |earliest| earliest.get());
        let longest = self.variants.as_slice().iter();
        let longest = longest.map(|variant| variant.lasting.duration()).max();
        let ahead = OUTLOOK.max(longest.unwrap_or_default());
        let end = self.before.map_or(start + ahead, |before| before.get());
        Span::new(start, end).map_err(|error| FieldErrors::one("before", error.to_string()))
    }
}

/// A booking of any of a kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAnyReservation {
    pub title: Text,
    pub wish: Wish,
    /// Keep exactly what is found. If left out, the booking may be given others of its kind until two hours before
    /// its start, so that someone else fits in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectReference>,
    /// Visible to the site's members, if left out.
    #[serde(default = "visible_in_site")]
    pub privacy: Privacy,
    #[serde(default)]
    #[schema(value_type = schemas::Parameters)]
    pub parameters: FormAnswers,
    /// Whose reservation it is to be; only a site admin may book for another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<PersonReference>,
    /// Only keep it free for two minutes; where there is no room, keep the nearest alternatives free instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
    /// Where there is no room: wait for it, instead of being refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitFor>,
    /// What becomes of my work that still runs inside it when it ends; it stops, if left out.
    #[serde(default, skip_serializing_if = "AtEnd::is_stop")]
    pub at_end: AtEnd,
    /// Whether its idle time is lent to opportunistic work; as the site says, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lends: Option<bool>,
}

/// What happens when there is room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// It is booked.
    Booking,
    /// It is kept free for half an hour, for its owner to take.
    Offer,
}

/// When can I have it?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WhenRequest {
    pub wish: Wish,
    /// Where to look; in all my sites, if left out.
    #[serde(default)]
    #[schema(value_type = Vec<SiteReference>, max_items = 20, required = false)]
    pub sites: List<SiteReference, 0, 20>,
    /// How many choices to show.
    #[serde(default)]
    pub limit: Choices,
}

/// From 1 to 20; five, if left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Choices(u8);

impl Choices {
    const MAX: u8 = 20;

    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

impl Default for Choices {
    fn default() -> Self {
        Choices(5)
    }
}

impl TryFrom<u8> for Choices {
    type Error = String;
    fn try_from(limit: u8) -> Result<Self, String> {
        let fits = (1..=Choices::MAX).contains(&limit);
        fits.then_some(Choices(limit))
            .ok_or_else(|| format!("from 1 to {} choices are shown", Choices::MAX))
    }
}

impl From<Choices> for u8 {
    fn from(limit: Choices) -> u8 {
        limit.0
    }
}

impl utoipa::PartialSchema for Choices {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::Type::Integer)
            .minimum(Some(1))
            .maximum(Some(Choices::MAX))
            .into()
    }
}
impl ToSchema for Choices {}

/// The earliest times at which the wish can be met, by start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct When {
    pub choices: Vec<Choice>,
    /// How many sites were searched.
    pub sites: usize,
    /// How many resources would do, taken or not.
    pub candidates: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Choice {
    pub site: SiteRef,
    pub start: Timestamp,
    pub end: Timestamp,
    pub resources: Vec<ResourceRef>,
    /// If somebody must approve it: the latest time at which they can.
    pub decide_by: Option<Timestamp>,
}

/// What else can be had, the nearest to the wish first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Alternative {
    pub kind: AlternativeKind,
    /// How far it is from the wish, in seconds: a later start, or what another place or fewer of them count for.
    pub distance_s: i64,
    /// One, or the two parts of a split.
    pub parts: Vec<AlternativePart>,
    /// The holds that keep its parts free for two minutes, where `hold` was asked for: take them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<ReservationId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlternativeKind {
    /// The same resources, or as many of the kind, at another time.
    Time,
    /// At the same time on others that are as good.
    Elsewhere,
    /// At the same time, but fewer.
    Fewer,
    /// In two parts.
    Split,
    /// An extension that does not go as far.
    Shorter,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AlternativePart {
    pub site: SiteRef,
    pub start: Timestamp,
    pub end: Timestamp,
    pub resources: Vec<ResourceRef>,
    /// How much of each; null where they are taken whole.
    pub amount: Option<Amount>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_wish_has_an_end_even_if_nobody_says_so() {
        let now: Timestamp = "2026-11-16T08:00:00Z".parse().unwrap();
        let wish = |more: serde_json::Value| {
            let mut wish = json!({"what": "A100", "variants": [{"count": 4, "for": "PT6H"}]});
            let more = more.as_object().unwrap().clone();
            wish.as_object_mut().unwrap().extend(more);
            serde_json::from_value::<Wish>(wish)
        };
        let open = wish(json!({})).unwrap();
        assert_eq!(open.window(now).unwrap().duration(), OUTLOOK);
        assert_eq!(open.selection().to_string(), "4 x A100");
        let over = wish(json!({"before": "2026-11-15T08:00:00Z"})).unwrap();
        assert_eq!(over.window(now).unwrap_err().0[0].field, "before");
        assert!(wish(json!({"variants": []})).is_err());
        assert!(wish(json!({"colour": "red"})).is_err());
    }
}
