//! What was asked of a site's queue, as a history that can be replayed.

use std::collections::BTreeMap;

use berth_api::page::{Limit, PageQuery};
use berth_api::reservations::ReservationQuery;
use berth_api::resources::ResourceQuery;
use berth_api::workloads::{QueueNode, Run, Workload, WorkloadQuery};
use berth_model::attribute::{AttributeValue, Comparison};
use berth_model::reservation::State;
use berth_model::workload::{Class, Gpus, Near};
use berth_sim::trace::history::{
    ClassEntry, FleetLine, GpuEntry, Line, NearEntry, NodeEntry, PartEntry, ProjectEntry,
    ReservationLine, VERSION, WorkloadLine,
};
use jiff::{SignedDuration, Timestamp};

use crate::context::Context;

const MIB: u64 = 1 << 20;
const NO_PROJECT: &str = "none";

pub async fn read(context: &Context, since: SignedDuration) -> anyhow::Result<String> {
    let (client, site) = (&context.client, context.site()?);
    let from = context.times.now.timestamp() - since;
    let limit = Limit::LARGEST;
    let nodes = berth_api::client::all_pages(async |cursor| {
        client.queue_nodes(site, &PageQuery { limit, cursor }).await
    })
    .await?;
    let resources = berth_api::client::all_pages(async |cursor| {
        let query = ResourceQuery {
            limit,
            cursor,
            ..ResourceQuery::default()
        };
        client.resources(site, &query).await
    })
    .await?;
    let models: BTreeMap<String, String> = resources
        .iter()
        .filter_map(|resource| {
            let of = |name: &str| {
                resource
                    .attributes
                    .iter()
                    .find(|(key, _)| key.as_str() == name)
            };
            let (_, value) = of("mig_profile").or_else(|| of("gpu_model"))?;
            Some((resource.name.to_string(), value.to_string()))
        })
        .collect();
    let settings = client.queue_settings(site).await?.settings;
    let mut lines = vec![Line::Fleet(FleetLine {
        version: VERSION,
        site: site.to_string(),
        nodes: nodes.iter().map(|node| entry(node, &models)).collect(),
        projects: settings
            .shares
            .iter()
            .map(|(name, weight)| ProjectEntry {
                name: name.to_string(),
                weight: f64::from(weight.get()),
            })
            .collect(),
    })];
    let workloads = berth_api::client::all_pages(async |cursor| {
        let query = WorkloadQuery {
            state: Some("all".to_owned()),
            limit,
            cursor,
            ..WorkloadQuery::default()
        };
        client.workloads(site, &query).await
    })
    .await?;
    let asked = workloads
        .iter()
        .filter(|one| one.since >= from || one.ended_at.is_none_or(|ended| ended >= from));
    lines.extend(asked.filter_map(workload).map(Line::Workload));
    let booked = berth_api::client::all_pages(async |cursor| {
        let query = ReservationQuery {
            limit,
            cursor,
            ..ReservationQuery::default()
        };
        client.reservations(site, &query).await
    })
    .await?;
    for one in booked.iter().filter(|one| one.end > from) {
        let named = one
            .resources
            .iter()
            .map(|taken| taken.resource.name.as_str());
        let on: Vec<PartEntry> = named.filter_map(|name| part(name, &nodes)).collect();
        // What was given up, refused or never granted took nobody's time.
        let stood = matches!(
            one.state,
            State::Confirmed | State::Starting | State::Active | State::Ending | State::Done
        );
        if !on.is_empty() && stood {
            lines.push(Line::Reservation(ReservationLine {
                reservation: one.id.to_string(),
                from: one.start,
                to: one.end,
                known: one.created_at.min(one.start),
                person: Some(one.owner.login.clone()),
                project: Some(
                    one.project
                        .as_ref()
                        .map_or(NO_PROJECT.to_owned(), |project| project.name.clone()),
                ),
                on,
            }));
        }
    }
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    Ok(lines.join("\n"))
}

fn entry(node: &QueueNode, models: &BTreeMap<String, String>) -> NodeEntry {
    let gpus = node.gpus.iter().map(|gpu| GpuEntry {
        model: models
            .get(&gpu.gpu.name)
            .cloned()
            .unwrap_or_else(|| "gpu".to_owned()),
        count: 1,
        memory_bytes: 0,
        link: None,
    });
    NodeEntry {
        name: node.node.name.clone(),
        cpu_milli: node.cores_milli,
        memory_bytes: node.memory_mib * MIB,
        rack: None,
        gpus: gpus.collect(),
    }
}

/// A node, or one of its GPUs. What is booked of anything else does not stand in the queue's way here.
fn part(name: &str, nodes: &[QueueNode]) -> Option<PartEntry> {
    let whole = |node: &QueueNode| PartEntry {
        node: node.node.name.clone(),
        cpu_milli: None,
        memory_bytes: None,
        gpus: None,
    };
    if let Some(node) = nodes.iter().find(|node| node.node.name == name) {
        return Some(whole(node));
    }
    nodes.iter().find_map(|node| {
        let number = node.gpus.iter().position(|gpu| gpu.gpu.name == name)?;
        Some(PartEntry {
            cpu_milli: Some(0),
            memory_bytes: Some(0),
            gpus: Some(vec![u16::try_from(number).ok()?]),
            ..whole(node)
        })
    })
}

fn workload(one: &Workload) -> Option<WorkloadLine> {
    let run: Option<&Run> = one.runs.last();
    let wish = one.wishes.get(run.map_or(0, |run| run.wish as usize))?;
    let task = &wish.task;
    let (gpus, thousandths) = match &task.gpus {
        None => (None, None),
        Some(Gpus::Whole { count, .. } | Gpus::Slice { count, .. }) => (Some(count.get()), None),
        Some(Gpus::Share { thousandths, .. }) => (None, Some(thousandths.get())),
    };
    let mut models: Vec<String> = task
        .gpus
        .iter()
        .flat_map(Gpus::with)
        .filter(|wanted| {
            wanted.attribute.as_str() == "gpu_model" && wanted.comparison == Comparison::Equal
        })
        .map(|wanted| match &wanted.value {
            AttributeValue::Text(text) => text.clone(),
            other => other.to_string(),
        })
        .collect();
    if let Some(Gpus::Slice { profile, .. }) = &task.gpus {
        models = vec![profile.to_string()];
    }
    let start: Option<Timestamp> = run.map(|run| run.began);
    let end = run.and_then(|run| run.ended_at).or(one.ended_at);
    Some(WorkloadLine {
        workload: one.number.to_string(),
        person: one.owner.login.clone(),
        project: one
            .project
            .as_ref()
            .map_or(NO_PROJECT.to_owned(), |project| project.name.clone()),
        class: match one.class {
            Class::Opportunistic => ClassEntry::Opportunistic,
            Class::Guaranteed => ClassEntry::Guaranteed,
        },
        level: 0,
        submit: one.since.min(start.unwrap_or(one.since)),
        start,
        end,
        limit_s: wish.limit.as_secs().unsigned_abs().max(1),
        tasks: wish.tasks.get(),
        near: match wish.near.max(wish.at_least) {
            Near::Anywhere => NearEntry::Anywhere,
            Near::Rack => NearEntry::Rack,
            Near::Node => NearEntry::Node,
            Near::Link => NearEntry::Link,
        },
        cpu_milli: task.cores_milli.get(),
        memory_bytes: task.memory_mib.get() * MIB,
        gpus,
        gpu_thousandths: thousandths,
        models,
        gpu_memory_bytes: 0,
    })
}
