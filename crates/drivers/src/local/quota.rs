//! Project quotas: limits of homes that the file system enforces, so that a program cannot write beyond them.
//!
//! Each home is a project with the number of the home's user, so no other record is needed. The system's own tools set
//! quotas, because no library here does. `statvfs` reports the usage of a home that has a limit.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::process::Command;

use super::machine::{self, WeakBoundary};
use super::sandbox::Line;

/// Timeout of a tool: a home may hold millions of files when it first gets a project.
const TOOL: Duration = Duration::from_secs(3600);
/// Path of a home for the tool that marks it.
const INSIDE: &str = "/home";
/// The unit of `setquota`, in bytes.
const BLOCK: u64 = 1024;

/// Why homes are measured instead, and how an admin could change that, if at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    pub why: String,
    pub advice: Option<&'static str>,
}

/// The file system with the homes, which has project quotas.
#[derive(Debug)]
pub struct Quotas {
    mount: PathBuf,
    limit: Option<u64>,
    /// Homes that are getting their limit now.
    busy: Mutex<HashSet<PathBuf>>,
}

/// The space below a folder, as the file system reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Space {
    total: u64,
    free: u64,
}

impl Space {
    fn of(folder: &Path) -> Option<Space> {
        let disk = nix::sys::statvfs::statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.fragment_size());
        Some(Space {
            total: bytes(disk.blocks()),
            free: bytes(disk.blocks_free()),
        })
    }
}

/// The mount point of the file system with this folder, if it enforces project quotas and this server may set them.
/// With a weak boundary, runs have no user namespace, and outside one a program can leave its project.
pub fn available(folder: &Path, weak: Option<WeakBoundary>) -> Result<PathBuf, Unavailable> {
    let unavailable = |why: &str, advice| Unavailable {
        why: why.to_owned(),
        advice,
    };
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mount = quota_mount(&mounts, &folder).map_err(|why| unavailable(&why, None))?;
    if weak.is_some() {
        let why = "runs have no sandbox with a user of their own";
        return Err(unavailable(why, None));
    }
    for (program, advice) in [
        ("setquota", "apt install quota"),
        ("chattr", "apt install e2fsprogs"),
    ] {
        if !machine::has_program(program) {
            let why = format!("`{program}` is not installed");
            return Err(unavailable(&why, Some(advice)));
        }
    }
    Ok(mount)
}

impl Quotas {
    pub fn new(mount: PathBuf, limit: Option<u64>) -> Arc<Quotas> {
        Arc::new(Quotas {
            mount,
            limit,
            busy: Mutex::default(),
        })
    }

    /// Bytes that the owner may still write to a home; `None` if its quota does not say.
    pub fn left(&self, home: &Path) -> Option<u64> {
        let limit = self.limit?;
        let (home, disk) = (Space::of(home)?, Space::of(&self.mount)?);
        (limit < disk.total && home.total == limit).then_some(home.free)
    }

    /// Sets the limit of a home, unless the home has it. A home that another call is working on is left to that call.
    pub async fn enforce(self: Arc<Self>, home: PathBuf) -> io::Result<()> {
        let Some(_turn) = self.turn(&home) else {
            return Ok(());
        };
        let (quotas, looked) = (Arc::clone(&self), home.clone());
        let lacking = tokio::task::spawn_blocking(move || {
            let project = fs::metadata(&looked)?.uid();
            Ok((!quotas.is_in_force(&looked)).then_some(project))
        });
        let lacking = lacking.await;
        let Some(project) = lacking.map_err(io::Error::other).flatten()? else {
            return Ok(());
        };
        if self.limit.is_some() {
            done(mark(&home, project), "chattr").await?;
        }
        // The limit comes last, so a home with a limit is known to be marked completely.
        done(set_limit(&self.mount, project, self.limit), "setquota").await
    }

    fn is_in_force(&self, home: &Path) -> bool {
        let (Some(home), Some(disk)) = (Space::of(home), Space::of(&self.mount)) else {
            return false;
        };
        home.total == expected_total(self.limit, disk.total)
    }

    fn turn(&self, home: &Path) -> Option<Turn<'_>> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.insert(home.to_owned()).then(|| Turn {
            quotas: self,
            home: home.to_owned(),
        })
    }
}

struct Turn<'a> {
    quotas: &'a Quotas,
    home: PathBuf,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let busy = self.quotas.busy.lock();
        busy.unwrap_or_else(PoisonError::into_inner)
            .remove(&self.home);
    }
}

/// A project shows its limit as the size of the file system, if the limit is the smaller of the two.
fn expected_total(limit: Option<u64>, disk_total: u64) -> u64 {
    limit.map_or(disk_total, |limit| limit.min(disk_total))
}

/// Makes all of a home one project, which new files in its folders inherit. The owner may move parts of the home
/// meanwhile, so the tool sees nothing else that it could write to.
fn mark(home: &Path, project: u32) -> Command {
    let mut line = Line::default();
    line.words(&["--unshare-pid", "--unshare-net", "--unshare-ipc"]);
    line.words(&["--die-with-parent", "--new-session"]);
    line.programs();
    line.bind("--bind", home, Path::new(INSIDE));
    line.words(&["--", "find", INSIDE, "-xdev"]);
    let project = project.to_string();
    // Only a folder can pass its project on, and only files and folders take space.
    line.words(&["(", "-type", "d", "-exec", "chattr", "-p", &project, "+P"]);
    line.words(&["--", "{}", "+", ")", "-o"]);
    line.words(&["(", "-type", "f", "-exec", "chattr", "-p", &project]);
    line.words(&["--", "{}", "+", ")"]);
    let mut command = Command::new("bwrap");
    command.args(line.0);
    command
}

fn set_limit(mount: &Path, project: u32, limit: Option<u64>) -> Command {
    let blocks = limit.map_or(0, |limit| limit / BLOCK);
    let mut command = Command::new("setquota");
    command.args(["-P", &project.to_string(), "0", &blocks.to_string()]);
    command.args(["0", "0"]).arg(mount);
    command
}

async fn done(mut command: Command, name: &str) -> io::Result<()> {
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(TOOL, command.output()).await;
    let output = output.map_err(|_| io::Error::other(format!("{name} took too long")))??;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or_default();
    Err(io::Error::other(format!("{name}: {said}")))
}

/// Finds the mount with this folder in `/proc/self/mountinfo`, or says why it has no enforced project quotas.
fn quota_mount(mounts: &str, folder: &Path) -> Result<PathBuf, String> {
    let holds = |mount: &Mount| folder.starts_with(&mount.point);
    // Of two mounts at the same path, the later one covers the other.
    let mount = mounts
        .lines()
        .filter_map(Mount::read)
        .filter(holds)
        .max_by_key(|mount| mount.point.components().count())
        .ok_or_else(|| "nobody knows on which file system they are".to_owned())?;
    match mount.has_project_quotas() {
        true => Ok(mount.point),
        false => Err(format!(
            "the file system at {} ({}) has no project quotas",
            mount.point.display(),
            mount.kind
        )),
    }
}

struct Mount<'a> {
    point: PathBuf,
    kind: &'a str,
    options: &'a str,
}

impl Mount<'_> {
    /// Parses a line: number, parent, device, root, path, options, optional fields, `-`, type, source, the file
    /// system's options.
    fn read(line: &str) -> Option<Mount<'_>> {
        let (place, file_system) = line.split_once(" - ")?;
        let mut words = file_system.split(' ');
        Some(Mount {
            point: unescaped(place.split(' ').nth(4)?).into(),
            kind: words.next()?,
            options: words.nth(1)?,
        })
    }

    /// With `pqnoenforce`, XFS counts usage but refuses nothing.
    fn has_project_quotas(&self) -> bool {
        let names: &[&str] = match self.kind {
            "ext4" => &["prjquota"],
            "xfs" => &["prjquota", "pquota"],
            _ => &[],
        };
        self.options.split(',').any(|one| names.contains(&one))
    }
}

/// The kernel writes spaces, tabs, newlines and backslashes in a path as three octal digits.
fn unescaped(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let (byte, after) = match octal(rest) {
            Some(byte) => (byte, &others[3..]),
            None => (first, others),
        };
        bytes.push(byte);
        rest = after;
    }
    OsString::from_vec(bytes)
}

fn octal(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"\\")?.get(..3)?;
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    /// As kernels 6.1 and 6.18 write it.
    const RECORDED: &str = r"22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw,discard
23 20 98:0 / /srv/ext rw,relatime - ext4 /dev/ubda rw,prjquota
24 20 98:16 / /srv/xfs rw,relatime - xfs /dev/ubdb rw,attr2,inode64,logbufs=8,logbsize=32k,prjquota
25 20 98:32 / /srv/counted rw,relatime - xfs /dev/ubdc rw,attr2,inode64,pqnoenforce
26 20 98:48 / /srv/users rw,relatime - ext4 /dev/ubdd rw,usrquota,grpquota
28 20 98:64 / /srv/a\040b rw,relatime master:3 - ext4 /dev/ubde rw,prjquota
29 23 0:40 / /srv/ext/covered rw - tmpfs prjquota rw
30 20 98:80 / /srv/twice rw - ext4 /dev/ubdf rw,prjquota
31 20 0:41 / /srv/twice rw - tmpfs none rw
32 20 0:42 / /srv/tree rw - btrfs /dev/ubdg rw,prjquota
";

    #[test]
    fn project_quotas_are_found_in_the_table_of_mounts() {
        for (folder, expected) in [
            ("/srv/ext/work/homes", Some("/srv/ext")),
            ("/srv/xfs", Some("/srv/xfs")),
            ("/srv/a b/homes", Some("/srv/a b")),
            ("/srv/extra", None),
            ("/home", None),
            ("/srv/counted/homes", None),
            ("/srv/users/homes", None),
            ("/srv/ext/covered/homes", None),
            ("/srv/twice/homes", None),
            ("/srv/tree/homes", None),
        ] {
            let found = quota_mount(RECORDED, Path::new(folder));
            assert_eq!(found.as_deref().ok(), expected.map(Path::new), "{folder}");
        }
    }

    #[test]
    fn what_has_no_project_quotas_is_named() {
        let why = quota_mount(RECORDED, Path::new("/srv/counted/homes")).unwrap_err();
        assert_eq!(
            why,
            "the file system at /srv/counted (xfs) has no project quotas"
        );
        assert!(quota_mount("", Path::new("/srv")).is_err());
        assert!(quota_mount("no mount - at all\n", Path::new("/srv")).is_err());
    }

    #[test]
    fn a_limit_above_the_disk_shows_as_the_disk() {
        assert_eq!(expected_total(None, 100), 100);
        assert_eq!(expected_total(Some(10), 100), 10);
        assert_eq!(expected_total(Some(1000), 100), 100);
    }

    const MIB: u64 = 1 << 20;
    const USER: u32 = 200_001;

    /// A home with some files in it, if the file system of the temporary folder has project quotas.
    struct Home {
        folder: tempfile::TempDir,
        mount: PathBuf,
    }

    impl Home {
        fn new() -> Option<Home> {
            let folder = tempfile::tempdir().unwrap();
            let is_root = nix::unistd::Uid::effective().is_root();
            let weak = WeakBoundary::of(true, is_root);
            let mount = match available(folder.path(), weak) {
                Ok(mount) => mount,
                Err(missing) => {
                    eprintln!("NOT CHECKED: project quotas: {}", missing.why);
                    return None;
                }
            };
            let home = Home { folder, mount };
            fs::create_dir_all(home.path().join("old/folder")).unwrap();
            fs::write(home.path().join("old/-file"), vec![1; 2 << 20]).unwrap();
            nix::unistd::mkfifo(&home.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
            std::os::unix::fs::symlink("/etc", home.path().join("link")).unwrap();
            for path in ["", "old", "old/-file", "old/folder"] {
                std::os::unix::fs::chown(home.path().join(path), Some(USER), Some(USER)).unwrap();
            }
            let open = fs::Permissions::from_mode(0o755);
            fs::set_permissions(home.folder.path(), open).unwrap();
            Some(home)
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("home")
        }

        fn quotas(&self, limit: Option<u64>) -> Arc<Quotas> {
            Quotas::new(self.mount.clone(), limit)
        }

        /// Writes 20 MiB to a file there as the home's user, and returns how many bytes fit.
        fn write(&self, name: &str) -> u64 {
            let file = self.path().join(name);
            let mut dd = std::process::Command::new("dd");
            dd.args(["if=/dev/zero", "bs=64k", "count=320"]);
            dd.arg(format!("of={}", file.display())).uid(USER);
            let done = dd.output().unwrap();
            let written = fs::metadata(&file).unwrap().len();
            assert_eq!(done.status.success(), written == 20 * MIB, "{done:?}");
            written
        }
    }

    #[tokio::test]
    async fn a_program_cannot_write_above_the_limit_of_its_home() {
        let Some(home) = Home::new() else { return };
        let quotas = home.quotas(Some(8 * MIB));
        assert_eq!(quotas.left(&home.path()), None, "it has no limit yet");
        quotas.clone().enforce(home.path()).await.unwrap();
        let left = quotas.left(&home.path()).expect("it has a limit");
        assert!((5 * MIB..=6 * MIB).contains(&left), "{left}");
        assert!(quotas.is_in_force(&home.path()));
        let written = home.write("old/folder/new");
        assert!(written <= 6 * MIB, "{written}");
        assert!(quotas.left(&home.path()) < Some(MIB));
        // Freed space can be written again; XFS frees it a moment later.
        fs::remove_file(home.path().join("old/folder/new")).unwrap();
        while home.write("again") <= 5 * MIB {}
    }

    #[tokio::test]
    async fn another_limit_takes_the_place_of_the_one_before_and_none_takes_it_away() {
        let Some(home) = Home::new() else { return };
        for limit in [Some(8 * MIB), Some(16 * MIB), None] {
            let quotas = home.quotas(limit);
            assert!(!quotas.is_in_force(&home.path()) || limit.is_none());
            quotas.clone().enforce(home.path()).await.unwrap();
            assert!(quotas.is_in_force(&home.path()), "{limit:?}");
            assert_eq!(quotas.left(&home.path()).is_some(), limit.is_some());
        }
        assert_eq!(home.write("new"), 20 * MIB);
    }
}
