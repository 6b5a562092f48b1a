//! How many resources a site has, and how many of them are free now.

use axum::Json;
use axum::extract::State;
use berth_api::resource_counts::{CapacityTally, ResourceCount, ResourceCounts, Tally};
use berth_api::{Names, paths};
use berth_engine::counts::{self, Count, Group};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::SiteAt;
use crate::failure::Result;
use crate::request::{Path, Signed};
use crate::server::Server;
use crate::shown::names;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default().routes(routes!(count_resources))
}

/// How many resources there are, and how many of them are free now.
///
/// By type, model and profile, and by whether they stand in a node of the queue. A GPU that is cut into slices is not
/// free; its slices are counted by themselves.
#[utoipa::path(
    get, path = paths::RESOURCE_COUNTS, tag = "resources", params(SiteAt),
    responses((status = 200, description = "The counts.", body = ResourceCounts))
)]
async fn count_resources(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
) -> Result<Json<ResourceCounts>> {
    let found = server.app.count_resources(&caller, &at.site).await?;
    let names = names(&found.directory);
    let counts = found.counts.into_iter();
    let mut items: Vec<ResourceCount> = counts
        .map(|(group, count)| shown(group, count, &names))
        .collect();
    items.sort_by(|a, b| a.kind.name.cmp(&b.kind.name));
    Ok(Json(ResourceCounts { items }))
}

fn shown(group: Group, count: Count, names: &Names) -> ResourceCount {
    ResourceCount {
        kind: names.kind(group.type_id),
        role: group.role,
        in_node: group.in_node,
        model: group.model,
        profile: group.profile,
        resources: tally(count.resources),
        capacity: group.unit.map(|unit| CapacityTally {
            unit,
            amounts: tally(count.capacity),
        }),
    }
}

fn tally(of: counts::Tally) -> Tally {
    Tally {
        total: of.total,
        free: of.free,
        running: of.running,
        reserved: of.reserved,
        cut: of.cut,
        out_of_service: of.out_of_service,
    }
}
