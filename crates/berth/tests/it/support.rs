//! What the whole-system tests share: a database of either kind, a small world in it, the real server on top, and a
//! client that shows exactly what was answered.

pub mod desk;
pub mod ground;
pub mod http;
pub mod island;
pub mod world;

use std::time::Duration;

/// For what should happen at once, on a machine that may have much else to do.
pub const SOON: Duration = Duration::from_secs(30);
