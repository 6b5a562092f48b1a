//! A site together with one caller's standing in it. Every use case in a site begins with it.

use berth_engine::rights::{Action, Standing, decide};
use berth_model::reference::SiteReference;
use berth_model::site::{Role, Site};
use berth_model::{Reference, SiteId};
use berth_store::{Conn, sites};

use crate::App;
use crate::caller::{Caller, verdict};
use crate::error::{Error, Result};

#[derive(Debug, Clone)]
pub struct Place {
    pub site: Site,
    pub standing: Standing,
    /// Whether blackouts have to be read. A booking learns together with the site that there are none.
    pub(crate) may_be_closed: bool,
}

impl Place {
    pub fn id(&self) -> SiteId {
        self.site.id
    }

    pub(crate) fn of(caller: &Caller, site: Site, role: Option<Role>) -> Self {
        let standing = Standing::of(&caller.person, role, site.outsiders_see);
        Self {
            site,
            standing,
            may_be_closed: true,
        }
    }

    fn for_action(
        caller: &Caller,
        found: Option<(Site, Option<Role>)>,
        action: Action,
    ) -> Result<Self> {
        let (site, role) = found.ok_or(Error::NotFound("site"))?;
        let place = Self::of(caller, site, role);
        place.may(caller, action, true, "site")?;
        Ok(place)
    }

    /// Checks the permission table for an action in this site. `is_own` says whether the object is the caller's own.
    pub(crate) fn may(
        &self,
        caller: &Caller,
        action: Action,
        is_own: bool,
        what: &'static str,
    ) -> Result<()> {
        verdict(decide(self.standing, is_own, &caller.scopes, action), what)
    }

    /// Whether the caller may do this, as a `bool`.
    pub fn can(&self, caller: &Caller, action: Action) -> bool {
        self.may(caller, action, false, "site").is_ok()
    }
}

impl App {
    /// The site, if the caller may do `action` there. "Not found" covers both a hidden and a missing site.
    pub(crate) async fn place(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        site: &SiteReference,
        action: Action,
    ) -> Result<Place> {
        let found = match site {
            Reference::Id(id) => sites::by_id_for(conn, *id, caller.id()).await?,
            Reference::Name(name) => sites::by_name_for(conn, name, caller.id()).await?,
        };
        Place::for_action(caller, found, action)
    }

    /// The site for a booking, inside its transaction. Locks the membership until the transaction ends.
    pub(crate) async fn booking_place(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<Place> {
        let found = sites::held_for(conn, site, caller.id()).await?;
        let (found, has_blackouts) = found.unzip();
        let place = Place::for_action(caller, found, Action::Book)?;
        Ok(Place {
            may_be_closed: has_blackouts.unwrap_or(true),
            ..place
        })
    }
}
