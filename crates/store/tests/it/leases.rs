//! Leases: one holder at a time, and a fence that a late one cannot pass.

use std::time::Duration;

use berth_model::Name;
use berth_store::leases::{self, Lease};
use berth_store::{Error, Store};
use berth_testkit::wait;
use futures::future::join_all;

use crate::support::{Home, on_both, someone_waits, transact};

/// Longer than any test.
const LONG_S: u32 = 3600;
const PATIENCE: Duration = Duration::from_secs(60);

on_both!(
    one_holds_it_and_keeps_it,
    of_many_who_ask_at_once_one_gets_it,
    whoever_comes_next_has_a_higher_fence,
    a_lease_runs_out,
    only_the_holder_gives_it_back,
    leases_do_not_touch_each_other,
);

fn name(name: &str) -> Name {
    name.parse().expect("a name")
}

async fn acquire(store: &Store, of: &str, holder: &str, ttl_s: u32) -> Option<Lease> {
    transact(store, async |tx| {
        leases::acquire(tx, &name(of), holder, ttl_s).await
    })
    .await
    .expect("an answer")
}

async fn holds(store: &Store, lease: &Lease) -> bool {
    match transact(store, async |tx| leases::check(tx, lease).await).await {
        Ok(()) => true,
        Err(Error::LeaseLost) => false,
        Err(error) => panic!("neither held nor lost: {error:?}"),
    }
}

async fn give_back(store: &Store, lease: &Lease) {
    transact(store, async |tx| leases::give_back(tx, lease).await)
        .await
        .expect("it is given back");
}

async fn one_holds_it_and_keeps_it(home: &Home) {
    let store = &home.store;
    let first = acquire(store, "queue", "a", LONG_S).await.expect("free");
    assert_eq!(acquire(store, "queue", "b", LONG_S).await, None);
    let again = acquire(store, "queue", "a", LONG_S).await;
    assert_eq!(again, Some(first.clone()), "keeping it is no new holding");
    assert_eq!(acquire(store, "queue", "b", LONG_S).await, None);
    assert!(holds(store, &first).await);
}

async fn of_many_who_ask_at_once_one_gets_it(home: &Home) {
    let holders: Vec<String> = (0..16).map(|holder| holder.to_string()).collect();
    let asking = holders
        .iter()
        .map(|holder| acquire(&home.store, "queue", holder, LONG_S));
    let given: Vec<Lease> = join_all(asking).await.into_iter().flatten().collect();
    assert_eq!(given.len(), 1, "{given:?}");
    assert!(holds(&home.store, &given[0]).await);
}

async fn whoever_comes_next_has_a_higher_fence(home: &Home) {
    let store = &home.store;
    let mut before = acquire(store, "queue", "a", LONG_S).await.expect("free");
    for holder in ["b", "a", "b"] {
        give_back(store, &before).await;
        assert!(holds(store, &before).await, "until someone takes it");
        let next = acquire(store, "queue", holder, LONG_S)
            .await
            .expect("given back");
        assert!(next.fence > before.fence);
        assert!(!holds(store, &before).await, "a stale fence passes no more");
        assert!(holds(store, &next).await);
        before = next;
    }
}

async fn a_lease_runs_out(home: &Home) {
    let store = &home.store;
    let paused = acquire(store, "queue", "paused", 0).await.expect("free");
    let next = wait::some("a lease of no length", PATIENCE, async || {
        acquire(store, "queue", "next", LONG_S).await
    })
    .await;
    assert!(next.fence > paused.fence);
    assert!(!holds(store, &paused).await);
    assert_eq!(acquire(store, "queue", "paused", LONG_S).await, None);
}

async fn only_the_holder_gives_it_back(home: &Home) {
    let store = &home.store;
    let stale = acquire(store, "queue", "a", LONG_S).await.expect("free");
    give_back(store, &stale).await;
    let held = acquire(store, "queue", "b", LONG_S)
        .await
        .expect("given back");
    give_back(store, &stale).await;
    assert_eq!(acquire(store, "queue", "c", LONG_S).await, None);
    assert!(holds(store, &held).await);
}

async fn leases_do_not_touch_each_other(home: &Home) {
    let store = &home.store;
    let (queue, ledger) = (
        acquire(store, "queue", "a", LONG_S).await.expect("free"),
        acquire(store, "ledger", "b", LONG_S).await.expect("free"),
    );
    give_back(store, &queue).await;
    assert_eq!(acquire(store, "ledger", "a", LONG_S).await, None);
    assert!(holds(store, &ledger).await);
}

/// A controller that checked its fence acts under it: who wants the lease waits until it is done.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_the_lease_between_check_and_commit() {
    let home = Home::postgres().await;
    let lease = acquire(&home.store, "queue", "a", LONG_S)
        .await
        .expect("free");
    give_back(&home.store, &lease).await;

    let mut acting = home.store.begin().await.expect("a transaction");
    leases::check(&mut acting, &lease)
        .await
        .expect("still ours");
    let act = async {
        wait::until("another that waits for us", PATIENCE, async || {
            someone_waits(&home).await
        })
        .await;
        acting.commit().await.expect("a commit");
    };
    let (next, ()) = tokio::join!(acquire(&home.store, "queue", "b", LONG_S), act);
    assert_eq!(next.expect("given back").fence, lease.fence + 1);
}
