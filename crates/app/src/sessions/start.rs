//! Starts sessions. The transaction that creates or restarts a session also submits its workload.

use std::collections::BTreeMap;

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::queue::QueuePolicy;
use berth_model::reference::{ProjectReference, SessionReference, SiteReference};
use berth_model::session::{Session, SessionProfile, Start, State};
use berth_model::workload::{Ask, Program, Workload};
use berth_model::{
    FieldErrors, Name, PersonId, ProjectId, ReservationId, SessionId, SiteId, StartId, Text,
    WorkloadId,
};
use berth_store::sessions::Beginning;
use berth_store::{Conn, projects, queues, sessions, submissions, workloads};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::hub::plain_variables;
use super::look::SessionView;
use crate::App;
use crate::caller::Caller;
use crate::clock::{fresh, random};
use crate::disk::check_space;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::place::Place;
use crate::queue::NewWorkload;
use crate::record::{By, Change};
use crate::transact::transact;

/// Limit on the sessions of one person at a site, stopped ones included.
const SESSIONS_MAX: usize = 500;
/// Limits on sessions that start at the same time: of one person at a site, of one site, and of the server. Further
/// sessions wait. So a person with apps that never answer, or a site of such people, holds up nobody else.
const STARTING_MAX_PERSON: u64 = 8;
const STARTING_MAX_SITE: u64 = 64;
const STARTING_MAX: u64 = 256;
/// A session that is not placed after this time waits for room, and no longer counts as starting.
const PLACED_BY: SignedDuration = SignedDuration::from_secs(10);
/// Path of the socket of an app that listens on one.
const SOCKET: &str = "/run/berth/app.sock";

/// The limit on starting sessions that is reached, so the next session has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Busy {
    Person,
    Site,
    Server,
}

impl Busy {
    fn of(begin: Beginning) -> Option<Busy> {
        if begin.all >= STARTING_MAX {
            return Some(Busy::Server);
        }
        if begin.of_site >= STARTING_MAX_SITE {
            return Some(Busy::Site);
        }
        (begin.of_person >= STARTING_MAX_PERSON).then_some(Busy::Person)
    }
}

#[derive(Debug, Clone)]
pub struct NewSession {
    /// Without a name, the profile gives one: `lab`, `lab-2` and so on.
    pub name: Option<Name>,
    pub profile: Name,
    pub environment: Option<Text>,
    pub project: Option<ProjectReference>,
    pub inside: Option<ReservationId>,
}

impl App {
    pub async fn start_session(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: NewSession,
    ) -> Result<Made<SessionView>> {
        let space = self.disk_space(caller.id()).await;
        let made = transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeQueue).await?;
            place.may(caller, Action::StartSession, true, "site")?;
            let now = self.now();
            let id = SessionId(fresh(now));
            if let Some(earlier) = self.first_time(&mut tx, caller, id).await? {
                let known = self.session(&mut tx, caller, &place, &SessionReference::Id(earlier)).await?;
                return Ok(Made::before(self.session_view(&mut tx, caller, place, known).await?));
            }
            let name = self.name_of(&mut tx, caller, &place, &new).await?;
            let session = Session {
                id,
                site: place.id(),
                owner: caller.id(),
                project: None,
                name,
                label: label(),
                profile: new.profile.clone(),
                environment: new.environment.clone(),
                inside: new.inside,
                state: State::Stopped,
                workload: None,
                said: None,
                shared: BTreeMap::new(),
                since: now,
                active_at: now,
                kept_until: None,
                warned_at: None,
                lends_since: None,
                memory_kills: 0,
                created_at: now,
                version: 1,
            };
            let (session, workload) = self
                .submit_session(&mut tx, caller, &place, session, new.project.clone())
                .await?;
            check_space(&space, &workload.ask)?;
            sessions::insert(&mut tx, &session).await?;
            self.note_start(&mut tx, &session, workload, false).await?;
            let change = Change::new("session.start", Some(place.id()), session.id)
                .after(&session)
                .tell_only(EventKind::SessionChanged, Audience::Person(session.owner), told(&session));
            self.record(&mut tx, caller, change).await?;
            Ok(Made::now(self.session_view(&mut tx, caller, place, session).await?))
        });
        self.submitted.notify_one();
        made
    }

    /// Starts a stopped session, perhaps with another profile or environment.
    pub async fn restart_session(
        &self,
        caller: &Caller,
        site: &SiteReference,
        session: &SessionReference,
        profile: Option<Name>,
        environment: Option<Text>,
        inside: Option<ReservationId>,
    ) -> Result<SessionView> {
        let space = self.disk_space(caller.id()).await;
        let done = transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeQueue).await?;
            let known = self.session(&mut tx, caller, &place, session).await?;
            // A session runs as its owner, so nobody else may start it.
            if known.owner != caller.id() {
                return Err(Error::NotFound("session"));
            }
            place.may(caller, Action::StartSession, true, "session")?;
            let before = self.session_locked(&mut tx, known.id).await?;
            caller.expects(before.version)?;
            if before.state.is_live() {
                return Err(berth_model::session::NotNow { state: before.state, wanted: "started" }.into());
            }
            let wanted = Session {
                profile: profile.clone().unwrap_or(before.profile.clone()),
                environment: environment.clone().or(before.environment.clone()),
                inside,
                ..before.clone()
            };
            let project = wanted.project.map(ProjectReference::Id);
            let (after, workload) = self.submit_session(&mut tx, caller, &place, wanted, project).await?;
            check_space(&space, &workload.ask)?;
            if !sessions::update(&mut tx, &after, before.version).await? {
                return Err(Error::Store(berth_store::Error::Retry));
            }
            self.note_start(&mut tx, &after, workload, false).await?;
            let change = Change::new("session.start", Some(place.id()), after.id)
                .before(&before)
                .after(&after)
                .tell_only(EventKind::SessionChanged, Audience::Person(after.owner), told(&after));
            self.record(&mut tx, caller, change).await?;
            let after = Session { version: before.version + 1, ..after };
            self.session_view(&mut tx, caller, place, after).await
        });
        self.submitted.notify_one();
        done
    }

    /// The given name if it is free. Without a given name, the first free one.
    async fn name_of(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        new: &NewSession,
    ) -> Result<Name> {
        let filter = sessions::Filter {
            site: Some(place.id()),
            owner: Some(caller.id()),
            is_live: false,
            limit: SESSIONS_MAX as u64,
        };
        let known = sessions::list(conn, &filter).await?;
        if known.len() >= SESSIONS_MAX {
            let message = format!("you have {SESSIONS_MAX} sessions here: remove one first");
            return Err(FieldErrors::one("name", message).into());
        }
        let is_taken = |name: &Name| known.iter().any(|one| one.name == *name);
        if let Some(name) = &new.name {
            return match is_taken(name) {
                true => Err(Error::NameTaken(name.to_string())),
                false => Ok(name.clone()),
            };
        }
        let numbered = |number: usize| match number {
            1 => new.profile.to_string(),
            number => format!("{}-{number}", new.profile),
        };
        let free = (1..=SESSIONS_MAX + 1)
            .filter_map(|number| numbered(number).parse().ok())
            .find(|name| !is_taken(name));
        free.ok_or_else(|| FieldErrors::one("name", "give it a name").into())
    }

    /// Submits the workload of a session. Returns the session in its new state.
    async fn submit_session(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        session: Session,
        project: Option<ProjectReference>,
    ) -> Result<(Session, Workload)> {
        let policy = queues::policy(conn, place.id()).await?;
        let ask = self.ask_of(&policy, &session)?;
        let is_held = self.too_many_begin(conn, place.id(), session.owner);
        let is_held = is_held.await?;
        let new = NewWorkload {
            project,
            profile: Some(session.profile.clone()),
            is_held: is_held.is_some(),
            ask,
        };
        let prepared = self
            .prepare(conn, caller, &place.site.id.into(), new)
            .await?;
        let workload = prepared.workload;
        self.check_profile(conn, place, &policy, &session, workload.project)
            .await?;
        let whose = (place.id(), caller.id());
        self.crowd
            .join(conn, whose, prepared.waiting_max, workload.since)
            .await?;
        let workload = self.put_in_line(conn, caller, workload).await?;
        let session = Session {
            project: workload.project,
            ..session
        };
        Ok((session.start(workload.id, self.now())?, workload))
    }

    /// The limit on starting sessions that is reached now, if any.
    pub(super) async fn too_many_begin(
        &self,
        conn: &mut Conn,
        site: SiteId,
        owner: PersonId,
    ) -> Result<Option<Busy>> {
        let now = self.now();
        let since = now.checked_sub(PLACED_BY).unwrap_or(now);
        let begin = sessions::beginning(conn, since, site, owner).await?;
        Ok(Busy::of(begin))
    }

    async fn put_in_line(
        &self,
        conn: &mut Conn,
        by: impl Into<By>,
        workload: Workload,
    ) -> Result<Workload> {
        let number = workloads::next_numbers(conn, workload.site, 1).await?;
        let workload = Workload { number, ..workload };
        submissions::insert_all(conn, &[self.submission(by, workload.clone())?]).await?;
        Ok(workload)
    }

    /// Starts a failed session again with the same request and the same owner.
    pub(super) async fn start_again(
        &self,
        conn: &mut Conn,
        session: Session,
        failed: &Workload,
        now: Timestamp,
    ) -> Result<Session> {
        let variables = self.variables(conn, failed).await?;
        let variables = variables.map_err(|error| Error::Internal(error.to_string()))?;
        let mut again = Workload {
            id: WorkloadId(fresh(now)),
            waiting: failed.ask.tasks(),
            state: berth_model::workload::State::Waiting,
            reason: None,
            counts: Default::default(),
            since: now,
            ended_at: None,
            version: 1,
            ..failed.clone()
        };
        again.ask.program.environment = variables;
        let again = self.put_in_line(conn, By::SYSTEM, again).await?;
        let said = session.said.clone();
        let mut session = session.start(again.id, now)?;
        // The owner sees why the start takes longer.
        session.said = said;
        self.note_start(conn, &session, again, true).await?;
        Ok(session)
    }

    async fn note_start(
        &self,
        conn: &mut Conn,
        session: &Session,
        workload: Workload,
        is_automatic: bool,
    ) -> Result<()> {
        let now = self.now();
        let start = Start {
            id: StartId(fresh(now)),
            session: session.id,
            site: session.site,
            person: session.owner,
            profile: session.profile.clone(),
            workload: workload.id,
            is_automatic,
            asked_at: now,
            ready_at: None,
            ended_at: None,
            has_failed: false,
            said: None,
        };
        Ok(sessions::insert_start(conn, &start).await?)
    }

    /// Builds the request for the session's program and its address. The profile decides on the resources.
    fn ask_of(&self, policy: &QueuePolicy, session: &Session) -> Result<Ask> {
        let profile = session_profile(policy, &session.profile)?;
        let Some(app) = policy.session_app(&session.profile) else {
            let message = format!(
                "the profile starts `{}`, which is not among the apps here",
                profile.app
            );
            return Err(FieldErrors::one("profile", message).into());
        };
        let origin = self.settings.addresses.origin(&session.label);
        let base = self.settings.addresses.base(&session.label);
        let environment = session.environment.clone();
        let environment = environment
            .or(profile.environment.clone())
            .or(app.environment.clone());
        let title = format!("Session {}", session.name);
        Ok(Ask {
            title: title
                .parse()
                .map_err(|error| FieldErrors::one("name", format!("{error}")))?,
            class: Default::default(),
            level: None,
            wishes: Vec::new(),
            seats: Vec::new(),
            inside: session.inside,
            not_before: None,
            deadline: None,
            after: Vec::new(),
            array: None,
            requeue: false,
            program: Program {
                command: app.command_at(&origin, &base, SOCKET),
                environment: plain_variables(&app),
                image: environment.map(|environment| environment.to_string()),
                serves: Some(app.serves),
                ..Program::default()
            },
        })
    }

    /// Checks that this person may use the profile, and that the profile is not paused.
    async fn check_profile(
        &self,
        conn: &mut Conn,
        place: &Place,
        policy: &QueuePolicy,
        session: &Session,
        project: Option<ProjectId>,
    ) -> Result<()> {
        let profile = session_profile(policy, &session.profile)?;
        if !profile.projects.is_empty() {
            let own = match project {
                None => None,
                Some(id) => projects::by_id(conn, place.id(), id).await?,
            };
            let may = own.is_some_and(|own| profile.projects.contains(&own.name));
            if !may {
                let names: Vec<&str> = profile.projects.iter().map(Name::as_str).collect();
                let message = format!("this profile is for the projects {}", names.join(", "));
                return Err(FieldErrors::one("project", message).into());
            }
        }
        let paused = sessions::paused(conn, place.id()).await?;
        match paused
            .into_iter()
            .find(|one| one.profile == session.profile)
        {
            None => Ok(()),
            Some(pause) => Err(Error::ProfilePaused {
                profile: pause.profile,
                said: pause.said,
            }),
        }
    }
}

pub(super) fn session_profile<'a>(
    policy: &'a QueuePolicy,
    name: &Name,
) -> Result<&'a SessionProfile> {
    let Some(session) = policy.session_profile(name) else {
        let for_sessions = policy
            .profiles
            .iter()
            .filter(|(_, one)| one.session.is_some());
        let names: Vec<&str> = for_sessions.map(|(name, _)| name.as_str()).collect();
        let message = match names.as_slice() {
            [] => "this site has no profile for sessions: an admin has to make one".to_owned(),
            names => format!(
                "there is no profile `{name}` for sessions here: there are {}",
                names.join(", ")
            ),
        };
        return Err(FieldErrors::one("profile", message).into());
    };
    Ok(session)
}

/// Payload of session events. The address is left out: it is not a secret, but nobody else needs it.
pub(super) fn told(session: &Session) -> serde_json::Value {
    json!({
        "session": session.id,
        "name": session.name,
        "owner": session.owner,
        "state": session.state,
        "said": session.said,
        "lends_since": session.lends_since,
    })
}

/// Eighty random bits, in letters and digits that a host name may have.
fn label() -> String {
    const SIGNS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let random = random::<16>();
    let sign = |byte: &u8| char::from(SIGNS[usize::from(byte & 31)]);
    random.iter().map(sign).collect()
}

/// Whether a failed session is started again automatically. `recent` has the newest start first.
pub(super) fn is_retried(owner: PersonId, recent: &[Start]) -> bool {
    let in_a_row = recent
        .iter()
        .take_while(|start| start.person == owner && start.has_failed)
        .count();
    in_a_row < FAILURES_MAX
}

/// After this many failures in a row, automatic starts stop.
pub(super) const FAILURES_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_or_a_site_that_begins_as_many_as_it_may_holds_up_no_other() {
        let begin = |all, of_site, of_person| {
            Busy::of(Beginning {
                all,
                of_site,
                of_person,
            })
        };
        assert_eq!(begin(200, 63, 7), None);
        assert_eq!(begin(200, 63, 8), Some(Busy::Person));
        assert_eq!(begin(200, 64, 0), Some(Busy::Site));
        assert_eq!(begin(256, 0, 0), Some(Busy::Server));
    }
}
