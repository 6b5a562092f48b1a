//! Reads below a folder that another user fills, as a process with more rights than that user.
//!
//! The folder itself must be at a place where only this process's user can write. Everything below it is hostile. The
//! kernel resolves each path beneath the folder's descriptor, without links, magic links and other file systems. A file
//! is first opened as a path only, and read only if its type, link count and size are right. This module opens no pipe,
//! socket or device, and follows no link.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};

/// The descriptor of a folder; the kernel resolves all paths beneath it.
#[derive(Debug)]
pub struct Beneath(OwnedFd);

/// Limits at which a walk stops.
#[derive(Debug, Clone, Copy)]
pub struct WalkLimits {
    pub entries_max: usize,
    pub time_max: Duration,
}

/// An entry of a folder, as `lstat` shows it.
#[derive(Debug)]
pub struct Entry {
    pub is_folder: bool,
    pub is_hidden: bool,
    pub modified_at: Option<SystemTime>,
}

/// Limits at which a measurement stops.
#[derive(Debug, Clone, Copy)]
pub struct SizeLimits {
    pub entries_max: u64,
    /// Maximum depth of nested folders. Each level takes a descriptor.
    pub depth_max: usize,
    pub time_max: Duration,
}

/// Disk usage of a folder and everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Allocated space: a hole takes none, and a file with several names counts once.
    pub bytes: u64,
    pub counted: Counted,
}

/// How much of a folder a measurement has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    All,
    /// The measurement took too long, or the machine lacked a resource.
    InPart,
    /// The content cannot be counted: too many entries, folders too deep, or folders that cannot be read.
    Uncountable,
}

/// Whether a walk saw everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walked {
    Whole,
    /// The walk reached a limit.
    Partly,
}

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

impl Beneath {
    /// Opens a folder. Its last component may not be a link; the caller vouches for the components before it.
    pub fn open(folder: &Path) -> io::Result<Beneath> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Beneath(rustix::fs::open(folder, flags, Mode::empty())?))
    }

    /// Reads a small regular file with one name. Anything else is an error.
    pub fn read(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
        let pinned = self.open_at(path, OFlags::PATH)?;
        let about = rustix::fs::fstat(&pinned)?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Err(refused("it is not a regular file"));
        }
        if about.st_nlink != 1 {
            return Err(refused("it has more than one name"));
        }
        if u64::try_from(about.st_size).unwrap_or(u64::MAX) > bytes_max {
            return Err(refused("it is too large"));
        }
        // Opened by descriptor: this is the file checked above, even if the path leads elsewhere by now.
        let file = File::open(format!("/proc/self/fd/{}", pinned.as_raw_fd()))?;
        let mut bytes = Vec::new();
        file.take(bytes_max + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > bytes_max {
            true => Err(refused("it is too large")),
            false => Ok(bytes),
        }
    }

    /// Shows every entry below the folder, the ones nearer to the top first. It shows hidden folders, but does not
    /// enter them.
    pub fn walk(&self, limits: WalkLimits, mut show: impl FnMut(&Entry)) -> Walked {
        let begun = Instant::now();
        let mut left = limits.entries_max;
        let mut folders: VecDeque<PathBuf> = [PathBuf::from(".")].into();
        while let Some(folder) = folders.pop_front() {
            let Ok(mut names) = self.list(&folder) else {
                continue;
            };
            while let Some(Ok(name)) = names.read() {
                let name = name.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                if left == 0 || begun.elapsed() > limits.time_max {
                    return Walked::Partly;
                }
                left -= 1;
                let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
                let Some(about) = names
                    .fd()
                    .ok()
                    .and_then(|folder| rustix::fs::statat(folder, name, flags).ok())
                else {
                    continue;
                };
                let entry = Entry {
                    is_folder: FileType::from_raw_mode(about.st_mode) == FileType::Directory,
                    is_hidden: name.to_bytes().starts_with(b"."),
                    modified_at: modified_at(&about),
                };
                show(&entry);
                if entry.is_folder && !entry.is_hidden {
                    use std::os::unix::ffi::OsStrExt;
                    folders.push_back(folder.join(std::ffi::OsStr::from_bytes(name.to_bytes())));
                }
            }
        }
        Walked::Whole
    }

    /// Measures the folder with everything below it, hidden or not. Other file systems below it do not count.
    pub fn size(&self, limits: SizeLimits) -> io::Result<Size> {
        use rustix::io::Errno;
        let begun = Instant::now();
        let mut left = limits.entries_max;
        let mut bytes = allocated(&rustix::fs::fstat(&self.0)?);
        let mut counted = Counted::All;
        // Each folder is opened by its name in its parent, so no path gets too long.
        let mut open = vec![self.list(Path::new("."))?];
        loop {
            let depth = open.len();
            let Some(folder) = open.last_mut() else {
                break;
            };
            let name = match folder.read() {
                Some(Ok(entry)) => entry.file_name().to_owned(),
                Some(Err(_)) | None => {
                    open.pop();
                    continue;
                }
            };
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if left == 0 {
                counted = Counted::Uncountable;
                break;
            }
            left -= 1;
            if begun.elapsed() > limits.time_max {
                counted = counted.and(Counted::InPart);
                break;
            }
            let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
            let Ok(about) = rustix::fs::statat(folder.fd()?, &name, flags) else {
                continue;
            };
            bytes += allocated(&about);
            if FileType::from_raw_mode(about.st_mode) != FileType::Directory {
                continue;
            }
            if depth >= limits.depth_max {
                counted = Counted::Uncountable;
                continue;
            }
            let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let above = folder.fd()?;
            let below = rustix::fs::openat2(above, &name, how, Mode::empty(), BENEATH);
            match below.and_then(Dir::new) {
                Ok(below) => open.push(below),
                // The folder was removed or replaced meanwhile, or is another file system.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
                Err(Errno::ACCESS | Errno::PERM) => counted = Counted::Uncountable,
                Err(_) => counted = counted.and(Counted::InPart),
            }
        }
        Ok(Size { bytes, counted })
    }

    fn list(&self, folder: &Path) -> io::Result<Dir> {
        let opened = self.open_at(folder, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Dir::new(opened)?)
    }

    fn open_at(&self, path: &Path, how: OFlags) -> io::Result<OwnedFd> {
        let flags = how | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat2(
            &self.0,
            path,
            flags,
            Mode::empty(),
            BENEATH,
        )?)
    }
}

impl Counted {
    fn and(self, other: Counted) -> Counted {
        match self {
            Counted::All => other,
            Counted::InPart | Counted::Uncountable => self,
        }
    }
}

/// The space of an entry. Each name of a file with several names counts its share, so together they count the file
/// once.
#[allow(
    clippy::useless_conversion,
    reason = "the number of names has another type on other machines"
)]
fn allocated(about: &Stat) -> u64 {
    let bytes = u64::try_from(about.st_blocks)
        .unwrap_or(0)
        .saturating_mul(512);
    match FileType::from_raw_mode(about.st_mode) {
        FileType::Directory => bytes,
        _ => bytes / u64::from(about.st_nlink).max(1),
    }
}

fn modified_at(about: &Stat) -> Option<SystemTime> {
    let seconds = u64::try_from(about.st_mtime).ok()?;
    let nanos = u32::try_from(about.st_mtime_nsec).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn beneath(folder: &Path) -> Beneath {
        Beneath::open(folder).unwrap()
    }

    #[test]
    fn only_a_small_regular_file_with_one_name_is_read() {
        let here = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let path = |name: &str| here.path().join(name);
        fs::write(path("plain"), "3.11\n").unwrap();
        fs::write(path("large"), vec![b'x'; 100]).unwrap();
        let sparse = File::create(path("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        symlink(outside.path().join("secret"), path("link")).unwrap();
        symlink(outside.path(), path("folder-link")).unwrap();
        symlink("plain", path("inner-link")).unwrap();
        fs::write(path("twice"), "x").unwrap();
        fs::hard_link(path("twice"), path("other-name")).unwrap();
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        let folder = beneath(here.path());
        let read = |name: &str| folder.read(Path::new(name), 64);
        assert_eq!(read("plain").unwrap(), b"3.11\n");
        for hostile in [
            "large",
            "sparse",
            "link",
            "folder-link/secret",
            "inner-link",
            "twice",
            "pipe",
            "socket",
            "folder",
            "../secret",
            "/etc/hostname",
            "missing",
        ] {
            assert!(read(hostile).is_err(), "{hostile}");
        }
        assert!(Beneath::open(&path("folder-link")).is_err());
    }

    #[test]
    fn a_walk_follows_no_link_opens_no_pipe_and_has_an_end() {
        let here = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        for number in 0..50 {
            fs::write(outside.path().join(format!("other-{number}")), "").unwrap();
        }
        fs::create_dir_all(here.path().join("data/deep")).unwrap();
        fs::write(here.path().join("data/deep/file"), "").unwrap();
        fs::create_dir(here.path().join(".cache")).unwrap();
        fs::write(here.path().join(".cache/file"), "").unwrap();
        symlink(outside.path(), here.path().join("out")).unwrap();
        symlink(here.path(), here.path().join("loop")).unwrap();
        nix::unistd::mkfifo(&here.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let limits = WalkLimits {
            entries_max: 100,
            time_max: Duration::from_secs(60),
        };
        let mut seen = 0;
        assert_eq!(
            beneath(here.path()).walk(limits, |_| seen += 1),
            Walked::Whole
        );
        assert_eq!(seen, 7, "data, deep, file, .cache, out, loop, pipe");
        let few = WalkLimits {
            entries_max: 3,
            ..limits
        };
        let mut seen = 0;
        assert_eq!(
            beneath(here.path()).walk(few, |_| seen += 1),
            Walked::Partly
        );
        assert_eq!(seen, 3);
    }

    const MEASURED: SizeLimits = SizeLimits {
        entries_max: 1000,
        depth_max: 100,
        time_max: Duration::from_secs(60),
    };

    fn size(folder: &Path, limits: SizeLimits) -> Size {
        beneath(folder).size(limits).unwrap()
    }

    /// Disk usage as the system's own `du` counts it.
    fn du(folder: &Path) -> u64 {
        let du = std::process::Command::new("du")
            .args(["-s", "-x", "--block-size=1", "--"])
            .arg(folder)
            .output()
            .unwrap();
        let text = String::from_utf8(du.stdout).unwrap();
        text.split_whitespace().next().unwrap().parse().unwrap()
    }

    #[test]
    fn a_size_is_what_the_disk_gave_and_no_link_or_hole_changes_it() {
        let here = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let path = |name: &str| here.path().join(name);
        fs::write(outside.path().join("large"), vec![1; 4 << 20]).unwrap();
        fs::create_dir_all(path(".cache/deep")).unwrap();
        fs::write(path(".cache/deep/hidden"), vec![1; 1 << 20]).unwrap();
        fs::write(path("data"), vec![1; 2 << 20]).unwrap();
        for number in 0..3 {
            fs::hard_link(path("data"), path(&format!("name-{number}"))).unwrap();
        }
        File::create(path("sparse"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        symlink(outside.path(), path("out")).unwrap();
        symlink(here.path(), path("loop")).unwrap();
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let size = size(here.path(), MEASURED);
        assert_eq!(size.counted, Counted::All);
        assert_eq!(size.bytes, du(here.path()));
        assert!((3 << 20..4 << 20).contains(&size.bytes), "{size:?}");
    }

    #[test]
    fn what_cannot_be_counted_is_not_taken_for_little() {
        let here = tempfile::tempdir().unwrap();
        let mut deep = here.path().to_owned();
        for _ in 0..20 {
            deep.push("d");
            fs::create_dir(&deep).unwrap();
        }
        fs::write(deep.join("data"), vec![1; 1 << 20]).unwrap();
        assert_eq!(size(here.path(), MEASURED).bytes, du(here.path()));
        let limits = [
            SizeLimits {
                depth_max: 20,
                ..MEASURED
            },
            SizeLimits {
                entries_max: 20,
                ..MEASURED
            },
        ];
        for limits in limits {
            let size = size(here.path(), limits);
            assert_eq!(size.counted, Counted::Uncountable, "{limits:?}");
        }
        let at_once = SizeLimits {
            time_max: Duration::ZERO,
            ..MEASURED
        };
        assert_eq!(size(here.path(), at_once).counted, Counted::InPart);
    }
}
