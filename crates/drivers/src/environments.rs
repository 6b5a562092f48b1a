//! Builds of managed environments, and where the finished environments are.
//!
//! A build is a run like any other: a program in a sandbox that mounts the new environment's folder and may write in
//! it. When the build has succeeded, the folder is *sealed*: from then on nobody may write in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use berth_model::environment::{INSIDE, Package};
use berth_model::workload::Program;
use berth_model::{EnvironmentId, Name};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::backend::Doing;
use crate::beneath::Beneath;
pub use crate::beneath::{Counted, Size};

/// The program that builds an environment from a [`Recipe`].
const BUILD: &str = include_str!("environments/build.py");

/// The certificates that this machine trusts. An index inside an institution is often signed by the institution's own
/// authority.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The input of the program that builds an environment.
#[derive(Debug, Clone, Serialize)]
pub struct Recipe {
    /// Path of the environment in the sandbox.
    pub path: String,
    /// Path in the sandbox of the environment that it extends.
    pub base: Option<String>,
    pub packages: Vec<Package>,
    /// Path of its lock file in the sandbox. With a lock file, the build installs exactly the files that match its
    /// hashes.
    pub lock: Option<String>,
    /// The names of its kernel: one for people, and one for programs.
    pub title: String,
    pub kernel: String,
}

impl Recipe {
    pub fn program(&self) -> Program {
        let recipe = serde_json::to_string(self).unwrap_or_default();
        Program {
            script: Some(BUILD.to_owned()),
            environment: BTreeMap::from([("BERTH_RECIPE".to_owned(), recipe)]),
            folder: Some("/tmp".to_owned()),
            ..Program::default()
        }
    }
}

/// Environment variables with facts about this machine that an installer needs.
pub fn installing(index: Option<&str>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    if std::path::Path::new(CERTIFICATES).is_file() {
        all.insert("PIP_CERT".to_owned(), CERTIFICATES.to_owned());
    }
    if let Some(index) = index {
        all.insert("PIP_INDEX_URL".to_owned(), index.to_owned());
    }
    all
}

/// Environments that ship with Berth. Their requirements and lock files are in `environments/locks`;
/// `scripts/lock-environments` makes the locks.
const BROUGHT: &[Brought] = &[
    Brought {
        name: "jupyterlab",
        requirements: include_str!("environments/locks/jupyterlab.in"),
        lock: include_str!("environments/locks/jupyterlab.txt"),
        warm: &[
            "jupyterlab.labapp",
            "jupyter_lsp",
            "jupyter_server_terminals",
            "notebook_shim",
        ],
    },
    Brought {
        name: "tensorboard",
        requirements: include_str!("environments/locks/tensorboard.in"),
        lock: include_str!("environments/locks/tensorboard.txt"),
        warm: &[],
    },
    Brought {
        name: "mlflow",
        requirements: include_str!("environments/locks/mlflow.in"),
        lock: include_str!("environments/locks/mlflow.txt"),
        warm: &[],
    },
];

/// Path of the lock file of a prepared environment during its build.
pub const LOCK_INSIDE: &str = "/opt/berth/environments/lock.txt";

struct Brought {
    name: &'static str,
    /// One package with its version on each line.
    requirements: &'static str,
    /// All packages that these need, with their versions and the hashes of their files.
    lock: &'static str,
    /// Modules that a fork server loads in advance, so that apps which need them start at once.
    warm: &'static [&'static str],
}

impl Brought {
    fn named(name: &str) -> Option<&'static Brought> {
        BROUGHT.iter().find(|one| one.name == name)
    }
}

/// An environment that is built before the server starts, and that every site then has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    pub name: Name,
    pub packages: Vec<Package>,
    /// Its interpreter and its size, once it is built.
    #[serde(default)]
    pub python: Option<String>,
    #[serde(default)]
    pub bytes: Option<u64>,
}

/// File in the folder of a prepared environment that describes it. It is written last, so a folder without it is
/// incomplete.
pub const ABOUT: &str = "berth-environment.json";
const ABOUT_BYTES_MAX: u64 = 1 << 20;

impl Prepared {
    pub fn brought(name: &str) -> Option<Prepared> {
        let Brought {
            name, requirements, ..
        } = Brought::named(name)?;
        let packages = requirements.lines().map(|line| line.parse().ok());
        Some(Prepared {
            name: name.parse().ok()?,
            packages: packages.collect::<Option<_>>()?,
            python: None,
            bytes: None,
        })
    }

    /// The command by which an admin prepares the environment of an app in the catalogue; `None` for any other name.
    pub fn how_to_make(name: &str) -> Option<String> {
        match name {
            "vscode" => Some("scripts/install-code-server".to_owned()),
            name if Prepared::names().any(|known| known == name) => {
                Some(format!("berth env prepare {name}"))
            }
            _ => None,
        }
    }

    pub fn names() -> impl Iterator<Item = &'static str> {
        BROUGHT.iter().map(|one| one.name)
    }

    /// Reads the description of the environment in this folder.
    pub fn found(folder: &Path) -> Option<Prepared> {
        let about = Beneath::open(folder).ok()?;
        let about = about.read(Path::new(ABOUT), ABOUT_BYTES_MAX).ok()?;
        serde_json::from_slice(&about).ok()
    }

    /// The modules that a fork server loads in advance.
    pub fn warm(&self) -> &'static [&'static str] {
        Brought::named(self.name.as_str()).map_or(&[], |one| one.warm)
    }

    /// The lock file from which it is installed.
    pub fn lock(&self) -> &'static str {
        Brought::named(self.name.as_str()).map_or("", |one| one.lock)
    }

    /// The name of its folder. The same packages, lock and build program give the same folder; any change gives
    /// another.
    pub fn key(&self) -> Option<Name> {
        self.key_with(self.lock())
    }

    fn key_with(&self, lock: &str) -> Option<Name> {
        let mut hash = Sha256::new();
        hash.update(BUILD);
        hash.update(lock);
        for package in &self.packages {
            hash.update(package.as_str());
            hash.update(b"\n");
        }
        let digest = hash.finalize();
        let short: String = digest[..6]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{}-{short}", self.name).parse().ok()
    }

    /// Its path below [`INSIDE`]. No version contains a `-`, so no other environment has this path.
    pub fn path(key: &Name) -> String {
        format!("prepared/{key}")
    }

    pub fn recipe(&self, key: &Name) -> Recipe {
        Recipe {
            path: format!("{INSIDE}/{}", Prepared::path(key)),
            base: None,
            packages: self.packages.clone(),
            lock: Some(LOCK_INSIDE.to_owned()),
            title: self.name.to_string(),
            kernel: format!("berth-{key}"),
        }
    }
}

/// Facts about an environment once nobody may write in it any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub bytes: u64,
    pub python: Option<String>,
}

/// The environment store of a backend. Every call must be idempotent.
pub trait Shelf: Send + Sync + std::fmt::Debug {
    /// The folder of an environment that was built here.
    fn made(&self, id: EnvironmentId) -> PathBuf;

    /// The folder of an environment that was prepared in advance; `None` where nothing can be prepared.
    fn prepared(&self, key: &Name) -> Option<PathBuf>;

    /// Returns the folders that exist.
    fn existing(&self, folders: Vec<PathBuf>) -> Doing<'_, Vec<PathBuf>>;

    /// All environments that were prepared in advance, by their keys.
    fn all_prepared(&self) -> Doing<'_, Vec<(Name, Prepared)>>;

    /// The disk usage of an environment now, also during its build. It is a lower bound if the measurement takes too
    /// long.
    fn size(&self, id: EnvironmentId) -> Doing<'_, Size>;

    /// Makes an environment read-only for everybody, and makes sure that it survives a crash of this machine.
    fn seal(&self, id: EnvironmentId) -> Doing<'_, Sealed>;

    /// Removes an environment, unless a run that has not ended mounts it.
    fn remove(&self, id: EnvironmentId) -> Doing<'_, Removed>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    Done,
    StillSeen,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_berth_brings_can_be_made() {
        for name in Prepared::names() {
            let prepared = Prepared::brought(name).unwrap();
            let key = prepared.key().unwrap();
            assert!(key.as_str().starts_with(name), "{key}");
            let program = prepared.recipe(&key).program();
            assert!(program.script.unwrap().starts_with("#!/usr/bin/python3\n"));
        }
    }

    #[test]
    fn other_packages_are_another_folder() {
        let mut prepared = Prepared::brought("jupyterlab").unwrap();
        let key = prepared.key();
        prepared.packages.pop();
        assert_ne!(prepared.key(), key);
    }

    #[test]
    fn another_lock_is_another_folder() {
        let prepared = Prepared::brought("jupyterlab").unwrap();
        let changed = prepared.lock().replacen("sha256:", "sha256:0", 1);
        assert_ne!(prepared.key_with(&changed), prepared.key());
    }

    /// The packages of a lock file with their hashes; an error for a line that is neither.
    fn locked(lock: &str) -> Result<Vec<(&str, Vec<&str>)>, String> {
        let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in lock.lines() {
            let part = line.trim_end_matches(" \\");
            match (
                part.trim_start().strip_prefix("--hash=sha256:"),
                all.last_mut(),
            ) {
                (Some(hash), Some((_, hashes))) => hashes.push(hash),
                (None, _) if part.contains("==") => {
                    all.push((part.split(" ; ").next().unwrap_or(part), Vec::new()));
                }
                _ => return Err(format!("{line:?} is neither a package nor a hash")),
            }
        }
        Ok(all)
    }

    fn is_sha256(hash: &str) -> bool {
        hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    #[test]
    fn a_lock_has_what_its_environment_asks_for_and_hashes_of_everything() {
        for name in Prepared::names() {
            let prepared = Prepared::brought(name).unwrap();
            let locked = locked(prepared.lock()).unwrap();
            for package in &prepared.packages {
                let is_it = |(line, _): &(&str, Vec<&str>)| *line == package.as_str();
                assert!(
                    locked.iter().any(is_it),
                    "{name} has no {package:?}: make its lock anew with scripts/lock-environments"
                );
            }
            assert!(locked.len() > 10 * prepared.packages.len(), "{name}");
            for (package, hashes) in locked {
                assert!(!hashes.is_empty(), "{name}: {package} has no hash");
                assert!(
                    hashes.iter().all(|hash| is_sha256(hash)),
                    "{name}: {package}"
                );
            }
        }
    }

    #[test]
    fn a_lock_names_no_index_and_no_address() {
        assert!(locked("--index-url https://packages.example/simple\n").is_err());
        assert!(locked("one @ https://packages.example/one.whl\n").is_err());
        for name in Prepared::names() {
            assert!(!Prepared::brought(name).unwrap().lock().contains("://"));
        }
    }
}
