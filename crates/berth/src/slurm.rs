//! Slurm's commands, for fingers and scripts that know them: a link named `sbatch`, `squeue`, `scancel`, `sinfo` or
//! `sacct` to this program is that command.
//!
//! What they are asked and how they answer is read and printed by `berth-slurm`; here it is carried out. A partition
//! is a site, an account a project, a QOS a level of priority, and a job's id the number of a workload in its site.
//! What Berth cannot carry out is refused by name and never passed over.

pub mod link;
mod rows;
mod sacct;
mod sbatch;
mod scancel;
mod sinfo;
mod squeue;
pub mod variables;
mod want;
mod work;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use berth_api::Problem;
use berth_api::client;
use berth_api::reference::SiteReference;
use berth_model::Reference;
use berth_slurm::SLURM_VERSION;
use jiff::Zoned;
use jiff::tz::TimeZone;

use crate::cli::Options;
use crate::context::Context;
use crate::failure::{hint, particulars, usage};
use crate::output::{Format, complain, is_broken_pipe, print};
use crate::run::on_one_thread;

/// What this Berth is called where Slurm would name its cluster.
const CLUSTER: &str = "berth";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Sbatch,
    Squeue,
    Scancel,
    Sinfo,
    Sacct,
}

impl Program {
    pub const ALL: [Self; 5] = [
        Self::Sbatch,
        Self::Squeue,
        Self::Scancel,
        Self::Sinfo,
        Self::Sacct,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sbatch => "sbatch",
            Self::Squeue => "squeue",
            Self::Scancel => "scancel",
            Self::Sinfo => "sinfo",
            Self::Sacct => "sacct",
        }
    }

    /// The command that somebody means who calls this program by such a path.
    pub fn called(path: &OsStr) -> Option<Self> {
        let name = Path::new(path).file_name()?;
        Self::ALL.into_iter().find(|program| name == program.name())
    }

    /// Says a line on stderr, as Slurm's programs begin theirs.
    fn say(self, line: impl std::fmt::Display) {
        complain(&format!("{}: {line}", self.name()));
    }

    fn error(self, line: impl std::fmt::Display) {
        self.say(format!("error: {line}"));
    }
}

/// Runs one of Slurm's commands, with the arguments after its name.
pub fn run(program: Program, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let ended = texts(arguments).and_then(|arguments| match program {
        Program::Sbatch => sbatch::run(&arguments),
        Program::Squeue => squeue::run(&arguments),
        Program::Scancel => scancel::run(&arguments),
        Program::Sinfo => sinfo::run(&arguments),
        Program::Sacct => sacct::run(&arguments),
    });
    match ended {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            for line in lines(&error) {
                program.error(line);
            }
            ExitCode::FAILURE
        }
    }
}

fn texts(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<Vec<String>> {
    let text = |argument: OsString| {
        let argument = argument.into_string();
        argument.map_err(|given| usage(format!("{} is not UTF-8", given.display())))
    };
    arguments.map(text).collect()
}

/// What is said of an error: what is wrong, and what to do.
fn lines(error: &anyhow::Error) -> Vec<String> {
    let problem = error
        .downcast_ref::<client::Error>()
        .and_then(client::Error::problem);
    match problem {
        Some(problem) => problem_lines(problem),
        None => vec![format!("{error:#}")],
    }
}

fn problem_lines(problem: &Problem) -> Vec<String> {
    let mut lines = vec![problem.title.clone()];
    lines.extend(particulars(problem));
    lines.push(hint(problem).to_owned());
    lines
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn said(text: &str) -> anyhow::Result<ExitCode> {
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Scripts look for the version of Slurm whose ways these are; people want to know whom they talk to.
fn version() -> anyhow::Result<ExitCode> {
    let own = env!("CARGO_PKG_VERSION");
    said(&format!("slurm {SLURM_VERSION} (berth {own})\n"))
}

/// The server and the site, by `berth login` and the environment, since the options are all Slurm's.
fn context() -> anyhow::Result<Context> {
    let site = variable("BERTH_SITE").filter(|site| !site.is_empty());
    let site = site.map(|site| site.parse()).transpose();
    Context::new(&Options {
        server: variable("BERTH_SERVER").filter(|server| !server.is_empty()),
        site: site.map_err(|error| usage(format!("BERTH_SITE: {error}")))?,
        output: Format::Table,
        zone: None,
    })
}

/// Slurm's programs read and print times where the machine stands.
fn local_now(context: &Context) -> Zoned {
    context.times.now.with_time_zone(TimeZone::system())
}

/// Before anybody is signed in: the arguments are read in the local time.
fn clock() -> Zoned {
    crate::times::Times::new(TimeZone::system()).now
}

/// The sites that are meant: those named as partitions, or the one at hand.
fn sites(partitions: &[String], context: &Context) -> anyhow::Result<Vec<SiteReference>> {
    if partitions.is_empty() {
        return Ok(vec![context.site()?.clone()]);
    }
    partitions.iter().map(|name| partition(name)).collect()
}

fn partition(name: &str) -> anyhow::Result<SiteReference> {
    let site = name.parse().map(Reference::Name);
    site.map_err(|_| usage(format!("invalid partition specified: {name}")))
}
