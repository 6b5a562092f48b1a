//! The parts of its machine that a run sees: the system's programs, its own home, and nothing that belongs to others.
//!
//! This module computes bubblewrap's arguments and changes nothing, so that a test can read them.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use super::machine;
use super::spec::{PROGRAM_INSIDE, Spec};
use crate::backend::Seen;

/// The user of every run inside its sandbox, independent of the user outside.
pub const USER_INSIDE: u32 = 1000;

/// Where the parts of the sandbox are when it is made.
#[derive(Debug, Clone)]
pub struct Sources {
    pub home: PathBuf,
    pub program: PathBuf,
    pub mounts: Vec<Seen>,
}

impl Sources {
    /// The parts at their paths on the machine.
    pub fn plain(spec: &Spec, program: PathBuf) -> Sources {
        Sources {
            home: spec.home.clone(),
            program,
            mounts: spec.mounts.clone(),
        }
    }
}

/// Files that bubblewrap reads from open descriptors, so that none is on a disk where somebody could change it.
#[derive(Debug, Clone)]
pub struct Handed {
    /// The run's own files, by their names in `/etc`.
    pub settings: Vec<(&'static str, RawFd)>,
    /// Seccomp filters.
    pub filters: Vec<RawFd>,
}

/// Maximum size in bytes of the run's own folder, which is for sockets.
const OWN_BYTES: &str = "1048576";

/// The entries of `/etc` that programs need to run: no passwords, no keys, no names of people.
const SETTINGS: [&str; 18] = [
    "X11",
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "fonts",
    "java",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "pki",
    "protocols",
    "services",
    "ssl",
    "timezone",
    "xdg",
];

/// Device files for all GPUs, in addition to one for each GPU.
const GPU_DEVICES: [&str; 5] = [
    "/dev/nvidiactl",
    "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools",
    "/dev/nvidia-modeset",
    "/dev/nvidia-caps",
];

pub fn arguments(spec: &Spec, from: &Sources, handed: &Handed) -> Vec<OsString> {
    let mut line = Line::default();
    line.words(&["--unshare-user", "--unshare-pid", "--unshare-ipc"]);
    line.words(&["--unshare-uts", "--unshare-cgroup-try", "--disable-userns"]);
    line.words(&["--die-with-parent", "--new-session", "--as-pid-1"]);
    line.words(&["--cap-drop", "ALL", "--hostname", "berth"]);
    let user = USER_INSIDE.to_string();
    line.words(&["--uid", &user, "--gid", &user]);
    line.programs();
    for name in SETTINGS {
        line.seen("--ro-bind-try", &Path::new("/etc").join(name));
    }
    line.words(&["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
    line.words(&["--tmpfs", "/run", "--tmpfs", "/home", "--dir", "/var/tmp"]);
    line.seen("--ro-bind-try", Path::new("/sys/devices/system/cpu"));
    if !spec.gpus.is_empty() {
        for device in GPU_DEVICES {
            line.seen("--dev-bind-try", Path::new(device));
        }
        for device in spec.gpus.iter().filter_map(|gpu| machine::device_file(gpu)) {
            line.seen("--dev-bind-try", &device);
        }
    }
    line.bind("--bind", &from.home, &spec.places.home);
    line.words(&["--perms", "0700", "--size", OWN_BYTES, "--tmpfs"]);
    line.0.push(spec.places.own.clone().into());
    line.bind("--ro-bind", &from.program, Path::new(PROGRAM_INSIDE));
    for mount in &from.mounts {
        let how = if mount.is_writable {
            "--bind"
        } else {
            "--ro-bind"
        };
        line.bind(how, &mount.from, &mount.to);
    }
    for (name, descriptor) in &handed.settings {
        line.words(&["--ro-bind-data", &descriptor.to_string()]);
        line.0.push(Path::new("/etc").join(name).into());
    }
    for descriptor in &handed.filters {
        line.words(&["--add-seccomp-fd", &descriptor.to_string()]);
    }
    line.words(&["--remount-ro", "/", "--chdir", "/", "--"]);
    line.words(&[PROGRAM_INSIDE, "keeper", "inside"]);
    line.0
}

/// The run's own files, by their names in `/etc`.
pub fn settings(spec: &Spec) -> [(&'static str, String); 4] {
    let Spec { login, .. } = spec;
    let user = USER_INSIDE;
    [
        (
            "passwd",
            format!(
                "root:x:0:0:root:/:/usr/sbin/nologin\n{login}:x:{user}:{user}:{login}:/home/{login}:/bin/bash\n"
            ),
        ),
        ("group", format!("root:x:0:\n{login}:x:{user}:\n")),
        (
            "hosts",
            "127.0.0.1 localhost berth\n::1 localhost\n".to_owned(),
        ),
        // The name server that the run's own network provides.
        ("resolv.conf", "nameserver 10.0.2.3\n".to_owned()),
    ]
}

/// Bubblewrap's arguments.
#[derive(Default)]
pub(super) struct Line(pub Vec<OsString>);

impl Line {
    pub fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    /// Mounts the system's programs and libraries at their own paths.
    pub fn programs(&mut self) {
        self.words(&["--ro-bind", "/usr", "/usr"]);
        for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
            self.like_the_machine(Path::new("/").join(name));
        }
    }

    pub fn bind(&mut self, how: &str, from: &Path, to: &Path) {
        self.words(&[how]);
        self.0.push(from.into());
        self.0.push(to.into());
    }

    /// Mounts a path at the same path.
    pub fn seen(&mut self, how: &str, path: &Path) {
        self.bind(how, path, path);
    }

    /// Makes a link if the machine has one, else mounts the folder.
    fn like_the_machine(&mut self, path: PathBuf) {
        match std::fs::read_link(&path) {
            Ok(target) => self.bind("--symlink", &target, &path),
            Err(_) => self.seen("--ro-bind-try", &path),
        }
    }
}
