//! Napoli: workstations by day, two GPU nodes by night, and the microscopes after a word with Gennaro.

use serde_json::{Value, json};

use super::super::chance::Chance;
use super::super::script::{Want, all_of, some_of};
use super::{Habit, When, in_any_order};

pub const HABITS: &[Habit] = &[
    Habit {
        site: "napoli",
        per_week: 3,
        titles: &[
            "Segmentation by hand",
            "Figure preparation",
            "Course work",
            "Annotating stacks",
        ],
        hours: 2..=7,
        when: When::WorkingHours,
        needs_approval: false,
        choices: workstation,
        answers: |_| json!({}),
    },
    Habit {
        site: "napoli",
        per_week: 4,
        titles: &[
            "Deconvolution",
            "Quantised model, training",
            "Tracking cells overnight",
            "Super-resolution network",
        ],
        hours: 4..=36,
        when: When::AnyTime,
        needs_approval: false,
        choices: gpu,
        answers: |_| json!({}),
    },
    Habit {
        site: "napoli",
        per_week: 2,
        titles: &["Small model, first tests", "Notebook"],
        hours: 1..=6,
        when: When::WorkingHours,
        needs_approval: false,
        choices: slice,
        answers: |_| json!({}),
    },
    Habit {
        site: "napoli",
        per_week: 4,
        titles: &[
            "Mitosis, long exposure",
            "Neurons, fixed samples",
            "Zebrafish embryo",
            "Calibration slides",
        ],
        hours: 2..=6,
        when: When::WorkingHours,
        needs_approval: true,
        choices: microscope,
        answers: microscope_answers,
    },
    Habit {
        site: "napoli",
        per_week: 2,
        titles: &["Bitstream tests", "Latency of the filter"],
        hours: 3..=24,
        when: When::AnyTime,
        needs_approval: false,
        choices: |_| vec![vec![all_of("fpga-01")]],
        answers: |_| json!({}),
    },
];

fn workstation(chance: &mut Chance) -> Vec<Vec<Want>> {
    let choices = (1..=4).map(|number| vec![all_of(format!("ws-{number:02}"))]);
    let choices = choices.collect();
    in_any_order(chance, choices, 3)
}

fn gpu(chance: &mut Chance) -> Vec<Vec<Want>> {
    let choices = [1, 2].map(|node| {
        let node = format!("a100-{node:02}");
        vec![
            all_of(format!("{node}.gpu0")),
            some_of(format!("{node}.cpu"), 12),
            some_of(format!("{node}.memory"), 64),
        ]
    });
    in_any_order(chance, choices.to_vec(), 2)
}

fn slice(chance: &mut Chance) -> Vec<Vec<Want>> {
    let slices = [1, 2].into_iter().flat_map(|node| {
        (0..7).map(move |slice| vec![all_of(format!("a100-{node:02}.gpu1.mig{slice}"))])
    });
    let choices = slices.collect();
    in_any_order(chance, choices, 3)
}

fn microscope(chance: &mut Chance) -> Vec<Vec<Want>> {
    let choices = ["confocal", "light-sheet"].map(|name| vec![all_of(name)]);
    in_any_order(chance, choices.to_vec(), 2)
}

pub fn microscope_answers(chance: &mut Chance) -> Value {
    let objective = chance.pick(&["20x", "40x", "63x oil"]);
    json!({ "microscope": {
        "objective": objective,
        "trained-on": format!("2025-{:02}-{:02}", chance.between(1..=12), chance.between(1..=28)),
        "live-cells": chance.percent(50),
    } })
}
