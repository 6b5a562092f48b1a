//! The configuration of the server as a command of its own machine gets it: a file, and a flag for every setting.
//!
//! The flags are made from the server's own table of settings, so that a new setting has its flag at once.

use std::collections::BTreeMap;
use std::path::PathBuf;

use berth_server::config::{Config, ConfigError, Loaded};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use crate::exit::Exit;
use crate::failure::ended;
use crate::output::complain;

/// Where a setting stands in the file, the environment or the flags.
#[derive(Debug, Clone, Args)]
pub struct ServerOptions {
    /// The configuration file (TOML); without one, defaults, environment and flags hold
    #[arg(
        long = "config",
        value_name = "FILE",
        env = "BERTH_CONFIG",
        hide_env_values = true
    )]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub overrides: Overrides,
}

impl ServerOptions {
    /// Reads the configuration; all its mistakes are told at once.
    pub fn load(&self) -> anyhow::Result<Loaded> {
        self.try_load().map_err(|errors| {
            for error in &errors {
                complain(&format!("error: {}", told(error)));
            }
            ended(Exit::Failed)
        })
    }

    pub fn try_load(&self) -> Result<Loaded, Vec<ConfigError>> {
        Config::load(self.file.as_deref(), self.overrides.0.clone())
    }
}

/// One mistake with what it came from.
pub fn told(error: &ConfigError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// A flag for every setting, `--listen` for `listen`; each wins over the file and the environment.
#[derive(Debug, Clone, Default)]
pub struct Overrides(pub BTreeMap<&'static str, String>);

const HEADING: &str = "Settings (each wins over the file and the environment)";

/// Every setting, as the server knows it: its key, and what it means.
pub fn settings() -> Vec<(&'static str, String)> {
    let home = ("HOME".to_owned(), "/".to_owned());
    let documentation = Config::documentation();
    let meaning = |key: &str| {
        let row = documentation
            .lines()
            .find(|line| line.starts_with(&format!("| `{key}` |")));
        let cell = row.and_then(|row| row.trim_end_matches(" |").rsplit(" | ").next());
        cell.unwrap_or_default().trim_end_matches('.').to_owned()
    };
    // The defaults with a home are always in order, so that the list is always whole.
    let loaded = Config::layer(None, std::iter::once(home), BTreeMap::new());
    let keys = loaded.map(|loaded| loaded.sources).unwrap_or_default();
    keys.into_iter()
        .map(|setting| (setting.key, meaning(setting.key)))
        .collect()
}

fn flag(key: &str) -> String {
    key.replace('_', "-")
}

impl Args for Overrides {
    fn augment_args(command: Command) -> Command {
        settings()
            .into_iter()
            .fold(command, |command, (key, meaning)| {
                command.arg(
                    Arg::new(key)
                        .long(flag(key))
                        .value_name("VALUE")
                        .help(meaning)
                        .help_heading(HEADING)
                        .hide_short_help(true),
                )
            })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Overrides {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = settings().into_iter().filter_map(|(key, _)| {
            let value = matches.try_get_one::<String>(key).ok()??;
            Some((key, value.clone()))
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.extend(Self::from_arg_matches(matches)?.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{self, Cli};
    use clap::Parser;

    #[test]
    fn every_setting_is_a_flag_with_its_meaning() {
        let settings = settings();
        assert!(settings.len() > 15, "{settings:?}");
        let command = cli::command();
        let serve = command.find_subcommand("serve").unwrap();
        for (key, meaning) in settings {
            let arg = serve.get_arguments().find(|arg| arg.get_id() == key);
            let help = arg.and_then(Arg::get_help).expect(key).to_string();
            assert!(!help.is_empty() && help == meaning, "{key}: {help}");
        }
    }

    #[test]
    fn a_flag_wins_and_its_mistakes_name_it() {
        let parsed = Cli::try_parse_from(["berth", "serve", "--listen", "nowhere"]).unwrap();
        let cli::Command::Local(cli::Local::Serve(serve)) = parsed.command else {
            panic!("another command");
        };
        let errors = serve.options.try_load().unwrap_err();
        assert!(
            told(&errors[0]).contains("--listen"),
            "{}",
            told(&errors[0])
        );
    }
}
