//! Bologna: evenings at the wall, some of them refused, and nodes that wait for cables.

use berth_model::Status;
use jiff::SignedDuration;
use jiff::civil::Weekday;
use serde_json::{Value, json};

use super::super::script::{Act, Thing, Want, all_of};
use super::{Course, Numbers, Teller, Work, wish};

pub fn tell(teller: &mut Teller<'_>) {
    let site = "bologna";
    teller.teaches(Course {
        site,
        who: "chiara",
        title: "Open visualisation hour",
        weekday: Weekday::Thursday,
        hour: 11,
        hours: 1,
        room: "vis-room",
        answers: json!({ "vis-room": { "visitors": 15 } }),
    });
    let now = teller.almanac.round_up(teller.now);
    let running = wish(
        site,
        "Control run, year 30",
        now - SignedDuration::from_hours(20),
        48,
    )
    .of(nodes(1..=12))
    .for_project("climate");
    teller.books(
        teller.on(-4, 10),
        "hanna",
        running.answering(node_answers()),
    );

    // The room is free in the evening, so these meet nobody.
    let evening = |teller: &Teller<'_>, day, title| {
        wish(site, title, teller.almanac.at(day, 20, 30), 2).of([vec![all_of("vis-room")]])
    };
    for (ago, who, day) in [(22, "jonas", 5), (4, "fatima", 8)] {
        teller.books(
            teller.ago(ago),
            who,
            evening(teller, day, "Evening for the public"),
        );
    }
    let refused = teller.books(
        teller.on(-10, 14),
        "tomas",
        evening(teller, -6, "Film night"),
    );
    teller.does(
        teller.on(-9, 10),
        "chiara",
        Act::Reject(refused, "the wall is for research"),
    );
    teller.books(
        teller.on(-5, 17),
        "fatima",
        evening(teller, -4, "Rehearsal"),
    );
    let held = teller.books(
        teller.on(-21, 9),
        "hanna",
        evening(teller, -14, "Science festival"),
    );
    teller.does(teller.on(-20, 9), "chiara", Act::Approve(held));

    // He leaves, and what he held ahead is cancelled with it.
    let farewell = wish(site, "Last assembly", teller.on(3, 8), 20).of(nodes(1..=12));
    teller.books(
        teller.on(-16, 10),
        "bruno",
        farewell.answering(node_answers()),
    );
    teller.does(
        teller.on(-15, 17),
        "chiara",
        Act::RemoveMember {
            site,
            login: "bruno",
        },
    );

    let node = Thing {
        site,
        name: "node-07",
    };
    teller.status(
        -4,
        "chiara",
        node,
        (
            Status::Unavailable,
            "mainboard replaced under warranty, back next week",
        ),
    );
    let port = Thing {
        site,
        name: "ib-1.port-11",
    };
    teller.status(
        -6,
        "chiara",
        port,
        (Status::Maintenance, "cable being replaced"),
    );

    let past = Work {
        site,
        title: "Cooling test",
        resources: &["node-01", "node-02", "node-03", "node-04"],
        hour: 7,
        hours: 5,
    };
    teller.maintains(9, -22, "chiara", past);
    for who in ["tomas", "jonas"] {
        let in_the_way =
            wish(site, "Pangenome graph", teller.almanac.at(12, 9, 0), 8).of(nodes(8..=12));
        teller.books(teller.on(-6, 11), who, in_the_way.answering(node_answers()));
    }
    let ahead = Work {
        site,
        title: "New fabric cables",
        resources: &["node-08", "node-09", "node-10", "node-11", "node-12"],
        hour: 7,
        hours: 6,
    };
    teller.maintains(14, 12, "chiara", ahead);
}

fn nodes(of: Numbers) -> impl Iterator<Item = Vec<Want>> {
    of.map(|node| vec![all_of(format!("node-{node:02}"))])
}

fn node_answers() -> Value {
    json!({ "hpc-node": { "image": "slurm-worker" } })
}
