//! Decides which GPU to repartition (MIG), and for which workload. It helps workloads that wait because no slice of a
//! profile is free. It must not remove a slice that is in use or promised.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use berth_engine::fleet::mig::{self, Cut};
use berth_engine::fleet::{Placement, UNDIVIDED};
use berth_engine::queue::Micros;
use berth_engine::queue::planner::Why;
use berth_model::attribute::Attributes;
use berth_model::workload::{Gpus, Near, Wish, Workload};
use berth_model::{Name, Resource, ResourceId, TypeId, WorkloadId};
use jiff::{SignedDuration, Timestamp};

use super::super::cuttable::{Cuttable, Placed};
use super::super::look::NodeView;
use super::{Plan, Stands, Waiting, Wall, micros};

/// Time limit of a repartition.
pub(crate) const CUT_MAX: SignedDuration = SignedDuration::from_secs(60);
/// How many waiting workloads are considered at once.
const LOOKED_AT_MAX: usize = 16;

/// A repartition that helps a workload.
#[derive(Debug)]
pub(crate) struct NewCut {
    pub workload: Arc<Workload>,
    pub gpu: Resource,
    /// The new slice: its type, attributes, profile and position.
    pub kind: TypeId,
    pub attributes: Attributes,
    pub profile: Name,
    pub at: u8,
    pub gone: Vec<ResourceId>,
    pub stays: Vec<ResourceId>,
}

/// Waiting workloads by the profile that they want; `None` means whole GPUs.
type Wanted<'a> = HashMap<Option<&'a str>, HashSet<WorkloadId>>;

/// How many tasks fit on a node now, how many after a repartition of its GPUs, and those GPUs.
struct Room<'a> {
    tasks: u64,
    tasks_then: u64,
    gpus: Vec<(&'a Cuttable, Cut, usize)>,
}

/// Free resources of the nodes, by three criteria.
struct Free {
    /// Free for the whole run time of the task.
    usable: Vec<NodeView>,
    /// Free during the repartition, and not reserved from now on.
    touchable: HashSet<ResourceId>,
    /// Not reserved from now on, though a run may hold it.
    unreserved: HashSet<ResourceId>,
}

impl Plan {
    /// The next repartition that helps a workload, in the order of submission.
    pub fn next_cut(&self, now: Timestamp) -> Option<NewCut> {
        if self.cutting.gpus.is_empty() {
            return None;
        }
        let waiting = self.workloads.values();
        let mut waiting: Vec<&Waiting> = waiting.filter(|one| self.waits_for_room(one)).collect();
        waiting.sort_by_key(|one| one.workload.number);
        let mut wanted: Wanted<'_> = HashMap::new();
        for one in &waiting {
            for wish in &one.workload.ask.wishes {
                let what = match &wish.task.gpus {
                    Some(Gpus::Slice { profile, .. }) => Some(profile.as_str()),
                    Some(Gpus::Whole { .. }) => None,
                    Some(Gpus::Share { .. }) | None => continue,
                };
                wanted.entry(what).or_default().insert(one.workload.id);
            }
        }
        let may_be_helped = |one: &&&Waiting| {
            let workload = &one.workload;
            let mut wishes = workload.ask.wishes.iter();
            wishes.any(|wish| matches!(wish.task.gpus, Some(Gpus::Slice { .. })))
                && workload.ask.not_before.is_none_or(|begins| begins <= now)
                && self.cutting.made_for(workload.id).is_none()
                && !self.in_line(workload, now).is_empty()
        };
        let mut helped = waiting.iter().filter(may_be_helped).take(LOOKED_AT_MAX);
        helped.find_map(|one| {
            let mut wishes = one.workload.ask.wishes.iter();
            wishes.find_map(|wish| self.cut_for(&one.workload, wish, &wanted, now))
        })
    }

    /// Whether the workload would start if there were more of what it requests.
    fn waits_for_room(&self, one: &Waiting) -> bool {
        match one.stands {
            Stands::NoSuchGpu => true,
            Stands::InLine => {
                let why = self
                    .first_in_line(one.workload.id)
                    .and_then(|key| self.planner.why(key));
                matches!(
                    why,
                    Some(Why::NoRoom | Why::Promised(_) | Why::MakingRoom(_) | Why::Never)
                )
            }
            Stands::Held | Stands::After(_) | Stands::AfterNever(_) | Stands::Inside(_) => false,
        }
    }

    fn cut_for(
        &self,
        workload: &Arc<Workload>,
        wish: &Wish,
        wanted: &Wanted<'_>,
        now: Timestamp,
    ) -> Option<NewCut> {
        let Some(Gpus::Slice { profile, with, .. }) = &wish.task.gpus else {
            return None;
        };
        let free = self.free(wish, now);
        let is_others = |what: Option<&str>| {
            let by = wanted.get(&what);
            by.is_some_and(|by| by.iter().any(|other| *other != workload.id))
        };
        let rooms: Vec<Room<'_>> = (0..)
            .zip(&free.usable)
            .filter(|(_, node)| node.is_in_service)
            .map(|(number, node)| {
                let own = self.cutting.gpus.iter().filter(|one| one.node == node.node);
                let open = own.filter(|one| self.cutting.is_open(one.gpu.id, workload.id, now));
                let meets = |one: &&Cuttable| {
                    let attributes = one.attributes(profile, 0);
                    with.iter().all(|wanted| wanted.is_met_by(&attributes))
                };
                let ways = open.filter(meets).filter_map(|one| {
                    let number = one.whole.named(profile.as_str())?;
                    let cut = free.cut(one, number, is_others)?;
                    Some((one, cut, number))
                });
                self.room(number, node, wish, ways.collect())
            })
            .collect();
        let tasks = u64::from(wish.tasks.get());
        let fits = |of: fn(&Room<'_>) -> u64| match wish.at_least {
            Near::Anywhere => rooms.iter().map(of).sum::<u64>() >= tasks,
            // Slices of other nodes may be near enough, too, but slices of one node surely are.
            Near::Rack | Near::Node | Near::Link => rooms.iter().any(|room| of(room) >= tasks),
        };
        // It waits for another reason, or a repartition would not help.
        if fits(|room| room.tasks) || !fits(|room| room.tasks_then) {
            return None;
        }
        let helps = rooms.iter().filter(|room| room.tasks_then > room.tasks);
        let gpus: Vec<&(&Cuttable, Cut, usize)> = helps.flat_map(|room| &room.gpus).collect();
        let ways = gpus
            .iter()
            .map(|(one, cut, profile)| (one.whole.cuts, cut, *profile));
        let (place, recut) = mig::choose(ways)?;
        let (one, _, _) = *gpus.get(place)?;
        let (gone, stays): (Vec<_>, Vec<_>) = one
            .slices
            .iter()
            .partition(|placed| recut.gone.contains(&placed.slice));
        let ids = |some: Vec<&Placed>| some.into_iter().map(|placed| placed.id).collect();
        Some(NewCut {
            workload: workload.clone(),
            gpu: one.gpu.clone(),
            kind: one.kind,
            attributes: one.attributes(profile, recut.slice.at),
            profile: profile.clone(),
            at: recut.slice.at,
            gone: ids(gone),
            stays: ids(stays),
        })
    }

    fn room<'a>(
        &self,
        number: usize,
        node: &NodeView,
        wish: &Wish,
        gpus: Vec<(&'a Cuttable, Cut, usize)>,
    ) -> Room<'a> {
        let task = &wish.task;
        let cores = node.cores_milli_free.checked_div(task.cores_milli.get());
        let memory = node.memory_mib_free.checked_div(task.memory_mib.get());
        let most = [cores, memory].into_iter().flatten().min();
        let most = most.unwrap_or(u64::MAX);
        let need = self.floor.need(wish);
        let models = self.floor.nodes.get(number).map(|node| &node.gpus);
        let slices = node.gpus.iter().zip(models.into_iter().flatten());
        let there = slices.filter(|(view, gpu)| {
            view.free == UNDIVIDED
                && need
                    .as_ref()
                    .is_some_and(|need| need.task.models.accept(gpu.model))
        });
        let there = there.count() as u64;
        let more: u64 = gpus
            .iter()
            .map(|(one, cut, profile)| more(one, cut, *profile))
            .sum();
        let each = match &task.gpus {
            Some(Gpus::Slice { count, .. }) => u64::from(count.get()).max(1),
            Some(Gpus::Whole { .. } | Gpus::Share { .. }) | None => 1,
        };
        Room {
            tasks: most.min(there / each),
            tasks_then: most.min((there + more) / each),
            gpus,
        }
    }

    fn free(&self, wish: &Wish, now: Timestamp) -> Free {
        let at = now.as_microsecond();
        let cut = at.saturating_add(micros(CUT_MAX));
        let over = cut.saturating_add(micros(wish.limit));
        let held = || {
            let runs = self.runs.values();
            let held = runs.filter_map(|running| self.floor.placement(&running.run.pieces));
            held.chain(self.floor.closed.iter().cloned()).collect()
        };
        let is_ahead = |wall: &Wall| at < wall.to && wall.account.is_some();
        let during = |wall: &Wall, end: Micros| at < wall.to && wall.from < end;
        Free {
            usable: self.views(held(), |wall| during(wall, over)),
            touchable: whole(self.views(held(), |wall| is_ahead(wall) || during(wall, cut))),
            unreserved: whole(self.views(Vec::new(), is_ahead)),
        }
    }

    fn views(&self, held: Vec<Placement>, is_taken: impl Fn(&Wall) -> bool) -> Vec<NodeView> {
        let walls = self.walls.values().flatten().filter(|wall| is_taken(wall));
        let reserved: Vec<Placement> = walls.map(|wall| wall.placement.clone()).collect();
        self.floor.views(&held, &reserved, &[])
    }
}

impl Free {
    /// The slices of a GPU by whether a repartition may remove them. Slices that others have or wait for stay, and so
    /// do slices of the wanted profile. `None` if all of them are reserved, now or later.
    fn cut(
        &self,
        one: &Cuttable,
        profile: usize,
        is_others: impl Fn(Option<&str>) -> bool,
    ) -> Option<Cut> {
        if one.slices.is_empty() {
            let is_free = self.touchable.contains(&one.gpu.id) && !is_others(None);
            return is_free.then(Cut::default);
        }
        if !one
            .slices
            .iter()
            .any(|placed| self.unreserved.contains(&placed.id))
        {
            return None;
        }
        let may_go = |placed: &&Placed| {
            self.touchable.contains(&placed.id)
                && placed.slice.profile != profile
                && !is_others(Some(&placed.profile))
        };
        let (free, busy): (Vec<_>, Vec<_>) = one.slices.iter().partition(may_go);
        let slices = |some: Vec<&Placed>| some.into_iter().map(|placed| placed.slice).collect();
        Some(Cut {
            busy: slices(busy),
            free: slices(free),
        })
    }
}

/// How many more slices of a profile the GPU could give.
fn more(one: &Cuttable, cut: &Cut, profile: usize) -> u64 {
    let next = |cut: &Cut| Some(cut.after(&cut.recut(one.whole.cuts, profile)?));
    std::iter::successors(next(cut), next).count() as u64
}

/// The GPUs and slices that are completely free.
fn whole(nodes: Vec<NodeView>) -> HashSet<ResourceId> {
    let gpus = nodes.into_iter().flat_map(|node| node.gpus);
    let whole = gpus.filter(|gpu| gpu.free == UNDIVIDED);
    whole.map(|gpu| gpu.gpu).collect()
}
