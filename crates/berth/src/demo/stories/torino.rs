//! Torino: a thesis that must not be disturbed, servers that need a word from Marco, and a fan that fails.

use berth_model::Status;
use jiff::SignedDuration;
use jiff::civil::Weekday;
use serde_json::{Value, json};

use super::super::script::{Act, Thing, Want, all_of};
use super::{Course, Numbers, Teller, Work, wish};

pub fn tell(teller: &mut Teller<'_>) {
    let site = "torino";
    teller.teaches(Course {
        site,
        who: "marco",
        title: "Robotics practical",
        weekday: Weekday::Tuesday,
        hour: 14,
        hours: 3,
        room: "lab",
        answers: json!({ "room": { "attendees": 20, "projector": true } }),
    });
    let now = teller.almanac.round_up(teller.now);
    let hours = |hours| SignedDuration::from_hours(hours);

    // Running now: one that was extended this morning, one that an admin had to approve.
    let thesis = wish(
        site,
        "Thesis run, please leave it alone",
        now - hours(30),
        72,
    )
    .of(gpus(1..=4))
    .for_project("vision");
    let thesis = teller.books(teller.on(-6, 11), "amara", thesis);
    teller.does(teller.ago(2), "amara", Act::Lengthen(thesis, hours(6)));
    let training = wish(site, "Grasp policy, eight GPUs", now - hours(26), 96).of(servers(1..=8));
    let training = teller.books(
        teller.on(-12, 10),
        "lukas",
        training.answering(server_answers(teller)),
    );
    teller.does(teller.on(-11, 9), "marco", Act::Approve(training));

    // Waiting for an answer, answered with no, and not answered in time.
    for (ago, who, day) in [(20, "sofia", 4), (3, "mehmet", 6)] {
        let request = wish(
            site,
            "Speech model, full corpus",
            teller.almanac.at(day, 20, 0),
            36,
        )
        .of(servers(1..=8));
        teller.books(
            teller.ago(ago),
            who,
            request.answering(server_answers(teller)),
        );
    }
    let refused = wish(
        site,
        "Profiling on bare metal",
        teller.almanac.at(-5, 20, 0),
        30,
    )
    .of(servers(1..=8));
    let refused = teller.books(
        teller.on(-9, 16),
        "diego",
        refused.answering(server_answers(teller)),
    );
    teller.does(
        teller.on(-8, 9),
        "yuki",
        Act::Reject(
            refused,
            "profile on one GPU first; the counters are the same",
        ),
    );
    let forgotten = wish(site, "Weekend run", teller.almanac.at(-12, 20, 0), 24).of(servers(1..=8));
    teller.books(
        teller.on(-13, 18),
        "elena",
        forgotten.answering(server_answers(teller)),
    );

    // A tour meets the practical, is refused, and comes in the evening instead.
    let tuesday = teller.almanac.next_weekday(7, Weekday::Tuesday);
    for hour in [15, 20] {
        let tour = wish(
            site,
            "Tour for visitors",
            teller.almanac.at(tuesday, hour, 0),
            2,
        )
        .of([vec![all_of("lab")]]);
        let tour = tour.answering(json!({ "room": { "attendees": 12 } }));
        teller.books(teller.on(-4, 11), "priya", tour);
    }
    // One more would like the lab then, should the practical be called off; and one takes any three GPUs there are.
    let tuesday = teller.almanac.next_weekday(14, Weekday::Tuesday);
    let hope = wish(site, "Robot demo", teller.almanac.at(tuesday, 14, 0), 2)
        .of([vec![all_of("lab")]])
        .answering(json!({ "room": { "attendees": 8 } }));
    let at = teller.ago(5);
    teller.script.asks(at, "lukas", |key| Act::Wait(key, hope));
    let sweep = wish(
        site,
        "Hyper-parameter sweep",
        teller.almanac.at(3, 10, 0),
        8,
    );
    let at = teller.ago(1);
    teller
        .script
        .asks(at, "mehmet", |key| Act::BookAny(key, sweep, "3 x gpu"));

    // What the site asks of bookings since yesterday.
    for (part, asks) in [
        (
            json!({}),
            json!({ "horizon": "120d", "closed_on_holidays": true }),
        ),
        (
            json!({ "type": "gpu", "role": "member" }),
            json!({ "length_max": "7d", "active_bookings": 20,
                "approval": { "longer_than": "5d", "time_out": { "after": "48h", "outcome": "reject" } } }),
        ),
    ] {
        teller.does(
            teller.on(-1, 9),
            "marco",
            Act::SetPolicy { site, part, asks },
        );
    }
    let dropped = wish(site, "Detector, longer schedule", teller.on(2, 8), 20).of(gpus(1..=8));
    let dropped = teller.books(teller.on(-7, 9), "priya", dropped);
    teller.does(
        teller.ago(26),
        "priya",
        Act::Cancel(dropped, "the deadline moved"),
    );

    // Out of service, then and now.
    let gpu_02 = Thing {
        site,
        name: "gpu-02",
    };
    teller.status(
        -35,
        "yuki",
        gpu_02,
        (
            Status::Maintenance,
            "firmware update of the management controller",
        ),
    );
    teller.back_in_service(-34, "yuki", gpu_02);
    let gpu = Thing {
        site,
        name: "gpu-04.gpu5",
    };
    teller.status(
        -9,
        "marco",
        gpu,
        (
            Status::Unavailable,
            "falls off the bus (Xid 79); sent back to the vendor",
        ),
    );
    let gpu_06 = Thing {
        site,
        name: "gpu-06",
    };
    teller.status(
        -3,
        "yuki",
        gpu_06,
        (
            Status::Maintenance,
            "fan 4 is failing; the replacement arrives this week",
        ),
    );

    // Maintenance: long past, called off, and ahead, with bookings in its way.
    let power = Work {
        site,
        title: "Power distribution check",
        resources: &["gpu-05", "gpu-06", "gpu-07", "gpu-08"],
        hour: 8,
        hours: 4,
    };
    teller.maintains(7, -30, "marco", power);
    let network = Work {
        site,
        title: "Switch firmware",
        resources: &["sw-1"],
        hour: 7,
        hours: 2,
    };
    let network = teller.maintains(8, -12, "yuki", network);
    teller.does(
        teller.on(-14, 15),
        "yuki",
        Act::CallOffMaintenance(network, "the vendor withdrew the firmware"),
    );
    for who in ["amara", "mehmet"] {
        let in_the_way =
            wish(site, "Long evaluation", teller.almanac.at(9, 10, 0), 8).of(gpus(1..=4));
        teller.books(teller.on(-5, 10), who, in_the_way);
    }
    let cooling = Work {
        site,
        title: "Service of the cooling loop",
        resources: &["gpu-01", "gpu-02", "gpu-03", "gpu-04"],
        hour: 8,
        hours: 6,
    };
    teller.maintains(10, 9, "marco", cooling);
}

/// Any one GPU of these servers.
fn gpus(of: Numbers) -> impl Iterator<Item = Vec<Want>> {
    of.flat_map(|server| (0..8).map(move |gpu| vec![all_of(format!("gpu-{server:02}.gpu{gpu}"))]))
}

fn servers(of: Numbers) -> impl Iterator<Item = Vec<Want>> {
    of.map(|server| vec![all_of(format!("gpu-{server:02}"))])
}

fn server_answers(teller: &Teller<'_>) -> Value {
    let keep_until = teller.almanac.date(30).to_string();
    json!({ "gpu-server": {
        "image": "ubuntu-24.04",
        "bmc-password": "not-a-real-password",
        "keep-disks-until": keep_until,
    } })
}
