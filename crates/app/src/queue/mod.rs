//! The queue: submitting work, and carrying it out.
//!
//! What waits, runs and has run stands in the database. One server, the holder of the lease `queue`, keeps a plan of
//! each site in memory ([`plan`]), which follows what happens ([`follow`]); each round carries out what it decides
//! ([`round`], [`carry`]). Whoever asks why something waits asks that plan.

mod act;
mod attempts;
mod batches;
mod carry;
mod counts;
mod crowd;
mod cuttable;
mod ending;
mod floor;
mod follow;
mod forecast;
mod grant;
mod inside;
mod lent;
mod log;
mod look;
mod plan;
mod quotas;
mod rations;
mod recut;
mod round;
mod settings;
mod submit;
mod trial;
mod variables;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use berth_model::SiteId;
use jiff::Timestamp;

pub use act::Act;
pub(crate) use attempts::SeenAttempts;
pub use berth_drivers::backend::AttemptKind;
pub use counts::{Count, QueueCounts};
pub use forecast::QueueFigures;
pub use look::{
    Ends, GpuView, NodeView, QueueView, Reason, ShareView, Shares, WorkloadFilter, WorkloadView,
};
pub use settings::{NewGrant, QueueSettings};
pub use submit::NewWorkload;
pub use trial::{Outlook, Trial};

pub(crate) use batches::Batches;
pub(crate) use carry::told;
pub(crate) use crowd::Crowd;
use plan::Plan;

/// The plans of the sites that this server carries on, or was asked about.
#[derive(Debug, Default)]
pub(crate) struct Queues(Mutex<HashMap<SiteId, Kept>>);

type Kept = Arc<tokio::sync::Mutex<Option<(For, Plan)>>>;

/// What a plan in memory is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    /// To be carried out, under the lease of this fence.
    Carrying(u64),
    /// Another server carries it out; until this moment it answers questions here.
    Answers(Timestamp),
}
