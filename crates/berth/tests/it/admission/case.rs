//! The cells of the matrix, and what the naive judge says of each.

use std::collections::BTreeSet;

use berth_testkit::naive::{Asked, Reason, Rules, Site, Standing};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// A way to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Named,
    Any,
    Series,
    Waitlist,
    HoldAndTake,
    ChangeOfTime,
    ChangeOfResources,
    Extend,
    HandOver,
    Replacement,
    Maintenance,
}

impl Way {
    pub const ALL: [Way; 11] = [
        Way::Named,
        Way::Any,
        Way::Series,
        Way::Waitlist,
        Way::HoldAndTake,
        Way::ChangeOfTime,
        Way::ChangeOfResources,
        Way::Extend,
        Way::HandOver,
        Way::Replacement,
        Way::Maintenance,
    ];
}

/// Something that a booking may meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    Blackout,
    OpeningHours,
    Length,
    Notice,
    LimitPerPerson,
    Approval,
    OutOfService,
    YieldingJob,
    Buffer,
    Amount,
    ParentBooked,
    ChildBooked,
    DaylightSaving,
}

impl Condition {
    pub const ALL: [Condition; 13] = [
        Condition::Blackout,
        Condition::OpeningHours,
        Condition::Length,
        Condition::Notice,
        Condition::LimitPerPerson,
        Condition::Approval,
        Condition::OutOfService,
        Condition::YieldingJob,
        Condition::Buffer,
        Condition::Amount,
        Condition::ParentBooked,
        Condition::ChildBooked,
        Condition::DaylightSaving,
    ];
}

#[derive(Debug, Clone)]
pub struct Case {
    pub way: Way,
    pub conditions: Vec<Condition>,
}

/// When the booking is wanted, in minutes since some moment, on two clocks.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub now: i64,
    pub from: i64,
    pub to: i64,
    /// The minute of the day at `from`, on the site's clock.
    pub from_of_day: i64,
    /// Minutes that the clocks jump forward within the span, and when.
    pub jump: Option<(i64, i64)>,
}

impl Times {
    fn minute_of_day(self, at: i64) -> i64 {
        let jumped = self
            .jump
            .filter(|(when, _)| *when <= at)
            .map_or(0, |(_, by)| by);
        (self.from_of_day + at - self.from + jumped).rem_euclid(24 * 60)
    }
}

/// What a cell comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It has what it asked for.
    Confirmed,
    /// It has it if somebody approves.
    Pending,
    /// Refused, for any one of these reasons.
    Refused(BTreeSet<Reason>),
}

impl Case {
    /// All pairs, and some triples.
    pub fn all(triples: usize, seed: u64) -> Vec<Case> {
        let mut cases = Vec::new();
        for way in Way::ALL {
            for condition in Condition::ALL {
                cases.push(Case {
                    way,
                    conditions: vec![condition],
                });
            }
        }
        let pairs = cases.len();
        let mut random = StdRng::seed_from_u64(seed);
        while cases.len() < pairs + triples {
            let way = *Way::ALL.choose(&mut random).expect("some way");
            let first = random.random_range(0..Condition::ALL.len());
            let second = random.random_range(0..Condition::ALL.len());
            let conditions = vec![Condition::ALL[first], Condition::ALL[second]];
            if first < second && can_stand_together(&conditions) {
                cases.push(Case { way, conditions });
            }
        }
        cases
    }

    pub fn has(&self, condition: Condition) -> bool {
        self.conditions.contains(&condition)
    }

    /// How much is asked for, where seats are.
    pub fn amount(&self) -> Option<u64> {
        self.has(Condition::Amount).then_some(2)
    }

    /// What a booking of `resource` meets.
    fn site(&self, times: Times, resource: &'static str) -> Site {
        let (from, to) = (times.from, times.to);
        let mut site = Site {
            parents: [
                ("rack-a", None),
                ("a", Some("rack-a")),
                ("a.gpu", Some("a")),
                ("rack-b", None),
                ("b", Some("rack-b")),
                ("b.gpu", Some("b")),
            ]
            .into(),
            now: times.now,
            ..Site::default()
        };
        let (rack, gpu) = if resource == "a" {
            ("rack-a", "a.gpu")
        } else {
            ("rack-b", "b.gpu")
        };
        let mut stands = |resource, from, to, amount, yields| {
            site.standing.push(Standing {
                resource,
                from,
                to,
                amount,
                yields,
            });
        };
        // The start is free by then: the booking that was in the way is cancelled.
        let start = if self.way == Way::Waitlist {
            from + 30
        } else {
            from
        };
        for condition in &self.conditions {
            match condition {
                Condition::Amount => stands(resource, start, to, Some(3), false),
                Condition::ParentBooked => stands(rack, start, to, None, false),
                Condition::ChildBooked => stands(gpu, start, to, None, false),
                Condition::YieldingJob => stands(gpu, times.now, to + 60, None, true),
                Condition::Buffer => stands(resource, to + 30, to + 90, None, false),
                _ => {}
            }
        }
        if self.has(Condition::Amount) {
            site.capacity.insert(resource, 4);
        }
        if self.has(Condition::OutOfService) {
            site.out_of_service.insert(resource);
        }
        if self.has(Condition::Blackout) {
            site.closed.push((from + 30, to));
        }
        let when = |condition| self.has(condition).then_some(());
        site.rules = Rules {
            open: when(Condition::OpeningHours).map(|()| (8 * 60, 11 * 60)),
            length_max: when(Condition::Length).map(|()| 60),
            notice: when(Condition::Notice).map(|()| 500 * 24 * 60),
            bookings_max: when(Condition::LimitPerPerson).map(|()| 1),
            approval: self.has(Condition::Approval),
            buffer_after: if self.has(Condition::Buffer) { 60 } else { 0 },
        };
        site
    }

    /// What the naive judge says.
    pub fn judge(&self, times: Times) -> Outcome {
        let (from, to) = (times.from, times.to);
        let others = usize::from(self.has(Condition::LimitPerPerson));
        let asked = Asked {
            resource: "a",
            from,
            to,
            amount: self.amount(),
            gains: (from, to),
            others,
            moves: true,
        };
        let site = self.site(times, "a");
        let reasons =
            |site: &Site, asked: &Asked| site.reasons(asked, |at| times.minute_of_day(at));
        let outcome = |reasons: BTreeSet<Reason>| match (reasons.is_empty(), site.rules.approval) {
            (true, false) => Outcome::Confirmed,
            (true, true) => Outcome::Pending,
            (false, _) => Outcome::Refused(reasons),
        };
        // A confirmed booking does not wait for approval: a change that needs it is refused.
        let changed = |asked: Asked| {
            let mut reasons = reasons(&site, &asked);
            reasons.extend(site.rules.approval.then_some(Reason::Approval));
            outcome(reasons)
        };
        match self.way {
            Way::Named | Way::Any | Way::Series | Way::Waitlist | Way::HoldAndTake => {
                outcome(reasons(&site, &asked))
            }
            Way::ChangeOfTime => changed(asked),
            // The start stays, so no notice is asked.
            Way::ChangeOfResources => changed(Asked {
                moves: false,
                ..asked
            }),
            Way::Extend => changed(Asked {
                from: from - 60,
                moves: false,
                ..asked
            }),
            // It stands already. Only what is about its new owner is asked.
            Way::HandOver => match self.has(Condition::LimitPerPerson) {
                true => Outcome::Refused([Reason::Rule].into()),
                false => Outcome::Confirmed,
            },
            // It stands already, for a time that was accepted: it needs room, and a resource in service.
            Way::Replacement => {
                let mut there = self.site(times, "b");
                there.rules = Rules::default();
                there.closed.clear();
                let asked = Asked {
                    resource: "b",
                    others: 0,
                    ..asked
                };
                match reasons(&there, &asked) {
                    none if none.is_empty() => Outcome::Confirmed,
                    reasons => Outcome::Refused(reasons),
                }
            }
            // No rule of bookings is about it. What stands in its way must be decided about.
            Way::Maintenance => match site.is_free("a", None, from, to) {
                true => Outcome::Confirmed,
                false => Outcome::Refused([Reason::Taken].into()),
            },
        }
    }
}

/// Seats have nothing below them, so nothing below them is booked or runs.
fn can_stand_together(conditions: &[Condition]) -> bool {
    let has = |condition| conditions.contains(&condition);
    let below = [Condition::ChildBooked, Condition::YieldingJob];
    let is_seat_with_parts = has(Condition::Amount) && below.into_iter().any(has);
    // A job does not begin in a booked rack or on a booked GPU, or where nothing is in service.
    let taken = [
        Condition::ParentBooked,
        Condition::ChildBooked,
        Condition::OutOfService,
    ];
    let is_job_without_place = has(Condition::YieldingJob) && taken.into_iter().any(has);
    let is_both_booked = has(Condition::ParentBooked) && has(Condition::ChildBooked);
    let is_buffer_in_booked = has(Condition::Buffer)
        && [
            Condition::ParentBooked,
            Condition::ChildBooked,
            Condition::Amount,
        ]
        .into_iter()
        .any(has);
    let is_seat_in_booked = has(Condition::Amount) && has(Condition::ParentBooked);
    !(is_seat_with_parts
        || is_job_without_place
        || is_both_booked
        || is_buffer_in_booked
        || is_seat_in_booked)
}
