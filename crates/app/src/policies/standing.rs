//! Existing bookings in the form that the policies read, and the bookings that a change would break.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::policy::{Booking, Breach, Policies, breaking};
use berth_model::reservation::{Reservation, State};
use berth_model::site::{Role, Site};
use berth_model::{PersonId, ReservationId, SiteId, Span};
use berth_store::{Conn, people, reservations, sites};

use crate::App;
use crate::directory::Directory;
use crate::error::Result;

const PAGE: u64 = 1_000;

/// A reservation in the form that the policies read. `directory` knows its resources, their types and its project.
pub(crate) fn booking(of: &Reservation, role: Role, directory: &Directory) -> Booking {
    let type_of = |resource| {
        let resource = directory.resources.get(resource)?;
        directory.types.get(&resource.type_id)
    };
    let kinds = of.items.iter().filter_map(|item| type_of(&item.resource));
    let project = of.project.and_then(|id| directory.projects.get(&id));
    Booking {
        id: Some(of.id),
        person: of.owner,
        role,
        project: project.map(|project| project.name.clone()),
        types: kinds.map(|kind| kind.name.clone()).collect(),
        resources: of.items.iter().map(|item| item.resource).collect(),
        span: of.span,
        stands_from: None,
    }
}

impl App {
    /// Reservations of one site, in the form that the policies read.
    pub(crate) async fn bookings(
        &self,
        conn: &mut Conn,
        site: SiteId,
        reservations: &[Reservation],
        directory: &mut Directory,
    ) -> Result<Vec<Booking>> {
        let items = reservations.iter().flat_map(|one| &one.items);
        let resources: BTreeSet<_> = items.map(|item| item.resource).collect();
        directory.learn_resources(conn, resources).await?;
        let projects = reservations.iter().filter_map(|one| one.project);
        directory
            .learn_projects(conn, projects.collect::<BTreeSet<_>>())
            .await?;
        let owners: BTreeSet<PersonId> = reservations.iter().map(|one| one.owner).collect();
        let roles = roles(conn, site, owners).await?;
        let booking = |one| booking(one, role_in(&roles, one.owner), directory);
        Ok(reservations.iter().map(booking).collect())
    }

    /// The existing bookings of a site that `after` breaks: by the changed policy itself, or by another policy that now
    /// takes effect. Bookings that broke another policy before are left out.
    pub(super) async fn broken_by(
        &self,
        conn: &mut Conn,
        site: &Site,
        before: &Policies,
        after: &Policies,
        changed: &berth_model::policy::Scope,
    ) -> Result<Vec<(ReservationId, Vec<Breach>)>> {
        let now = self.now();
        let mut directory = Directory::with_site(site);
        let mut standing = Vec::new();
        let mut filter = reservations::Filter {
            site: Some(site.id),
            states: STANDING.to_vec(),
            from: Some(now),
            limit: PAGE,
            ..Default::default()
        };
        loop {
            let page = reservations::list(conn, &filter).await?;
            standing.extend(self.bookings(conn, site.id, &page, &mut directory).await?);
            match page.last() {
                Some(last) if page.len() as u64 == PAGE => {
                    filter.after = Some((last.span.start(), last.id));
                }
                _ => break,
            }
        }
        let hull = standing.iter().map(|one| one.span).reduce(Span::hull);
        let calendar = self.calendar_of(conn, site, hull).await?;
        let known: BTreeSet<_> = breaking(before, &calendar, &standing, now)
            .into_iter()
            .flat_map(|(id, breaches)| breaches.into_iter().map(move |breach| (id, breach.rule)))
            .collect();
        let mut broken = breaking(after, &calendar, &standing, now);
        for (id, breaches) in &mut broken {
            breaches.retain(|breach| {
                breach.from.contains(changed) || !known.contains(&(*id, breach.rule))
            });
        }
        broken.retain(|(_, breaches)| !breaches.is_empty());
        Ok(broken)
    }
}

/// The states of bookings that hold resources and are not about to end.
const STANDING: [State; 5] = [
    State::Held,
    State::PendingApproval,
    State::Confirmed,
    State::Starting,
    State::Active,
];

/// The role of each of these people in a site. Global admins count as its admins, even if they are not members.
pub(crate) async fn roles(
    conn: &mut Conn,
    site: SiteId,
    of: BTreeSet<PersonId>,
) -> Result<BTreeMap<PersonId, Role>> {
    if of.is_empty() {
        return Ok(BTreeMap::new());
    }
    let of: Vec<PersonId> = of.into_iter().collect();
    let mut roles: BTreeMap<PersonId, Role> = sites::roles_of(conn, site, of.clone())
        .await?
        .into_iter()
        .collect();
    for person in people::named(conn, of).await? {
        if person.global_admin {
            roles.insert(person.id, Role::SiteAdmin);
        }
    }
    Ok(roles)
}

/// A person who left the site counts as a member.
pub(crate) fn role_in(roles: &BTreeMap<PersonId, Role>, person: PersonId) -> Role {
    roles.get(&person).copied().unwrap_or(Role::Member)
}
