//! A run's folder: what is known of it on disk, which is all that survives a server.
//!
//! The folder appears whole, under the run's id, and so a run is started once however often that is asked. Whoever holds
//! the lock is its keeper; a lock that nobody holds, beside a mark that it had begun, means that its keeper was killed.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use berth_model::RunId;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::spec::Spec;

#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

/// How a run came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub at: Timestamp,
    pub how: How,
    /// For its owner.
    pub said: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Exited(i32),
    Signalled(i32),
    OutOfMemory,
    /// It was told to, and went.
    Stopped,
    CouldNotStart,
    /// Whoever kept it was killed.
    Lost,
}

/// What a lock says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// By this process.
    By(i32),
    NotYet,
    /// It had begun, and nobody keeps it.
    NoMore,
}

impl Folder {
    pub fn at(path: PathBuf) -> Folder {
        Folder(path)
    }

    pub fn of(runs: &Path, run: RunId) -> Folder {
        Folder(runs.join(run.0.simple().to_string()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes it with everything in it, or finds it made.
    pub fn make(&self, spec: &Spec, until: Timestamp) -> io::Result<()> {
        if self.0.exists() {
            return Ok(());
        }
        let new = self.0.with_extension("new");
        if new.exists() {
            fs::remove_dir_all(&new)?;
        }
        let mut private = fs::DirBuilder::new();
        private.mode(0o700).recursive(true).create(new.join("io"))?;
        let made = Folder(new.clone());
        made.write("io/spec.json", &serde_json::to_vec(spec)?)?;
        made.write("until", until.to_string().as_bytes())?;
        let seen: Vec<_> = spec.mounts.iter().map(|mount| &mount.from).collect();
        made.write("seen", &serde_json::to_vec(&seen)?)?;
        fs::rename(&new, &self.0)?;
        sync_folder(self.0.parent())
    }

    pub fn spec(&self) -> io::Result<Spec> {
        self.read_json("io/spec.json")?
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// The folders of this machine that it was given to see. Kept apart from what the run itself may write to.
    pub fn seen(&self) -> io::Result<Vec<PathBuf>> {
        Ok(self.read_json("seen")?.unwrap_or_default())
    }

    /// What the sandbox sees as its own.
    pub fn io(&self) -> PathBuf {
        self.0.join("io")
    }

    pub fn socket(&self) -> PathBuf {
        self.io().join("app.sock")
    }

    pub fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// The last of what it said.
    pub fn log_tail(&self, bytes: u64) -> io::Result<String> {
        let mut file = match File::open(self.log()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            other => other?,
        };
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
        let mut tail = Vec::new();
        file.take(bytes).read_to_end(&mut tail)?;
        let text = String::from_utf8_lossy(&tail).into_owned();
        // The first line is most likely cut in two.
        match text.split_once('\n') {
            Some((_, whole)) if length > bytes => Ok(whole.to_owned()),
            _ => Ok(text),
        }
    }

    pub fn until(&self) -> io::Result<Timestamp> {
        let text = fs::read_to_string(self.0.join("until"))?;
        text.parse()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    pub fn set_until(&self, until: Timestamp) -> io::Result<()> {
        self.write("until", until.to_string().as_bytes())
    }

    pub fn end(&self) -> io::Result<Option<End>> {
        self.read_json("end.json")
    }

    pub fn set_end(&self, end: &End) -> io::Result<()> {
        self.write("end.json", &serde_json::to_vec(end)?)
    }

    /// Marks that it has to come to its end, for a keeper that does not listen yet.
    pub fn tell_to_end(&self) -> io::Result<()> {
        self.write("told", b"")
    }

    pub fn is_told_to_end(&self) -> bool {
        self.0.join("told").exists()
    }

    /// Marks that something may run from now on. Nobody begins it a second time.
    pub fn begin(&self) -> io::Result<()> {
        self.write("begun", b"")
    }

    pub fn has_begun(&self) -> bool {
        self.0.join("begun").exists()
    }

    /// Becomes its keeper for as long as the file lives; none where somebody is.
    pub fn keep(&self) -> io::Result<Option<File>> {
        let mut file = self.lock_file()?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                write!(file, "{}", std::process::id())?;
                Ok(Some(file))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub fn kept(&self) -> io::Result<Kept> {
        let mut file = self.lock_file()?;
        match file.try_lock_shared() {
            Ok(()) if self.has_begun() => Ok(Kept::NoMore),
            Ok(()) => Ok(Kept::NotYet),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text)?;
                // Between taking the lock and writing its number it has none; it is kept all the same.
                Ok(text.trim().parse().map_or(Kept::By(0), Kept::By))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether something of it runs, or will.
    pub fn may_run(&self) -> io::Result<bool> {
        if self.0.extension().is_some() || self.end()?.is_some() {
            return Ok(false);
        }
        Ok(!self.is_told_to_end() || self.kept()? != Kept::NotYet)
    }

    fn lock_file(&self) -> io::Result<File> {
        let mut options = File::options();
        options.read(true).write(true).create(true).mode(0o600);
        options.open(self.0.join("keeper"))
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        match fs::read(self.0.join(name)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All of it or nothing, whenever the machine stops.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.0.join(name);
        let new = path.with_extension("part");
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&new)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&new, &path)?;
        sync_folder(path.parent())
    }
}

fn sync_folder(folder: Option<&Path>) -> io::Result<()> {
    match folder {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
