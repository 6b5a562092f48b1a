//! A GPU that is cut anew: free slices go, and one comes that somebody waits for.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{ClaimId, RecutId, ResourceId, SiteId, WorkloadId};
use crate::name::Name;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recut {
    pub id: RecutId,
    pub site: SiteId,
    /// For whom it is cut.
    pub workload: WorkloadId,
    pub gpu: ResourceId,
    /// What comes. It stands below the GPU from the beginning, out of service until it is there.
    pub slice: ResourceId,
    /// What goes.
    pub gone: Vec<ResourceId>,
    pub profile: Name,
    /// The first of the GPU's memory parts that the new slice stands on.
    pub at: u8,
    /// On what comes and on what goes.
    pub claims: Vec<ClaimId>,
    pub began: Timestamp,
    /// What is not cut by then is not cut at all.
    pub until: Timestamp,
    pub ended: Option<(Timestamp, CutOutcome)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutOutcome {
    Done,
    /// All is as it was.
    Failed,
}
