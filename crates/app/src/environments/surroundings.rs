//! The environments that a run sees: its own, the ones its owner may open notebooks in, and the folder of an
//! environment that it builds.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::path::PathBuf;

use berth_drivers::backend::Seen;
use berth_drivers::environments::{Shelf, installing};
use berth_model::environment::{Environment, EnvironmentState};
use berth_model::reference::EnvironmentReference;
use berth_model::workload::Workload;
use berth_model::{PersonId, SiteId};
use berth_store::{Conn, environments};

use crate::App;
use crate::error::{Error, Result};

/// Folders of programs after those of the environment.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// More than anybody reads in a list, and each one is a mount.
const KERNELS_MAX: usize = 40;
/// Limit on the chain of environments that extend one another.
const DEPTH_MAX: usize = 8;

/// Mounts and variables that are added to a grant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    pub mounts: Vec<Seen>,
    pub variables: BTreeMap<String, String>,
    /// The package index for a build.
    pub package_index: Option<String>,
}

impl App {
    /// The environments that a workload has to see, according to its own request.
    pub(crate) async fn surroundings(
        &self,
        conn: &mut Conn,
        workload: &Workload,
    ) -> Result<Surroundings> {
        let Some(shelf) = self.shelf() else {
            return Ok(Surroundings::default());
        };
        let made = environments::made_by(conn, workload.id).await?;
        if let Some(made) = made.filter(|made| made.state == EnvironmentState::Building) {
            return self.see_while_making(conn, shelf, &made).await;
        }
        let program = &workload.ask.program;
        let chosen = program
            .image
            .as_deref()
            .and_then(|image| image.parse().ok());
        // A person who opens notebooks in it wants to choose among all of their environments.
        let with_kernels = program.serves.is_some();
        let whose = (workload.site, workload.owner);
        self.environments_for(conn, whose, chosen.as_ref(), with_kernels)
            .await
    }

    /// The environments that a person's run sees. The programs of the chosen one come first in the path. The newest
    /// version of each curated environment, and of each of their own, is a kernel.
    pub(crate) async fn environments_for(
        &self,
        conn: &mut Conn,
        (site, person): (SiteId, PersonId),
        chosen: Option<&EnvironmentReference>,
        with_kernels: bool,
    ) -> Result<Surroundings> {
        let mut around = Surroundings::default();
        let Some(shelf) = self.shelf() else {
            return Ok(around);
        };
        let mut runs_in = None;
        if let Some(reference) = chosen {
            match self.find_environment(conn, site, person, reference).await {
                Ok(found) => {
                    runs_in = Some(found.id);
                    around.run_in(shelf, &self.environment_chain(conn, found).await?);
                }
                // Only the backend knows an image that is not an environment.
                Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        if with_kernels {
            let offered = environments::offered(conn, site, person).await?;
            // A notebook finds the kernel of its own environment by itself, and would list it twice.
            let others = offered.into_iter().filter(|one| Some(one.id) != runs_in);
            let mut chains = Vec::new();
            for one in others.take(KERNELS_MAX) {
                chains.push(self.environment_chain(conn, one).await?);
            }
            let folders = chains.iter().flatten().map(|one| folder_of(shelf, one));
            let existing = shelf.existing(folders.collect()).await;
            let existing: HashSet<PathBuf> = existing.unwrap_or_default().into_iter().collect();
            // An environment without its folder must not keep a notebook from starting.
            let is_there = |one: &Environment| existing.contains(&folder_of(shelf, one));
            let mut kernels = Vec::new();
            for chain in chains.iter().filter(|chain| chain.iter().all(is_there)) {
                if let Some(first) = chain.first() {
                    kernels.push(format!("{}/berth", first.inside()));
                    around.see_all(shelf, chain);
                }
            }
            if !kernels.is_empty() {
                let path = kernels.join(":");
                around.variables.insert("JUPYTER_PATH".to_owned(), path);
            }
        }
        Ok(around)
    }

    async fn see_while_making(
        &self,
        conn: &mut Conn,
        shelf: &dyn Shelf,
        made: &Environment,
    ) -> Result<Surroundings> {
        let mut around = Surroundings {
            mounts: vec![Seen {
                from: shelf.made(made.id),
                to: made.inside().into(),
                is_writable: true,
            }],
            variables: installing(self.settings.package_index.as_deref()),
            package_index: self.settings.package_index.clone(),
        };
        let chain = self.environment_chain(conn, made.clone()).await?;
        around.see_all(shelf, chain.get(1..).unwrap_or_default());
        Ok(around)
    }

    /// The environment, its base, the base of that, and so on.
    async fn environment_chain(
        &self,
        conn: &mut Conn,
        first: Environment,
    ) -> Result<Vec<Environment>> {
        let mut chain = vec![first];
        while let Some(last) = chain.last()
            && let Some(base) = last.base
            && chain.len() < DEPTH_MAX
        {
            let found = environments::get(conn, last.site, base).await?;
            chain.push(found.ok_or(Error::NotFound("environment in this site"))?);
        }
        Ok(chain)
    }
}

impl Surroundings {
    fn run_in(&mut self, shelf: &dyn Shelf, chain: &[Environment]) {
        self.see_all(shelf, chain);
        let bins = chain.iter().map(|one| format!("{}/bin", one.inside()));
        let bins: Vec<String> = bins.chain([PATH.to_owned()]).collect();
        let own = chain.first().map(Environment::inside).unwrap_or_default();
        self.variables.insert("PATH".to_owned(), bins.join(":"));
        self.variables.insert("VIRTUAL_ENV".to_owned(), own);
    }

    fn see_all(&mut self, shelf: &dyn Shelf, chain: &[Environment]) {
        for one in chain {
            let to = PathBuf::from(one.inside());
            if self.mounts.iter().all(|mount| mount.to != to) {
                self.mounts.push(Seen {
                    from: folder_of(shelf, one),
                    to,
                    is_writable: false,
                });
            }
        }
    }
}

/// The environment's folder on this machine. If the folder is missing, the start reports it.
fn folder_of(shelf: &dyn Shelf, one: &Environment) -> PathBuf {
    let prepared = one.prepared.as_ref().and_then(|key| shelf.prepared(key));
    prepared.unwrap_or_else(|| shelf.made(one.id))
}
