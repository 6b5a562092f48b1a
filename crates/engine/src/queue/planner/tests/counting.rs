//! Quotas, budgets and grants: never exceeded, never leaked. Four bugs of another queue are tests here, by their
//! numbers in its tracker.

use super::*;
use crate::queue::quota::{Hours, LocalTime, Timetable, Volume};

const GPUS: Counted = Counted(0);
/// The limit of the site in the long random runs, out of eight GPUs.
const SITE: u64 = 6;
const GPU_HOUR: Volume = HOUR as Volume;

fn limit(limit: u64) -> Option<Allowance> {
    Some(Allowance {
        guaranteed: 0,
        limit: Some(limit),
    })
}

fn gpus(account: Account, count: u16, length: Micros, since: Micros) -> Ask {
    let ask = ask(account, need(1, count), length, since);
    counted(ask, [(GPUS, u64::from(count))])
}

/// Checks that the counters of every account equal the sum of its running and promised workloads.
fn check_counters(queue: &Planner) {
    let mut used: Map<Account, u64> = Map::new();
    let mut committed: Map<Account, Volume> = Map::new();
    let running = queue.running.values();
    let running = running.map(|one| (one.ask.account, one.wish(), one.committed));
    let promised = queue.promises.iter().map(|((_, key), promise)| {
        let ask = &queue.asks[key];
        let wish = ask.nth(promise.wish);
        (ask.account, wish, wish.limit)
    });
    for (account, wish, length) in running.chain(promised) {
        for account in queue.shares.up(account) {
            let amount = wish.amounts.get(GPUS);
            *used.entry(account).or_default() += amount;
            *committed.entry(account).or_default() += Volume::from(amount) * length as Volume;
        }
    }
    for account in queue.shares.all() {
        assert_eq!(
            queue.quotas.used(account, GPUS),
            used.get(&account).copied().unwrap_or(0)
        );
        let (_, known) = queue.quotas.spent(account, GPUS);
        assert_eq!(known, committed.get(&account).copied().unwrap_or(0));
    }
}

#[test]
fn kueue_1450_nothing_is_admitted_over_the_limit_after_a_restart() {
    let site = || {
        let mut queue = planner(Order::Shares, &[node(8)]);
        let project = queue.shares.add_project(1.0);
        queue.quotas.allow(project, GPUS, limit(4));
        queue.quotas.budget(project, GPUS, Some((10 * GPU_HOUR, 0)));
        (queue, project)
    };
    let (mut before, project) = site();
    for key in 0..4 {
        before.submit(Key(key), gpus(project, 2, 2 * HOUR, 0));
    }
    assert_eq!(started(&before.plan(0)), [0, 1]);
    let (mut after, _) = site();
    for (key, one) in before.running() {
        after.resume(
            key,
            one.ask.clone(),
            one.placement.clone(),
            one.began,
            one.until,
        );
    }
    for (key, ask) in before.asks.clone() {
        after.submit(key, ask);
    }
    assert!(after.plan(MINUTE).is_empty());
    after.end(Key(0), HOUR);
    // Of ten GPU-hours, two are spent and four are committed: the next workload may take four at most.
    assert_eq!(started(&after.plan(HOUR)), [2]);
    after.end(Key(1), HOUR);
    assert!(after.plan(HOUR).is_empty());
    let refused = Verdict::OverBudget {
        account: project,
        counted: GPUS,
    };
    assert_eq!(after.why(Key(3)), Some(Why::Quota(refused)));
}

#[test]
fn kueue_14609_what_is_told_to_go_is_counted_until_it_is_gone() {
    let mut queue = planner(Order::Shares, &[node(4)]);
    let project = queue.shares.add_project(1.0);
    queue.quotas.allow(project, GPUS, limit(4));
    queue.submit(Key(1), soft(gpus(project, 4, 9 * HOUR, 0)));
    assert_eq!(started(&queue.plan(0)), [1]);
    queue.reserve(7, 2 * HOUR, 3 * HOUR, &one_gpu(0, 0, 0));
    assert_eq!(stopped(&queue.plan(HOUR)), [(1, 2 * HOUR)]);
    assert_eq!(queue.quotas.used(project, GPUS), 4);
    queue.submit(Key(2), gpus(project, 1, HOUR, HOUR));
    assert!(
        queue.plan(HOUR).is_empty(),
        "neither the room nor the quota is free yet"
    );
    queue.end(Key(1), 90 * MINUTE);
    assert_eq!(queue.quotas.used(project, GPUS), 0);
    assert_eq!(started(&queue.plan(90 * MINUTE)), [2]);
}

#[test]
fn kueue_14811_no_quota_is_held_by_nothing() {
    let mut queue = planner(Order::Shares, &[node(1)]);
    let project = queue.shares.add_project(1.0);
    queue.quotas.allow(project, GPUS, limit(1));
    for round in 0..5 {
        let now = round * 10 * HOUR;
        queue.submit(Key(1), gpus(project, 1, HOUR, now));
        queue.submit(Key(2), gpus(project, 1, HOUR, now));
        assert_eq!(started(&queue.plan(now)), [1]);
        // The other workload becomes overdue and gets a promise, so both count.
        queue.plan(now + 2 * HOUR - 1);
        queue.abandon(Key(1));
        queue.withdraw(Key(1));
        queue.withdraw(Key(2));
        queue.withdraw(Key(2));
        queue.end(Key(1), now + 2 * HOUR);
        assert_eq!(queue.quotas.used(project, GPUS), 0);
        assert_eq!(queue.quotas.spent(project, GPUS), (0, 0));
    }
}

#[test]
fn kueue_804_nothing_is_admitted_over_a_limit_that_was_lowered() {
    let mut queue = planner(Order::Shares, &[node(4)]);
    let project = queue.shares.add_project(1.0);
    queue.quotas.allow(project, GPUS, limit(3));
    for key in 0..5 {
        queue.submit(Key(key), gpus(project, 1, 2 * HOUR, 0));
    }
    assert_eq!(started(&queue.plan(0)).len(), 3);
    queue.quotas.allow(project, GPUS, limit(1));
    for (key, at) in [(0, 1), (1, 2)] {
        queue.end(Key(key), at * MINUTE);
        assert!(queue.plan(at * MINUTE).is_empty(), "one is still held");
    }
    queue.end(Key(2), HOUR);
    assert_eq!(started(&queue.plan(HOUR)).len(), 1);
}

#[test]
fn what_is_lent_is_given_back_before_it_is_held_again() {
    let mut queue = planner(Order::Shares, &[node(8)]);
    let site = queue.shares.site();
    let projects = [queue.shares.add_project(1.0), queue.shares.add_project(1.0)];
    queue.quotas.allow(site, GPUS, limit(4));
    for project in projects {
        let own = Allowance {
            guaranteed: 2,
            limit: None,
        };
        queue.quotas.allow(project, GPUS, Some(own));
    }
    for key in 0..5 {
        queue.submit(Key(key), gpus(projects[0], 1, 9 * HOUR, 0));
    }
    assert_eq!(
        started(&queue.plan(0)).len(),
        4,
        "as much as the site may hold"
    );
    queue.submit(Key(9), gpus(projects[1], 2, HOUR, HOUR));
    let told = stopped(&queue.plan(HOUR));
    assert_eq!(told.len(), 2, "there is room, but no leave");
    assert!(queue.plan(HOUR + 1).is_empty(), "they are told once");
    assert_eq!(queue.quotas.used(site, GPUS), 4);
    queue.end(Key(told[0].0), HOUR + 2);
    assert!(
        queue.plan(HOUR + 2).is_empty(),
        "one is not enough, and nobody borrows it again"
    );
    queue.end(Key(told[1].0), HOUR + 3);
    assert_eq!(started(&queue.plan(HOUR + 3)), [9]);
}

#[test]
fn what_begins_at_night_is_within_the_limits_of_the_morning() {
    let mut queue = planner(Order::Shares, &[node(8)]);
    let project = queue.shares.add_project(1.0);
    let night = Hours {
        weekdays: 0b111_1111,
        from: 20 * 60,
        to: 6 * 60,
    };
    let timetable = Timetable {
        usual: limit(2),
        hours: vec![(night, limit(6))],
    };
    queue.quotas.schedule(project, GPUS, Some(timetable));
    let local = |at: Micros| LocalTime {
        weekday: (at / (24 * HOUR) % 7) as u8,
        minute: (at % (24 * HOUR) / MINUTE) as u16,
    };
    let now = 23 * HOUR;
    assert_eq!(queue.quotas.turn(now, local), Some(30 * HOUR));
    for key in 0..4 {
        queue.submit(Key(key), gpus(project, 2, 8 * HOUR, now));
    }
    assert_eq!(
        started(&queue.plan(now)),
        [0],
        "two are all that may be held in the morning"
    );
    queue.submit(Key(9), gpus(project, 4, 7 * HOUR, now));
    assert_eq!(started(&queue.plan(now)), [9], "this one is over by then");
    queue.end(Key(9), 30 * HOUR);
    assert_eq!(queue.quotas.turn(30 * HOUR, local), Some(44 * HOUR));
    assert!(queue.plan(30 * HOUR).is_empty());
}

#[test]
fn a_grant_makes_urgent_until_it_is_used_up_or_over() {
    let mut queue = planner(Order::Shares, &[node(2)]);
    let projects = [queue.shares.add_project(1.0), queue.shares.add_project(1.0)];
    let person = queue.shares.person(projects[1], 5);
    for key in 0..2 {
        queue.submit(Key(key), gpus(projects[0], 1, 9 * HOUR, 0));
    }
    assert_eq!(queue.plan(0).len(), 2);
    let grant = Grant {
        account: projects[1],
        until: 20 * HOUR,
        counted: GPUS,
        volume: 3 * GPU_HOUR,
    };
    queue.grant(1, grant);
    for key in 2..4 {
        queue.submit(Key(key), gpus(person, 1, 2 * HOUR, HOUR));
    }
    // One workload preempts another. A second one would exceed the grant.
    assert_eq!(stopped(&queue.plan(HOUR)).len(), 1);
    assert_eq!(queue.left_of_grant(1), Some(GPU_HOUR));
    assert!(queue.plan(HOUR + MINUTE).is_empty());
    let gone = (0..2)
        .find(|key| queue.running[&Key(*key)].is_told)
        .unwrap();
    queue.end(Key(gone), HOUR + MINUTE);
    let begun = started(&queue.plan(HOUR + MINUTE));
    assert_eq!(begun.len(), 1);
    queue.end(Key(begun[0]), HOUR + 31 * MINUTE);
    assert_eq!(
        queue.left_of_grant(1),
        Some(5 * GPU_HOUR / 2),
        "half an hour was used"
    );
    let other = 5 - begun[0];
    assert_eq!(started(&queue.plan(HOUR + 31 * MINUTE)), [other]);
    assert_eq!(queue.running[&Key(other)].ask.class, Class::Urgent);
    queue.submit(Key(7), gpus(person, 1, MINUTE, 20 * HOUR));
    queue.end(Key(other), 2 * HOUR);
    queue.plan(20 * HOUR);
    assert_eq!(queue.left_of_grant(1), None);
    let seventh = queue.running.get(&Key(7)).map(|one| one.ask.class);
    assert_ne!(seventh, Some(Class::Urgent), "it is over");
}

#[test]
fn who_was_raised_is_themselves_again_when_they_are_withdrawn() {
    let mut queue = planner(Order::Shares, &[node(1)]);
    let project = queue.shares.add_project(1.0);
    queue.submit(Key(1), gpus(project, 1, HOUR, 0));
    assert_eq!(started(&queue.plan(0)), [1]);
    queue.submit(Key(2), gpus(project, 1, HOUR, 0));
    let grant = Grant {
        account: project,
        until: 20 * HOUR,
        counted: GPUS,
        volume: GPU_HOUR,
    };
    queue.grant(1, grant);
    assert_eq!(queue.plan(HOUR / 2).len(), 1, "the first makes room");
    assert_eq!(queue.left_of_grant(1), Some(0));
    assert_eq!(queue.withdraw(Key(2)).unwrap().class, Class::Guaranteed);
    assert_eq!(queue.left_of_grant(1), Some(GPU_HOUR));
    queue.revoke(1);
    assert_eq!(queue.left_of_grant(1), None);
}

#[derive(Debug, Clone)]
enum Event {
    Submit(u16, i64, usize, Class),
    End(usize),
    Withdraw(usize),
    Abandon(usize),
    Wait(i64),
    Limit(usize, u64),
    Restart,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    use Class::{Guaranteed, Opportunistic, Urgent};
    let class = prop::sample::select(vec![Opportunistic, Guaranteed, Guaranteed, Urgent]);
    let event = prop_oneof![
        6 => (1..4_u16, 1..200_i64, 0..3_usize, class).prop_map(|(gpus, minutes, who, class)| Event::Submit(gpus, minutes, who, class)),
        4 => (0..99_usize).prop_map(Event::End),
        1 => (0..99_usize).prop_map(Event::Withdraw),
        1 => (0..99_usize).prop_map(Event::Abandon),
        3 => (1..120_i64).prop_map(Event::Wait),
        1 => (0..3_usize, 2..8_u64).prop_map(|(who, limit)| Event::Limit(who, limit)),
        1 => Just(Event::Restart),
    ];
    prop::collection::vec(event, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// After any events, no account exceeds its limits or its budget, and the counters match the running workloads.
    #[test]
    fn quotas_and_budgets_are_never_exceeded_and_never_leak(events in events()) {
        let budget = 60 * GPU_HOUR;
        let mut limits = [6_u64, 4, 3];
        let make = |limits: &[u64; 3], spent: &dyn Fn(usize) -> Volume| {
            let mut queue = planner(Order::Shares, &[node(4), node(4)]);
            let projects = [queue.shares.add_project(1.0), queue.shares.add_project(2.0)];
            let people = [queue.shares.person(projects[0], 1), queue.shares.person(projects[0], 2), queue.shares.person(projects[1], 1)];
            queue.quotas.allow(projects[0], GPUS, limit(limits[0]));
            queue.quotas.allow(people[0], GPUS, limit(limits[1]));
            queue.quotas.allow(projects[1], GPUS, limit(limits[2]));
            queue.quotas.budget(projects[0], GPUS, Some((budget, spent(0))));
            // The site's limit is lower than its GPUs, and a part of it is guaranteed to one person.
            let site = queue.shares.site();
            queue.quotas.allow(site, GPUS, limit(SITE));
            let own = Allowance { guaranteed: 2, limit: None };
            queue.quotas.allow(people[2], GPUS, Some(own));
            (queue, people, [projects[0], people[0], projects[1]])
        };
        let (mut queue, people, limited) = make(&limits, &|_| 0);
        let mut highest = limits;
        let mut now = 0;
        let mut next = 0;
        for event in events {
            let mut keys: Vec<Key> = queue.running.keys().copied().collect();
            keys.sort_unstable();
            let mut waiting: Vec<Key> = queue.asks.keys().copied().collect();
            waiting.sort_unstable();
            match event {
                Event::Submit(count, minutes, who, class) => {
                    let ask = gpus(people[who], count, minutes * MINUTE, now);
                    queue.submit(Key(next), Ask { class, ..ask });
                    next += 1;
                }
                Event::End(which) if !keys.is_empty() => queue.end(keys[which % keys.len()], now),
                Event::Abandon(which) if !keys.is_empty() => queue.abandon(keys[which % keys.len()]),
                Event::Withdraw(which) if !waiting.is_empty() => {
                    queue.withdraw(waiting[which % waiting.len()]);
                }
                Event::Wait(minutes) => {
                    now += minutes * MINUTE;
                    let over = keys.iter().filter(|key| queue.running[key].until <= now);
                    let over: Vec<(Key, Micros)> = over.map(|key| (*key, queue.running[key].until)).collect();
                    for (key, until) in over {
                        queue.end(key, until);
                    }
                }
                Event::Limit(which, to) => {
                    limits[which] = to;
                    highest[which] = highest[which].max(to);
                    queue.quotas.allow(limited[which], GPUS, limit(to));
                }
                Event::Restart => {
                    let (spent, _) = queue.quotas.spent(limited[0], GPUS);
                    let (mut anew, ..) = make(&limits, &|_| spent);
                    for (key, one) in queue.running.iter() {
                        anew.resume(*key, one.ask.clone(), one.placement.clone(), one.began, one.until);
                    }
                    for (key, ask) in &queue.asks {
                        anew.submit(*key, ask.clone());
                    }
                    queue = anew;
                }
                _ => {}
            }
            let before: Vec<u64> = limited.iter().map(|account| queue.quotas.used(*account, GPUS)).collect();
            queue.plan(now);
            check_counters(&queue);
            for (place, account) in limited.iter().enumerate() {
                let used = queue.quotas.used(*account, GPUS);
                prop_assert!(used <= limits[place].max(before[place]), "{used} of {}", limits[place]);
                prop_assert!(used <= highest[place]);
            }
            prop_assert!(queue.quotas.used(queue.shares.site(), GPUS) <= SITE);
            let (spent, committed) = queue.quotas.spent(limited[0], GPUS);
            prop_assert!(spent + committed <= budget);
        }
    }
}
