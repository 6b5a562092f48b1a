//! Looks for everything that must not be, in what is stored and in what was promised.
//!
//! It runs when the server is gone. Nothing is asked of the database but its rows, and nothing of the clients but what
//! they were told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use berth_engine::sweep::{Broken, broken};
use berth_engine::tree::Tree;
use berth_model::reservation::State;
use berth_model::{Amount, Claim, ClaimId, Holder, ReservationId, ResourceId, Standing};

use super::by_definition;
use super::known::Known;
use super::ledger::{Account, Ledger, Told};
use super::stored::{Booking, Event, Step, Stored};

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub sin: Sin,
    pub what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sin {
    /// Two hold what only one can have, or together more than there is.
    Overlap,
    /// A booking without its claims, or claims without their booking.
    HalfMade,
    /// A life that is not told from its beginning to its end, or goes where no arrow leads.
    BrokenHistory,
    /// Events or audit entries that do not count on from one another.
    Gap,
    /// Something was acknowledged and is not there.
    Lost,
    /// Something is there that nobody was told of.
    Unasked,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.sin, self.what)
    }
}

/// All that is wrong.
pub fn faults(stored: &Stored, ledger: &Ledger) -> Vec<Fault> {
    let mut faults = Faults::default();
    faults.rule(stored);
    faults.wholeness(stored);
    for (id, booking) in &stored.bookings {
        faults.history(*id, booking);
        faults.trail(*id, booking);
    }
    faults.numbers(stored);
    faults.promises(stored, ledger);
    faults.series(stored, ledger);
    faults.keys(stored, ledger);
    let moves: Vec<_> = stored.moves.iter().map(|m| format!("{m:?}")).collect();
    let told: Vec<_> = ledger
        .moves
        .acknowledged
        .iter()
        .map(|m| format!("{m:?}"))
        .collect();
    faults.sayings("moved", &moves, &told, ledger.moves.unsure);
    let statuses: Vec<_> = stored.statuses.iter().map(|s| format!("{s:?}")).collect();
    let told: Vec<_> = ledger
        .statuses
        .acknowledged
        .iter()
        .map(|s| format!("{s:?}"))
        .collect();
    faults.sayings("set to", &statuses, &told, ledger.statuses.unsure);
    let decisions: Vec<_> = stored.decisions.iter().map(|d| format!("{d:?}")).collect();
    let told: Vec<_> = ledger
        .decisions
        .acknowledged
        .iter()
        .map(|d| format!("{d:?}"))
        .collect();
    faults.sayings("decided", &decisions, &told, ledger.decisions.unsure);
    faults.places(stored);
    faults.0
}

#[derive(Debug, Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn find(&mut self, sin: Sin, what: impl Into<String>) {
        let what = what.into();
        self.0.push(Fault { sin, what });
    }

    fn unless(&mut self, right: bool, sin: Sin, what: impl FnOnce() -> String) {
        if !right {
            self.find(sin, what());
        }
    }

    /// The claim rule: of what holds along the tree as it is; of all that ever held on each resource by itself, since
    /// the tree was another then.
    fn rule(&mut self, stored: &Stored) {
        let capacity = |id: ResourceId| stored.resources.get(&id).and_then(|place| place.capacity);
        let parents = stored
            .resources
            .iter()
            .map(|(id, place)| (*id, place.parent));
        let alone = stored.resources.keys().map(|id| (*id, None));
        let holding: Vec<&Claim> = of_standing(stored, &[Standing::Holding]);
        let ever: Vec<&Claim> = of_standing(stored, &[Standing::Holding, Standing::Past]);
        for (tree, claims) in [(Tree::new(parents), holding), (Tree::new(alone), ever)] {
            match tree {
                Ok(tree) => self.kept(&tree, &capacity, &claims),
                Err(error) => self.find(Sin::Overlap, format!("there is no tree: {error}")),
            }
        }
    }

    fn kept(
        &mut self,
        tree: &Tree,
        capacity: &impl Fn(ResourceId) -> Option<Amount>,
        claims: &[&Claim],
    ) {
        let found = broken(tree, capacity, claims.iter().copied());
        for broken in &found {
            let of: Vec<&&Claim> = match broken {
                Broken::Pair(a, b) => claims.iter().filter(|c| c.id == *a || c.id == *b).collect(),
                _ => Vec::new(),
            };
            self.find(Sin::Overlap, format!("{broken:?} {of:?}"));
        }
        if let Some(by_hand) = by_definition::breaches(tree, capacity, claims) {
            let agree = by_hand.is_empty() == found.is_empty();
            self.unless(agree, Sin::Overlap, || {
                format!("the sweep found {found:?}, the definition {by_hand:?}")
            });
        }
    }

    /// Every booking has its claims, and every claim that holds has its booking.
    fn wholeness(&mut self, stored: &Stored) {
        let claims: BTreeMap<ClaimId, &Claim> = stored
            .claims
            .iter()
            .map(|claim| (claim.id, claim))
            .collect();
        let mut expected = BTreeSet::new();
        for (id, booking) in &stored.bookings {
            let now = &booking.now;
            let distinct = now.content.items.len() == booking.items.len();
            // What only ever waited has nothing; everything else has something.
            let never_held = booking.history.iter().all(|(_, to, _)| !to.holds());
            let right = distinct && booking.items.is_empty() == never_held;
            self.unless(right, Sin::HalfMade, || {
                format!("{id} names {:?}", booking.items)
            });
            for item in &booking.items {
                let right = claims.get(&item.claim).is_some_and(|claim| {
                    claim.holder == Holder::Reservation(*id)
                        && claim.resource == item.resource
                        && claim.take == item.take
                        && claim.span == now.content.span
                        && (claim.standing == Standing::Holding) == now.state.holds()
                });
                self.unless(right, Sin::HalfMade, || {
                    let claim = claims.get(&item.claim);
                    format!(
                        "{id} ({} {:?}) has {item:?}, whose claim is {claim:?}",
                        now.state, now.content.span
                    )
                });
                if now.state.holds() {
                    expected.insert(item.claim);
                }
            }
        }
        for claim in of_standing(stored, &[Standing::Holding]) {
            let known = expected.contains(&claim.id);
            self.unless(known, Sin::HalfMade, || {
                format!("nobody's booking holds {claim:?}")
            });
        }
    }

    /// One line for each version, from its making on, each where the last one led, along the drawn arrows.
    fn history(&mut self, id: ReservationId, booking: &Booking) {
        let lines = &booking.history;
        let mut wrong = Vec::new();
        if lines.len() as u64 != booking.now.version {
            wrong.push(format!(
                "{} lines for version {}",
                lines.len(),
                booking.now.version
            ));
        }
        let mut before: Option<State> = None;
        for (from, to, _) in lines {
            let begins = matches!(
                to,
                State::Waiting | State::Held | State::Confirmed | State::PendingApproval
            );
            let born = from.is_none() && begins;
            let legal = match from {
                None => born,
                Some(from) => {
                    let arrow = |(a, _, b): &(State, &str, State)| a == from && b == to;
                    let changed = from == to && from.can_change().is_ok();
                    changed || State::ARROWS.iter().any(arrow)
                }
            };
            if *from != before || !legal {
                wrong.push(format!("after {before:?} from {from:?} to {to:?}"));
            }
            before = Some(*to);
        }
        let now = &booking.now;
        let ends_here = lines
            .last()
            .is_some_and(|(_, to, span)| *to == now.state && *span == now.content.span);
        if !ends_here {
            wrong.push(format!("it ends with {:?}, not with {now:?}", lines.last()));
        }
        self.unless(wrong.is_empty(), Sin::BrokenHistory, || {
            format!("{id}: {wrong:?}")
        });
    }

    /// The audit log tells the same life: version after version, each beginning where the last one ended.
    fn trail(&mut self, id: ReservationId, booking: &Booking) {
        let mut wrong = Vec::new();
        let mut before: Option<&Known> = None;
        for (version, step) in (1..).zip(&booking.trail) {
            let makes = step.action == "reservation.create";
            let follows = step.before.as_ref() == before && step.after.version == version;
            if makes != (version == 1) || !follows || is_too_early(step) {
                wrong.push(format!("as version {version}: {step:?}"));
            }
            before = Some(&step.after);
        }
        if before != Some(&booking.now) {
            wrong.push(format!(
                "it ends with {before:?}, not with {:?}",
                booking.now
            ));
        }
        self.unless(wrong.is_empty(), Sin::BrokenHistory, || {
            format!("the audit log of {id}: {wrong:?}")
        });
    }

    /// Events count from one to the head, and each version of each booking has one of its own.
    fn numbers(&mut self, stored: &Stored) {
        let mut expected = 1;
        for event in &stored.events {
            if event.number != Some(expected) {
                self.find(
                    Sin::Gap,
                    format!("where event {expected} should be: {event:?}"),
                );
                expected = event.number.unwrap_or(expected);
            }
            expected += 1;
        }
        let (last, head) = (expected - 1, stored.events_head);
        self.unless(last == head, Sin::Gap, || {
            format!("events end at {last}, the head is {head}")
        });
        let mut told: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        // That a resource failed under a booking, or that its time is near, is told of it and changes nothing about it.
        let telling = ["reservation.troubled", "reservation.reminder"];
        let changing = |event: &&Event| !telling.contains(&event.kind.as_str());
        for event in stored.events.iter().filter(changing) {
            let (created, all) = told.entry(event.subject.as_str()).or_default();
            *created += u64::from(event.kind == "reservation.created");
            *all += 1;
        }
        for (id, booking) in &stored.bookings {
            let (created, all) = told
                .get(id.to_string().as_str())
                .copied()
                .unwrap_or_default();
            // What waited is told of as made when it becomes a booking, if it does.
            let waited = booking
                .history
                .first()
                .is_some_and(|(_, to, _)| *to == State::Waiting);
            let made = if waited { created <= 1 } else { created == 1 };
            let right = made && all == booking.now.version;
            self.unless(right, Sin::Gap, || {
                let version = booking.now.version;
                format!("{id} at version {version} has {all} events, {created} of its making")
            });
        }
    }

    /// What was acknowledged stands, and nothing else does.
    fn promises(&mut self, stored: &Stored, ledger: &Ledger) {
        for (id, account) in &ledger.bookings {
            match stored.bookings.get(id) {
                Some(booking) => self.account(*id, account, booking),
                None => self.find(Sin::Lost, format!("{id} is gone: {account:?}")),
            }
        }
        for (id, booking) in &stored.bookings {
            let known = ledger.bookings.contains_key(id) || was_only_held(booking);
            self.unless(known, Sin::Unasked, || {
                format!("nobody was told of {id}: {booking:?}")
            });
        }
    }

    fn account(&mut self, id: ReservationId, account: &Account, booking: &Booking) {
        let (last, now) = (&account.last, &booking.now);
        self.unless(last == now || last.can_become(now), Sin::Lost, || {
            format!("the last that was seen is {last:?}, and what stands is {now:?}")
        });
        for told in &account.told {
            let kept = booking.trail.iter().any(|step| tells(step, told));
            self.unless(kept, Sin::Lost, || {
                format!("{id} was acknowledged as {told:?}")
            });
        }
        if let Some(items) = &account.waits_for {
            let gets = |step: &Step| {
                step.before
                    .as_ref()
                    .is_some_and(|it| it.state == State::Waiting)
            };
            for step in booking.trail.iter().filter(|step| gets(step)) {
                let right = !step.after.state.holds() || step.after.content.items == *items;
                self.unless(right, Sin::Lost, || {
                    format!("{id} waited for {items:?} and got {:?}", step.after)
                });
            }
        }
        let own = |step: &&Step| step.by_a_person && !step.is_decision();
        let made = booking.trail.iter().filter(own).count() as u64;
        let told = account.told.len() as u64;
        self.unless(made >= told, Sin::Lost, || {
            format!("{id} was changed {made} times, and {told} were acknowledged")
        });
        self.unless(made <= told + account.unsure, Sin::Unasked, || {
            format!("{id} was changed {made} times, and only {told} were acknowledged")
        });
    }

    /// Every series has exactly the instances that it was acknowledged with, whatever became of them, and was told once.
    fn series(&mut self, stored: &Stored, ledger: &Ledger) {
        for (id, account) in &ledger.series {
            let stands = stored.series.get(id);
            self.unless(stands.is_some(), Sin::Lost, || format!("{id} is gone"));
            let right = stands.is_none_or(|stands| *stands == account.instances);
            self.unless(right, Sin::HalfMade, || {
                format!(
                    "{id} was made with {:?}, and has {stands:?}",
                    account.instances
                )
            });
            let subject = id.to_string();
            let told = stored
                .events
                .iter()
                .filter(|event| event.subject == subject);
            let told = told.filter(|event| event.kind == "series.created").count();
            self.unless(told == 1, Sin::Gap, || {
                format!("the making of {id} was told {told} times")
            });
        }
        for (id, instances) in &stored.series {
            self.unless(ledger.series.contains_key(id), Sin::Unasked, || {
                format!("nobody was told of {id}: {instances:?}")
            });
        }
    }

    /// One key, one booking or series.
    fn keys(&mut self, stored: &Stored, ledger: &Ledger) {
        let mut used: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (key, subject) in &stored.keys {
            used.entry(subject.as_str()).or_default().push(key.as_str());
        }
        let bookings = ledger
            .bookings
            .iter()
            .filter_map(|(id, account)| Some((id.to_string(), account.key.as_ref()?)));
        let series = ledger
            .series
            .iter()
            .map(|(id, account)| (id.to_string(), &account.key));
        for (id, key) in bookings.chain(series) {
            let keys = used.remove(id.as_str()).unwrap_or_default();
            self.unless(keys == [key.as_str()], Sin::Lost, || {
                format!("{id} was made with {key}, and stands under {keys:?}")
            });
        }
        for (subject, keys) in used {
            self.find(
                Sin::Unasked,
                format!("{keys:?} stand for {subject}, which nobody was told of"),
            );
        }
    }

    /// Changes to resources: each that was acknowledged is in the log, and no more than may have been lost besides.
    fn sayings(&mut self, verb: &str, logged: &[String], told: &[String], unsure: u64) {
        let mut left: BTreeMap<&str, i64> = BTreeMap::new();
        for said in logged {
            *left.entry(said.as_str()).or_default() += 1;
        }
        for said in told {
            *left.entry(said.as_str()).or_default() -= 1;
        }
        for (said, count) in &left {
            self.unless(*count >= 0, Sin::Lost, || {
                format!(
                    "{} times {verb} {said}, and the log does not have it",
                    -count
                )
            });
        }
        let extra: i64 = left.values().filter(|count| **count > 0).sum();
        self.unless(extra.unsigned_abs() <= unsure, Sin::Unasked, || {
            format!("{extra} times {verb} something, and {unsure} answers were lost")
        });
    }

    /// Every resource is where the log last put it, and as it last called it.
    fn places(&mut self, stored: &Stored) {
        let parents: BTreeMap<_, _> = stored.moves.iter().copied().collect();
        let statuses: BTreeMap<_, _> = stored.statuses.iter().copied().collect();
        for (id, place) in &stored.resources {
            let parent = parents.get(id).copied().unwrap_or(place.parent);
            let status = statuses.get(id).copied().unwrap_or(place.status);
            let right = (parent, status) == (place.parent, place.status);
            self.unless(right, Sin::Lost, || {
                format!("{id} was last put under {parent:?} and {status}, and is {place:?}")
            });
        }
        let (lines, logged) = (stored.status_changes, stored.statuses.len() as u64);
        self.unless(lines == logged, Sin::BrokenHistory, || {
            format!("{lines} lines of status history, {logged} in the audit log")
        });
    }
}

fn of_standing<'a>(stored: &'a Stored, standings: &[Standing]) -> Vec<&'a Claim> {
    let claims = stored.claims.iter();
    claims
        .filter(|claim| standings.contains(&claim.standing))
        .collect()
}

/// Whether this audit entry is the one that was told of.
fn tells(step: &Step, told: &Told) -> bool {
    step.by_a_person
        && step.after.content == told.content
        && told
            .version
            .is_none_or(|version| version == step.after.version)
        && told.state.is_none_or(|state| state == step.after.state)
}

/// A hold of which nobody was told, because the answer was lost or another one of the alternative's parts could not be
/// held, runs out and was never a booking.
fn was_only_held(booking: &Booking) -> bool {
    let mut states = booking.history.iter().map(|(_, to, _)| *to);
    states.next() == Some(State::Held) && states.all(|state| state == State::Cancelled)
}

/// Time touches no booking before its time; what is none yet may become one, or run out.
fn is_too_early(step: &Step) -> bool {
    let was = step.before.as_ref().map(|before| before.state);
    let open = matches!(was, Some(State::Waiting | State::Held));
    !step.by_a_person && !open && step.at < step.after.content.span.start()
}
