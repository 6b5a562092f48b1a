//! The indices of a job array: `0-15:4,20%2` is 0, 4, 8, 12 and 20, no more than two of them at once.
//!
//! An array of a hundred thousand tasks is kept as the few ranges that it was written as.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The largest index Slurm can be set up to take.
pub const INDEX_MAX: u32 = 4_000_000;
/// What `squeue` shows of the indices at most, in bytes.
const SHOWN_MAX: usize = 63;

/// First, first + step, … up to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub first: u32,
    pub last: u32,
    pub step: u32,
}

impl Range {
    fn indices(self) -> impl Iterator<Item = u32> {
        (self.first..=self.last).step_by(self.step as usize)
    }

    fn len(self) -> usize {
        ((self.last - self.first) / self.step) as usize + 1
    }
}

/// At least one index, each once, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    ranges: Vec<Range>,
    /// How many tasks may run at once, where that is limited.
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ArrayError {
    #[error("write indices as in 0-15, 1,3,5-7, 0-15:4 or 0-15%4")]
    Form,
    #[error("no index can be larger than {INDEX_MAX}, and none is named over and over")]
    TooLarge,
}

impl Array {
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// How many tasks there are; never none.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.ranges.iter().map(|range| range.len()).sum()
    }

    pub fn first(&self) -> u32 {
        self.ranges.first().map_or(0, |range| range.first)
    }

    pub fn last(&self) -> u32 {
        self.ranges.last().map_or(0, |range| range.last)
    }

    pub fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|range| range.indices())
    }

    pub fn contains(&self, index: u32) -> bool {
        self.ranges.iter().any(|range| {
            (range.first..=range.last).contains(&index)
                && (index - range.first).is_multiple_of(range.step)
        })
    }

    /// These indices, which must be some: what is left of an array when part of it has started.
    pub fn of(indices: &BTreeSet<u32>, limit: Option<u32>) -> Option<Self> {
        let ranges = compressed(indices.iter().copied());
        (!ranges.is_empty()).then_some(Self { ranges, limit })
    }

    /// As `squeue` writes the tasks that wait: cut short where there are many.
    pub fn shown(&self) -> String {
        let mut text = self.written();
        if text.len() > SHOWN_MAX {
            text.truncate(SHOWN_MAX - 3);
            text.push_str("...");
        }
        text + &self.percent()
    }

    fn written(&self) -> String {
        match self.ranges.as_slice() {
            // Most arrays are one range, and some are long: they are not counted through.
            [range] if range.step == 1 && range.first < range.last => {
                format!("{}-{}", range.first, range.last)
            }
            _ => self.one_progression().unwrap_or_else(|| self.runs()),
        }
    }

    fn percent(&self) -> String {
        let limit = self.limit.map(|limit| format!("%{limit}"));
        limit.unwrap_or_default()
    }

    /// `0-100:10`, if that says it all. Slurm writes few of them out.
    fn one_progression(&self) -> Option<String> {
        let mut indices = self.indices();
        let (first, second) = (indices.next()?, indices.next()?);
        let step = second - first;
        let mut last = second;
        for index in indices {
            if index - last != step {
                return None;
            }
            last = index;
        }
        let is_long = self.len() > 5 && last - first > 10;
        (step > 1 && is_long).then(|| format!("{first}-{last}:{step}"))
    }

    fn runs(&self) -> String {
        let runs = compressed(self.indices()).into_iter().map(|run| {
            if run.first == run.last {
                run.first.to_string()
            } else {
                format!("{}-{}", run.first, run.last)
            }
        });
        runs.collect::<Vec<_>>().join(",")
    }
}

/// Runs of neighbours, out of ascending indices.
fn compressed(indices: impl Iterator<Item = u32>) -> Vec<Range> {
    let mut runs: Vec<Range> = Vec::new();
    for index in indices {
        match runs.last_mut() {
            Some(run) if run.last + 1 == index => run.last = index,
            _ => runs.push(Range {
                first: index,
                last: index,
                step: 1,
            }),
        }
    }
    runs
}

/// Every index in full.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.written(), self.percent())
    }
}

impl FromStr for Array {
    type Err = ArrayError;

    fn from_str(text: &str) -> Result<Self, ArrayError> {
        let (indices, limit) = match text.split_once('%') {
            Some((indices, limit)) => (indices, Some(number(limit)?)),
            None => (text, None),
        };
        let indices = match indices.strip_prefix('[') {
            Some(inside) => inside.strip_suffix(']').ok_or(ArrayError::Form)?,
            None => indices,
        };
        let mut ranges = indices
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(range)
            .collect::<Result<Vec<_>, _>>()?;
        ranges.sort_by_key(|range| range.first);
        if ranges.is_empty() {
            return Err(ArrayError::Form);
        }
        // Ranges that overlap would name a task twice.
        if ranges.windows(2).any(|pair| pair[0].last >= pair[1].first) {
            // So many can only be the same ones over and over.
            if ranges.iter().map(|range| range.len()).sum::<usize>() > 2 * INDEX_MAX as usize {
                return Err(ArrayError::TooLarge);
            }
            let mut each: Vec<u32> = ranges.iter().flat_map(|range| range.indices()).collect();
            each.sort_unstable();
            each.dedup();
            ranges = compressed(each.into_iter());
        }
        Ok(Self {
            ranges,
            // Slurm takes none at once for no limit.
            limit: limit.filter(|limit| *limit > 0),
        })
    }
}

fn number(text: &str) -> Result<u32, ArrayError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ArrayError::Form);
    }
    text.parse().map_err(|_| ArrayError::TooLarge)
}

fn range(text: &str) -> Result<Range, ArrayError> {
    let Some((first, rest)) = text.split_once('-') else {
        return bounded(number(text)?, number(text)?, 1);
    };
    let (last, step) = rest.split_once(':').unwrap_or((rest, "1"));
    bounded(number(first)?, number(last)?, number(step)?)
}

fn bounded(first: u32, last: u32, step: u32) -> Result<Range, ArrayError> {
    if last > INDEX_MAX {
        return Err(ArrayError::TooLarge);
    }
    if first > last || step == 0 {
        return Err(ArrayError::Form);
    }
    Ok(Range {
        first,
        // The last that is reached, so that ranges can be compared by their ends.
        last: last - (last - first) % step,
        step,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Array {
        text.parse().unwrap()
    }

    #[test]
    fn indices_are_written_as_in_slurm() {
        for (text, wanted) in [
            ("1-10", "1-10"),
            ("0-15:4", "0,4,8,12"),
            ("1,3,5-7", "1,3,5-7"),
            ("1,2%1", "1-2%1"),
            ("1-10%0", "1-10"),
            ("[1-3]%2", "1-3%2"),
            ("1, 3", "1,3"),
            ("1-3,2-5", "1-5"),
            ("1,1,2", "1-2"),
            ("01-03", "1-3"),
            ("1-2:5", "1"),
            ("1-5:2,2", "1-3,5"),
            ("1-11:2", "1,3,5,7,9,11"),
            ("1-13:2", "1-13:2"),
            ("0-20:4", "0-20:4"),
            ("5,1", "1,5"),
        ] {
            assert_eq!(read(text).to_string(), wanted, "{text}");
        }
    }

    #[test]
    fn what_names_no_index_is_refused() {
        for text in [
            "",
            "a",
            "1-",
            "-5",
            "10-1",
            "1-10:0",
            "1-10:",
            "1:2",
            "1-2-3",
            "%2",
            "[1-3",
            "1-5000000",
            "1-3%x",
            "99999999999",
            "0-4000000,0-4000000,0-4000000",
        ] {
            assert!(text.parse::<Array>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_large_array_stays_small() {
        let array = read("0-1000000:2%50");
        assert_eq!(array.ranges().len(), 1);
        assert_eq!(array.len(), 500_001);
        assert!(array.contains(999_998) && !array.contains(999_999));
        assert_eq!((array.first(), array.last()), (0, 1_000_000));
        assert_eq!(array.shown(), "0-1000000:2%50");
    }

    #[test]
    fn what_is_left_of_an_array_is_shown_short() {
        assert_eq!(read("1-3,10-12%2").shown(), "1-3,10-12%2");
        assert_eq!(read("0-100:10").shown(), "0-100:10");
        let many: Vec<_> = (0..60).map(|n| (n * n).to_string()).collect();
        let shown = read(&many.join(",")).shown();
        assert!(shown.len() == 63 && shown.ends_with("..."), "{shown}");
        let left = BTreeSet::from([3, 4, 5, 9]);
        assert_eq!(Array::of(&left, None).unwrap().to_string(), "3-5,9");
        assert_eq!(Array::of(&BTreeSet::new(), None), None);
    }
}
