//! `sacct`: what became of jobs.

use std::process::ExitCode;

use berth_api::Client;
use berth_api::moment::Moment;
use berth_api::reference::SiteReference;
use berth_api::workloads::{Workload, WorkloadQuery};
use berth_model::PersonId;
use berth_slurm::preset::{self, with_environment};
use berth_slurm::sacct::{self, Asked, Sacct};

use super::{clock, context, local_now, on_one_thread, rows, said, sites, variable, version, work};
use crate::context::Context;

pub fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let arguments = with_environment(preset::Program::Sacct, arguments, variable);
    match sacct::read(&arguments, &clock())? {
        Asked::Help | Asked::Usage => said(&sacct::help()),
        Asked::HelpFormat => said(&sacct::help_format()),
        Asked::Version => version(),
        Asked::List(sacct) => {
            let context = context()?;
            said(&on_one_thread(list(&sacct, &context))?)
        }
    }
}

async fn list(sacct: &Sacct, context: &Context) -> anyhow::Result<String> {
    let client = &context.client;
    let is_mine = sacct.users.is_empty() && !sacct.is_everybodys && sacct.jobs.is_empty();
    let me = match is_mine {
        true => Some(client.me().await?.person),
        false => None,
    };
    let mut found = Vec::new();
    for site in sites(&sacct.partitions, context)? {
        found.extend(of_site(sacct, client, &site, me.as_ref().map(|me| me.id)).await?);
    }
    // The oldest first.
    found.sort_by_key(|one| (one.since, one.number));
    let now = local_now(context);
    let login = me.map(|me| me.login.to_string()).unwrap_or_default();
    let mut rows = rows::accounting(&found, now.timestamp());
    rows.retain(|row| sacct.wants(row, &login));
    Ok(sacct.render(&rows, now.time_zone()))
}

async fn of_site(
    sacct: &Sacct,
    client: &Client,
    site: &SiteReference,
    owner: Option<PersonId>,
) -> anyhow::Result<Vec<Workload>> {
    let mut found = Vec::new();
    for job in &sacct.jobs {
        found.extend(work::numbered(client, site, job.id).await?);
    }
    if !sacct.jobs.is_empty() {
        return Ok(found);
    }
    let query = WorkloadQuery {
        owner: owner.map(Into::into),
        state: Some("all".to_owned()),
        since: sacct.since.map(Moment::try_from).transpose()?,
        ..WorkloadQuery::default()
    };
    let listed = work::list(client, site, &query).await?;
    Ok(work::with_runs(client, site, listed).await?)
}
