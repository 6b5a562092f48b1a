//! Reservations: create, read, change, approve, cancel.

mod approve;
mod buffers;
mod change;
mod check;
mod create;
mod decide;
mod desk;
pub(crate) mod hold;
mod judge;
mod leave;
mod limits;
mod look;
mod plan;
mod series;
mod step;

pub(crate) use buffers::{buffers, held_buffers};
pub use change::{Extension, ReservationChange};
pub use check::{Item, RawAnswers};
pub(crate) use check::{LATE_START, LENGTH_MAX};
pub use create::{Booked, NewReservation, Preview};
pub(crate) use create::{HOLD_LIFE, HOLDS_MAX, movable_until, told};
pub(crate) use hold::Softer;
pub(crate) use look::is_visible;
pub use look::{ReservationFilter, ReservationView};
pub use series::{
    Foreseen, NewSeries, OnConflict, Part, SeriesChange, SeriesFilter, SeriesPreview, SeriesView,
    Skipped,
};
