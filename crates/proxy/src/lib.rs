//! The way from a browser to the app of a running session.
//!
//! The holder keeps a table of [`Routes`], asks [`Proxy::asked`] whose a request is, decides who the [`Visitor`] is,
//! and hands both to [`Proxy::serve`]. There is no other way in, for a WebSocket neither: whatever reaches an app
//! was somebody's, and ends when that somebody's access does.
//!
//! This crate must not see the store or the application, decide who may visit what, or learn from a request where
//! to connect: it connects to what its table says, follows no redirect, and repeats nothing of what it was sent in
//! a page of its own.

mod activity;
mod address;
mod body;
mod connection;
mod cookies;
mod exchange;
mod failure;
mod fence;
mod frames;
mod head;
mod location;
mod pool;
mod proxy;
mod routes;
mod tunnel;

pub use activity::Activity;
pub use address::{Addressing, Label, NotALabel, NotAnOrigin};
pub use body::{Body, Broken};
pub use connection::{Connect, NotLoopback, Upstream};
pub use cookies::{Own, cookie, cookies, visit_cookie_name};
pub use failure::Failure;
pub use proxy::{Asked, Config, Credential, Limits, Proxy, Visitor};
pub use routes::{HostSent, Prefix, Route, Routes, Target};
