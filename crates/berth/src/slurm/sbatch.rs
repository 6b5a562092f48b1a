//! `sbatch`: a script becomes a workload.

use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use berth_api::Client;
use berth_api::reference::SiteReference;
use berth_api::workloads::{NewWorkload, Workload, WorkloadQuery};
use berth_model::workload::{After, OnlyIf, Outcome, RunState, State};
use berth_slurm::UsageError;
use berth_slurm::sbatch::{self, Asked, Batch, CommandLine, Manner, Work};

use super::want::{self, Known, Place, Script};
use super::{Program, clock, context, on_one_thread, partition, said, variable, version, work};
use crate::context::Context;

const PROGRAM: Program = Program::Sbatch;

pub fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    match sbatch::read(arguments)? {
        Asked::Help | Asked::Usage => said(&sbatch::help()),
        Asked::Version => version(),
        Asked::Submit(line) => submit(&line),
    }
}

fn submit(line: &CommandLine) -> anyhow::Result<ExitCode> {
    let script = script(&line.work)?;
    let text = match line.work {
        Work::Wrap(_) => None,
        Work::Script { .. } | Work::Input => Some(script.text.as_str()),
    };
    let batch = line.batch(text, variable, &clock())?;
    // What cannot be carried out is said before anybody has to be signed in.
    want::waits_for(&batch)?;
    want::refuse(&batch)?;
    let context = context()?;
    on_one_thread(hand_in(&batch, &script, &context))
}

fn script(work: &Work) -> anyhow::Result<Script> {
    let (text, arguments) = match work {
        Work::Wrap(command) => (sbatch::wrapped(command), Vec::new()),
        Work::Input => {
            let mut text = String::new();
            let read = std::io::stdin().lock().read_to_string(&mut text);
            read.context("the script on the standard input")?;
            (text, Vec::new())
        }
        Work::Script { path, arguments } => {
            let text = std::fs::read_to_string(path);
            let text = text.with_context(|| format!("Unable to open file {path}"))?;
            (text, arguments.clone())
        }
    };
    Ok(Script { text, arguments })
}

async fn hand_in(batch: &Batch, script: &Script, context: &Context) -> anyhow::Result<ExitCode> {
    let client = &context.client;
    let site = match batch.partitions.first() {
        Some(name) => partition(name)?,
        None => context.site()?.clone(),
    };
    let known = Known {
        after: after(batch, client, &site).await?,
        longest: match want::needs_longest(batch) {
            true => Some(client.queue_settings(&site).await?.settings.limit_max),
            false => None,
        },
    };
    let new = want::workload(batch, script, &place(&site)?, known)?;
    if batch.manner.is_only_a_test {
        PROGRAM.say(test_words(&new, &site));
        return Ok(ExitCode::SUCCESS);
    }
    let made = client.submit(&site, &new, None).await?.object;
    said(&told(made.number, batch.manner))?;
    if batch.manner.waits {
        return over(client, &site, made).await;
    }
    Ok(ExitCode::SUCCESS)
}

fn told(number: u64, manner: Manner) -> String {
    match (manner.is_parsable, manner.is_quiet) {
        (true, _) => format!("{number}\n"),
        (false, true) => String::new(),
        (false, false) => format!("Submitted batch job {number}\n"),
    }
}

/// The server cannot be asked for a forecast of what is not submitted, so none is given.
fn test_words(new: &NewWorkload, site: &SiteReference) -> String {
    let wish = new.wishes.as_slice().first();
    let pieces = wish.map_or(1, |wish| wish.tasks.get());
    let cores = wish.map_or(0, |wish| wish.task.cores_milli.get() / 1000);
    let cores = cores.saturating_mul(u64::from(pieces));
    format!(
        "Job would be submitted to use {cores} processors in {pieces} parts in partition {site}; \
         nothing was, and when it would start is not known"
    )
}

fn place(site: &SiteReference) -> anyhow::Result<Place> {
    let folder = std::env::current_dir().context("the folder at hand")?;
    let host = rustix::system::uname();
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    Ok(Place {
        folder: folder.display().to_string(),
        host: host.nodename().to_string_lossy().into_owned(),
        partition: site.to_string(),
        variables: std::env::vars_os().filter_map(text).collect(),
    })
}

async fn after(batch: &Batch, client: &Client, site: &SiteReference) -> anyhow::Result<Vec<After>> {
    let waits_for = want::waits_for(batch)?;
    let mut after = Vec::new();
    for (only_if, number) in waits_for.jobs {
        let found = work::numbered(client, site, number).await?;
        // Slurm says the same of a job that it no longer knows.
        let found = found.ok_or_else(|| UsageError::Script("Job dependency problem".to_owned()));
        let workload = found
            .with_context(|| format!("there is no job {number} in partition {site}"))?
            .id;
        after.push(After { workload, only_if });
    }
    if waits_for.is_singleton {
        let query = WorkloadQuery {
            owner: Some(client.me().await?.person.id.into()),
            ..WorkloadQuery::default()
        };
        let mine = work::list(client, site, &query).await?;
        let namesakes = mine.iter().filter(|one| one.title.as_str() == batch.name);
        after.extend(namesakes.map(|one| After {
            workload: one.id,
            only_if: OnlyIf::Over,
        }));
    }
    Ok(after)
}

/// The first pause between two looks at a job, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(20);

/// Stays until a job is over, and ends as it did.
async fn over(
    client: &Client,
    site: &SiteReference,
    mut job: Workload,
) -> anyhow::Result<ExitCode> {
    let mut pause = PAUSE_MIN;
    while !job.state.is_final() || job.counts.running > 0 {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
        job = client.workload(site, &job.id.into()).await?;
    }
    Ok(exit_code(&job).into())
}

/// That of the job or, of an array, the highest of its tasks'.
fn exit_code(job: &Workload) -> u8 {
    let codes = job.runs.iter().map(|run| match run.state {
        RunState::Ended {
            outcome: Outcome::Failed { exit_code },
        } => u8::try_from(exit_code).unwrap_or(1),
        _ => 0,
    });
    match (job.state, codes.max()) {
        (State::Completed, _) => 0,
        (_, Some(code)) if code > 0 => code,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_what_scripts_look_for() {
        let manner = Manner::default();
        assert_eq!(told(12, manner), "Submitted batch job 12\n");
        let parsable = Manner {
            is_parsable: true,
            is_quiet: true,
            ..manner
        };
        assert_eq!(told(12, parsable), "12\n");
        let quiet = Manner {
            is_quiet: true,
            ..manner
        };
        assert_eq!(told(12, quiet), "");
    }
}
