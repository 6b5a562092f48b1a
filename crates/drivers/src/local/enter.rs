//! From the supervisor into the sandbox: this process becomes another user, makes a network namespace, and then turns
//! into the sandbox. It has one thread, because a process with several threads cannot change its namespaces.
//!
//! The network belongs to a user namespace in which this process is root. The sandbox is in another user namespace
//! below it, in which it has no rights. So the sandbox cannot reopen the routes that are closed here.
//!
//! On a machine without a sandbox, this process only becomes another user, if it may.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::fs::{MemfdFlags, Mode, OFlags};

use super::control::{self, ToKeeper, ToSandbox};
use super::folder::Folder;
use super::network::GATEWAY;
use super::sandbox::{self, Handed, Sources};
use super::spec::{Places, Spec};
use super::syscalls;
use crate::backend::Seen;

/// The stage: it holds the parts of a sandbox for a user who may not enter their real paths. Only the run itself sees
/// it.
const STAGE: &str = "/mnt";

/// The staged paths, for a run that has another user and no sandbox.
pub fn staged() -> Places {
    let stage = Path::new(STAGE);
    Places::in_the_open(stage.join(HOME), stage.join(IO))
}

const HOME: &str = "home";
const IO: &str = "io";

/// Returns only if something went wrong. Its standard input is the channel to the supervisor.
pub fn enter(folder: &Folder, program: PathBuf) -> io::Result<Infallible> {
    let spec = folder.spec()?;
    let sources = Sources::plain(&spec, program);
    let sources = match spec.user {
        None => sources,
        Some(user) => {
            let staged = stage(&sources, &spec, folder);
            let staged = staged.map_err(|error| said("lay out the sandbox", error))?;
            become_user(user).map_err(|error| said("change to the run's user", error))?;
            // Otherwise its own files in `/proc` belong to root, and it cannot set its user id in its namespace.
            nix::sys::prctl::set_dumpable(true)?;
            staged
        }
    };
    if !spec.is_sandboxed {
        wait_for_the_keeper()?;
        let mut inside = Command::new(&sources.program);
        let error = inside.args(["keeper", "inside"]).exec();
        return Err(said("start it", error));
    }
    own_network().map_err(|error| said("make a network of its own", error))?;
    wait_for_the_keeper()?;
    set_routes(&spec).map_err(|error| said("close what it may not reach", error))?;
    let files = Files::make(&spec).map_err(|error| said("hand over its settings", error))?;
    let arguments = sandbox::arguments(&spec, &sources, &files.handed());
    let error = Command::new("bwrap").args(arguments).exec();
    Err(said("start bubblewrap", error))
}

/// Files in memory that bubblewrap inherits.
struct Files {
    settings: Vec<(&'static str, File)>,
    filters: Vec<File>,
}

impl Files {
    fn make(spec: &Spec) -> io::Result<Files> {
        let settings = sandbox::settings(spec).into_iter();
        let settings = settings.map(|(name, text)| Ok((name, inherited(text.as_bytes())?)));
        let filters = syscalls::filters()?;
        let filters = filters.iter().map(|filter| inherited(filter));
        Ok(Files {
            settings: settings.collect::<io::Result<_>>()?,
            filters: filters.collect::<io::Result<_>>()?,
        })
    }

    fn handed(&self) -> Handed {
        let settings = self.settings.iter();
        Handed {
            settings: settings
                .map(|(name, file)| (*name, file.as_raw_fd()))
                .collect(),
            filters: self.filters.iter().map(AsRawFd::as_raw_fd).collect(),
        }
    }
}

/// Makes a file without the close-on-exec flag, so that the next program keeps it.
fn inherited(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("berth", MemfdFlags::empty())?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Reports that this process is ready, and waits until the supervisor has done its part.
fn wait_for_the_keeper() -> io::Result<()> {
    let channel = io::stdin();
    control::send(&channel, &ToKeeper::Ready, None)?;
    let answer = control::receive(&channel)?;
    match answer.map(|answer| answer.message) {
        Some(ToSandbox::Go) => Ok(()),
        _ => Err(io::Error::other("the keeper says no")),
    }
}

fn said(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what}: {error}"))
}

/// Bind-mounts every part into a folder that anybody may enter, in a mount namespace that ends with the run.
fn stage(sources: &Sources, spec: &Spec, folder: &Folder) -> io::Result<Sources> {
    own_mounts()?;
    // Opened before the stage is mounted, because the stage hides every part below its path.
    let home = hold(&sources.home)?;
    let program = hold(&sources.program)?;
    let own = match spec.is_sandboxed {
        true => None,
        false => Some(hold(&folder.io())?),
    };
    let mounts = sources.mounts.iter().map(|one| hold(&one.from));
    let mounts: Vec<File> = mounts.collect::<io::Result<_>>()?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("tmpfs"),
        STAGE,
        Some("tmpfs"),
        flags,
        Some("mode=0711,size=64k"),
    )?;
    if let Some(own) = &own {
        lay(own, IO)?;
    }
    let mounts = mounts.iter().zip(&sources.mounts).enumerate();
    let mounts = mounts.map(|(number, (from, one))| {
        let from = lay(from, &format!("mount-{number}"))?;
        Ok(Seen {
            from,
            ..one.clone()
        })
    });
    Ok(Sources {
        home: lay(&home, HOME)?,
        program: lay(&program, "berth")?,
        mounts: mounts.collect::<io::Result<_>>()?,
    })
}

/// Opens a file or folder, so that it can be mounted even if its path is hidden later.
fn hold(path: &Path) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Bind-mounts an opened file or folder on the stage, under a name.
fn lay(from: &File, name: &str) -> io::Result<PathBuf> {
    let to = Path::new(STAGE).join(name);
    if from.metadata()?.is_dir() {
        fs::create_dir(&to)?;
    } else {
        fs::write(&to, "")?;
    }
    let from = format!("/proc/self/fd/{}", from.as_raw_fd());
    let nothing: Option<&str> = None;
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(from.as_str()), &to, nothing, flags, nothing)?;
    Ok(to)
}

/// From here on, only this process and its children see new mounts.
pub(super) fn own_mounts() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let nothing: Option<&str> = None;
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    Ok(mount(nothing, "/", nothing, flags, nothing)?)
}

pub(super) fn become_user(user: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    setgroups(&[gid])?;
    setresgid(gid, gid, gid)?;
    Ok(setresuid(uid, uid, uid)?)
}

fn own_network() -> io::Result<()> {
    let (user, group) = (Uid::effective(), Gid::effective());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Closes the routes that the run may not use. The opened ranges come first: of two equal ranges the closed one wins,
/// and of two that overlap the smaller one wins. So a range that is opened as a whole must not be among the closed
/// ones.
fn set_routes(spec: &Spec) -> io::Result<()> {
    let mut lines = "link set lo up\n".to_owned();
    if spec.network.is_open {
        for opened in &spec.network.opened {
            lines.push_str(&format!("route replace {opened} via {GATEWAY} dev tap0\n"));
        }
    }
    for closed in &spec.network.closed {
        lines.push_str(&format!("route replace unreachable {closed}\n"));
    }
    let mut ip = Command::new("ip");
    ip.args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut ip = ip.spawn()?;
    if let Some(mut stdin) = ip.stdin.take() {
        stdin.write_all(lines.as_bytes())?;
    }
    match ip.wait()?.success() {
        true => Ok(()),
        false => Err(io::Error::other("`ip` refused a route")),
    }
}
