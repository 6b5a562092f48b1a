//! The booking desk: searches for free time, bookings by kind, and alternatives to refused bookings.

mod alternatives;
mod any;
mod board;
mod movable;
mod moves;
mod outage;
mod permitted;
mod waitlist;
mod way;
mod when;

use crate::error::{Error, Result};

/// Runs a search on another thread. A search over a large site takes long, and other requests wait for this thread.
async fn aside<T: Send + 'static>(search: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let found = tokio::task::spawn_blocking(search).await;
    found.map_err(|error| Error::Internal(error.to_string()))
}

pub(crate) use alternatives::RefusedBooking;
pub use alternatives::{Alternative, AlternativeKind, Part};
pub use any::NewAny;
pub(crate) use board::Boards;
pub(crate) use moves::{MADE_ROOM, Relocation};
pub(crate) use permitted::{For, MOMENT, Permitted};
pub use waitlist::WaitFor;
pub use way::Elsewhere;
pub(crate) use way::{MADE_WAY, Way};
pub use when::{Answer, Choice, Variant, Wish};
