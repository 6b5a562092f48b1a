//! The same proof on a disk that forgets what was not synced: what was acknowledged survives a power cut, not only a
//! killed process. `docs/proofs/crash.md` says more.

use crate::proof::ground::Ground;
use crate::proof::run;
use crate::proof::size::{self, Size};
use tokio::sync::Mutex;

const IN_THE_SUITE: Size = Size {
    operations: 2000,
    kills: 5,
    clients: 64,
};

/// One run at a time, so that each is measured by itself.
static ALONE: Mutex<()> = Mutex::const_new(());

async fn prove(ground: Ground) {
    let berth = env!("CARGO_BIN_EXE_berth");
    run::prove(ground, berth, IN_THE_SUITE, size::seed()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_every_promise_through_power_cuts() {
    let _alone = ALONE.lock().await;
    prove(Ground::sqlite_on_lossy_disk().expect("a lossy disk")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_every_promise_through_power_cuts() {
    let _alone = ALONE.lock().await;
    prove(Ground::postgres_on_lossy_disk().expect("a lossy disk")).await;
}
