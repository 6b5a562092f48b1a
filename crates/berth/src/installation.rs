//! One installation of Berth on this machine: its directory, its lock, its database, its key.
//!
//! The commands of the server's own machine (`serve`, `admin`, `db`, `doctor`, `demo`) all open the same things in
//! the same order, and that order is here. An SQLite file is served by one process at a time, which a lock beside it
//! ensures: the kernel lets go of it when the process ends, however it ends.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use berth_app::clock::SystemClock;
use berth_app::sessions::Culling;
use berth_app::vault::Vault;
use berth_app::{App, Settings};
use berth_drivers::backend::Backend;
use berth_drivers::local::machine::WeakBoundary;
use berth_drivers::simulated::{Simulated, World};
use berth_drivers::split::Split;
use berth_model::{PersonId, Reference};
use berth_server::config::{Config, Database, QueueBackend};
use berth_store::{Store, people, settings};
use jiff::SignedDuration;
use secrecy::{ExposeSecret, SecretString};

use crate::machine::{Moving, ThisMachine};

/// Held for as long as this process may write to its SQLite file; nothing for PostgreSQL, which serves many.
#[derive(Debug)]
pub struct Lock {
    _file: Option<File>,
}

/// Why the lock was not to be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "another `berth serve` uses {}; stop it first, or give this one a data_dir of its own",
        .0.display()
    )]
    Held(PathBuf),
    #[error("cannot lock {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// The file that stands for the right to write to the database.
pub fn lock_file(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Takes the lock, or says who has it.
pub fn lock(config: &Config) -> Result<Lock, LockError> {
    let Database::Sqlite(database) = &config.database else {
        return Ok(Lock { _file: None });
    };
    let path = lock_file(database);
    let opened = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path);
    let taken = opened.map_err(TryLockError::Error).and_then(|file| {
        file.try_lock()?;
        Ok(file)
    });
    match taken {
        Ok(file) => Ok(Lock { _file: Some(file) }),
        Err(TryLockError::WouldBlock) => Err(LockError::Held(database.clone())),
        Err(TryLockError::Error(source)) => Err(LockError::Io { path, source }),
    }
}

/// Makes the directory for Berth's data, for its owner only; one that exists is left as it is.
pub fn prepare(config: &Config) -> anyhow::Result<()> {
    let folder = &config.data_dir;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot make the directory {} (data_dir)", folder.display()))
}

/// The database's address as the store takes it.
pub fn database_url(database: &Database) -> SecretString {
    match database {
        Database::Sqlite(path) => format!("sqlite:{}", path.display()).into(),
        Database::Postgres(url) => url.clone(),
    }
}

/// Opens the database and brings its schema up to date. Only for whoever holds the lock.
pub async fn open_store(config: &Config, _lock: &Lock) -> anyhow::Result<Store> {
    let url = database_url(&config.database);
    Ok(Store::open(url.expose_secret(), config.db_connections).await?)
}

/// Opens the database as it is.
pub async fn connect_store(config: &Config) -> anyhow::Result<Store> {
    let url = database_url(&config.database);
    Ok(Store::connect(url.expose_secret(), config.db_connections).await?)
}

/// Refuses a database that would lose what it has acknowledged: then no booking could be promised.
pub async fn check_durability(store: &Store) -> anyhow::Result<()> {
    let wrong: Vec<String> = settings::read(store)
        .await?
        .into_iter()
        .filter(|setting| !setting.good)
        .map(|setting| {
            format!(
                "{} is {} and must be {}",
                setting.name, setting.is, setting.wanted
            )
        })
        .collect();
    if !wrong.is_empty() {
        bail!(
            "the database could forget what it has promised: {}. Change its configuration, then start again",
            wrong.join("; ")
        );
    }
    Ok(())
}

/// The application over an open store, for commands that run no work.
pub fn app(config: &Config, store: Store) -> anyhow::Result<App> {
    let vault = Vault::open_or_create(&config.secret_key_file)?;
    Ok(app_with(config, store, vault, None, None))
}

/// The application of a server, and the machine that has to move in before it serves.
pub fn serving(config: &Config, store: Store) -> anyhow::Result<(App, Option<Moving>)> {
    let vault = Vault::open_or_create(&config.secret_key_file)?;
    let mut weak = None;
    let (backend, moving): (Option<Arc<dyn Backend>>, _) = match config.queue_backend {
        QueueBackend::None => (None, None),
        QueueBackend::Simulated => (Some(Arc::new(Simulated::new(World::lively(1)))), None),
        QueueBackend::Local => {
            let machine = this_machine(config, &vault)?;
            weak = machine.can.weak_boundary();
            let (backend, moving) = joined(config, machine);
            (Some(backend), moving)
        }
    };
    Ok((app_with(config, store, vault, backend, weak), moving))
}

fn app_with(
    config: &Config,
    store: Store,
    vault: Vault,
    backend: Option<Arc<dyn Backend>>,
    weak_boundary: Option<WeakBoundary>,
) -> App {
    let settings = Settings {
        sign_in_attempts_max: config.sign_in_attempts_max.into(),
        sign_in_attempts_login_max: config.sign_in_attempts_login_max.into(),
        sign_in_attempts_network_max: config.sign_in_attempts_network_max.into(),
        session_idle: SignedDuration::from_hours(config.session_idle_h.into()),
        session_absolute: days(config.session_absolute_d),
        password_min_length: config.password_min_length,
        event_retention: days(config.event_retention_d),
        weak_boundary,
        run_retention: days(config.run_retention_d),
        log_retention: days(config.log_retention_d),
        environments_bytes_max: Some(config.environments_limit_mib)
            .filter(|limit| *limit > 0)
            .map(|limit| limit << 20),
        package_index: config
            .package_index
            .as_ref()
            .map(|index| index.as_str().to_owned()),
        addresses: berth_server::session_addresses(config),
        round_limit: Settings::ROUND_LIMIT,
        culling: Culling {
            every: seconds(config.cull_every_s),
            warning: seconds(config.cull_warning_s),
            ..Culling::default()
        },
    };
    App::with_backend(store, Arc::new(SystemClock), vault, settings, backend)
}

fn this_machine(config: &Config, vault: &Vault) -> anyhow::Result<ThisMachine> {
    let machine = ThisMachine::look(config, &config.data_dir.join("work"), vault)?;
    for (_, why) in machine.can.lacks() {
        tracing::warn!("this machine keeps people's work less apart than it should: {why}");
    }
    if let Some(weak) = machine.can.weak_boundary() {
        tracing::warn!(
            "the boundary of a run does not hold here: {}",
            weak.sentence()
        );
    }
    Ok(machine)
}

/// The backend of this machine. Where the machine stands in a site, its backend runs the work of its own node and no other.
fn joined(config: &Config, machine: ThisMachine) -> (Arc<dyn Backend>, Option<Moving>) {
    let backend = machine.backend();
    let Some(site) = &config.machine_site else {
        return (backend, None);
    };
    let split = Arc::new(Split::new(backend, None));
    let moving = Moving {
        site: Reference::Name(site.clone()),
        own: machine.own,
        split: split.clone(),
    };
    (split, Some(moving))
}

/// Whether anyone can administer this installation yet.
pub async fn has_admin(store: &Store) -> berth_store::Result<bool> {
    // Nobody has the id of all zeros, so "the others" are everyone.
    let mut reader = store.read().await?;
    let nobody = PersonId::from_parts(0, &[0; 10]);
    let admins = people::other_global_admins(&mut reader, nobody).await?;
    Ok(admins > 0)
}

fn days(count: u32) -> SignedDuration {
    SignedDuration::from_hours(24 * i64::from(count))
}

fn seconds(count: u64) -> SignedDuration {
    SignedDuration::from_secs(i64::try_from(count).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn config(folder: &Path) -> Config {
        let flags = BTreeMap::from([("data_dir", folder.display().to_string())]);
        Config::layer(None, std::iter::empty(), flags)
            .unwrap()
            .config
    }

    #[test]
    fn only_one_holds_the_lock_and_it_is_free_again_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let first = lock(&config).unwrap();
        let said = lock(&config).unwrap_err().to_string();
        assert!(said.contains("another `berth serve`"), "{said}");
        drop(first);
        lock(&config).unwrap();
    }

    #[tokio::test]
    async fn a_new_installation_is_private_durable_and_has_no_admin() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let config = config(&folder.path().join("data"));
        prepare(&config).unwrap();
        let mode = fs::metadata(&config.data_dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let held = lock(&config).unwrap();
        let store = open_store(&config, &held).await.unwrap();
        check_durability(&store).await.unwrap();
        assert!(!has_admin(&store).await.unwrap());
        let app = app(&config, store).unwrap();
        let made = app
            .create_admin("ada".parse().unwrap(), "Ada".parse().unwrap(), None)
            .await;
        assert!(made.unwrap().1.is_some(), "a link to set a password");
        assert!(has_admin(&app.store).await.unwrap());
    }
}
