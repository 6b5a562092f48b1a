//! Torino: a university's machine room with eight GPU servers, a switch, licences, and a lab for practicals.

use berth_model::site::OutsiderView;
use serde_json::{Value, json};

use super::{Kind, Site, Thing, colour, kind, shares, slices, thing};

pub const IMAGES: [&str; 3] = ["ubuntu-24.04", "ubuntu-22.04-cuda", "rocky-9"];

/// Servers whose first two GPUs are cut into slices.
const SLICED: [u32; 2] = [7, 8];

pub fn site() -> Site {
    Site {
        name: "torino",
        title: "Politecnico di Torino, Prognose laboratory",
        outsiders_see: OutsiderView::FreeBusy,
        kinds: kinds(),
        things: things(),
        queue: Some(queue()),
    }
}

fn kinds() -> Vec<Kind> {
    vec![
        kind("room", "Room", colour::SAND).asks(json!([
            { "key": "attendees", "label": "People expected", "required": true, "kind": { "number": { "min": 1, "max": 24, "integer": true } } },
            { "key": "projector", "label": "Projector needed", "kind": { "boolean": {} } },
        ])),
        kind("rack", "Rack", colour::GREY),
        kind("gpu-server", "GPU server (8 x A100)", colour::INDIGO)
            .needs_approval()
            .asks(json!([
                { "key": "image", "label": "System image", "required": true, "kind": { "choice": { "options": IMAGES } } },
                { "key": "ssh-key", "label": "SSH public key", "help": "One line, as in ~/.ssh/id_ed25519.pub", "kind": { "text": { "max_length": 1000 } } },
                { "key": "bmc-password", "label": "Password for the management controller", "help": "Stored encrypted, shown to nobody", "kind": { "secret": {} } },
                { "key": "keep-disks-until", "label": "Keep the disks until", "kind": { "date": { "min": "2024-01-01" } } },
            ])),
        kind("gpu", "GPU", colour::CYAN).asks(json!([
            { "key": "image", "label": "Container image", "kind": { "choice": { "options": ["pytorch-2.9", "jax-0.8", "tensorflow-2.20"] } } },
            { "key": "checkpoint", "label": "Keep checkpoints", "kind": { "boolean": {} } },
        ])),
        kind("mig-slice", "GPU slice (1g.10gb)", colour::TEAL),
        kind("cpu-server", "CPU server", colour::PURPLE).asks(json!([
            { "key": "image", "label": "System image", "required": true, "kind": { "choice": { "options": IMAGES } } },
        ])),
        kind("compute-node", "Compute node (4 x L40S)", colour::PURPLE),
        kind("cpu", "Processor cores", colour::OLIVE),
        kind("memory", "Memory", colour::GREEN),
        kind("switch", "Switch", colour::GREY),
        kind("switch-port", "Switch port", colour::ROSE).asks(json!([
            { "key": "vlan", "label": "VLAN", "help": "2 to 4094", "required": true, "kind": { "number": { "min": 2, "max": 4094, "integer": true } } },
        ])),
        kind("licence", "Licence seats", colour::WINE),
    ]
}

fn things() -> Vec<Thing> {
    let mut things = vec![
        thing("machine-room", "room").titled("Machine room, basement"),
        thing("rack-a", "rack").under("machine-room").at("row 1"),
        thing("rack-b", "rack").under("machine-room").at("row 1"),
        thing("rack-c", "rack").under("machine-room").at("row 2"),
        thing("rack-d", "rack").under("machine-room").at("row 3"),
        thing("rack-e", "rack").under("machine-room").at("row 3"),
    ];
    for number in 1..=8 {
        let rack = if number <= 4 { "rack-a" } else { "rack-b" };
        things.extend(gpu_server(number, rack));
    }
    for number in 1..=4 {
        let name = format!("cpu-{number:02}");
        things.push(
            thing(&name, "cpu-server")
                .under("rack-c")
                .with("nic_gbps", 25)
                .at(format!("rack C, unit {}", 2 * number))
                .managed("torino"),
        );
        things.extend(shares(&name, 96, 384));
    }
    for number in 1..=18 {
        let rack = if number <= 9 { "rack-d" } else { "rack-e" };
        things.extend(compute_node(number, rack));
    }
    things.push(
        thing("sw-1", "switch")
            .under("rack-c")
            .titled("Top-of-rack switch, 100 Gbit/s")
            .managed("torino"),
    );
    things.extend((1..=16).map(|port| {
        thing(format!("sw-1.port-{port:02}"), "switch-port")
            .under("sw-1")
            .with("nic_gbps", 100)
    }));
    things.push(
        thing("matlab", "licence")
            .titled("MATLAB campus seats")
            .holding(12, "seats"),
    );
    // In nobody's habits, so that the tour of the README works on any day.
    things.push(
        thing("bench-gpu", "gpu")
            .titled("Test bench, kept free for first tries")
            .with("gpu_model", "L40S")
            .with("gpu_memory_gb", 48),
    );
    things.push(
        thing("lab", "room")
            .titled("Robotics lab, second floor")
            .with("seats", 24),
    );
    things
}

/// Four GPUs that can be had whole or in thousandths.
fn compute_node(number: u32, rack: &str) -> Vec<Thing> {
    let node = format!("node-{number:02}");
    let mut things = vec![
        thing(&node, "compute-node")
            .under(rack)
            .titled("4 x L40S 48 GB")
            .with("nic_gbps", 25)
            .at(format!("{rack}, unit {}", 2 * number))
            .managed("torino"),
    ];
    things.extend((0..4).map(|gpu| {
        thing(format!("{node}.gpu{gpu}"), "gpu")
            .under(&node)
            .with("gpu_model", "L40S")
            .with("gpu_memory_gb", 48)
            .holding(1000, "thousandths")
    }));
    things.extend(shares(&node, 64, 512));
    things
}

/// Thirty nodes; the projects' shares as the department agreed on them, and what most people ask for.
fn queue() -> Value {
    let profile = |title: &str, class: &str, task: Value, limit: &str| json!({ "title": title, "class": class, "wishes": [{ "task": task, "limit": limit }] });
    json!({
        "roles": {
            "gpu-server": "node", "cpu-server": "node", "compute-node": "node",
            "cpu": "cores", "memory": "memory", "gpu": "gpu", "mig-slice": "slice", "licence": "seats",
        },
        "limit_max": "PT72H",
        "shares": { "vision": 5, "language": 3, "robotics": 2 },
        "quotas": [
            { "project": "vision", "amounts": { "gpus_milli": 72_000, "gpus_milli_guaranteed": 32_000 } },
            { "project": "language", "amounts": { "gpus_milli": 72_000, "gpus_milli_guaranteed": 24_000 } },
            { "project": "robotics", "amounts": { "gpus_milli": 48_000, "gpus_milli_guaranteed": 16_000 } },
        ],
        "levels": { "deadline": { "number": 10, "projects": ["language"] }, "later": { "number": -10 } },
        "profiles": {
            "small": profile("A few cores, no GPU", "guaranteed", json!({ "cores_milli": 4000, "memory_mib": 16384 }), "PT4H"),
            "slice": profile("A slice of a GPU, for trying things", "guaranteed",
                json!({ "cores_milli": 4000, "memory_mib": 16384, "gpus": { "slice": "1g.10gb" } }), "PT2H"),
            "gpu": profile("One GPU", "guaranteed",
                json!({ "cores_milli": 8000, "memory_mib": 65536, "gpus": { "count": 1 } }), "PT8H"),
            "large": profile("A whole server with eight A100", "guaranteed",
                json!({ "cores_milli": 64000, "memory_mib": 524288, "gpus": { "count": 8, "where": ["gpu_model=A100"] } }), "PT12H"),
            "idle": profile("One GPU while nobody else wants it", "opportunistic",
                json!({ "cores_milli": 8000, "memory_mib": 65536, "gpus": { "count": 1 } }), "PT24H"),
        },
    })
}

fn gpu_server(number: u32, rack: &str) -> Vec<Thing> {
    let server = format!("gpu-{number:02}");
    let mut things = vec![
        thing(&server, "gpu-server")
            .under(rack)
            .titled("8 x A100 80 GB, NVLink")
            .with("gpu_model", "A100")
            .with("gpus", 8)
            .with("gpu_memory_gb", 80)
            .with("nic_gbps", if number <= 4 { 100 } else { 25 })
            .with("nvlink", number <= 6)
            .at(format!("{rack}, unit {}", 4 * number))
            .managed("torino"),
    ];
    for gpu in 0..8 {
        let name = format!("{server}.gpu{gpu}");
        things.push(
            thing(&name, "gpu")
                .under(&server)
                .with("gpu_model", "A100")
                .with("gpu_memory_gb", 80),
        );
        if SLICED.contains(&number) && gpu < 2 {
            things.extend(slices(&name));
        }
    }
    things.extend(shares(&server, 128, 1024));
    things
}
