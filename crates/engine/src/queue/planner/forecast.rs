//! When those who wait will probably begin.
//!
//! The fleet is seen from afar: so many GPUs of each make, and so much CPU, of which one unit is as good as another. What runs ends
//! when it is expected to, and each of those who wait begins where there is room for as long as it is expected to take, in the order in
//! which the planner would look at them. Nothing rests on a forecast: it is told to people, stored, and scored.

use std::collections::BTreeMap;

use crate::fleet::{Gpu, Gpus, Mode, Model, Need, UNDIVIDED};

use super::super::Micros;
use super::super::profile::{Floors, Profile};
use super::super::turns::{AllOpen, Turns};
use super::{Ask, Key, Planner, RESERVED, Running, Wish};

const MINUTE: Micros = 60_000_000;
/// Nobody is told of a time farther ahead than this.
const HORIZON: Micros = 60 * 24 * 60 * MINUTE;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forecast {
    At(Micros),
    /// Later than anybody would believe.
    Beyond(Micros),
    /// It asks for more than there is.
    Never,
}

/// For everybody who waits, when they will probably begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecasts {
    pub made: Micros,
    /// By key.
    all: Vec<(Key, Forecast)>,
}

impl Forecasts {
    pub fn get(&self, key: Key) -> Option<Forecast> {
        let place = self.all.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(self.all[place].1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Key, Forecast)> + '_ {
        self.all.iter().copied()
    }
}

/// Things of which one is as good as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Thousandths of a core.
    Cpu,
    /// Thousandths of GPUs of one model with so much memory.
    Gpu(Model, u64),
}

impl Kind {
    fn of(gpu: &Gpu) -> Kind {
        Kind::Gpu(gpu.model, gpu.memory_bytes)
    }

    /// Whether it is what this wants; what wants GPUs is not measured by its CPU.
    fn serves(self, need: &Need) -> bool {
        match self {
            Kind::Cpu => need.task.gpus.thousandths() == 0,
            Kind::Gpu(model, memory_bytes) => {
                need.task.gpus.thousandths() > 0
                    && need.task.models.accept(model)
                    && need.task.gpu_memory_bytes <= memory_bytes
            }
        }
    }
}

fn size(need: &Need) -> i64 {
    let each = match need.task.gpus {
        Gpus::None | Gpus::Whole(0) | Gpus::Share(0) => need.task.cpu_milli as i64,
        gpus => i64::from(gpus.thousandths()),
    };
    each.saturating_mul(i64::from(need.tasks))
}

/// A wish as it is seen from afar.
#[derive(Debug, Clone, Copy)]
struct Measure {
    need: Need,
    size: i64,
    length: Micros,
}

impl Measure {
    fn of(wish: &Wish) -> Measure {
        Measure {
            need: wish.need,
            size: size(&wish.need),
            length: wish.expected.max(1),
        }
    }
}

struct Pool {
    kind: Kind,
    all: i64,
    profile: Profile,
    floors: Floors,
}

impl Running {
    /// When it will probably be over. What has outlived its expectation goes on half as long again, but never beyond its end.
    fn likely_end(&self, now: Micros) -> Micros {
        let expected = self.began.saturating_add(self.wish().expected);
        let longer = now.saturating_add(((now - self.began) / 2).max(MINUTE));
        let likely = if expected > now { expected } else { longer };
        likely.min(self.until).max(now + 1)
    }
}

impl Planner {
    pub fn forecast(&self, now: Micros) -> Forecasts {
        let mut pools = self.pools(now);
        let mut all = Vec::with_capacity(self.asks.len());
        for (due, promise) in &self.promises {
            let forecast = self.foresee(&mut pools, due.1, Some(promise.at), now);
            all.extend(forecast.map(|forecast| (due.1, forecast)));
        }
        for lines in self.lines.values() {
            let mut turns = Turns::new(self.policy.order, &self.shares, lines, |_, _| true);
            while let Some(turn) = turns.next(lines, &AllOpen) {
                let Some(ask) = self.asks.get(&turn.key) else {
                    continue;
                };
                turns.took(&self.shares, ask, now);
                if !self.promises.contains_key(&(ask.due(), turn.key)) {
                    let forecast = self.foresee(&mut pools, turn.key, None, now);
                    all.extend(forecast.map(|forecast| (turn.key, forecast)));
                }
            }
        }
        for (_, key) in &self.later {
            let forecast = self.foresee(&mut pools, *key, None, now);
            all.extend(forecast.map(|forecast| (*key, forecast)));
        }
        all.sort_unstable_by_key(|(key, _)| *key);
        Forecasts { made: now, all }
    }

    /// When one will begin, given those before it; from then on it counts, too.
    fn foresee(
        &self,
        pools: &mut [Pool],
        key: Key,
        promised: Option<Micros>,
        now: Micros,
    ) -> Option<Forecast> {
        let ask = self.asks.get(&key)?;
        let later = ask.not_before.filter(|at| *at > now);
        // What would be over first, where, and for how long.
        let mut best: Option<(Micros, usize, Measure)> = None;
        for measure in ask.wishes().map(Measure::of) {
            let Measure { size, length, .. } = measure;
            for (number, pool) in pools.iter_mut().enumerate() {
                if !pool.kind.serves(&measure.need) || size > pool.all {
                    continue;
                }
                let floor = pool.floors.get(size, length);
                let from = later.map_or(floor, |later| later.max(floor));
                let begin = pool.profile.earliest(from, size, length);
                // What waits of its own will says nothing of others.
                if later.is_none() {
                    let floor = begin.unwrap_or(Micros::MAX);
                    pool.floors.raise(size, length, floor);
                }
                let Some(begin) = begin else { continue };
                let end = begin.saturating_add(length);
                if best.is_none_or(|(sooner, _, other)| end < sooner.saturating_add(other.length)) {
                    best = Some((begin, number, measure));
                }
            }
        }
        let Some((begin, number, Measure { size, length, .. })) = best else {
            return Some(promised.map_or(Forecast::Never, Forecast::At));
        };
        let begin = promised.map_or(begin, |promised| promised.min(begin));
        let end = begin.saturating_add(length);
        pools[number].profile.take(begin, end, size);
        match begin > now.saturating_add(HORIZON) {
            true => Some(Forecast::Beyond(now.saturating_add(HORIZON))),
            false => Some(Forecast::At(begin)),
        }
    }

    /// What there is of each kind, without what runs until it is expected to end and what is reserved.
    fn pools(&self, now: Micros) -> Vec<Pool> {
        let mut all: BTreeMap<Kind, (i64, Vec<(Micros, i64)>)> = BTreeMap::new();
        for (node, cpu_milli, gpus) in self.ground.nodes() {
            all.entry(Kind::Cpu).or_default().0 += cpu_milli as i64;
            for gpu in gpus.iter().filter(|gpu| gpu.mode == Mode::Shared) {
                all.entry(Kind::of(gpu)).or_default().0 += i64::from(UNDIVIDED);
            }
            for taken in self.ground.taken(node) {
                let key = Key(taken.by.0);
                let to = match self.running.get(&key) {
                    Some(running) => running.likely_end(now),
                    None if taken.by.0 & RESERVED != 0 => taken.to,
                    // What is promised is looked at on its own.
                    None => continue,
                };
                let mut take = |kind: Kind, amount: i64| {
                    if let Some((_, changes)) = all.get_mut(&kind) {
                        changes.extend([(taken.from, -amount), (to, amount)]);
                    }
                };
                take(Kind::Cpu, taken.part.cpu_milli as i64);
                for part in &taken.part.gpus {
                    if let Some(gpu) = gpus.get(usize::from(part.gpu)) {
                        take(Kind::of(gpu), i64::from(part.thousandths));
                    }
                }
            }
        }
        let pool = |(kind, (all, changes)): (Kind, (i64, Vec<_>))| {
            let wishes = self.asks.values().flat_map(Ask::wishes).map(Measure::of);
            let wishes = wishes.filter(|wish| kind.serves(&wish.need));
            let (sizes, lengths) = wishes.map(|wish| (wish.size, wish.length)).unzip();
            Pool {
                kind,
                all,
                profile: Profile::new(now, all, changes),
                floors: Floors::new(sizes, lengths, now),
            }
        };
        all.into_iter().map(pool).collect()
    }
}
