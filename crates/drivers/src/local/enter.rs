//! From the keeper into the sandbox: a process that becomes somebody else, makes itself a network of its own, and then
//! turns into the sandbox. It has one thread, for a process with several cannot change its namespaces.
//!
//! The network belongs to a user namespace in which this process is root; the sandbox is another one below it, in which
//! it is nobody. So the routes that are closed here cannot be opened there.
//!
//! On a machine without a sandbox it only becomes somebody else, where it may.

use std::convert::Infallible;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

use super::folder::Folder;
use super::sandbox::{self, Sources};
use super::spec::{Places, Spec};
use crate::backend::Seen;

/// Where the parts of a sandbox are laid out for whoever may not go to where they are. Only the run itself sees it.
const STAGE: &str = "/mnt";

/// Where what is laid out is found by whoever became another user and has no sandbox.
pub fn staged() -> Places {
    let stage = Path::new(STAGE);
    Places::in_the_open(stage.join(HOME), stage.join(IO))
}

const HOME: &str = "home";
const IO: &str = "io";

/// Said to the keeper when the network can be brought in.
pub const READY: &[u8] = b"ready\n";
/// Said by the keeper when it is.
pub const GO: u8 = b'g';

/// Only ever comes back with what went wrong.
pub fn enter(folder: &Folder, program: PathBuf) -> io::Result<Infallible> {
    let spec = folder.spec()?;
    let sources = Sources::plain(&spec, folder.io(), program);
    let sources = match spec.user {
        None => sources,
        Some(user) => {
            let staged = stage(&sources).map_err(|error| said("lay out the sandbox", error))?;
            become_user(user).map_err(|error| said("change to the run's user", error))?;
            staged
        }
    };
    if !spec.is_sandboxed {
        wait_for_the_keeper()?;
        let mut inside = Command::new(&sources.program);
        let error = inside
            .args(["keeper", "inside"])
            .arg(spec.places.own)
            .exec();
        return Err(said("start it", error));
    }
    own_network().map_err(|error| said("make a network of its own", error))?;
    wait_for_the_keeper()?;
    close_routes(&spec).map_err(|error| said("close what it may not reach", error))?;
    let arguments = sandbox::arguments(&spec, &sources);
    let error = Command::new("bwrap").args(arguments).exec();
    Err(said("start bubblewrap", error))
}

/// Says that this much is done, and goes on when the keeper has done its part.
fn wait_for_the_keeper() -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(READY)?;
    out.flush()?;
    let mut answer = [0];
    io::stdin().read_exact(&mut answer)?;
    match answer[0] {
        GO => Ok(()),
        _ => Err(io::Error::other("the keeper says no")),
    }
}

fn said(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what}: {error}"))
}

/// Binds every part to a folder that anybody may enter, in a mount namespace that ends with the run.
fn stage(sources: &Sources) -> io::Result<Sources> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let nothing: Option<&str> = None;
    mount(
        nothing,
        "/",
        nothing,
        MsFlags::MS_REC | MsFlags::MS_PRIVATE,
        nothing,
    )?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("tmpfs"),
        STAGE,
        Some("tmpfs"),
        flags,
        Some("mode=0711,size=64k"),
    )?;
    let lay = |from: &Path, name: &str| -> io::Result<PathBuf> {
        let to = Path::new(STAGE).join(name);
        if from.is_dir() {
            fs::create_dir(&to)?;
        } else {
            fs::write(&to, "")?;
        }
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some(from), &to, nothing, flags, nothing)?;
        Ok(to)
    };
    let mounts = sources.mounts.iter().enumerate();
    let mounts = mounts.map(|(number, one)| {
        let from = lay(&one.from, &format!("mount-{number}"))?;
        Ok(Seen {
            from,
            ..one.clone()
        })
    });
    Ok(Sources {
        home: lay(&sources.home, HOME)?,
        io: lay(&sources.io, IO)?,
        program: lay(&sources.program, "berth")?,
        mounts: mounts.collect::<io::Result<_>>()?,
    })
}

fn become_user(user: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    setgroups(&[gid])?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    // Its own files in `/proc` would else belong to root, and it could not say who it is in its namespace.
    nix::sys::prctl::set_dumpable(true)?;
    Ok(())
}

fn own_network() -> io::Result<()> {
    let (user, group) = (Uid::effective(), Gid::effective());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

fn close_routes(spec: &Spec) -> io::Result<()> {
    let mut lines = "link set lo up\n".to_owned();
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
