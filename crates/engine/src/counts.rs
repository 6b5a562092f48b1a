//! Counts the resources of a site, and how many of them are free now.
//!
//! Every answer, page and command that reports a number of GPUs takes it from here. Each resource counts once and is
//! in one state, so the states of a group add up to its total.

use std::collections::{BTreeMap, HashMap, HashSet};

use berth_model::attribute::AttributeValue;
use berth_model::queue::Role;
use berth_model::{Claim, Holder, Name, Resource, ResourceId, Status, Take, TypeId};
use jiff::Timestamp;

use crate::rule::is_holding;
use crate::tree::Tree;

/// The key by which resources are counted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    pub type_id: TypeId,
    /// The type's role in the queue; none if the queue does not use the type.
    pub role: Option<Role>,
    /// Whether the resources are below a node of the queue.
    pub in_node: bool,
    /// Their attribute `gpu_model`.
    pub model: Option<String>,
    /// Their attribute `mig_profile`.
    pub profile: Option<String>,
    /// The unit of their capacity; none if each is taken whole.
    pub unit: Option<Name>,
}

/// The number of resources by state. The states add up to the total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub total: u64,
    /// No claim holds any part of them.
    pub free: u64,
    /// The queue's workloads and sessions hold them, or part of them.
    pub running: u64,
    /// A reservation holds them, or part of them, whether or not work runs in it.
    pub reserved: u64,
    /// GPUs that are partitioned into MIG slices. The slices are counted separately.
    pub cut: u64,
    /// Their status is not active, or a maintenance window holds them.
    pub out_of_service: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Whole resources.
    pub resources: Tally,
    /// The sum of their capacities, in the group's unit; zero if each is taken whole.
    pub capacity: Tally,
}

impl Count {
    /// Counts the queue's workloads as reserved, for readers who may not see the queue.
    pub fn hide_work(&mut self) {
        for tally in [&mut self.resources, &mut self.capacity] {
            tally.reserved += std::mem::take(&mut tally.running);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Running,
    Reserved,
    Cut,
    OutOfService,
}

impl Tally {
    fn add(&mut self, state: State, amount: u64) {
        self.total += amount;
        let of = match state {
            State::Free => &mut self.free,
            State::Running => &mut self.running,
            State::Reserved => &mut self.reserved,
            State::Cut => &mut self.cut,
            State::OutOfService => &mut self.out_of_service,
        };
        *of += amount;
    }
}

/// Counts the resources of a site at a moment. Claims inside other claims do not count.
pub fn count(
    tree: &Tree,
    resources: &[Resource],
    roles: &BTreeMap<TypeId, Role>,
    claims: &[Claim],
    now: Timestamp,
) -> BTreeMap<Group, Count> {
    let known: HashMap<ResourceId, &Resource> = resources.iter().map(|one| (one.id, one)).collect();
    let held = Held::at(tree, claims, now);
    let cut = cut_gpus(tree, &known, roles);
    let role = |resource: &Resource| roles.get(&resource.type_id).copied();
    let status = |id| known.get(&id).map_or(Status::Active, |one| one.status);
    let is_node = |id| {
        known
            .get(&id)
            .is_some_and(|one| role(one) == Some(Role::Node))
    };
    let mut counts: BTreeMap<Group, Count> = BTreeMap::new();
    for resource in resources {
        let is_out = tree.effective_status(resource.id, status).0 != Status::Active
            || held.whole(resource.id).contains(&Hold::Maintenance);
        let state = match () {
            () if is_out => State::OutOfService,
            () if cut.contains(&resource.id) => State::Cut,
            () => held.state(resource.id),
        };
        let group = Group {
            type_id: resource.type_id,
            role: role(resource),
            in_node: tree.ancestors(resource.id).any(is_node),
            model: text(resource, "gpu_model"),
            profile: text(resource, "mig_profile"),
            unit: resource
                .capacity
                .as_ref()
                .map(|capacity| capacity.unit.clone()),
        };
        let count = counts.entry(group).or_default();
        count.resources.add(state, 1);
        if let Some(capacity) = &resource.capacity {
            held.divide(
                resource.id,
                state,
                capacity.amount.get(),
                &mut count.capacity,
            );
        }
    }
    counts
}

/// The kind of claim that holds a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Hold {
    Work,
    Reservation,
    Maintenance,
}

/// The claims that hold something at one moment.
#[derive(Debug)]
struct Held<'a> {
    tree: &'a Tree,
    /// Resources that a claim of their own holds whole.
    whole: HashMap<ResourceId, HashSet<Hold>>,
    /// Amounts held of divisible resources: by workloads, and by other claims.
    amounts: HashMap<ResourceId, (u64, u64)>,
    /// Resources with a claim somewhere below them.
    below: HashMap<ResourceId, HashSet<Hold>>,
}

impl<'a> Held<'a> {
    fn at(tree: &'a Tree, claims: &[Claim], now: Timestamp) -> Self {
        let mut held = Held {
            tree,
            whole: HashMap::new(),
            amounts: HashMap::new(),
            below: HashMap::new(),
        };
        let standing = claims.iter().filter(|claim| {
            let (start, end) = (claim.span.start(), claim.span.end());
            is_holding(claim) && claim.container.is_none() && start <= now && now < end
        });
        for claim in standing {
            let hold = match claim.holder {
                Holder::Workload(_) => Hold::Work,
                Holder::Reservation(_) => Hold::Reservation,
                Holder::Maintenance(_) => Hold::Maintenance,
            };
            match claim.take {
                Take::Exclusive => {
                    held.whole.entry(claim.resource).or_default().insert(hold);
                }
                Take::Amount(amount) => {
                    let (work, other) = held.amounts.entry(claim.resource).or_default();
                    let of = if hold == Hold::Work { work } else { other };
                    *of += amount.get();
                }
            }
            for above in tree.ancestors(claim.resource) {
                held.below.entry(above).or_default().insert(hold);
            }
        }
        held
    }

    /// The holds on the whole resource: claims on it and claims on its ancestors.
    fn whole(&self, id: ResourceId) -> HashSet<Hold> {
        let above = self.tree.ancestors(id);
        let claimed = std::iter::once(id).chain(above);
        claimed
            .filter_map(|one| self.whole.get(&one))
            .flatten()
            .copied()
            .collect()
    }

    fn state(&self, id: ResourceId) -> State {
        let mut holds = self.whole(id);
        holds.extend(self.below.get(&id).into_iter().flatten());
        let (work, other) = self.amounts.get(&id).copied().unwrap_or_default();
        match (
            work > 0 || holds.contains(&Hold::Work),
            other > 0 || !holds.is_empty(),
        ) {
            (true, _) => State::Running,
            (false, true) => State::Reserved,
            (false, false) => State::Free,
        }
    }

    /// Adds the capacity of a divisible resource, split by state.
    fn divide(&self, id: ResourceId, state: State, capacity: u64, into: &mut Tally) {
        let is_whole =
            matches!(state, State::Cut | State::OutOfService) || !self.whole(id).is_empty();
        if is_whole {
            return into.add(state, capacity);
        }
        let (work, other) = self.amounts.get(&id).copied().unwrap_or_default();
        let work = work.min(capacity);
        let other = other.min(capacity - work);
        into.add(State::Running, work);
        into.add(State::Reserved, other);
        into.add(State::Free, capacity - work - other);
    }
}

/// GPUs with MIG slices: found by the roles of the queue, or without roles by the slices' own profile.
fn cut_gpus(
    tree: &Tree,
    known: &HashMap<ResourceId, &Resource>,
    roles: &BTreeMap<TypeId, Role>,
) -> HashSet<ResourceId> {
    let role = |one: &Resource| roles.get(&one.type_id).copied();
    let mut cut = HashSet::new();
    for slice in known.values() {
        if role(slice) == Some(Role::Slice) {
            let above = tree.ancestors(slice.id);
            let is_gpu =
                |id: &ResourceId| known.get(id).and_then(|one| role(one)) == Some(Role::Gpu);
            cut.extend(above.filter(is_gpu));
        } else if text(slice, "mig_profile").is_some() {
            cut.extend(slice.parent);
        }
    }
    cut
}

fn text(resource: &Resource, attribute: &str) -> Option<String> {
    let mut attributes = resource.attributes.iter();
    let (_, value): (_, &AttributeValue) =
        attributes.find(|(name, _)| name.as_str() == attribute)?;
    Some(value.to_string())
}

#[cfg(test)]
mod tests;
