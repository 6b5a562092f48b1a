//! How the queue of a site is run, how everybody stands in it, and what its nodes have left.

use axum::Json;
use axum::extract::State;
use berth_api::page::{Page, PageQuery};
use berth_api::workloads::{
    ClassCount, Grant, Modes, NewGrant, PersonCount, ProjectCount, QueueCount, QueueCounts,
    QueueGpu, QueueNode, QueueSettingsView, Share,
};
use berth_api::{Names, paths};
use berth_app::queue::{self, QueueSettings, ShareView};
use berth_model::queue::{self as model, Settings, Whose};
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{GrantAt, SiteAt};
use super::paging::out_of_all;
use crate::answer::{Made, Versioned};
use crate::failure::Result;
use crate::openapi::{IdempotencyKeyHeader, IfMatchHeader};
use crate::request::{Body, Creating, IfMatch, Path, Query, Signed};
use crate::server::Server;
use crate::shown::names;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(get_queue_settings, set_queue_settings))
        .routes(routes!(list_shares))
        .routes(routes!(list_queue_nodes))
        .routes(routes!(count_queue))
        .routes(routes!(list_grants, give_grant))
        .routes(routes!(revoke_grant))
}

/// How the site's queue is run: what its nodes are made of, shares, quotas, levels and profiles.
#[utoipa::path(
    get, path = paths::QUEUE_SETTINGS, tag = "queue", params(SiteAt),
    responses((status = 200, description = "The settings.", body = QueueSettingsView,
        headers(("ETag" = String, description = "Their version; 0 where nobody has set any."))))
)]
async fn get_queue_settings(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
) -> Result<Versioned<QueueSettingsView>> {
    let found = server.app.queue_settings(&caller, &at.site).await?;
    Ok(versioned(found))
}

/// Set how the site's queue is run. All of it at once: what is left out is as it is by default.
#[utoipa::path(
    put, path = paths::QUEUE_SETTINGS, tag = "queue", params(SiteAt, IfMatchHeader),
    request_body = Settings,
    responses((status = 200, description = "The settings, as they are now.", body = QueueSettingsView,
        headers(("ETag" = String, description = "Their version."))))
)]
async fn set_queue_settings(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    version: IfMatch,
    Body(settings): Body<Settings>,
) -> Result<Versioned<QueueSettingsView>> {
    let version = version.required()?;
    let set = server
        .app
        .set_queue_settings(&caller, &at.site, version, settings)
        .await?;
    Ok(versioned(set))
}

fn versioned(found: QueueSettings) -> Versioned<QueueSettingsView> {
    let QueueSettings {
        settings, version, ..
    } = found;
    Versioned(QueueSettingsView { settings, version }, version)
}

/// How everybody stands: each project, and each person in it who has used or asked for anything.
#[utoipa::path(
    get, path = paths::QUEUE_SHARES, tag = "queue", params(SiteAt, PageQuery),
    responses((status = 200, description = "A page of shares.", body = Page<Share>))
)]
async fn list_shares(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<Share>>> {
    let found = server.app.shares(&caller, &at.site).await?;
    let names = names(&found.directory);
    let shares = found
        .shares
        .into_iter()
        .map(|one| share(one, &names))
        .collect();
    let key = |share: &Share| {
        let project = share
            .project
            .as_ref()
            .map_or("~", |project| project.name.as_str());
        let person = share
            .person
            .as_ref()
            .map_or("", |person| person.login.as_str());
        format!("{project} {person}")
    };
    Ok(Json(out_of_all(shares, &query, key)?))
}

fn share(one: ShareView, names: &Names) -> Share {
    let standing = one.standing;
    let [reserved, interactive, batch, ray] = standing.modes;
    let modes = Modes {
        reserved,
        interactive,
        batch,
        ray,
    };
    let project = one.project.map(|id| names.project(id));
    let person = one.person.map(|id| names.person(id));
    Share {
        words: words(person.is_some(), standing.of_share, &modes),
        project,
        person,
        weight: one.weight,
        due: standing.due,
        used: standing.used,
        of_share: standing.of_share,
        modes,
        gpus_milli: one.gpus_milli,
        cores_milli: one.cores_milli,
    }
}

/// "At 1.4 x their share, because of jobs (60 %) and reservations (40 %)."
fn words(is_person: bool, of_share: f64, modes: &Modes) -> String {
    if of_share == 0.0 {
        return "Has used nothing lately, and so comes first.".to_owned();
    }
    let parts = [
        (modes.batch, "jobs"),
        (modes.reserved, "reservations, used or not"),
        (modes.interactive, "sessions"),
        (modes.ray, "Ray clusters"),
    ];
    let mut parts: Vec<(f64, &str)> = parts
        .into_iter()
        .filter(|(part, _)| *part >= 0.005)
        .collect();
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let parts: Vec<String> = parts
        .iter()
        .map(|(part, what)| format!("{what} ({:.0} %)", part * 100.0))
        .collect();
    let whose = if is_person { "their" } else { "its" };
    format!(
        "At {of_share:.1} x {whose} share, because of {}.",
        parts.join(" and ")
    )
}

/// The nodes of the queue, with what is left of them now.
#[utoipa::path(
    get, path = paths::QUEUE_NODES, tag = "queue", params(SiteAt, PageQuery),
    responses((status = 200, description = "A page of nodes.", body = Page<QueueNode>))
)]
async fn list_queue_nodes(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<QueueNode>>> {
    let (_, nodes, directory) = server.app.queue_nodes(&caller, &at.site).await?;
    let names = names(&directory);
    let shown = |node: queue::NodeView| QueueNode {
        node: names.resource(node.node),
        in_service: node.is_in_service,
        maintenance: node.is_in_maintenance,
        reserved: node.is_reserved,
        cores_milli: node.cores_milli,
        cores_milli_free: node.cores_milli_free,
        memory_mib: node.memory_mib,
        memory_mib_free: node.memory_mib_free,
        gpus: node
            .gpus
            .into_iter()
            .map(|one| QueueGpu {
                gpu: names.resource(one.gpu),
                model: one.model,
                free: one.free,
            })
            .collect(),
    };
    let nodes = nodes.into_iter().map(shown).collect();
    Ok(Json(out_of_all(nodes, &query, |node: &QueueNode| {
        node.node.name.clone()
    })?))
}

/// How much of the queue waits and runs: in all, and by project, person and class.
#[utoipa::path(
    get, path = paths::QUEUE_COUNTS, tag = "queue", params(SiteAt),
    responses((status = 200, description = "The counts.", body = QueueCounts))
)]
async fn count_queue(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
) -> Result<Json<QueueCounts>> {
    let found = server.app.count_queue(&caller, &at.site).await?;
    let names = names(&found.directory);
    let projects = found
        .projects
        .into_iter()
        .map(|(project, one)| ProjectCount {
            project: project.map(|id| names.project(id)),
            count: count(one),
        });
    let people = found.people.into_iter().map(|(person, one)| PersonCount {
        person: names.person(person),
        count: count(one),
    });
    let classes = found.classes.into_iter().map(|(class, one)| ClassCount {
        class,
        count: count(one),
    });
    Ok(Json(QueueCounts {
        all: count(found.all),
        projects: projects.collect(),
        people: people.collect(),
        classes: classes.collect(),
    }))
}

fn count(one: queue::Count) -> QueueCount {
    QueueCount {
        waiting: one.waiting,
        held: one.held,
        running: one.running,
        running_tasks: one.running_tasks,
    }
}

/// Whose work is urgent now, by whose word and why.
#[utoipa::path(
    get, path = paths::GRANTS, tag = "queue", params(SiteAt, PageQuery),
    responses((status = 200, description = "A page of grants.", body = Page<Grant>))
)]
async fn list_grants(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<Grant>>> {
    let (_, grants, directory) = server.app.grants(&caller, &at.site).await?;
    let names = names(&directory);
    let grants = grants.into_iter().map(|one| grant(one, &names)).collect();
    Ok(Json(out_of_all(grants, &query, |grant: &Grant| {
        grant.id.to_string()
    })?))
}

/// Make somebody's work urgent until a moment, for so many GPU-hours.
#[utoipa::path(
    post, path = paths::GRANTS, tag = "queue", params(SiteAt, IdempotencyKeyHeader),
    request_body = NewGrant,
    responses(
        (status = 201, description = "Granted.", body = Grant,
            headers(("Location" = String, description = "Where to revoke it."))),
        (status = 200, description = "An earlier request with this key granted it.", body = Grant,
            headers(("Idempotency-Replayed" = bool, description = "`true` on such an answer."))),
    )
)]
async fn give_grant(
    State(server): State<Server>,
    Path(at): Path<SiteAt>,
    Creating { caller, body }: Creating<NewGrant>,
) -> Result<Made<Grant>> {
    let new = queue::NewGrant {
        project: body.project,
        person: body.person,
        until: body.until.get(),
        gpu_hours: body.gpu_hours.get(),
        reason: body.reason,
    };
    let made = server.app.grant_urgency(&caller, &at.site, new).await?;
    let (_, given, _) = &made.value;
    let location = paths::grant(&given.site, &given.id);
    let made = Made::from(made.map(|(_, given, directory)| grant(given, &names(&directory))));
    Ok(made.at(server.link(&location)))
}

/// Take a grant back: work that is submitted or waits is no longer urgent.
#[utoipa::path(
    delete, path = paths::GRANT, tag = "queue", params(GrantAt),
    responses((status = 204, description = "Taken back."))
)]
async fn revoke_grant(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<GrantAt>,
) -> Result<StatusCode> {
    server
        .app
        .revoke_urgency(&caller, &at.site, at.grant)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

fn grant(one: model::Grant, names: &Names) -> Grant {
    let (project, person) = match one.whose {
        Whose::Project(id) => (Some(names.project(id)), None),
        Whose::Person(id) => (None, Some(names.person(id))),
        Whose::Site => (None, None),
    };
    Grant {
        id: one.id,
        project,
        person,
        from: one.from,
        until: one.until,
        gpu_hours: one.gpu_hours,
        reason: one.reason,
        granted_by: names.person(one.by),
        revoked_at: one.revoked_at,
    }
}
