//! `sinfo`: the sites somebody is a member of, as partitions, and the nodes of their queues.

use std::collections::BTreeMap;
use std::process::ExitCode;

use berth_api::reference::SiteReference;
use berth_api::workloads::{QueueGpu, QueueNode};
use berth_model::Reference;
use berth_slurm::preset::{self, with_environment};
use berth_slurm::sinfo::{self, Asked, Sinfo};
use berth_slurm::state::NodeState;
use berth_slurm::{NodeRow, PartitionRow};
use jiff::SignedDuration;

use super::rows::time_limit;
use super::want::unsaid_limit;
use super::{context, local_now, on_one_thread, partition, said, variable, version};
use crate::context::Context;
use crate::pages::whole;

pub fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let arguments = with_environment(preset::Program::Sinfo, arguments, variable);
    match sinfo::read(&arguments)? {
        Asked::Help | Asked::Usage => said(&sinfo::help()),
        Asked::Version => version(),
        Asked::List(sinfo) => {
            let context = context()?;
            said(&on_one_thread(list(&sinfo, &context))?)
        }
    }
}

/// A site as its queue knows it.
struct Floor {
    name: String,
    is_at_hand: bool,
    longest: SignedDuration,
    nodes: Vec<QueueNode>,
}

async fn list(sinfo: &Sinfo, context: &Context) -> anyhow::Result<String> {
    let client = &context.client;
    let mut floors = Vec::new();
    for (site, is_at_hand) in sites(sinfo, context).await? {
        let nodes = whole(async |query| client.queue_nodes(&site, &query).await).await?;
        // A site without a queue is no partition.
        if nodes.items.is_empty() && !is_at_hand {
            continue;
        }
        let settings = client.queue_settings(&site).await?.settings;
        floors.push(Floor {
            name: site.to_string(),
            is_at_hand,
            longest: settings.limit_max,
            nodes: nodes.items,
        });
    }
    let now = local_now(context);
    let (partitions, nodes) = rows(&floors);
    Ok(sinfo.render(&partitions, &nodes, now.timestamp(), now.time_zone()))
}

/// By name, each with whether it is the one at hand: those that were named, or one's own.
async fn sites(sinfo: &Sinfo, context: &Context) -> anyhow::Result<Vec<(SiteReference, bool)>> {
    let me = context.client.me().await?;
    let mut sites = BTreeMap::new();
    let at_hand = match context.site_if_any() {
        None => None,
        Some(Reference::Name(name)) => Some(name.to_string()),
        Some(id @ Reference::Id(_)) => Some(context.client.site(id).await?.name.to_string()),
    };
    let own = me.memberships.into_iter().map(|one| one.site.name);
    let named = sinfo.partitions.iter().cloned();
    match sinfo.partitions.is_empty() {
        true => sites.extend(own.chain(at_hand.clone()).map(|name| (name, ()))),
        false => sites.extend(named.map(|name| (name, ()))),
    }
    let sites = sites.into_keys().map(|name| {
        let is_at_hand = at_hand.as_ref() == Some(&name);
        Ok((partition(&name)?, is_at_hand))
    });
    sites.collect()
}

fn rows(floors: &[Floor]) -> (Vec<PartitionRow>, Vec<NodeRow>) {
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    for node in floors.iter().flat_map(|floor| &floor.nodes) {
        *taken.entry(&node.node.name).or_default() += 1;
    }
    // Slurm knows nodes by their names alone, which two sites may both have given.
    let name = |floor: &Floor, node: &QueueNode| match taken.get(node.node.name.as_str()) {
        Some(2..) => format!("{}/{}", floor.name, node.node.name),
        _ => node.node.name.clone(),
    };
    let partitions = floors.iter().map(|floor| {
        let names = floor.nodes.iter().map(|node| name(floor, node)).collect();
        PartitionRow {
            is_default: floor.is_at_hand,
            time_limit: time_limit(Some(floor.longest)),
            default_time: Some(time_limit(Some(unsaid_limit(floor.longest)))),
            ..PartitionRow::open(&floor.name, names)
        }
    });
    let nodes = floors.iter().flat_map(|floor| {
        let row = |node| node_row(&name(floor, node), node);
        floor.nodes.iter().map(row).collect::<Vec<_>>()
    });
    (partitions.collect(), nodes.collect())
}

fn node_row(name: &str, node: &QueueNode) -> NodeRow {
    let cores = |milli: u64| u32::try_from(milli / 1000).unwrap_or(u32::MAX);
    let used = node.cores_milli.saturating_sub(node.cores_milli_free);
    NodeRow {
        state: state(node),
        cpus_allocated: cores(used.next_multiple_of(1000)),
        memory_allocated_mib: node.memory_mib.saturating_sub(node.memory_mib_free),
        memory_free_mib: Some(node.memory_mib_free),
        gres: gres(node, |_| true),
        gres_used: gres(node, |gpu| gpu.free < 1000),
        ..NodeRow::idle(name, cores(node.cores_milli), node.memory_mib)
    }
}

/// The GPUs of a node that are meant, by model as in `gpu:a100:2`; all of its models are named, with none of them at zero.
fn gres(node: &QueueNode, is_meant: impl Fn(&QueueGpu) -> bool) -> Option<String> {
    let mut counts: BTreeMap<Option<String>, usize> = BTreeMap::new();
    for gpu in &node.gpus {
        let model = gpu.model.as_ref();
        let model = model.map(|model| model.to_lowercase().replace(' ', "-"));
        *counts.entry(model).or_default() += usize::from(is_meant(gpu));
    }
    let parts = counts.into_iter().map(|(model, count)| match model {
        None => format!("gpu:{count}"),
        Some(model) => format!("gpu:{model}:{count}"),
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(","))
}

fn state(node: &QueueNode) -> NodeState {
    let is_untouched = node.cores_milli_free == node.cores_milli
        && node.memory_mib_free == node.memory_mib
        && node.gpus.iter().all(|gpu| gpu.free == 1000);
    if node.maintenance && node.in_service {
        NodeState::Maintenance
    } else if node.maintenance {
        // Its status says so, which moves nobody.
        match is_untouched {
            true => NodeState::Drained,
            false => NodeState::Draining,
        }
    } else if !node.in_service {
        NodeState::Down
    } else if node.reserved {
        NodeState::Reserved
    } else if is_untouched {
        NodeState::Idle
    } else if node.cores_milli_free < 1000 {
        NodeState::Allocated
    } else {
        NodeState::Mixed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, cores_free: u64, gpus_free: [u16; 2]) -> QueueNode {
        let id = "res_01kc3v9xwbe8rv5w2n9q3m7t4h";
        let gpu = |free| json!({"gpu": {"id": id, "name": "g", "type": "gpu"}, "free": free});
        serde_json::from_value(json!({
            "node": {"id": id, "name": name, "type": "node"}, "in_service": true, "reserved": false,
            "maintenance": false,
            "cores_milli": 8000, "cores_milli_free": cores_free,
            "memory_mib": 1024, "memory_mib_free": 1024, "gpus": gpus_free.map(gpu),
        }))
        .unwrap()
    }

    #[test]
    fn a_node_is_as_busy_as_its_cores_and_no_more_idle_than_its_gpus() {
        for (cores, gpus, wanted) in [
            (8000, [1000, 1000], NodeState::Idle),
            (8000, [1000, 500], NodeState::Mixed),
            (2000, [1000, 1000], NodeState::Mixed),
            (500, [1000, 1000], NodeState::Allocated),
        ] {
            assert_eq!(state(&node("n", cores, gpus)), wanted, "{cores} {gpus:?}");
        }
        let reserved = QueueNode {
            reserved: true,
            ..node("n", 8000, [1000, 1000])
        };
        assert_eq!(state(&reserved), NodeState::Reserved);
        let out = QueueNode {
            in_service: false,
            ..reserved
        };
        assert_eq!(state(&out), NodeState::Down);
        let cared_for = |in_service, free| QueueNode {
            maintenance: true,
            in_service,
            ..node("n", free, [1000, 1000])
        };
        assert_eq!(state(&cared_for(true, 8000)), NodeState::Maintenance);
        assert_eq!(state(&cared_for(false, 8000)), NodeState::Drained);
        assert_eq!(state(&cared_for(false, 4000)), NodeState::Draining);
    }

    #[test]
    fn gpus_are_counted_by_model() {
        let mut mixed = node("n", 8000, [1000, 0]);
        mixed.gpus[0].model = Some("A100".to_owned());
        let all = gres(&mixed, |_| true);
        assert_eq!(all.as_deref(), Some("gpu:1,gpu:a100:1"));
        let used = gres(&mixed, |gpu| gpu.free < 1000);
        assert_eq!(used.as_deref(), Some("gpu:1,gpu:a100:0"));
        assert_eq!(
            gres(&node("n", 8000, [0, 0]), |_| true).as_deref(),
            Some("gpu:2")
        );
    }

    #[test]
    fn nodes_of_the_same_name_in_two_sites_stay_two() {
        let floor = |name: &str, nodes| Floor {
            name: name.to_owned(),
            is_at_hand: name == "torino",
            longest: SignedDuration::from_hours(2),
            nodes,
        };
        let busy = [1000, 0];
        let (partitions, nodes) = rows(&[
            floor("pisa", vec![node("gpu-01", 8000, busy)]),
            floor(
                "torino",
                vec![node("gpu-01", 8000, busy), node("gpu-02", 5500, busy)],
            ),
        ]);
        assert_eq!(partitions[1].nodes, ["torino/gpu-01", "gpu-02"]);
        assert!(partitions[1].is_default && !partitions[0].is_default);
        let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["pisa/gpu-01", "torino/gpu-01", "gpu-02"]);
        assert_eq!(
            (nodes[2].cpus_allocated, nodes[2].gres_used.as_deref()),
            (3, Some("gpu:1"))
        );
    }
}
