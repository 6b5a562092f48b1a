//! Who enters a session, and for how long.
//!
//! A session has an address of its own, where nobody is signed in. A visitor signs in at Berth's address and gets a
//! code there. The code is valid once and for a minute. At the session's address, the visitor exchanges it for a key.
//! The key is valid as long as the sign-in or token behind it, and as long as the visitor may be there. Every use
//! checks this again.

use berth_drivers::backend::{Door, Trouble};
use berth_engine::rights::{Action, Standing};
use berth_model::event::{Audience, EventKind};
use berth_model::person::{Person, PersonState};
use berth_model::session::{Access, Session, State, Visit};
use berth_model::{SessionId, SiteId, Text, VisitId};
use berth_store::{Conn, people, sessions, sign_ins, sites, visits};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::follow::Followed;
use super::hub::speaks_hub;
use crate::App;
use crate::accounts::{is_random_text, random_text, stored_hash};
use crate::caller::{Caller, Via};
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::record::Change;
use crate::transact::transact;

/// How long a code is valid: a redirect takes no time.
const CODE: SignedDuration = SignedDuration::from_mins(1);
/// After this time a browser signs in again, which nobody notices.
const VISIT: SignedDuration = SignedDuration::from_hours(12);

/// A code for one redirect to a session's address.
#[derive(Debug, Clone)]
pub struct Invitation {
    pub session: Session,
    pub code: Key,
}

/// The secret that a browser shows at a session's address.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    pub fn new(text: String) -> Key {
        Key(text)
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether Berth could have issued it.
    pub fn is_well_formed(&self) -> bool {
        is_random_text(&self.0)
    }

    fn drawn() -> Key {
        Key(random_text())
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// A person who may be in a session at this moment.
#[derive(Debug, Clone)]
pub struct Entered {
    pub session: SessionId,
    pub site: SiteId,
    pub person: Person,
    pub access: Access,
    /// Until then, only an event makes another check necessary.
    pub expires_at: Timestamp,
}

/// Result of a lookup of a session's endpoint.
#[derive(Debug, Clone)]
pub enum FoundDoor {
    Open(OpenDoor),
    /// The session accepts no visitors.
    Shut,
    /// The machine did not answer. Visitors inside are not affected.
    Unknown(SessionId),
}

/// A session that accepts visitors, and its endpoint.
#[derive(Debug, Clone)]
pub struct OpenDoor {
    pub session: SessionId,
    pub label: String,
    pub door: Door,
    /// Whether the app answers below the base path that it was given.
    pub knows_its_base: bool,
    /// Whether the app takes Berth for a JupyterHub, and asks Berth who its visitors are.
    pub speaks_hub: bool,
}

impl App {
    /// Lets the caller enter a session, if they may: their own, one shared with them, or another for a reason that its
    /// owner sees.
    pub async fn invite(
        &self,
        caller: &Caller,
        label: &str,
        reason: Option<Text>,
    ) -> Result<Invitation> {
        transact!(self, tx => {
            let found = sessions::by_label(&mut tx, label).await?;
            let session = found.ok_or(Error::NotFound("session"))?;
            let site = session.site.into();
            let place = self.place(&mut tx, caller, &site, Action::SeeQueue).await;
            let place = place.map_err(hidden)?;
            let own = session.access(caller.id());
            place.may(caller, Action::VisitSession, own.is_some(), "session").map_err(hidden)?;
            let (access, reason) = match own {
                Some(access) => (access, None),
                None => (Access::Edit, Some(reason.clone().ok_or(Error::ReasonMissing)?)),
            };
            let now = self.now();
            let until = self.visit_until(&mut tx, caller).await?;
            let code = Key::drawn();
            let visit = Visit {
                id: VisitId(fresh(now)),
                session: session.id,
                person: caller.id(),
                sign_in: match caller.via {
                    Via::Session(id) => Some(id),
                    Via::Token(_) | Via::Direct => None,
                },
                token: match caller.via {
                    Via::Token(id) => Some(id),
                    Via::Session(_) | Via::Direct => None,
                },
                access,
                reason,
                began: now,
                expires_at: until,
            };
            visits::insert(&mut tx, &visit, &stored_hash(code.reveal()), now + CODE).await?;
            if visit.reason.is_some() {
                let data = json!({
                    "session": session.id,
                    "name": session.name,
                    "owner": session.owner,
                    "by": caller.id(),
                    "reason": visit.reason,
                });
                let change = Change::new("session.visit", Some(session.site), session.id)
                    .because(visit.reason.clone())
                    .tell_only(EventKind::SessionVisited, Audience::Person(session.owner), data);
                self.record(&mut tx, caller, change).await?;
            }
            Ok(Invitation { session, code })
        })
    }

    /// Exchanges a code for a key.
    pub async fn enter(&self, label: &str, code: &Key) -> Result<Option<(Key, Entered)>> {
        transact!(self, tx => {
            let Some(session) = sessions::by_label(&mut tx, label).await? else {
                return Ok(None);
            };
            let key = Key::drawn();
            let (code, hash) = (stored_hash(code.reveal()), stored_hash(key.reveal()));
            let redeemed = visits::redeem(&mut tx, session.id, &code, &hash, self.now()).await?;
            let Some(visit) = redeemed else {
                return Ok(None);
            };
            let entered = self.still_may(&mut tx, &session, &visit).await?;
            Ok(entered.map(|entered| (key, entered)))
        })
    }

    /// The visitor with this key, if they may still enter.
    pub async fn visitor(&self, label: &str, key: &Key) -> Result<Option<Entered>> {
        let found = self.visitor_among(label, std::slice::from_ref(key)).await?;
        Ok(found.map(|(_, entered)| entered))
    }

    /// The first of these keys that still gives access, and its visitor.
    pub async fn visitor_among(&self, label: &str, keys: &[Key]) -> Result<Option<(Key, Entered)>> {
        let mut reader = self.store.read().await?;
        let Some(session) = sessions::by_label(&mut reader, label).await? else {
            return Ok(None);
        };
        let hashes: Vec<_> = keys.iter().map(|key| stored_hash(key.reveal())).collect();
        let all = hashes.iter().map(|hash| hash.to_vec()).collect();
        let found = visits::find(&mut reader, session.id, all, self.now()).await?;
        for (key, hash) in keys.iter().zip(&hashes) {
            if let Some((_, visit)) = found.iter().find(|(of, _)| of == hash)
                && let Some(entered) = self.still_may(&mut reader, &session, visit).await?
            {
                return Ok(Some((key.clone(), entered)));
            }
        }
        Ok(None)
    }

    /// Access for a program with its person's own token: to their sessions, and to sessions shared with them.
    pub async fn visitor_by_token(&self, caller: &Caller, label: &str) -> Result<Entered> {
        let mut reader = self.store.read().await?;
        let found = sessions::by_label(&mut reader, label).await?;
        let session = found.ok_or(Error::NotFound("session"))?;
        let place = self
            .place(&mut reader, caller, &session.site.into(), Action::SeeQueue)
            .await
            .map_err(hidden)?;
        let access = session.access(caller.id());
        place
            .may(caller, Action::VisitSession, access.is_some(), "session")
            .map_err(hidden)?;
        Ok(Entered {
            session: session.id,
            site: session.site,
            person: caller.person.clone(),
            access: access.ok_or(Error::NotFound("session"))?,
            expires_at: self.visit_until(&mut reader, caller).await?,
        })
    }

    /// The latest end of a visit of this caller. No token gives access after it expires.
    async fn visit_until(&self, conn: &mut Conn, caller: &Caller) -> Result<Timestamp> {
        let now = self.now();
        let until = now + VISIT;
        let Via::Token(id) = caller.via else {
            return Ok(until);
        };
        let token = sign_ins::token_until(conn, id, now).await?;
        Ok(token.ok_or(Error::TokenUnknown)?.min(until))
    }

    pub(super) async fn still_may(
        &self,
        conn: &mut Conn,
        session: &Session,
        visit: &Visit,
    ) -> Result<Option<Entered>> {
        let now = self.now();
        if let Some(sign_in) = visit.sign_in
            && !sign_ins::lives(conn, sign_in, now).await?
        {
            return Ok(None);
        }
        if let Some(token) = visit.token
            && !sign_ins::token_lives(conn, token, now).await?
        {
            return Ok(None);
        }
        let person = people::get(conn, visit.person).await?;
        let Some(person) = person.filter(|person| person.state == PersonState::Active) else {
            return Ok(None);
        };
        let found = sites::by_id_for(conn, session.site, person.id).await?;
        let Some((site, role)) = found else {
            return Ok(None);
        };
        let standing = Standing::of(&person, role, site.outsiders_see);
        let access = match visit.reason {
            // A person who entered as an admin may stay as long as they are one.
            Some(_) => matches!(standing, Standing::SiteAdmin | Standing::GlobalAdmin)
                .then_some(visit.access),
            None => session
                .access(person.id)
                .filter(|_| !matches!(standing, Standing::Outsider(_))),
        };
        Ok(access.map(|access| Entered {
            session: session.id,
            site: session.site,
            person,
            access,
            expires_at: visit.expires_at,
        }))
    }

    /// The endpoints of all sessions that accept visitors, as far as they are known.
    pub async fn open_doors(&self) -> Result<Vec<FoundDoor>> {
        let mut reader = self.store.read().await?;
        let live = sessions::live(&mut reader).await?;
        self.doors_of(&mut reader, live).await
    }

    /// The endpoint of one session.
    pub async fn open_door(&self, label: &str) -> Result<FoundDoor> {
        let mut reader = self.store.read().await?;
        let found = sessions::by_label(&mut reader, label).await?;
        let doors = self.doors_of(&mut reader, found).await?;
        Ok(doors.into_iter().next().unwrap_or(FoundDoor::Shut))
    }

    /// The same by id.
    pub async fn open_door_of(&self, session: SessionId) -> Result<FoundDoor> {
        let mut reader = self.store.read().await?;
        let found = sessions::get(&mut reader, session).await?;
        let doors = self.doors_of(&mut reader, found).await?;
        Ok(doors.into_iter().next().unwrap_or(FoundDoor::Shut))
    }

    async fn doors_of(
        &self,
        conn: &mut Conn,
        some: impl IntoIterator<Item = Session>,
    ) -> Result<Vec<FoundDoor>> {
        let is_ready = |session: &Session| session.state == State::Ready;
        let ready: Vec<Session> = some.into_iter().filter(is_ready).collect();
        let followed = self.follow_up(conn, ready).await?;
        Ok(join_all(followed.iter().map(|one| self.door_of(one))).await)
    }

    async fn door_of(&self, one: &Followed) -> FoundDoor {
        let job = one.job().filter(|job| !job.run.state.is_over());
        let (Some(job), Some(backend)) = (job, self.backend.as_ref()) else {
            return FoundDoor::Shut;
        };
        match backend.door(job).await {
            Ok(Some(door)) => FoundDoor::Open(OpenDoor {
                session: one.session.id,
                label: one.session.label.clone(),
                door,
                speaks_hub: one.app.as_ref().is_some_and(speaks_hub),
                knows_its_base: one.app.as_ref().is_some_and(|app| app.knows_its_base),
            }),
            Ok(None) => FoundDoor::Shut,
            // The session is on another server's machine.
            Err(Trouble::Unreachable) => FoundDoor::Unknown(one.session.id),
            Err(trouble) => {
                tracing::warn!(%trouble, session = %one.session.id, "the way to a session could not be looked up; visitors keep the one they have");
                FoundDoor::Unknown(one.session.id)
            }
        }
    }

    /// The site and the session of a waiting page, if the caller may see it.
    pub async fn session_at(&self, caller: &Caller, label: &str) -> Result<(Place, Session)> {
        let mut reader = self.store.read().await?;
        let found = sessions::by_label(&mut reader, label).await?;
        let session = found.ok_or(Error::NotFound("session"))?;
        self.seen_session(
            &mut reader,
            caller,
            &session.site.into(),
            &session.id.into(),
        )
        .await
        .map_err(hidden)
    }
}

/// Hides whether a session exists from people who may not enter it.
fn hidden(error: Error) -> Error {
    match error {
        Error::NotFound(_) | Error::NotAllowed { .. } => Error::NotFound("session"),
        other => other,
    }
}
