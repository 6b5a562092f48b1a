//! Bologna: a small HPC cluster with nodes to book and nodes for the queue, its fabric, its storage, and a room for
//! looking at results.

use berth_model::site::OutsiderView;
use serde_json::{Value, json};

use super::{Kind, Site, Thing, colour, kind, shares, thing};

pub fn site() -> Site {
    Site {
        name: "bologna",
        title: "Università di Bologna, computing hall",
        outsiders_see: OutsiderView::Catalogue,
        kinds: kinds(),
        things: things(),
        queue: Some(queue()),
    }
}

fn kinds() -> Vec<Kind> {
    vec![
        kind("hall", "Hall", colour::GREY),
        kind("rack", "Rack", colour::GREY),
        kind("hpc-node", "HPC node", colour::INDIGO).asks(json!([
            { "key": "image", "label": "System image", "required": true, "kind": { "choice": { "options": ["slurm-worker", "rocky-9", "ubuntu-24.04"] } } },
            { "key": "hyperthreads", "label": "Hyper-threading on", "kind": { "boolean": {} } },
        ])),
        kind("batch-node", "Batch node", colour::PURPLE),
        kind("cpu", "Processor cores", colour::OLIVE),
        kind("memory", "Memory", colour::GREEN),
        kind("ib-switch", "InfiniBand switch", colour::GREY),
        kind("ib-port", "InfiniBand port", colour::ROSE).asks(json!([
            { "key": "partition", "label": "Partition key", "required": true, "kind": { "number": { "min": 1, "max": 32767, "integer": true } } },
        ])),
        kind("storage-server", "Storage server", colour::TEAL)
            .needs_approval()
            .asks(json!([
                { "key": "encryption-key", "label": "Volume encryption key", "help": "Stored encrypted, shown to nobody", "kind": { "secret": {} } },
                { "key": "delete-after", "label": "Delete the data after", "required": true, "kind": { "date": { "min": "2024-01-01" } } },
            ])),
        kind("scratch", "Scratch space", colour::CYAN),
        kind("vis-room", "Visualisation room", colour::SAND)
            .needs_approval()
            .asks(json!([
                { "key": "visitors", "label": "Visitors expected", "kind": { "number": { "min": 0, "max": 40, "integer": true } } },
            ])),
    ]
}

/// The batch nodes run work; the others are booked as a whole, and keep their own cores.
fn queue() -> Value {
    let profile = |title: &str, class: &str, cores: u32, gib: u32, limit: &str| {
        let task = json!({ "cores_milli": cores * 1000, "memory_mib": gib * 1024 });
        json!({ "title": title, "class": class, "wishes": [{ "task": task, "limit": limit }] })
    };
    json!({
        "roles": { "batch-node": "node", "cpu": "cores", "memory": "memory" },
        "limit_max": "PT48H",
        "shares": { "climate": 3, "genomics": 2 },
        "profiles": {
            "small": profile("A few cores", "guaranteed", 8, 32, "PT2H"),
            "node": profile("A whole node", "guaranteed", 64, 512, "PT12H"),
            "idle": profile("A quarter of a node while nobody else wants it", "opportunistic", 16, 64, "PT24H"),
        },
    })
}

fn things() -> Vec<Thing> {
    let mut things = vec![
        thing("hall", "hall").titled("Computing hall"),
        thing("rack-1", "rack").under("hall").at("cold aisle"),
        thing("rack-2", "rack").under("hall").at("cold aisle"),
        thing("rack-3", "rack").under("hall").at("hot aisle"),
    ];
    for number in 1..=12 {
        let name = format!("node-{number:02}");
        let rack = if number <= 6 { "rack-1" } else { "rack-2" };
        things.push(
            thing(&name, "hpc-node")
                .under(rack)
                .titled("2 x 32 cores")
                .with("cores", 64)
                .with("memory_gib", 512)
                .with("nic_gbps", 200)
                .managed("bologna"),
        );
        things.extend(shares(&name, 64, 512));
    }
    // In nobody's habits of booking: the queue has them to itself.
    for number in 1..=6 {
        let name = format!("batch-{number:02}");
        things.push(
            thing(&name, "batch-node")
                .under("rack-3")
                .titled("2 x 32 cores")
                .with("cores", 64)
                .with("memory_gib", 512)
                .with("nic_gbps", 100)
                .managed("bologna"),
        );
        things.extend(shares(&name, 64, 512));
    }
    things.push(
        thing("ib-1", "ib-switch")
            .under("rack-1")
            .titled("InfiniBand switch, 200 Gbit/s"),
    );
    things.extend((1..=12).map(|port| {
        thing(format!("ib-1.port-{port:02}"), "ib-port")
            .under("ib-1")
            .with("nic_gbps", 200)
    }));
    things.push(
        thing("store-1", "storage-server")
            .under("rack-2")
            .titled("All-flash store")
            .managed("bologna"),
    );
    things.push(
        thing("store-1.scratch", "scratch")
            .under("store-1")
            .holding(400, "tib"),
    );
    things.push(
        thing("store-2", "storage-server")
            .under("rack-2")
            .titled("Archive store")
            .managed("bologna"),
    );
    things.push(
        thing("store-2.scratch", "scratch")
            .under("store-2")
            .holding(1200, "tib"),
    );
    things.push(
        thing("vis-room", "vis-room")
            .titled("Visualisation room, 12-metre wall")
            .with("seats", 40),
    );
    things
}
