//! The proxy from a browser to the app of a running session.
//!
//! The holder keeps a table of [`Routes`], and asks [`Proxy::asked`] for the session of a request. It decides who the
//! [`Visitor`] is, and passes both to [`Proxy::serve`]. There is no other way in, not even for a WebSocket: every
//! request that reaches an app has a visitor, and ends when that visitor's access ends.
//!
//! This crate must not see the store or the application, decide who may visit what, or learn from a request where to
//! connect. It connects to the endpoints in its table, follows no redirect, and repeats no part of a request in a page
//! of its own.

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
