//! When can I have it?

use axum::Json;
use axum::extract::State;
use berth_api::desk::{self, When, WhenRequest};
use berth_api::paths;
use berth_app::desk::{Choice, Variant, Wish};
use berth_model::FieldErrors;
use jiff::Timestamp;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::failure::Result;
use crate::request::{Body, Signed};
use crate::server::Server;
use crate::shown::names;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default().routes(routes!(when))
}

/// The earliest exact times at which a wish can be met, over all my sites.
///
/// Nothing is booked: the answer is true when it is given. What needs approval says until when that can be decided.
#[utoipa::path(
    post, path = paths::WHEN, tag = "calendar", request_body = WhenRequest,
    responses((status = 200, description = "The choices, by start; none if there is no such time.", body = When))
)]
async fn when(
    State(server): State<Server>,
    Signed(caller): Signed,
    Body(request): Body<WhenRequest>,
) -> Result<Json<When>> {
    let wish = wish(&request.wish, server.app.now())?;
    let sites = request.sites.as_slice();
    let limit = request.limit.get();
    let answer = server.app.when(&caller, sites, &wish, limit).await?;
    let names = names(&answer.directory);
    let choice = |choice: Choice| desk::Choice {
        site: names.site(choice.place.id()),
        start: choice.span.start(),
        end: choice.span.end(),
        resources: choice
            .resources
            .iter()
            .map(|id| names.resource(*id))
            .collect(),
        decide_by: choice.decide_by,
    };
    Ok(Json(When {
        choices: answer.choices.into_iter().map(choice).collect(),
        sites: answer.sites,
        candidates: answer.candidates,
    }))
}

pub(super) fn wish(asked: &desk::Wish, now: Timestamp) -> Result<Wish, FieldErrors> {
    let variant = |variant: &desk::Variant| Variant {
        count: variant.count,
        length: variant.lasting.duration(),
    };
    let variants = asked.variants.as_slice().iter().map(variant).collect();
    Wish::new(asked.selection(), variants, asked.window(now)?)
}
