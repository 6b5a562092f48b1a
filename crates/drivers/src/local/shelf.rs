//! The environment store on this machine: one folder for each environment, named after its id.
//!
//! A build may put anything into its folder, at any depth. A recursive walk in this process could overflow its stack,
//! and opening a pipe would block it. So the system's own tools, or `Beneath`, work on such a folder.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use berth_model::{EnvironmentId, Name};
use tokio::process::Command;

use super::attempts::Attempts;
use super::hands::Hands;
use super::{Errand, Local, SLOW, cannot};
use crate::backend::{AttemptKind, Doing, Trouble};
use crate::beneath::{Beneath, Counted, Size, SizeLimits};
use crate::environments::{Prepared, Removed, Sealed, Shelf};

/// The file in which a build records the version of its interpreter.
const VERSION: &str = "berth/python";
/// Maximum length of a version.
const VERSION_BYTES_MAX: u64 = 64;
/// Limits for measuring an environment during its build. The bytes counted up to a limit count.
const MEASURING: SizeLimits = SizeLimits {
    entries_max: 5_000_000,
    depth_max: 200,
    time_max: Duration::from_secs(5),
};
const MEASURING_WAIT: Duration = Duration::from_secs(10);
/// Timeout of one of the system's tools on a folder.
const TOOL: Duration = Duration::from_secs(600);

impl Hands {
    pub fn shelf_folder(&self) -> PathBuf {
        self.settings.folder.join("environments")
    }

    /// Makes the folder of an environment that is to be built, for the person who builds it.
    pub fn begin_environment(&self, folder: &Path, user: Option<u32>) -> io::Result<()> {
        use std::os::unix::fs::{DirBuilderExt, chown};
        let mut made = std::fs::DirBuilder::new();
        made.mode(0o755).recursive(true).create(folder)?;
        match user {
            Some(user) => chown(folder, Some(user), Some(user)),
            None => Ok(()),
        }
    }

    /// Counts an attempt of the build if something other than a file is in place of the file that the server reads.
    fn note_strange(&self, folder: &Path) -> io::Result<()> {
        let read = Beneath::open(folder)?.read(Path::new(VERSION), VERSION_BYTES_MAX);
        let is_strange = read.is_err_and(|error| error.kind() != io::ErrorKind::NotFound);
        if !is_strange {
            return Ok(());
        }
        let work = &self.settings.folder;
        for entry in std::fs::read_dir(work.join("runs"))? {
            let run = super::Folder::at(entry?.path());
            // Until the environment is sealed, only its build mounts it.
            let has_made_it = run
                .seen()
                .is_ok_and(|seen| seen.iter().any(|one| one == folder));
            if let Some(id) = run.run().filter(|_| has_made_it) {
                Attempts::of(id, work).note(AttemptKind::StrangeFile);
            }
        }
        Ok(())
    }

    /// Whether a run that has not ended mounts this folder.
    fn is_seen(&self, folder: &Path) -> io::Result<bool> {
        for run in std::fs::read_dir(self.settings.folder.join("runs"))? {
            let run = super::Folder::at(run?.path());
            let is_over = run.end()?.is_some();
            if !is_over && run.seen()?.iter().any(|seen| seen == folder) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Shelf for Local {
    fn made(&self, id: EnvironmentId) -> PathBuf {
        let folder = self.hands.shelf_folder();
        folder.join(id.0.simple().to_string())
    }

    fn prepared(&self, key: &Name) -> Option<PathBuf> {
        let prepared = self.settings().prepared.as_ref()?;
        Some(prepared.join(key.as_str()))
    }

    fn existing(&self, folders: Vec<PathBuf>) -> Doing<'_, Vec<PathBuf>> {
        self.errand(Errand::Existing, move || {
            let existing = folders.into_iter().filter(|folder| folder.is_dir());
            Ok(existing.collect())
        })
    }

    fn all_prepared(&self) -> Doing<'_, Vec<(Name, Prepared)>> {
        let prepared = self.settings().prepared.clone();
        self.errand(Errand::Environments, move || {
            Ok(prepared.map_or_else(Vec::new, |folder| prepared_in(&folder)))
        })
    }

    fn size(&self, id: EnvironmentId) -> Doing<'_, Size> {
        let folder = self.made(id);
        let size = self.sizes.take(id, MEASURING_WAIT, move |_| size(&folder));
        Box::pin(async move {
            let size = size.await;
            let slow = || Err(Trouble::NoAnswer(SLOW.to_owned()));
            size.map_or_else(slow, |size| size.map_err(cannot))
        })
    }

    fn seal(&self, id: EnvironmentId) -> Doing<'_, Sealed> {
        Box::pin(async move {
            let folder = self.made(id);
            let looked = folder.clone();
            let is_there = self.errand(Errand::Environments, move || Ok(looked.is_dir()));
            if !is_there.await? {
                let why = "there is nothing where it was to be made";
                return Err(Trouble::Refused(why.into()));
            }
            let (hands, read) = (self.hands.clone(), folder.clone());
            let noted = self.errand(Errand::Environments, move || hands.note_strange(&read));
            if let Err(trouble) = noted.await {
                tracing::warn!(%trouble, "an attempt of a build could not be counted");
            }
            seal(&folder, self.settings().first_user.is_some())
                .await
                .map_err(cannot)
        })
    }

    fn remove(&self, id: EnvironmentId) -> Doing<'_, Removed> {
        Box::pin(async move {
            let folder = self.made(id);
            let (hands, looked) = (self.hands.clone(), folder.clone());
            let is_seen = self.errand(Errand::Environments, move || hands.is_seen(&looked));
            if is_seen.await? {
                return Ok(Removed::StillSeen);
            }
            remove(&folder).await.map_err(cannot)?;
            Ok(Removed::Done)
        })
    }
}

/// Disk usage of a folder to which somebody may be writing. A missing folder takes nothing.
fn size(folder: &Path) -> io::Result<Size> {
    match Beneath::open(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Size {
            bytes: 0,
            counted: Counted::All,
        }),
        folder => folder?.size(MEASURING),
    }
}

/// The prepared environments in a folder, by their keys.
pub fn prepared_in(folder: &Path) -> Vec<(Name, Prepared)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let read = |entry: std::fs::DirEntry| {
        let key: Name = entry.file_name().to_str()?.parse().ok()?;
        Some((key, Prepared::found(&entry.path())?))
    };
    let mut all: Vec<_> = entries.filter_map(Result::ok).filter_map(read).collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all
}

/// Makes a folder read-only for everybody, and waits until it is on the disk.
pub async fn seal(folder: &Path, to_root: bool) -> io::Result<Sealed> {
    if to_root {
        // From here on, the user who built it has no special rights.
        tool("chown", &["-R", "-h", "0:0"], folder).await?;
    }
    tool("chmod", &["-R", "a+rX,a-w,u-s,g-s,o-t"], folder).await?;
    tool("sync", &["-f"], folder).await?;
    let listed = tool("du", &["-s", "--block-size=1"], folder).await?;
    let bytes = listed.split_whitespace().next();
    let made = folder.to_owned();
    let python = tokio::task::spawn_blocking(move || python(&made)).await;
    Ok(Sealed {
        bytes: bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(0),
        python: python.ok().flatten(),
    })
}

/// The version of its interpreter, as the build recorded it.
fn python(folder: &Path) -> Option<String> {
    let text = Beneath::open(folder)
        .and_then(|folder| folder.read(Path::new(VERSION), VERSION_BYTES_MAX))
        .ok()?;
    let text = std::str::from_utf8(&text).ok()?.trim();
    let is_version = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    (is_version && !text.is_empty()).then(|| text.to_owned())
}

/// Removes a folder with everything in it, even if nobody may write there.
pub async fn remove(folder: &Path) -> io::Result<()> {
    if !tokio::fs::try_exists(folder).await? {
        return Ok(());
    }
    tool("chmod", &["-R", "u+rwX"], folder).await?;
    tool("rm", &["-r", "-f", "--one-file-system"], folder).await?;
    Ok(())
}

/// Kills the runs that a killed process left below this folder, and removes the folder.
pub async fn sweep_out(folder: &Path) -> io::Result<()> {
    use nix::sys::signal::{Signal, kill};
    if let Ok(mut runs) = tokio::fs::read_dir(folder.join("runs")).await {
        while let Some(run) = runs.next_entry().await? {
            let run = super::Folder::at(run.path());
            run.tell_to_end()?;
            while let super::folder::Kept::By(keeper) = run.kept()? {
                if keeper > 0 {
                    // `SIGKILL` ends the supervisor at once, and the run dies with it.
                    kill(nix::unistd::Pid::from_raw(keeper), Signal::SIGKILL).ok();
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    }
    remove(folder).await
}

/// Runs one of the system's tools on a folder, and returns its output. A folder may hold so much that this takes hours.
async fn tool(program: &str, arguments: &[&str], folder: &Path) -> io::Result<String> {
    match tokio::time::timeout(TOOL, run(program, arguments, folder)).await {
        Ok(said) => said,
        Err(_) => Err(io::Error::other(format!(
            "{program} was stopped: the folder holds too much to be worked through in {} minutes",
            TOOL.as_secs() / 60
        ))),
    }
}

async fn run(program: &str, arguments: &[&str], folder: &Path) -> io::Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .arg("--")
        .arg(folder)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or_default().to_owned();
    Err(io::Error::other(format!("{program}: {said}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn what_is_sealed_is_read_by_all_and_written_by_nobody_and_can_be_removed() {
        let here = tempfile::tempdir().unwrap();
        let folder = here.path().join("one");
        std::fs::create_dir_all(folder.join("berth")).unwrap();
        std::fs::write(folder.join("berth/python"), "3.11.2\n").unwrap();
        std::fs::write(folder.join("secret"), "x").unwrap();
        let mode = |mode| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.join("secret"), mode(0o4700)).unwrap();
        nix::unistd::mkfifo(&folder.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink("/etc", folder.join("out")).unwrap();
        let before = std::fs::metadata("/etc").unwrap().permissions().mode();
        let sealed = seal(&folder, false).await.unwrap();
        assert_eq!(sealed.python.as_deref(), Some("3.11.2"));
        assert!(sealed.bytes > 0);
        let is = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(is(folder.join("secret")), 0o555);
        assert_eq!(is(folder.join("berth")), 0o555);
        assert_eq!(
            std::fs::metadata("/etc").unwrap().permissions().mode(),
            before
        );
        remove(&folder).await.unwrap();
        assert!(!folder.exists());
        assert!(Path::new("/etc").exists());
        remove(&folder).await.unwrap();
    }

    /// The build runs code from its packages, so each of these may be in place of the file that it should write.
    #[tokio::test]
    async fn what_an_attacker_wrote_in_place_of_the_version_is_not_read() {
        use std::os::unix::fs::symlink;
        type Attack = (&'static str, fn(&Path));
        let attacks: [Attack; 8] = [
            ("a FIFO", |at| {
                nix::unistd::mkfifo(at, nix::sys::stat::Mode::S_IRWXU).unwrap();
            }),
            ("a link", |at| {
                symlink("/proc/sys/kernel/ostype", at).unwrap()
            }),
            ("a link to itself", |at| symlink("python", at).unwrap()),
            ("a hard link", |at| {
                let other = at.with_file_name("other");
                std::fs::write(&other, "3.11.2").unwrap();
                std::fs::hard_link(&other, at).unwrap();
            }),
            ("a directory", |at| std::fs::create_dir(at).unwrap()),
            ("a huge file", |at| {
                std::fs::write(at, "3".repeat(1 << 20)).unwrap()
            }),
            ("a sparse file", |at| {
                std::fs::File::create(at).unwrap().set_len(1 << 40).unwrap();
            }),
            ("a socket", |at| {
                std::os::unix::net::UnixListener::bind(at).unwrap();
            }),
        ];
        for (attack, make) in attacks {
            let here = tempfile::tempdir().unwrap();
            let folder = here.path().join("one");
            std::fs::create_dir_all(folder.join("berth")).unwrap();
            make(&folder.join("berth/python"));
            let sealed = seal(&folder, false).await.unwrap();
            assert_eq!(sealed.python, None, "{attack}");
        }
        // A link in a parent folder of the file is not followed either.
        let here = tempfile::tempdir().unwrap();
        let elsewhere = here.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("python"), "3.11.2").unwrap();
        let folder = here.path().join("one");
        std::fs::create_dir(&folder).unwrap();
        symlink(&elsewhere, folder.join("berth")).unwrap();
        assert_eq!(seal(&folder, false).await.unwrap().python, None);
    }
}
