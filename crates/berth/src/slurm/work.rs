//! Reading workloads from the server, as far as Slurm's commands need them.

use berth_api::client::{Error, all_pages};
use berth_api::page::Limit;
use berth_api::reference::SiteReference;
use berth_api::workloads::{Workload, WorkloadQuery};
use berth_api::{Client, Code};
use berth_model::Reference;
use futures::{StreamExt, TryStreamExt, stream};

/// How many questions are asked at a time.
const AT_ONCE: usize = 8;

pub async fn list(
    client: &Client,
    site: &SiteReference,
    query: &WorkloadQuery,
) -> Result<Vec<Workload>, Error> {
    let limit = Limit::LARGEST;
    all_pages(async |cursor| {
        let query = WorkloadQuery {
            limit,
            cursor,
            ..query.clone()
        };
        client.workloads(site, &query).await
    })
    .await
}

/// The one of this number, if there is one.
pub async fn numbered(
    client: &Client,
    site: &SiteReference,
    number: u64,
) -> Result<Option<Workload>, Error> {
    match client.workload(site, &Reference::Name(number)).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if is(&error, Code::ObjectNotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the server refused for this reason.
pub fn is(error: &Error, code: Code) -> bool {
    error
        .problem()
        .and_then(|problem| problem.code.parse().ok())
        == Some(code)
}

/// A list leaves out the runs that are over; only they say where and how each ended.
pub async fn with_runs(
    client: &Client,
    site: &SiteReference,
    listed: Vec<Workload>,
) -> Result<Vec<Workload>, Error> {
    let whole = async |one: Workload| match one.state.is_final() || one.array.is_some() {
        true => client.workload(site, &one.id.into()).await,
        false => Ok(one),
    };
    let each = stream::iter(listed.into_iter().map(whole));
    each.buffered(AT_ONCE).try_collect().await
}
