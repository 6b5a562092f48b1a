//! The table of routes: which app each label leads to. Only its holder writes it, and a change applies to the next
//! request. Finding a route takes as long among five thousand as alone.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderValue;
use tokio_util::sync::CancellationToken;

use crate::activity::{Activity, Tally};
use crate::address::{Addressing, Label};
use crate::connection::Upstream;
use crate::pool::Pool;

/// The endpoint of an app, and the headers it expects.
#[derive(Debug, Clone)]
pub struct Target {
    pub upstream: Upstream,
    pub host: HostSent,
    pub prefix: Prefix,
    /// The `Authorization` that the app checks. A visitor's own never reaches such an app.
    pub authorization: Option<HeaderValue>,
}

/// The `Host` that an app gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostSent {
    /// The host in the visitor's address bar.
    Public,
    /// For apps that accept only a fixed host name. `Origin` and `Referer` are made to agree with it.
    Fixed(HeaderValue),
}

/// How the proxy treats the session's base path, where sessions share an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// The app is configured to serve below it.
    Kept,
    /// The app serves at the root, and the proxy corrects its redirects.
    Stripped,
}

/// The route to a session's app, as long as it is in the table.
#[derive(Debug)]
pub struct Route {
    label: Label,
    pub(crate) target: Target,
    pub(crate) face: Face,
    pub(crate) pool: Pool,
    pub(crate) tally: Tally,
    pub(crate) over: CancellationToken,
}

/// The public address of a session, as prepared headers.
#[derive(Debug)]
pub(crate) struct Face {
    pub scheme: HeaderValue,
    pub host: HeaderValue,
    pub origin: HeaderValue,
    /// With a slash at its end; `/` where the session has an origin of its own.
    pub base: String,
    pub is_isolated: bool,
}

impl Face {
    fn new(addressing: &Addressing, label: &Label) -> Self {
        // Schemes, hosts and labels contain only characters that a header may carry.
        let value = |text: &str| {
            HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
        };
        Self {
            scheme: HeaderValue::from_static(addressing.scheme()),
            host: value(&addressing.host(label)),
            origin: value(&addressing.origin(label)),
            base: addressing.base(label),
            is_isolated: addressing.is_isolating(),
        }
    }
}

impl Route {
    pub fn label(&self) -> &Label {
        &self.label
    }

    pub fn activity(&self) -> Activity {
        self.tally.read()
    }
}

/// All routes. Lookups and changes may run concurrently.
#[derive(Debug)]
pub struct Routes {
    addressing: Addressing,
    table: RwLock<HashMap<Label, Arc<Route>>>,
    /// Ends all open requests and sockets of every route.
    all_over: CancellationToken,
}

impl Routes {
    pub fn new(addressing: Addressing) -> Self {
        Self {
            addressing,
            table: RwLock::default(),
            all_over: CancellationToken::new(),
        }
    }

    pub fn addressing(&self) -> &Addressing {
        &self.addressing
    }

    /// Sends the label's visitors to `target` from now on. Requests and sockets to the previous target are cut.
    pub fn put(&self, label: Label, target: Target) {
        let route = Route {
            face: Face::new(&self.addressing, &label),
            target,
            pool: Pool::default(),
            tally: Tally::default(),
            over: self.all_over.child_token(),
            label: label.clone(),
        };
        end(self.write().insert(label, Arc::new(route)));
    }

    /// Removes a route and cuts its open requests and sockets. Returns whether there was one.
    pub fn remove(&self, label: &Label) -> bool {
        end(self.write().remove(label))
    }

    pub fn get(&self, label: &str) -> Option<Arc<Route>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.get(label).cloned()
    }

    pub fn all(&self) -> Vec<Arc<Route>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.values().cloned().collect()
    }

    /// Cuts all open requests and sockets, for when the server stops.
    pub fn close(&self) {
        self.all_over.cancel();
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<Label, Arc<Route>>> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a route that has left the table. It runs outside the table's lock, because cutting wakes tasks that may need
/// the lock.
fn end(route: Option<Arc<Route>>) -> bool {
    let Some(route) = route else {
        return false;
    };
    route.over.cancel();
    route.pool.clear();
    true
}
