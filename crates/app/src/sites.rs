//! Sites as tenants, and how people join and leave them.

use berth_engine::rights::{Action, may_grant};
use berth_model::branding::Accent;
use berth_model::event::{Audience, EventKind};
use berth_model::person::{Person, PersonState, TimeZone};
use berth_model::reference::{PersonReference, SiteReference};
use berth_model::site::{JoinRequest, JoinState, Membership, OutsiderView, Role, Site};
use berth_model::{JoinRequestId, Name, SiteId, Text};
use berth_store::{Conn, closures, sites};
use serde_json::json;

use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::place::Place;
use crate::record::Change;
use crate::transact::transact;
use crate::version;

#[derive(Debug, Clone)]
pub struct NewSite {
    pub name: Name,
    pub title: Text,
    pub time_zone: TimeZone,
    pub outsiders_see: OutsiderView,
}

#[derive(Debug, Clone, Default)]
pub struct SiteChange {
    pub name: Option<Name>,
    pub title: Option<Text>,
    pub time_zone: Option<TimeZone>,
    pub outsiders_see: Option<OutsiderView>,
    /// `Some(None)` removes the site's own accent.
    pub accent: Option<Option<Accent>>,
}

impl App {
    pub async fn create_site(&self, caller: &Caller, new: NewSite) -> Result<Made<Place>> {
        caller.may(Action::CreateSite, false, "site")?;
        let now = self.now();
        let site = Site {
            id: SiteId(fresh(now)),
            name: new.name,
            title: new.title,
            time_zone: new.time_zone,
            outsiders_see: new.outsiders_see,
            accent: None,
            logo: None,
            version: 1,
            policy_version: 1,
            created_at: now,
        };
        transact!(self, tx => {
            if let Some(earlier) = self.first_time(&mut tx, caller, site.id).await? {
                let found = sites::by_id_for(&mut tx, earlier, caller.id()).await?;
                let (site, role) = found.ok_or(Error::NotFound("site"))?;
                return Ok(Made::before(Place::of(caller, site, role)));
            }
            sites::insert(&mut tx, &site).await?;
            let change = Change::new("site.create", Some(site.id), site.id).after(&site);
            self.record(&mut tx, caller, change.tell(EventKind::SiteCreated, Audience::Members)).await?;
            Ok(Made::now(Place::of(caller, site.clone(), None)))
        })
        .map_err(|error: Error| error.taken(&site.name))
    }

    pub async fn get_site(&self, caller: &Caller, site: &SiteReference) -> Result<Place> {
        let mut reader = self.store.read().await?;
        self.place(&mut reader, caller, site, Action::SeeSite).await
    }

    /// The sites that this caller may know, by name.
    pub async fn list_sites(&self, caller: &Caller, after: &str, limit: u64) -> Result<Vec<Place>> {
        let mut reader = self.store.read().await?;
        let all = caller.person.global_admin;
        let found = sites::list_for(&mut reader, caller.id(), all, after, limit).await?;
        let mut places = Vec::new();
        for (site, role) in found {
            let place = Place::of(caller, site, role);
            match place.may(caller, Action::SeeSite, false, "site") {
                Ok(()) => places.push(place),
                // Hidden sites are left out. A token without the scope to see sites gets the error.
                Err(Error::NotFound(_)) => {}
                Err(refused) => return Err(refused),
            }
        }
        Ok(places)
    }

    pub async fn update_site(
        &self,
        caller: &Caller,
        site: &SiteReference,
        version: Option<u64>,
        change: SiteChange,
    ) -> Result<Place> {
        let wanted = change.name.clone();
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeSite).await?;
            place.may(caller, Action::ManageSite, false, "site")?;
            let before = place.site;
            version::expect(version, before.version)?;
            let after = Site {
                name: change.name.clone().unwrap_or(before.name.clone()),
                title: change.title.clone().unwrap_or(before.title.clone()),
                time_zone: change.time_zone.clone().unwrap_or(before.time_zone.clone()),
                outsiders_see: change.outsiders_see.unwrap_or(before.outsiders_see),
                accent: change.accent.clone().unwrap_or(before.accent.clone()),
                version: before.version + 1,
                ..before.clone()
            };
            if !self.write_site(&mut tx, caller, &before, &after).await? {
                return Err(version::overtaken(before.version));
            }
            Ok(Place { site: after, ..place })
        })
        .map_err(|error: Error| error.taken(wanted.map(String::from).unwrap_or_default()))
    }

    /// Writes a changed site with its audit entry and event. Returns `false` and writes nothing if another change came
    /// first.
    pub(crate) async fn write_site(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        before: &Site,
        after: &Site,
    ) -> Result<bool> {
        if !sites::update(conn, after, before.version).await? {
            return Ok(false);
        }
        if after.time_zone != before.time_zone {
            // With another time zone, the days of its calendars have changed.
            closures::all_due(conn, after.id, self.now()).await?;
        }
        let change = Change::new("site.change", Some(after.id), after.id);
        let change = change.before(before).after(after);
        let change = change.tell(EventKind::SiteChanged, Audience::Members);
        self.record(conn, caller, change).await?;
        Ok(true)
    }

    pub async fn list_members(
        &self,
        caller: &Caller,
        site: &SiteReference,
        after: &str,
        limit: u64,
    ) -> Result<Vec<(Person, Membership)>> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeMembers)
            .await?;
        Ok(sites::members(&mut reader, place.id(), after, limit).await?)
    }

    /// Adds a member, or changes a role. Nobody gives or takes a role above their own.
    pub async fn set_member(
        &self,
        caller: &Caller,
        site: &SiteReference,
        person: &PersonReference,
        role: Role,
    ) -> Result<(Person, Membership)> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::ManageMembers).await?;
            if !may_grant(place.standing, role) {
                return Err(Error::NotAllowed { needs: "nobody gives a role above their own".into() });
            }
            let person = self.person(&mut tx, person).await?;
            if person.state != PersonState::Active {
                return Err(Error::NotFound("active person"));
            }
            let before = sites::membership_of(&mut tx, place.id(), person.id).await?;
            let since = before.as_ref().map_or(self.now(), |before| before.since);
            let after = Membership { site: place.id(), person: person.id, role, since };
            sites::set_member(&mut tx, &after).await?;
            let (action, kind) = match before {
                None => ("member.add", EventKind::MemberJoined),
                Some(_) => ("member.change", EventKind::MemberChanged),
            };
            let record = Change::new(action, Some(place.id()), person.id);
            let record = if let Some(before) = &before { record.before(before) } else { record };
            let told = json!({ "person": person.id, "login": person.login, "role": role });
            self.record(&mut tx, caller, record.after(&after).tell_only(kind, Audience::Members, told)).await?;
            Ok((person, after))
        })
    }

    pub async fn ask_to_join(
        &self,
        caller: &Caller,
        site: &SiteReference,
        message: Option<Text>,
    ) -> Result<Made<(Place, JoinRequest)>> {
        let now = self.now();
        let id = JoinRequestId(fresh(now));
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::AskToJoin).await?;
            if let Some(earlier) = self.first_time(&mut tx, caller, id).await? {
                let request = sites::join_request_by_id(&mut tx, place.id(), earlier).await?;
                return Ok(Made::before((place, request.ok_or(Error::IdempotencyMismatch)?)));
            }
            if sites::membership_of(&mut tx, place.id(), caller.id()).await?.is_some() {
                return Err(Error::AlreadyMember(place.site.name));
            }
            let request = JoinRequest {
                id,
                site: place.id(),
                person: caller.id(),
                message: message.clone(),
                state: JoinState::Waiting,
                created_at: now,
            };
            sites::insert_join_request(&mut tx, &request).await.map_err(|error| {
                let is_second = Error::from(error).is_refused(berth_store::Refused::Taken);
                if is_second { Error::JoinWaiting } else { Error::NotFound("site") }
            })?;
            let record = Change::new("join.ask", Some(place.id()), request.id).after(&request);
            self.record(&mut tx, caller, record.tell(EventKind::JoinRequested, Audience::Admins)).await?;
            Ok(Made::now((place, request)))
        })
    }

    pub async fn list_join_requests(
        &self,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<(Place, Vec<(JoinRequest, Person)>)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeJoinRequests)
            .await?;
        let requests = sites::join_requests(&mut reader, place.id()).await?;
        Ok((place, requests))
    }

    /// Accepts a join request with a role, or declines it (no role).
    pub async fn decide_join(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: JoinRequestId,
        role: Option<Role>,
        reason: Option<Text>,
    ) -> Result<(Place, JoinRequest, Person)> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::DecideJoin).await?;
            if role.is_some_and(|role| !may_grant(place.standing, role)) {
                return Err(Error::NotAllowed { needs: "nobody gives a role above their own".into() });
            }
            let request = sites::join_request_by_id(&mut tx, place.id(), id).await?.ok_or(Error::NotFound("join request"))?;
            let state = if role.is_some() { JoinState::Accepted } else { JoinState::Declined };
            if !sites::decide_join_request(&mut tx, id, state, self.now(), caller.id()).await? {
                return Err(Error::JoinDecided);
            }
            let person = self.person(&mut tx, &berth_model::Reference::Id(request.person)).await?;
            if let Some(role) = role {
                sites::set_member(&mut tx, &Membership { site: place.id(), person: person.id, role, since: self.now() }).await?;
            }
            let after = JoinRequest { state, ..request.clone() };
            let record = Change::new("join.decide", Some(place.id()), id).before(&request).after(&after).because(reason.clone());
            let told = json!({ "person": person.id, "login": person.login, "role": role, "reason": reason });
            let (kind, audience) = match role {
                Some(_) => (EventKind::MemberJoined, Audience::Members),
                None => (EventKind::JoinDeclined, Audience::Person(person.id)),
            };
            self.record(&mut tx, caller, record.tell_only(kind, audience, told)).await?;
            Ok((place, after, person))
        })
    }
}
