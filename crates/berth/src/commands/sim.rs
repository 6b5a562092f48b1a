//! `berth sim`: what if the queue were run differently?

mod history;

use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use berth_sim::policy::Candidate;
use berth_sim::trace::{self, Trace};
use berth_sim::{Comparison, compare};
use clap::Args;
use jiff::SignedDuration;

use super::submit::length;
use crate::cli::Options;
use crate::context::Context;
use crate::failure::usage;

#[derive(Debug, Args)]
pub struct Sim {
    /// What people once asked for: a log in the Standard Workload Format, Berth's own history, or the two openb lists
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "since",
        conflicts_with = "since"
    )]
    trace: Vec<PathBuf>,
    /// What was asked of the site's queue in the last so many days, as in `30d`
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    since: Option<SignedDuration>,
    /// How the queue would be run: a file of TOML or JSON, once for each policy; as it is by default, if there is none
    #[arg(long = "policy", value_name = "FILE")]
    policies: Vec<PathBuf>,
    /// Replay it on a part of the fleet, as in `0.5`
    #[arg(long, value_name = "PART", default_value_t = 1.0)]
    fleet: f64,
    /// Where to write the page with the plots
    #[arg(long, value_name = "FILE", default_value = "berth-sim.html")]
    out: PathBuf,
    /// Write what was asked of the queue to this file, to be replayed elsewhere
    #[arg(long, value_name = "FILE", requires = "since")]
    save_history: Option<PathBuf>,
}

pub async fn run(sim: Sim, options: &Options) -> anyhow::Result<()> {
    if !(sim.fleet > 0.0 && sim.fleet <= 1.0) {
        return Err(usage(
            "--fleet is a part of the fleet: more than 0 and at most 1",
        ));
    }
    let trace = match sim.since {
        Some(since) => {
            let context = Context::new(options)?;
            let text = history::read(&context, since).await?;
            if let Some(file) = &sim.save_history {
                std::fs::write(file, &text)
                    .with_context(|| format!("cannot write {}", file.display()))?;
            }
            read_trace(&[text], "the site's history")?
        }
        None => {
            let texts: anyhow::Result<Vec<String>> =
                sim.trace.iter().map(|file| read(file)).collect();
            let names: Vec<String> = sim
                .trace
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            read_trace(&texts?, &names.join(" and "))?
        }
    };
    let trace = trace.on_part_of_the_fleet(sim.fleet);
    let mut candidates = Vec::new();
    for file in &sim.policies {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let candidate = Candidate::parse(&read(file)?, &name);
        candidates.push(candidate.map_err(|error| usage(format!("{}: {error}", file.display())))?);
    }
    if candidates.is_empty() {
        candidates.push(Candidate::new("default"));
    }
    let comparison = play(&trace, &candidates)?;
    std::fs::write(&sim.out, comparison.html())
        .with_context(|| format!("cannot write {}", sim.out.display()))?;
    let mut out = std::io::stdout().lock();
    write!(out, "{}", comparison.table())?;
    writeln!(out, "The plots are in {}.", sim.out.display())?;
    Ok(())
}

fn read(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

fn read_trace(texts: &[String], whence: &str) -> anyhow::Result<Trace> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    trace::read(&texts).map_err(|error| usage(format!("{whence}: {error}")))
}

/// A bar on a terminal, for whatever takes longer than two seconds.
fn play(trace: &Trace, candidates: &[Candidate]) -> anyhow::Result<Comparison> {
    let is_watched = std::io::stderr().is_terminal();
    let started = Instant::now();
    let mut shown = None;
    let compared = compare(trace, candidates, &mut |done| {
        let percent = (100.0 * done) as usize;
        if is_watched && started.elapsed() > Duration::from_secs(2) && shown != Some(percent) {
            shown = Some(percent);
            let full = percent * 40 / 100;
            let mut err = std::io::stderr().lock();
            write!(
                err,
                "\r{}{} {percent:3} %",
                "█".repeat(full),
                "░".repeat(40 - full.min(40))
            )
            .ok();
            err.flush().ok();
        }
    });
    if shown.is_some() {
        writeln!(std::io::stderr()).ok();
    }
    compared.map_err(|error| usage(error.to_string()))
}
