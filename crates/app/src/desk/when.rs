//! Searches the earliest free times over all the caller's sites.

use std::collections::BTreeSet;

use berth_engine::placement::Candidate;
use berth_engine::rights::Action;
use berth_engine::when::{Way, earliest};
use berth_model::reference::SiteReference;
use berth_model::{Amount, Count, FieldErrors, ResourceId, Selection, SiteId, Span};
use berth_store::{Conn, sites};
use jiff::{SignedDuration, Timestamp};

use super::aside;
use super::board::BoardGuard;
use super::permitted::{For, Permitted};
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::reservations::LATE_START;

/// One way to meet a wish, as in "4 for 2 h, or 2 for 4 h".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    pub count: Count,
    pub length: SignedDuration,
}

/// The resources that a person wants, and the time window.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Without the count, which the variants give.
    pub what: Selection,
    /// At least one, in order of preference.
    pub variants: Vec<Variant>,
    /// From the earliest start to the deadline. If it is as long as the only variant, the time is fixed.
    pub window: Span,
}

/// A time at which the wish can be met.
#[derive(Debug, Clone)]
pub struct Choice {
    pub place: Place,
    pub variant: Variant,
    pub span: Span,
    pub resources: Vec<ResourceId>,
    /// The latest time for the approvals that are needed. None if no approval is needed.
    pub decide_by: Option<Timestamp>,
}

/// The choices found, and the extent of the search: an empty answer can then say why.
#[derive(Debug, Clone)]
pub struct Answer {
    pub choices: Vec<Choice>,
    pub sites: usize,
    /// How many resources match, taken or not.
    pub candidates: usize,
    pub directory: Directory,
}

const VARIANTS_MAX: usize = 5;
pub(super) const LENGTH_MAX: SignedDuration = SignedDuration::from_hours(366 * 24);
/// The longest window that a search accepts.
const WINDOW_MAX: SignedDuration = SignedDuration::from_hours(2 * 366 * 24);

impl Wish {
    pub fn new(what: Selection, variants: Vec<Variant>, window: Span) -> Result<Wish, FieldErrors> {
        let mut errors = FieldErrors::default();
        if !(1..=VARIANTS_MAX).contains(&variants.len()) {
            errors.push("variants", format!("give 1 to {VARIANTS_MAX} of them"));
        }
        for (i, variant) in variants.iter().enumerate() {
            if !variant.length.is_positive() || variant.length > LENGTH_MAX {
                let field = format!("variants[{i}].for");
                errors.push(
                    field,
                    "a reservation lasts more than nothing and at most 366 days",
                );
            }
        }
        if window.duration() > WINDOW_MAX {
            errors.push("before", "search at most two years at a time");
        }
        errors.or(Some(Wish {
            what,
            variants,
            window,
        }))
    }

    /// The start and end, if the window leaves no choice.
    pub(super) fn fixed(&self) -> Option<Span> {
        let [only] = &self.variants[..] else {
            return None;
        };
        (only.length == self.window.duration()).then_some(self.window)
    }
}

/// A site to be searched.
pub(super) struct Searched {
    pub place: Place,
    pub board: BoardGuard,
    /// How many resources match, taken or not.
    pub candidates: usize,
    pub pools: Vec<Pool>,
}

/// Candidates of some of the matching types. Policies apply to the types that a booking takes. So each set of types is
/// searched with its own policies.
pub(super) struct Pool {
    pub candidates: Vec<Candidate>,
    /// The permitted starts of a booking of these candidates, by variant.
    pub permitted: Vec<Permitted>,
}

impl Searched {
    /// Whether policies and closures leave no start at all, however much is free.
    pub fn is_closed(&self) -> bool {
        let mut all = self.pools.iter().flat_map(|pool| &pool.permitted);
        all.all(|permitted| permitted.starts.is_empty())
    }
}

impl App {
    /// The earliest choices in the named sites, or in all of the caller's sites.
    pub async fn when(
        &self,
        caller: &Caller,
        sites: &[SiteReference],
        wish: &Wish,
        limit: usize,
    ) -> Result<Answer> {
        let mut reader = self.store.read().await?;
        let places = self.searched_places(&mut reader, caller, sites).await?;
        drop(reader);
        let sites: Vec<SiteId> = places.iter().map(Place::id).collect();
        let wish = self.with_amount(&sites, wish).await?;
        let window = self.still_to_come(&wish)?;
        let of = For {
            owner: caller.id(),
            project: None,
        };
        let mut searched = Vec::new();
        for place in places {
            searched.push(self.searched(caller, place, &of, &wish, window).await?);
        }
        let (wish, searched, found) = aside(move || {
            let found = search(&searched, &wish, window, limit);
            (wish, searched, found)
        })
        .await?;
        let mut directory = Directory::default();
        let now = self.now();
        let choices = found.into_iter().map(|found| {
            let Found {
                site,
                pool,
                variant,
                span,
                resources,
            } = found;
            let Searched {
                place,
                board,
                pools,
                ..
            } = &searched[site];
            let permitted = &pools[pool].permitted[variant];
            directory.add_site(&place.site);
            board.name(&resources, &mut directory);
            let asks =
                board.asks_leave(&resources) && !place.can(caller, Action::DecideReservation);
            let by_type = asks.then(|| span.start());
            let by_policy = permitted.decide_by(span, now);
            Choice {
                place: place.clone(),
                variant: wish.variants[variant],
                span,
                resources,
                decide_by: by_type.into_iter().chain(by_policy).min(),
            }
        });
        Ok(Answer {
            choices: choices.collect(),
            sites: searched.len(),
            candidates: searched.iter().map(|site| site.candidates).sum(),
            directory,
        })
    }

    /// The wish with an amount. If it names none and only shared resources match, the amount is one: one seat, not all.
    pub(super) async fn with_amount(&self, sites: &[SiteId], wish: &Wish) -> Result<Wish> {
        let mut wish = wish.clone();
        if wish.what.amount.is_some() {
            return Ok(wish);
        }
        let (mut shared, mut whole) = (0, 0);
        for site in sites {
            let board = self.board(*site).await?;
            let found = board.candidates(&wish.what);
            let found = found
                .iter()
                .filter_map(|one| board.resources.get(&one.resource));
            for resource in found {
                match resource.capacity {
                    Some(_) => shared += 1,
                    None => whole += 1,
                }
            }
        }
        if shared > 0 && whole == 0 {
            wish.what.amount = Amount::new(1).ok();
        }
        Ok(wish)
    }

    /// Prepares a site for a search.
    pub(super) async fn searched(
        &self,
        caller: &Caller,
        place: Place,
        of: &For,
        wish: &Wish,
        window: Span,
    ) -> Result<Searched> {
        let board = self.board(place.id()).await?;
        let candidates = board.candidates(&wish.what);
        let mut reader = self.store.read().await?;
        let sets = self.type_sets(&mut reader, &place, &board, &candidates);
        let mut pools = Vec::new();
        for (types, candidates) in sets.await? {
            let mut permitted = Vec::new();
            for variant in &wish.variants {
                let (types, length) = (types.clone(), variant.length);
                let found = self.permitted(&mut reader, caller, &place, of, types, length, window);
                permitted.push(found.await?);
            }
            pools.push(Pool {
                candidates,
                permitted,
            });
        }
        Ok(Searched {
            place,
            board,
            candidates: candidates.len(),
            pools,
        })
    }

    /// The remaining part of a wish's window, from the next full minute: nobody means 09:28:14. A fixed time that began
    /// a moment ago is kept.
    pub(super) fn still_to_come(&self, wish: &Wish) -> Result<Span> {
        let window = wish.window;
        if let Some(fixed) = wish.fixed()
            && fixed.start() + LATE_START >= self.now()
        {
            return Ok(fixed);
        }
        let now = self.now().as_microsecond();
        let minute = 60_000_000;
        let next = now.div_euclid(minute) + i64::from(now.rem_euclid(minute) > 0);
        let next = Timestamp::from_microsecond(next * minute).unwrap_or(window.start());
        if window.start() >= self.now() {
            return Ok(window);
        }
        window.after(next).ok_or_else(|| {
            Error::InThePast(format!("it would end by {}, which is over", window.end()))
        })
    }

    /// The sites that the caller may search, in the order of their ids: boards are locked in this order.
    async fn searched_places(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        named: &[SiteReference],
    ) -> Result<Vec<Place>> {
        let mut places = Vec::new();
        for site in named {
            places.push(self.place(conn, caller, site, Action::SeeFreeBusy).await?);
        }
        if named.is_empty() {
            let mine = sites::memberships_of(conn, caller.id()).await?;
            let mine = mine
                .into_iter()
                .map(|(site, membership)| Place::of(caller, site, Some(membership.role)));
            places.extend(mine.filter(|place| place.can(caller, Action::SeeFreeBusy)));
        }
        places.sort_by_key(Place::id);
        places.dedup_by_key(|place| place.id());
        Ok(places)
    }
}

/// A choice, with the indices of its site and its variant.
pub(super) struct Found {
    site: usize,
    pool: usize,
    pub variant: usize,
    pub span: Span,
    pub resources: Vec<ResourceId>,
}

/// The earliest choices.
pub(super) fn search(sites: &[Searched], wish: &Wish, window: Span, limit: usize) -> Vec<Found> {
    let mut meant = Vec::new();
    for (site, searched) in sites.iter().enumerate() {
        for (pool, among) in searched.pools.iter().enumerate() {
            for (variant, permitted) in among.permitted.iter().enumerate() {
                meant.push((site, pool, variant, permitted, permitted.held_starts()));
            }
        }
    }
    // Deadlines apply to the booking itself; its buffers may reach beyond them.
    let within = meant
        .iter()
        .fold(window, |within, (_, _, _, permitted, _)| {
            within.hull(permitted.around(window))
        });
    let ways: Vec<Way<'_>> = meant
        .iter()
        .map(|(site, pool, variant, permitted, starts)| {
            let variant = wish.variants[*variant];
            Way {
                busy: &sites[*site].board.busy,
                candidates: &sites[*site].pools[*pool].candidates,
                take: wish.what.take(),
                count: variant.count.get(),
                length: permitted.set_up + variant.length + permitted.clean_up,
                starts,
            }
        })
        .collect();
    // Several pools of one site may find the same time. The first one counts.
    let pools_max = sites.iter().map(|site| site.pools.len()).max().unwrap_or(1);
    let choices = earliest(&ways, within, limit.saturating_mul(pools_max));
    let mut known = BTreeSet::new();
    let found = choices.into_iter().filter_map(|choice| {
        let (site, pool, variant, permitted, _) = meant[choice.way];
        let span = permitted.within(choice.span);
        known.insert((site, variant, span)).then_some(Found {
            site,
            pool,
            variant,
            span,
            resources: choice.resources,
        })
    });
    found.take(limit).collect()
}
