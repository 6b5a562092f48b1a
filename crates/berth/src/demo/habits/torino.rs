//! Torino: GPUs by the handful for training, whole servers for the big runs, slices for teaching.

use serde_json::{Value, json};

use super::super::chance::Chance;
use super::super::script::{Want, all_of, some_of};
use super::{Habit, When, in_any_order};

pub const HABITS: &[Habit] = &[
    Habit {
        site: "torino",
        per_week: 13,
        titles: &[
            "Fine-tune the segmentation model",
            "Ablation: loss weights",
            "Night-time detector, full schedule",
            "Diffusion baseline",
            "Dialect speech model, second stage",
            "Grasp policy, simulated rollouts",
            "Hyper-parameter sweep",
        ],
        hours: 12..=120,
        when: When::AnyTime,
        needs_approval: false,
        choices: some_gpus,
        answers: gpu_answers,
    },
    Habit {
        site: "torino",
        per_week: 5,
        titles: &[
            "Pre-training, eight GPUs",
            "Scaling study",
            "Bare-metal kernel profiling",
            "Multi-GPU simulation",
        ],
        hours: 36..=144,
        when: When::AnyTime,
        needs_approval: true,
        choices: whole_server,
        answers: server_answers,
    },
    Habit {
        site: "torino",
        per_week: 5,
        titles: &[
            "Student project",
            "Notebook for the seminar",
            "Quick inference test",
            "Tutorial preparation",
        ],
        hours: 2..=9,
        when: When::WorkingHours,
        needs_approval: false,
        choices: one_slice,
        answers: nothing,
    },
    Habit {
        site: "torino",
        per_week: 3,
        titles: &[
            "Data preparation",
            "Point cloud conversion",
            "Evaluation on the CPU",
            "Tokenising the corpus",
        ],
        hours: 4..=48,
        when: When::AnyTime,
        needs_approval: false,
        choices: some_cores,
        answers: nothing,
    },
    Habit {
        site: "torino",
        per_week: 2,
        titles: &[
            "Network experiment",
            "RDMA measurements",
            "Private segment for the robots",
        ],
        hours: 24..=120,
        when: When::AnyTime,
        needs_approval: false,
        choices: two_ports,
        answers: port_answers,
    },
    Habit {
        site: "torino",
        per_week: 2,
        titles: &[
            "Controller design",
            "Signal processing exercise",
            "Simulink course work",
        ],
        hours: 2..=8,
        when: When::WorkingHours,
        needs_approval: false,
        choices: seats,
        answers: nothing,
    },
    Habit {
        site: "torino",
        per_week: 2,
        titles: &[
            "Robot arm calibration",
            "Thesis defence rehearsal",
            "Group meeting",
            "Demo for visitors",
        ],
        hours: 1..=4,
        when: When::WorkingHours,
        needs_approval: false,
        choices: |_| vec![vec![all_of("lab")]],
        answers: |chance| json!({ "room": { "attendees": chance.between(3..=22), "projector": chance.percent(40) } }),
    },
];

fn some_gpus(chance: &mut Chance) -> Vec<Vec<Want>> {
    let count = chance.pick(&[1, 2, 2, 4, 4]);
    let choices = (1..=8).flat_map(|server| {
        (0..8 / count).map(move |block| {
            let server = format!("gpu-{server:02}");
            let gpus = (block * count..(block + 1) * count)
                .map(|gpu| all_of(format!("{server}.gpu{gpu}")));
            let cores = some_of(format!("{server}.cpu"), 12 * count);
            let memory = some_of(format!("{server}.memory"), 96 * count);
            gpus.chain([cores, memory]).collect()
        })
    });
    let choices = choices.collect();
    in_any_order(chance, choices, 4)
}

fn gpu_answers(chance: &mut Chance) -> Value {
    let image = chance.pick(&["pytorch-2.9", "jax-0.8", "tensorflow-2.20"]);
    json!({ "gpu": { "image": image, "checkpoint": chance.percent(60) } })
}

fn whole_server(chance: &mut Chance) -> Vec<Vec<Want>> {
    let choices = (1..=8).map(|server| vec![all_of(format!("gpu-{server:02}"))]);
    let choices = choices.collect();
    in_any_order(chance, choices, 3)
}

pub fn server_answers(chance: &mut Chance) -> Value {
    let image = chance.pick(&["ubuntu-24.04", "ubuntu-22.04-cuda", "rocky-9"]);
    let mut answers = json!({ "image": image });
    if chance.percent(60) {
        answers["ssh-key"] = json!(
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDemoDemoDemoDemoDemoDemoDemoDemoDemoDemoDemo demo"
        );
    }
    if chance.percent(40) {
        answers["bmc-password"] = json!("not-a-real-password");
    }
    json!({ "gpu-server": answers })
}

fn one_slice(chance: &mut Chance) -> Vec<Vec<Want>> {
    let slices = [7, 8].into_iter().flat_map(|server| {
        (0..2).flat_map(move |gpu| {
            (0..7).map(move |slice| vec![all_of(format!("gpu-{server:02}.gpu{gpu}.mig{slice}"))])
        })
    });
    let choices = slices.collect();
    in_any_order(chance, choices, 5)
}

fn some_cores(chance: &mut Chance) -> Vec<Vec<Want>> {
    let share = chance.between(1..=6);
    let choices = (1..=4).map(|server| {
        let server = format!("cpu-{server:02}");
        vec![
            some_of(format!("{server}.cpu"), 8 * share),
            some_of(format!("{server}.memory"), 32 * share),
        ]
    });
    let choices = choices.collect();
    in_any_order(chance, choices, 3)
}

fn two_ports(chance: &mut Chance) -> Vec<Vec<Want>> {
    let choices = (1..=15).map(|port| {
        [port, port + 1]
            .map(|port| all_of(format!("sw-1.port-{port:02}")))
            .to_vec()
    });
    let choices = choices.collect();
    in_any_order(chance, choices, 3)
}

fn port_answers(chance: &mut Chance) -> Value {
    json!({ "switch-port": { "vlan": chance.between(100..=399) } })
}

fn seats(chance: &mut Chance) -> Vec<Vec<Want>> {
    vec![vec![some_of("matlab", chance.between(1..=5))]]
}

fn nothing(_: &mut Chance) -> Value {
    json!({})
}
