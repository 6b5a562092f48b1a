//! What a workload asks for. Everything here is valid by its type: what was read is within its bounds.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::tasks::Tasks;
use crate::attribute::Requirement;
use crate::claim::Amount;
use crate::id::{ReservationId, WorkloadId};
use crate::name::{Name, Text};
use crate::reference::ResourceReference;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    #[error("{what} is a whole number from {min} to {max}")]
    Bounds {
        what: &'static str,
        min: u64,
        max: u64,
    },
    #[error("say one of `count`, `share` or `slice` of GPUs")]
    Gpus,
    #[error(
        "a limit is longer than nothing and at most {} days",
        Wish::LIMIT_MAX_DAYS
    )]
    Limit,
    #[error("a guarantee is no more than its limit")]
    Guarantee,
    #[error("its tasks cannot stand in a node each and all in one node")]
    Apart,
    #[error("{what}: at most {max}")]
    TooMany { what: &'static str, max: usize },
    #[error("say what it needs: at least one wish")]
    NoWish,
    #[error("it cannot begin before {0} and be over by its deadline")]
    Deadline(Timestamp),
    #[error(
        "`{0}` is not the name of a variable: letters, digits and `_`, not beginning with a digit"
    )]
    Variable(String),
}

macro_rules! bounded {
    ($($(#[$doc:meta])* $name:ident($inner:ty) = $min:literal..=$max:literal, $what:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "u64", into = "u64")]
        pub struct $name($inner);

        impl $name {
            pub const MAX: u64 = $max;

            pub fn get(self) -> $inner {
                self.0
            }
        }
        impl TryFrom<u64> for $name {
            type Error = AskError;
            fn try_from(value: u64) -> Result<Self, AskError> {
                let inner = <$inner>::try_from(value).ok().filter(|_| ($min..=$max).contains(&value));
                inner.map(Self).ok_or(AskError::Bounds { what: $what, min: $min, max: $max })
            }
        }
        impl From<$name> for u64 {
            fn from(value: $name) -> u64 {
                u64::from(value.0)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::Integer)
                    .minimum(Some($min as i64))
                    .maximum(Some($max as i64))
                    .into()
            }
        }
        impl utoipa::ToSchema for $name {}
    )*};
}

bounded! {
    /// How many equal tasks start together or not at all.
    TaskCount(u32) = 1..=10_000, "the number of tasks";
    /// Thousandths of a processor core.
    Cores(u64) = 1..=100_000_000, "the number of thousandths of a core";
    /// In MiB.
    Memory(u64) = 1..=1_000_000_000, "memory in MiB";
    GpuCount(u16) = 1..=64, "the number of GPUs of one task";
    /// A part of a GPU that is taken in turns.
    Thousandths(u16) = 1..=999, "the number of thousandths of a GPU";
    /// Of an array.
    AtOnce(u32) = 1..=100_000, "the number of tasks at once";
}

impl Default for TaskCount {
    fn default() -> Self {
        TaskCount(1)
    }
}

/// How firmly a workload holds what it has.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Fills what is idle, and makes room for everybody else.
    Opportunistic,
    #[default]
    Guaranteed,
}

/// How near to each other the tasks of a gang stand.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Near {
    #[default]
    Anywhere,
    Rack,
    Node,
    /// GPUs of one NVLink group, in one node.
    Link,
}

/// The GPUs of one task: so many whole ones, a share of one, or a slice that the hardware cuts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "GpusForm", into = "GpusForm")]
pub enum Gpus {
    Whole {
        count: GpuCount,
        with: Vec<Requirement>,
    },
    Share {
        thousandths: Thousandths,
        with: Vec<Requirement>,
    },
    Slice {
        profile: Name,
        count: GpuCount,
        with: Vec<Requirement>,
    },
}

impl Gpus {
    pub fn with(&self) -> &[Requirement] {
        match self {
            Gpus::Whole { with, .. } | Gpus::Share { with, .. } | Gpus::Slice { with, .. } => with,
        }
    }
}

/// The GPUs of one task: whole ones (`count`), a `share` of one in thousandths, or a `slice` by its profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Gpus)]
pub struct GpusForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<GpuCount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Thousandths>,
    /// A MIG profile, such as `1g.10gb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<Name>,
    /// Conditions on the GPUs' attributes, all of which must hold.
    #[serde(default, rename = "where", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, max_items = 20, examples(json!(["gpu_model=A100"])))]
    pub with: Vec<Requirement>,
}

const REQUIREMENTS_MAX: usize = 20;

impl TryFrom<GpusForm> for Gpus {
    type Error = AskError;
    fn try_from(form: GpusForm) -> Result<Gpus, AskError> {
        let GpusForm {
            count,
            share,
            slice,
            with,
        } = form;
        if with.len() > REQUIREMENTS_MAX {
            return Err(AskError::TooMany {
                what: "conditions on GPUs",
                max: REQUIREMENTS_MAX,
            });
        }
        match (count, share, slice) {
            (Some(count), None, None) => Ok(Gpus::Whole { count, with }),
            (None, Some(thousandths), None) => Ok(Gpus::Share { thousandths, with }),
            (count, None, Some(profile)) => Ok(Gpus::Slice {
                profile,
                count: count.unwrap_or(GpuCount(1)),
                with,
            }),
            _ => Err(AskError::Gpus),
        }
    }
}

impl From<Gpus> for GpusForm {
    fn from(gpus: Gpus) -> GpusForm {
        match gpus {
            Gpus::Whole { count, with } => GpusForm {
                count: Some(count),
                with,
                ..GpusForm::default()
            },
            Gpus::Share { thousandths, with } => GpusForm {
                share: Some(thousandths),
                with,
                ..GpusForm::default()
            },
            Gpus::Slice {
                profile,
                count,
                with,
            } => GpusForm {
                count: Some(count),
                slice: Some(profile),
                with,
                ..GpusForm::default()
            },
        }
    }
}

impl utoipa::PartialSchema for Gpus {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        GpusForm::schema()
    }
}
impl utoipa::ToSchema for Gpus {
    fn name() -> std::borrow::Cow<'static, str> {
        "Gpus".into()
    }
    fn schemas(
        schemas: &mut Vec<(
            String,
            utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>,
        )>,
    ) {
        GpusForm::schemas(schemas);
    }
}

/// What one task takes. It stands in one node. What it may use beyond what is held for it is there only while nobody
/// else has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Thousandths of a core that are held for it.
    pub cores_milli: Cores,
    /// The most that it may use; what is held for it, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_milli_limit: Option<Cores>,
    pub memory_mib: Memory,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib_limit: Option<Memory>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Gpus>,
}

/// One way in which the workload could be served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WorkloadWish)]
pub struct Wish {
    /// How many equal tasks, which start together or not at all; one, if left out.
    #[serde(default)]
    pub tasks: TaskCount,
    pub task: Task,
    /// How long it may run.
    #[schema(value_type = String, examples("PT2H"))]
    pub limit: SignedDuration,
    /// How near to each other its tasks would like to stand; the next wider will do.
    #[serde(default)]
    pub near: Near,
    /// How near to each other they have to stand.
    #[serde(default)]
    pub at_least: Near,
    /// Whether each of its tasks stands in a node of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

impl Wish {
    pub const LIMIT_MAX_DAYS: i64 = 366;
    pub const MAX: usize = 8;
}

/// Seats of a licence, or so much of any other counted thing of the site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Seats {
    pub resource: ResourceReference,
    pub amount: Amount,
}

/// Another workload that has to be over first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct After {
    pub workload: WorkloadId,
    #[serde(default)]
    pub only_if: OnlyIf,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnlyIf {
    /// Every task of it was completed.
    #[default]
    Completed,
    /// At least one of its tasks failed.
    Failed,
    /// However it ended.
    Over,
    /// It has begun.
    Begun,
}

/// Many tasks of the same kind, each by its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Array {
    pub tasks: Tasks,
    /// No more than this many run at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<AtOnce>,
}

/// What runs. Nothing of it is looked at by the queue; it is handed to whatever runs it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Program {
    /// The command and its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// A script, in place of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Environment variables. They are sealed when the workload is submitted; only its owner reads them back, and only
    /// from the one workload.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// A named environment or a container image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Where what it says is written; `%j` is its number, `%a` the task's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<String>,
    /// Where it waits for visitors, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serves: Option<Serves>,
}

/// Where a program waits for its visitors. Nobody reaches it there but through Berth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Serves {
    /// On the Unix socket `/run/berth/app.sock`.
    Socket,
    /// On a port of its own network, whose number nobody else's is in the way of.
    Port(u16),
}

impl Program {
    /// Enough for a long script, and little enough for a hundred thousand of them.
    pub const BYTES_MAX: usize = 64 * 1024;

    fn bytes(&self) -> usize {
        let texts = [
            &self.script,
            &self.image,
            &self.folder,
            &self.output,
            &self.errors,
        ];
        let texts = texts
            .into_iter()
            .flatten()
            .chain(&self.command)
            .chain(&self.mounts);
        let pairs = self
            .environment
            .iter()
            .map(|(name, value)| name.len() + value.len());
        texts.map(String::len).sum::<usize>() + pairs.sum::<usize>()
    }
}

/// All that a person asks for with one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    pub title: Text,
    pub class: Class,
    /// One of the site's levels of priority; the ordinary one, if none.
    pub level: Option<Name>,
    /// The ways in which it could be served, of which it gets one.
    pub wishes: Vec<Wish>,
    pub seats: Vec<Seats>,
    /// Inside this reservation of its owner's, and on nothing else.
    pub inside: Option<ReservationId>,
    pub not_before: Option<Timestamp>,
    pub deadline: Option<Timestamp>,
    pub after: Vec<After>,
    pub array: Option<Array>,
    /// Whether it begins again after it had to make room or its node failed.
    pub requeue: bool,
    pub program: Program,
}

const LIST_MAX: usize = 100;

impl Ask {
    /// What types alone cannot say.
    pub fn check(self) -> Result<Ask, AskError> {
        if self.wishes.is_empty() {
            return Err(AskError::NoWish);
        }
        let lists = [
            ("wishes", self.wishes.len(), Wish::MAX),
            ("seats", self.seats.len(), LIST_MAX),
            ("workloads to wait for", self.after.len(), LIST_MAX),
            (
                "ranges of an array's tasks",
                self.array.as_ref().map_or(0, |array| array.tasks.ranges()),
                Tasks::RANGES_MAX,
            ),
            (
                "characters of a program",
                self.program.bytes(),
                Program::BYTES_MAX,
            ),
        ];
        if let Some((what, _, max)) = lists.into_iter().find(|(_, is, max)| is > max) {
            return Err(AskError::TooMany { what, max });
        }
        let longest = SignedDuration::from_hours(24 * Wish::LIMIT_MAX_DAYS);
        for wish in &self.wishes {
            if wish.limit < SignedDuration::from_secs(1) || wish.limit > longest {
                return Err(AskError::Limit);
            }
            if wish.apart && wish.at_least >= Near::Node && wish.tasks.get() > 1 {
                return Err(AskError::Apart);
            }
            let task = &wish.task;
            let is_over_cores = task
                .cores_milli_limit
                .is_some_and(|limit| limit < task.cores_milli);
            let is_over_memory = task
                .memory_mib_limit
                .is_some_and(|limit| limit < task.memory_mib);
            if is_over_cores || is_over_memory {
                return Err(AskError::Guarantee);
            }
        }
        if let (Some(first), Some(deadline)) = (self.not_before, self.deadline)
            && self.wishes.iter().all(|wish| first + wish.limit > deadline)
        {
            return Err(AskError::Deadline(first));
        }
        let is_variable = |name: &&String| {
            let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            starts_well
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if let Some(name) = self
            .program
            .environment
            .keys()
            .find(|name| !is_variable(name))
        {
            return Err(AskError::Variable(name.chars().take(64).collect()));
        }
        Ok(self)
    }

    /// How many tasks it consists of.
    pub fn task_count(&self) -> u64 {
        self.array.as_ref().map_or(1, |array| array.tasks.len())
    }

    /// The tasks that it consists of.
    pub fn tasks(&self) -> Tasks {
        self.array
            .as_ref()
            .map_or_else(|| Tasks::one(0), |array| array.tasks.clone())
    }
}
