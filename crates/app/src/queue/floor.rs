//! Maps a site's resources to the nodes that the engine plans with, and back. It finds the resources of a placement,
//! and the node parts that a claim on any resource takes.
//!
//! To the engine, a slice that the hardware cuts from a GPU is a GPU of its own model. A partitioned GPU does not exist
//! there.

mod views;

use std::collections::{BTreeMap, HashMap};

use berth_engine::fleet::{
    self, Gpu, Left, Mode, Model, Models, Near, Need, Node, NodeIndex, Part, Piece, Placement,
};
use berth_engine::queue::seats::Pool;
use berth_engine::tree::Tree;
use berth_model::attribute::{AttributeValue, Attributes};
use berth_model::queue::{QueuePolicy, Role};
use berth_model::reference::ResourceReference;
use berth_model::workload::{self, RunGpu, RunPiece, Wish};
use berth_model::{Amount, Claim, Name, Reference, Resource, ResourceId, Status, Take, Workload};

const MIB: u64 = 1 << 20;
const UNDIVIDED: u16 = fleet::UNDIVIDED;

#[derive(Debug)]
pub(crate) struct Floor {
    pub nodes: Vec<Node>,
    parts: Vec<Parts>,
    kinds: Vec<GpuKind>,
    /// Node parts that a claim on all of a resource takes. For a divisible resource, also the size of its unit.
    takes: HashMap<ResourceId, Vec<Taken>>,
    /// Nodes that are out of service with everything on them, and their status.
    pub out: HashMap<NodeIndex, Status>,
    units: Units,
    all: Left,
    /// Index of each node in the lists above.
    places: HashMap<ResourceId, usize>,
    /// Parts of nodes that are out of service by themselves.
    pub closed: Vec<Placement>,
    /// Parent of each resource.
    parents: HashMap<ResourceId, ResourceId>,
    /// Counted resources that belong to no node, and their totals.
    seats: Vec<(ResourceId, u64)>,
}

/// The resource ids of a node and its parts.
#[derive(Debug)]
struct Parts {
    node: ResourceId,
    cores: Option<ResourceId>,
    memory: Option<ResourceId>,
    gpus: Vec<ResourceId>,
}

/// Distinguishes GPUs by their attributes, and slices also by their profile.
#[derive(Debug, PartialEq)]
struct GpuKind {
    profile: Option<String>,
    attributes: Attributes,
    is_shareable: bool,
}

#[derive(Debug, Clone)]
struct Taken {
    piece: Piece,
    /// Unit of an amount: cores (in thousandths for each), memory (in bytes for each), or thousandths of a GPU. `None`
    /// if the resource can only be taken as a whole.
    unit: Option<Unit>,
}

#[derive(Debug, Clone, Copy)]
enum Unit {
    Cores(u64),
    Memory(u64),
    Gpu,
}

/// The coarsest units of any node. Requests are rounded up to them, so a claim can express them.
#[derive(Debug, Clone, Copy)]
struct Units {
    cores_milli: u64,
    memory_bytes: u64,
}

/// Assumed capacity of nodes if the site does not count it.
const NOT_COUNTED: u64 = 1 << 50;

impl Floor {
    pub fn of(resources: &[Resource], tree: &Tree, policy: &QueuePolicy) -> Floor {
        let known: HashMap<ResourceId, &Resource> =
            resources.iter().map(|one| (one.id, one)).collect();
        let role = |resource: &Resource| policy.roles.get(&resource.type_id).copied();
        let status = |id| known.get(&id).map_or(Status::Active, |one| one.status);
        let mut nodes: Vec<&Resource> = resources
            .iter()
            .filter(|one| role(one) == Some(Role::Node))
            .collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let mut floor = Floor {
            nodes: Vec::new(),
            parts: Vec::new(),
            kinds: Vec::new(),
            takes: HashMap::new(),
            out: HashMap::new(),
            units: Units {
                cores_milli: 1,
                memory_bytes: 1,
            },
            all: Left::default(),
            places: HashMap::new(),
            closed: Vec::new(),
            parents: resources
                .iter()
                .filter_map(|one| Some((one.id, one.parent?)))
                .collect(),
            seats: resources
                .iter()
                .filter(|one| role(one) == Some(Role::Seats))
                .filter_map(|one| Some((one.id, one.capacity.as_ref()?.amount.get())))
                .collect(),
        };
        let mut racks: BTreeMap<Option<ResourceId>, u32> = BTreeMap::new();
        for (number, node) in (0..).zip(nodes) {
            let index = NodeIndex(number);
            let below = tree
                .descendants(node.id)
                .filter_map(|id| known.get(&id).copied());
            let mut below: Vec<&Resource> = below.collect();
            below.sort_by(|a, b| natural(&a.name).cmp(&natural(&b.name)));
            let next = racks.len() as u32;
            let rack = *racks.entry(node.parent).or_insert(next);
            floor.add(index, node, &below, rack, role, tree);
            let is_now = tree.effective_status(node.id, status).0;
            if is_now != Status::Active {
                floor.out.insert(index, is_now);
            }
            // A claim on an ancestor of a node takes the whole node.
            for above in tree.ancestors(node.id).filter(|above| *above != node.id) {
                let whole = floor.whole(index);
                floor.takes.entry(above).or_default().push(Taken {
                    piece: whole,
                    unit: None,
                });
            }
        }
        let is_out = |id: &ResourceId| tree.effective_status(*id, status).0 != Status::Active;
        let mut out: Vec<ResourceId> = floor.takes.keys().copied().filter(is_out).collect();
        out.sort_unstable();
        for id in out {
            let pieces = floor.takes.get(&id).into_iter().flatten();
            let pieces = pieces.map(|taken| taken.piece.clone()).collect();
            floor.closed.push(Placement { pieces });
        }
        floor
    }

    /// Whether a GPU is out of service by itself.
    pub fn is_closed(&self, node: NodeIndex, gpu: u16) -> bool {
        let pieces = self.closed.iter().flat_map(|closed| &closed.pieces);
        let mut gpus = pieces
            .filter(|piece| piece.node == node)
            .flat_map(|piece| &piece.gpus);
        gpus.any(|part| part.gpu == gpu)
    }

    fn add(
        &mut self,
        index: NodeIndex,
        node: &Resource,
        below: &[&Resource],
        rack: u32,
        role: impl Fn(&Resource) -> Option<Role>,
        tree: &Tree,
    ) {
        let mut parts = Parts {
            node: node.id,
            cores: None,
            memory: None,
            gpus: Vec::new(),
        };
        let (mut cpu_milli, mut memory_bytes) = (NOT_COUNTED, NOT_COUNTED);
        let mut gpus = Vec::new();
        let link = matches!(
            node.attributes.get_named("nvlink"),
            Some(AttributeValue::Flag(true))
        )
        .then_some(0);
        for part in below {
            let capacity = part.capacity.as_ref();
            let amount = capacity.map_or(0, |capacity| capacity.amount.get());
            let unit = capacity.map_or("", |capacity| capacity.unit.as_str());
            match role(part) {
                Some(Role::Cores) if parts.cores.is_none() => {
                    let each = if unit == "millicores" { 1 } else { 1000 };
                    (parts.cores, cpu_milli) = (Some(part.id), amount * each);
                    self.units.cores_milli = self.units.cores_milli.max(each);
                    let piece = Piece {
                        cpu_milli,
                        ..nothing(index)
                    };
                    self.takes.insert(
                        part.id,
                        vec![Taken {
                            piece,
                            unit: Some(Unit::Cores(each)),
                        }],
                    );
                }
                Some(Role::Memory) if parts.memory.is_none() => {
                    let each = if unit == "mib" { MIB } else { 1024 * MIB };
                    (parts.memory, memory_bytes) = (Some(part.id), amount * each);
                    self.units.memory_bytes = self.units.memory_bytes.max(each);
                    let piece = Piece {
                        memory_bytes,
                        ..nothing(index)
                    };
                    self.takes.insert(
                        part.id,
                        vec![Taken {
                            piece,
                            unit: Some(Unit::Memory(each)),
                        }],
                    );
                }
                Some(Role::Gpu) => {
                    let of_it = tree.descendants(part.id);
                    let slices = below.iter().filter(|one| role(one) == Some(Role::Slice));
                    let slices: Vec<&&Resource> = {
                        let of_it: Vec<ResourceId> = of_it.collect();
                        slices.filter(|slice| of_it.contains(&slice.id)).collect()
                    };
                    let first = gpus.len();
                    if slices.is_empty() {
                        self.add_gpu(part, None, link, &mut gpus, &mut parts);
                    }
                    for slice in slices {
                        let profile = slice
                            .attributes
                            .get_named("mig_profile")
                            .map(ToString::to_string);
                        self.add_gpu(
                            slice,
                            profile.or(Some(String::new())),
                            None,
                            &mut gpus,
                            &mut parts,
                        );
                        let piece = of_gpus(index, gpus.len() - 1..gpus.len());
                        self.takes
                            .insert(slice.id, vec![Taken { piece, unit: None }]);
                    }
                    let piece = of_gpus(index, first..gpus.len());
                    self.takes.insert(
                        part.id,
                        vec![Taken {
                            piece,
                            unit: Some(Unit::Gpu),
                        }],
                    );
                }
                _ => {}
            }
        }
        for gpu in &gpus {
            self.all.gpus.push(if gpu_is_whole(&self.kinds, gpu) {
                UNDIVIDED
            } else {
                0
            });
        }
        self.all.cpu_milli = self.all.cpu_milli.saturating_add(cpu_milli);
        self.all.memory_bytes = self.all.memory_bytes.saturating_add(memory_bytes);
        self.nodes.push(Node {
            cpu_milli,
            memory_bytes,
            gpus,
            rack,
            until_us: i64::MAX,
        });
        self.places.insert(parts.node, self.parts.len());
        self.parts.push(parts);
        let whole = self.whole(index);
        self.takes.insert(
            node.id,
            vec![Taken {
                piece: whole,
                unit: None,
            }],
        );
    }

    fn add_gpu(
        &mut self,
        gpu: &Resource,
        profile: Option<String>,
        link: Option<u16>,
        gpus: &mut Vec<Gpu>,
        parts: &mut Parts,
    ) {
        let kind = GpuKind {
            profile,
            attributes: gpu
                .attributes
                .iter()
                .filter(|(name, _)| name.as_str() != "mig_at")
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            is_shareable: gpu
                .capacity
                .as_ref()
                .is_some_and(|capacity| capacity.amount.get() == u64::from(UNDIVIDED)),
        };
        let number = self
            .kinds
            .iter()
            .position(|one| *one == kind)
            .unwrap_or_else(|| {
                self.kinds.push(kind);
                self.kinds.len() - 1
            });
        // The engine knows at most 64 models. GPUs of further kinds are not offered.
        let Some(model) = u8::try_from(number).ok().and_then(Model::new) else {
            return;
        };
        gpus.push(Gpu {
            model,
            memory_bytes: 0,
            link,
            mode: Mode::Shared,
        });
        parts.gpus.push(gpu.id);
    }

    fn whole(&self, node: NodeIndex) -> Piece {
        let of = &self.nodes[node.0 as usize];
        Piece {
            cpu_milli: of.cpu_milli,
            memory_bytes: of.memory_bytes,
            ..of_gpus(node, 0..of.gpus.len())
        }
    }

    /// The engine's form of a variant (`Wish`). `None` if no GPU of the site matches it.
    pub fn need(&self, wish: &Wish) -> Option<Need> {
        let up = |amount: u64, unit: u64| amount.div_ceil(unit) * unit;
        let task = &wish.task;
        let gpus = match &task.gpus {
            None => fleet::Gpus::None,
            Some(workload::Gpus::Whole { count, .. } | workload::Gpus::Slice { count, .. }) => {
                fleet::Gpus::Whole(count.get())
            }
            Some(workload::Gpus::Share { thousandths, .. }) => {
                fleet::Gpus::Share(thousandths.get())
            }
        };
        let models = match &task.gpus {
            None => Models::ANY,
            Some(wanted) => {
                let fits = |kind: &GpuKind| kind.meets(wanted);
                let models = (0_u8..).zip(&self.kinds).filter(|(_, kind)| fits(kind));
                let models: Models = models
                    .filter_map(|(number, _)| Model::new(number))
                    .collect();
                if models == Models::ANY {
                    return None;
                }
                models
            }
        };
        Some(Need {
            task: fleet::Task {
                cpu_milli: up(task.cores_milli.get(), self.units.cores_milli),
                memory_bytes: up(task.memory_mib.get() * MIB, self.units.memory_bytes),
                gpus,
                models,
                gpu_memory_bytes: 0,
            },
            tasks: wish.tasks.get(),
            near: near(wish.near),
            at_least: near(wish.at_least),
            apart: wish.apart,
            until_us: i64::MAX,
        })
    }

    /// The variants of a workload that some GPU matches, with their index in `wishes`.
    pub fn usable<'a>(&self, workload: &'a Workload) -> Vec<(usize, &'a Wish, Need)> {
        let wishes = workload.ask.wishes.iter().enumerate();
        let usable = wishes.filter_map(|(number, wish)| Some((number, wish, self.need(wish)?)));
        usable.collect()
    }

    pub fn pools(&self) -> Vec<(Pool, u64)> {
        (0..)
            .map(Pool)
            .zip(self.seats.iter().map(|(_, total)| *total))
            .collect()
    }

    pub fn pool(&self, seats: &ResourceReference) -> Option<Pool> {
        let Reference::Id(id) = seats else {
            return None;
        };
        let place = self.seats.iter().position(|(seats, _)| seats == id)?;
        u16::try_from(place).ok().map(Pool)
    }

    /// The seats that a claim takes.
    pub fn seats_of(&self, claim: &Claim) -> Option<(Pool, u64)> {
        let pool = self.pool(&Reference::Id(claim.resource))?;
        let (_, total) = self.seats.get(usize::from(pool.0))?;
        Some((pool, claim.take.amount().map_or(*total, Amount::get)))
    }

    /// The dominant share of a need: its largest fraction of the site's cores, memory or GPUs.
    pub fn part_of_site(&self, need: &Need) -> f64 {
        let task = &need.task;
        let parts = [
            self.part(task.cpu_milli, self.all.cpu_milli),
            self.part(task.memory_bytes, self.all.memory_bytes),
            self.part(u64::from(task.gpus.thousandths()), self.all_gpus()),
        ];
        f64::from(need.tasks) * parts.into_iter().fold(0.0, f64::max)
    }

    /// The dominant share of a placement, for any holder.
    pub fn part_taken(&self, placement: &Placement) -> f64 {
        let sum =
            |of: fn(&Piece) -> u64| placement.pieces.iter().map(of).fold(0, u64::saturating_add);
        let gpus = sum(|piece| {
            piece
                .gpus
                .iter()
                .map(|part| u64::from(part.thousandths))
                .sum()
        });
        let memory = self.part(sum(|piece| piece.memory_bytes), self.all.memory_bytes);
        self.part_of(gpus, sum(|piece| piece.cpu_milli)).max(memory)
    }

    /// The dominant share of an amount of GPUs and cores.
    pub fn part_of(&self, gpus_milli: u64, cores_milli: u64) -> f64 {
        let gpus = self.part(gpus_milli, self.all_gpus());
        gpus.max(self.part(cores_milli, self.all.cpu_milli))
    }

    fn part(&self, wanted: u64, all: u64) -> f64 {
        match all {
            0 | NOT_COUNTED.. => 0.0,
            all => wanted as f64 / all as f64,
        }
    }

    /// In thousandths.
    fn all_gpus(&self) -> u64 {
        self.all.gpus.iter().map(|free| u64::from(*free)).sum()
    }

    /// Whether a resource is `above`, or a descendant of it.
    pub fn is_at_or_below(&self, resource: ResourceId, above: ResourceId) -> bool {
        let up = std::iter::successors(Some(resource), |id| self.parents.get(id).copied());
        up.into_iter().any(|id| id == above)
    }

    /// The resources of a placement: as allocations for people, and as amounts to claim.
    pub fn pieces(&self, placement: &Placement) -> (Vec<RunPiece>, Vec<(ResourceId, Take)>) {
        let mut pieces = Vec::new();
        let mut amounts: BTreeMap<ResourceId, u64> = BTreeMap::new();
        let mut whole: Vec<ResourceId> = Vec::new();
        for piece in &placement.pieces {
            let Some(parts) = self.parts.get(piece.node.0 as usize) else {
                continue;
            };
            let mut add = |resource: Option<ResourceId>, amount: u64| {
                if let Some(resource) = resource.filter(|_| amount > 0) {
                    *amounts.entry(resource).or_default() += amount;
                }
            };
            add(parts.cores, self.in_units(parts.cores, piece.cpu_milli));
            add(
                parts.memory,
                self.in_units(parts.memory, piece.memory_bytes),
            );
            let mut gpus = Vec::new();
            for part in &piece.gpus {
                let Some(gpu) = parts.gpus.get(usize::from(part.gpu)).copied() else {
                    continue;
                };
                let share = (part.thousandths < UNDIVIDED).then_some(u64::from(part.thousandths));
                match share {
                    Some(share) => add(Some(gpu), share),
                    None => whole.push(gpu),
                }
                gpus.push(RunGpu {
                    gpu,
                    share: share.and_then(|share| Amount::new(share).ok()),
                });
            }
            pieces.push(RunPiece {
                node: parts.node,
                cores_milli: piece.cpu_milli,
                memory_mib: piece.memory_bytes / MIB,
                gpus,
            });
        }
        let amounts = amounts
            .into_iter()
            .filter_map(|(id, amount)| Some((id, Take::Amount(Amount::new(amount).ok()?))));
        let takes = whole
            .into_iter()
            .map(|id| (id, Take::Exclusive))
            .chain(amounts)
            .collect();
        (pieces, takes)
    }

    fn in_units(&self, resource: Option<ResourceId>, amount: u64) -> u64 {
        let unit = resource.and_then(|id| self.takes.get(&id)?.first()?.unit);
        match unit {
            Some(Unit::Cores(each) | Unit::Memory(each)) => amount.div_ceil(each),
            Some(Unit::Gpu) | None => amount,
        }
    }

    /// The placement of a run. `None` if a part of it no longer exists.
    pub fn placement(&self, pieces: &[RunPiece]) -> Option<Placement> {
        let piece = |piece: &RunPiece| {
            let at = *self.places.get(&piece.node)?;
            let gpus = piece.gpus.iter().map(|gpu| {
                let number = self.parts[at].gpus.iter().position(|id| *id == gpu.gpu)?;
                let thousandths = gpu.share.map_or(UNDIVIDED, |share| share.get() as u16);
                Some(Part {
                    gpu: number as u16,
                    thousandths,
                })
            });
            Some(Piece {
                node: NodeIndex(at as u32),
                cpu_milli: piece.cores_milli,
                memory_bytes: piece.memory_mib * MIB,
                gpus: gpus.collect::<Option<_>>()?,
            })
        };
        Some(Placement {
            pieces: pieces.iter().map(piece).collect::<Option<_>>()?,
        })
    }

    /// The node parts that a claim takes. `None` if the resource belongs to no node.
    pub fn taken_by(&self, claim: &Claim) -> Option<Placement> {
        let takes = self.takes.get(&claim.resource)?;
        let piece = |taken: &Taken| match (claim.take, taken.unit) {
            (Take::Amount(amount), Some(Unit::Cores(each))) => Piece {
                cpu_milli: amount.get() * each,
                ..taken.piece.clone()
            },
            (Take::Amount(amount), Some(Unit::Memory(each))) => Piece {
                memory_bytes: amount.get() * each,
                ..taken.piece.clone()
            },
            (Take::Amount(amount), Some(Unit::Gpu)) => {
                let mut piece = taken.piece.clone();
                for part in &mut piece.gpus {
                    part.thousandths = u16::try_from(amount.get())
                        .unwrap_or(UNDIVIDED)
                        .min(UNDIVIDED);
                }
                piece
            }
            _ => taken.piece.clone(),
        };
        Some(Placement {
            pieces: takes.iter().map(piece).collect(),
        })
    }

    /// All resources that the queue counts. The planner treats every foreign claim on them as a `Wall`.
    pub fn resources(&self) -> Vec<ResourceId> {
        let seats = self.seats.iter().map(|(id, _)| *id);
        self.takes.keys().copied().chain(seats).collect()
    }
}

impl GpuKind {
    fn meets(&self, wanted: &workload::Gpus) -> bool {
        let is_such = match (wanted, &self.profile) {
            (workload::Gpus::Slice { profile, .. }, Some(has)) => profile.as_str() == has.as_str(),
            (workload::Gpus::Whole { .. }, None) => true,
            (workload::Gpus::Share { .. }, None) => self.is_shareable,
            _ => false,
        };
        is_such
            && wanted
                .with()
                .iter()
                .all(|requirement| requirement.is_met_by(&self.attributes))
    }
}

fn near(wanted: workload::Near) -> Near {
    match wanted {
        workload::Near::Anywhere => Near::Anywhere,
        workload::Near::Rack => Near::Rack,
        workload::Near::Node => Near::Node,
        workload::Near::Link => Near::Link,
    }
}

fn gpu_is_whole(kinds: &[GpuKind], gpu: &Gpu) -> bool {
    (0_u8..)
        .zip(kinds)
        .any(|(number, kind)| Model::new(number) == Some(gpu.model) && kind.profile.is_none())
}

fn nothing(node: NodeIndex) -> Piece {
    Piece {
        node,
        cpu_milli: 0,
        memory_bytes: 0,
        gpus: Vec::new(),
    }
}

fn of_gpus(node: NodeIndex, gpus: std::ops::Range<usize>) -> Piece {
    let part = |gpu: usize| Part {
        gpu: gpu as u16,
        thousandths: UNDIVIDED,
    };
    Piece {
        gpus: gpus.map(part).collect(),
        ..nothing(node)
    }
}

/// `gpu10` comes after `gpu9`.
fn natural(name: &Name) -> (usize, &str) {
    (name.as_str().len(), name.as_str())
}

pub(super) trait Named {
    fn get_named(&self, name: &str) -> Option<&AttributeValue>;
}

impl Named for Attributes {
    fn get_named(&self, name: &str) -> Option<&AttributeValue> {
        self.iter()
            .find(|(key, _)| key.as_str() == name)
            .map(|(_, value)| value)
    }
}
