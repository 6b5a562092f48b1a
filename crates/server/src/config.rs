//! The server's configuration: what can be set, where each value came from, what is wrong with it.
//!
//! Three layers, each overriding the one before: a TOML file, environment variables (`BERTH_` and
//! the key in capitals), and flags. One table in [`settings`] names every key with its default,
//! its help and what it accepts, and everything else is made from that table: the fields of
//! [`Config`], the reading, `berth config check` and the documentation.
//!
//! Nothing passes unnoticed. A key nobody knows is refused, since a misspelt limit is no limit at
//! all, and all mistakes are reported together, each with its place. Secrets never leave this
//! module in a form that prints.
//!
//! This is also the only place of the server that reads environment variables.

mod host;
mod kinds;
mod layers;
mod network;
mod settings;
mod spelling;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

pub use host::{Host, HostPattern};
pub use network::{Destination, Network};
pub use settings::Config;
pub use values::{
    BasePath, Database, LogFormat, PackageIndex, PublicUrl, QueueBackend, SessionOrigin,
};

/// A configuration together with the place each of its values came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    /// One for each setting, in the order of the documentation.
    pub sources: Vec<Resolved>,
}

/// A value in effect, as it may be shown: secrets in it are masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub key: &'static str,
    pub value: String,
    pub source: Source,
}

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Default,
    File { name: String, line: usize },
    Environment { variable: String },
    Flag { key: String },
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => out.write_str("default"),
            Source::File { name, line } => write!(out, "{name}:{line}"),
            Source::Environment { variable } => out.write_str(variable),
            Source::Flag { key } => write!(out, "--{}", key.replace('_', "-")),
        }
    }
}

/// One mistake in the configuration. What may be a secret is masked in it too.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}", file.display())]
    Unreadable {
        file: PathBuf,
        #[source]
        error: std::io::Error,
    },
    #[error("{file}:{line}: this is not TOML: {message}")]
    Syntax {
        file: String,
        line: usize,
        message: String,
    },
    #[error("the environment variable {variable} is not UTF-8 text")]
    NotText { variable: String },
    #[error("{} is not a setting. {}", named(name, place), hint(suggestion.as_deref()))]
    Unknown {
        name: String,
        place: Source,
        suggestion: Option<String>,
    },
    #[error("{key} = `{value}` ({place}) is not accepted: give {accepts}")]
    Wrong {
        key: &'static str,
        value: String,
        place: Source,
        accepts: String,
    },
    #[error("{given} is set ({place}) but {missing} is not: set both or neither")]
    Half {
        given: &'static str,
        place: Source,
        missing: &'static str,
    },
    #[error("no directory for Berth's data: set data_dir, or HOME in the environment")]
    NoDataDir,
}

/// A name and where it stands, without saying twice what the place says already.
fn named(name: &str, place: &Source) -> String {
    match place {
        Source::File { .. } | Source::Default => format!("`{name}` ({place})"),
        Source::Environment { .. } => format!("the environment variable `{name}`"),
        Source::Flag { .. } => format!("the flag `{place}`"),
    }
}

fn hint(suggestion: Option<&str>) -> String {
    match suggestion {
        Some(name) => format!("Did you mean `{name}`?"),
        None => "Remove it; `berth config check` then lists every setting.".to_owned(),
    }
}

impl Config {
    /// Reads the file, the environment and the flags.
    pub fn load(
        file: Option<&Path>,
        flags: BTreeMap<&'static str, String>,
    ) -> Result<Loaded, Vec<ConfigError>> {
        let mut errors = Vec::new();
        let text = file.and_then(|file| match std::fs::read_to_string(file) {
            Ok(text) => Some((file.display().to_string(), text)),
            Err(error) => {
                errors.push(ConfigError::Unreadable {
                    file: file.to_owned(),
                    error,
                });
                None
            }
        });
        let (env, not_text) = readable(std::env::vars_os());
        errors.extend(not_text);
        let file = text
            .as_ref()
            .map(|(name, text)| (name.as_str(), text.as_str()));
        match Config::layer(file, env.into_iter(), flags) {
            Ok(loaded) if errors.is_empty() => Ok(loaded),
            Ok(_) => Err(errors),
            Err(more) => Err(errors.into_iter().chain(more).collect()),
        }
    }

    /// Lays the flags over the environment over the file over the defaults. Pure: `env` is the
    /// whole environment, of which it uses the variables of Berth and those that say where this
    /// user keeps data. Only the value that wins is read.
    pub fn layer(
        file: Option<(&str, &str)>,
        env: impl Iterator<Item = (String, String)>,
        flags: BTreeMap<&'static str, String>,
    ) -> Result<Loaded, Vec<ConfigError>> {
        let env: BTreeMap<String, String> = env.collect();
        let mut layers = layers::Layers::new(user_data_dir(&env));
        if let Some((name, text)) = file {
            layers.add_file(name, text);
        }
        layers.add_environment(&env);
        layers.add_flags(flags);
        layers.check_together("tls_certificate", "tls_key");
        let config = Config::resolve(&mut layers);
        layers.finish(config)
    }
}

/// The environment as text. A variable that is no text matters only if it is one of ours.
fn readable(
    env: impl Iterator<Item = (OsString, OsString)>,
) -> (Vec<(String, String)>, Vec<ConfigError>) {
    let mut text = Vec::new();
    let mut errors = Vec::new();
    for (name, value) in env {
        let Ok(name) = name.into_string() else {
            continue;
        };
        match value.into_string() {
            Ok(value) => text.push((name, value)),
            Err(_) if name.starts_with(layers::PREFIX) => {
                errors.push(ConfigError::NotText { variable: name });
            }
            Err(_) => {}
        }
    }
    (text, errors)
}

/// Where programs of this user keep their data, by the rules of the XDG base directories: a
/// relative path does not count.
fn user_data_dir(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let absolute = |name| {
        env.get(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
}
