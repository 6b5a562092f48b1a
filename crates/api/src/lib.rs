//! What crosses the wire: requests and answers, problem codes, paths, and the typed client.
//!
//! Server, command line, tests and benchmarks share these types, so that they cannot drift apart. A request
//! that has been read is already well-formed: names are names, spans of time are within bounds, lists are
//! short enough. Whether it is *allowed* or *possible* is decided elsewhere.
//!
//! This crate must not know the store, the engine or the use cases, and it never prints a secret.

pub mod about;
pub mod attributes;
pub mod audit;
pub mod calendar;
pub mod client;
pub mod closures;
pub mod declared;
pub mod desk;
pub mod environments;
pub mod events;
pub mod feeds;
pub mod headers;
pub mod health;
pub mod list;
pub mod maintenance;
pub mod members;
pub mod moment;
pub mod names;
pub mod notifications;
pub mod page;
pub mod parse;
pub mod patch;
pub mod paths;
pub mod people;
pub mod policies;
pub mod problem;
pub mod projects;
pub mod reference;
pub mod reservations;
pub mod resource_counts;
pub mod resources;
pub mod schemas;
pub mod secret;
pub mod series;
pub mod sessions;
pub mod sign_in;
pub mod sites;
mod text;
pub mod tokens;
pub mod types;
pub mod usage;
pub mod workloads;

pub use client::{Client, Credential};
pub use names::Names;
pub use page::Page;
pub use problem::{Code, Problem};
pub use text::TextError;
