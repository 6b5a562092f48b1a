//! The script: who does what when. Written in full before anything happens, and the same for the same seed and moment.
//!
//! The script does not know what will come of it. A booking may be refused because the time is taken, and then
//! whatever was to be done with it later falls away, as it does for people.

use berth_model::{Span, Status};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::almanac::Almanac;
use super::chance::Chance;
use super::{habits, jobs, stories};

/// How far back the world begins.
pub const DAYS_BEFORE: i64 = 60;

#[derive(Debug)]
pub struct Scene {
    pub at: Timestamp,
    pub who: &'static str,
    pub act: Act,
}

/// Which booking, or which maintenance window, of the script is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub usize);

#[derive(Debug)]
pub enum Act {
    Book(Key, Wish),
    /// The first choice, every week so often; weeks in which it is taken are left out.
    Repeat(Key, Wish, u16),
    /// Any of a kind, by how much and what.
    BookAny(Key, Wish, &'static str),
    /// The first choice, and if that is taken, it waits for it.
    Wait(Key, Wish),
    /// Longer at the end, or shorter if negative.
    Lengthen(Key, SignedDuration),
    /// The same length, later.
    Move(Key, SignedDuration),
    Cancel(Key, &'static str),
    Approve(Key),
    Reject(Key, &'static str),
    /// Work for the queue, as the API takes it.
    Submit {
        site: &'static str,
        project: Option<&'static str>,
        ask: Value,
    },
    SetPolicy {
        site: &'static str,
        /// The part of the site's bookings that it is about.
        part: Value,
        asks: Value,
    },
    SetStatus(Thing, Status, Option<&'static str>),
    PlanMaintenance(Key, Maintenance),
    CallOffMaintenance(Key, &'static str),
    AskToJoin {
        site: &'static str,
        message: &'static str,
    },
    LetIn {
        site: &'static str,
        login: &'static str,
    },
    TurnAway {
        site: &'static str,
        login: &'static str,
        reason: &'static str,
    },
    RemoveMember {
        site: &'static str,
        login: &'static str,
    },
    Suspend(&'static str),
}

/// A resource by site and name.
#[derive(Debug, Clone, Copy)]
pub struct Thing {
    pub site: &'static str,
    pub name: &'static str,
}

/// What someone would like to book.
#[derive(Debug, Clone)]
pub struct Wish {
    pub site: &'static str,
    pub title: String,
    pub span: Span,
    pub project: Option<&'static str>,
    pub private: bool,
    /// What would do, best first: whoever finds one taken tries the next, and then gives up.
    pub choices: Vec<Vec<Want>>,
    /// Answers to the booking forms, by resource type.
    pub answers: Value,
}

#[derive(Debug, Clone)]
pub struct Want {
    pub resource: String,
    /// None: all of it.
    pub amount: Option<u64>,
}

pub fn all_of(resource: impl Into<String>) -> Want {
    Want {
        resource: resource.into(),
        amount: None,
    }
}

pub fn some_of(resource: impl Into<String>, amount: i64) -> Want {
    Want {
        resource: resource.into(),
        amount: Some(amount.unsigned_abs()),
    }
}

#[derive(Debug)]
pub struct Maintenance {
    pub site: &'static str,
    pub title: &'static str,
    pub resources: &'static [&'static str],
    pub span: Span,
}

/// The time a script covers. What people plan beyond its end may be booked, but nothing is done after it.
#[derive(Debug, Clone, Copy)]
pub struct Season {
    pub from: Timestamp,
    pub until: Timestamp,
}

#[derive(Debug)]
pub struct Script {
    scenes: Vec<Scene>,
    keys: usize,
}

impl Script {
    fn new() -> Self {
        Self {
            scenes: Vec::new(),
            keys: 0,
        }
    }

    pub fn scene(&mut self, at: Timestamp, who: &'static str, act: Act) {
        self.scenes.push(Scene { at, who, act });
    }

    pub fn book(&mut self, at: Timestamp, who: &'static str, wish: Wish) -> Key {
        let key = self.key();
        self.scene(at, who, Act::Book(key, wish));
        key
    }

    /// A booking made in another way than outright.
    pub fn asks(&mut self, at: Timestamp, who: &'static str, act: impl FnOnce(Key) -> Act) {
        let key = self.key();
        self.scene(at, who, act(key));
    }

    pub fn plan(&mut self, at: Timestamp, who: &'static str, window: Maintenance) -> Key {
        let key = self.key();
        self.scene(at, who, Act::PlanMaintenance(key, window));
        key
    }

    fn key(&mut self) -> Key {
        self.keys += 1;
        Key(self.keys)
    }

    /// The scenes of the season in order of time; those of one moment as they were written.
    fn scenes(mut self, season: Season) -> Vec<Scene> {
        self.scenes
            .retain(|scene| season.from <= scene.at && scene.at <= season.until);
        self.scenes.sort_by_key(|scene| scene.at);
        self.scenes
    }
}

/// The first two months: how it all came to be as it is now.
pub fn beginning(chance: &Chance, almanac: &Almanac, now: Timestamp) -> Vec<Scene> {
    let season = Season {
        from: now - SignedDuration::from_hours(24 * DAYS_BEFORE),
        until: now,
    };
    let mut script = Script::new();
    stories::write(&mut script, almanac, now);
    habits::write(&mut script, chance, almanac, season);
    jobs::write(&mut script, chance, season);
    script.scenes(season)
}

/// What people did while nobody looked: from when the demo was last stopped until now.
pub fn meanwhile(chance: &Chance, almanac: &Almanac, season: Season) -> Vec<Scene> {
    let mut script = Script::new();
    let chance = chance.fork(&season.from.to_string());
    habits::write(&mut script, &chance, almanac, season);
    jobs::write(&mut script, &chance, season);
    script.scenes(season)
}
