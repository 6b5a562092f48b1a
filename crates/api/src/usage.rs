//! How much of a site was used, by whom and when, and what became of bookings.
//!
//! All times are whole seconds of one resource each: a resource that was there all day has 86,400 of them, and two
//! have twice as many.

use berth_model::person::TimeZone;
use berth_model::policy::Rule;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::moment::Moment;
use crate::names::{PersonRef, ProjectRef, SiteRef, TypeRef};
use crate::reference::TypeReference;
use crate::schemas;

/// How the time is cut, by the site's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bucket {
    Hour,
    #[default]
    Day,
    /// From Monday to Monday.
    Week,
}

/// Which time, cut how, and of what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct UsageQuery {
    /// 30 days before `to`, if left out. At most 400 days are looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub from: Option<Moment>,
    /// Now, if left out. What lies ahead counts as it is booked so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub to: Option<Moment>,
    /// At most 1,000 buckets are shown.
    #[serde(default)]
    #[param(inline, required = false)]
    pub bucket: Bucket,
    /// Count resources of this type only.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub kind: Option<TypeReference>,
    /// Only what is mine. Members may ask for nothing else.
    #[serde(default)]
    #[param(required = false)]
    pub mine: bool,
}

/// Which time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AllUsageQuery {
    /// 30 days before `to`, if left out. At most 400 days are looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub from: Option<Moment>,
    /// Now, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub to: Option<Moment>,
}

/// The use of one site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    pub site: SiteRef,
    pub from: Timestamp,
    pub to: Timestamp,
    /// The site's, by which days, weeks and hours are meant.
    #[schema(value_type = schemas::TimeZone)]
    pub time_zone: TimeZone,
    pub bucket: Bucket,
    /// Whether only what belongs to the one who asks is counted as used.
    pub mine: bool,
    /// The type that was asked for; null where the leaves of the tree are counted, of whatever type.
    #[serde(rename = "type")]
    pub kind: Option<TypeRef>,
    /// In order, without gaps. The first and the last may be cut.
    pub buckets: Vec<UsageBucket>,
    /// All of it: of the type that was asked for, or of everything.
    pub all: UsageFigures,
    /// Each type by itself, by name.
    pub types: Vec<TypeUsage>,
    /// Who used the most.
    pub people: PeopleUsage,
    /// What it was used for.
    pub projects: ProjectsUsage,
    /// The hours of the week from Monday at midnight by the site's clock, 168 of them.
    pub week: Vec<UsageSeconds>,
    pub lead_times: LeadTimes,
    pub outcomes: Outcomes,
    /// Why bookings were refused, the most frequent reason first. Absent where only one's own use was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub refusals: Option<Vec<RefusalCount>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageBucket {
    pub start: Timestamp,
    pub end: Timestamp,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageSeconds {
    /// In which there was something to have: it was there, in service, and under no maintenance.
    pub available_s: u64,
    /// Of those, the ones in which it was taken.
    pub used_s: u64,
}

impl UsageSeconds {
    /// From 0 to 1; none where there was nothing to have.
    pub fn utilisation(self) -> Option<f64> {
        (self.available_s > 0).then(|| self.used_s as f64 / self.available_s as f64)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageFigures {
    /// How many were counted.
    pub resources: u64,
    pub available_s: u64,
    pub used_s: u64,
    /// From 0 to 1; null where there was nothing to have.
    pub utilisation: Option<f64>,
    /// One for each bucket, in the same order.
    pub by_bucket: Vec<UsageSeconds>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TypeUsage {
    #[serde(rename = "type")]
    pub kind: TypeRef,
    #[serde(flatten)]
    pub figures: UsageFigures,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageShare {
    pub used_s: u64,
    /// The same for each bucket, in their order.
    pub used_s_by_bucket: Vec<u64>,
    /// Bookings that start within the time and were not given up before.
    pub bookings: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PersonUsage {
    pub person: PersonRef,
    #[serde(flatten)]
    pub share: UsageShare,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectUsage {
    /// Null for what was booked for no project.
    pub project: Option<ProjectRef>,
    #[serde(flatten)]
    pub share: UsageShare,
}

/// All who are not named, together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageRest {
    pub count: u64,
    #[serde(flatten)]
    pub share: UsageShare,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeopleUsage {
    /// At most 20, the greatest first.
    pub items: Vec<PersonUsage>,
    pub rest: UsageRest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectsUsage {
    /// At most 20, the greatest first.
    pub items: Vec<ProjectUsage>,
    pub rest: UsageRest,
}

/// How long before their start bookings were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeadTimes {
    pub bookings: u64,
    /// None without bookings.
    pub quantiles: Vec<LeadQuantile>,
    pub histogram: Vec<LeadBar>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeadQuantile {
    pub percent: u8,
    /// So many percent were made at most this long before.
    pub lead_s: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeadBar {
    /// Made less than this before the start, and not less than the bar before; null in the last one.
    pub below_s: Option<u64>,
    pub bookings: u64,
}

/// What became of the bookings that start within the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Outcomes {
    /// That stand, took place, or were to.
    pub bookings: u64,
    /// Of those, released because nobody checked in.
    pub no_shows: u64,
    /// Of those, failed: nobody decided in time, or Berth was not running.
    pub failed: u64,
    /// Beside those: cancelled before they began.
    pub cancelled: u64,
    /// Of the cancelled, less than a day before the start.
    pub cancelled_late: u64,
    /// Beside those: rejected by an approver.
    pub rejected: u64,
}

/// A reason why bookings were refused. One that breaks several rules counts for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusalCount {
    /// The code of the problem.
    pub code: String,
    /// The policy's rule, where one was the reason.
    #[schema(value_type = Option<Rule>)]
    pub rule: Option<String>,
    pub count: u64,
}

/// The use of every site, in sums.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AllUsage {
    pub from: Timestamp,
    pub to: Timestamp,
    /// By name.
    pub sites: Vec<SiteTotals>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SiteTotals {
    pub site: SiteRef,
    /// The leaves of its tree.
    pub resources: u64,
    pub available_s: u64,
    pub used_s: u64,
    /// From 0 to 1; null where there was nothing to have.
    pub utilisation: Option<f64>,
    /// Week by week, from Monday to Monday by the site's clock.
    pub weeks: Vec<WeekUsage>,
    /// How many people used something or booked it.
    pub people: u64,
    pub outcomes: Outcomes,
    /// Reasons why bookings were refused, all together.
    pub refusals: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WeekUsage {
    #[serde(flatten)]
    pub bucket: UsageBucket,
    #[serde(flatten)]
    pub seconds: UsageSeconds,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_may_leave_everything_out() {
        let query: UsageQuery = crate::parse::query("").unwrap();
        assert_eq!(query, UsageQuery::default());
        let query: UsageQuery = crate::parse::query("bucket=week&mine=true&type=gpu").unwrap();
        assert_eq!((query.bucket, query.mine), (Bucket::Week, true));
        assert!(crate::parse::query::<UsageQuery>("bucket=month").is_err());
    }

    #[test]
    fn nothing_to_have_is_no_use_of_nothing() {
        let seconds = |available_s, used_s| UsageSeconds {
            available_s,
            used_s,
        };
        assert_eq!(seconds(0, 0).utilisation(), None);
        assert_eq!(seconds(4, 1).utilisation(), Some(0.25));
    }
}
