//! Removes a person from a site or from Berth. A preview lists what they hold; the removal settles it in one
//! transaction.

use berth_engine::rights::{Action, Grant, may_grant};
use berth_model::event::{Audience, EventKind};
use berth_model::person::{Person, PersonState};
use berth_model::reference::{PersonReference, SiteReference};
use berth_model::reservation::{Reservation, State};
use berth_model::site::Site;
use berth_model::{SiteId, Text};
use berth_store::{
    Conn, feeds, notifications, people, reservations, sessions, sign_ins, sites, visits, workloads,
};
use serde_json::json;

use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::record::{By, Change};
use crate::transact::transact;

/// The consequences of a person's removal.
#[derive(Debug, Clone)]
pub struct Settlement {
    pub person: Person,
    /// Each reservation that still held something, with the state in which it ends.
    pub reservations: Vec<(Reservation, State)>,
    /// How many workloads are cancelled, including the workloads of sessions.
    pub workloads: u64,
    /// How many sessions are stopped.
    pub sessions: u64,
    pub sites: Vec<Site>,
    pub tokens_revoked: u64,
    pub directory: Directory,
}

/// Whether to apply a change, or only to preview it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Apply,
    DryRun,
}

impl App {
    /// Ends a membership, and cancels the member's reservations in the site.
    pub async fn remove_member(
        &self,
        caller: &Caller,
        site: &SiteReference,
        person: &PersonReference,
        mode: Mode,
    ) -> Result<Settlement> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeMembers).await?;
            place.may(caller, Action::RemoveMember, caller.is(person), "member")?;
            let person = self.member_named(&mut tx, place.id(), person, "member").await?;
            let membership = sites::membership_of(&mut tx, place.id(), person.id).await?;
            let membership = membership.ok_or(Error::NotFound("member"))?;
            if person.id != caller.id() && !may_grant(place.standing, Grant::InSite(membership.role)) {
                return Err(Error::NotAllowed { needs: "nobody takes a role above their own".into() });
            }
            if mode == Mode::Apply {
                // First, so that a concurrent booking by them waits and then finds the membership gone.
                sites::remove_member(&mut tx, place.id(), person.id).await?;
            }
            let settled = self.settle(&mut tx, caller, &person, Some(place.id()), mode).await?;
            let (workloads, sessions) = self.settle_work(&mut tx, caller, &person, Some(place.id()), mode).await?;
            if mode == Mode::Apply {
                let record = Change::new("member.remove", Some(place.id()), person.id).before(&membership);
                let told = json!({ "person": person.id, "login": person.login });
                self.record(&mut tx, caller, record.tell_only(EventKind::MemberLeft, Audience::Members, told)).await?;
            }
            let mut directory = Directory::with_site(&place.site);
            directory.add_person(&person);
            let sites = vec![place.site];
            Ok(Settlement { person, reservations: settled, workloads, sessions, sites, tokens_revoked: 0, directory })
        })
    }

    /// Removes a person for good: ends their memberships and sign-ins, revokes their tokens, and cancels their
    /// reservations.
    pub async fn remove_person(
        &self,
        caller: &Caller,
        person: &PersonReference,
        mode: Mode,
    ) -> Result<Settlement> {
        transact!(self, tx => {
            caller.may(Action::ManagePeople, false, "person")?;
            let person = self.person(&mut tx, person).await?;
            caller.expects(person.version)?;
            if person.global_admin && people::other_global_admins(&mut tx, person.id).await? == 0 {
                return Err(Error::LastAdmin(person.login.to_string()));
            }
            let now = self.now();
            let belongs: Vec<Site> =
                sites::memberships_of(&mut tx, person.id).await?.into_iter().map(|(site, _)| site).collect();
            let live = |token: &berth_model::person::Token| token.revoked_at.is_none() && token.expires_at > now;
            let tokens = sign_ins::tokens_of(&mut tx, person.id).await?.into_iter().filter(live).count();
            if mode == Mode::Apply {
                for site in &belongs {
                    sites::remove_member(&mut tx, site.id, person.id).await?;
                }
                sign_ins::end_all(&mut tx, person.id).await?;
                sign_ins::revoke_all_tokens(&mut tx, person.id, now).await?;
                sign_ins::forget_networks(&mut tx, person.id).await?;
                feeds::remove_all(&mut tx, person.id).await?;
                notifications::remove_all(&mut tx, person.id).await?;
                people::forget_password(&mut tx, person.id).await?;
            }
            let settled = self.settle(&mut tx, caller, &person, None, mode).await?;
            let (workloads, sessions) = self.settle_work(&mut tx, caller, &person, None, mode).await?;
            let mut directory = Directory::default();
            for (reservation, _) in &settled {
                if let Some((site, _)) = sites::by_id_for(&mut tx, reservation.site, caller.id()).await? {
                    directory.add_site(&site);
                }
            }
            if mode == Mode::Apply {
                let gone = Person { state: PersonState::Removed, global_admin: false, email: None, ..person.clone() };
                people::update(&mut tx, &gone, person.version).await?;
                let record = Change::new("person.remove", None, person.id).before(&person);
                self.record(&mut tx, caller, record.tell(EventKind::PersonRemoved, Audience::Admins)).await?;
            }
            directory.add_person(&person);
            belongs.iter().for_each(|site| directory.add_site(site));
            let tokens_revoked = tokens as u64;
            Ok(Settlement { person, reservations: settled, workloads, sessions, sites: belongs, tokens_revoked, directory })
        })
    }

    /// Cancels waiting and running workloads, and stops sessions. Returns how many of both. Their files stay: the
    /// machine's admin decides about a home.
    async fn settle_work(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        person: &Person,
        site: Option<SiteId>,
        mode: Mode,
    ) -> Result<(u64, u64)> {
        let filter = sessions::Filter {
            site,
            owner: Some(person.id),
            is_live: true,
            limit: u64::from(u32::MAX),
        };
        let live = sessions::list(conn, &filter).await?;
        let jobs = workloads::live_of(conn, person.id, site).await?;
        let counts = (jobs.len() as u64, live.len() as u64);
        if mode == Mode::DryRun {
            return Ok(counts);
        }
        let reason: Option<Text> = format!("{} left", person.display_name).parse().ok();
        for session in live {
            visits::end(conn, session.id, None, self.now()).await?;
            let version = session.version;
            // A session that already stops needs nothing more.
            if let Ok(after) = session.stop(reason.clone(), self.now()) {
                sessions::update(conn, &after, version).await?;
            }
        }
        for job in jobs {
            self.cancel_inside(conn, caller, job, reason.clone())
                .await?;
        }
        Ok(counts)
    }

    async fn settle(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        person: &Person,
        site: Option<SiteId>,
        mode: Mode,
    ) -> Result<Vec<(Reservation, State)>> {
        let reason: Option<Text> = format!("{} left", person.display_name).parse().ok();
        let mut settled = Vec::new();
        for reservation in reservations::holding_of(conn, person.id, site).await? {
            // A reservation that is ending needs nothing more; its claims end with it.
            let Ok(transition) = reservation.state.cancel() else {
                continue;
            };
            let before = reservation.clone();
            if mode == Mode::Apply {
                self.step(
                    conn,
                    &By::from(caller),
                    reservation,
                    transition,
                    reason.clone(),
                )
                .await?;
            }
            settled.push((before, transition.to()));
        }
        Ok(settled)
    }
}
