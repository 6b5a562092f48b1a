//! Napoli: a small laboratory, where everything stands in two rooms and everybody knows everybody.

use berth_model::site::OutsiderView;
use serde_json::json;

use super::{Kind, Site, Thing, colour, kind, shares, slices, thing};

pub fn site() -> Site {
    Site {
        name: "napoli",
        title: "Laboratorio di microscopia, Napoli",
        outsiders_see: OutsiderView::Name,
        kinds: kinds(),
        things: things(),
        queue: None,
    }
}

fn kinds() -> Vec<Kind> {
    vec![
        kind("room", "Room", colour::SAND),
        kind("workstation", "Workstation", colour::PURPLE),
        kind("gpu-node", "GPU node", colour::INDIGO).asks(json!([
            { "key": "ssh-key", "label": "SSH public key", "kind": { "text": { "max_length": 1000 } } },
        ])),
        kind("gpu", "GPU", colour::CYAN),
        kind("mig-slice", "GPU slice (1g.10gb)", colour::TEAL),
        kind("cpu", "Processor cores", colour::OLIVE),
        kind("memory", "Memory", colour::GREEN),
        kind("microscope", "Microscope", colour::ROSE)
            .needs_approval()
            .asks(json!([
                { "key": "objective", "label": "Objective", "required": true, "kind": { "choice": { "options": ["20x", "40x", "63x oil"] } } },
                { "key": "trained-on", "label": "Safety training on", "required": true, "kind": { "date": { "min": "2020-01-01" } } },
                { "key": "live-cells", "label": "Live cells", "kind": { "boolean": {} } },
            ])),
        kind("fpga", "FPGA board", colour::WINE),
    ]
}

fn things() -> Vec<Thing> {
    let mut things = vec![
        thing("lab", "room").titled("Laboratory"),
        thing("dark-room", "room").titled("Dark room"),
    ];
    things.extend((1..=4).map(|number| {
        thing(format!("ws-{number:02}"), "workstation")
            .under("lab")
            .titled("Workstation with RTX 5000")
            .with("gpu_model", "RTX5000")
            .with("gpus", 1)
    }));
    for number in 1..=2 {
        let node = format!("a100-{number:02}");
        things.push(
            thing(&node, "gpu-node")
                .under("lab")
                .titled("2 x A100 80 GB")
                .with("gpu_model", "A100")
                .with("gpus", 2)
                .with("gpu_memory_gb", 80)
                .with("nic_gbps", 10)
                .managed("napoli"),
        );
        for gpu in 0..2 {
            let name = format!("{node}.gpu{gpu}");
            things.push(
                thing(&name, "gpu")
                    .under(&node)
                    .with("gpu_model", "A100")
                    .with("gpu_memory_gb", 80),
            );
            if gpu == 1 {
                things.extend(slices(&name));
            }
        }
        things.extend(shares(&node, 48, 256));
    }
    things.push(
        thing("confocal", "microscope")
            .under("dark-room")
            .titled("Confocal microscope"),
    );
    things.push(
        thing("light-sheet", "microscope")
            .under("dark-room")
            .titled("Light-sheet microscope"),
    );
    things.push(
        thing("fpga-01", "fpga")
            .under("lab")
            .titled("Alveo U250")
            .with("luts_k", 1728),
    );
    things
}
