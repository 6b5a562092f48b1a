//! Every noun of the API once, as a client meets it: the whole tree of routes in process, over a database of its own.
//!
//! Each answer is also held against the OpenAPI document: a status that is not documented fails the test that met it.

#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

mod booking;
mod branding;
mod calendar;
mod closures;
mod deciding;
mod declared;
mod document;
mod feeds;
mod inventory;
mod leaving;
mod maintenance;
mod notifications;
mod outsiders;
mod people;
mod records;
mod sites;
mod support;
mod usage;
