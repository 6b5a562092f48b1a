//! `berth doctor`: what is wrong with this installation, and what to do about it.
//!
//! It only looks: it makes no file and changes no schema, and the lock it tries, to learn whether a server has it, is
//! let go at once. Each check gives findings of its own, so that one broken thing does not hide the next.

mod database;
mod files;
mod machine;
mod network;
mod report;

use berth_server::config::Config;
use clap::Args;
use serde::Serialize;

use super::serve;
use crate::cli::Options;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::ended;
use crate::output::Output;
use crate::server_options::{ServerOptions, told};
use crate::table::{Colour, Screen, printable};

#[derive(Debug, Args)]
pub struct Doctor {
    /// Ask the running server that you are signed in to, as a global admin, instead of looking at this machine
    #[arg(long)]
    pub running: bool,
    #[command(flatten)]
    pub server: ServerOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Ok,
    Warn,
    Fail,
}

/// What one look found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub level: Level,
    /// What was looked at.
    pub subject: &'static str,
    /// What was found, as a sentence without a full stop.
    pub found: String,
    /// What to do about it; nothing, if all is well.
    pub advice: Option<String>,
}

impl Finding {
    pub fn ok(subject: &'static str, found: impl Into<String>) -> Self {
        Self {
            level: Level::Ok,
            subject,
            found: found.into(),
            advice: None,
        }
    }

    pub fn warn(
        subject: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Warn,
            subject,
            found: found.into(),
            advice: Some(advice.into()),
        }
    }

    pub fn fail(
        subject: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Fail,
            subject,
            found: found.into(),
            advice: Some(advice.into()),
        }
    }
}

pub async fn run(doctor: &Doctor, options: &Options) -> anyhow::Result<()> {
    if doctor.running {
        let context = Context::new(options)?;
        let report = context.client.health_report().await?;
        let findings = report::findings(&report);
        context
            .out
            .show(&report, |screen| shown(&findings, screen))?;
        return verdict(&findings);
    }
    let findings = match doctor.server.try_load() {
        Ok(loaded) => examine(&loaded.config).await,
        Err(errors) => errors
            .iter()
            .map(|error| {
                let advice = "correct it; `berth config show-docs` explains every setting";
                Finding::fail("configuration", told(error), advice)
            })
            .collect(),
    };
    Output::new(options.output).show(&findings, |screen| shown(&findings, screen))?;
    verdict(&findings)
}

fn verdict(findings: &[Finding]) -> anyhow::Result<()> {
    if findings.iter().any(|finding| finding.level == Level::Fail) {
        return Err(ended(Exit::Failed));
    }
    Ok(())
}

async fn examine(config: &Config) -> Vec<Finding> {
    let mut findings = vec![match serve::log_filter(config) {
        Ok(_) => Finding::ok("configuration", "every setting is understood"),
        Err(error) => {
            let advice = "write a level, or levels by module such as info,berth_server=debug";
            Finding::fail("configuration", format!("{error:#}"), advice)
        }
    }];
    findings.extend(files::data_directory(config));
    findings.extend(files::disk_space(config));
    findings.extend(files::secret_key(config));
    findings.extend(files::tls(config));
    let running = files::is_locked(config);
    findings.extend(database::look(config).await);
    findings.extend(network::look(config, running).await);
    findings.extend(network::hosts(config));
    findings.push(network::sessions(config));
    findings.extend(machine::look(config));
    findings.extend(machine::opened_names(config).await);
    findings
}

fn shown(findings: &[Finding], screen: Screen) -> String {
    let mut text = String::new();
    for finding in findings {
        let (word, colour) = match finding.level {
            Level::Ok => ("ok  ", "32"),
            Level::Warn => ("warn", "33"),
            Level::Fail => ("FAIL", "31"),
        };
        let word = match screen.colour {
            Colour::On => format!("\u{1b}[{colour}m{word}\u{1b}[0m"),
            Colour::Off => word.to_owned(),
        };
        text += &format!(
            "{word}  {}: {}\n",
            finding.subject,
            printable(&finding.found)
        );
        if let Some(advice) = &finding.advice {
            text += &format!("      → {}\n", printable(advice));
        }
    }
    let count = |level| {
        findings
            .iter()
            .filter(|finding| finding.level == level)
            .count()
    };
    text += &match (count(Level::Fail), count(Level::Warn)) {
        (0, 0) => "All is well.\n".to_owned(),
        (0, warnings) => format!("It works; look at {warnings} warning(s).\n"),
        (failures, _) => format!("{failures} thing(s) must be put right.\n"),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_is_a_line_and_its_advice_another() {
        let findings = [
            Finding::ok("clock", "it is right"),
            Finding::fail("key", "it is missing", "restore it"),
        ];
        let screen = Screen {
            width: None,
            colour: Colour::Off,
        };
        assert_eq!(
            shown(&findings, screen),
            "ok    clock: it is right\nFAIL  key: it is missing\n      → restore it\n1 thing(s) must be put right.\n"
        );
    }
}
