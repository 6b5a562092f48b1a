//! Forecasts of when waiting workloads will start.
//!
//! The forecast sees the fleet coarsely: an amount of GPUs of each model and of CPU, in which all units are equal,
//! a number of places for tasks together, seats, and quotas. Running workloads end at their expected end. Waiting
//! workloads start in the planner's order, where all supplies suffice for the expected run time. Preemption is not
//! predicted. No decision depends on a forecast: it is shown to people, stored, and scored.

mod supply;

use super::super::Micros;
use super::super::turns::{AllOpen, Turns};
use super::{Key, Planner, Running};

use supply::{Supplies, length};

const MINUTE: Micros = 60_000_000;
/// Forecasts beyond this time are not shown.
const HORIZON: Micros = 60 * 24 * 60 * MINUTE;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forecast {
    At(Micros),
    /// Later than this moment, the horizon of forecasts.
    Beyond(Micros),
    /// It asks for more than the fleet has.
    Never,
}

/// The expected starts of all waiting workloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecasts {
    pub made: Micros,
    /// Sorted by key.
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

impl Running {
    /// The expected end. A workload past its expected end is assumed to run half as long again, but never beyond its
    /// limit.
    fn likely_end(&self, now: Micros) -> Micros {
        let expected = self.began.saturating_add(self.wish().expected);
        let longer = now.saturating_add(((now - self.began) / 2).max(MINUTE));
        let likely = if expected > now { expected } else { longer };
        likely.min(self.until).max(now + 1)
    }
}

impl Planner {
    pub fn forecast(&self, now: Micros) -> Forecasts {
        let mut supplies = Supplies::new(self, now);
        let mut all = Vec::with_capacity(self.asks.len());
        for (due, promise) in &self.promises {
            let forecast = self.foresee(&mut supplies, due.1, Some(promise.at), now);
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
                    let forecast = self.foresee(&mut supplies, turn.key, None, now);
                    all.extend(forecast.map(|forecast| (turn.key, forecast)));
                }
            }
        }
        for (_, key) in &self.later {
            let forecast = self.foresee(&mut supplies, *key, None, now);
            all.extend(forecast.map(|forecast| (*key, forecast)));
        }
        all.sort_unstable_by_key(|(key, _)| *key);
        Forecasts { made: now, all }
    }

    /// Forecasts one workload after those before it, and takes its supply.
    fn foresee(
        &self,
        supplies: &mut Supplies,
        key: Key,
        promised: Option<Micros>,
        now: Micros,
    ) -> Option<Forecast> {
        let ask = self.asks.get(&key)?;
        let from = ask.not_before.map_or(now, |later| later.max(now));
        let horizon = now.saturating_add(HORIZON);
        let mut is_over_budget = false;
        // The variant that ends first: its end, its start, its index, and the kind that serves it.
        let mut best: Option<(Micros, Micros, usize, usize)> = None;
        for (number, wish) in ask.wishes().enumerate() {
            if !supplies.is_within_budgets(self, ask, wish) {
                is_over_budget = true;
                continue;
            }
            for kind in supplies.kinds() {
                if !supplies.serves(kind, &wish.need) {
                    continue;
                }
                let Some(begin) = supplies.earliest(self, ask, wish, kind, from) else {
                    continue;
                };
                let end = begin.saturating_add(length(wish));
                if best.is_none_or(|(sooner, ..)| end < sooner) {
                    best = Some((end, begin, number, kind));
                }
            }
        }
        let Some((_, begin, number, kind)) = best else {
            // Budgets are renewed, but the planner does not know when.
            let otherwise = match is_over_budget {
                true => Forecast::Beyond(horizon),
                false => Forecast::Never,
            };
            return Some(promised.map_or(otherwise, Forecast::At));
        };
        let begin = promised.map_or(begin, |promised| promised.min(begin));
        supplies.take(self, ask, ask.nth(number), kind, begin);
        match begin > horizon {
            true => Some(Forecast::Beyond(horizon)),
            false => Some(Forecast::At(begin)),
        }
    }
}
