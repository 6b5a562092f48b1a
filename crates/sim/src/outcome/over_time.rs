//! Use and queue length over time, in a few hundred equal steps for any duration.

use berth_engine::queue::Micros;

use crate::swf::SECOND;

/// Means of steps of equal length.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OverTime {
    pub start: Micros,
    /// The length of a step.
    pub step: Micros,
    /// From 0 to 1.
    pub cpu: Vec<f64>,
    pub gpu: Vec<f64>,
    /// The number of waiting workloads.
    pub waiting: Vec<f64>,
}

impl OverTime {
    /// Doubles the steps until they are at least this long.
    pub fn in_steps_of(&self, step: Micros) -> OverTime {
        let mut coarse = self.clone();
        while coarse.step < step {
            let halve = |all: &[f64]| -> Vec<f64> {
                let both = |pair: &[f64]| pair.iter().sum::<f64>() / 2.0;
                all.chunks(2).map(both).collect()
            };
            coarse.step *= 2;
            coarse.cpu = halve(&coarse.cpu);
            coarse.gpu = halve(&coarse.gpu);
            coarse.waiting = halve(&coarse.waiting);
        }
        coarse
    }
}

/// The current values.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RightNow {
    pub cpu: f64,
    pub gpu: f64,
    pub waiting: f64,
}

const STEPS_FIRST: Micros = 200;
const STEPS_MAX: usize = 400;

/// Accumulates time-weighted means. When there are too many steps, it doubles their length.
#[derive(Debug)]
pub(crate) struct Recorder {
    means: OverTime,
}

impl Recorder {
    /// The first step length is a fraction of the time in which work arrives.
    pub fn new(start: Micros, last: Micros) -> Recorder {
        let step = ((last - start) / STEPS_FIRST).max(SECOND);
        Recorder {
            means: OverTime {
                start,
                step,
                ..OverTime::default()
            },
        }
    }

    pub fn add(&mut self, from: Micros, to: Micros, now: RightNow) {
        let mut at = from;
        while at < to {
            let place = ((at - self.means.start) / self.means.step) as usize;
            if place >= STEPS_MAX {
                self.means = self.means.in_steps_of(self.means.step + 1);
                continue;
            }
            if self.means.cpu.len() <= place {
                self.means.cpu.resize(place + 1, 0.0);
                self.means.gpu.resize(place + 1, 0.0);
                self.means.waiting.resize(place + 1, 0.0);
            }
            let end = self.means.start + (place as Micros + 1) * self.means.step;
            let until = end.min(to);
            let part = (until - at) as f64 / self.means.step as f64;
            self.means.cpu[place] += part * now.cpu;
            self.means.gpu[place] += part * now.gpu;
            self.means.waiting[place] += part * now.waiting;
            at = until;
        }
    }

    pub fn finish(self) -> OverTime {
        self.means
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_stays_the_same_however_long_the_steps_become() {
        let mut recorder = Recorder::new(0, 200 * SECOND);
        let now = |cpu| RightNow {
            cpu,
            gpu: 0.5,
            waiting: 2.0,
        };
        recorder.add(0, 1_500_000, now(1.0));
        recorder.add(1_500_000, 2_000_000, now(0.0));
        assert_eq!(recorder.means.cpu, [1.0, 0.5]);
        recorder.add(2 * SECOND, 5000 * SECOND, now(0.25));
        let means = recorder.finish();
        assert!(means.cpu.len() <= STEPS_MAX, "{}", means.cpu.len());
        let area = means.cpu.iter().sum::<f64>() * means.step as f64 / SECOND as f64;
        assert!((area - (1.5 + 4998.0 / 4.0)).abs() < 1e-6, "{area}");
        assert_eq!(means.in_steps_of(means.step), means);
    }
}
