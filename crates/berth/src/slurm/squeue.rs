//! `squeue`: what waits and runs.

use std::process::ExitCode;

use berth_api::Client;
use berth_api::moment::Moment;
use berth_api::reference::SiteReference;
use berth_api::workloads::{Workload, WorkloadQuery};
use berth_slurm::preset::{self, with_environment};
use berth_slurm::squeue::{self, Asked, Squeue, View};
use jiff::{SignedDuration, Timestamp};

use super::{
    CLUSTER, context, local_now, on_one_thread, rows, said, sites, variable, version, work,
};
use crate::context::Context;
use crate::failure::usage;

/// How long `squeue` remembers what is over, as Slurm does by itself.
const REMEMBERED: SignedDuration = SignedDuration::from_mins(5);
/// What is cancelled may still be coming to its end, for no longer than this.
const ENDING: SignedDuration = SignedDuration::from_hours(1);

pub fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let arguments = with_environment(preset::Program::Squeue, arguments, variable);
    match squeue::read(&arguments)? {
        Asked::Help | Asked::Usage => said(&squeue::help()),
        Asked::Version => version(),
        Asked::List(squeue) => {
            let context = context()?;
            said(&on_one_thread(list(&squeue, &context))?)
        }
    }
}

async fn list(squeue: &Squeue, context: &Context) -> anyhow::Result<String> {
    let client = &context.client;
    let now = local_now(context);
    let me = match squeue.is_mine {
        true => client.me().await?.person.login.to_string(),
        false => String::new(),
    };
    let mut found = Vec::new();
    for site in sites(&squeue.partitions, context)? {
        found.extend(of_site(squeue, client, &site, now.timestamp()).await?);
    }
    // The oldest first, where nothing else parts them.
    found.sort_by_key(|one| one.number);
    let mut jobs = rows::jobs(&found, now.timestamp());
    jobs.retain(|job| squeue.wants(job, &me));
    let view = View {
        now: now.timestamp(),
        zone: now.time_zone().clone(),
        cluster: CLUSTER,
    };
    Ok(squeue.render(jobs, &view))
}

async fn of_site(
    squeue: &Squeue,
    client: &Client,
    site: &SiteReference,
    now: Timestamp,
) -> anyhow::Result<Vec<Workload>> {
    if !squeue.jobs.is_empty() {
        let mut found = Vec::new();
        for job in &squeue.jobs {
            found.extend(work::numbered(client, site, job.id).await?);
        }
        if found.is_empty() {
            return Err(usage("Invalid job id specified"));
        }
        return Ok(found);
    }
    let is_live_only = match squeue.states.as_deref() {
        None => false,
        Some(states) => states.iter().all(|state| state.is_live()),
    };
    let (state, since) = match is_live_only {
        true => ("WAITING,HELD,RUNNING,CANCELLED", ENDING),
        false => ("all", REMEMBERED),
    };
    let query = WorkloadQuery {
        state: Some(state.to_owned()),
        since: Some(Moment::try_from(now - since)?),
        ..WorkloadQuery::default()
    };
    let listed = work::list(client, site, &query).await?;
    Ok(match is_live_only {
        true => listed,
        false => work::with_runs(client, site, listed).await?,
    })
}
