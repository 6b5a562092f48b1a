//! What a client wants next: drawn by chance, so that most wishes meet somebody else's.

use std::collections::BTreeMap;

use anyhow::Result;
use berth_api::desk::WaitFor;
use berth_api::series::OnConflict;
use berth_model::reservation::State;
use berth_model::{Amount, ResourceId, Span, Status, Take};
use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::known::{Content, Known};
use super::world::{Kind, Thing, World};

/// The part of the future that everybody wants, in slots of half an hour.
const SLOTS: i64 = 96;
const SLOT: SignedDuration = SignedDuration::from_mins(30);
const SLOTS_LONG_MAX: i64 = 6;
/// How many bookings a client keeps before it gives one up.
const OWN_MAX: usize = 12;

/// One thing to ask for. Bookings are named by their place among the client's own.
#[derive(Debug, Clone)]
pub enum Wish {
    Book(Content, How),
    /// The same on several days, beginning with this one.
    BookSeries(Content, Days),
    /// Another time, other resources, or both: what the booking is to become.
    Change(usize, Content),
    ExtendBy(usize, SignedDuration),
    ExtendUntil(usize, Timestamp),
    Cancel(usize),
    Take(usize),
    Look(usize),
    Move {
        what: ResourceId,
        under: ResourceId,
    },
    Flip {
        what: ResourceId,
        to: Status,
    },
    /// About something that waits for an admin.
    Decide,
}

/// How a booking is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Outright,
    /// Kept free for a moment, with alternatives where it is taken.
    Held,
    /// Later, if not now.
    Waiting(WaitFor),
}

/// On how many days, and what becomes of them where some are taken.
#[derive(Debug, Clone, Copy)]
pub struct Days {
    pub count: u16,
    pub on_conflict: OnConflict,
}

/// One client's chance.
#[derive(Debug)]
pub struct Chance {
    random: StdRng,
    /// Where the wanted part of the future begins.
    epoch: Timestamp,
    titles: u64,
}

impl Chance {
    pub fn new(seed: u64, epoch: Timestamp) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
            epoch,
            titles: 0,
        }
    }

    pub fn wish(
        &mut self,
        world: &World,
        is_admin: bool,
        own: &[Known],
        now: Timestamp,
    ) -> Result<Wish> {
        let roll = self.random.random_range(0..100);
        if own.is_empty() || (roll < 45 && own.len() < OWN_MAX) {
            let wanted = Content {
                title: self.title()?,
                span: self.span(now)?,
                items: self.items(world)?,
            };
            // What begins about now cannot be had again tomorrow without time coming between.
            let is_far = wanted.span.start() >= self.epoch;
            return Ok(if is_far && self.random.random_ratio(1, 8) {
                Wish::BookSeries(wanted, self.days())
            } else {
                Wish::Book(wanted, self.how())
            });
        }
        let which = self.random.random_range(0..own.len());
        if let Some(wish) = self.unsettled(which, own[which].state) {
            return Ok(wish);
        }
        let had = &own[which].content;
        Ok(match roll {
            0..45 => Wish::Cancel(which),
            45..60 => Wish::Change(which, self.elsewhere(world, had, now)?),
            60..65 => Wish::ExtendBy(which, self.minutes(1..120)),
            65..70 => Wish::ExtendUntil(which, had.span.end() + self.minutes(1..120)),
            70..78 => Wish::Change(which, self.shorter(had)?),
            78..90 => Wish::Cancel(which),
            90..92 => Wish::Look(which),
            92..94 if is_admin => Wish::Decide,
            94..97 if is_admin => self.subtree_move(world)?,
            97.. if is_admin => self.flip(world)?,
            _ => Wish::Look(which),
        })
    }

    /// What can be done with what is not a booking yet.
    fn unsettled(&mut self, which: usize, state: State) -> Option<Wish> {
        let roll = self.random.random_range(0..10);
        Some(match (state, roll) {
            (State::Held, 0..6) => Wish::Take(which),
            (State::Held | State::Waiting, 0..9) => Wish::Look(which),
            (State::Held | State::Waiting, _) => Wish::Cancel(which),
            _ => return None,
        })
    }

    fn how(&mut self) -> How {
        match self.random.random_range(0..24) {
            0..2 => How::Held,
            2..4 => How::Waiting(WaitFor::Booking),
            4 => How::Waiting(WaitFor::Offer),
            _ => How::Outright,
        }
    }

    pub fn one_of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        all.choose(&mut self.random).cloned()
    }

    /// Two to four days, so that most of them are in the part of the future that everybody wants.
    fn days(&mut self) -> Days {
        Days {
            count: self.random.random_range(2..=4),
            on_conflict: if self.coin() {
                OnConflict::Skip
            } else {
                OnConflict::Refuse
            },
        }
    }

    pub fn coin(&mut self) -> bool {
        self.random.random_ratio(1, 2)
    }

    /// A title that no booking had before.
    pub fn title(&mut self) -> Result<berth_model::Text> {
        self.titles += 1;
        Ok(format!("wish {}", self.titles).parse()?)
    }

    fn minutes(&mut self, range: std::ops::Range<i64>) -> SignedDuration {
        SignedDuration::from_mins(self.random.random_range(range))
    }

    fn millis(&mut self, range: std::ops::Range<i64>) -> SignedDuration {
        SignedDuration::from_micros(
            self.random
                .random_range(range.start * 1000..range.end * 1000),
        )
    }

    /// Mostly in the wanted part of the future; now and then about now, so that time has something to start and end
    /// while the server is being killed, and sometimes as far back as a booking may begin.
    fn span(&mut self, now: Timestamp) -> Result<Span> {
        let (start, length) = match self.random.random_range(0..100) {
            0..20 => (now + self.millis(-1000..1500), self.millis(20..4000)),
            20..24 => {
                let start = now - self.millis(0..240_000);
                (start, now.duration_since(start) + self.millis(20..2000))
            }
            _ => {
                let slot = self.random.random_range(0..SLOTS);
                let long = self.random.random_range(1..=SLOTS_LONG_MAX);
                let start = self.epoch + SLOT * i32::try_from(slot)?;
                (start, SLOT * i32::try_from(long)?)
            }
        };
        Ok(Span::new(start, start + length)?)
    }

    /// One to three resources. Some draws contain one another and are refused for it.
    fn items(&mut self, world: &World) -> Result<BTreeMap<ResourceId, Take>> {
        let count = *[1, 1, 1, 2, 2, 3].choose(&mut self.random).unwrap_or(&1);
        let mut items = BTreeMap::new();
        for _ in 0..count {
            let thing = self.thing(world);
            items.insert(thing.id, self.take(&thing)?);
        }
        Ok(items)
    }

    /// Parts are wanted more often than wholes, or nothing would fit.
    fn thing(&mut self, world: &World) -> Thing {
        let kind = match self.random.random_range(0..100) {
            0..2 => Kind::Rack,
            2..10 => Kind::Server,
            10..30 => Kind::Gpu,
            30..65 => Kind::Slice,
            _ => Kind::Cores,
        };
        self.of_kind(world, kind)
    }

    fn of_kind(&mut self, world: &World, kind: Kind) -> Thing {
        let all: Vec<&Thing> = world.of_kind(kind).collect();
        **all
            .choose(&mut self.random)
            .expect("the world has every kind")
    }

    fn take(&mut self, thing: &Thing) -> Result<Take> {
        Ok(match thing.capacity {
            Some(capacity) if !self.random.random_ratio(1, 8) => {
                Take::Amount(Amount::new(self.random.random_range(1..=capacity / 2))?)
            }
            _ => Take::Exclusive,
        })
    }

    /// The same booking somewhere else: at another time, and one time in three on other resources.
    fn elsewhere(&mut self, world: &World, had: &Content, now: Timestamp) -> Result<Content> {
        let mut wanted = had.clone();
        wanted.span = self.span(now)?;
        if wanted.span == had.span {
            wanted.span = Span::new(wanted.span.start(), wanted.span.end() + SLOT)?;
        }
        if self.random.random_ratio(1, 3) {
            wanted.items = self.items(world)?;
        } else if self.random.random_ratio(1, 4) {
            // More or less of what it has.
            for (id, take) in &mut wanted.items {
                let thing = world.things.iter().find(|thing| thing.id == *id);
                *take = self.take(thing.expect("a booking is on the world's things"))?;
            }
        }
        Ok(wanted)
    }

    fn shorter(&mut self, had: &Content) -> Result<Content> {
        let length_us = had.span.duration().as_micros() as i64;
        let cut_us = self.random.random_range(1..length_us.max(2));
        let end = had.span.end() - SignedDuration::from_micros(cut_us);
        let mut wanted = had.clone();
        wanted.span = Span::new(had.span.start(), end).unwrap_or(had.span);
        if wanted.span == had.span {
            wanted.title = self.title()?;
        }
        Ok(wanted)
    }

    /// To a parent of the right kind; one time in twenty to one that can never be.
    fn subtree_move(&mut self, world: &World) -> Result<Wish> {
        let movable = [Kind::Server, Kind::Gpu, Kind::Slice, Kind::Cores];
        let kind = *movable.choose(&mut self.random).unwrap_or(&Kind::Gpu);
        let what = self.of_kind(world, kind).id;
        let above = match kind {
            _ if self.random.random_ratio(1, 20) => Kind::Cores,
            Kind::Rack | Kind::Server => Kind::Rack,
            Kind::Gpu | Kind::Cores => Kind::Server,
            Kind::Slice => Kind::Gpu,
        };
        let under = self.of_kind(world, above).id;
        Ok(Wish::Move { what, under })
    }

    /// Mostly back into service, so that most of the lab can be booked most of the time.
    fn flip(&mut self, world: &World) -> Result<Wish> {
        let kind = *[Kind::Server, Kind::Gpu, Kind::Slice]
            .choose(&mut self.random)
            .unwrap_or(&Kind::Gpu);
        let to = match self.random.random_range(0..100) {
            0..3 => Status::Maintenance,
            3..6 => Status::Unavailable,
            _ => Status::Active,
        };
        let what = self.of_kind(world, kind).id;
        Ok(Wish::Flip { what, to })
    }
}
