//! `berth free`: what can be booked, and when.

use std::collections::HashMap;

use berth_api::Page;
use berth_api::attributes::Where;
use berth_api::calendar::{FreeQuery, FreeResource, FreeSpan};
use berth_api::client::{Error, all_pages};
use berth_api::moment::Moment;
use berth_api::page::Limit;
use berth_api::reference::{ResourceReference, SiteReference, TypeReference};
use berth_api::resources::ResourceQuery;
use berth_model::{ResourceId, Status};
use clap::Args;
use jiff::Timestamp;

use crate::context::Context;
use crate::table::{Column, Table};
use crate::times::{Times, Until};

#[derive(Debug, Args)]
pub struct Free {
    /// From when on
    #[arg(long, value_name = "WHEN", default_value = "now")]
    from: String,
    /// Until when to look; a week, if left out
    #[arg(long, value_name = "WHEN")]
    to: Option<String>,
    /// Only stretches at least this long, as in `4h`
    #[arg(long = "for", value_name = "DURATION")]
    lasting: Option<String>,
    /// Only resources of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<TypeReference>,
    /// Only resources that meet this, as in `gpus>=4` or `gpu_model=A100`; repeat it for several
    #[arg(long = "where", value_name = "REQUIREMENT")]
    requirements: Vec<Where>,
    /// Only this resource and what is below it
    #[arg(long, value_name = "RESOURCE")]
    under: Option<ResourceReference>,
}

/// How far the future is looked at where nobody says.
const HORIZON: &str = "1w";
/// More stretches than this do not help to choose; `-o json` has them all.
const SPANS_SHOWN: usize = 3;

pub async fn run(free: Free, context: &Context) -> anyhow::Result<()> {
    let site = context.site()?;
    let query = query(free, &context.times)?;
    let found = Page::whole(read(context, site, &query).await?);
    context.out.show(&found, |screen| {
        let columns = [
            Column::left("RESOURCE"),
            Column::left("TYPE"),
            Column::left("STATUS"),
            Column::left("FREE").shrinks(1),
        ];
        let mut table = Table::new(columns, "No resource matches.");
        for resource in &found.items {
            table.row([
                resource.resource.name.clone(),
                resource.resource.type_name.clone(),
                resource.status.to_string(),
                stretches(resource, &context.times),
            ]);
        }
        context.times.render(&table, screen)
    })
}

fn query(free: Free, times: &Times) -> anyhow::Result<FreeQuery> {
    let until = free
        .to
        .as_deref()
        .map_or(Until::Length(HORIZON), Until::End);
    let (from, to) = times.read_span(&free.from, until)?;
    let start = from.get().to_zoned(times.zone().clone());
    Ok(FreeQuery {
        from: Some(from),
        to: Some(to),
        lasting: free
            .lasting
            .map(|text| times.read_period(&text, &start))
            .transpose()?,
        kind: free.kind,
        requirements: free.requirements.try_into()?,
        under: free.under,
        ..FreeQuery::default()
    })
}

async fn read(
    context: &Context,
    site: &SiteReference,
    query: &FreeQuery,
) -> Result<Vec<FreeResource>, Error> {
    all_pages(async |cursor| {
        let query = FreeQuery {
            limit: Limit::LARGEST,
            cursor,
            ..query.clone()
        };
        context.client.free(site, &query).await
    })
    .await
}

fn stretches(resource: &FreeResource, times: &Times) -> String {
    if resource.status != Status::Active {
        return "takes no bookings".to_owned();
    }
    let shown: Vec<String> = resource
        .free
        .iter()
        .take(SPANS_SHOWN)
        .map(|free| stretch(free, times))
        .collect();
    match (
        shown.is_empty(),
        resource.free.len().saturating_sub(SPANS_SHOWN),
    ) {
        (true, _) => "not in this time".to_owned(),
        (false, 0) => shown.join("; "),
        (false, more) => format!("{}; and {more} more", shown.join("; ")),
    }
}

fn stretch(free: &FreeSpan, times: &Times) -> String {
    let span = times.span(free.start, free.end);
    match free.amount {
        Some(amount) => format!("up to {}, {span}", amount.get()),
        None => span,
    }
}

/// Whether a resource is free now, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    Free { until: Option<Timestamp> },
    Busy { until: Option<Timestamp> },
}

impl Outlook {
    fn of(resource: &FreeResource, from: Timestamp) -> Self {
        match resource.free.first() {
            Some(first) if first.start <= from => Outlook::Free {
                until: resource.free_until,
            },
            first => Outlook::Busy {
                until: first.map(|first| first.start),
            },
        }
    }

    pub fn words(self, times: &Times) -> String {
        match self {
            Outlook::Free { until: None } => "free".to_owned(),
            Outlook::Free { until: Some(at) } => format!("free until {}", times.moment(at)),
            Outlook::Busy { until: None } => "busy".to_owned(),
            Outlook::Busy { until: Some(at) } => format!("busy until {}", times.moment(at)),
        }
    }
}

/// The outlook of the resources that `of` asks for. Someone who may see the catalogue but not when things are free
/// gets none; the list itself then says nothing about it.
pub async fn outlooks(
    context: &Context,
    site: &SiteReference,
    of: &ResourceQuery,
) -> HashMap<ResourceId, Outlook> {
    let ahead = context.times.read_span("now", Until::Length(HORIZON)).ok();
    let query = FreeQuery {
        from: ahead.map(|(from, _)| from),
        to: ahead.map(|(_, to)| to),
        kind: of.kind.clone(),
        requirements: of.requirements.clone(),
        under: of.under.clone(),
        ..FreeQuery::default()
    };
    let from = query.from.map_or(Timestamp::MIN, Moment::get);
    let found = read(context, site, &query).await.unwrap_or_default();
    found
        .into_iter()
        .map(|resource| (resource.resource.id, Outlook::of(&resource, from)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resource(free: serde_json::Value, free_until: Option<&str>) -> FreeResource {
        serde_json::from_value(json!({
            "resource": {"id": "res_01kc3v9xwbe8rv5w2n9q3m7t4h", "name": "gpu-01", "type": "gpu"},
            "title": null, "status": "ACTIVE", "free": free, "free_until": free_until
        }))
        .unwrap()
    }

    #[test]
    fn a_resource_is_free_or_busy_until_something() {
        let now = Times::fixed().now.timestamp();
        let words = |resource: &FreeResource| Outlook::of(resource, now).words(&Times::fixed());
        let span = |start: &str, end: &str| json!([{"start": start, "end": end}]);
        let until_noon = span("2026-11-15T09:28:00Z", "2026-11-15T11:00:00Z");
        assert_eq!(
            words(&resource(until_noon.clone(), Some("2026-11-15T11:00:00Z"))),
            "free until today 12:00"
        );
        assert_eq!(words(&resource(until_noon, None)), "free");
        let from_noon = span("2026-11-15T11:00:00Z", "2026-11-16T11:00:00Z");
        assert_eq!(words(&resource(from_noon, None)), "busy until today 12:00");
        assert_eq!(words(&resource(json!([]), None)), "busy");
    }

    #[test]
    fn long_lists_of_stretches_are_cut() {
        let one = json!({"start": "2026-11-15T11:00:00Z", "end": "2026-11-15T12:00:00Z"});
        let shown = stretches(
            &resource(json!([one, one, one, one, one]), None),
            &Times::fixed(),
        );
        assert!(shown.ends_with("; and 2 more"), "{shown}");
    }

    #[test]
    fn a_week_is_searched_unless_said_otherwise() {
        let free = Free {
            from: "tomorrow 09:00".into(),
            to: None,
            lasting: Some("4h".into()),
            kind: None,
            requirements: vec!["gpus>=4".parse().unwrap()],
            under: None,
        };
        let query = query(free, &Times::fixed()).unwrap();
        assert_eq!(query.from.unwrap().to_string(), "2026-11-16T08:00:00Z");
        assert_eq!(query.to.unwrap().to_string(), "2026-11-23T08:00:00Z");
        assert_eq!(query.lasting.unwrap().to_string(), "PT4H");
    }
}
