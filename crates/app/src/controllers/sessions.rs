//! Runs the sessions: after every event of their runs, often while a session starts, and at a regular interval.
//!
//! The holder of the lease does so for all sessions except those on other servers' machines. Each server handles the
//! sessions on its own machine.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::lease::{Keeper, Turn};
use crate::App;
use crate::authority::Authority;

/// The longest pause between two polls, even if a wake-up is lost.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
const TROUBLE: &str = "the sessions could not be carried on";
/// The shortest pause between two passes, however many wake-ups arrive.
const REST: Duration = Duration::from_millis(50);

pub(super) async fn run(app: App, mut keeper: Keeper, stop: CancellationToken) {
    let mut newest = app.tail.bell();
    loop {
        let mut next = None;
        let work = async |lease| {
            next = app.carry_sessions_on(Authority::Lease(&lease)).await?;
            Ok(false)
        };
        let turn = keeper.turn(TROUBLE, work).await;
        if turn == Turn::NotOurs && app.has_own_machine() {
            let own = app.carry_sessions_on(Authority::OwnMachine);
            next = match timeout(app.settings.round_limit, own).await {
                Ok(Ok(next)) => next,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "{TROUBLE}; trying again");
                    None
                }
                Err(_) => {
                    tracing::warn!("{TROUBLE}: the round took too long; trying again");
                    None
                }
            };
        }
        let pause = next.map_or(LOOK_EVERY, |next| {
            let left = app.now().duration_until(next);
            Duration::try_from(left)
                .unwrap_or(REST)
                .clamp(REST, LOOK_EVERY)
        });
        tokio::select! {
            () = stop.cancelled() => break,
            rung = newest.changed() => {
                if rung.is_err() {
                    break;
                }
                tokio::time::sleep(REST).await;
            }
            () = keeper.rest(pause) => {}
        }
    }
    keeper.give_back().await;
}
