//! Nodes as `sinfo --json` prints them, by the schema v0.0.38 of Slurm's own API.

use serde_json::{Value, json};

use super::{NodeRow, PartitionRow};

pub(super) fn document(partitions: &[&PartitionRow], nodes: &[NodeRow]) -> String {
    let nodes = nodes.iter().filter_map(|row| {
        let within = partitions.iter().filter(|it| it.nodes.contains(&row.name));
        let within: Vec<_> = within.map(|partition| &partition.name).collect();
        (!within.is_empty()).then(|| node(row, &within))
    });
    crate::json_text(&json!({
        "meta": crate::json_meta(),
        "errors": [],
        "nodes": nodes.collect::<Vec<_>>(),
    }))
}

fn node(row: &NodeRow, partitions: &[&String]) -> Value {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let reason = row.reason.as_ref();
    let since = reason.and_then(|reason| reason.since);
    let flags: &[&str] = if row.is_responding {
        &[]
    } else {
        &["NOT_RESPONDING"]
    };
    json!({
        "address": row.address,
        "active_features": text(&row.features),
        "alloc_cpus": row.cpus_allocated,
        "alloc_memory": row.memory_allocated_mib,
        "cores": row.cores_per_socket,
        "cpu_load": row.cpu_load,
        "cpus": row.cpus,
        "features": text(&row.features),
        "free_memory": row.memory_free_mib,
        "gres": text(&row.gres),
        "gres_used": text(&row.gres_used),
        "hostname": row.hostname,
        "idle_cpus": row.cpus.saturating_sub(row.cpus_allocated),
        "name": row.name,
        "partitions": partitions,
        "real_memory": row.memory_mib,
        "reason": reason.map_or("", |reason| &reason.text),
        "reason_changed_at": since.map_or(0, jiff::Timestamp::as_second),
        "reason_set_by_user": reason.map_or("", |reason| &reason.user),
        "slurmd_version": row.version,
        "sockets": row.sockets,
        "state": row.state.long(),
        "state_flags": flags,
        "temporary_disk": row.disk_mib,
        "threads": row.threads_per_core,
        "weight": row.weight,
    })
}
