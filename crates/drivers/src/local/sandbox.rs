//! What a run sees of its machine: the system's programs, its own home, and nothing of anybody else's.
//!
//! These are bubblewrap's arguments, worked out without doing anything, so that a test can read them.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use super::machine;
use super::spec::{PROGRAM_INSIDE, Spec};
use crate::backend::Seen;

/// Whoever runs in a sandbox is this user there, whoever they are outside.
pub const USER_INSIDE: u32 = 1000;

/// Where the parts of the sandbox are found when it is made.
#[derive(Debug, Clone)]
pub struct Sources {
    pub home: PathBuf,
    pub program: PathBuf,
    pub mounts: Vec<Seen>,
}

impl Sources {
    /// As they are on the machine.
    pub fn plain(spec: &Spec, program: PathBuf) -> Sources {
        Sources {
            home: spec.home.clone(),
            program,
            mounts: spec.mounts.clone(),
        }
    }
}

/// What bubblewrap reads from open descriptors, so that no file of it lies where somebody could change it.
#[derive(Debug, Clone)]
pub struct Handed {
    /// The run's own settings, by their names in `/etc`.
    pub settings: Vec<(&'static str, RawFd)>,
    /// Filters of system calls.
    pub filters: Vec<RawFd>,
}

/// How large the run's own folder may grow, in bytes: it is for sockets.
const OWN_BYTES: &str = "1048576";

/// Of the system's settings only what programs need to run; no passwords, no keys, no names of people.
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

/// Devices of GPUs, beside those of each.
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

/// The settings that are the run's own, by their names in `/etc`.
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
        // The one that the run's own network provides.
        ("resolv.conf", "nameserver 10.0.2.3\n".to_owned()),
    ]
}

/// Bubblewrap's arguments, as they are put together.
#[derive(Default)]
pub(super) struct Line(pub Vec<OsString>);

impl Line {
    pub fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    /// The system's programs and libraries, where they are.
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

    /// Where it is on the machine.
    pub fn seen(&mut self, how: &str, path: &Path) {
        self.bind(how, path, path);
    }

    /// A link where the machine has one, else the folder.
    fn like_the_machine(&mut self, path: PathBuf) {
        match std::fs::read_link(&path) {
            Ok(target) => self.bind("--symlink", &target, &path),
            Err(_) => self.seen("--ro-bind-try", &path),
        }
    }
}
