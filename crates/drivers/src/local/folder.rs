//! A run's folder: the records of the server and the supervisor about one run, which survive both.
//!
//! The folder belongs to the server's user and no run sees it, so its contents are trusted. It appears complete under
//! the run's id, so a run starts once however often the server asks. The supervisor holds a lock. If the lock is free
//! although the run is marked as begun, the supervisor was killed.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use berth_model::RunId;
use jiff::Timestamp;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::record_key::RunRecordKey;
use super::spec::Spec;
use crate::door::Key;

#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

/// Maximum size of a record; a longer one is an error and is not read.
const RECORD_BYTES_MAX: u64 = 16 << 20;
/// Size in bytes of a supervisor's process id in its file.
const NUMBER_WIDTH: usize = 16;
/// Records that can be written once on a full disk, because each has a spare file of enough size to replace.
const SPARED: [&str; 3] = ["until", "told", END];
const SPARE_BYTES: usize = 8 << 10;
const END: &str = "end.json";
const SPEC: &str = "spec.json";
/// The variables of the app's environment, encrypted.
const SEALED: &str = "environment.sealed";
/// The same in plain text, as earlier versions wrote them.
const ENVIRONMENT: &str = "environment.json";
const KEY: &str = "key";

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub at: Timestamp,
    pub how: How,
    /// A sentence for the run's owner.
    pub said: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Exited(i32),
    Signalled(i32),
    OutOfMemory,
    /// It ended because of a stop or its deadline.
    Stopped,
    CouldNotStart,
    /// Its supervisor was killed.
    Lost,
}

/// The state of a run's supervisor, read from its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The process with this id supervises the run.
    By(i32),
    NotYet,
    /// The run had begun, and nothing supervises it any more.
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

    /// Creates the folder with everything in it, unless it exists.
    pub fn make(
        &self,
        spec: &Spec,
        key: &Key,
        record_key: &RunRecordKey,
        until: Timestamp,
    ) -> io::Result<()> {
        if self.0.exists() {
            return Ok(());
        }
        let new = self.0.with_extension("new");
        if new.exists() {
            fs::remove_dir_all(&new)?;
        }
        let mut private = fs::DirBuilder::new();
        private.mode(0o700).recursive(true).create(&new)?;
        let made = Folder(new.clone());
        let record = Spec {
            environment: BTreeMap::new(),
            ..spec.clone()
        };
        made.write(SPEC, &serde_json::to_vec(&record)?)?;
        let environment = Zeroizing::new(serde_json::to_vec(&spec.environment)?);
        made.write(SEALED, &record_key.seal(&environment)?)?;
        made.write(KEY, key.bytes())?;
        made.write("until", until.to_string().as_bytes())?;
        let seen: Vec<_> = spec.mounts.iter().map(|mount| &mount.from).collect();
        made.write("seen", &serde_json::to_vec(&seen)?)?;
        for name in SPARED {
            // Not flushed to disk, because a start already waits long enough for it.
            fs::write(new.join(spare(name)), [0; SPARE_BYTES])?;
        }
        fs::rename(&new, &self.0)?;
        sync_folder(self.0.parent())
    }

    /// Reads and removes the variables of the app's environment, which may be secrets. The supervisor reads them once,
    /// and then they are gone.
    pub fn take_environment(
        &self,
        record_key: Option<&RunRecordKey>,
    ) -> io::Result<BTreeMap<String, String>> {
        let environment = match self.read(SEALED)? {
            Some(sealed) => {
                let key = record_key.ok_or_else(|| invalid("nobody told the record's key"))?;
                serde_json::from_slice(&key.open(&sealed)?)?
            }
            None => self.read_json(ENVIRONMENT)?.unwrap_or_default(),
        };
        for name in [SEALED, ENVIRONMENT] {
            match fs::remove_file(self.0.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(environment)
    }

    /// The spec without its environment. It must belong to the run that the folder is named after.
    pub fn spec(&self) -> io::Result<Spec> {
        let spec: Option<Spec> = self.read_json(SPEC)?;
        let spec = spec.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        if self.run() != Some(spec.run) {
            return Err(invalid("the spec is of another run"));
        }
        Ok(spec)
    }

    /// The server's work folder, two levels above a run's folder.
    pub fn work(&self) -> io::Result<&Path> {
        let work = self.0.parent().and_then(Path::parent);
        work.ok_or_else(|| io::Error::other("the run's folder is nowhere"))
    }

    /// The run that the folder is named after.
    pub fn run(&self) -> Option<RunId> {
        let name = self.0.file_name()?.to_str()?;
        uuid_of(name).map(RunId)
    }

    /// The key with which a visitor's connection must begin.
    pub fn key(&self) -> io::Result<Key> {
        let bytes = self.read(KEY)?;
        let bytes = bytes.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Key::from_bytes(&bytes).ok_or_else(|| invalid("the key is cut off"))
    }

    /// Whether an older version started the run and kept its records where the run could write.
    pub fn is_of_an_older_version(&self) -> bool {
        !self.0.join(SPEC).exists() && self.0.join("io").exists()
    }

    /// The folders of this machine that the run mounts.
    pub fn seen(&self) -> io::Result<Vec<PathBuf>> {
        Ok(self.read_json("seen")?.unwrap_or_default())
    }

    /// The run's own folder on a machine without a sandbox. The server and the supervisor create it and never read in
    /// it.
    pub fn io(&self) -> PathBuf {
        self.0.join("io")
    }

    /// The socket on which the supervisor admits visitors.
    pub fn socket(&self) -> PathBuf {
        self.0.join("app.sock")
    }

    pub fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// The older half of the log, from before the newer one was full.
    pub fn older_log(&self) -> PathBuf {
        self.0.join("log.old")
    }

    /// The end of the run's output: at most this many bytes, in whole lines.
    pub fn log_tail(&self, bytes: u64) -> io::Result<String> {
        let (mut tail, mut is_cut) = tail_of(&self.log(), bytes)?;
        let left = bytes - tail.len() as u64;
        if !is_cut && left > 0 {
            let (mut older, is_older_cut) = tail_of(&self.older_log(), left)?;
            older.append(&mut tail);
            (tail, is_cut) = (older, is_older_cut);
        } else if !is_cut {
            is_cut = self.older_log().exists();
        }
        let text = String::from_utf8_lossy(&tail).into_owned();
        // The first line is most likely incomplete.
        match text.split_once('\n') {
            Some((_, whole)) if is_cut => Ok(whole.to_owned()),
            _ => Ok(text),
        }
    }

    pub fn until(&self) -> io::Result<Timestamp> {
        let bytes = self.read("until")?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        text.parse()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    pub fn set_until(&self, until: Timestamp) -> io::Result<()> {
        self.write("until", until.to_string().as_bytes())
    }

    pub fn end(&self) -> io::Result<Option<End>> {
        self.read_json(END)
    }

    pub fn set_end(&self, end: &End) -> io::Result<()> {
        self.write(END, &serde_json::to_vec(end)?)?;
        for name in SPARED {
            fs::remove_file(self.0.join(spare(name))).ok();
        }
        Ok(())
    }

    /// Marks that the run must end, for a supervisor that does not listen yet.
    pub fn tell_to_end(&self) -> io::Result<()> {
        self.write("told", b"")
    }

    pub fn is_told_to_end(&self) -> bool {
        self.0.join("told").exists()
    }

    /// Marks that the run may have processes from now on, so that nobody starts it a second time.
    pub fn begin(&self) -> io::Result<()> {
        self.write("begun", b"")
    }

    pub fn has_begun(&self) -> bool {
        self.0.join("begun").exists()
    }

    /// Makes this process the supervisor while the returned file is open; `None` if another process is.
    pub fn keep(&self) -> io::Result<Option<File>> {
        let Some(mut file) = self.lock()? else {
            return Ok(None);
        };
        file.rewind()?;
        write!(file, "{:<NUMBER_WIDTH$}", std::process::id())?;
        Ok(Some(file))
    }

    /// Keeps every supervisor away while the returned file is open. No signal for the run reaches this process. The
    /// file is overwritten in place, because a full disk has no room for a new one.
    pub(super) fn lock(&self) -> io::Result<Option<File>> {
        let mut file = self.lock_file()?;
        match file.try_lock() {
            Ok(()) => {
                write!(file, "{:<NUMBER_WIDTH$}", "")?;
                file.set_len(NUMBER_WIDTH as u64)?;
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
                // A process that holds the lock and has not written its id yet is a supervisor all the same.
                Ok(text.trim().parse().map_or(Kept::By(0), Kept::By))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Sends a signal to the supervisor, if there is one.
    pub fn signal_keeper(&self, signal: Signal) -> io::Result<()> {
        let kept = self.kept()?;
        let Kept::By(number @ 1..) = kept else {
            return Ok(());
        };
        let Some(Ok(process)) = Pid::from_raw(number).map(|id| pidfd_open(id, PidfdFlags::empty()))
        else {
            return Ok(());
        };
        // The supervisor may have ended, and another process may have its id. If it holds the lock now, it has held it
        // all the time.
        match self.kept()? == kept {
            true => Ok(pidfd_send_signal(process, signal)?),
            false => Ok(()),
        }
    }

    /// Whether the run has processes, or will have some.
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
        let bytes = self.read(name)?;
        let read = bytes.map(|bytes| serde_json::from_slice(&bytes));
        Ok(read.transpose()?)
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.take(RECORD_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > RECORD_BYTES_MAX {
            return Err(invalid("the record is too long"));
        }
        Ok(Some(bytes))
    }

    /// Writes a record completely or not at all, even if the machine crashes. A record with a spare file can be written
    /// on a full disk.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match self.try_write(name, bytes) {
            Err(error) if is_full(&error) => {
                fs::remove_file(self.0.join(spare(name))).map_err(|_| error)?;
                self.try_write(name, bytes)
            }
            written => written,
        }
    }

    fn try_write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.0.join(name);
        let new = self.0.join(format!("{name}.part"));
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&new)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&new, &path)?;
        sync_folder(path.parent())
    }
}

fn spare(name: &str) -> String {
    format!("{name}.spare")
}

pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

pub(super) fn uuid_of(name: &str) -> Option<uuid::Uuid> {
    let is_simple = name.len() == 32;
    uuid::Uuid::try_parse(name).ok().filter(|_| is_simple)
}

/// The last bytes of a file, and whether there are more before them. A missing file counts as empty.
fn tail_of(path: &Path, bytes: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), false)),
        file => file?,
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
    let mut tail = Vec::new();
    file.take(bytes).read_to_end(&mut tail)?;
    Ok((tail, length > bytes))
}

pub(super) fn sync_folder(folder: Option<&Path>) -> io::Result<()> {
    match folder {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_log_goes_back_before_its_rotation() {
        let here = tempfile::tempdir().unwrap();
        let folder = Folder::at(here.path().to_owned());
        fs::write(folder.older_log(), "one\ntwo\n").unwrap();
        fs::write(folder.log(), "three\n").unwrap();
        assert_eq!(folder.log_tail(100).unwrap(), "one\ntwo\nthree\n");
        assert_eq!(folder.log_tail(12).unwrap(), "two\nthree\n", "whole lines");
        assert_eq!(folder.log_tail(8).unwrap(), "three\n");
    }
}
