//! Queries on sessions: the caller's own, the ones that colleagues share, and for admins all of them.

use std::time::Duration;

use berth_drivers::backend::{Job, Used};
use berth_engine::rights::Action;
use berth_model::reference::{PersonReference, SessionReference, SiteReference};
use berth_model::session::{App as Catalogued, Pause, Session, Start, State, Visit};
use berth_model::workload::{Run, Workload};
use berth_model::{Name, PersonId};
use berth_store::{Conn, loans, queues, sessions, visits, workloads};
use futures::future::join_all;
use jiff::Timestamp;
use tokio::time::timeout;

use super::start::{is_retried, session_profile};
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::queue::Reason;

/// Limit on each list.
const LIST_MAX: u64 = 500;
const STARTS_MAX: u64 = 20;
const VISITS_MAX: u64 = 50;
/// How long a query waits for a plan to explain why a session waits.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a query waits for the usage of a run.
const USED_PATIENCE: Duration = Duration::from_millis(500);
const UNREACHABLE: &str =
    "its machine cannot be reached from this server; it may run, and keeps what it has";

#[derive(Debug, Clone)]
pub struct SessionView {
    pub place: Place,
    pub session: Session,
    /// The address for a browser.
    pub url: String,
    pub workload: Option<Workload>,
    pub run: Option<Run>,
    /// Why it waits, if it does.
    pub reason: Option<Reason>,
    /// When it is stopped without further activity. `None` if it does not run.
    pub idle_until: Option<Timestamp>,
    /// Whether a borrower has its GPUs at this moment.
    pub is_borrowed: bool,
    /// The newest first.
    pub starts: Vec<Start>,
    /// Only in answers to queries, not in the answer to a change.
    pub used: Option<Used>,
    pub directory: Directory,
}

impl SessionView {
    /// Whether automatic starts have stopped, because it failed too often in a row.
    pub fn is_given_up(&self) -> bool {
        self.session.state == State::Failed && !is_retried(self.session.owner, &self.starts)
    }
}

#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// All sessions, if the caller may see them.
    pub is_everybodys: bool,
    pub owner: Option<PersonId>,
    pub is_live: bool,
}

/// A visit to a session.
#[derive(Debug, Clone)]
pub struct VisitView {
    pub visit: Visit,
    pub is_open: bool,
}

/// All visits to a session, with the names of the visitors.
#[derive(Debug, Clone)]
pub struct Opened {
    pub visits: Vec<VisitView>,
    pub directory: Directory,
}

/// A profile that can be started here.
#[derive(Debug, Clone)]
pub struct ProfileView {
    pub name: Name,
    pub profile: berth_model::queue::Profile,
    pub app: Option<Catalogued>,
    pub pause: Option<Pause>,
}

impl App {
    pub async fn list_sessions(
        &self,
        caller: &Caller,
        site: &SiteReference,
        filter: SessionFilter,
    ) -> Result<Vec<SessionView>> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeQueue)
            .await?;
        if filter.is_everybodys || filter.owner.is_some_and(|owner| owner != caller.id()) {
            place.may(caller, Action::SeeSession, false, "site")?;
        }
        let owner = match filter.is_everybodys {
            true => filter.owner,
            false => Some(filter.owner.unwrap_or(caller.id())),
        };
        let wanted = sessions::Filter {
            site: Some(place.id()),
            owner,
            is_live: filter.is_live,
            limit: LIST_MAX,
        };
        let mut found = sessions::list(&mut reader, &wanted).await?;
        if !filter.is_everybodys && filter.owner.is_none() {
            let shared = sessions::shared_with(&mut reader, place.id(), caller.id(), LIST_MAX);
            found.extend(
                shared
                    .await?
                    .into_iter()
                    .filter(|one| one.owner != caller.id()),
            );
        }
        let ids = found
            .iter()
            .filter_map(|one| one.workload)
            .collect::<Vec<_>>();
        let jobs = workloads::some(&mut reader, place.id(), ids.clone()).await?;
        let runs = workloads::newest_runs(&mut reader, ids).await?;
        let policy = queues::policy(&mut reader, place.id()).await?;
        let hosts = loans::hosts(&mut reader, place.id()).await?;
        let mut directory = Directory::with_site(&place.site);
        self.learn_of(&mut reader, &mut directory, &found, &runs)
            .await?;
        drop(reader);
        let view = async |session: Session| {
            let workload = jobs.iter().find(|job| Some(job.id) == session.workload);
            let run = runs
                .iter()
                .find(|run| Some(run.workload) == session.workload);
            let session = self.as_seen_from_here(session, run);
            SessionView {
                url: self.session_url(&session.label),
                idle_until: idle_until(&policy, &session),
                is_borrowed: run.is_some_and(|run| hosts.contains(&run.id)),
                used: self.used(workload, run).await,
                workload: workload.cloned(),
                run: run.cloned(),
                reason: None,
                starts: Vec::new(),
                directory: directory.clone(),
                place: place.clone(),
                session,
            }
        };
        Ok(join_all(found.into_iter().map(view)).await)
    }

    pub async fn get_session(
        &self,
        caller: &Caller,
        site: &SiteReference,
        session: &SessionReference,
    ) -> Result<SessionView> {
        let mut reader = self.store.read().await?;
        let (place, session) = self
            .seen_session(&mut reader, caller, site, session)
            .await?;
        let mut view = self
            .session_view(&mut reader, caller, place, session)
            .await?;
        drop(reader);
        view.used = self.used(view.workload.as_ref(), view.run.as_ref()).await;
        view.session = self.as_seen_from_here(view.session, view.run.as_ref());
        if let (State::Waiting, Some(workload)) = (view.session.state, &view.workload) {
            let reason = self.why_waits(view.place.id(), workload.id);
            // Do not wait for a plan that is still being read: the page asks again.
            if let Ok(reason) = tokio::time::timeout(PATIENCE, reason).await {
                view.reason = reason?;
            }
        }
        Ok(view)
    }

    /// A session that the caller may see: their own, one shared with them, or any session as an admin.
    pub(super) async fn seen_session(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        site: &SiteReference,
        session: &SessionReference,
    ) -> Result<(Place, Session)> {
        let place = self.place(conn, caller, site, Action::SeeQueue).await?;
        let session = self.session(conn, caller, &place, session).await?;
        let is_own = session.access(caller.id()).is_some();
        let may = place.may(caller, Action::SeeSession, is_own, "session");
        match may {
            // Other people must not learn whether the session exists.
            Err(Error::NotAllowed { .. }) => Err(Error::NotFound("session")),
            may => may.map(|()| (place, session)),
        }
    }

    pub(super) async fn session_view(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: Place,
        session: Session,
    ) -> Result<SessionView> {
        let workload = match session.workload {
            None => None,
            Some(id) => workloads::get(conn, place.id(), id).await?,
        };
        let runs = match session.workload {
            None => Vec::new(),
            Some(id) => workloads::runs_of(conn, id, 1).await?,
        };
        let policy = queues::policy(conn, place.id()).await?;
        let mut directory = Directory::with_site(&place.site);
        directory.add_person(&caller.person);
        let all = std::slice::from_ref(&session);
        self.learn_of(conn, &mut directory, all, &runs).await?;
        let run = runs.into_iter().next();
        let is_borrowed = match &run {
            Some(run) => !loans::guests_of(conn, run.id).await?.is_empty(),
            None => false,
        };
        Ok(SessionView {
            url: self.session_url(&session.label),
            idle_until: idle_until(&policy, &session),
            is_borrowed,
            used: None,
            starts: sessions::starts_of(conn, session.id, STARTS_MAX).await?,
            workload,
            run,
            reason: None,
            directory,
            place,
            session,
        })
    }

    async fn learn_of(
        &self,
        conn: &mut Conn,
        directory: &mut Directory,
        found: &[Session],
        runs: &[Run],
    ) -> Result<()> {
        let people = found
            .iter()
            .flat_map(|one| one.shared.keys().copied().chain([one.owner]));
        directory
            .learn_people(conn, people.collect::<Vec<_>>())
            .await?;
        let projects = found.iter().filter_map(|one| one.project);
        directory
            .learn_projects(conn, projects.collect::<Vec<_>>())
            .await?;
        let nodes = runs
            .iter()
            .flat_map(|run| run.pieces.iter().map(|piece| piece.node));
        directory
            .learn_resources(conn, nodes.collect::<Vec<_>>())
            .await
    }

    async fn used(&self, workload: Option<&Workload>, run: Option<&Run>) -> Option<Used> {
        let run = run.filter(|run| !run.state.is_over())?;
        let job = Job {
            workload: workload?,
            run,
        };
        let used = timeout(USED_PATIENCE, self.backend.as_ref()?.used(job)).await;
        used.ok()?.ok()?
    }

    /// Adds a message to the session if its machine cannot be reached from this server.
    fn as_seen_from_here(&self, session: Session, run: Option<&Run>) -> Session {
        let live = run.filter(|run| !run.state.is_over());
        match live.is_some_and(|run| !self.reaches(run.machine.as_deref())) {
            true => Session {
                said: UNREACHABLE.parse().ok(),
                ..session
            },
            false => session,
        }
    }

    pub(super) fn session_url(&self, label: &str) -> String {
        let addresses = &self.settings.addresses;
        addresses.origin(label) + &addresses.base(label)
    }

    /// The end of the log of its newest run.
    pub async fn session_log(
        &self,
        caller: &Caller,
        site: &SiteReference,
        session: &SessionReference,
    ) -> Result<String> {
        let mut reader = self.store.read().await?;
        let (place, session) = self
            .seen_session(&mut reader, caller, site, session)
            .await?;
        let view = self
            .session_view(&mut reader, caller, place, session)
            .await?;
        drop(reader);
        match (view.workload, view.run) {
            (Some(workload), Some(run)) => self.log_of(&workload, &run).await,
            _ => Ok(String::new()),
        }
    }

    /// Visits to a session, the newest first. The owner sees all visitors and their reasons.
    pub async fn session_visits(
        &self,
        caller: &Caller,
        site: &SiteReference,
        session: &SessionReference,
    ) -> Result<Opened> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeQueue)
            .await?;
        let session = self.session(&mut reader, caller, &place, session).await?;
        let is_own = session.owner == caller.id();
        if place
            .may(caller, Action::SeeSession, is_own, "session")
            .is_err()
        {
            return Err(Error::NotFound("session"));
        }
        let now = self.now();
        let found = visits::of_session(&mut reader, session.id, VISITS_MAX).await?;
        let mut directory = Directory::default();
        let all = found.iter().map(|visit| visit.person);
        directory
            .learn_people(&mut reader, all.collect::<Vec<_>>())
            .await?;
        let view = |visit: Visit| VisitView {
            is_open: visit.expires_at > now,
            visit,
        };
        Ok(Opened {
            visits: found.into_iter().map(view).collect(),
            directory,
        })
    }

    /// The profiles that can be started here.
    pub async fn session_profiles(
        &self,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<Vec<ProfileView>> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeQueue)
            .await?;
        let policy = queues::policy(&mut reader, place.id()).await?;
        let paused = sessions::paused(&mut reader, place.id()).await?;
        let view = |(name, profile): (&Name, &berth_model::queue::Profile)| {
            let session = profile.session.as_ref()?;
            Some(ProfileView {
                name: name.clone(),
                profile: profile.clone(),
                app: policy.app(&session.app),
                pause: paused.iter().find(|pause| pause.profile == *name).cloned(),
            })
        };
        Ok(policy.profiles.iter().filter_map(view).collect())
    }

    /// The person to filter sessions by. The answer does not reveal whether such a person exists.
    pub async fn sessions_of(&self, owner: &PersonReference) -> Result<PersonId> {
        let mut reader = self.store.read().await?;
        self.narrowed_to(&mut reader, owner).await
    }
}

fn idle_until(policy: &berth_model::queue::QueuePolicy, session: &Session) -> Option<Timestamp> {
    let profile = session_profile(policy, &session.profile).ok()?;
    (session.state == State::Ready).then(|| session.idle_until(profile.idle))
}
