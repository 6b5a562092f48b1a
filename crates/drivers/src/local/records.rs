//! The folders of ended runs, and the logs that are kept of them.
//!
//! A folder is removed in three steps, and a server that is killed between two of them leaves nothing wrong. First, the
//! server writes the end of the log to the folder of kept logs. Then it gives the folder a name that belongs to no run.
//! Last, it removes the contents. Before the second step is done, the removal begins again; after it, the run has no
//! folder.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use berth_model::RunId;
use jiff::Timestamp;

use super::folder::{Folder, is_full, sync_folder, uuid_of};
use super::{Errand, Local, cannot, shelf};
use crate::backend::{Doing, Trouble};
use crate::records::{KEPT_LOG_BYTES, RunRecords};

/// The extension of a folder that is being removed.
const REMOVED: &str = "removed";
/// The extension of a log that is being written.
const PART: &str = "part";

/// Shown in place of a removed log.
pub const LOG_REMOVED: &str = "[berth: there is no log of this run, or it is no longer kept: logs are removed some time after the end of their run]\n";

/// The folder with the logs of runs without a folder.
pub fn logs_folder(work: &Path) -> PathBuf {
    work.join("logs")
}

fn kept_log(work: &Path, run: RunId) -> PathBuf {
    logs_folder(work).join(run.0.simple().to_string())
}

/// Reads the kept log of a run without a folder.
pub fn read_log(work: &Path, run: RunId, bytes: u64) -> io::Result<Option<String>> {
    let text = match fs::read(kept_log(work, run)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let length = usize::try_from(bytes).unwrap_or(usize::MAX).min(text.len());
    let tail = &text[text.len() - length..];
    Ok(Some(String::from_utf8_lossy(tail).into_owned()))
}

impl Local {
    fn runs(&self) -> PathBuf {
        self.settings().folder.join("runs")
    }
}

impl RunRecords for Local {
    fn folders(&self, unchanged_since: Timestamp) -> Doing<'_, Vec<RunId>> {
        let runs = self.runs();
        self.errand(Errand::Records, move || unchanged(&runs, unchanged_since))
    }

    fn remove_folder(&self, run: RunId) -> Doing<'_, ()> {
        let (folder, log) = (self.folder(run), kept_log(&self.settings().folder, run));
        let hands = self.hands.clone();
        Box::pin(async move {
            let renamed = self.errand(Errand::Records, move || {
                hands.settle_ended(run)?;
                set_aside(&folder, &log)
            });
            match renamed.await? {
                Some(renamed) => remove(renamed).await,
                None => Ok(()),
            }
        })
    }

    /// A folder that cannot be removed does not block the others; the next call tries it again.
    fn finish_removals(&self) -> Doing<'_, ()> {
        let (runs, logs) = (self.runs(), logs_folder(&self.settings().folder));
        Box::pin(async move {
            let left = self.errand(Errand::Records, move || {
                for cut_off in with_extension(&logs, PART)? {
                    if let Err(error) = fs::remove_file(&cut_off) {
                        cannot_remove(&cut_off, &cannot(error));
                    }
                }
                with_extension(&runs, REMOVED)
            });
            for folder in left.await? {
                if let Err(trouble) = remove(folder.clone()).await {
                    cannot_remove(&folder, &trouble);
                }
            }
            Ok(())
        })
    }

    fn logs(&self, ended_before: Timestamp) -> Doing<'_, Vec<RunId>> {
        let logs = logs_folder(&self.settings().folder);
        self.errand(Errand::Records, move || unchanged(&logs, ended_before))
    }

    fn remove_log(&self, run: RunId) -> Doing<'_, ()> {
        let log = kept_log(&self.settings().folder, run);
        self.errand(Errand::Records, move || match fs::remove_file(log) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
    }
}

fn cannot_remove(path: &Path, trouble: &Trouble) {
    let path = path.display();
    tracing::warn!(%trouble, %path, "what is left of a run could not be removed; trying again");
}

/// The runs with an entry in a folder that has not changed since a time.
fn unchanged(folder: &Path, since: Timestamp) -> io::Result<Vec<RunId>> {
    let since = SystemTime::from(since);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some(run) = entry.file_name().to_str().and_then(uuid_of) else {
            continue;
        };
        // An entry that disappears meanwhile is being removed by another server.
        let changed = entry.metadata().and_then(|about| about.modified());
        if changed.is_ok_and(|changed| changed <= since) {
            found.push(RunId(run));
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn with_extension(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Keeps the log and gives the folder another name; `None` if the folder is gone, or the run may have processes.
fn set_aside(folder: &Folder, log: &Path) -> io::Result<Option<PathBuf>> {
    if !folder.path().exists() || folder.may_run()? {
        return Ok(None);
    }
    // A supervisor that starts late does not wait: it finds the lock taken, or no folder.
    let Some(_lock) = folder.lock()? else {
        return Ok(None);
    };
    if !log.exists() {
        keep_log(folder, log)?;
    }
    let aside = folder.path().with_extension(REMOVED);
    fs::rename(folder.path(), &aside)?;
    sync_folder(aside.parent())?;
    Ok(Some(aside))
}

fn keep_log(folder: &Folder, log: &Path) -> io::Result<()> {
    match write_log(folder, log) {
        Err(error) if is_full(&error) => {
            // On a full disk, the older half of the log makes room for the end of the log.
            fs::remove_file(folder.older_log()).ok();
            write_log(folder, log)
        }
        written => written,
    }
}

fn write_log(folder: &Folder, log: &Path) -> io::Result<()> {
    let tail = folder.log_tail(KEPT_LOG_BYTES)?;
    let part = log.with_extension(PART);
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&part)?;
    file.write_all(tail.as_bytes())?;
    // The log's modification time is the end of its run.
    if let Some(end) = folder.end()? {
        file.set_modified(SystemTime::from(end.at))?;
    }
    file.sync_all()?;
    fs::rename(&part, log)?;
    sync_folder(log.parent())
}

/// Removes a folder that belongs to no run any more.
async fn remove(aside: PathBuf) -> Result<(), Trouble> {
    // The run wrote everything below `io`, so the system's own tools remove it.
    let io = Folder::at(aside.clone()).io();
    shelf::remove(&io).await.map_err(cannot)?;
    match tokio::fs::remove_dir_all(&aside).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
