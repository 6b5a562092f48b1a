//! Commands on sessions: stop, rename, share, keep and remove. Also resumes a paused profile.

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::reference::{PersonReference, SessionReference, SiteReference};
use berth_model::session::{Access, NotNow, Session};
use berth_model::{FieldErrors, Name, Text};
use berth_store::{Conn, queues, sessions, visits};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::look::SessionView;
use super::start::{session_profile, told};
use crate::App;
use crate::caller::Caller;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::record::{By, Change};
use crate::transact::transact;

#[derive(Debug, Clone)]
pub enum SessionChange {
    Stop {
        reason: Option<Text>,
    },
    Rename(Name),
    /// Gives a colleague access, or takes it away.
    Share {
        with: PersonReference,
        access: Option<Access>,
    },
    /// Keeps the session for this long, however idle it is.
    Keep(SignedDuration),
}

/// The longest time of one request to keep a session.
const KEPT_MAX: SignedDuration = SignedDuration::from_hours(24);
const SHARES_MAX: usize = 50;

impl App {
    pub async fn change_session(
        &self,
        caller: &Caller,
        site: &SiteReference,
        session: &SessionReference,
        change: SessionChange,
    ) -> Result<SessionView> {
        let done = transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeQueue).await?;
            let before = self.own_session(&mut tx, caller, &place, session).await?;
            caller.expects(before.version)?;
            let now = self.now();
            let (after, word) = match &change {
                SessionChange::Stop { reason } => {
                    let said = self.stopped_by(caller, &before, reason.clone());
                    let after = before.clone().stop(said, now)?;
                    self.cancel_what_runs(&mut tx, caller, &after).await?;
                    (after, "session.stop")
                }
                SessionChange::Rename(name) => {
                    let other = sessions::by_name(&mut tx, before.site, before.owner, name).await?;
                    if other.is_some_and(|other| other.id != before.id) {
                        return Err(Error::NameTaken(name.to_string()));
                    }
                    (Session { name: name.clone(), ..before.clone() }, "session.rename")
                }
                SessionChange::Share { with, access } => {
                    (self.share(&mut tx, &place, before.clone(), with, *access).await?, "session.share")
                }
                SessionChange::Keep(length) => {
                    if !before.state.is_live() {
                        return Err(NotNow { state: before.state, wanted: "kept" }.into());
                    }
                    if *length <= SignedDuration::ZERO || *length > KEPT_MAX {
                        return Err(FieldErrors::one("for", "up to a day at a time").into());
                    }
                    let kept_until = now.checked_add(*length).ok();
                    (Session { kept_until, warned_at: None, ..before.clone() }, "session.keep")
                }
            };
            if !sessions::update(&mut tx, &after, before.version).await? {
                return Err(Error::Store(berth_store::Error::Retry));
            }
            let change = Change::new(word, Some(place.id()), after.id)
                .before(&before)
                .after(&after)
                .because(after.said.clone())
                .tell_only(EventKind::SessionChanged, Audience::Person(after.owner), told(&after));
            self.record(&mut tx, caller, change).await?;
            let after = Session { version: before.version + 1, ..after };
            self.session_view(&mut tx, caller, place, after).await
        });
        self.submitted.notify_one();
        done
    }

    /// Removes a session that is over from the list. Its files stay: they belong to the owner, not to the session.
    pub async fn remove_session(
        &self,
        caller: &Caller,
        site: &SiteReference,
        session: &SessionReference,
    ) -> Result<()> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeQueue).await?;
            let before = self.own_session(&mut tx, caller, &place, session).await?;
            caller.expects(before.version)?;
            if before.state.is_live() {
                return Err(NotNow { state: before.state, wanted: "removed: stop it first" }.into());
            }
            let now = self.now();
            visits::end(&mut tx, before.id, None, now).await?;
            if !sessions::remove(&mut tx, before.id, before.version, now).await? {
                return Err(Error::Store(berth_store::Error::Retry));
            }
            let change = Change::new("session.remove", Some(place.id()), before.id)
                .before(&before)
                .tell_only(EventKind::SessionChanged, Audience::Person(before.owner), told(&before));
            self.record(&mut tx, caller, change).await
        })
    }

    /// Records activity at a moment, as a program of the owner reports it. A moment in the future counts as now.
    pub async fn note_activity(
        &self,
        caller: &Caller,
        site: &SiteReference,
        session: &SessionReference,
        at: Timestamp,
    ) -> Result<()> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeQueue).await?;
            let before = self.own_session(&mut tx, caller, &place, session).await?;
            self.was_active(&mut tx, before, at).await
        })
    }

    pub(super) async fn was_active(
        &self,
        conn: &mut Conn,
        before: Session,
        at: Timestamp,
    ) -> Result<()> {
        let after = before.clone().active(at.min(self.now()));
        if after == before || !before.state.is_live() {
            return Ok(());
        }
        let kind = EventKind::SessionChanged;
        match self.write_session(conn, &before, &after, kind).await? {
            true => Ok(()),
            false => Err(Error::Store(berth_store::Error::Retry)),
        }
    }

    /// A session that the caller may change, locked in the database.
    async fn own_session(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        session: &SessionReference,
    ) -> Result<Session> {
        let known = self.session(conn, caller, place, session).await?;
        let is_own = known.owner == caller.id();
        match place.may(caller, Action::ChangeSession, is_own, "session") {
            // A colleague with access knows that the session exists.
            Err(Error::NotAllowed { .. }) if known.access(caller.id()).is_none() => {
                Err(Error::NotFound("session"))
            }
            may => {
                may?;
                self.session_locked(conn, known.id).await
            }
        }
    }

    /// Message to the owner when somebody else stops their session.
    fn stopped_by(&self, caller: &Caller, session: &Session, reason: Option<Text>) -> Option<Text> {
        if caller.id() == session.owner {
            return reason;
        }
        let who = &caller.person.display_name;
        let words = match reason {
            Some(reason) => format!("{who} stopped it: {reason}"),
            None => format!("{who} stopped it"),
        };
        words.parse().ok()
    }

    /// Cancels the session's workload. Its live runs get the site's grace period.
    pub(super) async fn cancel_what_runs(
        &self,
        conn: &mut Conn,
        by: impl Into<By>,
        session: &Session,
    ) -> Result<()> {
        let Some(id) = session.workload else {
            return Ok(());
        };
        self.cancel_inside(conn, by, (session.site, id), session.said.clone())
            .await
    }

    async fn share(
        &self,
        conn: &mut Conn,
        place: &Place,
        mut session: Session,
        with: &PersonReference,
        access: Option<Access>,
    ) -> Result<Session> {
        let person = self.member_named(conn, place.id(), with, "member").await;
        let person = person.map_err(|error| match error {
            Error::NotFound(_) => {
                let message = format!("`{with}` is not a member of this site");
                FieldErrors::one("with", message).into()
            }
            other => other,
        })?;
        let person = person.id;
        if person == session.owner {
            return Err(FieldErrors::one("with", "it is theirs already").into());
        }
        match access {
            Some(access) => {
                session.shared.insert(person, access);
                if session.shared.len() > SHARES_MAX {
                    let message = format!("a session is shared with at most {SHARES_MAX} people");
                    return Err(FieldErrors::one("with", message).into());
                }
            }
            None => {
                session.shared.remove(&person);
            }
        }
        // A person with less access than before has to enter again.
        visits::end(conn, session.id, Some(person), self.now()).await?;
        Ok(session)
    }

    /// Allows new starts of a paused profile.
    pub async fn resume_profile(
        &self,
        caller: &Caller,
        site: &SiteReference,
        profile: &Name,
    ) -> Result<()> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeQueue).await?;
            place.may(caller, Action::ManageSessions, false, "site")?;
            let policy = queues::policy(&mut tx, place.id()).await?;
            session_profile(&policy, profile).map_err(|_| Error::NotFound("profile"))?;
            if !sessions::resume(&mut tx, place.id(), profile).await? {
                return Ok(());
            }
            let change = Change::new("profile.resume", Some(place.id()), place.id())
                .after(json!({ "profile": profile }))
                .tell(EventKind::ProfileResumed, Audience::Members);
            self.record(&mut tx, caller, change).await
        })
    }
}
