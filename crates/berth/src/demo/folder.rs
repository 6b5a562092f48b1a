//! The folder the demo's world is kept in, and whether what lies there can be used.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};

use super::world::Origin;

/// Goes up whenever the world is told differently; an older one is then made anew.
const EDITION: u32 = 1;
/// A world that was left for longer is made anew: too much would have to be caught up with.
const LEFT_ALONE_MAX: SignedDuration = SignedDuration::from_hours(24 * 45);

const DATABASE: &str = "demo.sqlite";
const SECRET_KEY: &str = "demo.key";
const NOTE: &str = "demo.json";

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
    path: PathBuf,
    /// Held for as long as the folder is used; the system lets go of it whatever happens to us.
    _lock: File,
}

impl Folder {
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        std::fs::create_dir_all(path).with_context(|| format!("cannot make the folder {shown}"))?;
        let lock = File::create(path.join("demo.lock"))
            .with_context(|| format!("cannot write in {shown}"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "another demo runs on {shown}: use that one, stop it, or give this one a --data-dir of its own"
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {shown}"));
            }
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    pub fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    pub fn secret_key(&self) -> PathBuf {
        self.path.join(SECRET_KEY)
    }

    /// The world that lies here, if it is whole and of this edition.
    pub fn world(&self) -> Option<Origin> {
        let text = std::fs::read_to_string(self.path.join(NOTE)).ok()?;
        let note: Note = serde_json::from_str(&text).ok()?;
        (note.edition == EDITION && self.database().exists()).then_some(note.origin)
    }

    pub fn note(&self, origin: Origin) -> anyhow::Result<()> {
        let note = Note {
            edition: EDITION,
            origin,
        };
        let text = serde_json::to_string_pretty(&note)?;
        std::fs::write(self.path.join(NOTE), text).context("cannot note that the world is whole")
    }

    /// Removes the files of the demo, and no others: the folder may be somebody's own.
    pub fn clear(&self) -> anyhow::Result<()> {
        let journal = |end: &str| format!("{DATABASE}{end}");
        let files = [
            NOTE.to_owned(),
            journal(""),
            journal("-wal"),
            journal("-shm"),
            SECRET_KEY.to_owned(),
        ];
        for file in files.map(|file| self.path.join(file)) {
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", file.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether a world last seen then is worth carrying on.
pub fn is_recent(last_seen: Timestamp, now: Timestamp) -> bool {
    now.duration_since(last_seen) <= LEFT_ALONE_MAX
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
