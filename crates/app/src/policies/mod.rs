//! Policies: set, read, remove. `reservations::judge` applies them to a booking.
//!
//! Every version stays readable. A change lists the existing bookings that would break it, and does not change them.

mod kept;
mod names;
mod set;
mod standing;
mod test;

use berth_engine::policy::Calendar;
use berth_engine::rights::Action;
use berth_model::Span;
use berth_model::closure::ClosureKind;
use berth_model::policy::{Holiday, Part, Scope, When};
use berth_model::reference::SiteReference;
use berth_model::site::Site;
pub use berth_store::policies::Version;
use berth_store::{Conn, closures, policies};

pub(crate) use kept::{Kept, KeptPolicies};
pub(crate) use names::Renamed;
pub use set::{Broken, PolicyChange};
pub(crate) use standing::{booking, role_in, roles};
pub use test::{PolicyTest, Tested};

use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::Result;

/// The place where a policy is set.
#[derive(Debug, Clone)]
pub enum PolicyAt {
    Ceilings,
    Defaults,
    Site(SiteReference, Part),
}

impl PolicyAt {
    fn scope(&self) -> Scope {
        match self {
            PolicyAt::Ceilings => Scope::Ceilings,
            PolicyAt::Defaults => Scope::Defaults,
            PolicyAt::Site(_, part) => Scope::Site(part.clone()),
        }
    }
}

/// Enough for years of holidays, from many calendars.
const HOLIDAYS_MAX: u64 = 10_000;
/// More versions than anybody reads at once.
const HISTORY_MAX: u64 = 1_000;

impl App {
    /// All policies in force in a site: its own, and those of the whole installation.
    pub async fn list_policies(
        &self,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<(Vec<Version>, Directory)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeePolicies)
            .await?;
        let mut found = policies::holding_in(&mut reader, place.id()).await?;
        found.sort_by(|a, b| a.scope.cmp(&b.scope));
        let mut directory = Directory::with_site(&place.site);
        directory
            .learn_people(&mut reader, found.iter().filter_map(|one| one.set_by))
            .await?;
        Ok((found, directory))
    }

    /// The ceilings and the defaults.
    pub async fn list_global_policies(&self, caller: &Caller) -> Result<(Vec<Version>, Directory)> {
        caller.may(Action::SeeGlobalPolicies, false, "policy")?;
        let mut reader = self.store.read().await?;
        let found = policies::of_all(&mut reader).await?;
        let mut directory = Directory::default();
        directory
            .learn_people(&mut reader, found.iter().filter_map(|one| one.set_by))
            .await?;
        Ok((found, directory))
    }

    /// Every version of a policy, newest first.
    pub async fn policy_history(
        &self,
        caller: &Caller,
        at: &PolicyAt,
    ) -> Result<(Vec<Version>, Directory)> {
        let mut reader = self.store.read().await?;
        let site = match at {
            PolicyAt::Site(site, _) => Some(
                self.place(&mut reader, caller, site, Action::SeePolicies)
                    .await?
                    .site,
            ),
            PolicyAt::Ceilings | PolicyAt::Defaults => {
                caller.may(Action::SeeGlobalPolicies, false, "policy")?;
                None
            }
        };
        let id = site.as_ref().map(|site| site.id);
        let found = policies::history(&mut reader, id, &at.scope(), HISTORY_MAX).await?;
        let mut directory = site
            .as_ref()
            .map_or_else(Directory::default, Directory::with_site);
        directory
            .learn_people(&mut reader, found.iter().filter_map(|one| one.set_by))
            .await?;
        Ok((found, directory))
    }

    /// A site's clock and holidays, for its policies. Only this function turns a site's closure calendars into
    /// holidays. It reads them only if `holidays_within` is given.
    pub(crate) async fn calendar_of(
        &self,
        conn: &mut Conn,
        site: &Site,
        holidays_within: Option<Span>,
    ) -> Result<Calendar> {
        let found = match holidays_within {
            Some(span) => {
                let kind = Some(ClosureKind::Holidays);
                closures::closed_between(conn, site.id, kind, span, HOLIDAYS_MAX).await?
            }
            None => Vec::new(),
        };
        let holidays = found.into_iter().map(|met| Holiday {
            name: met.closed.title,
            when: When::Span(met.closed.span),
        });
        let holidays: Vec<Holiday> = holidays.collect();
        Ok(Calendar::new(site.time_zone.rules(), &holidays))
    }
}
