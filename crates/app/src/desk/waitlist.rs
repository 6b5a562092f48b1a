//! The waitlist: a reservation in state `Waiting` holds nothing yet, and gets its room when other bookings end.

use berth_model::reservation::{Reservation, State, Terms, Wait, Waited, WaitedVariant, Wanted};
use berth_model::{
    Claim, ClaimId, Holder, Reference, ReservationId, ResourceId, SiteId, Span, Take, Text,
};
use berth_store::leases::{self, Lease};
use berth_store::{people, reservations};
use jiff::SignedDuration;

use super::any::{NewAny, Placement, Room};
use super::moves::MADE_ROOM;
use super::when::{Variant, Wish};
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::record::By;
use crate::reservations::hold::{Softer, is_taken};
use crate::reservations::{Booked, Item, NewReservation, movable_until};
use crate::transact::transact;

/// What happens when there is room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitFor {
    /// Book it.
    Booking,
    /// Hold it for a while, for the owner to accept.
    Offer,
}

/// Long enough to read an email, too short to block other waiting people.
const OFFER_LIFE: SignedDuration = SignedDuration::from_mins(30);
const WAITING_MAX: u64 = 20;

impl WaitFor {
    fn offer_s(self) -> Option<u32> {
        match self {
            WaitFor::Booking => None,
            WaitFor::Offer => u32::try_from(OFFER_LIFE.as_secs()).ok(),
        }
    }
}

impl App {
    /// Puts exactly the refused booking on the waitlist.
    pub(crate) async fn wait_named(
        &self,
        caller: &Caller,
        site: SiteId,
        new: &NewReservation,
        claims: &[Claim],
        until_room: WaitFor,
    ) -> Result<Made<Booked>> {
        let own = claims.iter().filter(|claim| claim.span == new.span);
        let wanted = own.map(|claim| Wanted {
            resource: claim.resource,
            amount: claim.take.amount(),
        });
        let wait = Wait {
            wish: Waited::Named(wanted.collect()),
            until: new.span.start(),
            offer_s: until_room.offer_s(),
        };
        self.wait(caller, site, new, wait).await
    }

    /// Puts a booking by kind on the waitlist. `like` are some matching resources: they determine which forms to fill
    /// in.
    pub(super) async fn wait_any(
        &self,
        caller: &Caller,
        site: SiteId,
        new: &NewAny,
        like: Vec<Item>,
        until_room: WaitFor,
    ) -> Result<Made<Booked>> {
        let lengths = new.wish.variants.iter().map(|variant| variant.length);
        let shortest = lengths.min().unwrap_or_default();
        let variant = |variant: &Variant| WaitedVariant {
            count: variant.count,
            length_s: u32::try_from(variant.length.as_secs()).unwrap_or(u32::MAX),
        };
        let wait = Wait {
            wish: Waited::Any {
                what: new.wish.what.clone(),
                variants: new.wish.variants.iter().map(variant).collect(),
                pinned: new.pinned,
            },
            until: new.wish.window.end() - shortest,
            offer_s: until_room.offer_s(),
        };
        let definite = NewReservation {
            items: like,
            ..new.details(new.wish.window)
        };
        self.wait(caller, site, &definite, wait).await
    }

    async fn wait(
        &self,
        caller: &Caller,
        site: SiteId,
        new: &NewReservation,
        wait: Wait,
    ) -> Result<Made<Booked>> {
        let id = ReservationId(fresh(self.now()));
        let site = Reference::Id(site);
        let until = wait.until;
        let made = transact!(self, tx => {
            let place = self.booking_place(&mut tx, caller, &site).await?;
            if let Some(earlier) = self.first_time(&mut tx, caller, id).await? {
                return Ok(Made::before(self.booked(&mut tx, &place, earlier).await?));
            }
            // The rules judge the booking when it gets room: they depend on its time, which is not known yet.
            let mut draft = self.draft_unjudged(&mut tx, caller, &place, new, id).await?;
            let owner = draft.reservation.owner;
            if reservations::count_waiting(&mut tx, owner).await? >= WAITING_MAX {
                let message = format!("one person waits for {WAITING_MAX} things at most");
                return Err(Error::TooMuch(message));
            }
            draft.reservation.state = State::Waiting;
            draft.reservation.items = Vec::new();
            draft.reservation.terms = Terms {
                wait: Some(wait.clone()),
                at_end: new.at_end,
                lends: new.lends,
                ..Terms::default()
            };
            self.write(&mut tx, caller, &draft).await?;
            Ok(Made::now(draft.booked()))
        });
        self.falls_due(until);
        made
    }

    /// Serves all waiting reservations for which there is room now, first come, first served. Returns how many got
    /// room.
    pub(crate) async fn serve_waiting(&self, lease: &Lease, site: Option<SiteId>) -> Result<usize> {
        let mut reader = self.store.read().await?;
        let waiting = reservations::waiting(&mut reader, site, u64::MAX >> 1).await?;
        drop(reader);
        let mut given = 0;
        for one in waiting {
            match self.serve(lease, &one).await {
                Ok(true) => given += 1,
                Ok(false) => {}
                // The owner may no longer book here, or the resource was removed.
                Err(Error::NotFound(_) | Error::NotAllowed { .. }) => {
                    self.give_up(lease, &one).await?;
                }
                Err(Error::Store(error)) => return Err(error.into()),
                Err(error) => tracing::debug!(%error, reservation = %one.id, "it waits on"),
            }
        }
        Ok(given)
    }

    async fn serve(&self, lease: &Lease, waiting: &Reservation) -> Result<bool> {
        let Some(wait) = &waiting.terms.wait else {
            return Ok(false);
        };
        if wait.until < self.now() {
            return Ok(false);
        }
        let mut reader = self.store.read().await?;
        let owner = people::get(&mut reader, waiting.owner).await?;
        drop(reader);
        let owner = Caller::direct(owner.ok_or(Error::NotFound("person"))?);
        let Some((found, any, pinned)) = self.room_for(&owner, waiting, wait).await? else {
            return Ok(false);
        };
        let site = Reference::Id(waiting.site);
        let given = transact!(self, tx => {
            leases::check(&mut tx, lease).await?;
            let place = self.booking_place(&mut tx, &owner, &site).await?;
            let before = reservations::get_locked(&mut tx, waiting.site, waiting.id).await?;
            let Some(before) = before.filter(|now| now.version == waiting.version) else {
                return Ok(false);
            };
            let now = self.now();
            let claim = |(resource, take): &(ResourceId, Take)| {
                let (id, holder) = (ClaimId(fresh(now)), Holder::Reservation(before.id));
                Claim::firm(id, before.site, *resource, found.span, *take, holder)
            };
            let mut claims: Vec<Claim> = found.takes.iter().map(claim).collect();
            let offered = wait.offer_s.map(|seconds| now + SignedDuration::from_secs(seconds.into()));
            let mut booking = Reservation {
                state: if offered.is_some() { State::Held } else { State::Confirmed },
                items: claims.iter().map(berth_model::reservation::Item::from).collect(),
                span: found.span,
                terms: Terms {
                    decide_by: offered.map(|until| until.min(found.span.start().max(now))),
                    movable_until: movable_until(any.as_ref(), pinned, found.span, now),
                    any: any.clone(),
                    at_end: before.terms.at_end,
                    lends: before.terms.lends,
                    ..Terms::default()
                },
                ..before.clone()
            };
            let mut directory = Directory::with_site(&place.site);
            directory.learn_reservations(&mut tx, std::slice::from_ref(&booking)).await?;
            self.judge(&mut tx, &owner, &place, &directory, &mut booking, &mut claims).await?;
            self.relocate(&mut tx, &By::SYSTEM, place.id(), &found.moves, MADE_ROOM).await?;
            self.hold(&mut tx, &By::SYSTEM, &claims, Softer::GiveWay).await?;
            let asks = booking.state == State::PendingApproval;
            let transition = before.state.give(offered.is_some(), asks)?;
            let reason: Option<Text> = "there was room after all".parse().ok();
            self.step_with(&mut tx, &By::SYSTEM, before, booking, transition, reason).await?;
            Ok(true)
        });
        self.planned.notify_one();
        match given {
            // Another booking came first. The reservation waits on.
            Err(error) if is_taken(&error) => Ok(false),
            given => given,
        }
    }

    /// The room that fits a waiting reservation now, and the `Selection` of the resulting booking.
    async fn room_for(
        &self,
        owner: &Caller,
        waiting: &Reservation,
        wait: &Wait,
    ) -> Result<Option<(Given, Option<berth_model::Selection>, bool)>> {
        match &wait.wish {
            Waited::Named(named) => {
                let board = self.board(waiting.site).await?;
                let takes: Vec<(ResourceId, Take)> = named
                    .iter()
                    .map(|one| {
                        (
                            one.resource,
                            one.amount.map_or(Take::Exclusive, Take::Amount),
                        )
                    })
                    .collect();
                let is_free = takes.iter().all(|(resource, take)| {
                    board.serves(*resource) && board.busy.is_free(*resource, *take, waiting.span)
                });
                let given = is_free.then(|| Given {
                    span: waiting.span,
                    takes,
                    moves: Vec::new(),
                });
                Ok(given.map(|given| (given, None, true)))
            }
            Waited::Any {
                what,
                variants,
                pinned,
            } => {
                let variant = |one: &WaitedVariant| Variant {
                    count: one.count,
                    length: SignedDuration::from_secs(one.length_s.into()),
                };
                let variants = variants.iter().map(variant).collect();
                let wish = Wish::new(what.clone(), variants, waiting.span)?;
                let site = Reference::Id(waiting.site);
                let mut reader = self.store.read().await?;
                let of = self.booked_for(&mut reader, waiting).await?;
                drop(reader);
                let (_, room) = self.placement(owner, &site, &of, &wish).await?;
                let Room::Found(found) = room else {
                    return Ok(None);
                };
                let any = found.selection(&wish);
                let given = Given::of(found, what.take());
                Ok(Some((given, Some(any), *pinned)))
            }
        }
    }

    async fn give_up(&self, lease: &Lease, waiting: &Reservation) -> Result<()> {
        transact!(self, tx => {
            leases::check(&mut tx, lease).await?;
            let before = reservations::get_locked(&mut tx, waiting.site, waiting.id).await?;
            if let Some(before) = before.filter(|now| now.version == waiting.version) {
                let transition = before.state.cancel()?;
                let reason: Option<Text> = "its owner may not book it any more".parse().ok();
                self.step(&mut tx, &By::SYSTEM, before, transition, reason).await?;
            }
            Ok(())
        })
    }
}

/// The room that a waiting reservation gets.
struct Given {
    span: Span,
    takes: Vec<(ResourceId, Take)>,
    moves: Vec<super::moves::Relocation>,
}

impl Given {
    fn of(found: Placement, take: Take) -> Given {
        Given {
            span: found.span,
            takes: found.resources.iter().map(|id| (*id, take)).collect(),
            moves: found.moves,
        }
    }
}
