//! The queue: submitting work, and scheduling it.
//!
//! The database holds all waiting, running and finished work. One server, the holder of the lease `queue`, keeps a plan
//! of each site in memory ([`plan`]), and updates it from events ([`follow`]). Each reconcile pass executes the
//! decisions of that plan ([`round`], [`carry`]). The plan also answers why a workload waits.

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

/// Queues of the sites that this server leads, or was asked about.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    sites: Mutex<HashMap<SiteId, Arc<SiteQueue>>>,
    /// Whether this server leads the queues.
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
    /// Locked while the server plans and writes, and never during a backend call.
    plan: tokio::sync::Mutex<Option<(For, Plan)>>,
    /// Starts and stops in progress. Locked for a whole pass, which nobody else waits for.
    calls: tokio::sync::Mutex<Calls>,
}

/// Purpose of a plan in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    /// This server executes it, under the lease with this fence.
    Carrying(u64),
    /// Another server executes it. This copy answers queries until this moment.
    Answers(Timestamp),
}
