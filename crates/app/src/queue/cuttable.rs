//! GPUs of a site that may be repartitioned (MIG), how each is partitioned now, and the repartitions in progress.
//!
//! A GPU may be repartitioned if its attribute `mig` names the profile of the whole GPU, such as `7g.80gb`. The
//! attributes `mig_profile` and `mig_at` of a slice are its profile and position. If a slice lacks them, nobody knows
//! the free parts of its GPU, so that GPU is not repartitioned.

use std::collections::HashMap;

use berth_engine::fleet::mig::{Slice, Whole};
use berth_engine::tree::Tree;
use berth_model::attribute::{AttributeValue, Attributes};
use berth_model::queue::{QueuePolicy, Role};
use berth_model::recut::{CutOutcome, Recut};
use berth_model::{Name, Resource, ResourceId, Status, TypeId, WorkloadId};
use jiff::{SignedDuration, Timestamp};

use super::floor::Named;

/// How long a GPU rests after a repartition, or after a failed one, so two workloads do not repartition it in turn.
pub(crate) const RESTS: SignedDuration = SignedDuration::from_mins(10);

#[derive(Debug, Default)]
pub(crate) struct Cutting {
    pub gpus: Vec<Cuttable>,
    /// Repartitions in progress.
    pub live: Vec<Recut>,
    resting: HashMap<ResourceId, Rest>,
    /// When to poll the repartitions in progress.
    pub again: Option<Timestamp>,
}

#[derive(Debug)]
pub(crate) struct Cuttable {
    pub gpu: Resource,
    pub node: ResourceId,
    pub whole: Whole,
    /// Resource type of its slices.
    pub kind: TypeId,
    pub slices: Vec<Placed>,
}

/// An existing slice.
#[derive(Debug)]
pub(crate) struct Placed {
    pub id: ResourceId,
    pub profile: String,
    pub slice: Slice,
}

#[derive(Debug, Clone, Copy)]
struct Rest {
    until: Timestamp,
    /// The workload that the GPU was repartitioned for may repartition it again.
    but_for: Option<WorkloadId>,
}

impl Cutting {
    /// `recent` holds the repartitions in progress, and the ones that ended not long ago.
    pub fn of(
        resources: &[Resource],
        tree: &Tree,
        policy: &QueuePolicy,
        recent: Vec<Recut>,
    ) -> Cutting {
        let known: HashMap<ResourceId, &Resource> =
            resources.iter().map(|one| (one.id, one)).collect();
        let gpus = resources
            .iter()
            .filter_map(|gpu| cuttable(gpu, &known, tree, policy));
        let mut cutting = Cutting {
            gpus: gpus.collect(),
            ..Cutting::default()
        };
        for recut in recent {
            match recut.ended {
                None => cutting.live.push(recut),
                Some((at, outcome)) => {
                    let but_for = (outcome == CutOutcome::Done).then_some(recut.workload);
                    cutting.rest(recut.gpu, at + RESTS, but_for);
                }
            }
        }
        cutting
    }

    /// Forbids a repartition of a GPU until a moment, except for `but_for`.
    pub fn rest(&mut self, gpu: ResourceId, until: Timestamp, but_for: Option<WorkloadId>) {
        self.resting.insert(gpu, Rest { until, but_for });
    }

    /// Whether a GPU may be repartitioned for this workload now.
    pub fn is_open(&self, gpu: ResourceId, workload: WorkloadId, now: Timestamp) -> bool {
        let rests =
            |rest: &Rest| now < rest.until && rest.but_for.is_none_or(|other| other != workload);
        self.live.iter().all(|recut| recut.gpu != gpu) && !self.resting.get(&gpu).is_some_and(rests)
    }

    /// The repartition in progress for this workload.
    pub fn made_for(&self, workload: WorkloadId) -> Option<&Recut> {
        self.live.iter().find(|recut| recut.workload == workload)
    }

    /// When to plan again, even without an event.
    pub fn next_look(&self, now: Timestamp) -> Option<Timestamp> {
        let rested = self.resting.values().map(|rest| rest.until);
        let rested = rested.filter(|until| *until > now);
        rested.chain(self.again).min()
    }
}

impl Cuttable {
    /// Attributes of a slice of this GPU.
    pub fn attributes(&self, profile: &Name, at: u8) -> Attributes {
        let mut attributes = self.gpu.attributes.clone();
        attributes.retain(|name, _| name.as_str() != "mig");
        let memory = profile.as_str().strip_suffix("gb");
        let memory = memory.and_then(|profile| profile.split_once("g.")?.1.parse().ok());
        let own = [
            ("mig_profile", AttributeValue::Text(profile.to_string())),
            ("mig_at", AttributeValue::Number(at.into())),
        ];
        let own = own
            .into_iter()
            .filter_map(|(name, value)| Some((name.parse::<Name>().ok()?, value)));
        attributes.extend(own);
        // A slice has its own memory, not the GPU's.
        let told = attributes
            .iter_mut()
            .find(|(name, _)| name.as_str() == "gpu_memory_gb");
        if let (Some((_, value)), Some(memory)) = (told, memory) {
            *value = AttributeValue::Number(memory);
        }
        attributes
    }
}

fn cuttable(
    gpu: &Resource,
    known: &HashMap<ResourceId, &Resource>,
    tree: &Tree,
    policy: &QueuePolicy,
) -> Option<Cuttable> {
    let role = |id: ResourceId| {
        let kind = known.get(&id).map(|one| one.type_id)?;
        policy.roles.get(&kind).copied()
    };
    let status = |id| known.get(&id).map_or(Status::Active, |one| one.status);
    let is_in_service = tree.effective_status(gpu.id, status).0 == Status::Active;
    // A GPU with a capacity is shared by amounts, and has nothing below it.
    if role(gpu.id) != Some(Role::Gpu) || gpu.capacity.is_some() || !is_in_service {
        return None;
    }
    let whole = Whole::read(text(&gpu.attributes, "mig")?)?;
    let node = tree
        .ancestors(gpu.id)
        .find(|id| role(*id) == Some(Role::Node))?;
    let below = tree.descendants(gpu.id);
    let below: Vec<&Resource> = below.filter_map(|id| known.get(&id).copied()).collect();
    let slices = below.iter().map(|slice| placed(slice, whole));
    let slices = slices.collect::<Option<Vec<Placed>>>()?;
    let layout: Vec<Slice> = slices.iter().map(|placed| placed.slice).collect();
    let mut kinds = policy.roles.iter();
    let first = kinds.find(|(_, role)| **role == Role::Slice);
    let of_others = below.first().map(|slice| slice.type_id);
    let kind = of_others.or(first.map(|(kind, _)| *kind))?;
    whole.cuts.are_legal(&layout).then(|| Cuttable {
        gpu: gpu.clone(),
        node,
        whole,
        kind,
        slices,
    })
}

fn placed(slice: &Resource, whole: Whole) -> Option<Placed> {
    let profile = text(&slice.attributes, "mig_profile")?;
    let at = match slice.attributes.get_named("mig_at")? {
        AttributeValue::Number(at) if (0.0..256.0).contains(at) && at.fract() == 0.0 => *at as u8,
        _ => return None,
    };
    Some(Placed {
        id: slice.id,
        profile: profile.to_owned(),
        slice: Slice {
            profile: whole.named(profile)?,
            at,
        },
    })
}

fn text<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a str> {
    match attributes.get_named(name)? {
        AttributeValue::Text(text) => Some(text),
        AttributeValue::Flag(_) | AttributeValue::Number(_) => None,
    }
}
