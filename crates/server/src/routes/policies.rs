//! Policies: of a site, of the whole installation, and what a hypothetical booking would meet.

use axum::Json;
use axum::extract::State;
use berth_api::paths;
use berth_api::policies::{
    BrokenBooking, Finding, GlobalPolicyChangeQuery, GlobalScope, NewPolicy, PartQuery,
    PolicyChange, PolicyChangeQuery, PolicyFindings, PolicyList, PolicyTest, PolicyVersion,
};
use berth_api::reservations::Reservation;
use berth_app::Directory;
use berth_app::policies::{self, PolicyAt, Tested, Version};
use berth_app::settlement::Mode;
use berth_engine::policy::Approval;
use berth_model::policy::{Approver, Outcome};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{GlobalPolicyAt, SiteAt};
use super::reservations::item;
use crate::failure::Result;
use crate::openapi::IfMatchOptionalHeader;
use crate::request::{Body, IfMatch, Path, Query, Signed};
use crate::server::Server;
use crate::shown::{breaches, names, value};

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_policies))
        .routes(routes!(put_policy, remove_policy))
        .routes(routes!(list_policy_history))
        .routes(routes!(test_policies))
        .routes(routes!(list_global_policies))
        .routes(routes!(put_global_policy, remove_global_policy))
        .routes(routes!(list_global_policy_history))
}

/// Every policy that holds in the site: its own, and the ceilings and defaults of the whole installation.
#[utoipa::path(
    get, path = paths::POLICIES, tag = "policies", params(SiteAt),
    responses((status = 200, description = "The policies, from wide to narrow.", body = PolicyList))
)]
async fn list_policies(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
) -> Result<Json<PolicyList>> {
    let (found, directory) = server.app.list_policies(&caller, &at.site).await?;
    Ok(Json(list(found, &directory)))
}

/// Set the policy of a part of the site's bookings, whole, as its next version.
///
/// It may tighten what binds it and never loosen it. Standing bookings stay as they are; the answer lists those that
/// do not keep it, and a dry run does only that.
#[utoipa::path(
    put, path = paths::POLICY, tag = "policies", params(SiteAt, PolicyChangeQuery, IfMatchOptionalHeader),
    request_body = NewPolicy,
    responses((status = 200, description = "What came of it, or would.", body = PolicyChange))
)]
async fn put_policy(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<PolicyChangeQuery>,
    version: IfMatch,
    Body(body): Body<NewPolicy>,
) -> Result<Json<PolicyChange>> {
    let (version, mode) = (version.optional(), mode(query.dry_run));
    let reason = body.reason.or_else(|| query.reason.clone());
    let at = PolicyAt::Site(at.site, query.part());
    let set = server
        .app
        .set_policy(&caller, &at, Some(&body.policy), version, reason, mode);
    Ok(Json(changed(set.await?)))
}

/// Take a policy away. What it asked is then left to the policies around it.
#[utoipa::path(
    delete, path = paths::POLICY, tag = "policies", params(SiteAt, PolicyChangeQuery, IfMatchOptionalHeader),
    responses((status = 200, description = "What came of it, or would.", body = PolicyChange))
)]
async fn remove_policy(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<PolicyChangeQuery>,
    version: IfMatch,
) -> Result<Json<PolicyChange>> {
    let (version, mode) = (version.optional(), mode(query.dry_run));
    let at = PolicyAt::Site(at.site, query.part());
    let removed = server
        .app
        .set_policy(&caller, &at, None, version, query.reason, mode);
    Ok(Json(changed(removed.await?)))
}

/// Every version of the policy of a part of the site's bookings, the newest first.
#[utoipa::path(
    get, path = paths::POLICY_HISTORY, tag = "policies", params(SiteAt, PartQuery),
    responses((status = 200, description = "The versions; none if there never was a policy.", body = PolicyList))
)]
async fn list_policy_history(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<PartQuery>,
) -> Result<Json<PolicyList>> {
    let at = PolicyAt::Site(at.site, query.part());
    let (found, directory) = server.app.policy_history(&caller, &at).await?;
    Ok(Json(list(found, &directory)))
}

/// What the policies make of a hypothetical booking, rule by rule. Whether there is room is not asked.
#[utoipa::path(
    post, path = paths::POLICY_TEST, tag = "policies", params(SiteAt),
    request_body = PolicyTest,
    responses((status = 200, description = "Every rule, and what follows.", body = PolicyFindings))
)]
async fn test_policies(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Body(body): Body<PolicyTest>,
) -> Result<Json<PolicyFindings>> {
    let test = policies::PolicyTest {
        span: body.span()?,
        items: body.resources.into_iter().map(item).collect(),
        project: body.project,
        owner: body.on_behalf_of,
    };
    let tested = server.app.test_policies(&caller, &at.site, &test).await?;
    Ok(Json(findings(tested)))
}

/// The ceilings, which bind every site, and the defaults, which hold where a site says nothing.
#[utoipa::path(
    get, path = paths::GLOBAL_POLICIES, tag = "policies",
    responses((status = 200, description = "Those that are set.", body = PolicyList))
)]
async fn list_global_policies(
    State(server): State<Server>,
    Signed(caller): Signed,
) -> Result<Json<PolicyList>> {
    let (found, directory) = server.app.list_global_policies(&caller).await?;
    Ok(Json(list(found, &directory)))
}

/// Set the ceilings or the defaults of all sites, whole, as their next version.
///
/// What sites say that is looser than a ceiling stays as it is and loses its effect.
#[utoipa::path(
    put, path = paths::GLOBAL_POLICY, tag = "policies",
    params(GlobalPolicyAt, GlobalPolicyChangeQuery, IfMatchOptionalHeader),
    request_body = NewPolicy,
    responses((status = 200, description = "What came of it, or would.", body = PolicyChange))
)]
async fn put_global_policy(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<GlobalPolicyAt>,
    Query(query): Query<GlobalPolicyChangeQuery>,
    version: IfMatch,
    Body(body): Body<NewPolicy>,
) -> Result<Json<PolicyChange>> {
    let (version, mode) = (version.optional(), mode(query.dry_run));
    let reason = body.reason.or(query.reason);
    let at = global(at.scope);
    let set = server
        .app
        .set_policy(&caller, &at, Some(&body.policy), version, reason, mode);
    Ok(Json(changed(set.await?)))
}

/// Take the ceilings or the defaults away.
#[utoipa::path(
    delete, path = paths::GLOBAL_POLICY, tag = "policies",
    params(GlobalPolicyAt, GlobalPolicyChangeQuery, IfMatchOptionalHeader),
    responses((status = 200, description = "What came of it, or would.", body = PolicyChange))
)]
async fn remove_global_policy(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<GlobalPolicyAt>,
    Query(query): Query<GlobalPolicyChangeQuery>,
    version: IfMatch,
) -> Result<Json<PolicyChange>> {
    let (version, mode) = (version.optional(), mode(query.dry_run));
    let at = global(at.scope);
    let removed = server
        .app
        .set_policy(&caller, &at, None, version, query.reason, mode);
    Ok(Json(changed(removed.await?)))
}

/// Every version of the ceilings or the defaults, the newest first.
#[utoipa::path(
    get, path = paths::GLOBAL_POLICY_HISTORY, tag = "policies", params(GlobalPolicyAt),
    responses((status = 200, description = "The versions; none if they never were set.", body = PolicyList))
)]
async fn list_global_policy_history(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<GlobalPolicyAt>,
) -> Result<Json<PolicyList>> {
    let (found, directory) = server
        .app
        .policy_history(&caller, &global(at.scope))
        .await?;
    Ok(Json(list(found, &directory)))
}

fn mode(dry_run: bool) -> Mode {
    if dry_run { Mode::DryRun } else { Mode::Apply }
}

fn global(scope: GlobalScope) -> PolicyAt {
    match scope {
        GlobalScope::Ceilings => PolicyAt::Ceilings,
        GlobalScope::Defaults => PolicyAt::Defaults,
    }
}

fn list(found: Vec<Version>, directory: &Directory) -> PolicyList {
    let items = found.into_iter().map(|one| version(one, directory));
    PolicyList {
        items: items.collect(),
    }
}

fn version(of: Version, directory: &Directory) -> PolicyVersion {
    PolicyVersion {
        scope: of.scope,
        version: of.version,
        policy: of.policy,
        set_by: of.set_by.map(|by| names(directory).person(by)),
        set_at: of.set_at,
        reason: of.reason,
    }
}

fn changed(change: policies::PolicyChange) -> PolicyChange {
    let names = names(&change.directory);
    let breaks = change.breaks.into_iter().map(|broken| BrokenBooking {
        reservation: Reservation::new(broken.reservation, &names),
        breaches: breaches(&broken.breaches),
    });
    PolicyChange {
        applied: change.applied,
        breaks: breaks.collect(),
        breaks_count: change.breaks_count,
        overruled: change
            .overruled
            .iter()
            .map(|(site, looser)| format!("{site}, {}: {looser}", looser.scope))
            .collect(),
        now: version(change.now, &change.directory),
    }
}

fn findings(tested: Tested) -> PolicyFindings {
    let findings = tested.findings.iter().map(|finding| Finding {
        rule: finding.rule,
        value: value(&finding.value),
        from: finding.from.clone(),
        holds: finding.breaches.is_empty(),
        detail: finding.to_string(),
    });
    let accepted = tested.verdict.as_ref().ok();
    let refused = tested.verdict.as_ref().err();
    PolicyFindings {
        accepted: accepted.is_some(),
        findings: findings.collect(),
        instead: refused.and_then(|refusal| refusal.instead).map(Into::into),
        approvals: accepted
            .iter()
            .flat_map(|accepted| accepted.approvals.iter().map(asked))
            .collect(),
        check_in_by: accepted.and_then(|accepted| accepted.release_at),
        set_up: accepted
            .and_then(|accepted| accepted.buffer_before)
            .map(Into::into),
        clean_up: accepted
            .and_then(|accepted| accepted.buffer_after)
            .map(Into::into),
    }
}

/// `the site's admins must approve it by …, or it is rejected (policy of the site)`.
fn asked(approval: &Approval) -> String {
    let approvers: Vec<String> = approval
        .rule
        .approvers
        .iter()
        .map(Approver::to_string)
        .collect();
    let otherwise = match approval.otherwise {
        Outcome::Approve => "approved",
        Outcome::Reject => "rejected",
    };
    format!(
        "{} must approve it by {}, or it is {otherwise} ({})",
        approvers.join(" or "),
        approval.decide_by,
        approval.from
    )
}
