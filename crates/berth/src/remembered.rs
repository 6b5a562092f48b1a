//! What `berth` remembers between two commands: the servers someone signed in to, and their tokens.
//!
//! One TOML file, `$XDG_CONFIG_HOME/berth/config.toml`, readable by its owner only. A token is kept under the address
//! of its server and is never sent to another one.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use berth_api::reference::SiteReference;
use berth_model::person::TimeZone;
use berth_model::{LoginName, TokenId};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The whole file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// The server that commands talk to unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(default)]
    pub servers: BTreeMap<String, Account>,
}

/// Someone's account on one server.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<LoginName>,
    /// The site that names without one belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<TimeZone>,
    /// The certificates to trust for this server, if it made its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<TokenId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "revealed",
        deserialize_with = "hidden"
    )]
    pub token: Option<SecretString>,
}

/// Writing the token is meant: this file is where it is kept.
fn revealed<S: Serializer>(token: &Option<SecretString>, s: S) -> Result<S::Ok, S::Error> {
    token.as_ref().map(ExposeSecret::expose_secret).serialize(s)
}

fn hidden<'de, D: Deserializer<'de>>(d: D) -> Result<Option<SecretString>, D::Error> {
    String::deserialize(d).map(|token| Some(token.into()))
}

impl Remembered {
    /// Where the file is, by the rules of the XDG base directories: a relative path does not count.
    pub fn path() -> anyhow::Result<PathBuf> {
        let absolute = |name| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let home = || absolute("HOME").map(|home| home.join(".config"));
        match absolute("XDG_CONFIG_HOME").or_else(home) {
            Some(folder) => Ok(folder.join("berth/config.toml")),
            None => bail!(
                "there is no place to remember a sign-in: set HOME or XDG_CONFIG_HOME, \
                 or use BERTH_SERVER and BERTH_TOKEN instead of `berth login`"
            ),
        }
    }

    /// What is remembered; nothing, where there is no place to remember it.
    pub fn load() -> anyhow::Result<Self> {
        match Self::path() {
            Ok(path) => Self::read(&path),
            Err(_) => Ok(Self::default()),
        }
    }

    /// Changes what is remembered of one server.
    pub fn change(server: &str, change: impl FnOnce(&mut Account)) -> anyhow::Result<()> {
        let path = Self::path()?;
        let mut all = Self::read(&path)?;
        change(all.servers.entry(server.to_owned()).or_default());
        all.write(&path)
    }

    /// Reads the file; where there is none yet, nothing is remembered.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        check_private(path)?;
        // Only the message: the excerpt that goes with it could show a token.
        toml::from_str(&text).map_err(|error| {
            anyhow::anyhow!(
                "{} is not as `berth login` writes it: {}. Correct it, or remove it and sign in again",
                path.display(),
                error.message()
            )
        })
    }

    /// Writes the file so that at every moment it is either the old one or the new one.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let said = || format!("cannot write {}", path.display());
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .with_context(said)?;
        let draft = path.with_extension(format!("toml.{}", std::process::id()));
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)
            .with_context(said)?;
        file.write_all(toml::to_string(self)?.as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&draft, path))
            .with_context(said)
    }

    pub fn account(&self, server: &str) -> Option<&Account> {
        self.servers.get(server)
    }
}

/// A token that others can read is not a secret any more; say so rather than go on using it.
fn check_private(path: &Path) -> anyhow::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        bail!(
            "{} can be read by others; run: chmod 600 {}",
            path.display(),
            path.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Remembered {
        let account = Account {
            login: Some("ada".parse().unwrap()),
            site: Some("torino".parse().unwrap()),
            token: Some("canary".to_owned().into()),
            ..Account::default()
        };
        Remembered {
            server: Some("http://localhost:8080".into()),
            servers: BTreeMap::from([("http://localhost:8080".into(), account)]),
        }
    }

    #[test]
    fn what_is_remembered_reads_back_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/berth/config.toml");
        assert!(Remembered::read(&path).unwrap().servers.is_empty());
        kept().write(&path).unwrap();
        let read = Remembered::read(&path).unwrap();
        let account = read.account("http://localhost:8080").unwrap();
        assert_eq!(account.token.as_ref().unwrap().expose_secret(), "canary");
        assert!(read.account("http://localhost:8081").is_none());
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let said = Remembered::read(&path).unwrap_err().to_string();
        assert!(said.contains("chmod 600"), "{said}");
    }

    #[test]
    fn a_token_is_printed_neither_by_debug_nor_by_an_error() {
        assert!(!format!("{:?}", kept()).contains("canary"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, "[servers.x]\ntoken = \"canary").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let said = format!("{:?}", Remembered::read(&path).unwrap_err());
        assert!(!said.contains("canary"), "{said}");
    }
}
