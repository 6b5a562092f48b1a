//! What people usually do: book something they need often, and sometimes think better of it.

mod bologna;
mod napoli;
mod torino;

use std::ops::RangeInclusive;

use berth_model::Span;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::almanac::{Almanac, is_working_day};
use super::chance::Chance;
use super::people::{self, Character};
use super::script::{Act, Key, Script, Season, Want, Wish};

/// Something that is booked again and again in one site.
#[derive(Debug)]
pub struct Habit {
    pub site: &'static str,
    pub per_week: i64,
    pub titles: &'static [&'static str],
    pub hours: RangeInclusive<i64>,
    pub when: When,
    pub needs_approval: bool,
    choices: fn(&mut Chance) -> Vec<Vec<Want>>,
    answers: fn(&mut Chance) -> Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// People have to be there.
    WorkingHours,
    AnyTime,
}

pub fn all() -> impl Iterator<Item = &'static Habit> {
    [torino::HABITS, bologna::HABITS, napoli::HABITS]
        .into_iter()
        .flatten()
}

/// Writes a season of ordinary days into the script.
pub fn write(script: &mut Script, chance: &Chance, almanac: &Almanac, season: Season) {
    for habit in all() {
        let mut chance = chance.fork(habit.site).fork(habit.titles[0]);
        for _ in 0..times_in(season, habit.per_week, &mut chance) {
            let asked_at = moment_of_work(&mut chance, almanac, season);
            let day = almanac.day_of(asked_at);
            let Some(who) = someone(&mut chance, habit.site, day) else {
                continue;
            };
            let lead = SignedDuration::from_mins(minutes_ahead(&mut chance));
            let wish = wish(habit, &mut chance, almanac, who, asked_at + lead);
            let span = wish.span;
            let key = script.book(asked_at, who.login, wish);
            let asked = Asked {
                habit,
                at: asked_at,
                span,
            };
            if let Some((at, who, act)) = asked.decision(&mut chance, key) {
                script.scene(at, who, act);
            }
            if let Some((at, act)) = asked.second_thought(&mut chance, key) {
                script.scene(at, who.login, act);
            }
        }
    }
}

/// How often something weekly happens in the season; of a part of a time, chance decides.
fn times_in(season: Season, per_week: i64, chance: &mut Chance) -> i64 {
    const WEEK: i64 = 7 * 24 * 3600;
    let parts = season.until.duration_since(season.from).as_secs() * per_week;
    parts / WEEK + i64::from(chance.between(1..=WEEK) <= parts % WEEK)
}

/// Someone who books there on that day.
pub fn someone(chance: &mut Chance, site: &str, day: i64) -> Option<&'static Character> {
    let bookers = people::bookers(site, day);
    (!bookers.is_empty()).then(|| chance.pick(&bookers))
}

/// A wish of this habit that starts not before the given moment.
pub fn wish(
    habit: &Habit,
    chance: &mut Chance,
    almanac: &Almanac,
    who: &Character,
    not_before: Timestamp,
) -> Wish {
    let start = match habit.when {
        When::WorkingHours => almanac.working_hour(not_before, chance.between(8..=16) as i8),
        When::AnyTime => almanac.round_up(not_before),
    };
    let length = SignedDuration::from_hours(chance.between(habit.hours.clone()));
    Wish {
        site: habit.site,
        title: chance.pick(habit.titles).to_owned(),
        span: lasting(start, length),
        project: who.project_in(habit.site).filter(|_| chance.percent(70)),
        private: chance.percent(8),
        choices: (habit.choices)(chance),
        answers: (habit.answers)(chance),
    }
}

/// The span that begins here and lasts so long, which must be longer than nothing.
pub fn lasting(start: Timestamp, length: SignedDuration) -> Span {
    match Span::new(start, start + length) {
        Ok(span) => span,
        Err(error) => unreachable!("the demo's own times are sound: {error}"),
    }
}

/// Most plan a day or two ahead, some two weeks, a few for after the deadline next month.
fn minutes_ahead(chance: &mut Chance) -> i64 {
    const DAY: i64 = 24 * 60;
    match chance.between(1..=100) {
        1..=40 => chance.between(30..=3 * DAY),
        41..=78 => chance.between(3 * DAY..=14 * DAY),
        _ => chance.between(14 * DAY..=45 * DAY),
    }
}

/// A moment within the season when people are awake, mostly on working days.
fn moment_of_work(chance: &mut Chance, almanac: &Almanac, season: Season) -> Timestamp {
    let length = season.until.duration_since(season.from).as_secs().max(1);
    loop {
        let seconds = chance.between(0..=length);
        let moment = season.from + SignedDuration::from_secs(seconds);
        let (date, hour) = (almanac.date_of(moment), almanac.hour_of(moment));
        let unlikely = !(8..20).contains(&hour) || !is_working_day(date);
        if !unlikely || chance.percent(10) {
            return moment;
        }
    }
}

/// A booking that was asked for, and what may become of it.
#[derive(Debug)]
struct Asked {
    habit: &'static Habit,
    at: Timestamp,
    span: Span,
}

impl Asked {
    /// What an admin says to it, if they must and get round to it.
    fn decision(&self, chance: &mut Chance, key: Key) -> Option<(Timestamp, &'static str, Act)> {
        if !self.habit.needs_approval || chance.percent(8) {
            return None;
        }
        let at = self.at + SignedDuration::from_mins(chance.between(20..=40 * 60));
        let who = chance.pick(&people::admins_of(self.habit.site));
        let act = if chance.percent(85) {
            Act::Approve(key)
        } else {
            Act::Reject(key, chance.pick(&REFUSALS))
        };
        Some((at, who, act))
    }

    /// What its owner does with it later; nothing, mostly.
    fn second_thought(&self, chance: &mut Chance, key: Key) -> Option<(Timestamp, Act)> {
        let (start, length) = (self.span.start(), self.span.duration());
        let before = |chance: &mut Chance| {
            let ahead = start.duration_since(self.at).as_secs();
            self.at + SignedDuration::from_secs(ahead * chance.between(20..=90) / 100)
        };
        let during = |chance: &mut Chance| {
            start + SignedDuration::from_secs(length.as_secs() * chance.between(30..=85) / 100)
        };
        let quarter = SignedDuration::from_mins((length.as_mins() / 4).max(30));
        Some(match chance.between(1..=100) {
            1..=8 => (
                before(chance),
                Act::Cancel(key, chance.pick(&SECOND_THOUGHTS)),
            ),
            9..=14 => (during(chance), Act::Cancel(key, chance.pick(&EARLY_ENDS))),
            15..=24 => (during(chance), Act::Lengthen(key, quarter)),
            25..=29 => (before(chance), Act::Lengthen(key, -quarter)),
            30..=36 => {
                let later = SignedDuration::from_hours(chance.between(1..=24));
                (before(chance), Act::Move(key, later))
            }
            _ => return None,
        })
    }
}

const REFUSALS: [&str; 4] = [
    "please share a server: four GPUs would do for this",
    "the group has had its part of this month",
    "clashes with the review on that day; ask again for the week after",
    "training for this instrument has lapsed",
];

pub const SECOND_THOUGHTS: [&str; 4] = [
    "the data set is not ready yet",
    "the deadline moved",
    "runs on my workstation after all",
    "booked twice by mistake",
];

pub const EARLY_ENDS: [&str; 3] = [
    "finished early",
    "diverged after an hour; back to the drawing board",
    "found a bug, giving the rest back",
];

/// Several ways to have the same thing, in random order, so that people try elsewhere when a place is taken.
fn in_any_order(
    chance: &mut Chance,
    mut choices: Vec<Vec<Want>>,
    at_most: usize,
) -> Vec<Vec<Want>> {
    chance.shuffle(&mut choices);
    choices.truncate(at_most);
    choices
}
