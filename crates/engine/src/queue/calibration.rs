//! How good forecasts were: what was said when, against what happened.
//!
//! A forecast that is wrong in both directions is a guess; one that is wrong in one direction can be mended. So both are told:
//! the bias, and how far off the middle one was. And because a person plans with the worst that is likely, so is how often that held.

use super::Micros;

/// A forecast that was made, and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    pub made: Micros,
    /// When it was to begin.
    pub forecast: Micros,
    /// By when it was to have begun in nine of ten cases.
    pub latest: Micros,
    pub began: Micros,
}

impl Told {
    /// How much later it began than was said; less than nothing if it was sooner.
    fn error(&self) -> Micros {
        self.began.saturating_sub(self.forecast)
    }

    /// The time it waited for each second it was to wait; what was to begin at once is as good as told by the minute.
    fn stretch(&self) -> f64 {
        let waited = self.began.saturating_sub(self.made).max(0) as f64;
        let said = self.forecast.saturating_sub(self.made).max(MINUTE) as f64;
        waited / said
    }
}

const MINUTE: Micros = 60_000_000;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    pub count: usize,
    /// The mean of how much later things began than was said.
    pub bias: Micros,
    /// Half of all were no farther off than this, in either direction.
    pub median_error: Micros,
    /// The part that began no later than what was said of nine in ten.
    pub by_latest: f64,
    /// Nine in ten waited no longer than so many times what was said: with this, the next can be told when to expect the worst.
    pub stretch: f64,
}

/// The score of some forecasts; none where there are none.
pub fn score(told: &[Told]) -> Option<Score> {
    let count = told.len();
    if count == 0 {
        return None;
    }
    let mut off: Vec<Micros> = told
        .iter()
        .map(|one| one.error().saturating_abs())
        .collect();
    off.sort_unstable();
    let mut stretches: Vec<f64> = told.iter().map(Told::stretch).collect();
    stretches.sort_by(f64::total_cmp);
    let sum: i128 = told.iter().map(|one| i128::from(one.error())).sum();
    let in_time = told.iter().filter(|one| one.began <= one.latest).count();
    Some(Score {
        count,
        bias: (sum / count as i128) as Micros,
        median_error: off[(count - 1) / 2],
        by_latest: in_time as f64 / count as f64,
        stretch: stretches[(count * 9).div_ceil(10) - 1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecasts_are_scored_by_what_happened() {
        assert_eq!(score(&[]), None);
        let told = |minutes: i64| Told {
            made: 0,
            forecast: 10 * MINUTE,
            latest: 20 * MINUTE,
            began: minutes * MINUTE,
        };
        let all: Vec<Told> = [5, 10, 10, 11, 12, 13, 14, 15, 20, 40].map(told).to_vec();
        let score = score(&all).unwrap();
        assert_eq!(score.count, 10);
        assert_eq!(score.bias, 5 * MINUTE);
        assert_eq!(score.median_error, 3 * MINUTE);
        assert_eq!(score.by_latest, 0.9);
        assert_eq!(score.stretch, 2.0);
        // Who is told by this stretch is told right in nine of ten cases.
        let kept = all
            .iter()
            .filter(|one| one.began as f64 <= 10.0 * MINUTE as f64 * score.stretch);
        assert_eq!(kept.count(), 9);
    }

    #[test]
    fn what_began_at_once_was_waited_for_no_time_at_all() {
        let at_once = Told {
            made: 7,
            forecast: 7,
            latest: 7,
            began: 7,
        };
        let score = score(&[at_once]).unwrap();
        assert_eq!((score.bias, score.median_error, score.stretch), (0, 0, 0.0));
        assert_eq!(score.by_latest, 1.0);
    }
}
