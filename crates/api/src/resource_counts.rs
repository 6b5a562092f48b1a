//! How many resources a site has, and how many of them are free now.
//!
//! Every page and command that shows such a number adds up these rows, so that no two of them disagree.

use berth_model::Name;
use berth_model::queue::Role;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::names::TypeRef;

/// Counts of a site's resources at this moment. Each resource is in one row, and in one state of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceCounts {
    pub items: Vec<ResourceCount>,
}

/// Resources of one type that are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceCount {
    #[serde(rename = "type")]
    pub kind: TypeRef,
    /// The type's role in the queue; left out where the queue does not use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub role: Option<Role>,
    /// Whether they stand below a node of the queue.
    pub in_node: bool,
    /// Their attribute `gpu_model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model: Option<String>,
    /// Their attribute `mig_profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub profile: Option<String>,
    /// How many resources there are.
    pub resources: Tally,
    /// The sum of their capacities; left out where each is taken whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capacity: Option<CapacityTally>,
}

/// A number by state. The states add up to `total`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tally {
    pub total: u64,
    /// Nothing holds any part of them.
    pub free: u64,
    /// The queue's work and sessions hold them, or part of them. For callers who may not see the queue, these count as
    /// reserved.
    pub running: u64,
    /// A reservation holds them, or part of them, whether work runs in it or not.
    pub reserved: u64,
    /// GPUs that are cut into slices. Their slices are counted in a row of their own.
    pub cut: u64,
    /// Their status is not active, or a maintenance window holds them.
    pub out_of_service: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CapacityTally {
    pub unit: Name,
    #[serde(flatten)]
    pub amounts: Tally,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.total += other.total;
        self.free += other.free;
        self.running += other.running;
        self.reserved += other.reserved;
        self.cut += other.cut;
        self.out_of_service += other.out_of_service;
    }
}
