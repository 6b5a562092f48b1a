//! The part of iCalendar (RFC 5545) that Berth uses: it writes bookings for calendar programs and reads closed days
//! from institutional calendars.
//!
//! Both directions are pure functions of text and time. The output is strict: folded lines, escaped texts, complete
//! time zones. The input comes from strangers: no input makes the reader panic, and its work and memory are always
//! bounded.
//!
//! This crate must not do I/O, read a clock, or know about bookings.

mod line;
mod read;
mod recur;
mod write;
mod zone;

pub use read::{NamedSpan, ReadError, Reading, SPANS_MAX, read};
pub use write::{Calendar, Event, Status};
