//! Bologna: nodes by the set for simulations, scratch space beside them, the wall for looking at the result.

use serde_json::{Value, json};

use super::super::chance::Chance;
use super::super::script::{Want, all_of, some_of};
use super::{Habit, When, in_any_order};

pub const HABITS: &[Habit] = &[
    Habit {
        site: "bologna",
        per_week: 8,
        titles: &[
            "Regional model, January 1985",
            "Downscaling, control run",
            "Assembly of cultivar 12",
            "Variant calling, batch 7",
            "Ensemble member 4",
            "Strong scaling test",
        ],
        hours: 12..=72,
        when: When::AnyTime,
        needs_approval: false,
        choices: some_nodes,
        answers: node_answers,
    },
    Habit {
        site: "bologna",
        per_week: 3,
        titles: &[
            "Alignment of new reads",
            "Post-processing",
            "Interactive analysis",
            "Compiler tests",
        ],
        hours: 2..=24,
        when: When::AnyTime,
        needs_approval: false,
        choices: some_cores,
        answers: |_| json!({}),
    },
    Habit {
        site: "bologna",
        per_week: 3,
        titles: &[
            "Staging for the ensemble",
            "Raw reads of the spring harvest",
            "Boundary conditions",
        ],
        hours: 24..=240,
        when: When::AnyTime,
        needs_approval: false,
        choices: scratch,
        answers: |_| json!({}),
    },
    Habit {
        site: "bologna",
        per_week: 1,
        titles: &["Fabric benchmark", "MPI latency study"],
        hours: 6..=30,
        when: When::AnyTime,
        needs_approval: false,
        choices: ports,
        answers: |chance| json!({ "ib-port": { "partition": chance.between(2..=90) } }),
    },
    Habit {
        site: "bologna",
        per_week: 3,
        titles: &[
            "Po valley in three dimensions",
            "School visit",
            "Review with the ministry",
            "Genome browser on the wall",
        ],
        hours: 1..=4,
        when: When::WorkingHours,
        needs_approval: true,
        choices: |_| vec![vec![all_of("vis-room")]],
        answers: |chance| json!({ "vis-room": { "visitors": chance.between(0..=35) } }),
    },
];

fn some_nodes(chance: &mut Chance) -> Vec<Vec<Want>> {
    let count = chance.pick(&[1, 1, 2, 2, 3, 4]);
    let choices = (1..=12 / count).map(|set| {
        let nodes = (set - 1) * count + 1..=set * count;
        nodes
            .map(|node| all_of(format!("node-{node:02}")))
            .collect()
    });
    let choices = choices.collect();
    in_any_order(chance, choices, 4)
}

fn node_answers(chance: &mut Chance) -> Value {
    let image = chance.pick(&["slurm-worker", "slurm-worker", "rocky-9", "ubuntu-24.04"]);
    json!({ "hpc-node": { "image": image, "hyperthreads": chance.percent(20) } })
}

fn some_cores(chance: &mut Chance) -> Vec<Vec<Want>> {
    let share = chance.between(1..=4);
    let choices = (1..=12).map(|node| {
        let node = format!("node-{node:02}");
        vec![
            some_of(format!("{node}.cpu"), 8 * share),
            some_of(format!("{node}.memory"), 48 * share),
        ]
    });
    let choices = choices.collect();
    in_any_order(chance, choices, 4)
}

fn scratch(chance: &mut Chance) -> Vec<Vec<Want>> {
    let tib = 10 * chance.between(1..=12);
    let choices = [1, 2].map(|store| vec![some_of(format!("store-{store}.scratch"), tib)]);
    in_any_order(chance, choices.to_vec(), 2)
}

fn ports(chance: &mut Chance) -> Vec<Vec<Want>> {
    let choices = (0..3).map(|block| {
        let ports = 4 * block + 1..=4 * block + 4;
        ports
            .map(|port| all_of(format!("ib-1.port-{port:02}")))
            .collect()
    });
    let choices = choices.collect();
    in_any_order(chance, choices, 2)
}
