//! `sbatch`: a script becomes a workload.

use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use berth_api::Client;
use berth_api::reference::SiteReference;
use berth_api::workloads::{Workload, WorkloadPreview, WorkloadQuery};
use berth_model::workload::{After, OnlyIf, Outcome, RunState, State};
use berth_slurm::sbatch::{self, Asked, Batch, CommandLine, Manner, Work};
use berth_slurm::{UsageError, hostlist};
use jiff::tz::TimeZone;

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
        let preview = client.preview_workload(&site, &new).await?;
        return Ok(match test_words(&preview, &site, &TimeZone::system()) {
            Ok(words) => {
                PROGRAM.say(words);
                ExitCode::SUCCESS
            }
            Err(words) => {
                PROGRAM.error(words);
                ExitCode::FAILURE
            }
        });
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

/// As Slurm says it, where it can be said: `Job 12 to start at … using 4 processors on nodes gpu-01 in partition torino`.
/// What would wait in vain is an error.
fn test_words(
    preview: &WorkloadPreview,
    site: &SiteReference,
    zone: &TimeZone,
) -> Result<String, String> {
    let number = preview.number;
    let Some(begins) = preview.begins else {
        let (code, why) = match &preview.waits {
            Some(waits) => (waits.code.as_str(), waits.words.as_str()),
            None => ("", "when it would start is not known"),
        };
        return match code {
            "never" | "no_such_gpu" | "dependency_never" => {
                Err(format!("allocation failure: {why}"))
            }
            _ => Ok(format!(
                "Job {number} would wait in partition {site}: {why}"
            )),
        };
    };
    let wish = preview.wish.and_then(|wish| usize::try_from(wish).ok());
    let wish = preview.wishes.get(wish.unwrap_or(0));
    let milli = wish.map_or(0, |wish| {
        let tasks = u64::from(wish.tasks.get());
        wish.task.cores_milli.get().saturating_mul(tasks)
    });
    let nodes: Vec<&str> = preview
        .nodes
        .iter()
        .map(|node| node.name.as_str())
        .collect();
    let nodes = match nodes.is_empty() {
        true => "(not yet chosen)".to_owned(),
        false => hostlist::compress(&nodes),
    };
    Ok(format!(
        "Job {number} to start at {} using {} processors on nodes {nodes} in partition {site}",
        begins.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S"),
        milli.div_ceil(1000),
    ))
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
    fn a_test_says_when_the_job_would_start() {
        let preview = |changes: serde_json::Value| -> WorkloadPreview {
            let mut all = serde_json::json!({
                "number": 12,
                "wishes": [{"tasks": 2, "task": {"cores_milli": 4000, "memory_mib": 1}, "limit": "PT1H"}],
            });
            for (key, value) in changes.as_object().unwrap() {
                all[key] = value.clone();
            }
            serde_json::from_value(all).unwrap()
        };
        let node = |name: &str| {
            let id = "res_01kc3v9xwbe8rv5w2n9q3m7t4h";
            serde_json::json!({"id": id, "name": name, "type": "node"})
        };
        let words = |changes| {
            let site = "torino".parse().unwrap();
            test_words(&preview(changes), &site, &TimeZone::UTC)
        };
        assert_eq!(
            words(serde_json::json!({
                "begins": "2026-11-16T10:00:00Z", "nodes": [node("gpu-01"), node("gpu-02")],
            })),
            Ok(
                "Job 12 to start at 2026-11-16T10:00:00 using 8 processors on nodes gpu-[01-02] in partition torino"
                    .to_owned()
            )
        );
        let waits = |code: &str| serde_json::json!({"waits": {"code": code, "words": "because"}});
        assert_eq!(
            words(waits("held")),
            Ok("Job 12 would wait in partition torino: because".to_owned())
        );
        assert_eq!(
            words(waits("never")),
            Err("allocation failure: because".to_owned())
        );
    }

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
