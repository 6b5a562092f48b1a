//! The launch specification of a run, as written in its folder. It is complete, so the supervisor needs no other
//! source.

use std::collections::BTreeMap;
use std::path::PathBuf;

use berth_model::RunId;
use serde::{Deserialize, Serialize};

use crate::backend::Seen;

/// A small file system in the sandbox that belongs to the run, where an app puts its socket.
pub const INSIDE: &str = "/run/berth";
/// The path of this program in the sandbox.
pub const PROGRAM_INSIDE: &str = "/opt/berth/bin/berth";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    pub run: RunId,
    /// The person's login in the sandbox.
    pub login: String,
    /// Whether this machine has a sandbox for the run.
    pub is_sandboxed: bool,
    /// The paths that the run uses.
    pub places: Places,
    /// The run's user id on this machine; `None` means the user who started the server.
    pub user: Option<u32>,
    /// The person's home on this machine.
    pub home: PathBuf,
    pub command: Vec<String>,
    /// A script that runs in place of a command.
    pub script: Option<String>,
    pub environment: BTreeMap<String, String>,
    /// Whether the app asks visitors for a token of its own. Records of earlier servers do not say, so `true` is
    /// assumed: otherwise an app that asks for one would reject its visitors.
    #[serde(default = "yes")]
    pub has_app_token: bool,
    /// The working folder in the sandbox; `None` means the home.
    pub folder: Option<PathBuf>,
    /// The file in the sandbox for the standard output; `None` means the run's log.
    pub output: Option<PathBuf>,
    pub errors: Option<PathBuf>,
    pub limits: Limits,
    /// The GPUs that CUDA sees: numbers or UUIDs.
    pub gpus: Vec<String>,
    pub mounts: Vec<Seen>,
    /// Where the app listens, if it serves visitors.
    pub listens: Option<Listens>,
    /// Whether the run reaches the server's own socket as its JupyterHub. Runs of an earlier server do not.
    #[serde(default)]
    pub has_hub: bool,
    pub network: Network,
    /// The socket of the fork server that starts the app, if there is one.
    #[serde(default)]
    pub warm: Option<PathBuf>,
}

fn yes() -> bool {
    true
}

/// The paths that a run uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    pub home: PathBuf,
    /// The folder in which the app puts its socket.
    pub own: PathBuf,
    pub temporary: PathBuf,
}

impl Places {
    pub fn in_sandbox(login: &str) -> Places {
        Places {
            home: PathBuf::from("/home").join(login),
            own: PathBuf::from(INSIDE),
            temporary: PathBuf::from("/tmp"),
        }
    }

    /// The paths on a machine without a sandbox. The temporary folder is the run's own nevertheless.
    pub fn in_the_open(home: PathBuf, own: PathBuf) -> Places {
        Places {
            home,
            temporary: own.join("tmp"),
            own,
        }
    }
}

/// The resources that are reserved for a run, and the most that it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub cores_milli: u64,
    pub cores_milli_max: u64,
    pub memory_bytes: u64,
    pub memory_bytes_max: u64,
    pub processes_max: u64,
}

/// Where an app listens for its visitors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Listens {
    /// On a Unix socket in its own folder.
    Socket,
    /// On a port of its own network.
    Port(u16),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Whether the run reaches any network outside.
    pub is_open: bool,
    /// Addresses or ranges that it never reaches.
    pub closed: Vec<String>,
    /// Addresses or ranges that it reaches although they are in a larger range that is closed.
    pub opened: Vec<String>,
}
