//! The server as a client meets it: over real connections, with a real database behind it.

#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

mod connections;
mod events;
mod requests;
mod sessions;
mod support;
