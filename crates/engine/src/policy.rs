//! Applies the policies to a booking.
//!
//! [`Policies`] combine into the [`Rules`] of a booking. Each rule knows which policies it comes from. A [`Desk`]
//! checks a [`Booking`] against the rules: [`Desk::judge`] accepts it, or refuses it with every [`Breach`] and a time
//! that would be accepted. [`Desk::explain`] shows every rule that was checked. [`Desk::starts`] finds where such a
//! booking could start. [`Policies::define`] checks whether a policy may be set, and [`breaking`] lists the bookings
//! that a changed policy would break.
//!
//! The policies must not decide whether resources are free: the claim rule does that.

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
