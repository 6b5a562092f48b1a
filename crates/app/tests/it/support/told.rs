//! What people were told, for tests that ask.

use berth_app::Caller;
use berth_app::notifications::{NotificationFilter, SeenNotification};
use berth_model::event::EventKind;
use berth_model::reservation::Reservation;
use berth_model::{Reference, Status};

use super::{Lab, name, site};

/// What somebody was told, oldest first.
pub async fn told(lab: &Lab, who: &Caller) -> Vec<SeenNotification> {
    lab.notify().await;
    read(lab, who).await
}

pub async fn read(lab: &Lab, who: &Caller) -> Vec<SeenNotification> {
    let filter = NotificationFilter {
        before: u64::MAX,
        limit: 1000,
        ..Default::default()
    };
    let found = lab.app.notifications(who, &filter).await;
    let mut items = found.expect("one's own").items;
    items.reverse();
    items
}

/// The same in short: the last part of the kind, and as whom.
pub async fn heard(lab: &Lab, who: &Caller) -> Vec<String> {
    let short = |one: &SeenNotification| {
        let kind = one.told.kind.as_str();
        let kind = kind.strip_prefix("reservation.").unwrap_or(kind);
        format!("{kind} as {}", one.told.data["as"].as_str().unwrap_or("?"))
    };
    told(lab, who).await.iter().map(short).collect()
}

pub async fn cancel(lab: &Lab, who: &Caller, of: &Reservation) {
    let why = "needed elsewhere".parse().ok();
    let at = site();
    let gone = lab.app.cancel_reservation(who, &at, of.id, None, why);
    gone.await.expect("they may");
}

pub async fn told_of(lab: &Lab, who: &Caller, kind: EventKind) -> Vec<SeenNotification> {
    let mut told = told(lab, who).await;
    told.retain(|one| one.told.kind == kind);
    told
}

pub async fn set_status(lab: &Lab, resource: &str, status: Status) {
    let resource = Reference::Name(name(resource));
    let why = "a fan".parse().ok();
    let at = site();
    let set = lab
        .app
        .set_status(&lab.admin, &at, &resource, None, status, why);
    set.await.expect("an admin may");
}
