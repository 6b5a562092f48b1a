//! How long a workload will probably run, from earlier runs of its owner.
//!
//! People ask for more time than they need, and mostly repeat the same kind of workload. So the mean of their last
//! two runs with the same limit and size predicts better than the limit. Without such runs, the runs with the same
//! limit count; without these, any runs. The estimate only decides which workload is examined first, and feeds
//! forecasts. Promises depend on limits, never on it.

use std::collections::HashMap;

use super::Micros;

/// Workloads of the same kind probably run for a similar time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The owner, by the number that the caller gave them.
    pub person: u64,
    pub limit: Micros,
    /// How large it is, in any unit.
    pub size: u64,
}

type Known = (u64, Option<(Micros, Option<u64>)>);

impl Kind {
    /// The keys to look up, the closest first.
    fn like(&self) -> [Known; 3] {
        [
            (self.person, Some((self.limit, Some(self.size)))),
            (self.person, Some((self.limit, None))),
            (self.person, None),
        ]
    }
}

#[derive(Debug, Clone, Default)]
pub struct History {
    last: HashMap<Known, (Micros, Option<Micros>)>,
}

impl History {
    /// Records that a workload has ended after `ran`.
    pub fn learn(&mut self, kind: &Kind, ran: Micros) {
        for like in kind.like() {
            let last = self.last.entry(like);
            last.and_modify(|(newest, before)| {
                *before = Some(*newest);
                *newest = ran;
            })
            .or_insert((ran, None));
        }
    }

    /// The expected run time; the limit if nothing is known.
    pub fn expected(&self, kind: &Kind) -> Micros {
        let known = kind
            .like()
            .into_iter()
            .find_map(|like| self.last.get(&like));
        let expected = known.map_or(kind.limit, |(newest, before)| {
            before.map_or(*newest, |before| newest.midpoint(before))
        });
        expected.clamp(1, kind.limit.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_two_alike_say_it_and_never_more_than_the_limit() {
        let kind = |person, limit, size| Kind {
            person,
            limit,
            size,
        };
        let mut history = History::default();
        assert_eq!(history.expected(&kind(1, 60, 4)), 60);
        history.learn(&kind(1, 60, 4), 10);
        history.learn(&kind(1, 60, 4), 20);
        history.learn(&kind(1, 60, 4), 40);
        assert_eq!(history.expected(&kind(1, 60, 4)), 30);
        history.learn(&kind(1, 60, 8), 2);
        assert_eq!(history.expected(&kind(1, 60, 4)), 30, "another size");
        assert_eq!(history.expected(&kind(1, 60, 2)), 21, "the same limit");
        assert_eq!(
            history.expected(&kind(1, 5, 2)),
            5,
            "any, and not above the limit"
        );
        assert_eq!(history.expected(&kind(2, 60, 4)), 60, "somebody else");
    }
}
