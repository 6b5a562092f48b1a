//! Replays a trace through the queue: workloads arrive, wait, run, are preempted and end, around reservations.
//!
//! The planner makes every decision. This code simulates only the fleet and its clock.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};

use berth_engine::fleet::{Fleet, Mix, Need, Placement};
use berth_engine::queue::Micros;
use berth_engine::queue::history::{History, Kind};
use berth_engine::queue::planner::{Ask, Class, Decision, Key, Planner, Start, Stop, Why, Wish};
use berth_engine::queue::quota::Amounts;
use berth_engine::queue::share::{Account, Mode, Shares};

use crate::outcome::{Done, Fairness, Outcome, Recorder, RightNow, seconds};
use crate::policy::{Candidate, Thing};
use crate::reserve;
use crate::trace::{Arrival, Holder, Load, Prices, Taken, Trace, Wall};

/// Replays a trace under a policy. Reports the completed fraction at intervals.
pub fn play(trace: &Trace, candidate: &Candidate, progress: &mut dyn FnMut(f64)) -> Outcome {
    let mut world = World::new(trace, candidate);
    let all = trace.arrivals.len().max(1) as f64;
    let mut told = 0.0;
    while world.go_on() {
        world.plan();
        // Arrivals and completions each count as half of the work.
        let settled = world.done.len() + world.outcome.never;
        let done = (world.next_arrival + settled) as f64 / (2.0 * all);
        if done - told >= 0.001 {
            told = done;
            progress(done.min(1.0));
        }
    }
    progress(1.0);
    world.outcome()
}

struct Run {
    placement: Placement,
    began: Micros,
    ends: Micros,
    /// The time limit's end. `None` for opportunistic runs, which stop when the planner says.
    until: Option<Micros>,
    /// Sequence number of this start.
    started: usize,
}

struct World<'a> {
    trace: &'a Trace,
    candidate: &'a Candidate,
    walls: Vec<Wall>,
    /// Indexes of `walls` in the order in which the reservations become known.
    known: Vec<usize>,
    queue: Planner,
    accounts: HashMap<Holder, Account>,
    history: History,
    /// The empty fleet, and whether each need fits on it.
    empty: Fleet,
    fitting: HashMap<Need, bool>,
    prices: Prices,
    fleet: Load,
    /// When the last workload arrives. After that the queue only drains.
    last_arrival: Micros,
    now: Micros,
    next_arrival: usize,
    next_known: usize,
    next_wall: usize,
    /// Ends of active reservations, with their indexes.
    wall_ends: BinaryHeap<Reverse<(Micros, usize)>>,
    ends: BTreeSet<(Micros, usize)>,
    waiting: BTreeSet<usize>,
    waiting_of: HashMap<usize, BTreeSet<usize>>,
    runs: HashMap<usize, Run>,
    /// The runs on each node, and the current and future reservations there.
    on: Vec<Vec<usize>>,
    reserved_on: Vec<Vec<usize>>,
    refused: HashSet<usize>,
    used: Load,
    promised: HashMap<usize, Micros>,
    done: Vec<Done>,
    recorder: Recorder,
    fairness: Fairness,
    /// In seconds of the whole fleet, while work arrives.
    cpu_seconds: f64,
    gpu_seconds: f64,
    reserved: f64,
    outcome: Outcome,
}

impl<'a> World<'a> {
    fn new(trace: &'a Trace, candidate: &'a Candidate) -> World<'a> {
        let arrivals = &trace.arrivals;
        let now = arrivals.first().map_or(0, |first| first.submit);
        let last_arrival = arrivals.last().map_or(0, |last| last.submit);
        let fleet = Load::of_nodes(&trace.nodes);
        let prices = Prices::of(fleet);
        let mut shares = Shares::new(candidate.half_life, now);
        let weight = |project: &crate::trace::Project| {
            let own = candidate.weights.get(&project.name);
            own.copied().unwrap_or(project.weight)
        };
        let projects: Vec<Account> = trace
            .projects
            .iter()
            .map(|project| shares.add_project(weight(project)))
            .collect();
        let walls = reserve::walls(trace, candidate);
        let owners = arrivals.iter().map(|arrival| arrival.owner);
        let holders = owners.chain(walls.iter().filter_map(|wall| wall.holder));
        let mut accounts = HashMap::new();
        for holder in holders {
            let project = projects[holder.project];
            accounts
                .entry(holder)
                .or_insert_with(|| shares.person(project, holder.person as u64));
        }
        let mut queue = Planner::new(
            candidate.policy,
            &trace.nodes,
            mix(trace),
            prices.whole(),
            shares,
            now,
        );
        for quota in &candidate.quotas {
            let named = trace.projects.iter().zip(&projects);
            for (_, account) in named.filter(|(project, _)| project.name == quota.project) {
                let counted = quota.of.counted();
                queue.quotas.allow(*account, counted, Some(quota.allowance));
            }
        }
        let mut known: Vec<usize> = (0..walls.len()).collect();
        known.sort_by_key(|place| (walls[*place].known, *place));
        World {
            trace,
            candidate,
            walls,
            known,
            queue,
            accounts,
            history: History::default(),
            empty: Fleet::new(&trace.nodes, Mix::default()),
            fitting: HashMap::new(),
            prices,
            fleet,
            last_arrival,
            now,
            next_arrival: 0,
            next_known: 0,
            next_wall: 0,
            wall_ends: BinaryHeap::new(),
            ends: BTreeSet::new(),
            waiting: BTreeSet::new(),
            waiting_of: HashMap::new(),
            runs: HashMap::new(),
            on: vec![Vec::new(); trace.nodes.len()],
            reserved_on: vec![Vec::new(); trace.nodes.len()],
            refused: HashSet::new(),
            used: Load::default(),
            promised: HashMap::new(),
            done: Vec::new(),
            recorder: Recorder::new(now, last_arrival),
            fairness: Fairness::new(trace.projects.iter().map(weight)),
            cpu_seconds: 0.0,
            gpu_seconds: 0.0,
            reserved: 0.0,
            outcome: Outcome::default(),
        }
    }

    /// Advances to the next event and handles it; ends come first. Returns `false` when everything is over.
    fn go_on(&mut self) -> bool {
        let all_came = self.next_arrival == self.trace.arrivals.len();
        if all_came && self.ends.is_empty() && self.waiting.is_empty() {
            return false;
        }
        let arrival = self.trace.arrivals.get(self.next_arrival);
        let known = self.known.get(self.next_known);
        let moments = [
            arrival.map(|arrival| arrival.submit),
            self.ends.first().map(|(at, _)| *at),
            known.map(|place| self.walls[*place].known),
            self.walls.get(self.next_wall).map(|wall| wall.from),
            self.wall_ends.peek().map(|Reverse((at, _))| *at),
            self.queue.next_look(self.now),
        ];
        let Some(next) = moments.into_iter().flatten().min() else {
            return false;
        };
        self.pass(self.now.max(next));
        self.end_what_ends();
        self.learn_of_walls();
        self.begin_walls();
        self.submit_what_comes();
        true
    }

    /// Advances the clock without any other change.
    fn pass(&mut self, to: Micros) {
        let part = |used: u64, all: u64| match all {
            0 => 0.0,
            all => used as f64 / all as f64,
        };
        let now = RightNow {
            cpu: part(self.used.cpu_milli, self.fleet.cpu_milli),
            gpu: part(self.used.gpu_milli, self.fleet.gpu_milli),
            waiting: self.waiting.len() as f64,
        };
        let counted_s = seconds(to.min(self.last_arrival) - self.now).max(0.0);
        self.cpu_seconds += now.cpu * counted_s;
        self.gpu_seconds += now.gpu * counted_s;
        self.recorder.add(self.now, to, now);
        self.fairness.pass(to - self.now);
        self.now = to;
    }

    fn end_what_ends(&mut self) {
        while let Some((at, number)) = self.ends.first().copied().filter(|(at, _)| *at <= self.now)
        {
            self.ends.remove(&(at, number));
            self.queue.end(Key(number as u64), self.now);
            let Some(run) = self.runs.remove(&number) else {
                continue;
            };
            for piece in &run.placement.pieces {
                self.on[piece.node.0 as usize].retain(|one| *one != number);
            }
            let arrival = &self.trace.arrivals[number];
            let load = arrival.load();
            let rate = self.prices.rate(load);
            self.used = self.used.without(load);
            if is_firm(arrival) {
                self.fairness.ends(arrival.owner.project, rate);
            }
            let ran = at - run.began;
            if ran < arrival.runs {
                self.outcome.preemptions += 1;
                self.outcome.lost_hours += rate * seconds(ran) / 3600.0;
                self.wait(number);
                continue;
            }
            self.done.push(Done {
                started: run.started,
                arrival: number,
                waited: at - arrival.submit - arrival.runs,
            });
            self.history.learn(&self.kind(number), arrival.runs);
            if self.candidate.prediction {
                let same = self.waiting_of.get(&arrival.owner.person);
                for other in same.into_iter().flatten() {
                    let expected = self.history.expected(&self.kind(*other));
                    self.queue.expect(Key(*other as u64), expected);
                }
            }
        }
    }

    /// Accepts a reservation, unless running workloads may hold its resources until their limits. Nothing is booked
    /// twice.
    fn learn_of_walls(&mut self) {
        while let Some(place) = self.known.get(self.next_known).copied() {
            let wall = &self.walls[place];
            if wall.known > self.now {
                break;
            }
            self.next_known += 1;
            self.outcome.reservations += 1;
            let nodes = nodes_of(&wall.placement);
            if nodes.iter().any(|node| self.is_taken(wall, *node)) {
                self.refused.insert(place);
                self.outcome.refused += 1;
                continue;
            }
            for node in nodes {
                self.reserved_on[node].push(place);
            }
            self.queue
                .reserve(place as u64, wall.from, wall.to, &wall.placement);
        }
    }

    /// Whether a node has too little left at some moment of the reservation, as far as is known now.
    fn is_taken(&self, wall: &Wall, node: usize) -> bool {
        let others = || {
            self.reserved_on[node]
                .iter()
                .map(|place| &self.walls[*place])
        };
        let later = others().map(|other| other.from);
        let moments = later.filter(|from| (wall.from..wall.to).contains(from));
        moments.chain([wall.from]).any(|at| {
            let mut taken = Taken::default();
            taken.add_on(node, &wall.placement);
            for other in others().filter(|other| other.from <= at && at < other.to) {
                taken.add_on(node, &other.placement);
            }
            let runs = self.on[node].iter().filter_map(|one| self.runs.get(one));
            for run in runs.filter(|run| run.until.is_some_and(|until| until > at)) {
                taken.add_on(node, &run.placement);
            }
            !taken.fits(&self.trace.nodes[node])
        })
    }

    fn begin_walls(&mut self) {
        while let Some(Reverse((at, place))) = self.wall_ends.peek().copied() {
            if at > self.now {
                break;
            }
            self.wall_ends.pop();
            for node in nodes_of(&self.walls[place].placement) {
                self.reserved_on[node].retain(|one| *one != place);
            }
        }
        while let Some(wall) = self
            .walls
            .get(self.next_wall)
            .filter(|wall| wall.from <= self.now)
        {
            let place = self.next_wall;
            self.next_wall += 1;
            if self.refused.contains(&place) {
                continue;
            }
            let late = nodes_of(&wall.placement)
                .into_iter()
                .map(|node| self.late(wall, node));
            self.outcome.late_s += seconds(late.max().unwrap_or(0));
            let rate = self.prices.rate(Load::of_placement(&wall.placement));
            if let Some(account) = wall.holder.and_then(|holder| self.accounts.get(&holder)) {
                let shares = &mut self.queue.shares;
                shares.charge(*account, Mode::Reserved, wall.from, wall.to, rate);
            }
            let counted = wall.to.min(self.last_arrival) - wall.from;
            self.reserved += rate * seconds(counted.max(0));
            self.wall_ends.push(Reverse((wall.to, place)));
        }
    }

    /// How long workloads on the node delay a reservation.
    fn late(&self, wall: &Wall, node: usize) -> Micros {
        let mut taken = Taken::default();
        let others = self.reserved_on[node]
            .iter()
            .map(|place| &self.walls[*place]);
        for other in others.filter(|other| other.from <= wall.from && wall.from < other.to) {
            taken.add_on(node, &other.placement);
        }
        let runs = self.on[node].iter().filter_map(|one| self.runs.get(one));
        let mut still: Vec<&Run> = runs.collect();
        for run in &still {
            taken.add_on(node, &run.placement);
        }
        still.sort_by_key(|run| run.ends);
        let mut late = 0;
        for run in still {
            if taken.fits(&self.trace.nodes[node]) {
                break;
            }
            taken.remove_on(node, &run.placement);
            late = run.ends - wall.from;
        }
        late.max(0)
    }

    fn submit_what_comes(&mut self) {
        let arrivals = &self.trace.arrivals;
        let comes = |number: usize, now: Micros| {
            let arrival = arrivals.get(number);
            arrival.is_some_and(|arrival| arrival.submit <= now)
        };
        while comes(self.next_arrival, self.now) {
            let is_hopeless = !self.fits(arrivals[self.next_arrival].need());
            match is_hopeless {
                true => self.outcome.never += 1,
                false => self.wait(self.next_arrival),
            }
            self.next_arrival += 1;
        }
    }

    /// Whether a need fits on the empty fleet. A workload that does not fit need not wait.
    fn fits(&mut self, need: Need) -> bool {
        let known = self.fitting.entry(need);
        *known.or_insert_with(|| self.empty.place(&need).is_some())
    }

    /// Adds a workload to the queue, for the first time or again.
    fn wait(&mut self, number: usize) {
        let arrival = &self.trace.arrivals[number];
        let Some(ask) = self.ask(number) else {
            return;
        };
        self.queue.submit(Key(number as u64), ask);
        self.waiting.insert(number);
        let own = self.waiting_of.entry(arrival.owner.person).or_default();
        own.insert(number);
        if is_firm(arrival) {
            self.fairness.waits(arrival.owner.project);
        }
    }

    /// The request of a workload to the queue, with its first submission time.
    fn ask(&self, number: usize) -> Option<Ask> {
        let arrival = &self.trace.arrivals[number];
        let load = arrival.load();
        let account = *self.accounts.get(&arrival.owner)?;
        let wish = Wish {
            need: arrival.need(),
            limit: arrival.limit,
            expected: match self.candidate.prediction {
                false => arrival.limit,
                true => self.history.expected(&self.kind(number)),
            },
            amounts: match self.candidate.quotas.is_empty() {
                true => Amounts::default(),
                false => Thing::amounts(load),
            },
            rate: self.prices.rate(load),
        };
        Some(Ask {
            class: arrival.class,
            level: arrival.level,
            ..Ask::new(account, wish, arrival.submit)
        })
    }

    fn plan(&mut self) {
        for decision in self.queue.plan(self.now) {
            match decision {
                Decision::Start(start) => self.begin(start),
                Decision::Stop(stop) => self.stop(stop),
                // Nothing in a trace has a deadline.
                Decision::TooLate(_) => {}
            }
        }
        for number in &self.waiting {
            if let Some(Why::Promised(at)) = self.queue.why(Key(*number as u64)) {
                let before = self.promised.insert(*number, at);
                self.outcome.promises += usize::from(before.is_none());
            }
        }
    }

    fn begin(&mut self, start: Start) {
        let number = start.key.0 as usize;
        let arrival = &self.trace.arrivals[number];
        self.waiting.remove(&number);
        if let Some(own) = self.waiting_of.get_mut(&arrival.owner.person) {
            own.remove(&number);
        }
        let promise = self.promised.remove(&number);
        self.outcome.broken += usize::from(promise.is_some_and(|at| at < self.now));
        for piece in &start.placement.pieces {
            let on = &mut self.on[piece.node.0 as usize];
            if on.last() != Some(&number) {
                on.push(number);
            }
        }
        let load = arrival.load();
        self.used = self.used.and(load);
        if is_firm(arrival) {
            let rate = self.prices.rate(load);
            self.fairness.begins(arrival.owner.project, rate);
        }
        // An opportunistic run may have to stop before it is done.
        let ends = (self.now + arrival.runs).min(start.until.max(self.now));
        self.ends.insert((ends, number));
        let run = Run {
            placement: start.placement,
            began: self.now,
            ends,
            until: is_firm(arrival).then(|| self.now.saturating_add(arrival.limit)),
            started: self.outcome.starts,
        };
        self.outcome.starts += 1;
        self.runs.insert(number, run);
    }

    /// Stops a run at the end of its grace period.
    fn stop(&mut self, stop: Stop) {
        let number = stop.key.0 as usize;
        let Some(run) = self.runs.get_mut(&number) else {
            return;
        };
        let by = stop.by.max(self.now);
        if by < run.ends {
            self.ends.remove(&(run.ends, number));
            run.ends = by;
            self.ends.insert((by, number));
        }
    }

    fn kind(&self, number: usize) -> Kind {
        let arrival = &self.trace.arrivals[number];
        let load = arrival.load();
        Kind {
            person: arrival.owner.person as u64,
            limit: arrival.limit,
            size: match load.gpu_milli {
                0 => load.cpu_milli,
                gpu_milli => gpu_milli,
            },
        }
    }

    fn outcome(self) -> Outcome {
        let mut outcome = self.outcome;
        outcome.never += self.waiting.len();
        let arrivals = &self.trace.arrivals;
        let first = arrivals.first().map_or(0, |first| first.submit);
        let while_came_s = seconds(self.last_arrival - first);
        let mean = |sum: f64| {
            if while_came_s > 0.0 {
                sum / while_came_s
            } else {
                0.0
            }
        };
        let cpu = mean(self.cpu_seconds);
        let gpu = mean(self.gpu_seconds);
        outcome.cpu_used = (self.fleet.cpu_milli > 0).then_some(cpu);
        outcome.gpu_used = (self.fleet.gpu_milli > 0).then_some(gpu);
        outcome.reserved = mean(self.reserved / self.prices.whole().max(f64::MIN_POSITIVE));
        let names = self.trace.projects.iter().map(|project| &*project.name);
        (outcome.shares, outcome.astray) = self.fairness.finish(names);
        outcome.over_time = self.recorder.finish();
        outcome.count_waits(self.trace, self.done);
        outcome
    }
}

/// Whether a workload is firm. An opportunistic one uses idle resources: it stops when the planner says, and has no
/// fair share.
fn is_firm(arrival: &Arrival) -> bool {
    arrival.class > Class::Opportunistic
}

fn nodes_of(placement: &Placement) -> BTreeSet<usize> {
    let pieces = placement.pieces.iter();
    pieces.map(|piece| piece.node.0 as usize).collect()
}

/// The mix of requested shapes, as the live queue would have learnt it.
fn mix(trace: &Trace) -> Mix {
    Mix::of(
        trace
            .arrivals
            .iter()
            .map(|arrival| (arrival.task, u64::from(arrival.tasks))),
    )
}

#[cfg(test)]
mod tests;
