//! The folder the demo's world is kept in, and whether what lies there can be used.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use berth_app::Settings;
use berth_app::vault::Vault;
use berth_drivers::local;
use berth_server::config::Config;
use berth_store::Store;
use jiff::{SignedDuration, Timestamp};

use super::world::Origin;
use crate::commands::environment::prepare;
use crate::installation::{self, Lock, LockError};
use crate::machine::ThisMachine;

/// Goes up whenever the world is told differently; an older one is then made anew.
const EDITION: u32 = 3;
/// A world that was left for longer is made anew: too much would have to be caught up with.
const LEFT_ALONE_MAX: SignedDuration = SignedDuration::from_hours(24 * 45);

const DATABASE: &str = "demo.sqlite";
const SECRET_KEY: &str = "demo.key";
const NOTE: &str = "demo.json";
/// What really runs, and the homes of those whose it is.
const WORK: &str = "demo.work";
const WORK_GONE: &str = "demo.work.gone";

/// Written last, so that a world that was cut off while it was made is not mistaken for a whole one.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Note {
    edition: u32,
    #[serde(flatten)]
    origin: Origin,
}

/// The folder, for this process alone.
#[derive(Debug)]
pub struct Folder {
    pub config: Config,
    lock: Lock,
}

impl Folder {
    pub fn open(path: &Path, listen: SocketAddr) -> anyhow::Result<Self> {
        let config = config(path, listen)?;
        installation::prepare(&config)?;
        let lock = installation::lock(&config).map_err(|error| match error {
            LockError::Held(_) => anyhow!(
                "another demo runs on {}: use that one, stop it, or give this one a --data-dir of its own",
                path.display()
            ),
            error => error.into(),
        })?;
        Ok(Self { config, lock })
    }

    pub fn path(&self) -> &Path {
        &self.config.data_dir
    }

    pub async fn store(&self) -> anyhow::Result<Store> {
        installation::open_store(&self.config, &self.lock).await
    }

    pub fn vault(&self) -> anyhow::Result<Vault> {
        Ok(Vault::open_or_create(&self.config.secret_key_file)?)
    }

    /// The machine, with what runs on it for this world. One person plays all people of a demo, so they share it
    /// even where the server is not root.
    pub fn machine(&self) -> anyhow::Result<ThisMachine> {
        let shared = Config {
            unsafe_shared_user: true,
            ..self.config.clone()
        };
        ThisMachine::look(&shared, &self.path().join(WORK), &self.vault()?)
    }

    /// What the application is told: where sessions are found.
    pub fn settings(&self) -> Settings {
        Settings {
            addresses: berth_server::session_addresses(&self.config),
            ..Settings::default()
        }
    }

    /// The world that lies here, if it is whole and of this edition.
    pub fn world(&self) -> Option<Origin> {
        let text = fs::read_to_string(self.path().join(NOTE)).ok()?;
        let note: Note = serde_json::from_str(&text).ok()?;
        let is_whole = self.path().join(DATABASE).exists() && self.config.secret_key_file.exists();
        (note.edition == EDITION && is_whole).then_some(note.origin)
    }

    /// Notes that a world is whole.
    pub fn note(&self, origin: Origin) -> anyhow::Result<()> {
        let note = Note {
            edition: EDITION,
            origin,
        };
        let file = self.path().join(NOTE);
        fs::write(&file, serde_json::to_string_pretty(&note)?)
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// Ends what still runs for a world that goes, and removes it with the homes.
    fn clear_work(&self) -> anyhow::Result<()> {
        let (work, gone) = (self.path().join(WORK), self.path().join(WORK_GONE));
        let remove = || match fs::remove_dir_all(&gone) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", gone.display()))
            }
            _ => Ok(()),
        };
        remove()?;
        if work.exists() {
            local::end_everything(&work).context("cannot end what runs for the world before")?;
            // What is still on its way out writes nothing more into a folder that has another name.
            fs::rename(&work, &gone)
                .with_context(|| format!("cannot move {} away", work.display()))?;
            remove()?;
        }
        Ok(())
    }

    /// Removes the files of the demo, and no others: the folder may be somebody's own.
    pub fn clear(&self) -> anyhow::Result<()> {
        self.clear_work()?;
        let database = |end: &str| format!("{DATABASE}{end}");
        let files = [
            NOTE.to_owned(),
            database(""),
            database("-wal"),
            database("-shm"),
            SECRET_KEY.to_owned(),
        ];
        for file in files.map(|file| self.path().join(file)) {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", file.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A server for this folder. The environment has no say: a setting of a real installation, such as its database,
/// must not reach the demo.
fn config(folder: &Path, listen: SocketAddr) -> anyhow::Result<Config> {
    let file = |name: &str| folder.join(name).display().to_string();
    let flags = BTreeMap::from([
        ("listen", listen.to_string()),
        ("data_dir", folder.display().to_string()),
        ("database", format!("sqlite:{}", file(DATABASE))),
        ("secret_key_file", file(SECRET_KEY)),
        ("log_filter", "warn".to_owned()),
        (
            "prepared_environments",
            prepare::usual_folder()?.display().to_string(),
        ),
    ]);
    match Config::layer(None, std::iter::empty(), flags) {
        Ok(loaded) => Ok(loaded.config),
        Err(errors) => Err(errors
            .into_iter()
            .next()
            .map_or_else(|| anyhow!("no configuration"), Into::into)),
    }
}

/// Whether a world last seen then can be carried on: not after too long, and not into its own past.
pub fn is_recent(last_seen: Timestamp, now: Timestamp) -> bool {
    (SignedDuration::ZERO..=LEFT_ALONE_MAX).contains(&now.duration_since(last_seen))
}

/// Where programs of this user keep what can be made again.
pub fn usual_path() -> anyhow::Result<PathBuf> {
    let absolute = |variable| {
        let path = std::env::var_os(variable).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let cache =
        absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    let cache = cache.context("no folder for the demo: give one with --data-dir, or set HOME")?;
    Ok(cache.join("berth-demo"))
}
