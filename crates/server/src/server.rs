//! What every request can reach: the application, the configuration, and the server's own counters and limits.

use std::sync::Arc;

use axum::extract::MatchedPath;
use berth_api::about::Demo;
use berth_api::paths;
use berth_app::App;
use berth_model::PersonId;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, QueueBackend};
use crate::event_routes::STREAMS_MAX;
use crate::fetch::Fetcher;
use crate::hosts::AllowedHosts;
use crate::metrics::Metrics;
use crate::pages::Documents;
use crate::shares::Shares;
use crate::throttle::Throttle;
use crate::visits::Visits;
use crate::visits::address::share_origin;

/// The server, shared by all requests; cloning it is cheap.
#[derive(Debug, Clone)]
pub struct Server(Arc<Parts>);

#[derive(Debug)]
pub struct Parts {
    pub app: App,
    pub config: Config,
    pub metrics: Metrics,
    pub(crate) hosts: AllowedHosts,
    pub(crate) throttle: Throttle,
    /// Live streams of events, so many for each person.
    pub(crate) streams: Shares<PersonId>,
    pub(crate) documents: Documents,
    /// The way to sessions.
    pub(crate) visits: Visits,
    /// Who can sign in, where this is a demo.
    pub(crate) demo: Option<Demo>,
    /// Reads closure calendars from their addresses.
    pub(crate) fetch: Arc<Fetcher>,
    /// Cancelled when the server stops; live streams end then.
    pub(crate) stop: CancellationToken,
}

impl Server {
    pub fn new(config: Config, app: App, demo: Option<Demo>, stop: CancellationToken) -> Self {
        Self(Arc::new(Parts {
            metrics: Metrics::new(app.store_name()),
            hosts: AllowedHosts::new(&config, demo.is_some()),
            throttle: Throttle::new(&config),
            streams: Shares::new(STREAMS_MAX),
            visits: Visits::new(&config),
            documents: Documents::new(&config, demo.as_ref()),
            fetch: Arc::new(Fetcher::new(&config.calendar_networks)),
            demo,
            app,
            config,
            stop,
        }))
    }

    /// Where this server is reached: its full address where the configuration knows it, else the path on its host.
    pub fn address(&self) -> String {
        address(&self.config)
    }

    /// A path of the API (as `berth_api::paths` makes them) as a client has to write it after the host.
    pub fn link(&self, api_path: &str) -> String {
        format!("{}{}{api_path}", self.config.base_path.as_str(), paths::API)
    }

    /// The template that matched a request, as `berth_api::paths` has it (those of the API with their prefix).
    pub(crate) fn route<'a>(&self, matched: Option<&'a MatchedPath>) -> Option<&'a str> {
        matched?
            .as_str()
            .strip_prefix(self.config.base_path.as_str())
    }

    /// Whether something runs sessions here, at Berth's own origin.
    pub(crate) fn shares_origin(&self) -> bool {
        self.config.queue_backend != QueueBackend::None && share_origin(&self.config)
    }

    /// Whether browsers reach us over HTTPS.
    pub fn is_secure(&self) -> bool {
        is_secure(&self.config)
    }
}

impl std::ops::Deref for Server {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}

pub(crate) fn address(config: &Config) -> String {
    let origin = config.public_url.as_ref().map_or("", |url| url.as_str());
    format!("{origin}{}", config.base_path.as_str())
}

pub(crate) fn is_secure(config: &Config) -> bool {
    let public = config.public_url.as_ref();
    config.tls().is_some() || public.is_some_and(|url| url.as_str().starts_with("https://"))
}
