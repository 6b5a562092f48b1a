//! How the queue of a site is run: what its nodes are made of, whose share is how large, what is the most anybody may
//! have, which levels there are, and named presets. One document for each site, changed as a whole.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::id::{GrantId, PersonId, ProjectId, SiteId, TypeId};
use crate::name::{LoginName, Name, Text};
use crate::session::{App, SessionProfile, catalogue};
use crate::workload::{Class, Wish};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueuePolicy {
    /// What resources of a type are to the queue. A type that is not here is nothing to it.
    pub roles: BTreeMap<TypeId, Role>,
    /// After so long, what was used counts half.
    pub half_life: SignedDuration,
    /// How long something has to come to its end once it is told.
    pub grace: SignedDuration,
    /// How long something has, before that grace, to write down how far it has come.
    pub checkpoint: SignedDuration,
    /// Nothing is told to make room before it has run this long.
    pub run_min: SignedDuration,
    /// The longest limit that anybody may ask for.
    pub limit_max: SignedDuration,
    /// How many workloads of one person may wait; an array is one.
    pub waiting_max: u32,
    /// The weights of projects; one, for those who are not here.
    pub shares: BTreeMap<ProjectId, Weight>,
    pub quotas: Vec<Quota>,
    pub levels: BTreeMap<Name, Level>,
    pub profiles: BTreeMap<Name, Profile>,
    /// What can be started as a session, beside what comes with Berth.
    pub apps: BTreeMap<Name, App>,
    /// Whether idle time inside reservations is lent to opportunistic work, unless the owner says otherwise; and so are the
    /// GPUs of idle sessions, unless their profile says otherwise.
    pub lends: bool,
    pub version: u64,
}

impl QueuePolicy {
    /// The most that a site may let one person have waiting: a plan of more is no longer made in a second.
    pub const WAITING_MAX: u32 = 1_000_000;

    /// How sessions of a profile are run, if it is for sessions.
    pub fn session_profile(&self, profile: &Name) -> Option<&SessionProfile> {
        self.profiles.get(profile)?.session.as_ref()
    }

    /// What sessions of a profile start.
    pub fn session_app(&self, profile: &Name) -> Option<App> {
        self.app(&self.session_profile(profile)?.app)
    }

    /// An app by its name: the site's own, or one that comes with Berth.
    pub fn app(&self, name: &Name) -> Option<App> {
        let own = self.apps.get(name).cloned();
        own.or_else(|| catalogue().remove(name))
    }
}

impl Default for QueuePolicy {
    fn default() -> Self {
        QueuePolicy {
            roles: BTreeMap::new(),
            half_life: SignedDuration::from_hours(7 * 24),
            grace: SignedDuration::from_secs(30),
            checkpoint: SignedDuration::from_mins(2),
            run_min: SignedDuration::from_mins(5),
            limit_max: SignedDuration::from_hours(7 * 24),
            waiting_max: 10_000,
            shares: BTreeMap::new(),
            quotas: Vec::new(),
            levels: BTreeMap::new(),
            profiles: BTreeMap::new(),
            apps: BTreeMap::new(),
            lends: false,
            version: 0,
        }
    }
}

/// What resources of a type are to the queue.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[schema(as = QueueRole)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A machine that runs workloads.
    Node,
    /// The cores of the node it stands below.
    Cores,
    /// The memory of the node it stands below, in GiB or MiB, as its unit says.
    Memory,
    /// A GPU of the node it stands below; one with a capacity of 1000 can be shared in thousandths.
    Gpu,
    /// A slice that the hardware cuts from the GPU it stands below.
    Slice,
    /// Counted things that belong to no node.
    Seats,
}

/// How large a share is beside the others'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Weight(u32);

impl Weight {
    pub const MAX: u32 = 1_000_000;

    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Self {
        Weight(1)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a weight is a whole number from 1 to {}", Weight::MAX)]
pub struct WeightError;

impl TryFrom<u32> for Weight {
    type Error = WeightError;
    fn try_from(value: u32) -> Result<Self, WeightError> {
        (1..=Weight::MAX)
            .contains(&value)
            .then_some(Weight(value))
            .ok_or(WeightError)
    }
}

impl From<Weight> for u32 {
    fn from(weight: Weight) -> u32 {
        weight.0
    }
}

impl utoipa::PartialSchema for Weight {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::Integer)
            .minimum(Some(1))
            .maximum(Some(i64::from(Weight::MAX)))
            .into()
    }
}
impl utoipa::ToSchema for Weight {}

/// Whose a quota is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    Site,
    Project(ProjectId),
    /// Of one person, in all their projects.
    Person(PersonId),
}

impl Whose {
    /// The project or the person that is meant; neither for the whole site.
    pub fn parts(self) -> (Option<ProjectId>, Option<PersonId>) {
        match self {
            Whose::Site => (None, None),
            Whose::Project(project) => (Some(project), None),
            Whose::Person(person) => (None, Some(person)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quota {
    pub whose: Whose,
    pub amounts: QuotaAmounts,
    /// Only in these hours, on the site's clock; always, if none.
    pub hours: Option<Hours>,
}

/// How much somebody may have. What is left out is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuotaAmounts {
    /// The most GPUs at a time, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_milli: Option<u64>,
    /// The part of them that is one's own, to be had back from those who borrowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_milli_guaranteed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores_milli: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores_milli_guaranteed: Option<u64>,
    /// GPU-hours in a calendar month, as a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_hours_month: Option<u64>,
}

/// Hours of some days of the week: nights, weekends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Hours {
    /// 1 is Monday. Every day, if none.
    #[serde(default)]
    pub days: BTreeSet<u8>,
    /// From this minute of the day on, and until that one; over midnight where the second is not larger.
    pub from_minute: u16,
    pub to_minute: u16,
}

/// A level of priority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// The higher comes first; the ordinary level is 0.
    pub number: i32,
    /// Who may use it; everybody, if none are named.
    pub projects: BTreeSet<ProjectId>,
}

/// A named preset of what people ask for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub title: Text,
    #[serde(default)]
    pub class: Class,
    #[schema(max_items = 8)]
    pub wishes: Vec<Wish>,
    /// That it is for sessions, and how they are run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionProfile>,
}

/// An admin's word that somebody's work comes before all others', for a while and so many GPU-hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    pub id: GrantId,
    pub site: SiteId,
    pub whose: Whose,
    pub from: Timestamp,
    pub until: Timestamp,
    pub gpu_hours: u64,
    pub reason: Text,
    pub by: PersonId,
    pub revoked_at: Option<Timestamp>,
}

/// How the queue of a site is run, in the names that people use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = QueueSettings)]
pub struct Settings {
    /// What resources of a type are to the queue, by the type's name.
    #[schema(value_type = BTreeMap<String, Role>)]
    pub roles: BTreeMap<Name, Role>,
    /// After so long, what was used counts half.
    #[schema(value_type = String, examples("PT168H"))]
    pub half_life: SignedDuration,
    /// How long something has to come to its end once it is told.
    #[schema(value_type = String, examples("PT30S"))]
    pub grace: SignedDuration,
    /// How long something has, before that grace, to write down how far it has come.
    #[schema(value_type = String, examples("PT2M"))]
    pub checkpoint: SignedDuration,
    /// Nothing is told to make room before it has run this long.
    #[schema(value_type = String, examples("PT5M"))]
    pub run_min: SignedDuration,
    /// The longest limit that anybody may ask for.
    #[schema(value_type = String, examples("PT168H"))]
    pub limit_max: SignedDuration,
    /// How many workloads of one person may wait; an array is one.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub waiting_max: u32,
    /// The weights of projects, by name; those who are not here weigh 1.
    #[schema(value_type = BTreeMap<String, u32>)]
    pub shares: BTreeMap<Name, Weight>,
    #[schema(max_items = 1000)]
    pub quotas: Vec<QuotaSetting>,
    #[schema(value_type = BTreeMap<String, LevelSetting>)]
    pub levels: BTreeMap<Name, LevelSetting>,
    #[schema(value_type = BTreeMap<String, Profile>)]
    pub profiles: BTreeMap<Name, Profile>,
    /// What can be started as a session, beside what comes with Berth; or in its place, under the same name.
    #[schema(value_type = BTreeMap<String, App>)]
    pub apps: BTreeMap<Name, App>,
    /// Whether idle time inside reservations, and the GPUs of idle sessions, are lent to opportunistic work.
    pub lends: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let QueuePolicy {
            half_life,
            grace,
            checkpoint,
            run_min,
            limit_max,
            waiting_max,
            lends,
            ..
        } = QueuePolicy::default();
        Settings {
            roles: BTreeMap::new(),
            half_life,
            grace,
            checkpoint,
            run_min,
            limit_max,
            waiting_max,
            shares: BTreeMap::new(),
            quotas: Vec::new(),
            levels: BTreeMap::new(),
            profiles: BTreeMap::new(),
            apps: BTreeMap::new(),
            lends,
        }
    }
}

/// How much a project or a person may have; the whole site, where neither is named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaSetting {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<LoginName>,
    pub amounts: QuotaAmounts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<Hours>,
}

/// A level of priority, and the projects that may use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LevelSetting {
    /// The higher comes first; the ordinary level is 0.
    pub number: i32,
    /// Everybody may, if none are named.
    #[serde(default)]
    pub projects: BTreeSet<Name>,
}
