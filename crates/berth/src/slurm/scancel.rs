//! `scancel`: workloads are cancelled, by number or by what they are.

use std::process::ExitCode;

use berth_api::client::Error;
use berth_api::members::Reason;
use berth_api::reference::SiteReference;
use berth_api::workloads::{Workload, WorkloadQuery};
use berth_slurm::job_id::Tasks;
use berth_slurm::preset::{self, with_environment};
use berth_slurm::scancel::{self, Asked, Scancel};
use berth_slurm::{JobRow, UsageError};
use jiff::Timestamp;

use super::want::unsupported;
use super::{
    Program, context, lines, on_one_thread, partition, rows, said, variable, version, work,
};
use crate::context::Context;
use crate::prompt::agreed;

const PROGRAM: Program = Program::Scancel;

pub fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let arguments = with_environment(preset::Program::Scancel, arguments, variable);
    match scancel::read(&arguments)? {
        Asked::Help | Asked::Usage => said(&scancel::help()),
        Asked::Version => version(),
        Asked::Cancel(scancel) => {
            refuse(&scancel)?;
            let context = context()?;
            on_one_thread(cancel(&scancel, &context))
        }
    }
}

fn refuse(scancel: &Scancel) -> Result<(), UsageError> {
    if let Some(signal) = &scancel.signal
        && !matches!(signal.as_str(), "KILL" | "TERM")
    {
        return Err(unsupported(
            &format!("--signal={signal}"),
            "a job can only be told to end; leave it out",
        ));
    }
    if scancel.reservation.is_some() {
        return Err(unsupported(
            "--reservation",
            "cancel them by number; `squeue --reservation` lists them",
        ));
    }
    Ok(())
}

async fn cancel(scancel: &Scancel, context: &Context) -> anyhow::Result<ExitCode> {
    let site = match &scancel.partition {
        Some(name) => partition(name)?,
        None => context.site()?.clone(),
    };
    let (found, mut is_well) = meant(scancel, context, &site).await?;
    for workload in found {
        let number = workload.number;
        let question = format!(
            "Cancel job_id={number} name={} partition={}",
            workload.title, workload.site.name
        );
        if scancel.is_interactive && !agreed(&question)? {
            continue;
        }
        if scancel.is_verbose {
            PROGRAM.say(format!("Terminating job {number}"));
        }
        let none = Reason { reason: None };
        let client = &context.client;
        if let Err(error) = client
            .cancel_workload(&site, &workload.id.into(), &none)
            .await
        {
            is_well = false;
            tell(number, error);
        }
    }
    Ok(match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn tell(number: u64, error: Error) {
    for line in lines(&error.into()) {
        PROGRAM.error(format!("Kill job error on job id {number}: {line}"));
    }
}

/// The workloads that are meant, and whether all that were named are among them.
async fn meant(
    scancel: &Scancel,
    context: &Context,
    site: &SiteReference,
) -> anyhow::Result<(Vec<Workload>, bool)> {
    let client = &context.client;
    let me = match scancel.is_mine {
        true => client.me().await?.person.login.to_string(),
        false => String::new(),
    };
    let now = context.times.now.timestamp();
    if scancel.jobs.is_empty() {
        let all = work::list(client, site, &WorkloadQuery::default()).await?;
        let mut found = Vec::new();
        for one in all {
            if choose(scancel, &one, &me, now)? {
                found.push(one);
            }
        }
        return Ok((found, true));
    }
    let (mut found, mut is_well) = (Vec::new(), true);
    for job in &scancel.jobs {
        let refused = match work::numbered(client, site, job.id).await? {
            None => "Invalid job id specified",
            Some(one) if one.state.is_final() => {
                if scancel.is_quiet {
                    continue;
                }
                "Job/step already completing or completed"
            }
            Some(one) => {
                is_whole(job.tasks.as_ref(), &one)?;
                if choose(scancel, &one, &me, now)? {
                    found.push(one);
                }
                continue;
            }
        };
        is_well = false;
        PROGRAM.error(format!("Kill job error on job id {job}: {refused}"));
    }
    Ok((found, is_well))
}

/// Only whole workloads can be cancelled.
fn is_whole(tasks: Option<&Tasks>, workload: &Workload) -> Result<(), UsageError> {
    let Some(Tasks::These(wanted)) = tasks else {
        return Ok(());
    };
    let array = workload.array.as_ref();
    let is_all = array.is_some_and(|array| array.tasks.iter().all(|task| wanted.contains(task)));
    if is_all {
        return Ok(());
    }
    let number = workload.number;
    Err(unsupported(
        &format!("cancelling single tasks ({number}_[{wanted}])"),
        &format!("cancel the whole array with `scancel {number}`"),
    ))
}

/// Whether a workload meets all that was said of it.
fn choose(
    scancel: &Scancel,
    workload: &Workload,
    me: &str,
    now: Timestamp,
) -> Result<bool, UsageError> {
    let rows = rows::jobs(std::slice::from_ref(workload), now);
    let fits = |row: &JobRow| {
        let is = |wanted: &Option<String>, value: Option<&String>| {
            wanted.is_none() || wanted.as_ref() == value
        };
        let on_node = |node: &String| scancel.nodes.contains(node);
        is(&scancel.user, Some(&row.user))
            && (!scancel.is_mine || row.user == me)
            && is(&scancel.account, row.account.as_ref())
            && is(&scancel.name, Some(&row.name))
            && is(&scancel.qos, row.qos.as_ref())
            && (scancel.nodes.is_empty() || row.node_list.iter().any(on_node))
    };
    let rows: Vec<_> = rows.into_iter().filter(fits).collect();
    let Some(state) = scancel.state else {
        return Ok(!rows.is_empty());
    };
    let in_state = rows.iter().filter(|row| row.state == state).count();
    if in_state > 0 && in_state < rows.len() {
        return Err(unsupported(
            &format!("--state={} of array {}", state.long(), workload.number),
            "some of its tasks are in another state, and only whole arrays can be cancelled",
        ));
    }
    Ok(in_state > 0)
}

#[cfg(test)]
mod tests {
    use super::super::rows::samples::{array, waiting};
    use super::*;

    fn asked(line: &str) -> Scancel {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        match scancel::read(&words).unwrap() {
            Asked::Cancel(scancel) => scancel,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_signals_that_end_a_job_are_sent() {
        assert!(refuse(&asked("12")).is_ok());
        assert!(refuse(&asked("-s TERM 12")).is_ok());
        assert!(refuse(&asked("-s 9 12")).is_ok());
        let refused = refuse(&asked("-s USR1 12")).unwrap_err().to_string();
        assert!(refused.contains("--signal=USR1"), "{refused}");
    }

    #[test]
    fn an_array_is_cancelled_whole_or_not_at_all() {
        let array = array();
        let tasks = |line: &str| asked(line).jobs[0].tasks.clone();
        for whole in ["7", "7_*", "7_[0-3]", "7_[0-9]"] {
            assert_eq!(is_whole(tasks(whole).as_ref(), &array), Ok(()), "{whole}");
        }
        assert!(is_whole(tasks("7_[0-2]").as_ref(), &array).is_err());
        assert!(is_whole(tasks("7_1").as_ref(), &waiting()).is_err());
        // One of its tasks runs and the others wait.
        let now = Timestamp::UNIX_EPOCH;
        let refused = choose(&asked("-t PD"), &array, "ada", now).unwrap_err();
        assert!(refused.to_string().contains("array 7"), "{refused}");
    }

    #[test]
    fn what_is_cancelled_meets_all_that_was_said() {
        let now = Timestamp::UNIX_EPOCH;
        let means = |line: &str| choose(&asked(line), &waiting(), "ada", now).unwrap();
        for line in ["-u ada", "--me", "-n train -A vision", "-t PD", "-q urgent"] {
            assert!(means(line), "{line}");
        }
        for line in [
            "-u bo",
            "-n other",
            "-n train -A other",
            "-t R",
            "-w gpu-01",
        ] {
            assert!(!means(line), "{line}");
        }
    }
}
