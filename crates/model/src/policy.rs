//! Policies: what a site, and the whole installation, ask of a booking. As data; `engine::policy` judges by them.
//!
//! Every field is optional: a policy that says nothing of a matter leaves it to the policies around it. The
//! names of the fields are the names of the [`Rule`]s, and a refusal speaks of a rule by that name.

use std::collections::BTreeSet;
use std::fmt;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::name::{LoginName, Name, Text};
use crate::site::Role;
use crate::span::Span;

mod bounds;
mod length;
mod opening;

use bounds::at_most;

pub use length::{Length, LengthError, Step};
pub use opening::{Hours, HoursError, OpeningHours};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who_may_book: Option<Who>,
    /// A booking is made at least this long before it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<Length>,
    /// A booking starts at most this far ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<Length>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_min: Option<Length>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_max: Option<Length>,
    /// Lengths are multiples of this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_step: Option<Step>,
    /// Starts are multiples of this after midnight, on the site's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_step: Option<Step>,
    /// How many bookings a person may have that are not over yet. This and the two limits below count the
    /// bookings that the policy is about: in the policy of a type, those that take something of that type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_bookings: Option<u32>,
    /// How long the bookings of one person may last together within a week from Monday to Sunday.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person_hours_per_week: Option<Length>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_hours_per_week: Option<Length>,
    /// A booking lies within these from start to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opening_hours: Option<OpeningHours>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_on_holidays: Option<bool>,
    /// Between two bookings of one person on the same resource lies at least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Length>,
    /// To set up before a booking; held by a claim of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_before: Option<Length>,
    /// To tear down and clean after a booking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_after: Option<Length>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRule>,
    /// Who has not checked in this long after the start loses the rest of the booking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_in: Option<Length>,
}

/// Who may book. A list that is missing asks nothing; one that is there names all who may.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Who {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 2)]
    pub roles: Option<BTreeSet<Role>>,
    /// The booking is made for one of these projects.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "at_most::<1000, _, _>"
    )]
    #[schema(max_items = 1000)]
    pub projects: Option<BTreeSet<Name>>,
}

impl Who {
    pub fn admits(&self, role: Role, project: Option<&Name>) -> bool {
        let project_fits =
            |projects: &BTreeSet<Name>| project.is_some_and(|project| projects.contains(project));
        self.roles
            .as_ref()
            .is_none_or(|roles| roles.contains(&role))
            && self.projects.as_ref().is_none_or(project_fits)
    }

    pub fn admits_nobody(&self) -> bool {
        self.roles.as_ref().is_some_and(BTreeSet::is_empty)
            || self.projects.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Those whom both admit.
    pub fn and(&self, other: &Who) -> Who {
        fn both<T: Ord + Clone>(
            a: &Option<BTreeSet<T>>,
            b: &Option<BTreeSet<T>>,
        ) -> Option<BTreeSet<T>> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a & b),
                (one, None) | (None, one) => one.clone(),
            }
        }
        Who {
            roles: both(&self.roles, &other.roles),
            projects: both(&self.projects, &other.projects),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roles = self.roles.as_ref().map(|roles| {
            let roles: Vec<&str> = roles.iter().map(|role| role_in_words(*role)).collect();
            roles.join(" and ")
        });
        let projects = self.projects.as_ref().map(|projects| {
            let projects: Vec<&str> = projects.iter().map(Name::as_str).collect();
            projects.join(" or ")
        });
        match (roles.as_deref(), projects.as_deref()) {
            _ if self.admits_nobody() => f.write_str("nobody"),
            (None, None) => f.write_str("everybody"),
            (Some(roles), None) => f.write_str(roles),
            (None, Some(projects)) => write!(f, "whoever books for project {projects}"),
            (Some(roles), Some(projects)) => write!(f, "{roles} who book for project {projects}"),
        }
    }
}

fn role_in_words(role: Role) -> &'static str {
    match role {
        Role::Member => "members",
        Role::SiteAdmin => "site admins",
    }
}

/// When somebody must say yes first, and who that is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRule {
    /// Only bookings longer than this are asked about; all of them where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_than: Option<Length>,
    /// Any one of them decides.
    #[serde(default = "site_admins", deserialize_with = "at_most::<100, _, _>")]
    #[schema(max_items = 100)]
    pub approvers: BTreeSet<Approver>,
    /// May decide in the approvers' stead.
    #[serde(
        default,
        skip_serializing_if = "BTreeSet::is_empty",
        deserialize_with = "at_most::<100, _, _>"
    )]
    #[schema(max_items = 100)]
    pub deputies: BTreeSet<Approver>,
    /// Without one, the question stands until the booking would start, and is then answered with no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_out: Option<TimeOut>,
}

fn site_admins() -> BTreeSet<Approver> {
    BTreeSet::from([Approver::SiteAdmins])
}

impl fmt::Display for ApprovalRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.longer_than {
            None => f.write_str("every booking needs approval"),
            Some(length) => write!(f, "bookings longer than {length} need approval"),
        }?;
        let approvers: Vec<String> = self.approvers.iter().map(Approver::to_string).collect();
        write!(f, " by {}", approvers.join(" or "))
    }
}

/// People who can be asked for approval.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    SiteAdmins,
    /// The members of a project of the site.
    Project(Name),
    Person(LoginName),
}

/// By hand, since what is derived would let the objects have any other field.
impl utoipa::PartialSchema for Approver {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Type};
        let named = |field: &str, name| {
            ObjectBuilder::new()
                .schema_type(Type::Object)
                .property(field, name)
                .required(field)
                .additional_properties(Some(AdditionalProperties::FreeForm(false)))
        };
        let word = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(["site_admins"]));
        OneOfBuilder::new()
            .description(Some(
                "People who can be asked for approval: the site's admins, the members of a project, or a person.",
            ))
            .item(word)
            .item(named("project", Name::schema()))
            .item(named("person", LoginName::schema()))
            .into()
    }
}
impl utoipa::ToSchema for Approver {}

impl fmt::Display for Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Approver::SiteAdmins => f.write_str("the site's admins"),
            Approver::Project(name) => write!(f, "project {name}"),
            Approver::Person(login) => fmt::Display::fmt(login, f),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeOut {
    /// Counted from when the question was asked; the booking's start comes first if it is earlier.
    pub after: Length,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Approve,
    Reject,
}

/// What a policy is attached to. Ordered from wide to narrow.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[schema(as = PolicyScope)]
pub enum Scope {
    /// Of the whole installation; they bind every site.
    Ceilings,
    /// Of the whole installation; they hold where no policy of the site speaks.
    Defaults,
    Site(Part),
}

impl Scope {
    /// The policy of a site as a whole.
    pub const SITE: Scope = Scope::Site(Part {
        resource_type: None,
        role: None,
        project: None,
    });
}

/// The part of a site's bookings that a policy is about: those of a type, of a role, for a project, or where
/// several are named, those of all. With nothing named, the whole site.
#[derive(
    Debug,
    Clone,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(deny_unknown_fields, default)]
pub struct Part {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
}

impl Part {
    /// Whether everything that `other` is about is also in this part.
    pub fn contains(&self, other: &Part) -> bool {
        fn wider<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
            a.is_none() || a == b
        }
        wider(&self.resource_type, &other.resource_type)
            && wider(&self.role, &other.role)
            && wider(&self.project, &other.project)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Ceilings => f.write_str("global ceilings"),
            Scope::Defaults => f.write_str("global defaults"),
            Scope::Site(part) => write!(f, "policy of {part}"),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = self.role.map(|role| match role {
            Role::Member => "role member",
            Role::SiteAdmin => "role site_admin",
        });
        let named = [
            self.resource_type
                .as_ref()
                .map(|name| format!("type {name}")),
            role.map(str::to_owned),
            self.project.as_ref().map(|name| format!("project {name}")),
        ];
        let named: Vec<String> = named.into_iter().flatten().collect();
        if named.is_empty() {
            f.write_str("the site")
        } else {
            f.write_str(&named.join(" and "))
        }
    }
}

macro_rules! rules {
    ($($rule:ident $word:literal),* $(,)?) => {
        /// What a policy can ask, by the name of its field.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
        )]
        #[serde(rename_all = "snake_case")]
        #[schema(as = PolicyRule)]
        pub enum Rule { $($rule,)* }

        impl Rule {
            pub const ALL: &[Rule] = &[$(Rule::$rule),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Rule::$rule => $word,)* }
            }
        }
    };
}

rules! {
    WhoMayBook "who_may_book",
    Notice "notice",
    Horizon "horizon",
    LengthMin "length_min",
    LengthMax "length_max",
    LengthStep "length_step",
    StartStep "start_step",
    ActiveBookings "active_bookings",
    PersonHoursPerWeek "person_hours_per_week",
    ProjectHoursPerWeek "project_hours_per_week",
    OpeningHours "opening_hours",
    ClosedOnHolidays "closed_on_holidays",
    Gap "gap",
    BufferBefore "buffer_before",
    BufferAfter "buffer_after",
    Approval "approval",
    CheckIn "check_in",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A day or a time on which a site that keeps holidays takes no bookings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Holiday {
    pub name: Text,
    pub when: When,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum When {
    /// Whole days on the site's clock, the last one included.
    Days {
        #[schema(value_type = String, format = Date)]
        first: Date,
        #[schema(value_type = String, format = Date)]
        last: Date,
    },
    #[schema(value_type = Object)]
    Span(Span),
}

impl Holiday {
    /// Its time where the clocks follow `zone`; none where its days are the wrong way round or too far away.
    pub fn span(&self, zone: &TimeZone) -> Option<Span> {
        match self.when {
            When::Span(span) => Some(span),
            When::Days { first, last } => {
                let midnight =
                    |date: Date| date.to_zoned(zone.clone()).ok().map(|day| day.timestamp());
                Span::new(midnight(first)?, midnight(last.tomorrow().ok()?)?).ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_reads_back_and_refuses_what_it_does_not_know() {
        let written = json!({
            "who_may_book": {"roles": ["member"], "projects": ["vision"]},
            "notice": "2h", "horizon": "14d", "length_min": "30m", "length_max": "12h",
            "length_step": "30m", "start_step": "15m", "active_bookings": 3,
            "person_hours_per_week": "40h", "project_hours_per_week": "400h",
            "opening_hours": {"mon": ["08:00-18:00"]}, "closed_on_holidays": true, "gap": "1h",
            "buffer_before": "10m", "buffer_after": "15m",
            "approval": {"longer_than": "4h", "approvers": [{"project": "leads"}],
                "deputies": ["site_admins", {"person": "ada"}],
                "time_out": {"after": "24h", "outcome": "reject"}},
            "check_in": "15m",
        });
        let policy: Policy = serde_json::from_value(written.clone()).unwrap();
        let read_back = serde_json::to_value(&policy).unwrap();
        for rule in Rule::ALL {
            assert_eq!(serde_json::to_value(rule).unwrap(), json!(rule.as_str()));
            assert!(written.get(rule.as_str()).is_some(), "{rule} is a field");
        }
        assert_eq!(read_back.as_object().unwrap().len(), Rule::ALL.len());
        assert_eq!(read_back["notice"], json!("2h"));
        assert_eq!(serde_json::from_value::<Policy>(read_back).unwrap(), policy);

        assert_eq!(
            serde_json::from_value::<Policy>(json!({})).unwrap(),
            Policy::default()
        );
        assert_eq!(serde_json::to_value(Policy::default()).unwrap(), json!({}));
        for bad in [
            json!({"lenght_max": "12h"}),
            json!({"length_step": "0m"}),
            json!({"notice": 120}),
            json!({"who_may_book": {"role": "member"}}),
            json!({"approval": {"time_out": {"after": "1h"}}}),
            json!({"opening_hours": {"mon": vec!["08:00-18:00"; 25]}}),
            json!({"approval": {"deputies": (0..101).map(|i| json!({"person": format!("p{i}")})).collect::<Vec<_>>()}}),
        ] {
            assert!(
                serde_json::from_value::<Policy>(bad.clone()).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn scopes_say_what_they_are_about() {
        for (written, said) in [
            (json!("ceilings"), "global ceilings"),
            (json!("defaults"), "global defaults"),
            (json!({"site": {}}), "policy of the site"),
            (
                json!({"site": {"type": "gpu-node"}}),
                "policy of type gpu-node",
            ),
            (
                json!({"site": {"type": "gpu-node", "role": "member", "project": "vision"}}),
                "policy of type gpu-node and role member and project vision",
            ),
        ] {
            let scope: Scope = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(scope.to_string(), said);
            assert_eq!(serde_json::to_value(&scope).unwrap(), written);
        }
        let part = |value| serde_json::from_value::<Part>(value).unwrap();
        let (whole, of_type) = (Part::default(), part(json!({"type": "a"})));
        let narrow = part(json!({"type": "a", "project": "p"}));
        assert!(whole.contains(&narrow) && of_type.contains(&narrow));
        assert!(!narrow.contains(&of_type) && !part(json!({"type": "b"})).contains(&narrow));
    }

    #[test]
    fn who_in_words() {
        let who = |value| serde_json::from_value::<Who>(value).unwrap();
        for (value, said) in [
            (json!({}), "everybody"),
            (json!({"roles": []}), "nobody"),
            (
                json!({"roles": ["member", "site_admin"]}),
                "members and site admins",
            ),
            (
                json!({"projects": ["a", "b"]}),
                "whoever books for project a or b",
            ),
            (
                json!({"roles": ["member"], "projects": ["a"]}),
                "members who book for project a",
            ),
        ] {
            assert_eq!(who(value).to_string(), said);
        }
    }

    #[test]
    fn a_holiday_is_as_long_as_its_days() {
        let rome = TimeZone::get("Europe/Rome").unwrap();
        let holiday: Holiday = serde_json::from_value(json!({
            "name": "Clocks go back", "when": {"days": {"first": "2026-10-25", "last": "2026-10-25"}},
        }))
        .unwrap();
        let span = holiday.span(&rome).unwrap();
        assert_eq!(span.duration().as_hours(), 25);
        assert_eq!(span.start().to_string(), "2026-10-24T22:00:00Z");
    }
}
