//! A notification as an English sentence: the only place with these texts. Pages in other languages build their own
//! from the kind and the data. Moments are in UTC; the reader's program converts them to its time zone.

use berth_model::event::EventKind;
use berth_model::notification::ToldAs;
use berth_model::reservation::{Reservation, State};
use berth_model::site::Role;
use berth_model::{PersonId, Status};
use serde_json::Value;

use super::SeenNotification;
use super::whom::field;
use crate::directory::Directory;

/// How many resources a sentence names.
const NAMED_MAX: usize = 3;

pub(super) fn text(seen: &SeenNotification, directory: &Directory) -> String {
    use EventKind as Kind;
    let words = Words { seen, directory };
    let data = &seen.told.data;
    match seen.told.kind {
        Kind::ReservationCreated | Kind::ReservationChanged if seen.reservation.is_none() => {
            format!("Something became of {}.", words.what())
        }
        Kind::ReservationHandedOver if seen.reservation.is_none() => {
            format!("{} was handed over.", words.yours())
        }
        Kind::ReservationCreated | Kind::ReservationChanged if words.is(ToldAs::Approver) => {
            words.asks_approval()
        }
        Kind::ReservationCreated => match field::<u64>(data, "version") {
            Some(1) => format!("{} booked for you: {}.", words.by(), words.what()),
            _ => format!("There is room now: you have {}.", words.what()),
        },
        Kind::ReservationChanged => match field::<State>(data, "state") {
            Some(State::Ending) => words.happened("was ended"),
            _ => words.happened("was changed"),
        },
        Kind::ReservationMoved => words.happened("was given other resources of its kind"),
        Kind::ReservationTroubled => words.troubled(),
        Kind::ReservationOffered => words.offered(),
        Kind::ReservationHandedOver => words.handed_over(),
        Kind::ReservationNoShow => words.happened("was released, because nobody checked in"),
        Kind::ReservationApproved => words.happened("was approved"),
        Kind::ReservationRejected => words.happened("was rejected"),
        Kind::ReservationCancelled => words.happened("was cancelled"),
        Kind::ReservationFailed => words.happened("has failed"),
        Kind::ReservationReminder => words.reminder(),
        Kind::ResourceStatus => words.status(),
        Kind::JoinRequested => format!("{} asks to join {}.", words.by(), words.site()),
        Kind::MemberJoined => match field::<Role>(data, "role") {
            Some(Role::SiteAdmin) => format!("You are now an admin of {}.", words.site()),
            _ => format!("You are now a member of {}.", words.site()),
        },
        Kind::JoinDeclined => words.because(
            format!("Your request to join {} was declined", words.site()),
            field(data, "reason"),
        ),
        // The other kinds cause no notifications.
        other => format!("{} happened.", other.as_str()),
    }
}

struct Words<'a> {
    seen: &'a SeenNotification,
    directory: &'a Directory,
}

impl Words<'_> {
    fn is(&self, told_as: ToldAs) -> bool {
        field(&self.seen.told.data, "as") == Some(told_as)
    }

    fn person(&self, id: PersonId) -> String {
        let known = self.directory.people.get(&id);
        known.map_or_else(
            || "somebody".to_owned(),
            |person| person.display_name.to_string(),
        )
    }

    fn by(&self) -> String {
        let by = self.seen.by.map(|by| self.person(by));
        by.unwrap_or_else(|| "Somebody".to_owned())
    }

    fn site(&self) -> String {
        let site = self.seen.site.and_then(|id| self.directory.sites.get(&id));
        site.map_or_else(|| "a site".to_owned(), |site| site.title.to_string())
    }

    /// `“fine tuning” of gpu-01 from … to …`.
    fn what(&self) -> String {
        match &self.seen.reservation {
            None => "a reservation that you cannot see any more".to_owned(),
            Some(reservation) => {
                let (title, span) = (&reservation.title, reservation.span);
                let of = self.resources(reservation);
                format!("“{title}”{of} from {} to {}", span.start(), span.end())
            }
        }
    }

    fn resources(&self, of: &Reservation) -> String {
        let named = of.items.iter().filter_map(|item| {
            let known = self.directory.resources.get(&item.resource)?;
            Some(known.name.to_string())
        });
        let mut named: Vec<String> = named.collect();
        let more = named.len().saturating_sub(NAMED_MAX);
        named.truncate(NAMED_MAX);
        match (named.is_empty(), more) {
            (true, _) => String::new(),
            (false, 0) => format!(" of {}", named.join(", ")),
            (false, more) => format!(" of {} and {more} more", named.join(", ")),
        }
    }

    /// `Your reservation “fine tuning” …`.
    fn yours(&self) -> String {
        match &self.seen.reservation {
            None => "A reservation that you cannot see any more".to_owned(),
            Some(_) => format!("Your reservation {}", self.what()),
        }
    }

    /// The change of a reservation, the actor and the reason.
    fn happened(&self, verb: &str) -> String {
        let by = self.seen.by.map(|by| format!(" by {}", self.person(by)));
        let told = format!("{} {verb}{}", self.yours(), by.unwrap_or_default());
        let said: Option<String> = field(&self.seen.told.data, "reason");
        // The event of a private reservation has no reason. Its owner may still read the reason, while this change is
        // the latest.
        let version: Option<u64> = field(&self.seen.told.data, "version");
        let now = self.seen.reservation.as_ref();
        let now = now.filter(|now| Some(now.version) == version);
        let kept = now.and_then(|now| now.state_reason.as_ref());
        self.because(told, said.or(kept.map(ToString::to_string)))
    }

    fn because(&self, told: String, reason: Option<String>) -> String {
        match reason {
            Some(reason) => format!("{told}: {}.", reason.trim_end_matches('.')),
            None => format!("{told}."),
        }
    }

    fn asks_approval(&self) -> String {
        let reservation = self.seen.reservation.as_ref();
        let owner = reservation.map(|one| self.person(one.owner));
        let owner = owner.unwrap_or_else(|| "Somebody".to_owned());
        let of_series = match reservation.and_then(|one| one.occurrence) {
            Some(_) => ", one of a series",
            None => "",
        };
        format!(
            "{owner} asks for your approval of {}{of_series}.",
            self.what()
        )
    }

    fn offered(&self) -> String {
        let reservation = self.seen.reservation.as_ref();
        match reservation.and_then(|now| now.terms.decide_by) {
            Some(by) => format!("There is room for {}. Take it before {by}.", self.what()),
            None => format!("There was room for {}.", self.what()),
        }
    }

    fn handed_over(&self) -> String {
        let owner = self.seen.reservation.as_ref().map(|now| now.owner);
        match owner.filter(|_| self.is(ToldAs::FormerOwner)) {
            Some(owner) => {
                let owner = self.person(owner);
                format!("What was yours, {}, is {owner}'s now.", self.what())
            }
            None => format!("{} gave you {}.", self.by(), self.what()),
        }
    }

    fn troubled(&self) -> String {
        let data = &self.seen.told.data;
        let fate: Option<String> = field(data, "fate");
        if fate.as_deref() == Some("asked_to_move") {
            let ask =
                "others of its kind are free: change it to use them, or the work goes around it";
            return format!("{} is in the way of maintenance; {ask}.", self.yours());
        }
        let outcome = match fate.as_deref() {
            Some("reduced") => {
                let missing = field::<u64>(data, "missing").unwrap_or(1);
                format!("{missing} of its resources cannot be replaced")
            }
            Some("offered") => "others of its kind are free: change it to use them".to_owned(),
            _ => "there is nothing to replace it with".to_owned(),
        };
        format!("{} stands on what has failed; {outcome}.", self.yours())
    }

    fn reminder(&self) -> String {
        let Some(reservation) = &self.seen.reservation else {
            return format!("You were reminded of {}.", self.what());
        };
        let title = &reservation.title;
        let of = self.resources(reservation);
        // The time at the moment of the reminder; it may have changed since.
        let data = &self.seen.told.data;
        let moment = |name: &str| field::<String>(data, name).unwrap_or_default();
        match field::<String>(data, "about").as_deref() {
            Some("end") => format!("“{title}”{of} ends at {}.", moment("end")),
            _ => format!("“{title}”{of} starts at {}.", moment("start")),
        }
    }

    fn status(&self) -> String {
        let (seen, data) = (self.seen, &self.seen.told.data);
        let known = seen
            .resource
            .and_then(|id| self.directory.resources.get(&id));
        let Some(resource) = known else {
            return "The status of something that you had booked has changed.".to_owned();
        };
        let is_now = match field::<Status>(data, "status") {
            Some(Status::Active) => "is back in service".to_owned(),
            Some(status) => format!("is {status}"),
            None => "has another status".to_owned(),
        };
        let count = data.get("reservations").and_then(Value::as_array);
        let concerned = match count.map_or(0, Vec::len) {
            1 => "; a booking of yours stands on it".to_owned(),
            many => format!("; {many} bookings of yours stand on it"),
        };
        let told = format!("{} {is_now}{concerned}", resource.name);
        self.because(told, field(data, "reason"))
    }
}
