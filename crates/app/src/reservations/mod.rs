//! Reservations: made, changed, decided, cancelled, looked at.

mod change;
mod check;
mod create;
mod decide;
mod desk;
pub(crate) mod hold;
mod look;
mod plan;
mod step;

pub use change::{Extension, ReservationChange};
pub use check::Item;
pub use create::{Booked, NewReservation, Preview};
pub(crate) use create::{HOLD_LIFE, HOLDS_MAX};
pub use look::{ReservationFilter, ReservationView};
