//! How managed environments are made, and where those are that are ready.
//!
//! Making one is a run like any other: a program in a sandbox, which sees the new environment's folder and may write in
//! it. When it has ended well, the folder is *sealed*: nobody may write in it from then on.

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

/// What makes an environment from a [`Recipe`].
const BUILD: &str = include_str!("environments/build.py");

/// The certificates that this machine trusts; an index inside an institution is often signed by its own.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// What is to be made, in the words of what makes it.
#[derive(Debug, Clone, Serialize)]
pub struct Recipe {
    /// Where it will stand, in the sandbox.
    pub path: String,
    /// Where what it extends stands there.
    pub base: Option<String>,
    pub packages: Vec<Package>,
    /// Where its lock file stands there. With one, exactly the files are installed whose hashes it has.
    pub lock: Option<String>,
    /// What its kernel is called: by people, and by programs.
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

/// What an installer has to know of the machine that it runs on.
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

/// Environments that Berth itself brings along. What they ask for and its lock are the files in `environments/locks`,
/// which `scripts/lock-environments` makes.
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

/// Where the lock file of a prepared environment stands while it is made.
pub const LOCK_INSIDE: &str = "/opt/berth/environments/lock.txt";

struct Brought {
    name: &'static str,
    /// A package with its version in each line.
    requirements: &'static str,
    /// All packages that these need, with their versions and the hashes of their files.
    lock: &'static str,
    /// What of it is read before anybody asks, so that what needs it starts at once.
    warm: &'static [&'static str],
}

impl Brought {
    fn named(name: &str) -> Option<&'static Brought> {
        BROUGHT.iter().find(|one| one.name == name)
    }
}

/// An environment that is made before there is a server, and that every site then has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    pub name: Name,
    pub packages: Vec<Package>,
    /// Its interpreter and its size, once it is made.
    #[serde(default)]
    pub python: Option<String>,
    #[serde(default)]
    pub bytes: Option<u64>,
}

/// What a prepared environment says of itself, in its folder; written last, so that one without it is half-made.
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

    /// What an admin types to have an environment that an app of the catalogue is found in; nothing, if it is none of these.
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

    /// What the one in this folder says of itself.
    pub fn found(folder: &Path) -> Option<Prepared> {
        let about = Beneath::open(folder).ok()?;
        let about = about.read(Path::new(ABOUT), ABOUT_BYTES_MAX).ok()?;
        serde_json::from_slice(&about).ok()
    }

    /// The modules of it that are read before anybody asks.
    pub fn warm(&self) -> &'static [&'static str] {
        Brought::named(self.name.as_str()).map_or(&[], |one| one.warm)
    }

    /// The lock file that it is installed from.
    pub fn lock(&self) -> &'static str {
        Brought::named(self.name.as_str()).map_or("", |one| one.lock)
    }

    /// The same packages from the same lock, made in the same way, are the same folder; anything else is another.
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

    /// Where it stands below [`INSIDE`]. No version has a `-` in it, so it is nobody else's place.
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

/// What is known of an environment once nobody may write in it any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub bytes: u64,
    pub python: Option<String>,
}

/// Where a backend keeps environments. Everything here may be asked twice.
pub trait Shelf: Send + Sync + std::fmt::Debug {
    /// Where one is that was made here.
    fn made(&self, id: EnvironmentId) -> PathBuf;

    /// Where one is that was prepared before; none where nothing can be prepared.
    fn prepared(&self, key: &Name) -> Option<PathBuf>;

    /// Those of these folders that exist.
    fn existing(&self, folders: Vec<PathBuf>) -> Doing<'_, Vec<PathBuf>>;

    /// All that were prepared before, by their keys.
    fn all_prepared(&self) -> Doing<'_, Vec<(Name, Prepared)>>;

    /// What one takes of the disk now, also while it is made: at least so much, if it takes long to measure.
    fn size(&self, id: EnvironmentId) -> Doing<'_, Size>;

    /// Lets nobody write in it any more, and makes sure that it survives this machine.
    fn seal(&self, id: EnvironmentId) -> Doing<'_, Sealed>;

    /// Removes it, unless something that runs sees it.
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
