//! A run's network in user space: `slirp4netns` forwards its packets as connections of its own process.
//!
//! It parses packets from the run. So it runs as the run's user, never as root, in a sandbox and with a seccomp filter
//! of its own.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use tokio::io::AsyncReadExt;
use tokio::process::Child;

use super::enter::{become_user, own_mounts};
use super::names;

/// The address of this machine in a run's own network.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
/// The device that `slirp4netns` opens; on many machines only root may open it.
const TUN: &str = "/dev/net/tun";
const TUN_DEVICE: (u64, u64) = (10, 200);

/// Ranges that no run reaches unless an admin opens them. An institution keeps its own machines in the private ranges.
/// Clouds serve their machines' metadata on link-local addresses.
pub const PRIVATE_RANGES: [Range; 5] = [
    Range::new(Ipv4Addr::new(10, 0, 0, 0), 8),
    Range::new(Ipv4Addr::new(100, 64, 0, 0), 10),
    Range::new(Ipv4Addr::new(169, 254, 0, 0), 16),
    Range::new(Ipv4Addr::new(172, 16, 0, 0), 12),
    Range::new(Ipv4Addr::new(192, 168, 0, 0), 16),
];

/// A range of IPv4 addresses. Runs have no IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The lowest address.
    first: Ipv4Addr,
    prefix_bits: u32,
}

impl Range {
    /// The range with this prefix. A prefix longer than an address gives a single address.
    pub const fn new(address: Ipv4Addr, prefix_bits: u32) -> Range {
        let prefix_bits = if prefix_bits > u32::BITS {
            u32::BITS
        } else {
            prefix_bits
        };
        Range {
            first: Ipv4Addr::from_bits(address.to_bits() & mask(prefix_bits)),
            prefix_bits,
        }
    }

    pub const fn of_one(address: Ipv4Addr) -> Range {
        Range::new(address, u32::BITS)
    }

    /// Whether `other` is this range or a part of it.
    pub fn contains(self, other: Range) -> bool {
        self.prefix_bits <= other.prefix_bits
            && other.first.to_bits() & mask(self.prefix_bits) == self.first.to_bits()
    }
}

const fn mask(prefix_bits: u32) -> u32 {
    match u32::MAX.checked_shl(u32::BITS - prefix_bits) {
        Some(mask) => mask,
        None => 0,
    }
}

impl fmt::Display for Range {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.first, self.prefix_bits)
    }
}

/// The addresses of a configured package index. If no name server answers, there are none, and the installer reports
/// the failure.
pub async fn addresses_of(index: Option<&str>) -> Vec<Ipv4Addr> {
    match index.and_then(host_of) {
        Some(host) => names::addresses(host).await.unwrap_or_default(),
        None => Vec::new(),
    }
}

fn host_of(url: &str) -> Option<String> {
    let url: hyper::Uri = url.parse().ok()?;
    url.host().map(str::to_owned)
}

/// Adds the network to the namespaces of a process, as its user. The network ends when the child is dropped.
pub async fn bring(
    program: &Path,
    process: u32,
    user: Option<u32>,
    patience: Duration,
) -> io::Result<Child> {
    let mut command = match user {
        None => slirp(process),
        Some(user) => {
            let mut command = Command::new(program);
            command.args(["keeper", "network", &process.to_string(), &user.to_string()]);
            command
        }
    };
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut command = tokio::process::Command::from(command);
    let mut network = command
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("slirp4netns: {error}")))?;
    let mut ready = [0];
    let heard = match network.stdout.as_mut() {
        Some(stdout) => tokio::time::timeout(patience, stdout.read_exact(&mut ready)).await,
        None => return Err(io::Error::other("slirp4netns has no output")),
    };
    match heard {
        Ok(Ok(_)) => Ok(network),
        _ => Err(io::Error::other(
            "slirp4netns did not start; `berth doctor` says what this machine lacks",
        )),
    }
}

/// Becomes the run's user, then `slirp4netns`. Returns only if something went wrong.
pub fn become_network(process: u32, user: u32) -> io::Result<Infallible> {
    own_mounts()?;
    own_tun(user)?;
    become_user(user)?;
    Err(slirp(process).exec())
}

/// Makes a device node for this user that exists only in this process's mounts. If that fails, the machine's own device
/// may work.
fn own_tun(user: u32) -> io::Result<()> {
    let path = Path::new(TUN);
    let Some(folder) = path.parent().filter(|folder| folder.is_dir()) else {
        return Ok(());
    };
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = Some("mode=0755,size=4k");
    mount(Some("tmpfs"), folder, Some("tmpfs"), flags, options)?;
    let (major, minor) = TUN_DEVICE;
    let mode = Mode::S_IRUSR | Mode::S_IWUSR;
    match mknod(path, SFlag::S_IFCHR, mode, makedev(major, minor)) {
        Ok(()) => chown(path, Some(user), Some(user)),
        Err(_) => Ok(nix::mount::umount(folder)?),
    }
}

fn slirp(process: u32) -> Command {
    let mut command = Command::new("slirp4netns");
    command
        .args(["--configure", "--mtu=65520", "--disable-host-loopback"])
        .args(["--enable-sandbox", "--enable-seccomp"])
        .args(["--exit-fd=0", "--ready-fd=1"])
        .args([&process.to_string(), "tap0"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_itself_and_its_parts() {
        let range = |a, b, bits| Range::new(Ipv4Addr::new(a, b, 0, 0), bits);
        assert!(range(10, 0, 8).contains(range(10, 0, 8)));
        assert!(range(10, 0, 8).contains(range(10, 99, 16)));
        assert!(range(8, 0, 6).contains(range(10, 0, 8)));
        assert!(range(0, 0, 0).contains(range(10, 0, 8)));
        assert!(!range(10, 99, 16).contains(range(10, 0, 8)));
        assert!(!range(11, 0, 8).contains(range(10, 0, 8)));
        assert_eq!(range(10, 99, 8).to_string(), "10.0.0.0/8");
        assert_eq!(range(10, 99, 33).to_string(), "10.99.0.0/32");
    }

    #[test]
    fn the_host_of_a_package_index_is_found_in_its_url() {
        let host = |url: &str| host_of(url);
        assert_eq!(
            host("https://pypi.example/simple").as_deref(),
            Some("pypi.example")
        );
        let with_all = "https://login:word@packages.example:8443/simple?x";
        assert_eq!(host(with_all).as_deref(), Some("packages.example"));
        assert_eq!(host("/simple"), None);
        assert_eq!(host("https:///simple"), None);
    }
}
