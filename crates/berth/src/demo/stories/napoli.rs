//! Napoli: nights at the microscope, if Gennaro agrees, and a workstation without its card.

use berth_model::Status;
use jiff::SignedDuration;
use jiff::civil::Weekday;
use serde_json::json;

use super::super::script::{Act, Thing, all_of};
use super::{Course, Teller, Work, wish};

pub fn tell(teller: &mut Teller<'_>) {
    let site = "napoli";
    teller.teaches(Course {
        site,
        who: "gennaro",
        title: "Microscopy course",
        weekday: Weekday::Wednesday,
        hour: 9,
        hours: 3,
        room: "light-sheet",
        answers: json!({ "microscope": { "objective": "20x", "trained-on": "2024-10-01" } }),
    });
    let now = teller.almanac.round_up(teller.now);
    let slices = (0..7).map(|slice| vec![all_of(format!("a100-02.gpu1.mig{slice}"))]);
    let running = wish(
        site,
        "Tracking, all of last week",
        now - SignedDuration::from_hours(10),
        24,
    )
    .of(slices);
    teller.books(
        teller.on(-3, 11),
        "nadia",
        running.for_project("microscopy"),
    );

    let at_night = |teller: &Teller<'_>, day, title| {
        let microscopes = ["confocal", "light-sheet"].map(|name| vec![all_of(name)]);
        let answers = json!({ "microscope": { "objective": "63x oil", "trained-on": "2025-03-04", "live-cells": true } });
        wish(site, title, teller.almanac.at(day, 23, 0), 5)
            .of(microscopes)
            .answering(answers)
    };
    for (ago, who, day) in [(18, "nadia", 3), (2, "kwame", 5)] {
        teller.books(
            teller.ago(ago),
            who,
            at_night(teller, day, "Division through the night"),
        );
    }
    let refused = teller.books(
        teller.on(-8, 14),
        "wei",
        at_night(teller, -5, "Chips under the microscope"),
    );
    teller.does(
        teller.on(-7, 10),
        "gennaro",
        Act::Reject(refused, "no metal on the stage, please"),
    );
    teller.books(
        teller.on(-5, 18),
        "kwame",
        at_night(teller, -4, "Second attempt"),
    );
    let held = teller.books(
        teller.on(-12, 9),
        "nadia",
        at_night(teller, -10, "Mitosis, series 3"),
    );
    teller.does(teller.on(-11, 9), "gennaro", Act::Approve(held));

    let workstation = Thing {
        site,
        name: "ws-03",
    };
    teller.status(
        -2,
        "gennaro",
        workstation,
        (Status::Maintenance, "new graphics card on the way"),
    );

    let past = Work {
        site,
        title: "Laser alignment",
        resources: &["confocal", "light-sheet"],
        hour: 8,
        hours: 3,
    };
    teller.maintains(6, -18, "gennaro", past);
    for who in ["wei", "nadia"] {
        let workstations = (1..=4).map(|number| vec![all_of(format!("ws-{number:02}"))]);
        let in_the_way = wish(
            site,
            "Annotation, late shift",
            teller.almanac.at(15, 20, 0),
            3,
        )
        .of(workstations);
        teller.books(teller.on(-4, 12), who, in_the_way);
    }
    let ahead = Work {
        site,
        title: "Inspection of the workstations",
        resources: &["ws-01", "ws-02", "ws-03", "ws-04"],
        hour: 18,
        hours: 4,
    };
    teller.maintains(16, 15, "gennaro", ahead);
}
