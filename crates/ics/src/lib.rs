//! iCalendar (RFC 5545) as far as Berth speaks it: bookings written for calendar programs, closed days read from
//! institutional calendars.
//!
//! Both directions are pure functions of text and time. What is written is strict: folded lines, escaped texts, time
//! zones written out. What is read comes from strangers: nothing in it makes the reader panic, and its work and memory
//! are bounded whatever it says.
//!
//! This crate must not do I/O, read a clock, or know what a booking is.

mod line;
mod read;
mod recur;
mod write;
mod zone;

pub use read::{NamedSpan, ReadError, Reading, SPANS_MAX, read};
pub use write::{Calendar, Event, Status};
