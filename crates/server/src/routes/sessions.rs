//! Sessions: web apps to work in.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use berth_api::sessions::{
    KeepSession, NewSession, NewVisit, Paused, Profile, ProfileList, Session, SessionList,
    SessionLog, SessionPatch, SessionQuery, ShareSession, SharedWith, Start, StartSession,
    StopSession, Used, Visit, VisitList, WayIn,
};
use berth_api::workloads::Ends;
use berth_api::{Code, Names, paths};
use berth_app::sessions::{self, SessionChange, SessionFilter, SessionView};
use berth_model::session as model;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{SessionAt, SessionProfileAt, SiteAt};
use super::workloads::waits;
use crate::answer::{Made, Versioned};
use crate::failure::{Failure, Result};
use crate::openapi::{IdempotencyKeyHeader, IfMatchOptionalHeader};
use crate::request::{Body, Changing, Creating, Path, Query, Signed};
use crate::server::Server;
use crate::shown::names;
use crate::visits::hop;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_sessions, start_new_session))
        .routes(routes!(get_session, rename_session, remove_session))
        .routes(routes!(start_session))
        .routes(routes!(stop_session))
        .routes(routes!(keep_session))
        .routes(routes!(share_session))
        .routes(routes!(session_log))
        .routes(routes!(session_visits, visit_session))
        .routes(routes!(session_profiles))
        .routes(routes!(resume_session_profile))
}

/// My sessions at a site, and those that are shared with me; for admins of the site everybody's, if they ask.
#[utoipa::path(
    get, path = paths::SESSIONS, tag = "sessions", params(SiteAt, SessionQuery),
    responses((status = 200, description = "The sessions; what runs comes first.", body = SessionList))
)]
async fn list_sessions(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<SessionQuery>,
) -> Result<Json<SessionList>> {
    let owner = match query.owner {
        None => None,
        Some(owner) => Some(server.app.sessions_of(&owner).await?),
    };
    let filter = SessionFilter {
        is_everybodys: query.everybody,
        owner,
        is_live: query.live,
    };
    let found = server.app.list_sessions(&caller, &at.site, filter).await?;
    let items = found.into_iter().map(shown).collect();
    Ok(Json(SessionList { items }))
}

/// Start a session: its workload goes into the queue at once.
#[utoipa::path(
    post, path = paths::SESSIONS, tag = "sessions", params(SiteAt, IdempotencyKeyHeader), request_body = NewSession,
    responses(
        (status = 201, description = "It waits in the queue.", body = Session,
            headers(
                ("ETag" = String, description = "The session's version."),
                ("Location" = String, description = "Where to read it."),
            )),
        (status = 200, description = "The session that an earlier request with this key started.", body = Session,
            headers(("Idempotency-Replayed" = bool, description = "`true` if it was started before."))),
    )
)]
async fn start_new_session(
    State(server): State<Server>,
    Path(at): Path<SiteAt>,
    Creating { caller, body }: Creating<NewSession>,
) -> Result<Made<Session>> {
    let new = sessions::NewSession {
        name: body.name,
        profile: body.profile,
        environment: body.environment,
        project: body.project,
        inside: body.inside,
    };
    let made = server.app.start_session(&caller, &at.site, new).await?;
    let (id, site) = (made.value.session.id, made.value.session.site);
    let version = made.value.session.version;
    let location = server.link(&paths::session(&site, &id));
    Ok(Made::from(made.map(shown)).at(location).version(version))
}

/// One session: how far it has come, why it waits, how its starts went.
#[utoipa::path(
    get, path = paths::SESSION, tag = "sessions", params(SessionAt),
    responses((status = 200, description = "The session.", body = Session,
        headers(("ETag" = String, description = "The session's version."))))
)]
async fn get_session(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SessionAt>,
) -> Result<Versioned<Session>> {
    let view = server.app.get_session(&caller, &at.site, &at.session);
    Ok(versioned(view.await?))
}

/// Give a session another name. Its address stays as it is.
#[utoipa::path(
    patch, path = paths::SESSION, tag = "sessions", params(SessionAt, IfMatchOptionalHeader), request_body = SessionPatch,
    responses((status = 200, description = "The session, as it is now.", body = Session,
        headers(("ETag" = String, description = "The session's version."))))
)]
async fn rename_session(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<SessionAt>,
    Body(body): Body<SessionPatch>,
) -> Result<Versioned<Session>> {
    change(&server, &caller, &at, SessionChange::Rename(body.name)).await
}

/// Take a session that is over off the list. Its files stay.
#[utoipa::path(
    delete, path = paths::SESSION, tag = "sessions", params(SessionAt, IfMatchOptionalHeader),
    responses((status = 204, description = "It is off the list."))
)]
async fn remove_session(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<SessionAt>,
) -> Result<StatusCode> {
    let removed = server.app.remove_session(&caller, &at.site, &at.session);
    removed.await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Start a session again that is stopped or has failed.
#[utoipa::path(
    post, path = paths::SESSION_START, tag = "sessions", params(SessionAt, IfMatchOptionalHeader), request_body = StartSession,
    responses((status = 200, description = "The session, as it is now.", body = Session,
        headers(("ETag" = String, description = "The session's version."))))
)]
async fn start_session(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<SessionAt>,
    Body(body): Body<StartSession>,
) -> Result<Versioned<Session>> {
    let StartSession {
        profile,
        environment,
        inside,
    } = body;
    let (site, session) = (&at.site, &at.session);
    let app = &server.app;
    let view = app.restart_session(&caller, site, session, profile, environment, inside);
    Ok(versioned(view.await?))
}

/// Stop a session: its app is told, and has the site's grace to come to its end. It can be started again.
#[utoipa::path(
    post, path = paths::SESSION_STOP, tag = "sessions", params(SessionAt, IfMatchOptionalHeader), request_body = StopSession,
    responses((status = 200, description = "The session, as it is now.", body = Session,
        headers(("ETag" = String, description = "The session's version."))))
)]
async fn stop_session(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<SessionAt>,
    Body(body): Body<StopSession>,
) -> Result<Versioned<Session>> {
    let reason = body.reason;
    change(&server, &caller, &at, SessionChange::Stop { reason }).await
}

/// Leave a session alone for a while, however idle it is.
#[utoipa::path(
    post, path = paths::SESSION_KEEP, tag = "sessions", params(SessionAt, IfMatchOptionalHeader), request_body = KeepSession,
    responses((status = 200, description = "The session, as it is now.", body = Session,
        headers(("ETag" = String, description = "The session's version."))))
)]
async fn keep_session(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<SessionAt>,
    Body(body): Body<KeepSession>,
) -> Result<Versioned<Session>> {
    change(&server, &caller, &at, SessionChange::Keep(body.length)).await
}

/// Let a colleague into a session, to look or to work, or out again.
#[utoipa::path(
    post, path = paths::SESSION_SHARE, tag = "sessions", params(SessionAt, IfMatchOptionalHeader), request_body = ShareSession,
    responses((status = 200, description = "The session, as it is now.", body = Session,
        headers(("ETag" = String, description = "The session's version."))))
)]
async fn share_session(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<SessionAt>,
    Body(body): Body<ShareSession>,
) -> Result<Versioned<Session>> {
    let ShareSession { with, access } = body;
    change(&server, &caller, &at, SessionChange::Share { with, access }).await
}

async fn change(
    server: &Server,
    caller: &berth_app::Caller,
    at: &SessionAt,
    change: SessionChange,
) -> Result<Versioned<Session>> {
    let (site, session) = (&at.site, &at.session);
    let view = server.app.change_session(caller, site, session, change);
    Ok(versioned(view.await?))
}

/// The last of what a session's app said, of its newest start.
#[utoipa::path(
    get, path = paths::SESSION_LOG, tag = "sessions", params(SessionAt),
    responses((status = 200, description = "The end of its log.", body = SessionLog))
)]
async fn session_log(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SessionAt>,
) -> Result<Json<SessionLog>> {
    let text = server.app.session_log(&caller, &at.site, &at.session);
    Ok(Json(SessionLog { text: text.await? }))
}

/// Who came to a session, the newest first, and why those came whom it was not shared with.
#[utoipa::path(
    get, path = paths::SESSION_VISITS, tag = "sessions", params(SessionAt),
    responses((status = 200, description = "Who came.", body = VisitList))
)]
async fn session_visits(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SessionAt>,
) -> Result<Json<VisitList>> {
    let (site, session) = (&at.site, &at.session);
    let opened = server.app.session_visits(&caller, site, session).await?;
    let names = names(&opened.directory);
    let shown = |view: sessions::VisitView| Visit {
        id: view.visit.id,
        person: names.person(view.visit.person),
        access: view.visit.access,
        reason: view.visit.reason,
        began: view.visit.began,
        is_open: view.is_open,
    };
    let items = opened.visits.into_iter().map(shown).collect();
    Ok(Json(VisitList { items }))
}

/// Be let in to a session: one's own, one that is shared with one, or for a reason that its owner reads.
///
/// The answer is an address for one browser. It is good once, for a minute.
#[utoipa::path(
    post, path = paths::SESSION_VISITS, tag = "sessions", params(SessionAt), request_body = NewVisit,
    responses((status = 200, description = "The way in.", body = WayIn))
)]
async fn visit_session(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SessionAt>,
    Body(visit): Body<NewVisit>,
) -> Result<Json<WayIn>> {
    let app = &server.app;
    let seen = app.get_session(&caller, &at.site, &at.session).await?;
    let invited = app.invite(&caller, &seen.session.label, visit.reason);
    let to = hop::wanted(visit.to.as_deref());
    let url = hop::way_in(&server.visits, &invited.await?, &to);
    let url = url.ok_or_else(|| Failure::new(Code::ObjectNotFound))?;
    Ok(Json(WayIn { url }))
}

/// What can be started at a site.
#[utoipa::path(
    get, path = paths::SESSION_PROFILES, tag = "sessions", params(SiteAt),
    responses((status = 200, description = "The profiles for sessions.", body = ProfileList))
)]
async fn session_profiles(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
) -> Result<Json<ProfileList>> {
    let profiles = server.app.session_profiles(&caller, &at.site).await?;
    let shown = |view: sessions::ProfileView| {
        Some(Profile {
            name: view.name,
            title: view.profile.title,
            wishes: view.profile.wishes,
            session: view.profile.session?,
            app: view.app,
            paused: view.pause.map(|pause| Paused {
                since: pause.since,
                said: pause.said,
            }),
        })
    };
    let items = profiles.into_iter().filter_map(shown).collect();
    Ok(Json(ProfileList { items }))
}

/// Let a profile be started again that was paused because it failed for several people.
#[utoipa::path(
    post, path = paths::SESSION_PROFILE_RESUME, tag = "sessions", params(SessionProfileAt),
    responses((status = 204, description = "It can be started again."))
)]
async fn resume_session_profile(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SessionProfileAt>,
) -> Result<StatusCode> {
    let resumed = server.app.resume_profile(&caller, &at.site, &at.profile);
    resumed.await?;
    Ok(StatusCode::NO_CONTENT)
}

fn versioned(view: SessionView) -> Versioned<Session> {
    let version = view.session.version;
    Versioned(shown(view), version)
}

fn shown(view: SessionView) -> Session {
    let names = names(&view.directory);
    let is_given_up = view.is_given_up();
    let SessionView {
        session,
        url,
        workload,
        run,
        reason,
        idle_until,
        is_borrowed,
        starts,
        used,
        ..
    } = view;
    let live = run.filter(|run| !run.state.is_over());
    let wishes = workload.as_ref().map(|job| job.ask.wishes.as_slice());
    let ends = live.as_ref().map(|run| Ends {
        at: run.until,
        by: run.ends_by(wishes.and_then(|wishes| wishes.get(run.wish))),
    });
    let node = live.and_then(|run| Some(names.resource(run.pieces.first()?.node)));
    Session {
        id: session.id,
        site: names.site(session.site),
        owner: names.person(session.owner),
        name: session.name,
        project: session.project.map(|id| names.project(id)),
        profile: session.profile,
        environment: session.environment,
        inside: session.inside,
        state: session.state,
        since: session.since,
        said: session.said,
        waits: reason.map(waits),
        url,
        workload: workload.map(|job| job.number),
        node,
        ends,
        shared: shared(&session.shared, &names),
        active_at: session.active_at,
        idle_until,
        is_warned: session.warned_at.is_some(),
        kept_until: session.kept_until,
        lends_since: session.lends_since,
        is_borrowed,
        used: used.map(|used| Used {
            cpu_s: used.cpu_us / 1_000_000,
            memory_mib: used.memory_bytes >> 20,
            memory_peak_mib: used.memory_peak_bytes >> 20,
        }),
        starts: starts.into_iter().map(start).collect(),
        is_given_up,
        created_at: session.created_at,
        version: session.version,
    }
}

fn shared(
    with: &std::collections::BTreeMap<berth_model::PersonId, model::Access>,
    names: &Names,
) -> Vec<SharedWith> {
    let one = |(person, access): (&berth_model::PersonId, &model::Access)| SharedWith {
        person: names.person(*person),
        access: *access,
    };
    with.iter().map(one).collect()
}

fn start(start: model::Start) -> Start {
    Start {
        asked_at: start.asked_at,
        is_automatic: start.is_automatic,
        ready_at: start.ready_at,
        ended_at: start.ended_at,
        has_failed: start.has_failed,
        said: start.said,
    }
}
