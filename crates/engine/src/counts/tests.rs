use berth_model::inventory::{Capacity, Facts};
use berth_model::{Amount, Name, SiteId, WindowId, WorkloadId};
use proptest::prelude::*;

use super::*;
use crate::fixture::{But, at, claim, resource, span};

const NODE: u64 = 1;
const GPU: u64 = 2;
const SLICE: u64 = 3;
const CORES: u64 = 4;
const ROOM: u64 = 5;

fn type_id(number: u64) -> TypeId {
    TypeId::from_parts(number, &[0; 10])
}

fn roles() -> BTreeMap<TypeId, Role> {
    let roles = [
        (NODE, Role::Node),
        (GPU, Role::Gpu),
        (SLICE, Role::Slice),
        (CORES, Role::Cores),
    ];
    roles
        .into_iter()
        .map(|(kind, role)| (type_id(kind), role))
        .collect()
}

/// A resource with that number and type, below another.
fn thing(number: u64, kind: u64, parent: Option<u64>) -> Resource {
    let attributes: &[(&str, &str)] = match kind {
        GPU => &[("gpu_model", "A100")],
        SLICE => &[("gpu_model", "A100"), ("mig_profile", "1g.10gb")],
        _ => &[],
    };
    let shared = |amount: u64, unit: &str| {
        Some(Capacity {
            amount: Amount::new(amount).unwrap(),
            unit: unit.parse().unwrap(),
        })
    };
    Resource {
        id: resource(number),
        site: SiteId::from_parts(0, &[0; 10]),
        parent: parent.map(resource),
        type_id: type_id(kind),
        name: format!("r{number}").parse::<Name>().unwrap(),
        title: None,
        attributes: attributes
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), AttributeValue::from_text(value)))
            .collect(),
        facts: Facts::default(),
        capacity: (kind == CORES).then(|| shared(8, "cores")).flatten(),
        status: Status::Active,
        status_reason: None,
        version: 1,
    }
}

/// Room 0 holds node 1 (GPU 2; GPU 3 with slices 4 and 5; cores 6) and node 7 (GPU 8, GPU 9, cores 10); GPU 11 stands
/// alone.
fn lab() -> Vec<Resource> {
    vec![
        thing(0, ROOM, None),
        thing(1, NODE, Some(0)),
        thing(2, GPU, Some(1)),
        thing(3, GPU, Some(1)),
        thing(4, SLICE, Some(3)),
        thing(5, SLICE, Some(3)),
        thing(6, CORES, Some(1)),
        thing(7, NODE, Some(0)),
        thing(8, GPU, Some(7)),
        thing(9, GPU, Some(7)),
        thing(10, CORES, Some(7)),
        thing(11, GPU, None),
    ]
}

fn tree_of(resources: &[Resource]) -> Tree {
    Tree::new(resources.iter().map(|one| (one.id, one.parent))).unwrap()
}

fn by_work(claim: Claim) -> Claim {
    Claim {
        holder: Holder::Workload(WorkloadId::from_parts(1, &[0; 10])),
        ..claim
    }
}

fn for_maintenance(claim: Claim) -> Claim {
    Claim {
        holder: Holder::Maintenance(WindowId::from_parts(1, &[0; 10])),
        ..claim
    }
}

/// The sum over the groups of a type, in nodes or outside them.
fn sum(counts: &BTreeMap<Group, Count>, kind: u64, in_node: bool) -> Tally {
    let of = |group: &&Group| group.type_id == type_id(kind) && group.in_node == in_node;
    let mut all = Tally::default();
    for (_, count) in counts.iter().filter(|(group, _)| of(group)) {
        let one = count.resources;
        all.total += one.total;
        all.free += one.free;
        all.running += one.running;
        all.reserved += one.reserved;
        all.cut += one.cut;
        all.out_of_service += one.out_of_service;
    }
    all
}

#[test]
fn gpus_in_nodes_slices_and_other_gpus_are_counted_apart() {
    let resources = lab();
    let claims = [
        by_work(claim(1, 2, span(0, 10))),
        by_work(claim(2, 4, span(0, 10))),
        claim(3, 8, span(0, 10)),
        claim(4, 11, span(10, 20)),
        by_work(claim(5, 6, span(0, 10)).amount(3)),
    ];
    let counts = count(&tree_of(&resources), &resources, &roles(), &claims, at(5));
    let in_nodes = Tally {
        total: 4,
        free: 1,
        running: 1,
        reserved: 1,
        cut: 1,
        out_of_service: 0,
    };
    assert_eq!(sum(&counts, GPU, true), in_nodes);
    let alone = Tally {
        total: 1,
        free: 1,
        ..Tally::default()
    };
    assert_eq!(sum(&counts, GPU, false), alone);
    let slices = Tally {
        total: 2,
        free: 1,
        running: 1,
        ..Tally::default()
    };
    assert_eq!(sum(&counts, SLICE, true), slices);
    let cores = counts
        .iter()
        .find(|(group, _)| group.unit.is_some())
        .unwrap()
        .1;
    let capacity = Tally {
        total: 16,
        free: 13,
        running: 3,
        ..Tally::default()
    };
    assert_eq!(cores.capacity, capacity);
    assert_eq!((cores.resources.free, cores.resources.running), (1, 1));
}

#[test]
fn what_is_held_above_holds_all_below_and_maintenance_takes_out_of_service() {
    let mut resources = lab();
    let claims = [
        claim(1, 7, span(0, 10)),
        for_maintenance(claim(2, 11, span(0, 10))),
    ];
    let counts = count(&tree_of(&resources), &resources, &roles(), &claims, at(5));
    assert_eq!(sum(&counts, GPU, true).reserved, 2);
    assert_eq!(sum(&counts, GPU, false).out_of_service, 1);
    let cores = counts
        .iter()
        .find(|(group, _)| group.unit.is_some())
        .unwrap()
        .1;
    assert_eq!((cores.capacity.reserved, cores.capacity.free), (8, 8));
    resources[1].status = Status::Unavailable;
    let counts = count(&tree_of(&resources), &resources, &roles(), &[], at(5));
    assert_eq!(sum(&counts, SLICE, true).out_of_service, 2);
    assert_eq!(sum(&counts, GPU, true).free, 2);
}

#[test]
fn without_a_queue_a_gpu_with_slices_is_known_by_their_profile() {
    let resources = lab();
    let counts = count(
        &tree_of(&resources),
        &resources,
        &BTreeMap::new(),
        &[],
        at(5),
    );
    let gpus = sum(&counts, GPU, false);
    assert_eq!((gpus.total, gpus.free, gpus.cut), (5, 4, 1));
}

/// The state of one resource, found by checking every claim.
fn naive(resources: &[Resource], claims: &[Claim], one: &Resource) -> State {
    let tree = tree_of(resources);
    let now: Vec<&Claim> = claims
        .iter()
        .filter(|claim| claim.span.start() <= at(5) && at(5) < claim.span.end())
        .collect();
    let is_maintained = now.iter().any(|claim| {
        matches!(claim.holder, Holder::Maintenance(_))
            && tree.is_at_or_below(one.id, claim.resource)
    });
    let is_out = resources
        .iter()
        .any(|other| other.status != Status::Active && tree.is_at_or_below(one.id, other.id));
    let is_cut = one.type_id == type_id(GPU)
        && resources
            .iter()
            .any(|other| other.type_id == type_id(SLICE) && other.parent == Some(one.id));
    let related = || {
        now.iter()
            .filter(|claim| tree.related(one.id, claim.resource))
    };
    if is_maintained || is_out {
        State::OutOfService
    } else if is_cut {
        State::Cut
    } else if related().any(|claim| matches!(claim.holder, Holder::Workload(_))) {
        State::Running
    } else if related().next().is_some() {
        State::Reserved
    } else {
        State::Free
    }
}

proptest! {
    #[test]
    fn counting_agrees_with_asking_each_resource(
        held in prop::collection::vec((0..12_u64, 0..8_i64, 1..6_i64, 0..3_u8), 0..12),
        out in prop::option::of(0..12_usize),
    ) {
        let mut resources = lab();
        if let Some(out) = out {
            resources[out].status = Status::Maintenance;
        }
        let claims: Vec<Claim> = (1..)
            .zip(&held)
            .map(|(id, (on, start, length, holder))| {
                let claim = claim(id, *on, span(*start, start + length));
                match holder {
                    0 => claim,
                    1 => by_work(claim),
                    _ => for_maintenance(claim),
                }
            })
            .collect();
        let counts = count(&tree_of(&resources), &resources, &roles(), &claims, at(5));
        for kind in [NODE, GPU, SLICE, CORES, ROOM] {
            for in_node in [true, false] {
                let mut expected = Tally::default();
                let is_below_node = |one: &Resource| ![0, 1, 7, 11].map(resource).contains(&one.id);
                for one in resources.iter().filter(|one| one.type_id == type_id(kind) && is_below_node(one) == in_node) {
                    expected.add(naive(&resources, &claims, one), 1);
                }
                prop_assert_eq!(sum(&counts, kind, in_node), expected);
            }
        }
    }
}
