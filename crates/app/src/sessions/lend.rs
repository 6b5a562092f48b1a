//! Lends the GPUs of sessions in which nothing is done, and wants them back when their owners return.
//!
//! Here is only decided, and written down, that a session lends. What begins on its GPUs, and goes from them, is the
//! queue's ([`crate::queue`]), which reads that. Whoever restarts finds it written.

use std::collections::HashSet;
use std::sync::Arc;

use berth_model::event::EventKind;
use berth_model::session::{Session, State};
use berth_model::workload::RunGpu;
use berth_model::{RunId, SessionId};
use berth_store::sessions;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::cull::Looked;
use super::follow::{Followed, OTHERS_WAIT};
use crate::App;
use crate::authority::Authority;
use crate::error::Result;
use crate::transact::transact;

/// How often a session that lends is asked whether its owner is back: they are not to wait.
const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(2);
/// For so long after a borrower was seen, a GPU that computes says nothing of its owner.
const AFTERGLOW: SignedDuration = SignedDuration::from_secs(10);

impl Followed {
    /// After how long without work its GPUs are lent; never, if none. What stands inside a reservation is lent with that,
    /// and what is borrowed is nobody's to lend.
    fn lend_after(&self) -> Option<SignedDuration> {
        let run = self.run.as_ref()?;
        let mut gpus = run.pieces.iter().flat_map(|piece| &piece.gpus);
        let has_whole = gpus.any(|gpu: &RunGpu| gpu.share.is_none());
        let may = self.site_lends && has_whole && run.inside.is_none() && run.lent_by.is_none();
        self.profile.as_ref()?.lend_after.filter(|_| may)
    }

    /// When it is to be looked at for this: now and then while it lends, and when it has been idle for long enough.
    fn lending_look(&self, looked: Option<Timestamp>) -> Option<Timestamp> {
        let is_ready = self.session.state == State::Ready;
        match (self.lend_after(), self.session.lends_since) {
            _ if !is_ready => None,
            (None, None) => None,
            (None, Some(since)) => Some(since),
            (Some(after), None) => Some(self.session.lends_from(after)),
            (Some(_), Some(since)) => {
                let next = looked.and_then(|at| at.checked_add(LOOK_EVERY).ok());
                Some(next.unwrap_or(since))
            }
        }
    }
}

impl App {
    /// Looks at those that lend, or have idled for long enough to; says when it is next.
    pub(super) async fn lend(
        &self,
        authority: Authority<'_>,
        followed: &[Followed],
    ) -> Result<Option<Timestamp>> {
        let now = self.now();
        let looked = self.pulse.lending_looked(followed, now, AFTERGLOW);
        let due = |one: &&Followed| {
            let at = one.lending_look(looked.get(&one.session.id).copied());
            at.is_some_and(|at| at <= now)
        };
        let due: Vec<&Followed> = followed.iter().filter(due).collect();
        let (may, must_not): (Vec<&Followed>, Vec<&Followed>) =
            due.iter().partition(|one| one.lend_after().is_some());
        for one in must_not {
            self.lend_or_take_back(authority, &one.session, None, None)
                .await?;
        }
        let places = Arc::new(Semaphore::new(self.settings.culling.at_once.max(1)));
        let mut looks = self.pulse.take_lending_looks();
        for one in self.pulse.begin_lending_looks(&may) {
            self.look_for_life(&mut looks, one, &places, now);
        }
        // One that takes long to look at is heard in a later round: nobody's start waits for it.
        let patience = Instant::now() + OTHERS_WAIT;
        let mut done = Vec::new();
        while let Ok(Some(looked)) = timeout_at(patience, looks.join_next()).await {
            done.extend(looked);
        }
        self.pulse.leave_lending_looks(looks);
        for looked in done {
            let Looked {
                session,
                active_at,
                is_known,
                ..
            } = looked;
            self.pulse.note_lending_look(session.id, now);
            if !is_known && active_at.is_none() {
                continue;
            }
            // It may lend no longer since the look began.
            let one = followed.iter().find(|one| one.session.id == session.id);
            let after = one.and_then(|one| one.lend_after());
            self.lend_or_take_back(authority, &session, active_at, after)
                .await?;
        }
        let is_due: HashSet<SessionId> = due.iter().map(|one| one.session.id).collect();
        let soon = now.checked_add(LOOK_EVERY).ok();
        let next = followed.iter().filter_map(|one| {
            let id = one.session.id;
            match is_due.contains(&id) {
                true => soon,
                false => one.lending_look(looked.get(&id).copied()),
            }
        });
        Ok(next.min())
    }

    async fn lend_or_take_back(
        &self,
        authority: Authority<'_>,
        looked: &Session,
        active_at: Option<Timestamp>,
        lend_after: Option<SignedDuration>,
    ) -> Result<()> {
        let now = self.now();
        let mut tx = self.store.begin().await?;
        authority.check(&mut tx).await?;
        let Some(before) = sessions::get_locked(&mut tx, looked.id).await? else {
            return Ok(());
        };
        if before.state != State::Ready || before.workload != looked.workload {
            return Ok(());
        }
        let active = active_at.map_or(before.clone(), |at| before.clone().active(at));
        let lends = lend_after.is_some_and(|after| active.lends_from(after) <= now);
        let after = active.lend(lends, now);
        if after == before {
            return Ok(());
        }
        self.write_session(&mut tx, &before, &after, EventKind::SessionChanged)
            .await?;
        tx.commit().await?;
        self.written.notify_one();
        self.submitted.notify_one();
        Ok(())
    }

    /// Somebody did something in these: what they lent is wanted back at once.
    pub async fn note_returned(&self, acted: &[(SessionId, Timestamp)]) -> Result<()> {
        if acted.is_empty() {
            return Ok(());
        }
        let mut reader = self.store.read().await?;
        let lending: HashSet<SessionId> = sessions::lending(&mut reader, None)
            .await?
            .into_iter()
            .map(|session| session.id)
            .collect();
        drop(reader);
        let acted: Vec<_> = acted
            .iter()
            .filter(|(id, _)| lending.contains(id))
            .collect();
        if acted.is_empty() {
            return Ok(());
        }
        transact!(self, tx => {
            for (id, at) in &acted {
                self.take_back(&mut tx, *id, *at).await?;
            }
            Ok::<_, crate::Error>(())
        })?;
        self.submitted.notify_one();
        Ok(())
    }

    /// Notes that something was done in a session; says whether it lent.
    pub(super) async fn take_back(
        &self,
        conn: &mut berth_store::Conn,
        id: SessionId,
        at: Timestamp,
    ) -> Result<bool> {
        let before = sessions::get_locked(conn, id).await?;
        let Some(before) = before.filter(|before| before.lends_since.is_some()) else {
            return Ok(false);
        };
        let after: Session = before.clone().active(at);
        if after == before {
            return Ok(false);
        }
        self.write_session(conn, &before, &after, EventKind::SessionChanged)
            .await
    }
}

/// Those whose GPUs somebody else has, or had a moment ago.
pub(super) fn borrowed_lately(
    seen: &mut std::collections::HashMap<RunId, Timestamp>,
    followed: &[Followed],
    now: Timestamp,
    afterglow: SignedDuration,
) {
    seen.retain(|_, at| at.duration_until(now) < afterglow);
    let hosts = followed.iter().filter(|one| one.has_guests);
    seen.extend(hosts.filter_map(|one| Some((one.run.as_ref()?.id, now))));
}
