//! Notifications: the messages for each person about events, and which of them they have read.
//!
//! The database stores the event only. Its subject is looked up at every read, with the reader's current rights. A
//! reader who may no longer see a reservation learns that it changed, and nothing about it.

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
    /// Only notifications with a smaller number.
    pub before: u64,
    pub limit: u64,
}

/// A page of notifications, newest first, with everything they name.
#[derive(Debug, Clone)]
pub struct NotificationsView {
    pub items: Vec<SeenNotification>,
    /// The number of unread notifications, on all pages and of all kinds.
    pub unread: u64,
    pub directory: Directory,
}

/// A notification as its recipient may see it now.
#[derive(Debug, Clone)]
pub struct SeenNotification {
    /// Its data are empty if the recipient may no longer see the subject.
    pub told: Notification,
    /// None if it concerns no site, or a site that the recipient may not see.
    pub site: Option<SiteId>,
    pub reservation: Option<Reservation>,
    pub resource: Option<ResourceId>,
    /// The person who did it, or who asks.
    pub by: Option<PersonId>,
    /// The notification as a sentence.
    pub text: String,
}

/// Which notifications to mark as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    These(Vec<u64>),
    UpTo(u64),
}

impl App {
    /// The caller's notifications, newest first.
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

    /// Marks some as read. Returns how many are unread.
    pub async fn mark_read(&self, caller: &Caller, which: &Which) -> Result<u64> {
        self.mark(caller, Some(which), &[]).await
    }

    /// Marks some as unread. Returns how many are unread.
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
            // The person's other pages show the count, too.
            self.tell_count(&mut tx, EventKind::NotificationRead, me).await
        })
    }

    /// These notifications with their subjects, as far as the caller may see them now.
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
    /// Looks up the subject, and clears the data that the reader may not know.
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
            // The decision about a join request always belongs to the person who asked.
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

/// The sites of these notifications, with the caller's standing. Leaves out sites that the caller may not know.
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
