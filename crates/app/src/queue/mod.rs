//! The queue: submitting work, and carrying it out.
//!
//! What waits, runs and has run stands in the database. One server, the holder of the lease `queue`, keeps a plan of
//! each site in memory ([`plan`]), which follows what happens ([`follow`]); each round carries out what it decides
//! ([`round`], [`carry`]). Whoever asks why something waits asks that plan.

mod act;
mod attempts;
mod batches;
mod calls;
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
mod pass_on;
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
use std::sync::atomic::{AtomicBool, Ordering};
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
use calls::Calls;
pub(crate) use calls::in_turn;
pub(crate) use carry::told;
pub(crate) use crowd::Crowd;
pub(crate) use ending::has_until;
pub(crate) use pass_on::Passing;
use plan::Plan;

/// The queues of the sites that this server carries on, or was asked about.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    sites: Mutex<HashMap<SiteId, Arc<SiteQueue>>>,
    /// Whether this server carries the queues on.
    are_led_here: AtomicBool,
}

impl Queues {
    pub(crate) fn are_led_here(&self) -> bool {
        self.are_led_here.load(Ordering::SeqCst)
    }

    pub(crate) fn lead(&self, is_leader: bool) {
        self.are_led_here.store(is_leader, Ordering::SeqCst);
    }
}

#[derive(Debug, Default)]
pub(crate) struct SiteQueue {
    /// Held for as long as it takes to plan and to write, and never while a backend is asked.
    plan: tokio::sync::Mutex<Option<(For, Plan)>>,
    /// Starts and stops that are under way. Held for a whole round, which nobody else waits for.
    calls: tokio::sync::Mutex<Calls>,
}

/// What a plan in memory is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    /// To be carried out, under the lease of this fence.
    Carrying(u64),
    /// Another server carries it out; until this moment it answers questions here.
    Answers(Timestamp),
}
