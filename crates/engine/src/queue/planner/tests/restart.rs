//! After a restart the server knows the running workloads, and a failed start leaves no trace.

use super::*;

const GPUS: Counted = Counted(0);

/// One node with four GPUs, and two projects. The first has a limit of two GPUs.
fn site() -> (Planner, [Account; 2]) {
    let mut queue = planner(Order::Shares, &[node(4)]);
    let projects = [queue.shares.add_project(1.0), queue.shares.add_project(1.0)];
    let two = Allowance {
        guaranteed: 2,
        limit: Some(2),
    };
    queue.quotas.allow(projects[0], GPUS, Some(two));
    (queue, projects)
}

fn one(account: Account, limit: Micros) -> Ask {
    counted(ask(account, need(1, 1), limit, 0), [(GPUS, 1)])
}

#[test]
fn nothing_is_given_out_twice_after_a_restart() {
    let (mut before, projects) = site();
    for key in 0..8 {
        before.submit(Key(key), one(projects[key as usize % 2], 2 * HOUR));
    }
    assert_eq!(started(&before.plan(0)).len(), 4);
    let (mut after, _) = site();
    for (key, running) in before.running() {
        let Running { ask, placement, .. } = running.clone();
        after.resume(key, ask, placement, running.began, running.until);
    }
    for project in projects {
        assert_eq!(after.quotas.used(project, GPUS), 2);
        assert_eq!(after.shares.load(project), before.shares.load(project));
    }
    for (key, ask) in before.asks.clone() {
        after.submit(key, ask);
    }
    assert!(
        after.plan(MINUTE).is_empty(),
        "there is no room, and no quota"
    );
    let (ended, _) = before.running().next().unwrap();
    before.end(ended, HOUR);
    after.end(ended, HOUR);
    assert_eq!(after.plan(HOUR), before.plan(HOUR));
    assert_eq!(
        after.shares.load(projects[0]),
        before.shares.load(projects[0])
    );
}

#[test]
fn what_should_have_ended_while_nobody_looked_still_has_what_it_has() {
    let (mut queue, projects) = site();
    let placement = one_gpu(0, 1000, 0);
    queue.resume(Key(1), one(projects[1], HOUR), placement, 0, HOUR);
    for key in 2..6 {
        queue.submit(Key(key), one(projects[1], HOUR));
    }
    let begun = starts(queue.plan(5 * HOUR));
    let gpus = begun.iter().map(|one| one.placement.pieces[0].gpus[0].gpu);
    let mut gpus: Vec<u16> = gpus.collect();
    gpus.sort_unstable();
    assert_eq!(gpus, [1, 2, 3]);
    queue.end(Key(1), 5 * HOUR + 1);
    assert_eq!(started(&queue.plan(5 * HOUR + 1)).len(), 1);
}

#[test]
fn a_start_that_was_not_carried_out_is_as_if_it_had_never_been() {
    let (mut queue, projects) = site();
    for key in 0..6 {
        queue.submit(Key(key), one(projects[key as usize % 2], HOUR));
    }
    let untouched = queue.clone();
    let decided = queue.plan(0);
    assert_eq!(started(&decided).len(), 4);
    for start in starts(decided.clone()) {
        queue.abandon(start.key);
    }
    assert_eq!(queue.waiting(), 6);
    assert_eq!(queue.running().count(), 0);
    for project in projects {
        assert_eq!(queue.quotas.used(project, GPUS), 0);
        assert_eq!(queue.shares.load(project), untouched.shares.load(project));
    }
    assert_eq!(queue.plan(0), decided);
    queue.abandon(Key(77));
    assert_eq!(queue.waiting(), 2, "what never began cannot be abandoned");
}
