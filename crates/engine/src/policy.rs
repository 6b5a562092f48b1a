//! What the policies make of a booking.
//!
//! [`Policies`] are combined into the [`Rules`] of a booking, each of which knows where it comes from. A
//! [`Desk`] holds them against a [`Booking`]: [`Desk::judge`] accepts it or refuses it with every [`Breach`]
//! and a time that would do; [`Desk::explain`] shows every rule that was looked at; [`Desk::starts`] says where
//! such a booking could start. [`Policies::define`] guards what may be set, and [`breaking`] tells whom a
//! change would meet.
//!
//! Nothing here knows what is taken: whether there is room is the claim rule's.

mod approval;
mod breach;
mod calendar;
mod define;
mod judge;
mod ledger;
mod rules;
mod standing;
mod starts;

pub use approval::{Approval, Voice, settle};
pub use breach::{Accepts, Breach, Found, LOOK_D, Refusal};
pub use calendar::Calendar;
pub use define::{Looser, Refused};
pub use judge::{Accepted, Desk, Finding};
pub use ledger::{Booking, Ledger};
pub use rules::{Limit, Policies, Rules, Value};
pub use standing::breaking;
pub use starts::Starts;

#[cfg(test)]
mod tests;
