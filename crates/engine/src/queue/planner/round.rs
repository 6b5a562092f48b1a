//! One round over the waiting workloads. The planner examines each at its turn. It starts the workload, or refuses
//! it together with all of its shape that need as much time or more.

use super::super::Micros;
use super::super::lines::ShapeId;
use super::super::quota::Verdict;
use super::super::share::Account;
use super::super::turns::{Closed, Turn, Turns};
use super::{Ask, Claim, Class, Closing, Decision, Key, Order, Planner, Rank, Why};
use crate::fleet::{Need, Placement};

/// The result of examining a waiting workload.
pub(super) enum Look {
    /// It can start with the variant of this index, at this placement.
    Room(usize, Placement),
    NoRoom(Allowed),
    Refused(Why),
}

pub(super) struct Allowed {
    ways: Vec<(usize, Verdict)>,
    /// Whether the refusal holds for every workload of the same shape.
    is_for_all: bool,
    why: Why,
}

/// The refusals so far in the round of one rank.
struct Round<'a> {
    planner: &'a Planner,
    rank: Rank,
    now: Micros,
}

impl Closed for Round<'_> {
    fn from(&self, account: Account, shape: ShapeId) -> Option<Micros> {
        let to_all = self.planner.closed[shape.place()].map(|closing| closing.from);
        let to_them = self.refused_from(account, shape);
        to_all.into_iter().chain(to_them).min()
    }

    fn passed_over(&self, account: Account, shape: ShapeId) -> Option<(Micros, Option<Micros>)> {
        let to_all = self.planner.closed[shape.place()]?;
        Some((to_all.looked_at, self.refused_from(account, shape)))
    }

    fn promises_until(&self) -> Option<Micros> {
        let in_turn = self.planner.policy.order == Order::Shares;
        let is_firm = self.rank.0.0 > Class::Opportunistic;
        let is_open = in_turn && is_firm && self.planner.next_promised.is_none();
        is_open.then_some(self.now)
    }

    fn limit_without_promise(&self, due: (Micros, Key)) -> Option<Micros> {
        let ask = self.planner.asks.get(&due.1)?;
        let limit = Some(ask.wish.limit);
        limit.filter(|_| self.planner.wants_promise(due))
    }
}

impl Round<'_> {
    fn refused_from(&self, account: Account, shape: ShapeId) -> Option<Micros> {
        let to_them = self.planner.closed_to.get(&(account, shape));
        to_them.map(|closing| closing.from)
    }
}

impl Planner {
    pub(super) fn take_turns(&mut self, rank: Rank, now: Micros, done: &mut Vec<Decision>) {
        let Some(lines) = self.lines.get(&rank) else {
            return;
        };
        let is_open = |shape: ShapeId, shortest: Micros| {
            let closing = self.closed[shape.place()];
            closing.is_none_or(|closing| shortest < closing.from)
        };
        let mut turns = Turns::new(self.policy.order, &self.shares, lines, is_open);
        while let Some(lines) = self.lines.get(&rank) {
            let round = Round {
                planner: self,
                rank,
                now,
            };
            let Some(turn) = turns.next(lines, &round) else {
                return;
            };
            let Some(ask) = self.asks.get(&turn.key) else {
                continue;
            };
            turns.took(&self.shares, ask, now);
            self.take_turn(rank, turn, &mut turns, now, done);
        }
    }

    fn take_turn(
        &mut self,
        rank: Rank,
        turn: Turn,
        turns: &mut Turns,
        now: Micros,
        done: &mut Vec<Decision>,
    ) {
        let Some(ask) = self.asks.get(&turn.key) else {
            return;
        };
        let (due, limit) = ((ask.due(), turn.key), ask.wish.limit);
        let is_overdue = self.policy.order == Order::Shares && due.0 <= now;
        if self.promises.contains_key(&due) {
            if self.policy.order == Order::Shares {
                self.improve(due, now, done);
            }
            return;
        }
        if turn.is_passed_over {
            if let Some(why) = self.promise_in_turn(due, now, done) {
                self.close_to(turn, limit, why);
            }
            return;
        }
        match self.look(turn.key, now) {
            Look::Room(wish, placement) => self.start(turn.key, wish, placement, now, done),
            Look::Refused(why) => {
                self.close_to(turn, limit, why);
                if let Why::Quota(Verdict::Lent { account, counted }) = why {
                    let claim = Claim {
                        key: turn.key,
                        within: account,
                        counted,
                    };
                    self.get_back(claim, now, done);
                }
            }
            Look::NoRoom(allowed) => {
                let makes_room = |one: &(usize, Verdict)| {
                    let (wish, verdict) = *one;
                    self.make_room(due, wish, verdict, now, done)
                };
                if allowed.ways.iter().any(makes_room) {
                    return;
                }
                match allowed.is_for_all {
                    true => self.close(rank, turn, &allowed, turns, now),
                    // Quotas may allow another account more.
                    false => self.close_to(turn, limit, allowed.why),
                }
                if is_overdue && self.wants_promise(due) {
                    self.promise_in_turn(due, now, done);
                }
            }
        }
    }

    fn close_to(&mut self, turn: Turn, from: Micros, why: Why) {
        let closed = (turn.account, turn.shape);
        let before = self.closed_to.get(&closed);
        if before.is_none_or(|before| from < before.from) {
            let looked_at = from;
            let closing = Closing {
                from,
                looked_at,
                why,
            };
            self.closed_to.insert(closed, closing);
        }
    }

    /// Refuses all workloads of this shape with the same limit or a longer one. If there is no room even for the
    /// shortest limit, closes the shape.
    fn close(&mut self, rank: Rank, turn: Turn, allowed: &Allowed, turns: &mut Turns, now: Micros) {
        let (Some(ask), Some(lines)) = (self.asks.get(&turn.key), self.lines.get(&rank)) else {
            return;
        };
        let (need, limit) = (ask.wish.need, ask.wish.limit);
        let shortest = lines.shortest_of(turn.shape).unwrap_or(limit);
        let first = allowed.ways.iter().find(|(wish, _)| *wish == 0).copied();
        let is_for_nobody = shortest == limit
            || first.is_some_and(|(wish, verdict)| {
                let has_room = self.room(turn.key, &need, shortest, now).is_ok();
                let cleared = || self.cleared(turn.key, wish, shortest, verdict, now);
                !has_room && cleared().is_none()
            });
        let from = if is_for_nobody { shortest } else { limit };
        self.closed[turn.shape.place()] = Some(Closing {
            from,
            looked_at: limit,
            why: allowed.why,
        });
        if is_for_nobody {
            turns.close();
        }
    }

    /// Whether a workload can start now, and with which of its variants.
    pub(super) fn look(&mut self, key: Key, now: Micros) -> Look {
        let Some(ask) = self.asks.get(&key) else {
            return Look::Refused(Why::NoRoom);
        };
        let (ways, refused) = self.allowed(key, ask, now);
        if let (true, Some(verdict)) = (ways.is_empty(), refused) {
            return Look::Refused(Why::Quota(verdict));
        }
        let is_for_all = self.is_for_all(ask, &ways, now);
        let wishes = ways.iter().map(|(number, _)| {
            let wish = ask.nth(*number);
            (*number, wish.need, wish.limit)
        });
        let wishes: Vec<(usize, Need, Micros)> = wishes.collect();
        let mut why = Why::NoRoom;
        for (number, need, limit) in wishes {
            match self.room(key, &need, limit, now) {
                Ok(placement) => return Look::Room(number, placement),
                Err(lacks) => why = lacks,
            }
        }
        Look::NoRoom(Allowed {
            ways,
            is_for_all,
            why,
        })
    }

    /// Whether a refusal of this workload holds for every account: quotas allow all variants that meet the deadline,
    /// and the account may get lent resources back for each of them.
    fn is_for_all(&self, ask: &Ask, ways: &[(usize, Verdict)], now: Micros) -> bool {
        let in_time = ask.wishes().filter(|wish| ask.is_in_time(wish, now));
        let gets_back = |(_, verdict): &(usize, Verdict)| *verdict == Verdict::Own;
        let gets_all_back = !self.quotas.are_set() || ways.iter().all(gets_back);
        !ways.is_empty() && ways.len() == in_time.count() && gets_all_back
    }

    /// A placement for `need` now, for `limit`.
    fn room(
        &mut self,
        key: Key,
        need: &Need,
        limit: Micros,
        now: Micros,
    ) -> Result<Placement, Why> {
        let ask = self.asks.get(&key).ok_or(Why::NoRoom)?;
        // An opportunistic workload may be stopped before its limit; it starts if it gets the minimum run time.
        let reaches = match ask.class {
            Class::Opportunistic => limit.min(self.policy.run_min),
            Class::Guaranteed | Class::Urgent => limit,
        };
        let end = now.saturating_add(reaches);
        if let Some(pool) = self.seats.lacking(&ask.seats, now, end, None) {
            return Err(Why::NoSeats(pool));
        }
        self.ground.place(need, reaches).ok_or(Why::NoRoom)
    }
}
