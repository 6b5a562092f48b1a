//! HTTP: routes, sign-in, the live stream of events, and pages for people.
//!
//! A request is read into typed values, handed to the application, and what comes back is written out. Nothing
//! is decided here that the application could decide: this crate knows connections, headers and documents, and
//! must not know SQL or the rules of booking.

mod answer;
pub mod config;
mod failure;
mod request;
mod server;
mod shown;

pub use server::Server;
