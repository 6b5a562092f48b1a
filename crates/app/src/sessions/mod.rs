//! Sessions: web apps that people work in.
//!
//! A session is a name, an address and a home. It runs as a workload of its owner, submitted in the transaction that
//! starts the session ([`start`]). The controller follows it from the queue to the first answer of its app, and starts
//! it again after a failure ([`follow`]). It stops idle sessions ([`cull`]), and lends their GPUs before that
//! ([`lend`]). It notifies owners of out-of-memory kills ([`memory`]). [`visits`] decides who may enter, and for how
//! long.

mod act;
mod cull;
mod follow;
mod hub;
mod lend;
mod look;
mod memory;
mod start;
mod visits;

pub use berth_drivers::door::{Door, connect};
pub use berth_drivers::local::hub as hub_socket;
use berth_model::SessionId;
use berth_model::reference::SessionReference;
use berth_model::session::Session;
use berth_store::{Conn, sessions};

pub use act::SessionChange;
pub use cull::Culling;
pub use hub::{HUB_CLIENT, HUB_DEFAULT, HUB_WORD, HubAsker, hub_name};
pub use look::{Opened, ProfileView, SessionFilter, SessionView, VisitView};
pub use start::NewSession;
pub use visits::{Entered, FoundDoor, Invitation, Key, OpenDoor};

pub(crate) use cull::Pulse;
pub(crate) use follow::Asking;

use crate::App;
use crate::caller::Caller;
use crate::error::{Error, Result};
use crate::place::Place;

/// Addresses of sessions for browsers. Only the code that serves sessions knows them.
pub trait Addresses: Send + Sync + std::fmt::Debug {
    /// Scheme, host and port, as in a browser's bar.
    fn origin(&self, label: &str) -> String;
    /// The path below which the session answers, with a slash at both ends.
    fn base(&self, label: &str) -> String;
    /// Berth's own address.
    fn home(&self) -> Home;
}

/// Berth's own address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// Scheme, host and port.
    pub origin: String,
    /// The path below which it answers, without a slash at its end.
    pub base: String,
}

/// Every session has a host name of its own on this machine.
#[derive(Debug, Clone, Copy)]
pub struct AtLocalhost;

impl Addresses for AtLocalhost {
    fn origin(&self, label: &str) -> String {
        format!("http://{label}.localhost")
    }

    fn base(&self, _label: &str) -> String {
        "/".to_owned()
    }

    fn home(&self) -> Home {
        Home {
            origin: "http://localhost".to_owned(),
            base: String::new(),
        }
    }
}

impl App {
    /// Finds a session: any session by its id, or the caller's own by its name.
    pub(crate) async fn session(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        session: &SessionReference,
    ) -> Result<Session> {
        let found = match session {
            SessionReference::Id(id) => sessions::get(conn, *id).await?,
            SessionReference::Name(name) => {
                sessions::by_name(conn, place.id(), caller.id(), name).await?
            }
        };
        let here = found.filter(|found| found.site == place.id());
        here.ok_or(Error::NotFound("session"))
    }

    /// The same by id, locked until the transaction ends.
    pub(crate) async fn session_locked(&self, conn: &mut Conn, id: SessionId) -> Result<Session> {
        let found = sessions::get_locked(conn, id).await?;
        found.ok_or(Error::NotFound("session"))
    }
}
