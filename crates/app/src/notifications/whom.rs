//! Finds the people whom a batch of events concerns: looks up the engine's inputs, and turns its answers into
//! notifications.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use berth_engine::notify::{Asked, Concerns, Step, asked, concerns, owners_told};
use berth_model::event::{EventKind, NumberedEvent};
use berth_model::notification::{Notification, ToldAs};
use berth_model::reservation::{HistoryEntry, Reservation};
use berth_model::{Holder, PersonId, ReservationId, ResourceId, SeriesId, SiteId};
use berth_store::{Conn, claims, feeds, people, projects, reservations, sites};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::App;
use crate::error::Result;

/// How many of a person's bookings a notification about a resource names.
const NAMED_MAX: usize = 20;

/// A person whom an event concerns, and the data for them beyond the event.
struct Told {
    person: PersonId,
    told_as: ToldAs,
    more: Vec<(&'static str, Value)>,
}

impl From<(PersonId, ToldAs)> for Told {
    fn from((person, told_as): (PersonId, ToldAs)) -> Self {
        let more = Vec::new();
        Self {
            person,
            told_as,
            more,
        }
    }
}

/// The data about the reservations in a batch of events.
struct Known {
    reservations: HashMap<ReservationId, Reservation>,
    histories: HashMap<ReservationId, Vec<HistoryEntry>>,
    /// For each reservation, the former owners and the versions that their hand-overs made, in order.
    given: HashMap<ReservationId, Vec<(u64, PersonId)>>,
}

impl App {
    /// A notification for each person whom one of these events concerns.
    pub(super) async fn whom_to_tell(
        &self,
        conn: &mut Conn,
        news: &[NumberedEvent],
    ) -> Result<Vec<Notification>> {
        let known = Known::of(conn, news).await?;
        let mut all = Vec::new();
        let mut series_told = HashSet::new();
        for one in news {
            let told: Vec<Told> = match concerns(one.event.kind) {
                Concerns::Nobody => Vec::new(),
                Concerns::Reservation => of_reservation(conn, &known, one).await?,
                Concerns::Resource => of_resource(conn, one).await?,
                Concerns::Admins => of_admins(conn, one).await?,
                Concerns::Person => of_person(one),
                Concerns::Owner => of_owner(one),
            };
            // When an event happens to many instances of a series at once, only the first causes a notification.
            let series: Option<SeriesId> = field(&one.event.data, "series");
            let is_new = |told: &Told| {
                let once = |series| (told.person, told.told_as, one.event.kind, series);
                let is_reminder = one.event.kind == EventKind::ReservationReminder;
                is_reminder || series.is_none_or(|series| series_told.insert(once(series)))
            };
            let told = told.into_iter().filter(is_new);
            all.extend(told.map(|told| notification(one, told)));
        }
        Ok(all)
    }
}

impl Known {
    async fn of(conn: &mut Conn, news: &[NumberedEvent]) -> Result<Known> {
        let ids: BTreeSet<ReservationId> = news
            .iter()
            .filter(|one| concerns(one.event.kind) == Concerns::Reservation)
            .filter_map(|one| one.event.subject.parse().ok())
            .collect();
        let ids: Vec<ReservationId> = ids.into_iter().collect();
        let found = reservations::of_ids(conn, &ids).await?;
        let mut histories: HashMap<ReservationId, Vec<HistoryEntry>> = HashMap::new();
        for entry in reservations::histories(conn, &ids).await? {
            histories.entry(entry.reservation).or_default().push(entry);
        }
        let mut given: HashMap<ReservationId, Vec<(u64, PersonId)>> = HashMap::new();
        let hand_overs = news
            .iter()
            .filter(|one| one.event.kind == EventKind::ReservationHandedOver);
        for NumberedEvent { event, .. } in hand_overs {
            if let Ok(id) = event.subject.parse()
                && let Some(version) = field(&event.data, "version")
                && let Some(from) = field(&event.data, "from")
            {
                given.entry(id).or_default().push((version, from));
            }
        }
        Ok(Known {
            reservations: found.into_iter().map(|one| (one.id, one)).collect(),
            histories,
            given,
        })
    }

    /// The owner of a reservation at a version. The event of a private reservation has no owner, and the reservation
    /// may have been handed over since.
    fn owner_at(&self, about: &Reservation, version: Option<u64>) -> PersonId {
        let given = self.given.get(&about.id).map_or(&[][..], Vec::as_slice);
        let later = given
            .iter()
            .find(|(given_at, _)| version.is_some_and(|version| version < *given_at));
        later.map_or(about.owner, |(_, from)| *from)
    }

    /// The history of a reservation up to a version. Each version has one entry.
    fn up_to(&self, id: ReservationId, version: Option<u64>) -> &[HistoryEntry] {
        let all = self.histories.get(&id).map_or(&[][..], Vec::as_slice);
        let version = version.and_then(|version| usize::try_from(version).ok());
        version
            .and_then(|version| all.get(..version))
            .unwrap_or_default()
    }
}

async fn of_reservation(conn: &mut Conn, known: &Known, one: &NumberedEvent) -> Result<Vec<Told>> {
    let event = &one.event;
    let id: Option<ReservationId> = event.subject.parse().ok();
    let Some(about) = id.and_then(|id| known.reservations.get(&id)) else {
        return Ok(Vec::new());
    };
    let tells_of_a_step = !matches!(
        event.kind,
        EventKind::ReservationTroubled | EventKind::ReservationReminder
    );
    let version = field(&event.data, "version").filter(|_| tells_of_a_step);
    let former_owner = match event.kind {
        EventKind::ReservationHandedOver => field(&event.data, "from"),
        _ => None,
    };
    let step = Step {
        kind: event.kind,
        owner: field(&event.data, "owner").unwrap_or_else(|| known.owner_at(about, version)),
        former_owner,
        history: known.up_to(about.id, version),
        approvals: &about.terms.approvals,
    };
    let mut told: Vec<Told> = owners_told(&step).into_iter().map(Told::from).collect();
    if step.asks_approval() {
        let mut approvers = approvers(conn, about.site, asked(about)).await?;
        // A person who is notified as the owner learns from that notification that an approval is needed.
        approvers.retain(|id| !told.iter().any(|told| told.person == *id));
        let approvers = approvers.into_iter().filter(|id| step.by() != Some(*id));
        told.extend(approvers.map(|id| Told::from((id, ToldAs::Approver))));
    }
    if let Some(by) = step.by() {
        told.iter_mut()
            .for_each(|told| told.more.push(("by", json!(by))));
    }
    Ok(told)
}

/// All people who may give the approvals.
async fn approvers(conn: &mut Conn, site: SiteId, asked: Asked) -> Result<BTreeSet<PersonId>> {
    let mut found = BTreeSet::new();
    if asked.site_admins {
        found.extend(admins(conn, site).await?);
    }
    if !asked.projects.is_empty() {
        let names = asked.projects.iter().map(ToString::to_string).collect();
        found.extend(projects::in_any(conn, site, names).await?);
    }
    if !asked.people.is_empty() {
        let logins = asked.people.iter().map(ToString::to_string).collect();
        found.extend(sites::called(conn, site, logins).await?);
    }
    Ok(found)
}

/// The site's admins. If it has none, the global admins, so that somebody can answer.
async fn admins(conn: &mut Conn, site: SiteId) -> Result<Vec<PersonId>> {
    let admins = sites::admins(conn, site).await?;
    if admins.is_empty() {
        return Ok(people::global_admins(conn).await?);
    }
    Ok(admins)
}

/// Everyone who has a current or future booking of the resource, of an ancestor or of a descendant.
async fn of_resource(conn: &mut Conn, one: &NumberedEvent) -> Result<Vec<Told>> {
    let event = &one.event;
    let Ok(resource) = event.subject.parse::<ResourceId>() else {
        return Ok(Vec::new());
    };
    if event.data.get("before") == event.data.get("status") {
        return Ok(Vec::new());
    }
    let line = feeds::line_of(conn, resource).await?;
    let held = claims::holding_on(conn, line).await?;
    let holders: BTreeSet<ReservationId> = held
        .iter()
        .filter_map(|claim| match claim.holder {
            Holder::Reservation(id) => Some(id),
            _ => None,
        })
        .collect();
    let holders: Vec<ReservationId> = holders.into_iter().collect();
    let bookings = reservations::of_ids(conn, &holders).await?;
    let mut owners: BTreeMap<PersonId, Vec<ReservationId>> = BTreeMap::new();
    for booking in bookings.iter().filter(|one| is_to_come(one, event.at)) {
        let theirs = owners.entry(booking.owner).or_default();
        theirs.push(booking.id);
    }
    let told = owners.into_iter().map(|(person, mut theirs)| {
        theirs.truncate(NAMED_MAX);
        Told {
            person,
            told_as: ToldAs::Owner,
            more: vec![("reservations", json!(theirs))],
        }
    });
    Ok(told.collect())
}

fn is_to_come(booking: &Reservation, at: Timestamp) -> bool {
    booking.state.holds() && booking.span.end() > at
}

async fn of_admins(conn: &mut Conn, one: &NumberedEvent) -> Result<Vec<Told>> {
    let Some(site) = one.event.site else {
        return Ok(Vec::new());
    };
    let admins = admins(conn, site).await?.into_iter();
    let told = admins.map(|id| Told::from((id, ToldAs::Admin)));
    Ok(told.collect())
}

fn of_person(one: &NumberedEvent) -> Vec<Told> {
    let person: Option<PersonId> = field(&one.event.data, "person");
    let told = person.map(|person| Told::from((person, ToldAs::Oneself)));
    told.into_iter().collect()
}

fn of_owner(one: &NumberedEvent) -> Vec<Told> {
    let owner: Option<PersonId> = field(&one.event.data, "owner");
    let told = owner.map(|owner| Told::from((owner, ToldAs::Owner)));
    told.into_iter().collect()
}

fn notification(one: &NumberedEvent, told: Told) -> Notification {
    let event = &one.event;
    let mut data = match &event.data {
        Value::Object(said) => said.clone(),
        _ => Default::default(),
    };
    data.insert("as".to_owned(), json!(told.told_as));
    for (name, value) in told.more {
        data.insert(name.to_owned(), value);
    }
    Notification {
        person: told.person,
        number: one.number,
        kind: event.kind,
        site: event.site,
        subject: event.subject.clone(),
        at: event.at,
        data: Value::Object(data),
        read_at: None,
    }
}

/// A field of an event's data, if it exists and has the expected type.
pub(super) fn field<T: serde::de::DeserializeOwned>(data: &Value, name: &str) -> Option<T> {
    serde_json::from_value(data.get(name)?.clone()).ok()
}
