//! `sbatch`: what a command line, the environment and the `#SBATCH` lines of a script ask for, as one [`Batch`].
//!
//! The command line wins over the environment, and that over the script. The caller reads the files: first
//! [`read`] says which script is meant, then [`CommandLine::batch`] takes its text.

mod batch;
pub mod options;
pub mod script;
mod setting;

use jiff::Zoned;

use crate::UsageError;
use crate::argv::{self, Given, Operands};
pub use batch::{
    Batch, Exclusive, Export, Mail, Manner, Memory, OpenMode, Shape, Signal, Switches,
};
use options::{Key, OPTIONS, Support, VARIABLES, Variable};
use setting::Settings;

/// What somebody wants of `sbatch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Help,
    Usage,
    Version,
    Submit(CommandLine),
}

/// Where the work of a job is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// A file, and the arguments it is called with.
    Script {
        path: String,
        arguments: Vec<String>,
    },
    /// The script comes in on standard input.
    Input,
    /// One command for the shell.
    Wrap(String),
}

/// A command line that has been read; the values of its options have not yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    given: Vec<Given<Key>>,
    pub work: Work,
}

/// Which options there are.
pub fn help() -> String {
    let usage = "sbatch [options] script [arguments]";
    argv::help(usage, OPTIONS, |support| match support {
        Support::Full(_) => None,
        Support::Refused(instead) => Some(instead),
    })
}

/// Reads a command line without the program's name.
pub fn read(arguments: &[String]) -> Result<Asked, UsageError> {
    let parsed = argv::parse(OPTIONS, arguments, Operands::EndOptions)?;
    let given = supported(parsed.options)?;
    for option in &given {
        match option.key {
            Key::Help => return Ok(Asked::Help),
            Key::Usage => return Ok(Asked::Usage),
            Key::Version => return Ok(Asked::Version),
            _ => {}
        }
    }
    let wrap = given.iter().rev().find(|option| option.key == Key::Wrap);
    let mut operands = parsed.operands.into_iter();
    let work = match (wrap, operands.next()) {
        (Some(_), Some(_)) => {
            return Err(UsageError::Script(
                "Script arguments not permitted with --wrap option".to_owned(),
            ));
        }
        (Some(wrap), None) => Work::Wrap(wrap.text().to_owned()),
        (None, Some(path)) => Work::Script {
            path,
            arguments: operands.collect(),
        },
        (None, None) => Work::Input,
    };
    Ok(Asked::Submit(CommandLine { given, work }))
}

fn supported(options: Vec<Given<Support>>) -> Result<Vec<Given<Key>>, UsageError> {
    let each = options.into_iter().map(|option| match option.key {
        Support::Full(key) => Ok(Given {
            key,
            name: option.name,
            value: option.value,
        }),
        Support::Refused(instead) => Err(UsageError::Unsupported {
            option: option.name,
            instead: instead.to_owned(),
        }),
    });
    each.collect()
}

impl CommandLine {
    /// All that is asked for. `script` is the text of the work, unless it is a wrapped command; `variable` looks up
    /// the environment; times are read where `now` lives.
    pub fn batch(
        &self,
        script: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
        now: &Zoned,
    ) -> Result<Batch, UsageError> {
        let mut settings = Settings::new(now);
        let mut foreign = None;
        if let Some(text) = script {
            let directives = script::read(text)?;
            foreign = directives.foreign;
            for directive in directives.given {
                apply_directive(&directive, &mut settings).map_err(|error| {
                    UsageError::Directive {
                        line: directive.line,
                        error: Box::new(error),
                    }
                })?;
            }
        }
        settings.is_environment = true;
        for (name, option, kind) in VARIABLES {
            let Some(value) = variable(name) else {
                continue;
            };
            apply_variable(option, *kind, value, &mut settings).map_err(|error| {
                UsageError::Variable {
                    variable: name,
                    error: Box::new(error),
                }
            })?;
        }
        settings.is_environment = false;
        for option in &self.given {
            settings.set(option)?;
        }
        if let (Some((line, mark)), false) = (foreign, settings.ignores_foreign) {
            return Err(UsageError::Directive {
                line,
                error: Box::new(UsageError::Unsupported {
                    option: mark.to_owned(),
                    instead: "write it as #SBATCH, or pass over such lines with --ignore-pbs"
                        .to_owned(),
                }),
            });
        }
        settings.finish(self.default_name())
    }

    fn default_name(&self) -> String {
        match &self.work {
            Work::Script { path, .. } => path.rsplit('/').next().unwrap_or(path).to_owned(),
            Work::Input => "sbatch".to_owned(),
            Work::Wrap(_) => "wrap".to_owned(),
        }
    }
}

fn apply_directive(
    directive: &script::Directive,
    settings: &mut Settings<'_>,
) -> Result<(), UsageError> {
    let parsed = argv::parse(OPTIONS, &directive.words, Operands::EndOptions)?;
    if let Some(word) = parsed.operands.first() {
        return Err(match word.as_str() {
            "hetjob" | "packjob" => UsageError::Unsupported {
                option: word.clone(),
                instead: "submit one job per kind of node, tied together with --dependency"
                    .to_owned(),
            },
            _ => UsageError::Script(format!("Invalid directive found in batch script: {word}")),
        });
    }
    for option in supported(parsed.options)? {
        if option.key == Key::Wrap {
            return Err(UsageError::Unsupported {
                option: option.name,
                instead: "write the command in the script, or --wrap on the command line"
                    .to_owned(),
            });
        }
        settings.set(&option)?;
    }
    Ok(())
}

fn apply_variable(
    option: &str,
    kind: Variable,
    value: String,
    settings: &mut Settings<'_>,
) -> Result<(), UsageError> {
    let found = OPTIONS.iter().filter(|known| known.long == option);
    let given = found.map(|known| Given {
        key: known.key,
        name: format!("--{option}"),
        value: match kind {
            Variable::Flag => None,
            // Of an option that may have a value, an empty variable says that there is none.
            Variable::Value if known.takes == argv::Takes::Perhaps && value.is_empty() => None,
            Variable::Value => Some(value.clone()),
        },
    });
    for option in supported(given.collect())? {
        settings.set(&option)?;
    }
    Ok(())
}

/// The script of a wrapped command.
pub fn wrapped(command: &str) -> String {
    format!("#!/bin/sh\n# Made by sbatch --wrap.\n\n{command}\n")
}

#[cfg(test)]
mod tests;
