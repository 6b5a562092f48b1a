//! How long something will probably run, from what its owner ran before.
//!
//! People ask for more time than they need, and mostly for the same kind of thing as last time: the mean of their last two of the same
//! limit and size says it better than they do; where there are none, of the same limit; else of any. It is only ever used to
//! decide who is looked at first and to say when something may begin: limits, not expectations, keep promises.

use std::collections::HashMap;

use super::Micros;

/// What tells one kind of thing from another, to its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The owner, by the number that the caller knows them by.
    pub person: u64,
    pub limit: Micros,
    /// How large it is, in any unit.
    pub size: u64,
}

type Known = (u64, Option<(Micros, Option<u64>)>);

impl Kind {
    /// The closest first.
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
    /// Something has ended, after so long.
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

    /// How long such a thing is expected to run; its limit where nothing is known.
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
