//! Carries sessions on: whenever something happens to what they run as, often while one begins, and now and then.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::lease::Keeper;
use crate::App;

/// Whatever happens to the bells, nothing waits longer than this.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Between two rounds, however much there is to ask.
const REST: Duration = Duration::from_millis(50);

pub(super) async fn run(app: App, mut keeper: Keeper, stop: CancellationToken) {
    let mut newest = app.tail.bell();
    loop {
        let mut next = None;
        let work = async |lease| {
            next = app.carry_sessions_on(&lease).await?;
            Ok(false)
        };
        keeper
            .turn("the sessions could not be carried on", work)
            .await;
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
            () = tokio::time::sleep(pause) => {}
        }
    }
    keeper.give_back().await;
}
