//! Settles environments: ready, failed, removed, or found as prepared.
//!
//! Each one is settled in a transaction of its own, under the controller's lease. A change on the disk may happen
//! twice, and happens before the database records it. So after an interruption, the next pass finds everything that is
//! left to do.

use std::collections::BTreeSet;

use berth_drivers::backend::Trouble;
use berth_drivers::environments::{Prepared, Removed, Sealed, Shelf};
use berth_model::environment::{Environment, EnvironmentState};
use berth_model::event::{Audience, EventKind};
use berth_model::workload::{Outcome, RunState, State, Workload};
use berth_model::{EnvironmentId, Name, SiteId};
use berth_store::{Conn, environments, inventory, queues, workloads};

use super::progress::reason;
use super::recorded;
use crate::App;
use crate::authority::Authority;
use crate::clock::fresh;
use crate::error::Result;
use crate::inventory::machine_of;
use crate::record::{By, Change};

/// Bounds a pass, however many environments there are.
const ROUND_MAX: u64 = 1000;

impl App {
    /// Settles environments with a folder on this server's machine. With the lease, it also settles the ones without a
    /// machine.
    pub(crate) async fn settle_environments(&self, authority: Authority<'_>) -> Result<()> {
        let shelf = self.shelf();
        if let (Some(shelf), Authority::Lease(_)) = (shelf, authority) {
            self.take_in_prepared(authority, shelf).await?;
        }
        let mut reader = self.store.read().await?;
        let unsettled = environments::unsettled(&mut reader, ROUND_MAX).await?;
        drop(reader);
        for one in unsettled {
            let mut reader = self.store.read().await?;
            let is_ours = self.is_ours(&mut reader, authority, &one).await?;
            drop(reader);
            if !is_ours {
                continue;
            }
            match (one.state, shelf) {
                (EnvironmentState::Building, _) => {
                    self.settle_building(authority, &one).await?;
                }
                (_, Some(_)) => self.clear_environment_away(authority, &one).await?,
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// Whether this server settles an environment. It has to reach the machine of the build. For a build without a
    /// machine, it needs the lease.
    pub(super) async fn is_ours(
        &self,
        conn: &mut Conn,
        authority: Authority<'_>,
        one: &Environment,
    ) -> Result<bool> {
        let runs = match one.workload {
            None => Vec::new(),
            Some(workload) => workloads::newest_runs(conn, vec![workload]).await?,
        };
        Ok(match runs.first().and_then(|run| run.machine.as_deref()) {
            Some(machine) => self.reaches(Some(machine)),
            None => matches!(authority, Authority::Lease(_)),
        })
    }

    async fn settle_building(&self, authority: Authority<'_>, one: &Environment) -> Result<()> {
        let mut reader = self.store.read().await?;
        let workload = self.making_of(&mut reader, one).await?;
        let state = workload.as_ref().map(|workload| workload.state);
        let end = match state {
            Some(state) if !state.is_final() => return Ok(()),
            Some(State::Completed) => {
                drop(reader);
                if self.shelf().is_none() {
                    let why = "what runs work here keeps no environments".to_owned();
                    return self.write_settled(authority, one.id, Err(why)).await;
                }
                match self.shelving.seal(&self.backend, one.id).await {
                    None => return Ok(()),
                    Some(Ok(sealed)) => Ok(sealed),
                    Some(Err(Trouble::Refused(why))) => Err(why),
                    Some(Err(trouble)) => {
                        tracing::warn!(%trouble, environment = %one.id, "it could not be sealed; trying again");
                        return Ok(());
                    }
                }
            }
            _ => Err(self
                .why_not_made(&mut reader, one, workload.as_ref())
                .await?),
        };
        self.write_settled(authority, one.id, end).await
    }

    async fn making_of(&self, conn: &mut Conn, one: &Environment) -> Result<Option<Workload>> {
        match one.workload {
            None => Ok(None),
            Some(id) => Ok(workloads::get(conn, one.site, id).await?),
        }
    }

    /// Message to the owner about a failed build.
    async fn why_not_made(
        &self,
        conn: &mut Conn,
        one: &Environment,
        workload: Option<&Workload>,
    ) -> Result<String> {
        if workload.is_some_and(|workload| workload.state == State::Cancelled) {
            return Ok("its making was cancelled".to_owned());
        }
        if let Some(said) = reason(&self.build_log(conn, one).await?) {
            return Ok(said);
        }
        let runs = match one.workload {
            None => Vec::new(),
            Some(id) => workloads::newest_runs(conn, vec![id]).await?,
        };
        let outcome = runs.first().and_then(|run| match run.state {
            RunState::Ended { outcome } => Some(outcome),
            _ => None,
        });
        Ok(match outcome {
            Some(Outcome::OutOfMemory) => "there was not enough memory to make it".to_owned(),
            Some(Outcome::TimedOut) => "it took longer than it may".to_owned(),
            Some(Outcome::CouldNotStart) => "what makes it could not be started".to_owned(),
            _ => "it could not be made; its log says more".to_owned(),
        })
    }

    async fn write_settled(
        &self,
        authority: Authority<'_>,
        id: EnvironmentId,
        end: Result<Sealed, String>,
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        authority.check(&mut tx).await?;
        let Some(before) = environments::get_locked(&mut tx, id).await? else {
            return Ok(());
        };
        // Its owner may have retired it meanwhile.
        if before.state != EnvironmentState::Building {
            return Ok(());
        }
        let settled_at = Some(self.now());
        let after = match end {
            Ok(sealed) => Environment {
                state: EnvironmentState::Ready,
                python: sealed.python,
                bytes: Some(sealed.bytes),
                settled_at,
                ..before.clone()
            },
            Err(trouble) => Environment {
                state: EnvironmentState::Failed,
                trouble: Some(trouble),
                settled_at,
                ..before.clone()
            },
        };
        environments::update(&mut tx, &after).await?;
        let change = Change::new("environment.settle", Some(before.site), id)
            .before(recorded(&before))
            .after(recorded(&after))
            .tell(EventKind::EnvironmentChanged, Audience::Members);
        self.record(&mut tx, By::SYSTEM, change).await?;
        tx.commit().await?;
        self.written.notify_one();
        Ok(())
    }

    /// Removes the folder of an environment that failed or is retired.
    async fn clear_environment_away(
        &self,
        authority: Authority<'_>,
        one: &Environment,
    ) -> Result<()> {
        let mut reader = self.store.read().await?;
        let workload = self.making_of(&mut reader, one).await?;
        let is_being_made = match &workload {
            None => false,
            Some(workload) => {
                let runs = workloads::live_runs_of(&mut reader, workload.id).await?;
                !workload.state.is_final() || !runs.is_empty()
            }
        };
        if is_being_made || environments::is_extended(&mut reader, one.id).await? {
            return Ok(());
        }
        drop(reader);
        match self.shelving.remove(&self.backend, one.id).await {
            Some(Ok(Removed::Done)) => {}
            None | Some(Ok(Removed::StillSeen)) => return Ok(()),
            Some(Err(trouble)) => {
                tracing::warn!(%trouble, environment = %one.id, "it could not be removed; trying again");
                return Ok(());
            }
        }
        let mut tx = self.store.begin().await?;
        authority.check(&mut tx).await?;
        let Some(before) = environments::get_locked(&mut tx, one.id).await? else {
            return Ok(());
        };
        let after = Environment {
            is_on_disk: false,
            ..before
        };
        environments::update(&mut tx, &after).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Makes every prepared environment on the disk a curated environment of each site with a queue. If its folder is
    /// missing, it cannot be used until the folder is back.
    async fn take_in_prepared(&self, authority: Authority<'_>, shelf: &dyn Shelf) -> Result<()> {
        let lying = shelf.all_prepared().await?;
        let mut reader = self.store.read().await?;
        let known = environments::prepared(&mut reader).await?;
        let sites = queues::sites(&mut reader).await?;
        drop(reader);
        let has = |site: SiteId, key: &Name| {
            let is_it = |one: &&Environment| one.site == site && one.prepared.as_ref() == Some(key);
            known.iter().any(|one| is_it(&one))
        };
        for (key, prepared) in &lying {
            for site in sites.iter().filter(|site| !has(**site, key)) {
                self.adopt_prepared(authority, *site, key, prepared).await?;
            }
        }
        let keys: BTreeSet<&Name> = lying.iter().map(|(key, _)| key).collect();
        for one in &known {
            let is_there = one.prepared.as_ref().is_some_and(|key| keys.contains(key));
            match (one.state, is_there) {
                // Another server may have it on its own machine.
                (EnvironmentState::Ready, false) if self.is_elsewhere(one.site).await? => {}
                (EnvironmentState::Ready, false) | (EnvironmentState::Failed, true) => {
                    self.note_prepared(authority, one.id, is_there).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the site has a machine that this server does not reach.
    async fn is_elsewhere(&self, site: SiteId) -> Result<bool> {
        let mut reader = self.store.read().await?;
        let resources = inventory::of_site(&mut reader, site).await?;
        let mut machines = resources.iter().filter_map(machine_of);
        Ok(machines.any(|machine| !self.reaches(Some(&machine))))
    }

    async fn adopt_prepared(
        &self,
        authority: Authority<'_>,
        site: SiteId,
        key: &Name,
        prepared: &Prepared,
    ) -> Result<()> {
        let now = self.now();
        let mut tx = self.store.begin().await?;
        authority.check(&mut tx).await?;
        let versions = environments::called(&mut tx, site, &prepared.name).await?;
        let curated = versions.iter().filter(|one| one.owner.is_none());
        let environment = Environment {
            id: EnvironmentId(fresh(now)),
            site,
            owner: None,
            name: prepared.name.clone(),
            version: curated.map(|one| one.version).max().unwrap_or(0) + 1,
            base: None,
            packages: prepared.packages.clone(),
            path: Prepared::path(key),
            prepared: Some(key.clone()),
            workload: None,
            state: EnvironmentState::Ready,
            trouble: None,
            python: prepared.python.clone(),
            bytes: prepared.bytes,
            is_on_disk: false,
            created_by: None,
            created_at: now,
            settled_at: Some(now),
        };
        environments::insert(&mut tx, &environment).await?;
        let change = Change::new("environment.adopt", Some(site), environment.id)
            .after(recorded(&environment))
            .tell(EventKind::EnvironmentMade, Audience::Members);
        self.record(&mut tx, By::SYSTEM, change).await?;
        tx.commit().await?;
        self.written.notify_one();
        Ok(())
    }

    async fn note_prepared(
        &self,
        authority: Authority<'_>,
        id: EnvironmentId,
        is_there: bool,
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        authority.check(&mut tx).await?;
        let Some(before) = environments::get_locked(&mut tx, id).await? else {
            return Ok(());
        };
        let trouble = (!is_there).then(|| "what was prepared is no longer there".to_owned());
        let state = match is_there {
            true => EnvironmentState::Ready,
            false => EnvironmentState::Failed,
        };
        let after = Environment {
            state,
            trouble,
            ..before.clone()
        };
        environments::update(&mut tx, &after).await?;
        let change = Change::new("environment.settle", Some(before.site), id)
            .before(recorded(&before))
            .after(recorded(&after))
            .tell(EventKind::EnvironmentChanged, Audience::Members);
        self.record(&mut tx, By::SYSTEM, change).await?;
        tx.commit().await?;
        self.written.notify_one();
        Ok(())
    }
}
