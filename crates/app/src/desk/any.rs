//! Bookings by kind: the caller names a `Selection` instead of resources. The search takes the smallest set that fits,
//! and moves other bookings by kind if needed.

use berth_engine::arrange::{self, accept};
use berth_engine::rights::Action;
use berth_model::reference::{PersonReference, ProjectReference, SiteReference};
use berth_model::reservation::{AtEnd, Privacy, Reservation};
use berth_model::{Count, Reference, ReservationId, ResourceId, Selection, Span, Text};
use berth_store::{projects, reservations};
use jiff::Timestamp;

use super::aside;
use super::movable::{MOVABLE_MAX, Movable};
use super::moves::Relocation;
use super::permitted::For;
use super::waitlist::WaitFor;
use super::when::{Searched, Variant, Wish, search};
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::place::Place;
use crate::reservations::{Booked, Item, NewReservation, Preview, RawAnswers};

/// A booking by kind.
#[derive(Debug, Clone)]
pub struct NewAny {
    pub wish: Wish,
    /// Keep exactly the resources that were found; never move the booking.
    pub pinned: bool,
    pub title: Text,
    pub project: Option<ProjectReference>,
    pub privacy: Privacy,
    pub parameters: RawAnswers,
    pub owner: Option<PersonReference>,
    pub hold: bool,
    /// Join the waitlist if there is no room.
    pub wait: Option<WaitFor>,
    pub at_end: AtEnd,
    pub lends: Option<bool>,
}

/// The resources and the time that fit a wish, and the bookings that must move for it.
pub(super) struct Placement {
    pub span: Span,
    variant: Variant,
    pub resources: Vec<ResourceId>,
    pub moves: Vec<Relocation>,
}

impl Placement {
    /// The wish's `Selection`, with the count that was found.
    pub fn selection(&self, wish: &Wish) -> Selection {
        Selection {
            count: self.variant.count,
            ..wish.what.clone()
        }
    }
}

/// The result of a search for a booking by kind.
pub(super) enum Room {
    Found(Placement),
    /// Other bookings hold the room.
    Taken,
    /// The rules permit no start in the window. These are some resources that match the wish.
    Closed(Vec<ResourceId>),
}

/// How often to search again after another booking took the place.
const ATTEMPTS: usize = 5;
/// In a window without free room, the number of starts at which moving other bookings is tried.
const STARTS_MAX: usize = 16;

impl App {
    pub async fn book_any(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewAny,
    ) -> Result<Made<Booked>> {
        let booked = self.book_any_uncounted(caller, site, new).await;
        self.tallied(site, booked)
    }

    async fn book_any_uncounted(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewAny,
    ) -> Result<Made<Booked>> {
        if let Some(earlier) = self.made_before(caller, site).await? {
            return Ok(Made::before(earlier));
        }
        let new = &self.meant(caller, site, new).await?;
        let of = self.asked_for(caller, new).await?;
        let mut attempt = 0;
        loop {
            let (place, room) = self.placement(caller, site, &of, &new.wish).await?;
            let found = match room {
                Room::Found(found) if attempt < ATTEMPTS => found,
                Room::Found(_) | Room::Taken => {
                    return self.refuse_or_wait(caller, &place, new).await;
                }
                // Waiting would not help: the rules permit no time in the window.
                Room::Closed(like) => return Err(self.closed(caller, &place, new, &like).await),
            };
            attempt += 1;
            let definite = new.at(&found);
            let tried = self.try_book(caller, site, &definite, &found.moves);
            if let Ok(made) = tried.await? {
                return Ok(made);
            }
        }
    }

    /// The reason why no start in the window is permitted: the reason that refuses the first start.
    async fn closed(
        &self,
        caller: &Caller,
        place: &Place,
        new: &NewAny,
        like: &[ResourceId],
    ) -> Error {
        match self.judge_first(caller, place, new, like).await {
            Err(refusal) => refusal,
            Ok(()) => self.no_room(caller, place, new).await,
        }
    }

    async fn judge_first(
        &self,
        caller: &Caller,
        place: &Place,
        new: &NewAny,
        like: &[ResourceId],
    ) -> Result<()> {
        let window = self.still_to_come(&new.wish)?;
        let Some(variant) = new.wish.variants.first() else {
            return Ok(());
        };
        let Ok(span) = Span::new(window.start(), window.start() + variant.length) else {
            return Ok(());
        };
        let like = like.iter().take(variant.count.get());
        let definite = NewReservation {
            items: like.map(|resource| new.item(*resource)).collect(),
            ..new.details(span)
        };
        let mut reader = self.store.read().await?;
        let id = ReservationId(fresh(self.now()));
        self.draft(&mut reader, caller, place, &definite, id)
            .await
            .map(|_| ())
    }

    /// Joins the waitlist if the site could ever have room, that is, if it has enough resources of the kind. Otherwise
    /// refuses.
    async fn refuse_or_wait(
        &self,
        caller: &Caller,
        place: &Place,
        new: &NewAny,
    ) -> Result<Made<Booked>> {
        let fewest = new.wish.variants.iter().map(|variant| variant.count).min();
        let fewest = fewest.map_or(1, Count::get);
        let board = self.board(place.id()).await?;
        let some = board.candidates(&new.wish.what).into_iter().take(fewest);
        let like: Vec<Item> = some.map(|one| new.item(one.resource)).collect();
        drop(board);
        match new.wait {
            Some(until_room) if like.len() == fewest => {
                self.wait_any(caller, place.id(), new, like, until_room)
                    .await
            }
            _ => Err(self.no_room(caller, place, new).await),
        }
    }

    /// The result that [`App::book_any`] would have, without any change.
    pub async fn preview_any(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewAny,
    ) -> Result<Preview> {
        let new = &self.meant(caller, site, new).await?;
        let of = self.asked_for(caller, new).await?;
        let (place, room) = self.placement(caller, site, &of, &new.wish).await?;
        match room {
            Room::Taken => Ok(Err(self.no_room(caller, &place, new).await)),
            Room::Closed(like) => Ok(Err(self.closed(caller, &place, new, &like).await)),
            Room::Found(found) => {
                let definite = new.at(&found);
                self.preview_with(caller, site, &definite, &found.moves)
                    .await
            }
        }
    }

    /// The same wish, with the default amount filled in.
    async fn meant(&self, caller: &Caller, site: &SiteReference, new: &NewAny) -> Result<NewAny> {
        let mut reader = self.store.read().await?;
        let place = self.place(&mut reader, caller, site, Action::Book).await?;
        drop(reader);
        let wish = self.with_amount(&[place.id()], &new.wish).await?;
        Ok(NewAny {
            wish,
            ..new.clone()
        })
    }

    /// The owner and the project of the new booking.
    pub(super) async fn asked_for(&self, caller: &Caller, new: &NewAny) -> Result<For> {
        let owner = match &new.owner {
            None => caller.id(),
            Some(owner) => {
                let mut reader = self.store.read().await?;
                self.narrowed_to(&mut reader, owner).await?
            }
        };
        let project = match &new.project {
            Some(Reference::Name(name)) => Some(name.clone()),
            Some(Reference::Id(id)) => {
                let mut reader = self.store.read().await?;
                let found = projects::named(&mut reader, vec![*id]).await?;
                found.into_iter().next().map(|project| project.name)
            }
            None => None,
        };
        Ok(For { owner, project })
    }

    pub(super) async fn placement(
        &self,
        caller: &Caller,
        site: &SiteReference,
        of: &For,
        wish: &Wish,
    ) -> Result<(Place, Room)> {
        let mut reader = self.store.read().await?;
        let place = self.place(&mut reader, caller, site, Action::Book).await?;
        drop(reader);
        let window = self.still_to_come(wish)?;
        let site = self.searched(caller, place.clone(), of, wish, window);
        let searched = vec![site.await?];
        let asked = wish.clone();
        let (mut searched, found) = aside(move || {
            let found = search(&searched, &asked, window, 1).pop();
            (searched, found)
        })
        .await?;
        if let Some(found) = found {
            let found = Placement {
                span: found.span,
                variant: wish.variants[found.variant],
                resources: found.resources,
                moves: Vec::new(),
            };
            return Ok((place, Room::Found(found)));
        }
        let Some(searched) = searched.pop() else {
            return Ok((place, Room::Taken));
        };
        if searched.is_closed()
            && let Some(pool) = searched.pools.first()
        {
            let like = pool.candidates.iter().map(|one| one.resource);
            return Ok((place, Room::Closed(like.collect())));
        }
        let found = self.make_room(searched, wish, window).await?;
        Ok((place, found.map_or(Room::Taken, Room::Found)))
    }

    /// Looks for room by moving other bookings by kind that may still be moved.
    async fn make_room(
        &self,
        site: Searched,
        wish: &Wish,
        window: Span,
    ) -> Result<Option<Placement>> {
        let now = self.now();
        let mut reader = self.store.read().await?;
        let id = site.place.id();
        let met = reservations::movable(&mut reader, id, window, now, MOVABLE_MAX).await?;
        let ends = met.iter().map(|one| one.span.end());
        let starts = starts(window, wish, ends.collect());
        // A booking that moves may meet another that can move, too.
        let hull = met.iter().fold(window, |hull, one| hull.hull(one.span));
        let movable = reservations::movable(&mut reader, id, hull, now, MOVABLE_MAX).await?;
        drop(reader);
        let wish = wish.clone();
        aside(move || rearranged(&site, &movable, &wish, window, &starts)).await
    }
}

/// The starts to try: the fixed start, or otherwise the start of the window and every end of another booking.
fn starts(window: Span, wish: &Wish, mut ends: Vec<Timestamp>) -> Vec<Timestamp> {
    let mut starts = vec![window.start()];
    if wish.fixed().is_none() {
        ends.sort_unstable();
        ends.dedup();
        starts.extend(ends.into_iter().filter(|end| window.contains_moment(*end)));
    }
    starts.truncate(STARTS_MAX);
    starts
}

fn rearranged(
    site: &Searched,
    movable: &[Reservation],
    wish: &Wish,
    window: Span,
    starts: &[Timestamp],
) -> Option<Placement> {
    let movable = Movable::new(&site.board, movable);
    let bookings = movable.bookings();
    let pools = site.pools.iter();
    let tried = pools.flat_map(|pool| {
        let variants = wish.variants.iter().zip(&pool.permitted);
        variants.map(move |(variant, permitted)| (pool, variant, permitted))
    });
    for (pool, variant, permitted) in tried {
        for start in starts.iter().filter(|start| permitted.contains(**start)) {
            let span = Span::new(*start, *start + variant.length).ok();
            let Some(span) = span.filter(|span| window.contains(*span)) else {
                continue;
            };
            let wished = arrange::Wish {
                span: permitted.around(span),
                take: wish.what.take(),
                count: variant.count.get(),
                candidates: &pool.candidates,
            };
            if let Some(plan) = accept(&site.board.busy, &bookings, &wished) {
                let moves = plan.moves.into_iter();
                let moves = moves.filter_map(|moved| movable.relocation(moved));
                return Some(Placement {
                    span,
                    variant: *variant,
                    resources: plan.resources,
                    moves: moves.collect(),
                });
            }
        }
    }
    None
}

impl NewAny {
    /// The booking with definite resources and times that this wish becomes.
    fn at(&self, found: &Placement) -> NewReservation {
        let item = |resource: &ResourceId| self.item(*resource);
        NewReservation {
            items: found.resources.iter().map(item).collect(),
            any: Some(found.selection(&self.wish)),
            pinned: self.pinned,
            ..self.details(found.span)
        }
    }

    fn item(&self, resource: ResourceId) -> Item {
        Item {
            resource: berth_model::Reference::Id(resource),
            amount: self.wish.what.amount,
        }
    }

    /// All fields except resources and time.
    pub(super) fn details(&self, span: Span) -> NewReservation {
        NewReservation {
            title: self.title.clone(),
            span,
            items: Vec::new(),
            project: self.project.clone(),
            privacy: self.privacy,
            parameters: self.parameters.clone(),
            owner: self.owner.clone(),
            hold: self.hold,
            any: None,
            pinned: false,
            wait: self.wait,
            at_end: self.at_end,
            lends: self.lends,
        }
    }
}
