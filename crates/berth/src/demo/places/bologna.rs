//! Bologna: a small HPC cluster with its fabric, its storage, and a room for looking at results.

use berth_model::site::OutsiderView;
use serde_json::json;

use super::{Kind, Site, Thing, colour, kind, shares, thing};

pub fn site() -> Site {
    Site {
        name: "bologna",
        title: "Università di Bologna, computing hall",
        outsiders_see: OutsiderView::Catalogue,
        kinds: kinds(),
        things: things(),
        queue: None,
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

fn things() -> Vec<Thing> {
    let mut things = vec![
        thing("hall", "hall").titled("Computing hall"),
        thing("rack-1", "rack").under("hall").at("cold aisle"),
        thing("rack-2", "rack").under("hall").at("cold aisle"),
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
