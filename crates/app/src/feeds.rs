//! Feeds for calendar programs: each shows, at its secret address, the entries that its owner may see at that moment.
//!
//! A calendar program cannot sign in, so the address is the key. It contains 256 random bits, is shown once, stored as
//! a hash, and can be revoked. It allows only this reading. Rights and privacy are checked at every read.

use std::collections::{BTreeSet, HashMap};

use berth_engine::rights::Action;
use berth_engine::sight::{Sight, see};
use berth_model::event::{Audience, EventKind};
use berth_model::feed::{Feed, Shows};
use berth_model::person::{PersonState, Scope};
use berth_model::reference::{ResourceReference, SiteReference, TypeReference};
use berth_model::reservation::{Privacy, Reservation, State};
use berth_model::{
    Claim, ClaimId, FeedId, FieldErrors, PersonId, Reference, ReservationId, ResourceId, SiteId,
    Span, Text, WindowId,
};
use berth_store::feeds::{self, Of, Stretch};
use berth_store::maintenance::Window;
use berth_store::{Conn, sites};
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;

use crate::App;
use crate::accounts::{random_text, stored_hash};
use crate::caller::Caller;
use crate::clock::fresh;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::place::Place;
use crate::record::Change;
use crate::reservations::HOLD_LIFE;
use crate::transact::transact;

/// The most feeds of one person.
const FEEDS_MAX: usize = 100;
/// The most bookings, and the most windows, in one feed. The earliest are kept.
const BOOKINGS_MAX: u64 = 2000;
const WINDOWS_MAX: u64 = 200;
const PAST: SignedDuration = SignedDuration::from_hours(90 * 24);
const AHEAD: SignedDuration = SignedDuration::from_hours(366 * 24);
/// How long a booking for which [`gives_up`] holds is still shown, so that programs remove it.
const GIVEN_UP: SignedDuration = SignedDuration::from_hours(30 * 24);
const READ_PRECISION: SignedDuration = SignedDuration::from_mins(15);
/// More than the precision that a moment loses in the database.
const ROUNDING: SignedDuration = SignedDuration::from_millis(1);

#[derive(Debug, Clone)]
pub struct NewFeed {
    pub label: Text,
    pub shows: NewShows,
}

/// The content of a new feed, in names that people use.
#[derive(Debug, Clone)]
pub enum NewShows {
    Mine,
    Site(SiteReference),
    Type(SiteReference, TypeReference),
    Resource(SiteReference, ResourceReference),
}

/// A feed as it reads now, with everything it names.
#[derive(Debug, Clone)]
pub struct FeedReading {
    pub feed: Feed,
    /// By start. Empty if its owner may no longer see the content; then nothing is named either.
    pub entries: Vec<FeedEntry>,
    /// Whether there were more entries than a feed holds.
    pub is_cut: bool,
    pub directory: Directory,
}

#[derive(Debug, Clone)]
pub struct FeedEntry {
    pub site: SiteId,
    pub what: FeedItem,
    pub span: Span,
    pub resources: Vec<ResourceId>,
    pub version: u64,
    pub changed_at: Timestamp,
}

#[derive(Debug, Clone)]
pub enum FeedItem {
    Booking {
        id: ReservationId,
        title: Text,
        owner: PersonId,
        state: State,
    },
    Window {
        id: WindowId,
        title: Text,
    },
    /// The owner may only know that the time is taken.
    Busy(ClaimId),
}

impl App {
    /// Creates a feed. Only this answer contains the secret; a repeated request does not show it again.
    pub async fn create_feed(
        &self,
        caller: &Caller,
        new: &NewFeed,
    ) -> Result<Made<(Feed, Directory, Option<SecretString>)>> {
        caller.may(Action::ManageOwnFeeds, true, "account")?;
        let now = self.now();
        let id = FeedId(fresh(now));
        let secret = random_text();
        transact!(self, tx => {
            let shows = self.shown_by(&mut tx, caller, &new.shows).await?;
            let known = feeds::of_person(&mut tx, caller.id()).await?;
            if let Some(earlier) = self.first_time(&mut tx, caller, id).await? {
                let feed = known.into_iter().find(|feed| feed.id == earlier).ok_or(Error::IdempotencyMismatch)?;
                let directory = self.feed_names(&mut tx, caller, std::slice::from_ref(&feed)).await?;
                return Ok(Made::before((feed, directory, None)));
            }
            if known.len() >= FEEDS_MAX {
                let message = format!("you have {FEEDS_MAX} feeds already; revoke one that is not read any more");
                return Err(FieldErrors::one("label", message).into());
            }
            let feed = Feed {
                id,
                person: caller.id(),
                label: new.label.clone(),
                shows,
                created_at: now,
                last_read_at: None,
            };
            feeds::insert(&mut tx, &feed, &stored_hash(&secret)).await?;
            let change = Change::new("feed.create", shows.site(), id).after(&feed);
            self.record(&mut tx, caller, change.tell(EventKind::FeedCreated, Audience::Person(caller.id()))).await?;
            let directory = self.feed_names(&mut tx, caller, std::slice::from_ref(&feed)).await?;
            Ok(Made::now((feed, directory, Some(SecretString::from(secret.as_str())))))
        })
    }

    async fn shown_by(&self, conn: &mut Conn, caller: &Caller, new: &NewShows) -> Result<Shows> {
        let site = match new {
            NewShows::Mine => return Ok(Shows::Mine),
            NewShows::Site(site) | NewShows::Type(site, _) | NewShows::Resource(site, _) => site,
        };
        let place = self.place(conn, caller, site, Action::SeeCalendar).await?;
        Ok(match new {
            NewShows::Mine | NewShows::Site(_) => Shows::Site(place.id()),
            NewShows::Type(_, kind) => Shows::Type(
                place.id(),
                self.resource_type(conn, place.id(), kind).await?.id,
            ),
            NewShows::Resource(_, resource) => Shows::Resource(
                place.id(),
                self.resource(conn, place.id(), resource).await?.id,
            ),
        })
    }

    /// The caller's own feeds, oldest first.
    pub async fn feeds(&self, caller: &Caller) -> Result<(Vec<Feed>, Directory)> {
        caller.may(Action::SeeOwnFeeds, true, "account")?;
        let mut reader = self.store.read().await?;
        let feeds = feeds::of_person(&mut reader, caller.id()).await?;
        let directory = self.feed_names(&mut reader, caller, &feeds).await?;
        Ok((feeds, directory))
    }

    /// Removes a feed. Its address stops working at once.
    pub async fn revoke_feed(&self, caller: &Caller, id: FeedId) -> Result<()> {
        caller.may(Action::ManageOwnFeeds, true, "account")?;
        transact!(self, tx => {
            let known = feeds::of_person(&mut tx, caller.id()).await?;
            let feed = known.into_iter().find(|feed| feed.id == id);
            let feed = feed.ok_or(Error::NotFound("calendar feed"))?;
            if !feeds::remove(&mut tx, caller.id(), id).await? {
                return Err(Error::NotFound("calendar feed"));
            }
            let change = Change::new("feed.revoke", feed.shows.site(), id).before(&feed);
            self.record(&mut tx, caller, change.tell(EventKind::FeedRevoked, Audience::Person(caller.id()))).await
        })
    }

    /// The names for these feeds, as far as the caller may still know them.
    async fn feed_names(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        feeds: &[Feed],
    ) -> Result<Directory> {
        let mut directory = Directory::default();
        directory.add_person(&caller.person);
        let mut resources = Vec::new();
        for feed in feeds {
            let Some(site) = feed.shows.site() else {
                continue;
            };
            let seen = self
                .place(conn, caller, &Reference::Id(site), Action::SeeCatalogue)
                .await;
            let place = match seen {
                Ok(place) => place,
                Err(Error::NotFound(_)) => continue,
                Err(error) => return Err(error),
            };
            directory.add_site(&place.site);
            match feed.shows {
                Shows::Mine | Shows::Site(_) => {}
                Shows::Resource(_, resource) => resources.push(resource),
                Shows::Type(site, kind) => {
                    match self.resource_type(conn, site, &Reference::Id(kind)).await {
                        Ok(kind) => directory.add_type(&kind),
                        Err(Error::NotFound(_)) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        directory.learn_resources(conn, resources).await?;
        Ok(directory)
    }

    /// The current content of the feed at a secret address.
    pub async fn read_feed(&self, secret: &str) -> Result<FeedReading> {
        let unknown = || Error::NotFound("calendar feed");
        let now = self.now();
        let mut reader = self.store.read().await?;
        let found = feeds::find(&mut reader, &stored_hash(secret)).await?;
        let (feed, person) = found.ok_or_else(unknown)?;
        if person.state != PersonState::Active {
            return Err(unknown());
        }
        let caller = Caller {
            scopes: [Scope::Read].into(),
            ..Caller::direct(person)
        };
        let reading = self.feed_now(&mut reader, &caller, &feed, now).await?;
        drop(reader);
        if feed
            .last_read_at
            .is_none_or(|read| now > read + READ_PRECISION)
        {
            transact!(self, tx => {
                Ok(feeds::touch(&mut tx, feed.id, now).await?)
            })?;
        }
        Ok(reading)
    }

    async fn feed_now(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        feed: &Feed,
        now: Timestamp,
    ) -> Result<FeedReading> {
        let mut reading = FeedReading {
            feed: feed.clone(),
            entries: Vec::new(),
            is_cut: false,
            directory: Directory::default(),
        };
        let filled = match feed.shows {
            Shows::Mine => self.fill_mine(conn, caller, now, &mut reading).await,
            shows => {
                self.fill_shared(conn, caller, shows, now, &mut reading)
                    .await
            }
        };
        match filled {
            Ok(()) => {}
            // The owner left the site, or the site now shows less: the feed is empty and hides even the site's name.
            // An error would make programs keep the old entries.
            Err(Error::NotFound(_) | Error::NotAllowed { .. }) => {
                reading.entries.clear();
                reading.directory = Directory::default();
            }
            Err(error) => return Err(error),
        }
        reading.entries.sort_by_key(|entry| entry.span);
        let resources: BTreeSet<ResourceId> = reading
            .entries
            .iter()
            .flat_map(|entry| entry.resources.iter().copied())
            .collect();
        reading.directory.learn_resources(conn, resources).await?;
        let owners = reading.entries.iter().filter_map(|entry| match entry.what {
            FeedItem::Booking { owner, .. } => Some(owner),
            FeedItem::Window { .. } | FeedItem::Busy(_) => None,
        });
        let owners: BTreeSet<PersonId> = owners.collect();
        reading.directory.learn_people(conn, owners).await?;
        Ok(reading)
    }

    async fn fill_mine(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        now: Timestamp,
        reading: &mut FeedReading,
    ) -> Result<()> {
        caller.may(Action::SeeOwnAccount, true, "account")?;
        let found =
            feeds::reservations(conn, &Of::Owner(caller.id()), stretch(now), BOOKINGS_MAX).await?;
        reading.is_cut = found.len() as u64 >= BOOKINGS_MAX;
        let mut places: HashMap<SiteId, Option<Place>> = HashMap::new();
        for reservation in found {
            let site = reservation.site;
            if let std::collections::hash_map::Entry::Vacant(place) = places.entry(site) {
                let found = sites::by_id_for(conn, site, caller.id()).await?;
                let found = found.map(|(site, role)| Place::of(caller, site, role));
                // In other sites the owner sees nothing except the reservations of an ended membership.
                let found = found.filter(|found| {
                    found
                        .may(caller, Action::SeeReservation, true, "site")
                        .is_ok()
                });
                place.insert(found);
            }
            if let Some(Some(place)) = places.get(&site) {
                reading.directory.add_site(&place.site);
                reading
                    .entries
                    .extend(booking(place, caller, reservation, None));
            }
        }
        Ok(())
    }

    async fn fill_shared(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        shows: Shows,
        now: Timestamp,
        reading: &mut FeedReading,
    ) -> Result<()> {
        let site = shows.site().ok_or(Error::NotFound("site"))?;
        let place = self
            .place(conn, caller, &Reference::Id(site), Action::SeeCalendar)
            .await?;
        reading.directory.add_site(&place.site);
        let rows = match shows {
            Shows::Mine | Shows::Site(_) => None,
            Shows::Type(_, kind) => {
                let kind = self.resource_type(conn, site, &Reference::Id(kind)).await?;
                reading.directory.add_type(&kind);
                Some(feeds::lines_of_type(conn, kind.id).await?)
            }
            Shows::Resource(_, resource) => {
                let resource = self.resource(conn, site, &Reference::Id(resource)).await?;
                reading.directory.add_resource(&resource);
                Some(feeds::line_of(conn, resource.id).await?)
            }
        };
        let of = match &rows {
            None => Of::Site(site),
            Some(rows) => Of::Resources(rows.clone()),
        };
        let rows: Option<BTreeSet<ResourceId>> = rows.map(|rows| rows.into_iter().collect());
        let stretch = stretch(now);
        let found = feeds::reservations(conn, &of, stretch, BOOKINGS_MAX).await?;
        let span = Span::new(stretch.from, stretch.to)
            .map_err(|error| Error::Internal(error.to_string()))?;
        let windows = feeds::windows(conn, site, span, WINDOWS_MAX).await?;
        reading.is_cut = found.len() as u64 >= BOOKINGS_MAX || windows.len() as u64 >= WINDOWS_MAX;
        for reservation in found {
            reading
                .entries
                .extend(booking(&place, caller, reservation, rows.as_ref()));
        }
        for (planned, claims) in windows {
            reading
                .entries
                .extend(window(&place, caller, planned, claims, rows.as_ref()));
        }
        Ok(())
    }
}

fn stretch(now: Timestamp) -> Stretch {
    Stretch {
        from: now - PAST,
        now,
        to: now + AHEAD,
        given_up_since: now - GIVEN_UP,
    }
}

fn is_in(rows: Option<&BTreeSet<ResourceId>>, resource: ResourceId) -> bool {
    rows.is_none_or(|rows| rows.contains(&resource))
}

/// A reservation as this caller may see it: itself, or each of its claims as taken time.
fn booking(
    place: &Place,
    caller: &Caller,
    of: Reservation,
    rows: Option<&BTreeSet<ResourceId>>,
) -> Vec<FeedEntry> {
    // A claim that the reservation once had on one of these resources does not count.
    if is_only_held(&of) || !of.items.iter().any(|item| is_in(rows, item.resource)) {
        return Vec::new();
    }
    let entry = |what, resources| FeedEntry {
        site: of.site,
        what,
        span: of.span,
        resources,
        version: of.version,
        changed_at: of.updated_at,
    };
    match see(place.standing, caller.id(), Some(of.owner), of.privacy) {
        Sight::Nothing => Vec::new(),
        // A booking that was cancelled, was rejected or failed is not busy time.
        Sight::Busy if gives_up(of.state) => Vec::new(),
        Sight::Busy => {
            let items = of.items.iter().filter(|item| is_in(rows, item.resource));
            let busy = items.map(|item| entry(FeedItem::Busy(item.claim), vec![item.resource]));
            busy.collect()
        }
        Sight::Full => {
            let what = FeedItem::Booking {
                id: of.id,
                title: of.title.clone(),
                owner: of.owner,
                state: of.state,
            };
            let resources = of.items.iter().map(|item| item.resource).collect();
            vec![entry(what, resources)]
        }
    }
}

/// Whether this is or was only a hold. A hold is over before a calendar program reads again, and a cancelled hold never
/// was a booking. Only a hold has a `decide_by` so soon after its creation.
fn is_only_held(of: &Reservation) -> bool {
    let latest = of.created_at + HOLD_LIFE + ROUNDING;
    let was_held = of.terms.decide_by.is_some_and(|by| by <= latest);
    of.state == State::Held || (of.state == State::Cancelled && was_held)
}

/// Whether a reservation ended without having taken place as booked.
pub fn gives_up(state: State) -> bool {
    matches!(state, State::Cancelled | State::Rejected | State::Failed)
}

fn window(
    place: &Place,
    caller: &Caller,
    of: Window,
    claims: Vec<Claim>,
    rows: Option<&BTreeSet<ResourceId>>,
) -> Vec<FeedEntry> {
    let mut here = claims
        .iter()
        .filter(|claim| is_in(rows, claim.resource))
        .peekable();
    if here.peek().is_none() {
        return Vec::new();
    }
    let entry = |what, span, resources| FeedEntry {
        site: of.site,
        what,
        span,
        resources,
        version: of.version,
        changed_at: of.created_at,
    };
    match see(place.standing, caller.id(), None, Privacy::Site) {
        Sight::Nothing => Vec::new(),
        Sight::Busy => here
            .map(|claim| entry(FeedItem::Busy(claim.id), claim.span, vec![claim.resource]))
            .collect(),
        Sight::Full => {
            let what = FeedItem::Window {
                id: of.id,
                title: of.title.clone(),
            };
            let resources: BTreeSet<ResourceId> =
                claims.iter().map(|claim| claim.resource).collect();
            vec![entry(what, of.span, resources.into_iter().collect())]
        }
    }
}
