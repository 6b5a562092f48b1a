//! Feeds and closure calendars over time, on both databases.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Lab, name, on_both, site};
use berth_app::closures::{Fetch, Fetched, Fetching, NewClosure, NewSource};
use berth_app::feeds::{FeedItem, NewFeed, NewShows};
use berth_app::{Caller, Error, controllers};
use berth_model::closure::ClosureKind;
use berth_model::reservation::State;
use berth_model::{Reference, Span};
use berth_store::closures;
use berth_testkit::wait;
use jiff::SignedDuration;
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

on_both!(
    a_feed_forgets_what_was_given_up_and_what_is_long_over,
    a_feed_shows_what_occupies_a_resource_or_a_type,
    a_booking_that_left_a_resource_leaves_its_feed,
    a_hold_stands_in_no_feed_until_it_is_taken,
    a_controller_reads_calendars_again,
    closed_times_are_found_by_kind_and_time,
);

const PATIENCE: Duration = Duration::from_secs(60);
const DAY: i64 = 24;

impl Lab {
    async fn feed(&self, who: &Caller, shows: NewShows) -> String {
        let new = NewFeed {
            label: "a test".parse().expect("text"),
            shows,
        };
        let made = self.app.create_feed(who, &new).await.expect("a feed");
        let (_, _, secret) = made.value;
        secret.expect("a secret").expose_secret().to_owned()
    }

    /// The states of the bookings in a feed, in order; none for what is only busy, or maintenance.
    async fn states(&self, secret: &str) -> Vec<Option<State>> {
        let reading = self.app.read_feed(secret).await.expect("the feed");
        let state = |item: FeedItem| match item {
            FeedItem::Booking { state, .. } => Some(state),
            FeedItem::Window { .. } | FeedItem::Busy(_) => None,
        };
        reading
            .entries
            .into_iter()
            .map(|entry| state(entry.what))
            .collect()
    }
}

async fn a_feed_forgets_what_was_given_up_and_what_is_long_over(lab: Lab) {
    let secret = lab.feed(&lab.ada, NewShows::Mine).await;
    lab.book(&lab.ada, &["gpu-01"], 1, 2).await;
    let given_up = lab.book(&lab.ada, &["gpu-02"], 50 * DAY, 51 * DAY).await;
    lab.book(&lab.ada, &["gpu-01"], 364 * DAY, 365 * DAY).await;
    lab.book(&lab.ada, &["gpu-01"], 368 * DAY, 369 * DAY).await;
    let cancel = lab
        .app
        .cancel_reservation(&lab.ada, &site(), given_up.id, None, None)
        .await;
    cancel.expect("cancelled");
    let (done, confirmed) = (Some(State::Done), Some(State::Confirmed));
    assert_eq!(
        lab.states(&secret).await,
        [confirmed, Some(State::Cancelled), confirmed]
    );
    // Stop by stop, so that the first one is served while its time lasts.
    lab.wait_until(1).await;
    lab.wait_until(2).await;
    lab.wait_until(29 * DAY).await;
    assert_eq!(
        lab.states(&secret).await,
        [done, Some(State::Cancelled), confirmed, confirmed]
    );
    lab.wait_until(31 * DAY).await;
    assert_eq!(lab.states(&secret).await, [done, confirmed, confirmed]);
    lab.wait_until(91 * DAY).await;
    assert_eq!(lab.states(&secret).await, [confirmed, confirmed]);
}

async fn a_feed_shows_what_occupies_a_resource_or_a_type(lab: Lab) {
    lab.book(&lab.ada, &["rack-a"], 1, 2).await;
    lab.book(&lab.ada, &["gpu-01.gpu0"], 3, 4).await;
    lab.book(&lab.ada, &["gpu-02"], 5, 6).await;
    lab.book(&lab.ada, &["vault-01"], 7, 8).await;
    let resource = |one: &str| NewShows::Resource(site(), Reference::Name(name(one)));
    let kind = |one: &str| NewShows::Type(site(), Reference::Name(name(one)));
    for (shows, entries) in [
        (resource("gpu-01"), 2),
        (resource("gpu-01.gpu0"), 2),
        (resource("gpu-01.gpu1"), 1),
        (resource("rack-a"), 3),
        (resource("rack-b"), 0),
        (kind("server"), 3),
        (kind("strict"), 1),
        (NewShows::Site(site()), 4),
    ] {
        let secret = lab.feed(&lab.bob, shows.clone()).await;
        assert_eq!(lab.states(&secret).await.len(), entries, "{shows:?}");
    }
}

async fn a_booking_that_left_a_resource_leaves_its_feed(lab: Lab) {
    let resource = |one: &str| NewShows::Resource(site(), Reference::Name(name(one)));
    let secret = lab.feed(&lab.bob, resource("gpu-01")).await;
    let booked = lab.book(&lab.ada, &["gpu-01"], 1, 2).await;
    assert_eq!(lab.states(&secret).await.len(), 1);
    let change = berth_app::reservations::ReservationChange {
        items: Some(lab.wish(&["gpu-02"], 1, 2).items),
        ..Default::default()
    };
    let changed = lab
        .app
        .change_reservation(&lab.ada, &site(), booked.id, None, &change)
        .await;
    changed.expect("moved");
    assert!(lab.states(&secret).await.is_empty());
    let cancel = lab
        .app
        .cancel_reservation(&lab.ada, &site(), booked.id, None, None)
        .await;
    cancel.expect("cancelled");
    assert!(
        lab.states(&secret).await.is_empty(),
        "nor does it come back when it is given up"
    );
}

async fn a_hold_stands_in_no_feed_until_it_is_taken(lab: Lab) {
    let mine = lab.feed(&lab.ada, NewShows::Mine).await;
    let whole = lab.feed(&lab.bob, NewShows::Site(site())).await;
    let hold = async |resource, from| {
        let mut wish = lab.wish(&[resource], from, from + 1);
        wish.hold = true;
        let held = lab.app.book(&lab.ada, &site(), &wish).await;
        held.expect("it is free").value.reservation.id
    };
    let take = async |id| {
        let taken = lab.app.take_reservation(&lab.ada, &site(), id, None).await;
        taken.expect("it is still held");
    };
    let cancel = async |id| {
        let cancelled = lab
            .app
            .cancel_reservation(&lab.ada, &site(), id, None, None)
            .await;
        cancelled.expect("cancelled");
    };
    hold("gpu-01", 1).await;
    cancel(hold("gpu-02", 1).await).await;
    for feed in [&mine, &whole] {
        assert!(lab.states(feed).await.is_empty());
    }
    let [taken, given_up] = [hold("gpu-01", 3).await, hold("gpu-01", 5).await];
    take(taken).await;
    take(given_up).await;
    cancel(given_up).await;
    // Long enough for the hold that nobody took to end by itself.
    lab.wait_until_moment(lab.at(0) + SignedDuration::from_mins(5))
        .await;
    for feed in [&mine, &whole] {
        let states = [Some(State::Confirmed), Some(State::Cancelled)];
        assert_eq!(lab.states(feed).await, states);
    }
}

/// An institution's web server, as far as the application knows.
#[derive(Debug, Default)]
struct Institution(Mutex<Vec<Result<String, String>>>);

impl Fetch for Institution {
    fn fetch<'a>(&'a self, _: &'a str, _: Option<&'a str>) -> Fetching<'a> {
        let next = self.0.lock().expect("nobody panics here").pop();
        Box::pin(async move {
            let text = next.ok_or("there is nothing more")??;
            Ok(Fetched::New {
                bytes: text.into_bytes(),
                etag: None,
            })
        })
    }
}

fn calendar(title: &str, day: &str) -> String {
    format!(
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:{title}\nDTSTART;VALUE=DATE:{day}\nEND:VEVENT\nEND:VCALENDAR\n"
    )
}

fn new(calendar: &str, kind: ClosureKind, from: NewSource) -> NewClosure {
    NewClosure {
        name: name(calendar),
        kind,
        from,
    }
}

async fn a_controller_reads_calendars_again(lab: Lab) {
    let institution = Arc::new(Institution(Mutex::new(vec![
        Err("the server there answered 500".to_owned()),
        Ok(calendar("Fête “à côté”", "20261225")),
        Ok(calendar("Fête", "20261224")),
    ])));
    let address = NewSource::Address("https://campus.example/x.ics".to_owned());
    let new = new("campus", ClosureKind::Blackouts, address);
    let added = lab
        .app
        .add_closure(&lab.admin, &site(), &new, institution.as_ref())
        .await;
    let added = added.expect("brought in").value;
    assert_eq!(added.spans.len(), 1);
    let reference = Reference::Name(name("campus"));
    let view = async || {
        lab.app
            .closure(&lab.ada, &site(), &reference)
            .await
            .expect("it is there")
    };
    // Each look is an hour after the one before; the controller finds what is due when it starts.
    for (hours, version) in [(1, 2), (2, 3)] {
        lab.wait_until(hours).await;
        let stop = CancellationToken::new();
        let running = controllers::start(&lab.app, institution.clone(), &stop);
        wait::until("the calendar is read again", PATIENCE, async || {
            view().await.closure.version == version
        })
        .await;
        stop.cancel();
        running.join_all().await;
    }
    let last = view().await;
    assert_eq!(
        last.spans[0].title.as_str(),
        "Fête “à côté”",
        "the last good reading"
    );
    assert_eq!(
        last.spans[0].span.start().to_string(),
        "2026-12-24T23:00:00Z"
    );
    assert_eq!(
        last.closure.trouble.as_deref(),
        Some("the server there answered 500")
    );
    assert_eq!(
        (last.closure.read_at, last.closure.tried_at),
        (lab.at(1), lab.at(2))
    );
    let refused = lab
        .try_book(&lab.ada, &["gpu-01"], 38 * DAY + 17, 38 * DAY + 20)
        .await;
    assert!(
        matches!(refused, Err(Error::Blackout { .. })),
        "{refused:?}"
    );
    lab.book(&lab.admin, &["gpu-01"], 38 * DAY + 17, 38 * DAY + 20)
        .await;
}

async fn closed_times_are_found_by_kind_and_time(lab: Lab) {
    for (title, kind, day) in [
        ("days-off", ClosureKind::Holidays, "20261208"),
        ("shut", ClosureKind::Blackouts, "20261209"),
    ] {
        let new = new(title, kind, NewSource::File(calendar(title, day)));
        let added = lab
            .app
            .add_closure(&lab.admin, &site(), &new, &berth_app::closures::Offline)
            .await;
        added.expect("brought in");
    }
    let torino = lab.book(&lab.ada, &["gpu-01"], 1, 2).await.site;
    let span = |from: &str, to: &str| {
        let at = |text: &str| text.parse().expect("a moment");
        Span::new(at(from), at(to)).expect("a span")
    };
    let closed = async |kind, span| -> Vec<String> {
        let mut reader = lab.app.store.read().await.expect("a reader");
        let found = closures::closed_between(&mut reader, torino, kind, span, 10).await;
        found
            .expect("an answer")
            .into_iter()
            .map(|one| one.closed.title.to_string())
            .collect()
    };
    let both = span("2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z");
    assert_eq!(closed(None, both).await, ["days-off", "shut"]);
    assert_eq!(
        closed(Some(ClosureKind::Holidays), both).await,
        ["days-off"]
    );
    assert_eq!(closed(Some(ClosureKind::Blackouts), both).await, ["shut"]);
    // To the minute: 8 December in Rome begins at 23:00 of the day before, and ends where the 9th begins.
    let before = span("2026-12-01T00:00:00Z", "2026-12-07T23:00:00Z");
    assert!(closed(None, before).await.is_empty());
    let touching = span("2026-12-08T23:00:00Z", "2026-12-08T23:01:00Z");
    assert_eq!(closed(None, touching).await, ["shut"]);
}
