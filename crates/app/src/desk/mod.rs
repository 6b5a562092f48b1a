//! The booking desk: what can be had and when, any of a kind, and what else could be had when the answer is no.

mod alternatives;
mod any;
mod board;
mod moves;
mod outage;
mod permitted;
mod waitlist;
mod when;

pub use alternatives::{Alternative, AlternativeKind, Part};
pub use any::NewAny;
pub(crate) use board::Boards;
pub(crate) use moves::{MADE_ROOM, Relocation};
pub(crate) use outage::Told;
pub(crate) use permitted::{MOMENT, Permitted};
pub use waitlist::WaitFor;
pub use when::{Answer, Choice, Variant, Wish};
