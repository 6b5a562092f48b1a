//! Reservations: made, changed, decided, cancelled, looked at.

mod change;
mod check;
mod create;
pub(crate) mod hold;
mod look;
mod step;

pub use change::{Extension, ReservationChange};
pub use check::Item;
pub use create::{Booked, NewReservation, Preview};
pub use look::{ReservationFilter, ReservationView};
