//! What the keeper has to run, as it is written in the run's folder: everything, so that it asks nobody.

use std::collections::BTreeMap;
use std::path::PathBuf;

use berth_model::RunId;
use serde::{Deserialize, Serialize};

use crate::backend::Seen;

/// A small file system of the run's own in the sandbox, where an app puts its socket.
pub const INSIDE: &str = "/run/berth";
/// The program itself, in the sandbox.
pub const PROGRAM_INSIDE: &str = "/opt/berth/bin/berth";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    pub run: RunId,
    /// What the person is called in the sandbox.
    pub login: String,
    /// Whether this machine has a sandbox to put it into.
    pub is_sandboxed: bool,
    /// Where it finds its things.
    pub places: Places,
    /// Whom it runs as on this machine; whoever started the server, if none.
    pub user: Option<u32>,
    /// The person's own files.
    pub home: PathBuf,
    pub command: Vec<String>,
    /// A script, in place of a command.
    pub script: Option<String>,
    pub environment: BTreeMap<String, String>,
    /// Whether the app asks visitors for a token of its own. Records of servers before this one do not say; a visitor
    /// without a token that is asked for would be kept out.
    #[serde(default = "yes")]
    pub has_app_token: bool,
    /// Where it begins, in the sandbox; the home, if none.
    pub folder: Option<PathBuf>,
    /// Where in the sandbox what it says is written; in the run's log, if none.
    pub output: Option<PathBuf>,
    pub errors: Option<PathBuf>,
    pub limits: Limits,
    /// What CUDA is to see: numbers or UUIDs.
    pub gpus: Vec<String>,
    pub mounts: Vec<Seen>,
    /// Whether somebody will want to visit it, and where it listens.
    pub listens: Option<Listens>,
    /// Whether it reaches the server's own socket for what it takes to be a JupyterHub. Runs of a server before this one
    /// do not.
    #[serde(default)]
    pub has_hub: bool,
    pub network: Network,
    /// Where a warm server waits of which its app is to be a copy.
    #[serde(default)]
    pub warm: Option<PathBuf>,
}

fn yes() -> bool {
    true
}

/// Where a run finds its things.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    pub home: PathBuf,
    /// Where its app puts its socket.
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

    /// Without a sandbox they are where they are; the folder for what is temporary is the run's own all the same.
    pub fn in_the_open(home: PathBuf, own: PathBuf) -> Places {
        Places {
            home,
            temporary: own.join("tmp"),
            own,
        }
    }
}

/// What is held for it, and the most that it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub cores_milli: u64,
    pub cores_milli_max: u64,
    pub memory_bytes: u64,
    pub memory_bytes_max: u64,
    pub processes_max: u64,
}

/// Where an app waits for its visitors.
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
    /// Whether it reaches anything outside at all.
    pub is_open: bool,
    /// What it never reaches, as addresses or ranges.
    pub closed: Vec<String>,
    /// What it reaches though it is in a larger range that is closed.
    pub opened: Vec<String>,
}
