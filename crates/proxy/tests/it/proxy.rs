//! The proxy between real sockets: a client that writes what it likes, and an app on a Unix socket.

mod client;
mod ending;
mod forwarding;
mod limits;
mod pages;
mod rig;
mod smuggling;
mod sockets;
mod strangers;

/// Waits for what must come true, with a deadline that only a broken proxy meets.
async fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = std::time::Duration::from_secs(60);
    berth_testkit::wait::until(what, deadline, async || is_true()).await;
}
