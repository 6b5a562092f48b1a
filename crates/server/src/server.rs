//! What every request can reach: the application, the configuration, and the server's own counters.

use std::sync::Arc;

use berth_api::paths;
use berth_app::App;

use crate::config::Config;

/// The server, shared by all requests; cloning it is cheap.
#[derive(Debug, Clone)]
pub struct Server(Arc<Parts>);

#[derive(Debug)]
pub struct Parts {
    pub app: App,
    pub config: Config,
}

impl Server {
    pub fn new(config: Config, app: App) -> Self {
        Self(Arc::new(Parts { app, config }))
    }

    /// Where this server is reached: its full address where the configuration knows it, else the path on its host.
    pub fn address(&self) -> String {
        let origin = self
            .config
            .public_url
            .as_ref()
            .map_or("", |url| url.as_str());
        format!("{origin}{}", self.config.base_path.as_str())
    }

    /// A path of the API (as `berth_api::paths` makes them) as a client has to write it after the host.
    pub fn link(&self, api_path: &str) -> String {
        format!("{}{}{api_path}", self.config.base_path.as_str(), paths::API)
    }
}

impl std::ops::Deref for Server {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}
