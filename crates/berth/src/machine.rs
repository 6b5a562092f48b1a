//! The machine that this program runs on, as what runs the queue's work and as a part of a site's inventory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use berth_app::inventory::OwnMachine;
use berth_app::vault::Vault;
use berth_app::{App, Error};
use berth_drivers::backend::Backend;
use berth_drivers::local::disk::DiskLimits;
use berth_drivers::local::machine::{self, Abilities, Machine};
use berth_drivers::local::network::Range;
use berth_drivers::local::record_key::RecordKey;
use berth_drivers::local::{Local, Settings};
use berth_drivers::split::Split;
use berth_model::Reference;
use berth_model::reference::SiteReference;
use berth_server::config::{Config, Destination, Network};
use tokio_util::sync::CancellationToken;

use crate::slurm::variables::WithVariables;

/// How long after the machine could not be brought up to date it is tried again.
const AGAIN: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct ThisMachine {
    pub own: OwnMachine,
    pub runs: Arc<Local>,
    pub can: Abilities,
}

impl ThisMachine {
    /// What there is, and what of it is kept apart; runs and homes are below the folder.
    pub fn look(config: &Config, folder: &Path, vault: &Vault) -> anyhow::Result<ThisMachine> {
        let can = Abilities::look();
        let settings = Settings {
            folder: folder.to_owned(),
            program: std::env::current_exe()?,
            first_user: can.users.is_ok().then_some(config.first_user),
            // Runs reach no IPv6 in any case.
            closed: config.closed_networks.iter().filter_map(range).collect(),
            opened: opened_ranges(config),
            opened_names: opened_names(config),
            database_host: config.database.host(),
            has_network: can.network.is_ok(),
            prepared: config.prepared_environments.clone(),
            warm_max: config.warm_servers,
            has_sandbox: can.sandbox.is_ok(),
            sandbox_again: Some(Abilities::has_sandbox),
            is_shared: config.unsafe_shared_user,
            record_key: RecordKey::new(vault.record_key().clone()),
            disk: DiskLimits {
                home_bytes_max: Some(config.home_limit_mib)
                    .filter(|limit| *limit > 0)
                    .map(|limit| limit << 20),
                reserve_bytes: config.disk_reserve_mib << 20,
            },
        };
        let runs = Local::new(settings)
            .with_context(|| format!("cannot keep people's work in {}", folder.display()))?;
        let lacks = can.lacks().map(|(name, why)| Ok((name.parse()?, why)));
        let own = OwnMachine {
            identity: machine::identity(folder)?,
            found: Machine::look(),
            cores_kept: config.machine_cores_kept,
            memory_kept_mib: config.machine_memory_kept_mib,
            lacks: lacks.collect::<anyhow::Result<_>>()?,
            closed: None,
        };
        let runs = Arc::new(runs);
        Ok(ThisMachine { own, runs, can })
    }

    pub fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(WithVariables(self.runs.clone()))
    }
}

fn opened_ranges(config: &Config) -> Vec<Range> {
    let ranges = config.opened_networks.iter().filter_map(|one| match one {
        Destination::Network(network) => range(network),
        Destination::Name(_) => None,
    });
    ranges.collect()
}

fn range(network: &Network) -> Option<Range> {
    let (first, prefix_bits) = network.ipv4()?;
    Some(Range::new(first, prefix_bits))
}

/// The host names that are opened to runs.
pub fn opened_names(config: &Config) -> Vec<String> {
    let names = config.opened_networks.iter().filter_map(|one| match one {
        Destination::Name(name) => Some(name.clone()),
        Destination::Network(_) => None,
    });
    names.collect()
}

/// Puts the machine into the site's inventory, and sends its work to it; says whether all is as it should be.
pub async fn move_in(
    app: &App,
    site: &SiteReference,
    own: &OwnMachine,
    split: &Split,
) -> Result<bool, Error> {
    let kept = app.keep_machine(site, own).await?;
    split.take(kept.node);
    Ok(!kept.is_behind)
}

/// A machine that has a site to stand in.
#[derive(Debug)]
pub struct Moving {
    pub site: SiteReference,
    pub own: OwnMachine,
    pub split: Arc<Split>,
}

impl Moving {
    /// Moves in. Where that has to wait, for the site to be made or for promises to be over, it is tried until it is done.
    pub async fn start(self, app: &App, stop: &CancellationToken) -> anyhow::Result<()> {
        if self.is_done(app).await? {
            return Ok(());
        }
        let (app, stop) = (app.clone(), stop.clone());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(AGAIN) => {}
                }
                match self.is_done(&app).await {
                    Ok(true) => return,
                    Ok(false) => {}
                    Err(error) => {
                        tracing::warn!(%error, "this machine's inventory is not up to date; trying again")
                    }
                }
            }
        });
        Ok(())
    }

    async fn is_done(&self, app: &App) -> Result<bool, Error> {
        match move_in(app, &self.site, &self.own, &self.split).await {
            Err(Error::NotFound(_)) => {
                let site = site_name(&self.site);
                tracing::warn!(
                    site,
                    "machine_site names a site that is not there; make it, and this machine moves in"
                );
                Ok(false)
            }
            Err(Error::Version { .. }) => Ok(false),
            done => done,
        }
    }
}

fn site_name(site: &SiteReference) -> String {
    match site {
        Reference::Name(name) => name.to_string(),
        Reference::Id(id) => id.to_string(),
    }
}
