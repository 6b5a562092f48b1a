//! What happened once, and should be found by whoever looks: approvals given, refused and forgotten, machines taken
//! out of service, maintenance that went around one booking and over another, people who came and went.
//!
//! Chance fills the calendar; these stories make sure that every site shows everything Berth knows. Days count from
//! the day the world is made. Where a story must not meet a chance booking it is told in the evening or offers many
//! choices.

mod bologna;
mod napoli;
mod torino;

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
    torino::tell(&mut teller);
    bologna::tell(&mut teller);
    napoli::tell(&mut teller);
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

    /// Booked for the whole term on one of the first days, by an admin, who needs nobody's leave.
    fn teaches(&mut self, course: Course) {
        let first = 3 - DAYS_BEFORE;
        let day = self.almanac.next_weekday(first, course.weekday);
        let start = self.almanac.at(day, course.hour, 0);
        let lesson = wish(course.site, course.title, start, course.hours)
            .of([vec![all_of(course.room)]])
            .answering(course.answers);
        let at = self.on(first - 1, 9);
        self.script
            .asks(at, course.who, |key| Act::Repeat(key, lesson, WEEKS));
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

/// A term has so many.
const WEEKS: u16 = 14;

/// A lesson every week.
struct Course {
    site: &'static str,
    who: &'static str,
    title: &'static str,
    weekday: Weekday,
    hour: i8,
    hours: i64,
    room: &'static str,
    answers: Value,
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

type Numbers = std::ops::RangeInclusive<u32>;
