//! Alternatives to a refused booking, and holds that keep them free for the caller.

use berth_engine::alternatives::{Bounds, Offer, Pool, Refused, alternatives};
use berth_engine::busy::Busy;
use berth_engine::placement::Candidate;
use berth_engine::rights::Action;
use berth_model::reservation::Reservation;
use berth_model::{Claim, FieldErrors, Reference, ReservationId, ResourceId, SiteId, Span, Take};
use berth_store::sites;
use jiff::SignedDuration;

use super::any::NewAny;
use super::aside;
use super::board::BoardGuard;
use super::permitted::{For, Permitted};
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::reservations::{HOLDS_MAX, Item, NewReservation};

/// An alternative that could be booked a moment ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    pub kind: AlternativeKind,
    /// The distance from the wish, expressed as a time.
    pub distance: SignedDuration,
    pub take: Take,
    /// Two parts for a split, otherwise one.
    pub parts: Vec<Part>,
    /// The holds that keep the parts free, if the caller asked for holds.
    pub holds: Vec<ReservationId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlternativeKind {
    Time,
    Elsewhere,
    Fewer,
    Split,
    /// The same resources from the same start, but for a shorter time.
    Shorter,
}

/// A booking or a change that the claim rule refused.
#[derive(Debug, Clone)]
pub(crate) struct RefusedBooking<'a> {
    pub of: For,
    pub span: Span,
    /// All claims that the booking would hold, including buffers.
    pub claims: &'a [Claim],
    /// For a change: the current reservation, and the claims that it holds.
    pub standing: Option<(&'a Reservation, Vec<Claim>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub site: SiteId,
    pub span: Span,
    pub resources: Vec<ResourceId>,
}

/// A wish that was refused.
struct Wanted {
    pool: Vec<Candidate>,
    take: Take,
    count: usize,
    span: Span,
    /// The resources that were asked for by name. Equivalent resources are as good.
    named: Vec<ResourceId>,
    /// The claims that the booking holds already. They are not in its way.
    own: Vec<Claim>,
}

/// How far before and after the wish to search.
const LOOK: SignedDuration = SignedDuration::from_hours(14 * 24);
const APART: SignedDuration = SignedDuration::from_mins(1);
const PART_MIN: SignedDuration = SignedDuration::from_mins(30);
const STEP: SignedDuration = SignedDuration::from_mins(15);
const OFFERS_MAX: usize = 6;
/// How often to search again after other bookings took all the alternatives.
const ATTEMPTS: usize = 3;
/// The distance of a neighbouring rack, and of another site.
const NEXT_DOOR: SignedDuration = SignedDuration::from_mins(5);
const OTHER_SITE: SignedDuration = SignedDuration::from_hours(4);
const SITES_MAX: usize = 10;

impl App {
    /// Adds alternatives to the refusal of a booking, or of a change if `new` is none. The refusal itself stays, even if
    /// the search fails.
    pub(crate) async fn with_alternatives(
        &self,
        refusal: Error,
        caller: &Caller,
        place: &Place,
        new: Option<&NewReservation>,
        refused: &RefusedBooking<'_>,
    ) -> Error {
        let Error::Conflict {
            conflicts,
            mut directory,
            ..
        } = refusal
        else {
            return refusal;
        };
        let mut found = Vec::new();
        for _ in 0..ATTEMPTS {
            let Some((offered, known)) = self.alternatives_to(caller, place, refused).await else {
                break;
            };
            directory.join(known);
            found = offered;
            let Some(new) = new.filter(|new| new.hold) else {
                break;
            };
            if self.hold_alternatives(caller, place, new, &mut found).await {
                break;
            }
        }
        Error::Conflict {
            conflicts,
            alternatives: found,
            directory,
        }
    }

    /// None if the search failed.
    async fn alternatives_to(
        &self,
        caller: &Caller,
        place: &Place,
        refused: &RefusedBooking<'_>,
    ) -> Option<(Vec<Alternative>, Directory)> {
        match self.named_alternatives(caller, place, refused).await {
            Ok(found) => Some(found),
            Err(error) => {
                tracing::warn!(%error, "no alternatives could be looked for");
                None
            }
        }
    }

    async fn named_alternatives(
        &self,
        caller: &Caller,
        place: &Place,
        refused: &RefusedBooking<'_>,
    ) -> Result<(Vec<Alternative>, Directory)> {
        let span = refused.span;
        // Without the buffers before and after the booking.
        let claims: Vec<&Claim> = refused
            .claims
            .iter()
            .filter(|claim| claim.span == span)
            .collect();
        let Some(first) = claims.first() else {
            return Ok(Default::default());
        };
        // The search cannot find a common other time for different amounts of different resources.
        if claims.iter().any(|claim| claim.take != first.take) {
            return Ok(Default::default());
        }
        let resources: Vec<ResourceId> = claims.iter().map(|claim| claim.resource).collect();
        let candidate = |resource: &ResourceId| Candidate {
            resource: *resource,
            cost: 0,
        };
        let mut wanted = Wanted {
            pool: resources.iter().map(candidate).collect(),
            take: first.take,
            count: resources.len(),
            span,
            named: resources,
            own: Vec::new(),
        };
        let Some((before, own)) = &refused.standing else {
            return self
                .find_alternatives(caller, place, &refused.of, wanted)
                .await;
        };
        wanted.own.clone_from(own);
        let added = (span.start() == before.span.start())
            .then(|| span.after(before.span.end()))
            .flatten();
        let Some(added) = added else {
            let found = self.find_alternatives(caller, place, &refused.of, wanted);
            let (mut found, directory) = found.await?;
            // A change keeps a booking in one piece.
            found.retain(|one| one.kind != AlternativeKind::Split);
            return Ok((found, directory));
        };
        // Of an extension, only the added time can use other resources.
        let shorter = self.shorter(place, before, &wanted).await?;
        wanted.span = added;
        let found = self.find_alternatives(caller, place, &refused.of, wanted);
        let (mut found, mut directory) = found.await?;
        found.retain(|one| one.kind == AlternativeKind::Elsewhere);
        if let Some((shorter, known)) = shorter {
            found.insert(0, shorter);
            directory.join(known);
        }
        Ok((found, directory))
    }

    /// The longest extension that is possible, if it is shorter than the caller asked for.
    async fn shorter(
        &self,
        place: &Place,
        before: &Reservation,
        wanted: &Wanted,
    ) -> Result<Option<(Alternative, Directory)>> {
        let board = self.board(place.id()).await?;
        let busy = board.busy_without(&wanted.own);
        let clean_up = before.terms.clean_up.duration();
        let Ok(asked) = Span::new(before.span.start(), wanted.span.end() + clean_up) else {
            return Ok(None);
        };
        let free_until = |resource: &ResourceId| {
            let free = busy.stretches(*resource, wanted.take, asked, SignedDuration::ZERO);
            let from_start = free.iter().find(|span| span.contains(before.span));
            from_start.map(|span| span.end() - clean_up)
        };
        let ends: Option<Vec<_>> = wanted.named.iter().map(free_until).collect();
        let end = ends.unwrap_or_default().into_iter().min();
        let Some(end) = end.filter(|end| *end >= before.span.end() + APART) else {
            return Ok(None);
        };
        let Ok(span) = Span::new(before.span.start(), end) else {
            return Ok(None);
        };
        let mut directory = Directory::default();
        directory.add_site(&place.site);
        board.name(&wanted.named, &mut directory);
        let part = Part {
            site: place.id(),
            span,
            resources: wanted.named.clone(),
        };
        let alternative = Alternative {
            kind: AlternativeKind::Shorter,
            distance: wanted.span.end().duration_since(end),
            take: wanted.take,
            parts: vec![part],
            holds: Vec::new(),
        };
        Ok(Some((alternative, directory)))
    }

    /// The refusal of a booking by kind. No particular booking is in the way, but there may be alternatives.
    pub(super) async fn no_room(&self, caller: &Caller, place: &Place, new: &NewAny) -> Error {
        let details = new.details(new.wish.window);
        let mut offered = Ok(Default::default());
        for _ in 0..ATTEMPTS {
            offered = self.any_alternatives(caller, place, new).await;
            let Ok((found, _)) = &mut offered else { break };
            if !new.hold || self.hold_alternatives(caller, place, &details, found).await {
                break;
            }
        }
        match offered {
            Ok((alternatives, directory)) => Error::NoRoom {
                wanted: new.wish.what.clone(),
                alternatives,
                directory: Box::new(directory),
            },
            Err(error) => error,
        }
    }

    async fn any_alternatives(
        &self,
        caller: &Caller,
        place: &Place,
        new: &NewAny,
    ) -> Result<(Vec<Alternative>, Directory)> {
        let Some(wished) = new.wish.variants.first() else {
            return Ok(Default::default());
        };
        let of = self.asked_for(caller, new).await?;
        let window = self.still_to_come(&new.wish)?;
        let span = Span::new(window.start(), window.start() + wished.length)
            .map_err(|error| Error::Internal(error.to_string()))?;
        let board = self.board(place.id()).await?;
        if !board.has(&new.wish.what) {
            let said = format!(
                "nothing in this site is a `{}`; name a type or an attribute's value as the resources have it",
                new.wish.what
            );
            return Err(FieldErrors::one("wish.what", said).into());
        }
        let candidates = board.candidates(&new.wish.what);
        let mut reader = self.store.read().await?;
        let sets = self.type_sets(&mut reader, place, &board, &candidates);
        let sets = sets.await?;
        drop((board, reader));
        let (mut offered, mut directory) = (Vec::new(), Directory::default());
        for (_, pool) in sets {
            let wanted = Wanted {
                pool,
                take: new.wish.what.take(),
                count: wished.count.get(),
                span,
                named: Vec::new(),
                own: Vec::new(),
            };
            let (found, known) = self.find_alternatives(caller, place, &of, wanted).await?;
            directory.join(known);
            for one in found {
                if !offered.contains(&one) {
                    offered.push(one);
                }
            }
        }
        offered.sort_by_key(|one| one.distance);
        offered.truncate(OFFERS_MAX);
        Ok((offered, directory))
    }

    async fn find_alternatives(
        &self,
        caller: &Caller,
        place: &Place,
        of: &For,
        wanted: Wanted,
    ) -> Result<(Vec<Alternative>, Directory)> {
        let now = self.now();
        let from = now.max(wanted.span.start() - LOOK);
        let Ok(within) = Span::new(from, wanted.span.end().max(now) + LOOK) else {
            return Ok(Default::default());
        };
        let mut reader = self.store.read().await?;
        let mut places: Vec<Place> = vec![place.clone()];
        for (site, membership) in sites::memberships_of(&mut reader, caller.id()).await? {
            let other = Place::of(caller, site, Some(membership.role));
            if other.id() != place.id() && other.can(caller, Action::Book) {
                places.push(other);
            }
        }
        drop(reader);
        places.truncate(SITES_MAX);
        places.sort_by_key(Place::id);
        let mut boards: Vec<BoardGuard> = Vec::new();
        for place in &places {
            boards.push(self.board(place.id()).await?);
        }
        let own = places.iter().position(|other| other.id() == place.id());
        let own = own.ok_or_else(|| Error::Internal("a site is not among its own".into()))?;
        let named = wanted.named.clone();
        let (boards, pools) = aside(move || {
            let kind = boards[own].common_kind(&named);
            let of_kind = |board: &BoardGuard| {
                let alike = kind.as_ref().map(|kind| board.of_kind(kind, &named));
                alike.unwrap_or_default()
            };
            let pools: Vec<Vec<Candidate>> = boards.iter().map(of_kind).collect();
            (boards, pools)
        })
        .await?;
        let length = wanted.span.duration();
        let mut reader = self.store.read().await?;
        let mut permitted = Vec::new();
        for ((place, board), pool) in places.iter().zip(&boards).zip(&pools) {
            let asked = if place.id() == places[own].id() {
                wanted.pool.iter()
            } else {
                pool.iter()
            };
            let types = board.types_of(asked.map(|one| one.resource));
            let found = self.permitted(&mut reader, caller, place, of, types, length, within);
            permitted.push(found.await?);
        }
        drop(reader);
        let (boards, permitted, wanted, others, found) = aside(move || {
            let without_own;
            let mut busy: Vec<&Busy> = boards.iter().map(|board| &board.busy).collect();
            if !wanted.own.is_empty() {
                without_own = boards[own].busy_without(&wanted.own);
                busy[own] = &without_own;
            }
            let site = Sites {
                busy: &busy,
                pools: &pools,
                permitted: &permitted,
                own,
            };
            let (others, found) = site.search(&wanted, within);
            (boards, permitted, wanted, others, found)
        })
        .await?;
        let mut directory = Directory::default();
        let mut told = Vec::new();
        for alternative in found {
            let here = |span, resources| (own, span, resources);
            let (kind, parts) = match alternative.offer {
                Offer::Time { span, resources } => {
                    (AlternativeKind::Time, vec![here(span, resources)])
                }
                Offer::Elsewhere { pool, resources } => {
                    let part = (others[pool], wanted.span, resources);
                    (AlternativeKind::Elsewhere, vec![part])
                }
                Offer::Fewer { resources } => {
                    (AlternativeKind::Fewer, vec![here(wanted.span, resources)])
                }
                Offer::Split { parts } => {
                    let parts = parts.map(|(span, resources)| here(span, resources));
                    (AlternativeKind::Split, parts.to_vec())
                }
            };
            let at_the_time = matches!(kind, AlternativeKind::Elsewhere | AlternativeKind::Fewer);
            let part = |(site, span, resources): (usize, Span, Vec<ResourceId>)| {
                let span = if at_the_time {
                    wanted.span
                } else {
                    permitted[site].within(span)
                };
                directory.add_site(&places[site].site);
                let board = &boards[site];
                board.name(&resources, &mut directory);
                Part {
                    site: places[site].id(),
                    span,
                    resources,
                }
            };
            told.push(Alternative {
                kind,
                distance: alternative.distance,
                take: wanted.take,
                parts: parts.into_iter().map(part).collect(),
                holds: Vec::new(),
            });
        }
        Ok((told, directory))
    }

    /// Holds the nearest alternatives for the caller, as many as the caller may hold. Returns false if other bookings
    /// took all of them first; then a new search is worthwhile.
    async fn hold_alternatives(
        &self,
        caller: &Caller,
        place: &Place,
        new: &NewReservation,
        found: &mut [Alternative],
    ) -> bool {
        // The holds are separate bookings: the idempotency key of the request belongs to the refused booking.
        let caller = &Caller {
            once: None,
            version: None,
            ..caller.clone()
        };
        let (mut held, mut overtaken) = (0, false);
        for alternative in found {
            if held + alternative.parts.len() > HOLDS_MAX as usize {
                continue;
            }
            for part in &alternative.parts {
                match self
                    .hold_part(caller, place, new, part, alternative.take)
                    .await
                {
                    Ok(id) => alternative.holds.push(id),
                    Err(error) => {
                        overtaken |= matches!(error, Error::Conflict { .. });
                        break;
                    }
                }
            }
            if alternative.holds.len() < alternative.parts.len() {
                for (part, id) in alternative.parts.iter().zip(alternative.holds.drain(..)) {
                    let site = Reference::Id(part.site);
                    // A hold that cannot be cancelled expires by itself.
                    let _ = self.cancel_reservation(caller, &site, id, None, None).await;
                }
            }
            held += alternative.holds.len();
        }
        held > 0 || !overtaken
    }

    async fn hold_part(
        &self,
        caller: &Caller,
        place: &Place,
        new: &NewReservation,
        part: &Part,
        take: Take,
    ) -> Result<ReservationId> {
        let amount = take.amount();
        let is_here = part.site == place.id();
        let new = NewReservation {
            span: part.span,
            items: part
                .resources
                .iter()
                .map(|resource| Item {
                    resource: Reference::Id(*resource),
                    amount,
                })
                .collect(),
            // A project or a form belongs to one site, so it does not apply at another.
            project: new.project.clone().filter(|_| is_here),
            any: None,
            pinned: true,
            wait: None,
            hold: true,
            ..new.clone()
        };
        let site = Reference::Id(part.site);
        match self.try_book(caller, &site, &new, &[]).await? {
            Ok(made) => Ok(made.value.reservation.id),
            Err(taken) => Err(self.refusal(&taken.place, caller, &taken.claims, &[]).await),
        }
    }
}

/// The sites to search, each with its equivalent resources and permitted starts.
struct Sites<'a> {
    busy: &'a [&'a Busy],
    pools: &'a [Vec<Candidate>],
    permitted: &'a [Permitted],
    own: usize,
}

impl Sites<'_> {
    /// The indices of the sites with usable pools, and the alternatives. Their times include buffers.
    fn search(&self, wanted: &Wanted, within: Span) -> (Vec<usize>, Vec<Found>) {
        let starts: Vec<Vec<Span>> = self.permitted.iter().map(Permitted::held_starts).collect();
        let numbers: Vec<usize> = (0..self.pools.len())
            .filter(|number| {
                !self.pools[*number].is_empty()
                    && self.permitted[*number].contains(wanted.span.start())
            })
            .collect();
        let elsewhere: Vec<(Pool<'_>, SignedDuration)> = numbers
            .iter()
            .map(|number| {
                let pool = Pool {
                    busy: self.busy[*number],
                    candidates: &self.pools[*number],
                    starts: &starts[*number],
                };
                let distance = if *number == self.own {
                    NEXT_DOOR
                } else {
                    OTHER_SITE
                };
                (pool, distance)
            })
            .collect();
        let here = &self.permitted[self.own];
        let refused = Refused {
            pool: Pool {
                busy: self.busy[self.own],
                candidates: &wanted.pool,
                starts: &starts[self.own],
            },
            take: wanted.take,
            count: wanted.count,
            span: here.around(wanted.span),
        };
        let bounds = Bounds {
            within: here.around(within),
            apart: APART,
            part_min: PART_MIN,
            step: STEP,
            limit: OFFERS_MAX,
        };
        let mut found = alternatives(&refused, &elsewhere, &bounds);
        // Each part of a split has its own buffers and its own length rules, which this search did not check.
        let asks = here.rules.is_some() || here.has_buffers();
        found.retain(|one| !(asks && matches!(one.offer, Offer::Split { .. })));
        (numbers, found)
    }
}

type Found = berth_engine::alternatives::Alternative;
