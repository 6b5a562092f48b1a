//! Managed environments: Python with packages, read-only and in versions.

use berth_model::environment::{EnvironmentState, Package};
use berth_model::{EnvironmentId, Name, WorkloadId, environment};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::names::{Names, PersonRef, SiteRef};
use crate::reference::EnvironmentReference;

/// One version of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Environment {
    pub id: EnvironmentId,
    pub site: SiteRef,
    pub name: Name,
    /// 1, 2, ...; a version that is ready changes no more.
    pub version: u32,
    /// How to write it where one is asked for, such as for the image of a workload.
    #[schema(examples("torch@2", "~ada/torch@1"))]
    pub reference: String,
    /// Whose it is; null for one that the site curates.
    pub owner: Option<PersonRef>,
    /// What it extends.
    pub base: Option<String>,
    /// What it has beside that, as it was asked for.
    pub packages: Vec<Package>,
    /// Where whatever runs in it finds it.
    pub path: String,
    pub state: EnvironmentPhase,
    /// How far its making is; a guess.
    pub percent: u8,
    /// The last thing that was said while it is made.
    pub saying: Option<String>,
    /// Why it could not be made.
    pub trouble: Option<String>,
    /// The version of its interpreter.
    pub python: Option<String>,
    pub bytes: Option<u64>,
    /// What makes it, or made it.
    pub workload: Option<WorkloadId>,
    pub created_at: Timestamp,
    /// When it became ready, failed or was retired.
    pub settled_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnvironmentPhase {
    /// There is no room yet to make it in.
    Waiting,
    Building,
    Ready,
    Failed,
    /// Nothing new begins in it.
    Retired,
}

/// What is known of an environment beside itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub reference: String,
    pub base: Option<String>,
    pub is_waiting: bool,
    pub percent: u8,
    pub saying: Option<String>,
}

impl Environment {
    pub fn new(environment: &environment::Environment, about: About, names: &Names) -> Self {
        let state = match environment.state {
            EnvironmentState::Building if about.is_waiting => EnvironmentPhase::Waiting,
            EnvironmentState::Building => EnvironmentPhase::Building,
            EnvironmentState::Ready => EnvironmentPhase::Ready,
            EnvironmentState::Failed => EnvironmentPhase::Failed,
            EnvironmentState::Retired => EnvironmentPhase::Retired,
        };
        Self {
            id: environment.id,
            site: names.site(environment.site),
            name: environment.name.clone(),
            version: environment.version,
            reference: about.reference,
            owner: environment.owner.map(|owner| names.person(owner)),
            base: about.base,
            packages: environment.packages.clone(),
            path: environment.inside(),
            state,
            percent: about.percent,
            saying: about.saying,
            trouble: environment.trouble.clone(),
            python: environment.python.clone(),
            bytes: environment.bytes,
            workload: environment.workload,
            created_at: environment.created_at,
            settled_at: environment.settled_at,
        }
    }
}

/// An environment to make: from nothing, or on top of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEnvironment {
    pub name: Name,
    /// Whether it is the site's, which its admins make for everybody; one's own, if left out.
    #[serde(default)]
    pub curated: bool,
    /// What it extends. It has everything of that, and takes no more room than what it adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EnvironmentReference>,
    /// Packages, each with its extras and versions if they matter.
    #[serde(default)]
    #[schema(max_items = 200)]
    pub packages: Vec<Package>,
}

/// How the next version differs from this one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentChange {
    /// Packages to add; one that is there is asked for in this way from then on.
    #[serde(default)]
    #[schema(max_items = 200)]
    pub add: Vec<Package>,
    /// Packages to leave out, by their names.
    #[serde(default)]
    #[schema(max_items = 200)]
    pub remove: Vec<Package>,
}

/// The last of what was said while an environment was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentLog {
    pub log: String,
}
