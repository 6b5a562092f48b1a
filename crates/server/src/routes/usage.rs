//! How much of a site was used; of every site, in sums.

use axum::Json;
use axum::extract::State;
use berth_api::names::{Names, SiteRef};
use berth_api::paths;
use berth_api::usage::{
    AllUsage, AllUsageQuery, Bucket, LeadBar, LeadQuantile, LeadTimes, Outcomes, PeopleUsage,
    PersonUsage, ProjectUsage, ProjectsUsage, RefusalCount, SiteTotals, TypeUsage, Usage,
    UsageBucket, UsageFigures, UsageQuery, UsageRest, UsageSeconds, UsageShare, WeekUsage,
};
use berth_app::usage::{Figures, Ranking, Seconds, Share, SiteUsage, UsageRequest};
use berth_engine::usage::{self as engine, Step};
use berth_model::Span;
use jiff::SignedDuration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::SiteAt;
use crate::failure::Result;
use crate::request::{Path, Query, Signed};
use crate::server::Server;
use crate::shown::names;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(get_usage))
        .routes(routes!(get_all_usage))
}

/// How much of the site was used, by whom and when, and what became of bookings.
///
/// A resource is used while it, or something above it, is taken as a whole; by their share while amounts of it are;
/// and as far as its parts are while only those are taken. The site's admins see all of it. Members ask for what is
/// theirs, with `mine`.
#[utoipa::path(
    get, path = paths::USAGE, tag = "usage", params(SiteAt, UsageQuery),
    responses((status = 200, description = "The figures.", body = Usage))
)]
async fn get_usage(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<UsageQuery>,
) -> Result<Json<Usage>> {
    let request = UsageRequest {
        from: query.from.map(|from| from.get()),
        to: query.to.map(|to| to.get()),
        step: match query.bucket {
            Bucket::Hour => Step::Hour,
            Bucket::Day => Step::Day,
            Bucket::Week => Step::Week,
        },
        kind: query.kind,
        mine: query.mine,
    };
    let found = server.app.usage(&caller, &at.site, &request).await?;
    Ok(Json(shown(found, query.bucket, query.mine)))
}

/// How much of every site was used, in sums.
#[utoipa::path(
    get, path = paths::ALL_USAGE, tag = "usage", params(AllUsageQuery),
    responses((status = 200, description = "The sums, by the sites' names.", body = AllUsage))
)]
async fn get_all_usage(
    State(server): State<Server>,
    Signed(caller): Signed,
    Query(query): Query<AllUsageQuery>,
) -> Result<Json<AllUsage>> {
    let (from, to) = (
        query.from.map(|from| from.get()),
        query.to.map(|to| to.get()),
    );
    let (span, found) = server.app.usage_of_all(&caller, from, to).await?;
    Ok(Json(AllUsage {
        from: span.start(),
        to: span.end(),
        sites: found.iter().map(totals).collect(),
    }))
}

fn shown(found: SiteUsage, bucket: Bucket, mine: bool) -> Usage {
    let names = names(&found.directory);
    let spans = found.buckets.iter();
    Usage {
        site: SiteRef::from(&found.site),
        from: found.span.start(),
        to: found.span.end(),
        bucket,
        mine,
        kind: found.kind.map(|kind| names.kind(kind)),
        buckets: spans.map(bucket_of).collect(),
        all: figures(&found.all),
        types: found
            .kinds
            .iter()
            .map(|(kind, of)| TypeUsage {
                kind: names.kind(*kind),
                figures: figures(of),
            })
            .collect(),
        people: people(&found, &names),
        projects: projects(&found, &names),
        week: found.week.iter().map(seconds).collect(),
        lead_times: lead_times(&found.leads),
        outcomes: outcomes(&found),
        refusals: found.refusals.map(|all| {
            let reason = |one: berth_app::usage::RefusalCount| RefusalCount {
                code: one.code,
                rule: one.rule,
                count: one.count,
            };
            all.into_iter().map(reason).collect()
        }),
        time_zone: found.site.time_zone,
    }
}

fn bucket_of(span: &Span) -> UsageBucket {
    UsageBucket {
        start: span.start(),
        end: span.end(),
    }
}

fn seconds(seconds: &Seconds) -> UsageSeconds {
    UsageSeconds {
        available_s: seconds.available,
        used_s: seconds.used,
    }
}

fn figures(of: &Figures) -> UsageFigures {
    UsageFigures {
        resources: count(of.resources),
        available_s: of.total.available,
        used_s: of.total.used,
        utilisation: seconds(&of.total).utilisation(),
        by_bucket: of.buckets.iter().map(seconds).collect(),
    }
}

fn share(share: &Share, found: &SiteUsage) -> UsageShare {
    let mut by_bucket = share.used_s.clone();
    by_bucket.resize(found.buckets.len(), 0.0);
    UsageShare {
        used_s: share.total_s().round() as u64,
        used_s_by_bucket: by_bucket.iter().map(|used| used.round() as u64).collect(),
        bookings: share.bookings,
    }
}

fn rest<K>(ranking: &Ranking<K>, found: &SiteUsage) -> UsageRest {
    UsageRest {
        count: count(ranking.others),
        share: share(&ranking.rest, found),
    }
}

fn people(found: &SiteUsage, names: &Names) -> PeopleUsage {
    let person = |(id, of): &(_, Share)| PersonUsage {
        person: names.person(*id),
        share: share(of, found),
    };
    PeopleUsage {
        items: found.people.first.iter().map(person).collect(),
        rest: rest(&found.people, found),
    }
}

fn projects(found: &SiteUsage, names: &Names) -> ProjectsUsage {
    let project = |(id, of): &(Option<_>, Share)| ProjectUsage {
        project: id.map(|id| names.project(id)),
        share: share(of, found),
    };
    ProjectsUsage {
        items: found.projects.first.iter().map(project).collect(),
        rest: rest(&found.projects, found),
    }
}

fn lead_times(leads: &engine::LeadTimes) -> LeadTimes {
    let quantiles = leads.quantiles.iter().map(|(percent, lead)| LeadQuantile {
        percent: *percent,
        lead_s: whole(*lead),
    });
    let bars = leads.bars.iter().map(|(below, bookings)| LeadBar {
        below_s: below.map(whole),
        bookings: count(*bookings),
    });
    LeadTimes {
        bookings: count(leads.count),
        quantiles: quantiles.collect(),
        histogram: bars.collect(),
    }
}

fn outcomes(found: &SiteUsage) -> Outcomes {
    let outcomes = found.outcomes;
    Outcomes {
        bookings: outcomes.bookings,
        no_shows: outcomes.no_shows,
        failed: outcomes.failed,
        cancelled: outcomes.cancelled,
        cancelled_late: outcomes.cancelled_late,
        rejected: outcomes.rejected,
    }
}

fn totals(found: &SiteUsage) -> SiteTotals {
    let refusals = found.refusals.iter().flatten();
    SiteTotals {
        site: SiteRef::from(&found.site),
        resources: count(found.all.resources),
        available_s: found.all.total.available,
        used_s: found.all.total.used,
        utilisation: seconds(&found.all.total).utilisation(),
        weeks: found
            .buckets
            .iter()
            .zip(&found.all.buckets)
            .map(week)
            .collect(),
        people: count(found.people.first.len() + found.people.others),
        outcomes: outcomes(found),
        refusals: refusals.map(|one| one.count).sum(),
    }
}

fn week((span, of): (&Span, &Seconds)) -> WeekUsage {
    WeekUsage {
        bucket: bucket_of(span),
        seconds: seconds(of),
    }
}

fn count(number: usize) -> u64 {
    number as u64
}

fn whole(time: SignedDuration) -> u64 {
    time.as_secs().unsigned_abs()
}
