//! A site as a file: read out whole, and made what a file declares.

use axum::Json;
use axum::extract::State;
use berth_api::declared::{ApplyOutcome, ApplyQuery, SiteExport};
use berth_api::page::DryRunQuery;
use berth_api::{paths, schemas};
use berth_app::declared::Wanted;
use berth_app::settlement::Mode;
use berth_engine::plan::Prune;
use berth_model::declared::Document;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::SiteAt;
use super::mode;
use crate::failure::{Failure, Result};
use crate::request::{Large, Path, Query, Signed};
use crate::server::Server;
use crate::shown::conflicts;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(export_site))
        .routes(routes!(apply_site))
}

/// The whole site as a file declares it: title, types, tree and projects.
///
/// Applying the document changes nothing. The status of resources, members and bookings are no part of it.
#[utoipa::path(
    get, path = paths::EXPORT, tag = "sites", params(SiteAt),
    responses((status = 200, description = "The site.", body = SiteExport))
)]
async fn export_site(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
) -> Result<Json<SiteExport>> {
    let (document, fingerprint) = server.app.export_site(&caller, &at.site).await?;
    Ok(Json(SiteExport {
        fingerprint: parsed(&fingerprint)?,
        document,
    }))
}

/// Make the site what the document declares, all of it or nothing.
///
/// A dry run says what is different, and which bookings are in the way. Pass its fingerprint back as `expected`, and
/// what was shown is what happens. A section that the document lacks is left alone; what a section does not name stays
/// too, unless `prune` is asked for. Applied twice, a document changes nothing the second time. The body may be sixteen
/// times as large as others.
#[utoipa::path(
    post, path = paths::APPLY, tag = "sites", params(SiteAt, ApplyQuery),
    request_body = schemas::Document,
    responses((status = 200, description = "The site is as declared, or what that would change.", body = ApplyOutcome))
)]
async fn apply_site(
    State(server): State<Server>,
    _: Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<ApplyQuery>,
    Large { caller, body }: Large<Document>,
) -> Result<Json<ApplyOutcome>> {
    let mode = mode(DryRunQuery {
        dry_run: query.dry_run,
    });
    let wanted = Wanted {
        document: body,
        prune: if query.prune { Prune::Yes } else { Prune::No },
        expected: query.expected.map(String::from),
    };
    let applied = server
        .app
        .apply_site(&caller, &at.site, wanted, mode)
        .await?;
    Ok(Json(ApplyOutcome {
        applied: mode == Mode::Apply,
        fingerprint: parsed(&applied.fingerprint)?,
        differences: applied.differences,
        conflicts: conflicts(&applied.conflicts, &applied.directory),
    }))
}

fn parsed(fingerprint: &str) -> Result<berth_api::declared::Fingerprint> {
    let parsed = fingerprint.parse();
    parsed.map_err(|error| Failure::new(berth_api::Code::ServerInternal).because(error))
}
