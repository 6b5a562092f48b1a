//! Managed environments: the curated ones of a site, and the ones that people create or extend for themselves.
//!
//! A build is a workload like any other: it belongs to the person who asked for it, and holds claims. Its log shows the
//! progress. Only its sandbox may write into the new folder. A controller then settles the result.

mod bound;
mod find;
mod make;
mod progress;
mod settle;
mod shelving;
mod surroundings;

use berth_drivers::environments::Shelf;
use berth_engine::rights::Action;
use berth_model::environment::{Environment, EnvironmentName, EnvironmentState};
use berth_model::event::{Audience, EventKind};
use berth_model::reference::{EnvironmentReference, SiteReference};
use berth_model::workload::State;
use berth_model::{EnvironmentId, PersonId};
use berth_store::{Conn, environments, workloads};
use serde_json::json;

use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::Result;
use crate::place::Place;
use crate::record::Change;
use crate::transact::transact;

pub use make::{EnvironmentChange, NewEnvironment};
pub use progress::Progress;
pub(crate) use shelving::Shelving;

/// An environment for display.
#[derive(Debug, Clone)]
pub struct EnvironmentView {
    pub environment: Environment,
    pub called: EnvironmentName,
    /// Name of the environment that it extends.
    pub base: Option<EnvironmentName>,
    /// Progress of the build, if it is not ready.
    pub progress: Progress,
    pub directory: Directory,
}

impl App {
    pub(crate) fn shelf(&self) -> Option<&dyn Shelf> {
        self.backend.as_ref()?.shelf()
    }

    /// All environments of the site, by name, the newest version first.
    pub async fn environments(
        &self,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<Vec<EnvironmentView>> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeEnvironments)
            .await?;
        let all = environments::list(&mut reader, place.id()).await?;
        let mut views = Vec::with_capacity(all.len());
        for one in all {
            views.push(self.environment_view(&mut reader, &place, one).await?);
        }
        Ok(views)
    }

    pub async fn environment(
        &self,
        caller: &Caller,
        site: &SiteReference,
        reference: &EnvironmentReference,
    ) -> Result<EnvironmentView> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeEnvironments)
            .await?;
        let found = self
            .find_environment(&mut reader, place.id(), caller.id(), reference)
            .await?;
        self.environment_view(&mut reader, &place, found).await
    }

    /// The end of the build's log.
    pub async fn environment_log(
        &self,
        caller: &Caller,
        site: &SiteReference,
        reference: &EnvironmentReference,
    ) -> Result<String> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeEnvironments)
            .await?;
        let found = self
            .find_environment(&mut reader, place.id(), caller.id(), reference)
            .await?;
        self.build_log(&mut reader, &found).await
    }

    /// Allows no new runs in an environment. Its folder is removed when no run uses it and no environment extends it. A
    /// reference without a version means all versions.
    pub async fn retire_environment(
        &self,
        caller: &Caller,
        site: &SiteReference,
        reference: &EnvironmentReference,
    ) -> Result<()> {
        let done = transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeEnvironments).await?;
            let named = self.find_environment(&mut tx, place.id(), caller.id(), reference).await?;
            let is_own = named.owner == Some(caller.id());
            place.may(caller, Action::ManageEnvironment, is_own, WHAT)?;
            for id in self.versions_meant(&mut tx, &named, reference).await? {
                self.retire_version(&mut tx, caller, &place, id).await?;
            }
            Ok(())
        });
        self.submitted.notify_one();
        self.run_ended.notify_one();
        done
    }

    /// The versions that a request to retire means.
    async fn versions_meant(
        &self,
        conn: &mut Conn,
        named: &Environment,
        reference: &EnvironmentReference,
    ) -> Result<Vec<EnvironmentId>> {
        let is_one = match reference {
            EnvironmentReference::Id(_) => true,
            EnvironmentReference::Name(name) => name.version.is_some(),
        };
        if is_one {
            return Ok(vec![named.id]);
        }
        let all = environments::called(conn, named.site, &named.name).await?;
        let theirs = all.into_iter().filter(|one| one.owner == named.owner);
        Ok(theirs.map(|one| one.id).collect())
    }

    async fn retire_version(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        id: EnvironmentId,
    ) -> Result<()> {
        let Some(before) = environments::get_locked(conn, id).await? else {
            return Ok(());
        };
        if before.state == EnvironmentState::Retired {
            return Ok(());
        }
        if let Some(workload) = before.workload {
            let reason = "the environment is not wanted any more".parse().ok();
            self.cancel_inside(conn, caller, (place.id(), workload), reason)
                .await?;
        }
        let after = Environment {
            state: EnvironmentState::Retired,
            settled_at: Some(self.now()),
            ..before.clone()
        };
        environments::update(conn, &after).await?;
        let change = Change::new("environment.retire", Some(place.id()), id)
            .before(recorded(&before))
            .after(recorded(&after))
            .tell(EventKind::EnvironmentChanged, Audience::Members);
        self.record(conn, caller, change).await
    }

    async fn environment_view(
        &self,
        conn: &mut Conn,
        place: &Place,
        environment: Environment,
    ) -> Result<EnvironmentView> {
        let mut directory = Directory::with_site(&place.site);
        let called = self
            .environment_name(conn, &environment, &mut directory)
            .await?;
        let base = match environment.base {
            None => None,
            Some(base) => match environments::get(conn, place.id(), base).await? {
                Some(base) => Some(self.environment_name(conn, &base, &mut directory).await?),
                None => None,
            },
        };
        let progress = self.environment_progress(conn, &environment).await?;
        Ok(EnvironmentView {
            environment,
            called,
            base,
            progress,
            directory,
        })
    }

    async fn environment_progress(&self, conn: &mut Conn, of: &Environment) -> Result<Progress> {
        if of.state != EnvironmentState::Building {
            return Ok(Progress::of(of.state));
        }
        let workload = match of.workload {
            None => None,
            Some(id) => workloads::get(conn, of.site, id).await?,
        };
        let is_waiting =
            workload.is_none_or(|workload| matches!(workload.state, State::Waiting | State::Held));
        if is_waiting {
            return Ok(Progress::waiting());
        }
        Ok(Progress::read(&self.build_log(conn, of).await?))
    }

    /// The log of the build's newest run.
    async fn build_log(&self, conn: &mut Conn, of: &Environment) -> Result<String> {
        let Some(id) = of.workload else {
            return Ok(String::new());
        };
        let workload = workloads::get(conn, of.site, id).await?;
        let runs = workloads::newest_runs(conn, vec![id]).await?;
        let (Some(workload), Some(run)) = (&workload, runs.first()) else {
            return Ok(String::new());
        };
        self.log_of(workload, run).await
    }
}

const WHAT: &str = "environment in this site";

/// Whether `owner` has this environment; `None` means the site.
fn is_of(environment: &Environment, owner: Option<PersonId>) -> bool {
    environment.owner == owner
}

fn recorded(environment: &Environment) -> serde_json::Value {
    json!({
        "environment": environment.id,
        "name": environment.name,
        "version": environment.version,
        "owner": environment.owner,
        "base": environment.base,
        "packages": environment.packages,
        "state": environment.state,
        "trouble": environment.trouble,
    })
}
