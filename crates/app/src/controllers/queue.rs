//! Carries the queues on: whenever something happens, whenever time alone changes something, and now and then.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::lease::Keeper;
use crate::App;

/// Whatever happens to the bells, nothing waits longer than this for room that is there.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Many submit at once; they are planned for together.
const GATHER: Duration = Duration::from_millis(50);

pub(super) async fn run(app: App, mut keeper: Keeper, stop: CancellationToken) {
    let mut newest = app.tail.bell();
    loop {
        let mut next = None;
        let mut is_ours = false;
        let work = async |lease| {
            is_ours = true;
            next = app.carry_queues_on(&lease).await?;
            Ok(false)
        };
        keeper.turn("the queue could not be carried on", work).await;
        if !is_ours {
            app.queues.forget();
        }
        let pause = next.map_or(LOOK_EVERY, |next| {
            let left = app.now().duration_until(next);
            Duration::try_from(left)
                .unwrap_or(GATHER)
                .clamp(GATHER, LOOK_EVERY)
        });
        tokio::select! {
            () = stop.cancelled() => break,
            () = app.submitted.notified() => tokio::time::sleep(GATHER).await,
            rung = newest.changed() => {
                if rung.is_err() {
                    break;
                }
                tokio::time::sleep(GATHER).await;
            }
            () = tokio::time::sleep(pause) => {}
        }
    }
    keeper.give_back().await;
}
