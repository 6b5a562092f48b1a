//! What happened once, and should be found by whoever looks: approvals given, refused and forgotten, machines taken
//! out of service, maintenance that went around one booking and over another, people who came and went.
//!
//! Chance fills the calendar; these stories make sure that every site shows everything Berth knows. Days count from
//! the day the world is made. Where a story must not meet a chance booking it is told in the evening or offers many
//! choices.

use berth_model::Status;
use jiff::civil::Weekday;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::almanac::Almanac;
use super::habits::lasting;
use super::people::GLOBAL_ADMIN;
use super::script::{Act, DAYS_BEFORE, Key, Maintenance, Script, Thing, Want, Wish, all_of};

pub fn write(script: &mut Script, almanac: &Almanac, now: Timestamp) {
    let mut teller = Teller {
        script,
        almanac,
        now,
    };
    comings_and_goings(&mut teller);
    courses(&mut teller);
    torino(&mut teller);
    bologna(&mut teller);
    napoli(&mut teller);
}

struct Teller<'a> {
    script: &'a mut Script,
    almanac: &'a Almanac,
    now: Timestamp,
}

impl Teller<'_> {
    fn on(&self, day: i64, hour: i8) -> Timestamp {
        self.almanac.at(day, hour, 15)
    }

    /// So many hours before now: for what must have happened just so recently.
    fn ago(&self, hours: i64) -> Timestamp {
        self.now - SignedDuration::from_hours(hours)
    }

    fn does(&mut self, at: Timestamp, who: &'static str, act: Act) {
        self.script.scene(at, who, act);
    }

    fn books(&mut self, at: Timestamp, who: &'static str, wish: Wish) -> Key {
        self.script.book(at, who, wish)
    }

    /// Takes effect on this day and is planned the given number of days before.
    fn maintains(&mut self, days_ahead: i64, day: i64, who: &'static str, what: Work) -> Key {
        let Work {
            site,
            title,
            resources,
            hour,
            hours,
        } = what;
        let span = lasting(
            self.almanac.at(day, hour, 0),
            SignedDuration::from_hours(hours),
        );
        let window = Maintenance {
            site,
            title,
            resources,
            span,
        };
        self.script.plan(self.on(day - days_ahead, 9), who, window)
    }

    fn status(&mut self, day: i64, who: &'static str, thing: Thing, to: (Status, &'static str)) {
        self.does(
            self.on(day, 8),
            who,
            Act::SetStatus(thing, to.0, Some(to.1)),
        );
    }

    fn back_in_service(&mut self, day: i64, who: &'static str, thing: Thing) {
        self.does(
            self.on(day, 17),
            who,
            Act::SetStatus(thing, Status::Active, None),
        );
    }
}

/// A maintenance window before it has a day. It names machines and not their rack: going around a booking then
/// spares that booking's machine, and not everything beside it.
struct Work {
    site: &'static str,
    title: &'static str,
    resources: &'static [&'static str],
    hour: i8,
    hours: i64,
}

fn wish(site: &'static str, title: &str, start: Timestamp, hours: i64) -> Wish {
    Wish {
        site,
        title: title.to_owned(),
        span: lasting(start, SignedDuration::from_hours(hours)),
        project: None,
        private: false,
        choices: Vec::new(),
        answers: json!({}),
    }
}

impl Wish {
    fn of(self, choices: impl IntoIterator<Item = Vec<Want>>) -> Self {
        Self {
            choices: choices.into_iter().collect(),
            ..self
        }
    }

    fn answering(self, answers: Value) -> Self {
        Self { answers, ..self }
    }

    fn for_project(self, project: &'static str) -> Self {
        Self {
            project: Some(project),
            ..self
        }
    }
}

fn comings_and_goings(teller: &mut Teller<'_>) {
    let join = |site, message| Act::AskToJoin { site, message };
    teller.does(
        teller.on(-41, 10),
        "kwame",
        join("napoli", "I start with Wei's group on Monday"),
    );
    teller.does(
        teller.on(-40, 9),
        "gennaro",
        Act::LetIn {
            site: "napoli",
            login: "kwame",
        },
    );
    teller.does(
        teller.on(-25, 11),
        "olga",
        join("napoli", "For a collaboration on zebrafish"),
    );
    let reason = "please ask through your institute's contact";
    teller.does(
        teller.on(-24, 9),
        "gennaro",
        Act::TurnAway {
            site: "napoli",
            login: "olga",
            reason,
        },
    );
    teller.does(teller.on(-20, 16), GLOBAL_ADMIN, Act::Suspend("victor"));
    let farewell = wish("bologna", "Last assembly", teller.on(3, 8), 20).of(nodes(1..=12));
    teller.books(
        teller.on(-16, 10),
        "bruno",
        farewell.answering(node_answers()),
    );
    teller.does(
        teller.on(-15, 17),
        "chiara",
        Act::RemoveMember {
            site: "bologna",
            login: "bruno",
        },
    );
    // These three wait for an answer.
    teller.does(
        teller.on(-3, 14),
        "diego",
        join("bologna", "Evaluation on CPU nodes, with Priya"),
    );
    teller.does(
        teller.on(-2, 15),
        "ravi",
        join("torino", "New PhD student of the vision group"),
    );
    teller.does(
        teller.on(-1, 12),
        "hanna",
        join("napoli", "Two weeks of image analysis in spring"),
    );
}

/// Booked for the whole term on the first day, by the admins, who need nobody's leave.
fn courses(teller: &mut Teller<'_>) {
    let first = -DAYS_BEFORE + 3;
    let courses = [
        (
            "torino",
            "marco",
            "Robotics practical",
            Weekday::Tuesday,
            14,
            3,
            "lab",
            json!({ "room": { "attendees": 20, "projector": true } }),
        ),
        (
            "bologna",
            "chiara",
            "Open visualisation hour",
            Weekday::Thursday,
            11,
            1,
            "vis-room",
            json!({ "vis-room": { "visitors": 15 } }),
        ),
        (
            "napoli",
            "gennaro",
            "Microscopy course",
            Weekday::Wednesday,
            9,
            3,
            "light-sheet",
            json!({ "microscope": { "objective": "20x", "trained-on": "2024-10-01" } }),
        ),
    ];
    for (site, who, title, weekday, hour, hours, room, answers) in courses {
        for week in 0..14 {
            let day = teller.almanac.next_weekday(first + 7 * week, weekday);
            let lesson = wish(site, title, teller.almanac.at(day, hour, 0), hours);
            let lesson = lesson.of([vec![all_of(room)]]).answering(answers.clone());
            teller.books(teller.on(first - 1, 9), who, lesson);
        }
    }
}

fn torino(teller: &mut Teller<'_>) {
    let site = "torino";
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

fn bologna(teller: &mut Teller<'_>) {
    let site = "bologna";
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

fn napoli(teller: &mut Teller<'_>) {
    let site = "napoli";
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

type Numbers = std::ops::RangeInclusive<u32>;

/// Any one GPU of these servers.
fn gpus(of: Numbers) -> impl Iterator<Item = Vec<Want>> {
    of.flat_map(|server| (0..8).map(move |gpu| vec![all_of(format!("gpu-{server:02}.gpu{gpu}"))]))
}

fn servers(of: Numbers) -> impl Iterator<Item = Vec<Want>> {
    of.map(|server| vec![all_of(format!("gpu-{server:02}"))])
}

fn nodes(of: Numbers) -> impl Iterator<Item = Vec<Want>> {
    of.map(|node| vec![all_of(format!("node-{node:02}"))])
}

fn node_answers() -> Value {
    json!({ "hpc-node": { "image": "slurm-worker" } })
}

fn server_answers(teller: &Teller<'_>) -> Value {
    let keep_until = teller.almanac.date(30).to_string();
    json!({ "gpu-server": {
        "image": "ubuntu-24.04",
        "bmc-password": "not-a-real-password",
        "keep-disks-until": keep_until,
    } })
}
