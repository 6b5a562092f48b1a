//! Visiting sessions, over real connections: a server with its controllers, sessions that it started itself, and behind
//! each a small web app on a Unix socket. What runs them is the only part that is not the real one: it starts the app in
//! the test's own process.
//!
//! The tests of [`lessons`] each stand for a hole that others had to close.

#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

mod app;
mod browser;
mod coming_in;
mod cutting;
mod house;
mod hub;
mod lending;
mod lessons;
