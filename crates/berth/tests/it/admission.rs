//! Every way to a claim beside every condition on it, through HTTP on both databases: what the server answers is what
//! a naive judge says that shares no code with it (`berth_testkit::naive`).
//!
//! Each cell of the matrix has a site of its own. Pairs of a way and a condition are all tried, and a seeded choice of
//! triples of a way and two conditions.

mod case;
mod lab;
mod ways;

use std::panic::AssertUnwindSafe;

use berth_store::Engine;
use futures::{FutureExt, StreamExt};

use self::case::{Case, Condition, Way};
use self::lab::Lab;

/// Triples of a way and two conditions, besides all pairs.
const TRIPLES: usize = 60;
const SEED: u64 = 20_261_119;
/// Cells tried at the same time.
const AT_ONCE: usize = 8;

/// The cells that are answered otherwise than the naive judge says.
async fn try_all(lab: &Lab, cases: &[&Case], at_once: usize) -> Vec<String> {
    let tried = cases.iter().map(|case| async move {
        // A cell that gets stuck must not hide what the others come to.
        match AssertUnwindSafe(lab.try_case(case)).catch_unwind().await {
            Ok(found) if found.agrees() => None,
            Ok(found) => Some(format!("{case:?}: {found}")),
            Err(_) => Some(format!("{case:?}: it did not get that far; see above")),
        }
    });
    let tried = futures::stream::iter(tried).buffer_unordered(at_once);
    tried.filter_map(|wrong| async { wrong }).collect().await
}

async fn every_way_meets_every_condition(engine: Engine) {
    let lab = Lab::start(engine).await;
    let cases = Case::all(TRIPLES, SEED);
    // A refused hold keeps its alternatives for a moment, in other sites too: nobody else books meanwhile.
    let (holds, others): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| case.way == Way::HoldAndTake);
    let mut wrong = try_all(&lab, &others, AT_ONCE).await;
    wrong.extend(try_all(&lab, &holds, 1).await);
    assert!(
        wrong.is_empty(),
        "{} of {} cells are answered otherwise than the naive judge says (seed {SEED}):\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_meets_every_condition_on_sqlite() {
    every_way_meets_every_condition(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_meets_every_condition_on_postgres() {
    every_way_meets_every_condition(Engine::Postgres).await;
}

#[test]
fn the_matrix_has_every_pair() {
    let pairs = Case::all(0, SEED).len();
    assert_eq!(pairs, Way::ALL.len() * Condition::ALL.len());
    assert_eq!(Case::all(TRIPLES, SEED).len(), pairs + TRIPLES);
}
