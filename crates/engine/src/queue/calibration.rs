//! Scores forecasts against the starts that followed.
//!
//! A forecast that errs in both directions is a guess; a bias in one direction can be corrected. So the score has
//! both: the bias and the median error. People plan with the likely worst case, so the score also says how often
//! that held.

use super::Micros;

/// A forecast and its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    pub made: Micros,
    /// The forecast start.
    pub forecast: Micros,
    /// The moment by which it should have started in nine of ten cases.
    pub latest: Micros,
    pub began: Micros,
}

impl Told {
    /// How much later it started than forecast; negative if earlier.
    fn error(&self) -> Micros {
        self.began.saturating_sub(self.forecast)
    }

    /// The real wait divided by the forecast wait. A forecast wait counts as one minute at least.
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
    /// The mean of the errors: how much later workloads started than forecast.
    pub bias: Micros,
    /// Half of all errors were not larger than this, in either direction.
    pub median_error: Micros,
    /// The part of all workloads that started by their `latest`.
    pub by_latest: f64,
    /// Nine in ten waited no longer than this many times the forecast wait. The next forecast uses it for its
    /// `latest`.
    pub stretch: f64,
}

/// The score of some forecasts; `None` without any.
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
        // With this stretch, nine of ten forecasts hold.
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
