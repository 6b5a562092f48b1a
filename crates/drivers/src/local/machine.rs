//! What this machine has, and what it can keep apart.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::cgroup::Groups;

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

fn memory_mib(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
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

/// What it can do to keep people apart. Each that it cannot says why, and what would help.
#[derive(Debug, Clone)]
pub struct Abilities {
    pub sandbox: Result<(), String>,
    pub network: Result<(), String>,
    pub limits: Result<Groups, String>,
    /// Whether each person can be a user of their own.
    pub users: Result<(), String>,
}

impl Abilities {
    /// Tries each of them; a program that is there may still not work.
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
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().ok().map(|status| status.success())
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let is_good = output.status.success();
    is_good.then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Every address of this machine, which nothing in a sandbox may reach: the server listens on some of them.
pub fn own_addresses() -> Vec<String> {
    let listed = output("ip", &["-oneline", "address", "show"]).unwrap_or_default();
    let address = |line: &str| {
        let mut words = line.split_whitespace().skip(2);
        let family = words.next()?;
        let address = words.next()?.split('/').next()?;
        (family == "inet" && !address.starts_with("127.")).then(|| format!("{address}/32"))
    };
    listed.lines().filter_map(address).collect()
}

/// This very program.
pub fn program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn memory_is_counted_in_whole_mebibytes() {
        assert_eq!(
            memory_mib("MemTotal:       24591234 kB\nMemFree: 1 kB\n"),
            24_014
        );
        assert_eq!(memory_mib(""), 0);
    }
}
