//! What each command does, one file for each noun.
//!
//! A command turns what was typed into requests of the typed client, and answers into tables or JSON. It decides
//! nothing that the server decides.

pub mod admin;
pub mod apply;
pub mod approvals;
pub mod audit;
pub mod book;
pub mod calendar;
pub mod closure;
pub mod completion;
pub mod config;
pub mod database;
pub mod doctor;
pub mod environment;
pub mod event;
pub mod feed;
pub mod free;
pub mod login;
pub mod logout;
pub mod maintenance;
pub mod member;
pub mod notification;
pub mod openapi;
pub mod person;
pub mod policy;
pub mod profile;
pub mod project;
pub mod queue;
pub mod reservation;
pub mod resource;
pub mod series;
pub mod serve;
pub mod session;
pub mod sim;
pub mod site;
pub mod submit;
pub mod token;
pub mod topics;
pub mod types;
pub mod usage;
pub mod version;
pub mod when;
pub mod whoami;

use berth_api::client::Client;
use berth_api::headers::{IdempotencyKey, IfMatch};

/// For commands that make something.
#[derive(Debug, Clone, clap::Args)]
pub struct Once {
    /// Make it once, however often this is repeated with the same key
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<IdempotencyKey>,
}

impl Once {
    pub fn key(&self) -> Option<&IdempotencyKey> {
        self.idempotency_key.as_ref()
    }
}

/// For commands that act on something.
#[derive(Debug, Clone, clap::Args)]
pub struct Acting {
    /// Do it once, however often this is repeated with the same key
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<IdempotencyKey>,
    /// Do it only if the object still has this version
    #[arg(long, value_name = "VERSION")]
    pub if_version: Option<u64>,
}

impl Acting {
    /// The client that says so.
    pub fn client(&self, client: &Client) -> Client {
        let version = self.if_version.map(IfMatch::Version);
        client.acting(self.idempotency_key.as_ref(), version)
    }

    /// The same, for a command that takes a list. A key and a version belong to one object.
    pub fn client_for<T>(&self, all: &[T], client: &Client) -> anyhow::Result<Client> {
        let is_said = self.idempotency_key.is_some() || self.if_version.is_some();
        if is_said && all.len() > 1 {
            let message = "name one job with `--idempotency-key` or `--if-version`";
            return Err(crate::failure::usage(message));
        }
        Ok(self.client(client))
    }
}

/// For commands that change something.
#[derive(Debug, Clone, clap::Args)]
pub struct Version {
    /// Change it only if it still has this version
    #[arg(long, value_name = "VERSION")]
    pub if_version: Option<u64>,
}

impl Version {
    /// Without a version the change is meant for whatever is there: it names the fields it sets, and only those.
    pub fn if_match(&self) -> IfMatch {
        self.if_version.map_or(IfMatch::Any, IfMatch::Version)
    }

    /// The client that says so.
    pub fn client(&self, client: &Client) -> Client {
        client.acting(None, self.if_version.map(IfMatch::Version))
    }

    /// The same for a change that was worked out from what was read at `seen`.
    pub fn if_match_since(&self, seen: u64) -> IfMatch {
        IfMatch::Version(self.if_version.unwrap_or(seen))
    }
}
