//! Policies: what is asked of bookings, by whom, since when, and what a booking would meet.

use berth_model::policy::{Length, Part, Policy, Rule, Scope};
use berth_model::site::Role;
use berth_model::{FieldErrors, Name, Span, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::calendar::span;
use crate::list::List;
use crate::moment::Moment;
use crate::names::PersonRef;
use crate::reference::{PersonReference, ProjectReference};
use crate::reservations::{Reservation, WantedResource};

/// One version of a policy: what it asked from `set_at` until the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyVersion {
    pub scope: Scope,
    /// Counted for each scope from 1.
    pub version: u64,
    /// Null where this version took the policy away.
    pub policy: Option<Policy>,
    pub set_by: Option<PersonRef>,
    pub set_at: Timestamp,
    pub reason: Option<Text>,
}

/// Policies, or the versions of one. They come whole, without pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyList {
    pub items: Vec<PolicyVersion>,
}

/// All that a policy asks from now on; what is left out is left to the policies around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPolicy {
    pub policy: Policy,
    /// Why; kept with the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
}

/// Which part of the site's bookings a policy is about; the whole site where nothing is named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PartQuery {
    /// Bookings of this type of resource.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub kind: Option<Name>,
    /// Bookings of people with this role in the site.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub role: Option<Role>,
    /// Bookings for this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub project: Option<Name>,
}

impl PartQuery {
    pub fn part(&self) -> Part {
        Part {
            resource_type: self.kind.clone(),
            role: self.role,
            project: self.project.clone(),
        }
    }
}

impl From<Part> for PartQuery {
    fn from(part: Part) -> Self {
        Self {
            kind: part.resource_type,
            role: part.role,
            project: part.project,
        }
    }
}

/// The same, for a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PolicyChangeQuery {
    /// Bookings of this type of resource.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub kind: Option<Name>,
    /// Bookings of people with this role in the site.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub role: Option<Role>,
    /// Bookings for this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub project: Option<Name>,
    /// Only say what the change would do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[param(inline, required = false)]
    pub dry_run: bool,
    /// Why, where there is no body to say it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub reason: Option<Text>,
}

impl PolicyChangeQuery {
    pub fn new(part: Part, dry_run: bool, reason: Option<Text>) -> Self {
        Self {
            kind: part.resource_type,
            role: part.role,
            project: part.project,
            dry_run,
            reason,
        }
    }

    pub fn part(&self) -> Part {
        Part {
            resource_type: self.kind.clone(),
            role: self.role,
            project: self.project.clone(),
        }
    }
}

/// The same for the policies of the whole installation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct GlobalPolicyChangeQuery {
    /// Only say what the change would do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[param(inline, required = false)]
    pub dry_run: bool,
    /// Why, where there is no body to say it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub reason: Option<Text>,
}

/// The policies of the whole installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GlobalScope {
    /// They bind every site.
    Ceilings,
    /// They hold where no policy of the site speaks.
    Defaults,
}

impl std::fmt::Display for GlobalScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            GlobalScope::Ceilings => "ceilings",
            GlobalScope::Defaults => "defaults",
        })
    }
}

/// What came of a change, or would come of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PolicyChange {
    /// False for a dry run.
    pub applied: bool,
    /// The policy as it then is.
    pub now: PolicyVersion,
    /// Standing bookings that do not keep it. They stay as they are.
    pub breaks: Vec<BrokenBooking>,
    /// How many there are in all; `breaks` lists the first of them.
    pub breaks_count: u64,
    /// What narrower policies say that is looser, and so has no effect any more; each as a sentence.
    pub overruled: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BrokenBooking {
    pub reservation: Reservation,
    pub breaches: Vec<Breach>,
}

/// One rule that a booking does not keep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Breach {
    pub rule: Rule,
    /// The rule's value, as in a policy.
    pub value: serde_json::Value,
    /// The policies it comes from.
    pub from: Vec<Scope>,
    /// The rule, whose it is, what was found and what would be accepted, as a sentence.
    pub detail: String,
    pub accepts: Acceptable,
}

/// What would be accepted in place of what was asked for. Nothing is said where no other time would help.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Acceptable {
    /// The nearest start that all rules accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub start: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub at_least: Option<Length>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub at_most: Option<Length>,
    /// The nearest shorter and longer lengths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<Length>,
    /// What is left in that week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub left_in_week: Option<Length>,
}

/// A time that would be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Instead {
    pub start: Timestamp,
    pub end: Timestamp,
}

impl From<Span> for Instead {
    fn from(span: Span) -> Self {
        Self {
            start: span.start(),
            end: span.end(),
        }
    }
}

/// A hypothetical booking. Whether there is room is not asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyTest {
    pub start: Moment,
    pub end: Moment,
    #[schema(value_type = Vec<WantedResource>, min_items = 1, max_items = 100)]
    pub resources: List<WantedResource, 1, 100>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectReference>,
    /// As whose booking; only a site admin may try for another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<PersonReference>,
}

impl PolicyTest {
    pub fn span(&self) -> Result<Span, FieldErrors> {
        span(self.start, self.end, "end")
    }
}

/// What the policies make of a hypothetical booking, rule by rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PolicyFindings {
    pub accepted: bool,
    /// Every rule that holds for such a booking.
    pub findings: Vec<Finding>,
    /// The nearest time that would be accepted, if another time would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub instead: Option<Instead>,
    /// Who would be asked to approve it, by when, and what their silence means; each as a sentence.
    pub approvals: Vec<String>,
    /// When it would be released if nobody checks in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub check_in_by: Option<Timestamp>,
    /// The time before it that would be held to set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub set_up: Option<Instead>,
    /// The time after it that would be held to clean up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub clean_up: Option<Instead>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    pub rule: Rule,
    /// The rule's value, as in a policy.
    pub value: serde_json::Value,
    /// The policies it comes from.
    pub from: Vec<Scope>,
    pub holds: bool,
    /// The rule and how it turned out, as a sentence.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_named_in_the_query() {
        let query: PartQuery = crate::parse::query("type=gpu-node&role=member").unwrap();
        let part = query.part();
        assert_eq!(part.resource_type.unwrap().as_str(), "gpu-node");
        assert_eq!(part.role, Some(Role::Member));
        assert!(crate::parse::query::<PartQuery>("typ=gpu-node").is_err());
        let change = PolicyChangeQuery::new(Part::default(), true, None);
        assert_eq!(crate::parse::write_query(&change).unwrap(), "dry_run=true");
    }

    #[test]
    fn a_policy_comes_with_its_reason_or_without() {
        let read = |text| serde_json::from_str::<NewPolicy>(text);
        assert!(read(r#"{"policy": {"length_max": "12h"}}"#).is_ok());
        assert!(read(r#"{"length_max": "12h"}"#).is_err());
    }
}
