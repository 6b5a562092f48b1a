//! Keeps the proxy's table in step with the sessions that let visitors in.
//!
//! Every change is made from a fresh look at that one session, under one lock, so that of two who look at the same time
//! the later one wins. What happened is told in the stream of events; the whole is compared now and then for what was
//! missed; and who asks for a session that is not in the table makes it looked for at once.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use berth_app::sessions::{self, Door, FoundDoor, OpenDoor};
use berth_app::{App, Result};
use berth_model::SessionId;
use berth_proxy::{Connect, HostSent, Label, Prefix, Proxy, Route, Routes, Target, Upstream};
use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use tokio::net::UnixStream;
use tokio::sync::{Mutex, Semaphore};

#[derive(Debug)]
pub struct Table {
    /// What stands in the proxy's table, and whose it is.
    held: std::sync::Mutex<HashMap<Label, OpenDoor>>,
    changing: Mutex<()>,
    asking: Semaphore,
}

/// So many at a time look for a session that is not in the table.
const ASKING_MAX: usize = 4;

impl Default for Table {
    fn default() -> Self {
        Self {
            held: Default::default(),
            changing: Mutex::default(),
            asking: Semaphore::new(ASKING_MAX),
        }
    }
}

impl Table {
    /// The way to a session that is not in the table, if it lets visitors in by now.
    pub async fn find(
        &self,
        app: &App,
        proxy: &Proxy,
        label: &Label,
    ) -> Result<Option<Arc<Route>>> {
        // Neither is ever closed. Strangers who make up labels wait for each other, and not what happens for them.
        let _place = self.asking.acquire().await;
        let _turn = self.changing.lock().await;
        if let Some(route) = proxy.routes.get(label.as_str()) {
            return Ok(Some(route));
        }
        match app.open_door(label.as_str()).await? {
            FoundDoor::Open(door) => self.settle(&proxy.routes, label, Some(door)),
            FoundDoor::Shut => self.settle(&proxy.routes, label, None),
            FoundDoor::Unknown(_) => {}
        }
        Ok(proxy.routes.get(label.as_str()))
    }

    /// Something happened to a session.
    pub async fn look_at(&self, app: &App, proxy: &Proxy, session: SessionId) -> Result<()> {
        let _turn = self.changing.lock().await;
        let (label, door) = match app.open_door_of(session).await? {
            FoundDoor::Open(door) => (door.label.parse().ok(), Some(door)),
            FoundDoor::Shut => (self.label_of(session), None),
            FoundDoor::Unknown(_) => return Ok(()),
        };
        if let Some(label) = label {
            self.settle(&proxy.routes, &label, door);
        }
        Ok(())
    }

    /// Compares all that stands here with all that should.
    pub async fn compare(&self, app: &App, proxy: &Proxy) -> Result<()> {
        let open = app.open_doors().await?;
        let mut standing = self.held().clone();
        let mut differing: Vec<SessionId> = Vec::new();
        for found in open {
            match found {
                FoundDoor::Open(door) => {
                    let held = standing.remove(door.label.as_str());
                    if !held.is_some_and(|held| is_same(&held, &door)) {
                        differing.push(door.session);
                    }
                }
                FoundDoor::Unknown(session) => standing.retain(|_, held| held.session != session),
                FoundDoor::Shut => {}
            }
        }
        differing.extend(standing.into_values().map(|door| door.session));
        for session in differing {
            self.look_at(app, proxy, session).await?;
        }
        Ok(())
    }

    /// When visitors last did something, by session; of the last little while only, for what is older was told before.
    pub fn acted(
        &self,
        proxy: &Proxy,
        now: Timestamp,
        lately: Duration,
    ) -> Vec<(SessionId, Timestamp)> {
        let held = self.held();
        let acted = |route: Arc<Route>| {
            let activity = route.activity();
            let since = SignedDuration::try_from(activity.since_acted).ok()?;
            let is_news = activity.requests > 0 && activity.since_acted < lately;
            let door = held.get(route.label()).filter(|_| is_news)?;
            Some((door.session, now.checked_sub(since).ok()?))
        };
        proxy.routes.all().into_iter().filter_map(acted).collect()
    }

    /// Whether the session's server asks Berth who its visitors are, as it would a JupyterHub.
    pub fn speaks_hub(&self, label: &Label) -> bool {
        self.held().get(label).is_some_and(|door| door.speaks_hub)
    }

    fn settle(&self, routes: &Routes, label: &Label, door: Option<OpenDoor>) {
        let mut held = self.held();
        match door {
            Some(door) if held.get(label).is_some_and(|held| is_same(held, &door)) => {}
            Some(door) => {
                routes.put(label.clone(), target(&door));
                held.insert(label.clone(), door);
            }
            None => {
                routes.remove(label);
                held.remove(label);
            }
        }
    }

    fn label_of(&self, session: SessionId) -> Option<Label> {
        let held = self.held();
        let mut found = held.iter().filter(|(_, door)| door.session == session);
        found.next().map(|(label, _)| label.clone())
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Label, OpenDoor>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_same(one: &OpenDoor, other: &OpenDoor) -> bool {
    one.session == other.session
        && one.door == other.door
        && one.knows_its_base == other.knows_its_base
        && one.speaks_hub == other.speaks_hub
}

/// The proxy's way to a run, with the key that only Berth has.
#[derive(Debug)]
struct ToRun(Door);

impl Connect for ToRun {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<UnixStream>> + Send + '_>> {
        Box::pin(sessions::connect(&self.0))
    }
}

fn target(door: &OpenDoor) -> Target {
    let authorization = door.door.authorization();
    Target {
        upstream: Upstream::connector(ToRun(door.door.clone())),
        authorization: authorization.and_then(|value| HeaderValue::try_from(value).ok()),
        host: HostSent::Public,
        prefix: match door.knows_its_base {
            true => Prefix::Kept,
            false => Prefix::Stripped,
        },
    }
}
