//! The routes of the API, a file for each noun.
//!
//! A handler reads a request, makes it a command, and shows what came of it in the words of the wire. It decides
//! nothing: who may do what, what is possible and what is hidden are the application's to say. What all routes
//! share, problems and signing in, is added to their descriptions by `openapi`.

mod addresses;
mod audit;
mod calendar;
mod closures;
mod declared;
mod environments;
mod feeds;
mod health;
mod joins;
mod logos;
mod maintenance;
mod members;
mod notifications;
mod paging;
mod people;
mod policies;
mod projects;
mod queue;
mod reservations;
mod resource_counts;
mod resources;
mod series;
mod sessions;
mod sites;
mod tokens;
mod types;
mod usage;
mod when;
mod workloads;

use berth_api::page::DryRunQuery;
use berth_app::settlement::Mode;
use utoipa_axum::router::OpenApiRouter;

use crate::server::Server;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .merge(tokens::router())
        .merge(people::router())
        .merge(sites::router())
        .merge(logos::router())
        .merge(declared::router())
        .merge(members::router())
        .merge(joins::router())
        .merge(projects::router())
        .merge(policies::router())
        .merge(types::router())
        .merge(resources::router())
        .merge(resource_counts::router())
        .merge(calendar::router())
        .merge(when::router())
        .merge(feeds::router())
        .merge(closures::router())
        .merge(maintenance::router())
        .merge(reservations::router())
        .merge(series::router())
        .merge(sessions::router())
        .merge(workloads::router())
        .merge(environments::router())
        .merge(queue::router())
        .merge(usage::router())
        .merge(health::router())
        .merge(notifications::router())
        .merge(audit::router())
}

/// Whether a request is meant, or only tried.
fn mode(query: DryRunQuery) -> Mode {
    if query.dry_run {
        Mode::DryRun
    } else {
        Mode::Apply
    }
}
