//! Reservations: made, changed, decided, cancelled, looked at.

mod change;
mod check;
mod create;
mod decide;
pub(crate) mod hold;
mod look;
mod plan;
mod step;

pub use change::{Extension, ReservationChange};
pub use check::Item;
pub use create::{Booked, NewReservation, Preview};
pub use look::{ReservationFilter, ReservationView};
