//! What is to run, as it is written in the run's folder: everything the keeper needs, so that it needs nobody.

use std::collections::BTreeMap;
use std::path::PathBuf;

use berth_model::RunId;
use serde::{Deserialize, Serialize};

/// Where in the sandbox a run's own files are: its socket, and this.
pub const INSIDE: &str = "/run/berth";
/// The program itself, in the sandbox.
pub const PROGRAM_INSIDE: &str = "/opt/berth/bin/berth";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    pub run: RunId,
    /// What the person is called in the sandbox.
    pub login: String,
    /// Whom it runs as on this machine; whoever started the server, if none.
    pub user: Option<u32>,
    /// The person's own files, and where they are seen.
    pub home: PathBuf,
    pub command: Vec<String>,
    /// A script, in place of a command.
    pub script: Option<String>,
    pub environment: BTreeMap<String, String>,
    /// Where it begins, in the sandbox; the home, if none.
    pub folder: Option<PathBuf>,
    /// Where in the sandbox what it says is written; in the run's log, if none.
    pub output: Option<PathBuf>,
    pub errors: Option<PathBuf>,
    pub limits: Limits,
    /// What CUDA is to see: numbers or UUIDs.
    pub gpus: Vec<String>,
    pub mounts: Vec<Mount>,
    /// Whether somebody will want to visit it, and where it listens.
    pub listens: Option<Listens>,
    pub network: Network,
}

impl Spec {
    pub fn home_inside(&self) -> PathBuf {
        PathBuf::from("/home").join(&self.login)
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

/// Something of this machine that is seen in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    pub from: PathBuf,
    pub to: PathBuf,
    pub is_writable: bool,
}

/// Where an app waits for its visitors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Listens {
    /// On the socket in [`INSIDE`] itself.
    Socket,
    /// On a port of its own network; whoever comes by the socket is passed on.
    Port(u16),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Whether it reaches anything outside at all.
    pub is_open: bool,
    /// What it never reaches, as addresses or ranges.
    pub closed: Vec<String>,
}
