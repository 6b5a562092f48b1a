//! Work in the queue: submitted, waiting and why, running where, and how it ended.

use berth_model::name::Text;
use berth_model::queue::Settings;
use berth_model::workload::{
    After, Array, Class, Counts, EndsBy, Program, RunState, Seats, State, Tasks, Wish,
};
use berth_model::{Amount, GrantId, Name, ReservationId, RunId, WorkloadId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::list::List;
use crate::moment::Moment;
use crate::names::{PersonRef, ProjectRef, ResourceRef, SiteRef};
use crate::page::{Cursor, Limit};
use crate::reference::{PersonReference, ProjectReference};

/// A workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Workload {
    pub id: WorkloadId,
    /// Its number in its site: short enough to be typed.
    pub number: u64,
    pub site: SiteRef,
    pub owner: PersonRef,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub project: Option<ProjectRef>,
    pub title: Text,
    pub class: Class,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub level: Option<Name>,
    #[schema(value_type = WorkloadState)]
    pub state: State,
    /// Why it waits, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub waits: Option<Waits>,
    /// What its owner or an admin said when it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<Text>,
    pub wishes: Vec<Wish>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seats: Vec<TakenSeats>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub array: Option<Array>,
    /// The reservation of its owner's inside which it runs, and nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub inside: Option<ReservationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub deadline: Option<Timestamp>,
    pub requeue: bool,
    /// Those of its tasks that have not begun, or have to begin again.
    pub waiting: Tasks,
    pub counts: Counts,
    /// How many of its tasks were cancelled.
    pub cancelled: u64,
    /// Only for its owner and the site's admins; left out of lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub program: Option<Program>,
    /// The newest first; in lists only those that are not over, or else the last.
    pub runs: Vec<Run>,
    /// Since when it waits.
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ended_at: Option<Timestamp>,
    pub version: u64,
}

/// The states of a workload, as OpenAPI knows them: a reservation has others.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WorkloadState {
    Waiting,
    Held,
    Running,
    Completed,
    Failed,
    Cancelled,
}

/// Why something waits, and what would change it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Waits {
    /// For programs: `no_room`, `promised`, `making_room`, `quota`, `quota_idle`, `held`, `not_before`, `dependency`,
    /// `dependency_never`, `no_such_gpu`, `never`, `planning` or `no_backend`.
    pub code: String,
    /// For people.
    pub words: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub remedy: Option<String>,
    /// It begins then at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub promised: Option<Timestamp>,
    /// It will probably begin then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub forecast: Option<Timestamp>,
    /// When it would then be over at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ends: Option<Ends>,
}

/// When something is over at the latest, and why then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ends {
    pub at: Timestamp,
    pub by: EndsBy,
}

/// What would become of a workload if it were submitted now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadPreview {
    /// The number that it would get, if nobody came before it.
    pub number: u64,
    /// What it asks for, with what a profile adds.
    pub wishes: Vec<Wish>,
    /// When it would probably begin; left out where nobody can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub begins: Option<Timestamp>,
    /// Why it would wait; left out if it began at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub waits: Option<Waits>,
    /// Which of its wishes it would get, from zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub wish: Option<u64>,
    /// When it would be over at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ends: Option<Ends>,
    /// Where it would run, if it began at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<ResourceRef>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TakenSeats {
    pub resource: ResourceRef,
    pub amount: Amount,
}

/// One task of a workload, from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// Left out for everybody but the workload's owner and the site's admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub id: Option<RunId>,
    pub task: u32,
    /// The how manieth try of this task it is, from one.
    pub attempt: u32,
    /// Which of the workload's wishes it got, from zero.
    pub wish: u64,
    /// The reservation inside which it runs: its owner's own, or one whose idle time was lent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub inside: Option<ReservationId>,
    /// From when on it runs outside that, as opportunistic work, because the reservation's owner lets it go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub kept_from: Option<Timestamp>,
    /// Whether its GPUs are those of a session in which nothing is done: it goes when that one's owner comes back.
    #[serde(default)]
    pub is_on_loan: bool,
    #[serde(flatten)]
    pub state: RunState,
    pub nodes: Vec<RunNode>,
    pub began: Timestamp,
    /// When it has to be over at the latest.
    pub until: Timestamp,
    pub until_by: EndsBy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ended_at: Option<Timestamp>,
    /// How it came to its end, where whatever ran it could tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub said: Option<Text>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunNode {
    pub node: ResourceRef,
    pub cores_milli: u64,
    pub memory_mib: u64,
    pub gpus: Vec<RunGpu>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RunGpuRef)]
pub struct RunGpu {
    pub gpu: ResourceRef,
    /// In thousandths; all of it, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub share: Option<Amount>,
}

/// Work to submit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorkload {
    pub title: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectReference>,
    /// A preset of the site, whose wishes are taken where none are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Name>,
    /// The ways in which it could be served, of which it gets one; the first is preferred.
    #[serde(default)]
    #[schema(value_type = Vec<Wish>, max_items = 8)]
    pub wishes: List<Wish, 0, 8>,
    #[serde(default)]
    pub class: Class,
    /// One of the site's levels of priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Name>,
    #[serde(default)]
    #[schema(value_type = Vec<Seats>, max_items = 100)]
    pub seats: List<Seats, 0, 100>,
    /// Inside this reservation of yours, and nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<ReservationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Moment>,
    #[serde(default)]
    #[schema(value_type = Vec<After>, max_items = 100)]
    pub after: List<After, 0, 100>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Array>,
    /// Whether it begins again after it had to make room or its node failed; yes, if left out.
    #[serde(default = "yes")]
    pub requeue: bool,
    /// Whether it is held until somebody releases it.
    #[serde(default)]
    pub held: bool,
    #[serde(default)]
    pub program: Program,
}

fn yes() -> bool {
    true
}

/// How much longer something that runs may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendWorkload {
    #[schema(value_type = String, examples("PT2H"))]
    pub by: SignedDuration,
}

/// What is to be cancelled of a workload, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelWorkload {
    /// Only these tasks of an array, as in `3-7,9`; the rest goes on. All of it, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Tasks>,
    /// Kept with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
}

impl WorkloadQuery {
    /// Characters of what is looked for.
    pub const TEXT_MAX: usize = 200;
}

/// What to list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct WorkloadQuery {
    /// Only this person's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub owner: Option<PersonReference>,
    /// Only of this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub project: Option<ProjectReference>,
    /// Only of this class.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub class: Option<Class>,
    /// Only those with this in their title, their number or their owner's name, or that run on the node of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(max_length = 200)]
    pub text: Option<String>,
    /// Only in these states, divided by commas; those that are not over, if left out. `all` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(max_length = 200)]
    pub state: Option<String>,
    /// Of those that are over, only what was so after this moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub since: Option<Moment>,
    #[param(inline, required = false)]
    pub limit: Limit,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub cursor: Option<Cursor>,
}

/// How much of a site's queue waits and runs, and whose it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueCounts {
    pub all: QueueCount,
    /// Only those that have something in the queue, as everywhere here.
    pub projects: Vec<ProjectCount>,
    pub people: Vec<PersonCount>,
    pub classes: Vec<ClassCount>,
}

/// Workloads that are not over, by what they do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueCount {
    pub waiting: u64,
    pub held: u64,
    pub running: u64,
    /// An array is one workload, however many of its tasks run.
    pub running_tasks: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProjectCount {
    /// Left out for work of no project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub project: Option<ProjectRef>,
    #[serde(flatten)]
    pub count: QueueCount,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PersonCount {
    pub person: PersonRef,
    #[serde(flatten)]
    pub count: QueueCount,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClassCount {
    pub class: Class,
    #[serde(flatten)]
    pub count: QueueCount,
}

/// How a project, or a person in it, stands beside the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Share {
    /// Left out for work of no project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub project: Option<ProjectRef>,
    /// Left out for the project as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub person: Option<PersonRef>,
    pub weight: u32,
    /// What one's part would be, were everybody to ask for all of theirs: from 0 to 1.
    pub due: f64,
    /// What one's part was of all that was used, lately more than long ago.
    pub used: f64,
    /// 1.4 is two fifths more than one's share.
    pub of_share: f64,
    pub modes: Modes,
    /// What they hold at this moment.
    pub gpus_milli: u64,
    pub cores_milli: u64,
    /// All of this as a sentence.
    pub words: String,
}

/// Of what somebody used, the parts by how it was held.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Modes {
    pub reserved: f64,
    pub interactive: f64,
    pub batch: f64,
    pub ray: f64,
}

/// The settings of a site's queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueSettingsView {
    pub settings: Settings,
    pub version: u64,
}

/// A node of the queue, and what is left of it now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueNode {
    pub node: ResourceRef,
    pub in_service: bool,
    /// By its status, or because a maintenance window stands on some of it now.
    pub maintenance: bool,
    /// Whether any of it is reserved now.
    pub reserved: bool,
    pub cores_milli: u64,
    pub cores_milli_free: u64,
    pub memory_mib: u64,
    pub memory_mib_free: u64,
    pub gpus: Vec<QueueGpu>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueGpu {
    pub gpu: ResourceRef,
    /// Its attribute `gpu_model`; of a slice its profile, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model: Option<String>,
    /// Thousandths of it.
    pub free: u16,
}

/// An admin's word that somebody's work comes before all others'.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Grant {
    pub id: GrantId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub project: Option<ProjectRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub person: Option<PersonRef>,
    pub from: Timestamp,
    pub until: Timestamp,
    pub gpu_hours: u64,
    pub reason: Text,
    pub granted_by: PersonRef,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub revoked_at: Option<Timestamp>,
}

/// Whose work is to be urgent: a project's or a person's, until a moment and for so many GPU-hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGrant {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonReference>,
    pub until: Moment,
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub gpu_hours: GpuHours,
    /// Shown to those it delays.
    pub reason: Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "u64", into = "u64")]
#[schema(value_type = u64, minimum = 1, maximum = 1_000_000)]
pub struct GpuHours(u64);

impl GpuHours {
    pub fn get(self) -> u64 {
        self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is a whole number from 1 to 1,000,000")]
pub struct GpuHoursError;

impl TryFrom<u64> for GpuHours {
    type Error = GpuHoursError;
    fn try_from(hours: u64) -> Result<Self, GpuHoursError> {
        (1..=1_000_000)
            .contains(&hours)
            .then_some(Self(hours))
            .ok_or(GpuHoursError)
    }
}

impl From<GpuHours> for u64 {
    fn from(hours: GpuHours) -> u64 {
        hours.0
    }
}

/// The last of what a workload's newest run said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadLog {
    pub text: String,
}
