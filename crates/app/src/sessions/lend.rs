//! Decides when idle sessions lend their GPUs, and when their returning owners get them back.
//!
//! This module only records in the database that a session lends. The queue ([`crate::queue`]) reads that record, and
//! starts and stops the borrowers. A server that restarts finds the record, too.

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

/// How often a lending session is checked for its owner's return, because owners should not wait.
const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(2);
/// For this long after a borrower was seen, a busy GPU says nothing about the owner.
const AFTERGLOW: SignedDuration = SignedDuration::from_secs(10);

impl Followed {
    /// After how much idle time its GPUs are lent; `None` means never. A run inside a reservation is lent with that
    /// reservation, and a borrower may not lend.
    fn lend_after(&self) -> Option<SignedDuration> {
        let run = self.run.as_ref()?;
        let mut gpus = run.pieces.iter().flat_map(|piece| &piece.gpus);
        let has_whole = gpus.any(|gpu: &RunGpu| gpu.share.is_none());
        let may = self.site_lends && has_whole && run.inside.is_none() && run.lent_by.is_none();
        self.profile.as_ref()?.lend_after.filter(|_| may)
    }

    /// When to check it for lending: regularly while it lends, and when it has been idle for long enough.
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
    /// Checks sessions that lend, or that have been idle for long enough. Returns the time of the next check.
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
        // A slow check is read in a later pass, so no start waits for it.
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
            // It may have lost the permission to lend since the check began.
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

    /// Takes back the lent GPUs of sessions with new activity at once.
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

    /// Records activity in a session. Returns whether the session lent its GPUs.
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

/// Updates the runs with borrowed GPUs, and when a borrower was last seen on them.
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
