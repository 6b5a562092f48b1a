//! The audit log: a site's, everything's, and whether the chain is intact.

use axum::Json;
use axum::extract::State;
use berth_api::audit::{ActionName, AuditEntry, AuditQuery, AuditVerification, BrokenLink, hex};
use berth_api::page::{Limit, Page};
use berth_api::paths;
use berth_app::Directory;
use berth_app::audit::WantedEntries;
use berth_model::audit::ChainedEntry;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::SiteAt;
use super::paging::{before_number, one_more};
use crate::failure::Result;
use crate::request::{Path, Query, Signed};
use crate::server::Server;
use crate::shown::names;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_site_audit))
        .routes(routes!(list_audit))
        .routes(routes!(verify_audit))
}

/// What was changed in the site, newest first.
#[utoipa::path(
    get, path = paths::SITE_AUDIT, tag = "audit", params(SiteAt, AuditQuery),
    responses((status = 200, description = "A page of entries.", body = Page<AuditEntry>))
)]
async fn list_site_audit(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Page<AuditEntry>>> {
    let (wanted, before, limit) = asked(query)?;
    let found = server
        .app
        .site_audit(&caller, &at.site, &wanted, before, one_more(limit))
        .await?;
    Ok(page(found, limit))
}

/// What was changed anywhere, newest first.
#[utoipa::path(
    get, path = paths::AUDIT, tag = "audit", params(AuditQuery),
    responses((status = 200, description = "A page of entries.", body = Page<AuditEntry>))
)]
async fn list_audit(
    State(server): State<Server>,
    Signed(caller): Signed,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Page<AuditEntry>>> {
    let (wanted, before, limit) = asked(query)?;
    let found = server
        .app
        .whole_audit(&caller, &wanted, before, one_more(limit))
        .await?;
    Ok(page(found, limit))
}

/// Follow the whole chain of the audit log, and say whether anybody has rewritten it.
#[utoipa::path(
    get, path = paths::AUDIT_VERIFY, tag = "audit",
    responses((status = 200, description = "What was found.", body = AuditVerification))
)]
async fn verify_audit(
    State(server): State<Server>,
    Signed(caller): Signed,
) -> Result<Json<AuditVerification>> {
    let found = server.app.verify_audit(&caller).await?;
    Ok(Json(AuditVerification {
        intact: found.broken.is_none(),
        entries: found.checked,
        waiting: found.unchained,
        last_hash: found.last_hash.map(|hash| hex(&hash)),
        broken: found.broken.map(|broken| BrokenLink {
            number: broken.number,
            what: broken.to_string(),
        }),
    }))
}

fn asked(query: AuditQuery) -> Result<(WantedEntries, u64, Limit)> {
    let before = before_number(query.cursor.as_ref())?;
    let wanted = WantedEntries {
        actor: query.actor,
        action: query.action.map(ActionName::get),
        subject: query.subject.map(|subject| subject.as_str().to_owned()),
        from: query.from.map(|from| from.get()),
        to: query.to.map(|to| to.get()),
    };
    Ok((wanted, before, query.limit))
}

fn page(
    (entries, directory): (Vec<ChainedEntry>, Directory),
    limit: Limit,
) -> Json<Page<AuditEntry>> {
    let names = names(&directory);
    let page = Page::cut(entries, limit, |entry| entry.number.to_string());
    Json(page.map(|entry| AuditEntry::new(entry, &names)))
}
