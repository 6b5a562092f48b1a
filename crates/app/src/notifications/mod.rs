//! Notifications: what each person is told of what happened, and what of it they have read.
//!
//! What is kept is what happened. What it is about is looked up when it is read, with the reader's eyes of that moment:
//! whoever may not see a reservation any more reads that something became of it, and nothing about it.

mod tell;
mod text;
mod whom;

use std::collections::{BTreeSet, HashMap};

use berth_engine::rights::Action;
use berth_model::event::EventKind;
use berth_model::notification::Notification;
use berth_model::reference::SiteReference;
use berth_model::reservation::Reservation;
use berth_model::{PersonId, ReservationId, ResourceId, SiteId};
use berth_store::{Conn, inventory, notifications, reservations, sites};
use serde_json::Value;

use self::whom::field;
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::Result;
use crate::place::Place;
use crate::reservations::is_visible;
use crate::transact::transact;

#[derive(Debug, Clone, Default)]
pub struct NotificationFilter {
    pub unread: bool,
    pub kinds: Vec<EventKind>,
    pub site: Option<SiteReference>,
    /// The number before which the page begins.
    pub before: u64,
    pub limit: u64,
}

/// Some notifications, newest first, with everything they name.
#[derive(Debug, Clone)]
pub struct NotificationsView {
    pub items: Vec<SeenNotification>,
    /// How many there are, on all pages and of all kinds, that were not read.
    pub unread: u64,
    pub directory: Directory,
}

/// A notification as whoever it was told to may see it now.
#[derive(Debug, Clone)]
pub struct SeenNotification {
    /// Its data are empty where what it is about may not be seen any more.
    pub told: Notification,
    /// None if it concerns no site, or one that may not be seen.
    pub site: Option<SiteId>,
    pub reservation: Option<Reservation>,
    pub resource: Option<ResourceId>,
    /// Who did it, or who asks.
    pub by: Option<PersonId>,
    /// All of it in a sentence.
    pub text: String,
}

/// Which notifications to mark as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    These(Vec<u64>),
    UpTo(u64),
}

impl App {
    /// What the caller was told, newest first.
    pub async fn notifications(
        &self,
        caller: &Caller,
        filter: &NotificationFilter,
    ) -> Result<NotificationsView> {
        caller.may(Action::SeeOwnNotifications, true, "account")?;
        let mut reader = self.store.read().await?;
        let site = match &filter.site {
            Some(site) => {
                let place = self.place(&mut reader, caller, site, Action::SeeSite);
                Some(place.await?.id())
            }
            None => None,
        };
        let query = notifications::Filter {
            person: caller.id(),
            before: filter.before,
            unread: filter.unread,
            kinds: filter.kinds.clone(),
            site,
            limit: filter.limit,
        };
        let found = notifications::list(&mut reader, &query).await?;
        let unread = notifications::unread(&mut reader, caller.id()).await?;
        let (items, directory) = self.seen(&mut reader, caller, found).await?;
        Ok(NotificationsView {
            items,
            unread,
            directory,
        })
    }

    /// Marks some as read; says how many are not.
    pub async fn mark_read(&self, caller: &Caller, which: &Which) -> Result<u64> {
        self.mark(caller, Some(which), &[]).await
    }

    /// Marks some as not read; says how many are not.
    pub async fn mark_unread(&self, caller: &Caller, numbers: &[u64]) -> Result<u64> {
        self.mark(caller, None, numbers).await
    }

    async fn mark(&self, caller: &Caller, read: Option<&Which>, unread: &[u64]) -> Result<u64> {
        caller.may(Action::MarkOwnNotifications, true, "account")?;
        let (me, now) = (caller.id(), self.now());
        transact!(self, tx => {
            let marked = match read {
                Some(Which::These(numbers)) => notifications::mark_read(&mut tx, me, numbers, now).await?,
                Some(Which::UpTo(number)) => notifications::mark_read_up_to(&mut tx, me, *number, now).await?,
                None => notifications::mark_unread(&mut tx, me, unread).await?,
            };
            if marked == 0 {
                return Ok(notifications::unread(&mut tx, me).await?);
            }
            // Their other pages show it, too.
            self.tell_count(&mut tx, EventKind::NotificationRead, me).await
        })
    }

    /// What these are about, as far as the caller may see it now.
    async fn seen(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        found: Vec<Notification>,
    ) -> Result<(Vec<SeenNotification>, Directory)> {
        let places = places(conn, caller, &found).await?;
        let ids: BTreeSet<ReservationId> = found
            .iter()
            .filter_map(|one| one.subject.parse().ok())
            .collect();
        let ids: Vec<ReservationId> = ids.into_iter().collect();
        let mut visible = HashMap::new();
        for reservation in reservations::of_ids(conn, &ids).await? {
            let Some(place) = places.get(&reservation.site) else {
                continue;
            };
            let is_open = place.can(caller, Action::SeeReservation)
                && (is_visible(place, caller, &reservation)
                    || self.is_asked(conn, caller, place, &reservation).await?);
            if is_open {
                visible.insert(reservation.id, reservation);
            }
        }
        let mut directory = Directory::default();
        for place in places.values() {
            directory.add_site(&place.site);
        }
        let shown: Vec<Reservation> = visible.values().cloned().collect();
        directory.learn_reservations(conn, &shown).await?;
        let mut items = Vec::new();
        for told in found {
            let place = told.site.and_then(|site| places.get(&site));
            let mut seen = SeenNotification {
                site: place.map(Place::id),
                reservation: None,
                resource: None,
                by: None,
                text: String::new(),
                told,
            };
            seen.look(conn, caller, place, &visible).await?;
            let owners = seen.reservation.iter().map(|one| one.owner);
            let people: Vec<PersonId> = owners.chain(seen.by).collect();
            directory.learn_people(conn, people).await?;
            directory.learn_resources(conn, seen.resource).await?;
            items.push(seen);
        }
        for seen in &mut items {
            seen.text = text::text(seen, &directory);
        }
        Ok((items, directory))
    }
}

impl SeenNotification {
    /// Finds what it is about, and forgets what its reader may not know.
    async fn look(
        &mut self,
        conn: &mut Conn,
        caller: &Caller,
        place: Option<&Place>,
        visible: &HashMap<ReservationId, Reservation>,
    ) -> Result<()> {
        let told = &self.told;
        let may = |action| place.is_some_and(|place| place.can(caller, action));
        let is_open = match told.kind {
            EventKind::ResourceStatus => {
                let is_shown = may(Action::SeeCatalogue);
                let id = told.subject.parse().ok().filter(|_| is_shown);
                if let (Some(id), Some(place)) = (id, place) {
                    let found = inventory::by_id(conn, place.id(), id).await?;
                    self.resource = found.map(|found| found.id);
                }
                self.resource.is_some() && may(Action::FollowSite)
            }
            EventKind::JoinRequested => {
                let is_open = may(Action::SeeJoinRequests);
                self.by = field(&told.data, "person").filter(|_| is_open);
                is_open
            }
            // What became of them is theirs to know.
            EventKind::MemberJoined | EventKind::JoinDeclined => true,
            EventKind::SessionFailed
            | EventKind::SessionIdle
            | EventKind::SessionOutOfMemory
            | EventKind::SessionVisited => {
                self.by = field(&told.data, "by");
                true
            }
            EventKind::ProfilePaused => may(Action::SeeQueue),
            _ => {
                let id: Option<ReservationId> = told.subject.parse().ok();
                self.reservation = id.and_then(|id| visible.get(&id)).cloned();
                let is_open = self.reservation.is_some();
                self.by = field(&told.data, "by").filter(|_| is_open);
                is_open
            }
        };
        if !is_open {
            self.told.data = Value::Object(Default::default());
        }
        Ok(())
    }
}

/// The sites of these, as the caller stands in them; not those of which they may not know.
async fn places(
    conn: &mut Conn,
    caller: &Caller,
    of: &[Notification],
) -> Result<HashMap<SiteId, Place>> {
    let ids: BTreeSet<SiteId> = of.iter().filter_map(|one| one.site).collect();
    let mut places = HashMap::new();
    for id in ids {
        if let Some((site, role)) = sites::by_id_for(conn, id, caller.id()).await? {
            let place = Place::of(caller, site, role);
            if place.can(caller, Action::SeeSite) {
                places.insert(id, place);
            }
        }
    }
    Ok(places)
}
