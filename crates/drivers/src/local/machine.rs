//! The hardware of this machine, and its abilities to isolate people.

use std::fs;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::cgroup::Groups;

/// Timeout for a program that inspects this machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The machine itself, as its inventory shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub name: String,
    pub cores: u64,
    pub memory_mib: u64,
    pub gpus: Vec<GpuFound>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuFound {
    pub index: u32,
    pub uuid: String,
    pub model: String,
    pub memory_mib: u64,
}

impl Machine {
    pub fn look() -> Machine {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let listed = output(
            "nvidia-smi",
            &[
                "--query-gpu=index,uuid,name,memory.total",
                "--format=csv,noheader,nounits",
            ],
        );
        Machine {
            name: name.trim().to_owned(),
            cores,
            memory_mib: memory_mib(&memory),
            gpus: gpus(&listed.unwrap_or_default()),
        }
    }
}

/// Memory that is available now without evicting anything.
pub fn available_mib() -> u64 {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    field_mib(&memory, "MemAvailable:")
}

fn memory_mib(text: &str) -> u64 {
    field_mib(text, "MemTotal:")
}

fn field_mib(text: &str, field: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0) / 1024
}

fn gpus(listed: &str) -> Vec<GpuFound> {
    let gpu = |line: &str| {
        let mut fields = line.split(',').map(str::trim);
        Some(GpuFound {
            index: fields.next()?.parse().ok()?,
            uuid: fields.next()?.to_owned(),
            model: fields.next()?.to_owned(),
            memory_mib: fields.next()?.parse().ok()?,
        })
    };
    listed.lines().filter_map(gpu).collect()
}

/// The device file of a GPU that is given by its number or its UUID.
pub fn device_file(gpu: &str) -> Option<PathBuf> {
    let number = match gpu.parse::<u8>() {
        Ok(number) => Some(number),
        Err(_) => fs::read_dir("/proc/driver/nvidia/gpus")
            .ok()?
            .filter_map(|one| fs::read_to_string(one.ok()?.path().join("information")).ok())
            .find_map(|text| device_number(&text, gpu)),
    };
    Some(PathBuf::from(format!("/dev/nvidia{}", number?)))
}

/// The device number, if the driver's information is about this GPU.
fn device_number(information: &str, uuid: &str) -> Option<u8> {
    let told = |field: &str| {
        let mut fields = information.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(name, _)| *name == field)?;
        Some(value.trim())
    };
    (told("GPU UUID")? == uuid).then_some(told("Device Minor")?.parse().ok()?)
}

/// The stable id of this machine, which does not depend on the host's name. It is made once and kept next to the runs.
pub fn identity(folder: &Path) -> io::Result<String> {
    let path = folder.join("machine");
    match fs::read_to_string(&path) {
        Ok(known) => return Ok(known.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let made = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    let part = path.with_extension("part");
    let mut file = fs::File::create(&part)?;
    file.write_all(made.as_bytes())?;
    file.sync_all()?;
    fs::rename(&part, &path)?;
    fs::File::open(folder)?.sync_all()?;
    Ok(made.trim().to_owned())
}

/// The machine's abilities to isolate people. Each missing ability says why, and what would help.
#[derive(Debug, Clone)]
pub struct Abilities {
    pub sandbox: Result<(), String>,
    pub network: Result<(), String>,
    pub limits: Result<Groups, String>,
    /// Whether each person can have a user of their own.
    pub users: Result<(), String>,
}

/// Why the boundary of a run does not hold on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeakBoundary {
    NoSandbox,
    ServerUser,
    NoSandboxServerUser,
}

impl WeakBoundary {
    pub fn of(has_sandbox: bool, has_own_users: bool) -> Option<WeakBoundary> {
        match (has_sandbox, has_own_users) {
            (true, true) => None,
            (false, true) => Some(WeakBoundary::NoSandbox),
            (true, false) => Some(WeakBoundary::ServerUser),
            (false, false) => Some(WeakBoundary::NoSandboxServerUser),
        }
    }

    pub fn sentence(self) -> &'static str {
        match self {
            WeakBoundary::NoSandbox => {
                "Runs have no sandbox, so each run sees this machine's files, processes and network."
            }
            WeakBoundary::ServerUser => {
                "Runs have the server's own user, so only the sandbox keeps a run from the server's files."
            }
            WeakBoundary::NoSandboxServerUser => {
                "Runs have the server's own user and no sandbox, so each run can read and change everything that the server can."
            }
        }
    }

    pub fn advice(self) -> &'static str {
        match self {
            WeakBoundary::NoSandbox => {
                "An admin can install bubblewrap and restart the server, or set unsafe_shared_user."
            }
            WeakBoundary::ServerUser => {
                "An admin can start the server as root, or set unsafe_shared_user."
            }
            WeakBoundary::NoSandboxServerUser => {
                "An admin can install bubblewrap and start the server as root, or set unsafe_shared_user."
            }
        }
    }
}

impl Abilities {
    pub fn weak_boundary(&self) -> Option<WeakBoundary> {
        WeakBoundary::of(self.sandbox.is_ok(), self.users.is_ok())
    }

    /// The missing abilities and the reasons, under the names that an inventory uses for them.
    pub fn lacks(&self) -> impl Iterator<Item = (&'static str, String)> {
        let all = [
            ("no_sandbox", self.sandbox.clone().err()),
            ("no_network", self.network.clone().err()),
            ("no_limits", self.limits.clone().err()),
            ("no_users", self.users.clone().err()),
        ];
        all.into_iter().filter_map(|(name, why)| Some((name, why?)))
    }

    /// Whether the machine can make sandboxes now.
    pub fn has_sandbox() -> bool {
        can_sandbox().is_ok()
    }

    /// Tries each ability, because an installed program may still not work.
    pub fn look() -> Abilities {
        Abilities {
            sandbox: can_sandbox(),
            network: can_network(),
            limits: Groups::find().ok_or_else(|| {
                "the server may not write control groups; give it root or a delegated group"
                    .to_owned()
            }),
            users: if nix::unistd::Uid::effective().is_root() {
                Ok(())
            } else {
                Err("the server is not root, so everybody's work runs as the same user".to_owned())
            },
        }
    }
}

fn can_sandbox() -> Result<(), String> {
    let arguments = [
        "--unshare-all",
        "--cap-drop",
        "ALL",
        "--ro-bind",
        "/",
        "/",
        "true",
    ];
    match status("bwrap", &arguments) {
        Some(true) => Ok(()),
        Some(false) => Err(
            "bubblewrap is there, but may not make namespaces; allow unprivileged user namespaces"
                .to_owned(),
        ),
        None => Err("bubblewrap is not installed; `apt install bubblewrap`".to_owned()),
    }
}

fn can_network() -> Result<(), String> {
    if status("slirp4netns", &["--version"]).is_none() {
        return Err("slirp4netns is not installed; `apt install slirp4netns`".to_owned());
    }
    if status("ip", &["-V"]).is_none() {
        return Err("`ip` is not installed; `apt install iproute2`".to_owned());
    }
    let tun = fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/net/tun");
    tun.map(drop)
        .map_err(|error| format!("the server may not open /dev/net/tun: {error}"))
}

fn status(program: &str, arguments: &[&str]) -> Option<bool> {
    match ended(program, arguments, PATIENCE) {
        Ok(output) => Some(output.status.success()),
        Err(error) => (error.kind() == io::ErrorKind::TimedOut).then_some(false),
    }
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = ended(program, arguments, PATIENCE);
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a program is in one of the system's own folders.
pub(super) fn has_program(name: &str) -> bool {
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .any(|folder| Path::new(folder).join(name).is_file())
}

/// The output of a program that has ended. A driver may hang for ever, and a server must start without it.
fn ended(program: &str, arguments: &[&str], patience: Duration) -> io::Result<Output> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let process = Pid::from_raw(child.id().cast_signed());
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(child.wait_with_output()).ok());
    told.recv_timeout(patience).unwrap_or_else(|_| {
        kill(process, Signal::SIGKILL).ok();
        let seconds = patience.as_secs();
        tracing::warn!("{program} did not answer within {seconds} s; this machine goes on without");
        Err(io::ErrorKind::TimedOut.into())
    })
}

/// Every address of this machine. Nothing in a sandbox may reach them, because the server listens on some of them. It
/// is an error if they cannot be listed, so that no run starts with them open.
pub fn own_addresses() -> io::Result<Vec<Ipv4Addr>> {
    let listed = ended("ip", &["-oneline", "address", "show"], PATIENCE)?;
    if !listed.status.success() {
        return Err(io::Error::other("`ip address show` failed"));
    }
    Ok(addresses_in(&String::from_utf8_lossy(&listed.stdout)))
}

fn addresses_in(listed: &str) -> Vec<Ipv4Addr> {
    let address = |line: &str| {
        let mut words = line.split_whitespace().skip(2);
        let family = words.next()?;
        let address: Ipv4Addr = words.next()?.split('/').next()?.parse().ok()?;
        (family == "inet" && !address.is_loopback()).then_some(address)
    };
    listed.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_system_lists_them() {
        let listed = "1: lo    inet 127.0.0.1/8 scope host lo\n\
                      2: eth0    inet 192.0.2.7/24 brd 192.0.2.255 scope global eth0\n\
                      2: eth0    inet6 fe80::1/64 scope link\n";
        assert_eq!(addresses_in(listed), [Ipv4Addr::new(192, 0, 2, 7)]);
        assert!(own_addresses().is_ok());
    }

    #[test]
    fn a_program_that_hangs_is_left() {
        let hung = ended("sleep", &["600"], Duration::from_millis(1));
        assert_eq!(hung.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let said = ended("echo", &["here"], PATIENCE).unwrap();
        assert_eq!(said.stdout, b"here\n");
        assert_eq!(status("berth-no-such-program", &[]), None);
    }

    #[test]
    fn gpus_are_read_as_the_driver_lists_them() {
        let listed =
            "0, GPU-8f3c, NVIDIA H200, 143771\n1, GPU-91aa, NVIDIA H200, 143771\nnonsense\n";
        let found = gpus(listed);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].uuid, "GPU-91aa");
        assert_eq!(found[0].memory_mib, 143_771);
    }

    #[test]
    fn a_gpu_is_reached_by_its_number_or_by_its_uuid() {
        let told = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\nGPU UUID: \t GPU-9150ffc6\nBus Location: \t 0000:00:06.0\nDevice Minor: \t 3\n";
        assert_eq!(device_number(told, "GPU-9150ffc6"), Some(3));
        assert_eq!(device_number(told, "GPU-91"), None);
        assert_eq!(device_file("2"), Some("/dev/nvidia2".into()));
        assert_eq!(device_file("GPU-of-nobody"), None);
    }

    #[test]
    fn a_machine_keeps_what_it_is_known_by() {
        let folder = tempfile::tempdir().unwrap();
        let first = identity(folder.path()).unwrap();
        assert_eq!(first.len(), 36);
        assert_eq!(identity(folder.path()).unwrap(), first);
    }

    #[test]
    fn memory_is_counted_in_whole_mebibytes() {
        assert_eq!(
            memory_mib("MemTotal:       24591234 kB\nMemFree: 1 kB\n"),
            24_014
        );
        assert_eq!(memory_mib(""), 0);
    }
}
