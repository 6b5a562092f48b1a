//! A naive model of bookings: it computes a site's correct answer the slow way, from first principles.
//!
//! It checks every quarter of an hour separately and every claim by name. It shares no code with the product, so that
//! it does not share the product's mistakes. Times are minutes since an arbitrary moment.

use std::collections::{BTreeMap, BTreeSet};

const QUARTER: i64 = 15;

/// A claim on a resource.
#[derive(Debug, Clone)]
pub struct Standing {
    pub resource: &'static str,
    pub from: i64,
    pub to: i64,
    /// The claimed amount; `None` means the whole resource.
    pub amount: Option<u64>,
    /// Whether the claim gives way to every booking.
    pub yields: bool,
}

/// A site's rules for the bookings of its members.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Minutes after midnight, on the site's clock.
    pub open: Option<(i64, i64)>,
    pub length_max: Option<i64>,
    pub notice: Option<i64>,
    pub bookings_max: Option<usize>,
    pub approval: bool,
    pub buffer_after: i64,
}

#[derive(Debug, Clone, Default)]
pub struct Site {
    /// Each resource with its parent resource.
    pub parents: BTreeMap<&'static str, Option<&'static str>>,
    pub capacity: BTreeMap<&'static str, u64>,
    pub standing: Vec<Standing>,
    /// Times for which members cannot book anything.
    pub closed: Vec<(i64, i64)>,
    pub out_of_service: BTreeSet<&'static str>,
    pub rules: Rules,
    pub now: i64,
}

/// A requested booking, or the result of a requested change.
#[derive(Debug, Clone)]
pub struct Asked {
    pub resource: &'static str,
    pub from: i64,
    pub to: i64,
    pub amount: Option<u64>,
    /// The time span that the booking's owner does not have yet.
    pub gains: (i64, i64),
    /// How many other bookings the owner has.
    pub others: usize,
    /// Whether the start is new.
    pub moves: bool,
}

/// Why a booking is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    OutOfService,
    Closed,
    Rule,
    Taken,
    /// Somebody must approve it first.
    Approval,
}

impl Site {
    /// All reasons against a booking; empty if it is possible. `minute_of_day` is the site's clock.
    pub fn reasons(&self, asked: &Asked, minute_of_day: impl Fn(i64) -> i64) -> BTreeSet<Reason> {
        let mut reasons = BTreeSet::new();
        if self
            .line(asked.resource)
            .iter()
            .any(|one| self.out_of_service.contains(one))
        {
            reasons.insert(Reason::OutOfService);
        }
        let (from, to) = asked.gains;
        if quarters(from, to).any(|at| self.closed.iter().any(|(a, b)| (*a..*b).contains(&at))) {
            reasons.insert(Reason::Closed);
        }
        if self.breaks_a_rule(asked, minute_of_day) {
            reasons.insert(Reason::Rule);
        }
        let until = asked.to + self.rules.buffer_after;
        if !self.is_free(asked.resource, asked.amount, asked.from, until) {
            reasons.insert(Reason::Taken);
        }
        reasons
    }

    fn breaks_a_rule(&self, asked: &Asked, minute_of_day: impl Fn(i64) -> i64) -> bool {
        let rules = &self.rules;
        let is_open = |at: i64| {
            let minute = minute_of_day(at);
            rules
                .open
                .is_none_or(|(from, to)| from <= minute && minute < to)
        };
        !quarters(asked.from, asked.to).all(is_open)
            || rules
                .length_max
                .is_some_and(|most| asked.to - asked.from > most)
            || rules
                .notice
                .is_some_and(|least| asked.moves && asked.from - self.now < least)
            || rules
                .bookings_max
                .is_some_and(|most| asked.others + 1 > most)
    }

    /// Whether no firm claim blocks this amount of a resource, at any quarter of the time.
    pub fn is_free(&self, resource: &str, amount: Option<u64>, from: i64, to: i64) -> bool {
        quarters(from, to).all(|at| self.is_free_at(resource, amount, at))
    }

    fn is_free_at(&self, resource: &str, amount: Option<u64>, at: i64) -> bool {
        let now = self
            .standing
            .iter()
            .filter(|one| one.from <= at && at < one.to && !one.yields);
        let mut used = 0;
        for one in now {
            let is_same = one.resource == resource;
            let meets = is_same
                || self.line(resource).contains(one.resource)
                || self.line(one.resource).contains(resource);
            match (meets, is_same, one.amount, amount) {
                (false, ..) => {}
                (true, true, Some(part), Some(_)) => used += part,
                (true, ..) => return false,
            }
        }
        let capacity = self.capacity.get(resource).copied().unwrap_or(u64::MAX);
        amount.is_none_or(|amount| used + amount <= capacity)
    }

    /// A resource and all its ancestors.
    fn line<'a>(&'a self, resource: &'a str) -> BTreeSet<&'a str> {
        let mut line = BTreeSet::new();
        let mut next = Some(resource);
        while let Some(one) = next {
            line.insert(one);
            next = self.parents.get(one).copied().flatten();
        }
        line
    }
}

fn quarters(from: i64, to: i64) -> impl Iterator<Item = i64> {
    (from..to).step_by(QUARTER as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        Site {
            parents: [
                ("rack", None),
                ("node", Some("rack")),
                ("gpu", Some("node")),
            ]
            .into(),
            ..Site::default()
        }
    }

    fn asked(resource: &'static str) -> Asked {
        Asked {
            resource,
            from: 600,
            to: 720,
            amount: None,
            gains: (600, 720),
            others: 0,
            moves: true,
        }
    }

    fn on(resource: &'static str) -> Standing {
        Standing {
            resource,
            from: 700,
            to: 800,
            amount: None,
            yields: false,
        }
    }

    #[test]
    fn what_is_above_and_below_is_in_the_way_and_what_yields_is_not() {
        let clock = |at: i64| at;
        for (resource, yields, reasons) in [
            ("rack", false, 1),
            ("gpu", false, 1),
            ("node", false, 1),
            ("node", true, 0),
        ] {
            let mut site = site();
            site.standing.push(Standing {
                yields,
                ..on(resource)
            });
            assert_eq!(
                site.reasons(&asked("node"), clock).len(),
                reasons,
                "{resource}"
            );
        }
    }

    #[test]
    fn a_buffer_needs_room_and_rules_are_about_all_of_the_time() {
        let clock = |at: i64| at;
        let mut site = site();
        site.standing.push(Standing {
            from: 735,
            ..on("node")
        });
        assert!(site.reasons(&asked("node"), clock).is_empty());
        site.rules.buffer_after = 30;
        assert_eq!(site.reasons(&asked("node"), clock), [Reason::Taken].into());
        site.rules.open = Some((0, 700));
        assert!(site.reasons(&asked("node"), clock).contains(&Reason::Rule));
    }
}
