//! How long before their start bookings are made.

use jiff::SignedDuration;

/// The reported quantiles, in percent.
pub const PERCENTS: [u8; 5] = [10, 25, 50, 75, 90];

/// The upper ends of the histogram's bars, in hours; the last bar has no end.
pub const BARS_H: [i64; 8] = [1, 4, 12, 24, 3 * 24, 7 * 24, 14 * 24, 28 * 24];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeadTimes {
    pub count: usize,
    /// For each of [`PERCENTS`], the time within which that share was made; empty without bookings.
    pub quantiles: Vec<(u8, SignedDuration)>,
    /// The number of bookings made less than each of [`BARS_H`] before their start, and not in the bar before. The
    /// last bar has the rest.
    pub bars: Vec<(Option<SignedDuration>, usize)>,
}

impl LeadTimes {
    /// Computes the figures from the lead time of each booking. A booking that starts at once has a lead time of
    /// zero.
    pub fn of(mut leads: Vec<SignedDuration>) -> LeadTimes {
        leads.sort_unstable();
        let zero = SignedDuration::ZERO;
        // The nearest rank: a time that really occurred, not a mean of two.
        let rank = |percent: u8| (leads.len() * usize::from(percent)).div_ceil(100).max(1) - 1;
        let quantile = |percent: u8| Some((percent, (*leads.get(rank(percent))?).max(zero)));
        let quantiles = PERCENTS.iter().filter_map(|percent| quantile(*percent));
        let ends = BARS_H
            .iter()
            .map(|hours| SignedDuration::from_hours(*hours));
        let mut before = 0;
        let mut bars: Vec<(Option<SignedDuration>, usize)> = ends
            .map(|end| {
                let below = leads.partition_point(|lead| *lead < end);
                let bar = (Some(end), below - before);
                before = below;
                bar
            })
            .collect();
        bars.push((None, leads.len() - before));
        LeadTimes {
            count: leads.len(),
            quantiles: quantiles.collect(),
            bars,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(hours: &[i64]) -> LeadTimes {
        LeadTimes::of(
            hours
                .iter()
                .map(|h| SignedDuration::from_hours(*h))
                .collect(),
        )
    }

    #[test]
    fn quantiles_are_times_that_occurred() {
        let found = hours(&[100, 0, 5, 30, 2]);
        let of = |percent| {
            let found = found.quantiles.iter().find(|(p, _)| *p == percent);
            found.map(|(_, lead)| lead.as_hours())
        };
        assert_eq!((of(10), of(50), of(90)), (Some(0), Some(5), Some(100)));
        assert_eq!(hours(&[]).quantiles, []);
        assert_eq!(hours(&[7]).quantiles.len(), PERCENTS.len());
        assert_eq!(hours(&[-1]).quantiles[0].1, SignedDuration::ZERO);
    }

    #[test]
    fn every_booking_stands_in_one_bar() {
        let found = hours(&[-1, 0, 1, 3, 4, 30, 5000]);
        let counts: Vec<usize> = found.bars.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 2, 1, 0, 1, 0, 0, 0, 1]);
        assert_eq!(counts.iter().sum::<usize>(), found.count);
        assert_eq!(found.bars.last().map(|(end, _)| *end), Some(None));
    }
}
