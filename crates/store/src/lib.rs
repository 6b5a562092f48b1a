//! The durable state: people, sites, the inventory, claims, reservations, audit and events.
//!
//! All SQL of Berth lives here, written once for SQLite and PostgreSQL (see [`sql`]). Both databases enforce the claim
//! rule themselves, so a bug elsewhere causes a refusal and never a double booking. Functions take a [`Conn`] and
//! return model types; the caller decides what goes into one transaction.
//!
//! This crate must not decide anything: no permissions, no policies, no clock. Moments come in as arguments.

pub mod audit;
pub mod booking;
pub mod claims;
pub mod closures;
mod code;
pub mod environments;
mod error;
pub mod events;
pub mod feeds;
pub mod health;
pub mod idempotency;
pub mod inventory;
pub mod leases;
pub mod loans;
pub mod logos;
pub mod maintenance;
mod migrate;
pub mod my_sites;
pub mod notifications;
pub mod outage_notices;
pub mod people;
pub mod policies;
pub mod projects;
pub mod queues;
pub mod readers;
pub mod recuts;
pub mod reservations;
pub mod reserve;
pub mod runs;
pub mod secrets;
pub mod sequencer;
pub mod series;
pub mod sessions;
pub mod settings;
pub mod sign_ins;
pub mod sites;
mod sql;
mod sqlite;
mod store;
pub mod submissions;
mod traces;
pub mod transfer;
pub mod usage;
pub mod variables;
pub mod visits;
mod words;
pub mod workloads;

pub use error::{Error, Refused, Result};
pub use migrate::SchemaGap;
pub use sql::Conn;
pub use store::{Engine, Reader, Store, Tx};
