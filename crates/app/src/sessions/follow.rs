//! Follows sessions from the queue to the first answer of their app, and to their end.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use berth_drivers::backend::{DiskSpace, Door, Job};
use berth_drivers::door;
use berth_engine::session::{Next, next};
use berth_model::event::{Audience, EventKind};
use berth_model::session::{App as Catalogued, End, Pause, Session, SessionProfile, State};
use berth_model::workload::{Run, RunState, State as WorkloadState, Workload};
use berth_model::{PersonId, RunId, SessionId, SiteId, Text, WorkloadId};
use berth_store::{Conn, loans, queues, sessions, visits, workloads};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::start::{Busy, FAILURES_MAX, is_retried, told};
use crate::App;
use crate::authority::Authority;
use crate::disk::check_space;
use crate::error::Result;
use crate::record::{By, Change};

/// A starting app is asked again after this fraction of its start time so far: often at first, seldom in the end.
const ASK_AFTER_PART: i32 = 40;
const ASK_SOONEST: SignedDuration = SignedDuration::from_millis(20);
const ASK_LATEST: SignedDuration = SignedDuration::from_secs(1);
/// How long an app may take to answer. It is asked again.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a pass waits for a slow answer. A later pass reads it.
pub(super) const OTHERS_WAIT: Duration = Duration::from_millis(250);
/// If starts fail for this many people within `WITHIN`, the profile is paused.
const PEOPLE_MAX: u64 = 3;
const WITHIN: SignedDuration = SignedDuration::from_mins(10);

/// Apps that were asked whether they are ready and have not answered yet. Lost with the server, which asks again.
#[derive(Debug, Default)]
pub(crate) struct Asking(Mutex<HashMap<RunId, AbortOnDropHandle<bool>>>);

impl Asking {
    fn take(&self) -> HashMap<RunId, AbortOnDropHandle<bool>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the app was asked and has not answered yet.
    fn is_asked(&self, run: RunId) -> bool {
        let asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.contains_key(&run)
    }

    fn leave(&self, run: RunId, task: AbortOnDropHandle<bool>) {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.insert(run, task);
    }
}

/// A session with its workload and run.
pub(super) struct Followed {
    pub session: Session,
    /// The profile, and below its app. Both are `None` if the profile no longer exists.
    pub profile: Option<SessionProfile>,
    pub app: Option<Catalogued>,
    pub workload: Option<Workload>,
    pub run: Option<Run>,
    /// Whether the site lends idle GPUs.
    pub site_lends: bool,
    /// Whether a borrower has its GPUs.
    pub has_guests: bool,
}

impl Followed {
    /// Whether its run is about to start.
    fn begins(&self) -> bool {
        let run = self.run.as_ref();
        run.is_some_and(|run| run.state == RunState::Starting)
    }

    /// When to ask the app again whether it is ready.
    fn ask_again(&self, now: Timestamp) -> Option<Timestamp> {
        let begun = self.run.as_ref()?.began.duration_until(now);
        let pause = (begun / ASK_AFTER_PART).clamp(ASK_SOONEST, ASK_LATEST);
        now.checked_add(pause).ok()
    }

    pub fn job(&self) -> Option<Job<'_>> {
        Some(Job {
            workload: self.workload.as_ref()?,
            run: self.run.as_ref()?,
        })
    }
}

impl App {
    /// Runs one pass over the sessions that this server manages. Returns the latest time of the next pass.
    pub(crate) async fn carry_sessions_on(
        &self,
        authority: Authority<'_>,
    ) -> Result<Option<Timestamp>> {
        let mut followed = self.followed().await?;
        followed.retain(|one| self.judges(authority, one.run.as_ref()));
        let now = self.now();
        let (mut asked, mut late) = (Vec::new(), Vec::new());
        for one in &followed {
            match next(&one.session, one.workload.as_ref(), one.run.as_ref(), now) {
                Next::Nothing => {}
                Next::Ask => asked.push(one),
                Next::Place => {
                    self.move_session(authority, &one.session, Session::placed)
                        .await?;
                    asked.push(one);
                }
                Next::WaitAgain => {
                    self.move_session(authority, &one.session, Session::waits_again)
                        .await?;
                }
                // This server may have been disconnected, and the app may answer by now.
                Next::TooLate => {
                    late.push(one);
                    asked.push(one);
                }
                Next::Over { end, said } => self.settle_session(authority, one, end, said).await?,
            }
        }
        let answering = self.who_answers(&asked).await;
        for one in late {
            let is_asked = one
                .run
                .as_ref()
                .is_some_and(|run| self.asking.is_asked(run.id));
            if !answering.contains(&one.session.id) && !is_asked {
                self.give_up_on(authority, one).await?;
            }
        }
        let is_silent = |one: &&Followed| !answering.contains(&one.session.id);
        let silent = asked.iter().copied().filter(is_silent);
        // The start of a run is written without an event, so nothing wakes the server.
        let begin = followed.iter().filter(|one| one.begins());
        let asks = silent.chain(begin).filter_map(|one| one.ask_again(now));
        let again = asks.min();
        for id in answering {
            self.note_answer(authority, id).await?;
        }
        self.tell_of_memory(authority, &followed).await?;
        self.let_others_begin(authority, &followed).await?;
        let lends = self.lend(authority, &followed).await?;
        let idle = self.cull(authority, &followed).await?;
        Ok(again.into_iter().chain(idle).chain(lends).min())
    }

    async fn followed(&self) -> Result<Vec<Followed>> {
        let mut reader = self.store.read().await?;
        let live = sessions::live(&mut reader).await?;
        self.follow_up(&mut reader, live).await
    }

    /// Reads the workloads, runs and profiles of these sessions. This takes a few queries for each site, for any number
    /// of sessions.
    pub(super) async fn follow_up(
        &self,
        conn: &mut Conn,
        all: Vec<Session>,
    ) -> Result<Vec<Followed>> {
        let mut by_site: HashMap<SiteId, Vec<WorkloadId>> = HashMap::new();
        for session in &all {
            let of_site = by_site.entry(session.site).or_default();
            of_site.extend(session.workload);
        }
        let (mut jobs, mut runs) = (HashMap::new(), HashMap::new());
        let mut policies = HashMap::new();
        let mut hosts = HashSet::new();
        for (site, ids) in by_site {
            for job in workloads::some(conn, site, ids.clone()).await? {
                jobs.insert(job.id, job);
            }
            for run in workloads::newest_runs(conn, ids).await? {
                runs.entry(run.workload).or_insert(run);
            }
            policies.insert(site, queues::policy(conn, site).await?);
            hosts.extend(loans::hosts(conn, site).await?);
        }
        let follow = |session: Session| {
            let policy = policies.get(&session.site);
            let run = session.workload.and_then(|id| runs.remove(&id));
            Followed {
                profile: policy.and_then(|one| one.session_profile(&session.profile).cloned()),
                app: policy.and_then(|one| one.session_app(&session.profile)),
                workload: session.workload.and_then(|id| jobs.remove(&id)),
                site_lends: policy.is_some_and(|one| one.lends),
                has_guests: run.as_ref().is_some_and(|run| hosts.contains(&run.id)),
                run,
                session,
            }
        };
        Ok(all.into_iter().map(follow).collect())
    }

    /// The sessions with an app that answers now. All apps are asked at the same time, and none waits long for another.
    async fn who_answers(&self, asked: &[&Followed]) -> BTreeSet<SessionId> {
        let mut answering = BTreeSet::new();
        let Some(backend) = &self.backend else {
            return answering;
        };
        let mut before = self.asking.take();
        let mut tasks = HashMap::new();
        for one in asked {
            let (Some(workload), Some(run)) = (&one.workload, &one.run) else {
                continue;
            };
            let ask = || {
                let (backend, path) = (backend.clone(), self.health_of(one));
                let (workload, run) = (workload.clone(), run.clone());
                AbortOnDropHandle::new(tokio::spawn(async move {
                    let job = Job {
                        workload: &workload,
                        run: &run,
                    };
                    match backend.door(job).await {
                        Ok(Some(door)) => answers(door, path).await,
                        Ok(None) | Err(_) => false,
                    }
                }))
            };
            let task = before.remove(&run.id).unwrap_or_else(ask);
            tasks.insert(run.id, (one.session.id, task));
        }
        let patience = Instant::now() + OTHERS_WAIT;
        for (run, (session, mut task)) in tasks {
            match timeout_at(patience, &mut task).await {
                Ok(Ok(true)) => {
                    answering.insert(session);
                }
                Ok(_) => {}
                Err(_) => self.asking.leave(run, task),
            }
        }
        answering
    }

    /// The path where the app reports that it is ready.
    fn health_of(&self, one: &Followed) -> String {
        let Some(app) = &one.app else {
            return "/".to_owned();
        };
        let base = match app.knows_its_base {
            true => self.settings.addresses.base(&one.session.label),
            false => "/".to_owned(),
        };
        base + &app.health
    }

    async fn note_answer(&self, authority: Authority<'_>, id: SessionId) -> Result<()> {
        let now = self.now();
        let mut tx = self.store.begin().await?;
        authority.check(&mut tx).await?;
        let Some(before) = sessions::get_locked(&mut tx, id).await? else {
            return Ok(());
        };
        let Ok(after) = before.clone().answers(now) else {
            return Ok(());
        };
        if let Some(workload) = after.workload {
            sessions::note_ready(&mut tx, workload, now).await?;
        }
        self.write_session(
            &mut tx,
            &before,
            &Session {
                said: None,
                ..after
            },
            EventKind::SessionChanged,
        )
        .await?;
        tx.commit().await?;
        self.written.notify_one();
        Ok(())
    }

    async fn move_session(
        &self,
        authority: Authority<'_>,
        session: &Session,
        to: fn(Session, Timestamp) -> Result<Session, berth_model::session::NotNow>,
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        authority.check(&mut tx).await?;
        let Some(before) = sessions::get_locked(&mut tx, session.id).await? else {
            return Ok(());
        };
        if let Ok(after) = to(before.clone(), self.now()) {
            self.write_session(&mut tx, &before, &after, EventKind::SessionChanged)
                .await?;
        }
        tx.commit().await?;
        self.written.notify_one();
        Ok(())
    }

    pub(super) async fn write_session(
        &self,
        conn: &mut Conn,
        before: &Session,
        after: &Session,
        kind: EventKind,
    ) -> Result<bool> {
        let is_written = sessions::update(conn, after, before.version).await?;
        if is_written {
            let change = Change::new("session.follow", Some(after.site), after.id).tell_only(
                kind,
                Audience::Person(after.owner),
                told(after),
            );
            self.announce(conn, change).await?;
        }
        Ok(is_written)
    }

    /// Ends a session with an app that did not answer in time. The result of the run is settled when the run is gone.
    async fn give_up_on(&self, authority: Authority<'_>, one: &Followed) -> Result<()> {
        let seconds = berth_engine::session::START_MAX.as_secs();
        let words = format!("it did not answer within {seconds} s; its log may say why");
        // It ran, so its start was not refused.
        let space = DiskSpace::default();
        let mut tx = self.store.begin().await?;
        authority.check(&mut tx).await?;
        let Some(before) = sessions::get_locked(&mut tx, one.session.id).await? else {
            return Ok(());
        };
        // The session has changed since it was read. The next pass sees the change.
        if before.version != one.session.version {
            return Ok(());
        }
        let stopping = Session {
            said: words.parse().ok(),
            ..before.clone()
        };
        self.cancel_what_runs(&mut tx, By::SYSTEM, &stopping)
            .await?;
        self.end_session(&mut tx, one, before, (End::Failed, stopping.said), &space)
            .await?;
        tx.commit().await?;
        self.written.notify_one();
        self.submitted.notify_one();
        Ok(())
    }

    async fn settle_session(
        &self,
        authority: Authority<'_>,
        one: &Followed,
        end: End,
        said: Option<Text>,
    ) -> Result<()> {
        let space = match end {
            End::Failed => self.disk_space(one.session.owner).await,
            End::Wanted => DiskSpace::default(),
        };
        let mut tx = self.store.begin().await?;
        authority.check(&mut tx).await?;
        let Some(before) = sessions::get_locked(&mut tx, one.session.id).await? else {
            return Ok(());
        };
        // The session has changed since it was read. The next pass sees the change.
        if before.version != one.session.version {
            return Ok(());
        }
        self.end_session(&mut tx, one, before, (end, said), &space)
            .await?;
        tx.commit().await?;
        self.written.notify_one();
        self.submitted.notify_one();
        Ok(())
    }

    /// Records the end of a session, and starts it again if it never answered, unless it failed too often.
    async fn end_session(
        &self,
        conn: &mut Conn,
        one: &Followed,
        before: Session,
        (end, said): (End, Option<Text>),
        space: &DiskSpace,
    ) -> Result<()> {
        let now = self.now();
        if let Some(workload) = before.workload {
            let was_wanted = end == End::Wanted;
            sessions::note_end(conn, workload, now, was_wanted, said.as_ref()).await?;
        }
        visits::end(conn, before.id, None, now).await?;
        let never_answered = matches!(before.state, State::Waiting | State::Starting);
        let mut after = Session {
            said,
            ..before.clone().over(end, now)
        };
        let mut kind = EventKind::SessionChanged;
        if end == End::Failed {
            kind = EventKind::SessionFailed;
            // A full disk is not the profile's fault, and another try would not help.
            let ask = one.workload.as_ref().map(|workload| &workload.ask);
            let has_space = ask.is_none_or(|ask| check_space(space, ask).is_ok());
            let gives_up = !has_space || self.pause_where_many_fail(conn, &after, now).await?;
            let most = FAILURES_MAX as u64;
            let (site, owner) = (after.site, after.owner);
            let recent = sessions::recent_starts(conn, site, &after.profile, owner, most).await?;
            let again = never_answered && !gives_up && is_retried(owner, &recent);
            // A workload that was never placed has no fault that another try would mend.
            if let Some(failed) = one.workload.as_ref().filter(|_| again && one.run.is_some()) {
                after = self.start_again(conn, after, failed, now).await?;
                kind = EventKind::SessionChanged;
            }
        }
        self.write_session(conn, &before, &after, kind).await?;
        Ok(())
    }

    /// Pauses a profile that fails for several people, and notifies the admins. Returns whether the profile is paused.
    async fn pause_where_many_fail(
        &self,
        conn: &mut Conn,
        session: &Session,
        now: Timestamp,
    ) -> Result<bool> {
        let since = now.checked_sub(WITHIN).unwrap_or(now);
        let people = sessions::failed_for(conn, session.site, &session.profile, since).await?;
        let paused = sessions::paused(conn, session.site).await?;
        if paused.iter().any(|pause| pause.profile == session.profile) {
            return Ok(true);
        }
        if people < PEOPLE_MAX {
            return Ok(false);
        }
        let words = match &session.said {
            Some(said) => format!("it failed for {people} people within ten minutes: {said}"),
            None => format!("it failed for {people} people within ten minutes"),
        };
        let Ok(said) = words.chars().take(500).collect::<String>().parse::<Text>() else {
            return Ok(false);
        };
        let pause = Pause {
            site: session.site,
            profile: session.profile.clone(),
            since: now,
            said,
        };
        if sessions::pause(conn, &pause).await? {
            let data = json!({ "profile": pause.profile, "said": pause.said });
            let change = Change::new("profile.pause", Some(pause.site), pause.site)
                .after(&data)
                .tell(EventKind::ProfilePaused, Audience::Admins);
            self.record(conn, By::SYSTEM, change).await?;
        }
        Ok(true)
    }

    /// Releases sessions that wait because many others are starting, the oldest first.
    async fn let_others_begin(
        &self,
        authority: Authority<'_>,
        followed: &[Followed],
    ) -> Result<()> {
        let is_held = |one: &&Followed| {
            let held = WorkloadState::Held;
            let is_held = one.workload.as_ref().is_some_and(|job| job.state == held);
            is_held && one.session.state == State::Waiting
        };
        // A person or site at its limit is not asked about again in this pass.
        let mut full: HashSet<(SiteId, Option<PersonId>)> = HashSet::new();
        for one in followed.iter().filter(is_held) {
            let (site, owner) = (one.session.site, one.session.owner);
            if full.contains(&(site, None)) || full.contains(&(site, Some(owner))) {
                continue;
            }
            match self.let_begin(authority, one).await? {
                None => {}
                Some(Busy::Person) => {
                    full.insert((site, Some(owner)));
                }
                Some(Busy::Site) => {
                    full.insert((site, None));
                }
                Some(Busy::Server) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Releases one session, unless too many are starting. Then it returns the limit that was reached.
    async fn let_begin(&self, authority: Authority<'_>, one: &Followed) -> Result<Option<Busy>> {
        let mut tx = self.store.begin().await?;
        authority.check(&mut tx).await?;
        let (site, owner) = (one.session.site, one.session.owner);
        if let Some(busy) = self.too_many_begin(&mut tx, site, owner).await? {
            return Ok(Some(busy));
        }
        let Some(session) = sessions::get_locked(&mut tx, one.session.id).await? else {
            return Ok(None);
        };
        let job = match session.workload {
            Some(id) => workloads::get_locked(&mut tx, session.site, id).await?,
            None => None,
        };
        let Some(Ok(after)) = job.map(Workload::release) else {
            return Ok(None);
        };
        workloads::update(&mut tx, &after, after.version).await?;
        let change = Change::new("workload.release", Some(after.site), after.id).tell_only(
            EventKind::WorkloadChanged,
            Audience::Members,
            crate::queue::told(&after),
        );
        self.announce(&mut tx, change).await?;
        let now_waits = Session {
            since: self.now(),
            ..session.clone()
        };
        self.write_session(&mut tx, &session, &now_waits, EventKind::SessionChanged)
            .await?;
        tx.commit().await?;
        self.written.notify_one();
        self.submitted.notify_one();
        Ok(None)
    }
}

async fn answers(door: Door, path: String) -> bool {
    let answer = door::ask(&door, &path, ANSWER).await;
    answer.is_ok_and(|answer| answer.is_good())
}
