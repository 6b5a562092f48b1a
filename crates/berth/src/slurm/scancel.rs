//! `scancel`: workloads and tasks of arrays are cancelled, by number or by what they are.

use std::process::ExitCode;

use berth_api::client::Error;
use berth_api::reference::SiteReference;
use berth_api::workloads::{CancelWorkload, Workload, WorkloadQuery};
use berth_model::workload::Tasks;
use berth_slurm::job_id;
use berth_slurm::preset::{self, with_environment};
use berth_slurm::scancel::{self, Asked, Scancel};
use berth_slurm::{JobRow, Member, UsageError};
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

/// What is to be cancelled of one workload.
#[derive(Debug)]
struct Meant {
    workload: Workload,
    /// None for all of it.
    tasks: Option<Tasks>,
}

impl Meant {
    /// As Slurm writes it: `12`, `12_3` or `12_[3-7]`.
    fn id(&self) -> String {
        let number = self.workload.number;
        match &self.tasks {
            None => number.to_string(),
            Some(tasks) if tasks.len() == 1 => format!("{number}_{tasks}"),
            Some(tasks) => format!("{number}_[{tasks}]"),
        }
    }
}

async fn cancel(scancel: &Scancel, context: &Context) -> anyhow::Result<ExitCode> {
    let site = match &scancel.partition {
        Some(name) => partition(name)?,
        None => context.site()?.clone(),
    };
    let (found, mut is_well) = meant(scancel, context, &site).await?;
    for meant in found {
        let (id, workload) = (meant.id(), &meant.workload);
        let question = format!(
            "Cancel job_id={id} name={} partition={}",
            workload.title, workload.site.name
        );
        if scancel.is_interactive && !agreed(&question)? {
            continue;
        }
        if scancel.is_verbose {
            PROGRAM.say(format!("Terminating job {id}"));
        }
        let what = CancelWorkload {
            tasks: meant.tasks,
            reason: None,
        };
        let client = &context.client;
        if let Err(error) = client
            .cancel_workload(&site, &workload.id.into(), &what)
            .await
        {
            is_well = false;
            tell(&id, error);
        }
    }
    Ok(match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn tell(id: &str, error: Error) {
    for line in lines(&error.into()) {
        PROGRAM.error(format!("Kill job error on job id {id}: {line}"));
    }
}

/// What is meant, and whether all that was named is among it.
async fn meant(
    scancel: &Scancel,
    context: &Context,
    site: &SiteReference,
) -> anyhow::Result<(Vec<Meant>, bool)> {
    let client = &context.client;
    let me = match scancel.is_mine {
        true => client.me().await?.person.login.to_string(),
        false => String::new(),
    };
    let now = context.times.now.timestamp();
    if scancel.jobs.is_empty() {
        let all = work::list(client, site, &WorkloadQuery::default()).await?;
        let found = all
            .into_iter()
            .filter_map(|one| choose(scancel, one, None, &me, now));
        return Ok((found.collect(), true));
    }
    let (mut found, mut is_well) = (Vec::new(), true);
    for job in &scancel.jobs {
        let refused = match work::numbered(client, site, job.id).await? {
            None => "Invalid job id specified",
            Some(one) if one.array.is_none() && job.tasks.is_some() => "Invalid job id specified",
            Some(one) if is_over(job.tasks.as_ref(), &one) => {
                if scancel.is_quiet {
                    continue;
                }
                "Job/step already completing or completed"
            }
            Some(one) => {
                found.extend(choose(scancel, one, job.tasks.as_ref(), &me, now));
                continue;
            }
        };
        is_well = false;
        PROGRAM.error(format!("Kill job error on job id {job}: {refused}"));
    }
    Ok((found, is_well))
}

/// Whether nothing that was named of it waits or runs.
fn is_over(named: Option<&job_id::Tasks>, workload: &Workload) -> bool {
    let Some(job_id::Tasks::These(named)) = named else {
        return workload.state.is_final();
    };
    let runs = workload.runs.iter().filter(|run| !run.state.is_over());
    let mut live = workload.waiting.iter().chain(runs.map(|run| run.task));
    workload.state.is_final() || !live.any(|task| named.contains(task))
}

/// What of a workload meets all that was said of it, if anything does.
fn choose(
    scancel: &Scancel,
    workload: Workload,
    named: Option<&job_id::Tasks>,
    me: &str,
    now: Timestamp,
) -> Option<Meant> {
    let rows = rows::jobs(std::slice::from_ref(&workload), now);
    let fits = |row: &&JobRow| {
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
            && scancel.state.is_none_or(|state| row.state == state)
    };
    let chosen: Vec<&JobRow> = rows.iter().filter(fits).collect();
    if chosen.is_empty() {
        return None;
    }
    let named = match named {
        Some(job_id::Tasks::These(named)) => Some(named),
        None | Some(job_id::Tasks::Every) => None,
    };
    if chosen.len() == rows.len() && named.is_none() {
        let tasks = None;
        return Some(Meant { workload, tasks });
    }
    let members = chosen.iter().filter_map(|row| row.member.as_ref());
    let tasks = members.flat_map(|member| match member {
        Member::Task { index, .. } => vec![*index],
        Member::Waiting { tasks, .. } => tasks.indices().collect(),
    });
    let tasks = tasks.filter(|task| named.is_none_or(|named| named.contains(*task)));
    let tasks: Tasks = tasks.collect();
    (!tasks.is_empty()).then_some(Meant {
        workload,
        tasks: Some(tasks),
    })
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

    /// What is cancelled of a workload, in Slurm's words.
    fn chosen(line: &str, workload: Workload) -> Option<String> {
        let asked = asked(line);
        let named = asked.jobs.first().and_then(|job| job.tasks.as_ref());
        let meant = choose(&asked, workload, named, "ada", Timestamp::UNIX_EPOCH);
        meant.map(|meant| meant.id())
    }

    #[test]
    fn single_tasks_of_an_array_are_cancelled_by_name_or_state() {
        let array = array();
        for (line, wanted) in [
            ("7", Some("7")),
            ("7_*", Some("7")),
            ("7_1", Some("7_1")),
            ("7_[0-2]", Some("7_[0-2]")),
            ("-t R", Some("7_1")),
            ("-t PD", Some("7_[2-3]")),
            ("-t PD 7_[0-2]", Some("7_2")),
            ("-t R 7_2", None),
        ] {
            assert_eq!(chosen(line, array.clone()).as_deref(), wanted, "{line}");
        }
        let tasks = |line: &str| asked(line).jobs[0].tasks.clone();
        assert!(!is_over(tasks("7_[2-9]").as_ref(), &array));
        assert!(is_over(tasks("7_[8-9]").as_ref(), &array));
    }

    #[test]
    fn what_is_cancelled_meets_all_that_was_said() {
        for line in ["-u ada", "--me", "-n train -A vision", "-t PD", "-q urgent"] {
            assert_eq!(chosen(line, waiting()).as_deref(), Some("7"), "{line}");
        }
        for line in [
            "-u bo",
            "-n other",
            "-n train -A other",
            "-t R",
            "-w gpu-01",
        ] {
            assert_eq!(chosen(line, waiting()), None, "{line}");
        }
    }
}
