//! Finds alternatives to a refused request: another time, other resources, fewer resources, or two parts.
//!
//! Each alternative has a distance from the request, measured in time. The nearest comes first:
//! - another time: the difference between its start and the requested start;
//! - elsewhere at the same time: the distance that the caller gives to these resources, such as nothing for the rack
//!   next door and some hours for another site;
//! - fewer: the part of the length that the missing resources would have worked, so half of them is half the length;
//! - two parts: how much later the last part ends or how much earlier the first part begins, plus [`SPLIT_S`].
//!
//! The search considers only free time and permitted starts. The caller must check each alternative against the
//! policies.

use berth_model::claim::Take;
use berth_model::{ResourceId, Span};
use jiff::SignedDuration;

use crate::busy::{Busy, Scratch, Stretch, length_us, span, stretch};
use crate::placement::{Candidate, choose, lowest};
use crate::when::{Search, Way};

/// Distance added to an alternative in two parts, in seconds.
pub const SPLIT_S: i64 = 30 * 60;

/// Number of later times to offer, in addition to one earlier time.
const LATER_MAX: usize = 2;

/// Resources that could meet a request.
#[derive(Debug, Clone, Copy)]
pub struct Pool<'a> {
    pub busy: &'a Busy,
    pub candidates: &'a [Candidate],
    /// The moments at which the policies let a booking of the requested length start, as half-open spans in any
    /// order.
    pub starts: &'a [Span],
}

/// A refused request for any `count` resources of the pool. If the request names its resources, the pool is exactly
/// these.
#[derive(Debug, Clone, Copy)]
pub struct Refused<'a> {
    pub pool: Pool<'a>,
    pub take: Take,
    pub count: usize,
    pub span: Span,
}

/// Limits of the search.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub within: Span,
    /// Minimum difference from the requested start. A nearer start is the request itself, which was refused.
    pub apart: SignedDuration,
    /// Minimum length of each part of a split. The parts are multiples of `step`.
    pub part_min: SignedDuration,
    pub step: SignedDuration,
    /// Maximum number of alternatives.
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Offer {
    Time {
        span: Span,
        resources: Vec<ResourceId>,
    },
    /// At the requested time, in the equivalent pool with this index.
    Elsewhere {
        pool: usize,
        resources: Vec<ResourceId>,
    },
    /// At the requested time, with fewer resources.
    Fewer { resources: Vec<ResourceId> },
    /// Two parts that together are as long as requested, the earlier part first.
    Split { parts: [(Span, Vec<ResourceId>); 2] },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alternative {
    pub distance: SignedDuration,
    pub offer: Offer,
}

/// Returns the alternatives to a refused request, the nearest first. `elsewhere` lists equivalent pools, each with
/// its distance.
pub fn alternatives(
    wish: &Refused<'_>,
    elsewhere: &[(Pool<'_>, SignedDuration)],
    bounds: &Bounds,
) -> Vec<Alternative> {
    let mut found = other_times(wish, bounds);
    for (number, (pool, distance)) in elsewhere.iter().enumerate() {
        let there = Refused {
            pool: *pool,
            ..*wish
        };
        if let Some(resources) = at_the_time(&there, wish.count) {
            let pool = number;
            let offer = Offer::Elsewhere { pool, resources };
            found.push(Alternative {
                distance: *distance,
                offer,
            });
        }
    }
    found.extend(fewer(wish));
    found.extend(split(wish, bounds));
    found.sort();
    found.truncate(bounds.limit);
    found
}

/// Chooses `count` resources of the pool at the requested time, if a booking may start then.
fn at_the_time(wish: &Refused<'_>, count: usize) -> Option<Vec<ResourceId>> {
    let Pool {
        busy,
        candidates,
        starts,
    } = wish.pool;
    let is_permitted = may_start(starts, stretch(wish.span).0);
    let chosen = || choose(busy, candidates, wish.take, count, wish.span);
    is_permitted.then(chosen).flatten()
}

fn may_start(starts: &[Span], at: i64) -> bool {
    let mut starts = starts.iter().map(|open| stretch(*open));
    starts.any(|open| open.0 <= at && at < open.1)
}

fn way<'a>(wish: &Refused<'a>, length: i64) -> Way<'a> {
    let Pool {
        busy,
        candidates,
        starts,
    } = wish.pool;
    Way {
        busy,
        candidates,
        take: wish.take,
        count: wish.count,
        length: SignedDuration::from_micros(length),
        starts,
    }
}

fn other_times(wish: &Refused<'_>, bounds: &Bounds) -> Vec<Alternative> {
    let (wished, within) = (stretch(wish.span), stretch(bounds.within));
    let search = Search::new(&way(wish, wished.1 - wished.0));
    let apart = length_us(bounds.apart).max(1);
    let earlier = search.last_start((within.0, within.1.min(wished.1 - apart)));
    let later = search.first_starts((within.0.max(wished.0 + apart), within.1), LATER_MAX);
    let offer = |start: i64| {
        let choice = search.choice(0, (start, start + search.length))?;
        let (span, resources) = (choice.span, choice.resources);
        Some(Alternative {
            distance: SignedDuration::from_micros((start - wished.0).abs()),
            offer: Offer::Time { span, resources },
        })
    };
    earlier.into_iter().chain(later).filter_map(offer).collect()
}

/// Offers the resources that are free at the requested time, if only some of the requested number are free.
fn fewer(wish: &Refused<'_>) -> Option<Alternative> {
    let wished = stretch(wish.span);
    let Pool {
        busy, candidates, ..
    } = wish.pool;
    let candidates = lowest(busy, candidates);
    let free = candidates
        .iter()
        .filter(|candidate| busy.is_free_at(candidate.place, wish.take, wished))
        .count();
    if free == 0 || free >= wish.count {
        return None;
    }
    let missing = (wish.count - free) as i128;
    let lost = i128::from(wished.1 - wished.0) * missing / wish.count as i128;
    Some(Alternative {
        distance: SignedDuration::from_micros(i64::try_from(lost).unwrap_or(i64::MAX)),
        offer: Offer::Fewer {
            resources: at_the_time(wish, free)?,
        },
    })
}

/// Finds the nearest split. One part keeps the requested start or the requested end, and is as long as possible.
fn split(wish: &Refused<'_>, bounds: &Bounds) -> Option<Alternative> {
    let (wished, within) = (stretch(wish.span), stretch(bounds.within));
    let (start, end) = wished;
    let length = end - start;
    let (part_min, step) = (
        length_us(bounds.part_min).max(1),
        length_us(bounds.step).max(1),
    );
    let to_step = |part: i64| part - part % step;
    let fits = |part: i64| part_min <= part && part_min <= length - part;
    let first = to_step(part_at(wish, Edge::Start, part_min).min(length - part_min));
    let last = to_step(part_at(wish, Edge::End, part_min).min(length - part_min));
    let begun = fits(first).then(|| {
        let rest = Search::new(&way(wish, length - first));
        let next = rest.first_starts((start + first, within.1), 1);
        let next = *next.first()?;
        Some([(start, start + first), (next, next + rest.length)])
    });
    let ended = fits(last).then(|| {
        let rest = Search::new(&way(wish, length - last));
        let before = rest.last_start((within.0, end - last))?;
        Some([(before, before + rest.length), (end - last, end)])
    });
    let splits = [begun.flatten(), ended.flatten()].into_iter().flatten();
    let permitted = splits.filter(|parts| {
        let mut parts = parts.iter();
        parts.all(|part| within.0 <= part.0 && may_start(wish.pool.starts, part.0))
    });
    let away = |parts: &[Stretch; 2]| (start - parts[0].0).max(parts[1].1 - end);
    let parts = permitted.min_by_key(away)?;
    let part = |during: Stretch| {
        let span = span(during)?;
        let Pool {
            busy, candidates, ..
        } = wish.pool;
        let chosen = choose(busy, candidates, wish.take, wish.count, span)?;
        Some((span, chosen))
    };
    Some(Alternative {
        distance: SignedDuration::from_micros(away(&parts)) + SignedDuration::from_secs(SPLIT_S),
        offer: Offer::Split {
            parts: [part(parts[0])?, part(parts[1])?],
        },
    })
}

enum Edge {
    Start,
    End,
}

/// How long enough candidates are free from the requested start on, or up to the requested end. Returns 0 if that is
/// less than `part_min`.
fn part_at(wish: &Refused<'_>, edge: Edge, part_min: i64) -> i64 {
    let wished = stretch(wish.span);
    let Pool {
        busy, candidates, ..
    } = wish.pool;
    let least = match edge {
        Edge::Start => (wished.0, wished.0.saturating_add(part_min).min(wished.1)),
        Edge::End => (wished.1.saturating_sub(part_min).max(wished.0), wished.1),
    };
    let mut scratch = Scratch::default();
    let candidates = lowest(busy, candidates);
    let around = candidates.iter().filter_map(|candidate| {
        let free = busy.free_around(candidate.place, wish.take, least, wished, &mut scratch)?;
        Some(free.1 - free.0)
    });
    let mut parts: Vec<i64> = around.collect();
    parts.sort_unstable_by_key(|part| std::cmp::Reverse(*part));
    let last_needed = wish.count.checked_sub(1);
    last_needed
        .and_then(|last| parts.get(last))
        .copied()
        .unwrap_or(0)
}

#[cfg(test)]
#[path = "alternatives/tests.rs"]
mod tests;
