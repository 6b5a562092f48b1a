//! Passes stops and deadlines on to the supervisors of this server's own machine. Each server reaches only its own
//! machine, so no lease is needed.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::App;
use crate::queue::Passing;

/// The longest pause between two passes, even if a wake-up is lost.
const PASS_ON_EVERY: Duration = Duration::from_secs(1);
/// How often to look for runs that have ended in the database but still run on this machine.
const END_EVERY: Duration = Duration::from_secs(5);

pub(super) async fn run(app: App, stop: CancellationToken) {
    let backend = app.backend.clone();
    if backend.is_none_or(|backend| backend.supervisors().is_none()) {
        return;
    }
    let mut passing = Passing::default();
    let mut end_next = Instant::now();
    let mut newest = app.tail.bell();
    loop {
        let limit = app.settings.round_limit;
        let round = async {
            app.pass_on(&mut passing).await?;
            if end_next <= Instant::now() {
                end_next = Instant::now() + END_EVERY;
                app.end_what_is_over().await?;
            }
            Ok::<_, crate::Error>(())
        };
        tokio::select! {
            () = stop.cancelled() => return,
            done = timeout(limit, round) => match done {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "stops could not be passed on to this machine; trying again"),
                Err(_) => tracing::warn!("stops could not be passed on to this machine in time; trying again"),
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = app.to_pass_on.notified() => {}
            rung = newest.changed() => if rung.is_err() {
                return;
            },
            () = tokio::time::sleep(PASS_ON_EVERY) => {}
        }
    }
}
