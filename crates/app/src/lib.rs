//! Use cases and controllers: the work that callers request, and the work that happens by itself.
//!
//! A use case opens a transaction in the store and asks the engine whether it is allowed and what follows. It writes
//! state, claims, history, audit entry and event in that one transaction. Controllers do the same, woken by time and by
//! events. Both are safe to stop at any instruction: either all of it happened or nothing did.
//!
//! This crate must not know HTTP, and must not write SQL.

pub mod accounts;
mod app;
pub mod audit;
mod authority;
pub mod bootstrap;
pub mod calendar;
mod caller;
pub mod clock;
pub mod closures;
pub mod controllers;
pub mod declared;
pub mod desk;
mod directory;
mod disk;
pub mod environments;
mod error;
pub mod events;
pub mod feeds;
mod health;
pub mod inventory;
mod logos;
pub mod maintenance;
mod my_sites;
pub mod notifications;
mod once;
mod people;
mod place;
pub mod policies;
mod projects;
pub mod queue;
mod record;
mod refusals;
pub mod reservations;
mod seen;
pub mod sessions;
pub mod settlement;
mod sites;
mod transact;
pub mod usage;
pub mod vault;
mod version;

pub use app::{App, Settings};
pub use berth_drivers::local::machine::WeakBoundary;
pub use caller::{Caller, Via};
pub use directory::Directory;
pub use error::{Error, Result};
pub use health::{ControllerHealth, Health, HealthReport};
pub use my_sites::SiteActivity;
pub use once::{Made, Once, Repeated};
pub use people::{NewPerson, PersonChange};
pub use place::Place;
pub use projects::{NewProject, ProjectChange};
pub use refusals::code as refusal_code;
pub use seen::{Conflict, SeenClaim, SeenDetails};
pub use sites::{NewSite, SiteChange};
