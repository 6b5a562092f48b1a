//! 64 clients, few resources, and a server that is killed again and again: afterwards every acknowledged booking
//! stands, none overlap, none are half made, and every number is in its place. `docs/proofs/crash.md` says more.

mod doctored;

mod truth;

use crate::proof::ground::Ground;
use crate::proof::run;
use crate::proof::size::{self, Size};
use tokio::sync::Mutex;

const IN_THE_SUITE: Size = Size {
    operations: 20_000,
    kills: 20,
    clients: 64,
};

/// One run at a time, so that each is measured by itself.
static ALONE: Mutex<()> = Mutex::const_new(());

async fn prove(ground: Ground) {
    let berth = env!("CARGO_BIN_EXE_berth");
    run::prove(ground, berth, IN_THE_SUITE.or_asked_for(), size::seed()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_every_promise_through_kills() {
    let _alone = ALONE.lock().await;
    prove(Ground::sqlite().expect("a directory")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_every_promise_through_kills() {
    let _alone = ALONE.lock().await;
    prove(Ground::postgres().await).await;
}
