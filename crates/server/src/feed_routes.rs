//! What calendar programs read: a feed at its secret address, as an iCalendar file.
//!
//! Nobody signs in here; the address is the key, and it must stand in no log (see `observe`). What is not, or no
//! longer, a feed's address is answered like every other address at which there is nothing.

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use berth_api::{Code, Names, paths};
use berth_app::feeds::{FeedEntry, FeedItem, FeedReading, gives_up};
use berth_ics::{Calendar, Event, Status};
use berth_model::feed::Shows;
use berth_model::reservation::State as Stage;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::server::Server;
use crate::shown::names;

const SUFFIX: &str = ".ics";
/// May be kept, and must be asked about before it is shown again: rights are asked anew on every read.
const CACHING: &str = "private, no-cache";
/// The most resources that one entry names.
const RESOURCES_NAMED: usize = 20;

pub fn router() -> Router<Server> {
    Router::new().route(paths::FEED_FILE, get(read))
}

async fn read(
    State(server): State<Server>,
    file: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response> {
    let file = file.ok().map(|Path(file)| file);
    let secret = file.as_deref().and_then(|file| file.strip_suffix(SUFFIX));
    let secret = secret.ok_or_else(nothing_here)?;
    let reading = match server.app.read_feed(secret).await {
        Err(berth_app::Error::NotFound(_)) => return Err(nothing_here()),
        reading => reading?,
    };
    let text = calendar(&reading, &host(&server.config)).write();
    let tag = tag(&text);
    let head = [(ETAG, tag.as_str()), (CACHE_CONTROL, CACHING)];
    if is_known(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, head).into_response());
    }
    let kind = [(CONTENT_TYPE, "text/calendar; charset=utf-8")];
    Ok((head, kind, text).into_response())
}

fn nothing_here() -> Failure {
    Failure::new(Code::ObjectNotFound)
        .detail("There is no calendar feed at this address, or it was revoked.")
        .hint("Make a new one with `berth feed create`.")
}

/// Weak, because what is sent may be compressed on its way.
fn tag(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let half: String = hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("W/\"{half}\"")
}

pub(crate) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let strong = tag.trim_start_matches("W/");
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(|known| known.trim().trim_start_matches("W/"))
        .any(|known| known == strong || known == "*")
}

/// What this server is called in the ids of events, which must stay the same for as long as it lives.
fn host(config: &Config) -> String {
    let public = config.public_url.as_ref().map(|url| url.as_str());
    let host = public
        .and_then(|url| url.split_once("://"))
        .map(|(_, rest)| rest);
    host.unwrap_or("berth").to_owned()
}

fn calendar(reading: &FeedReading, host: &str) -> Calendar {
    let names = names(&reading.directory);
    let entries = &reading.entries;
    let note = reading.is_cut.then(|| {
        let last = entries.last().map(|entry| entry.span.start().to_string());
        format!(
            "There is more than a feed holds: it goes up to what begins at {}, and the oldest entries are left out.",
            last.unwrap_or_default()
        )
    });
    Calendar {
        name: title(reading),
        note,
        events: entries
            .iter()
            .map(|entry| event(entry, reading, &names, host))
            .collect(),
    }
}

/// What people see the feed called; nothing of what its maker may no longer know.
fn title(reading: &FeedReading) -> String {
    let directory = &reading.directory;
    let site = reading
        .feed
        .shows
        .site()
        .and_then(|site| directory.sites.get(&site));
    let part = match reading.feed.shows {
        Shows::Mine => return "Berth: my bookings".to_owned(),
        Shows::Site(_) => None,
        Shows::Type(_, kind) => directory.types.get(&kind).map(|kind| &kind.name),
        Shows::Resource(_, one) => directory.resources.get(&one).map(|one| &one.name),
    };
    match (site, part) {
        (None, _) => "Berth".to_owned(),
        (Some(site), None) => site.title.to_string(),
        (Some(site), Some(part)) => format!("{}: {part}", site.title),
    }
}

fn event(entry: &FeedEntry, reading: &FeedReading, names: &Names, host: &str) -> Event {
    let site = reading.directory.sites.get(&entry.site);
    let (zone_name, zone) = match site {
        Some(site) => (site.time_zone.as_str().to_owned(), site.time_zone.rules()),
        None => ("UTC".to_owned(), TimeZone::UTC),
    };
    let (uid, summary, description, status) = match &entry.what {
        FeedItem::Booking {
            id,
            title,
            owner,
            state,
        } => {
            let owner = names.person(*owner).display_name;
            let status = match state {
                Stage::Waiting | Stage::Held | Stage::PendingApproval => Status::Tentative,
                state if gives_up(*state) => Status::Cancelled,
                _ => Status::Confirmed,
            };
            let about = format!(
                "Booked by {owner}. State: {}.",
                state.as_str().replace('_', " ")
            );
            (id.to_string(), title.to_string(), Some(about), status)
        }
        FeedItem::Window { id, title } => {
            let summary = format!("Maintenance: {title}");
            (id.to_string(), summary, None, Status::Confirmed)
        }
        FeedItem::Busy(claim) => (
            claim.to_string(),
            "Busy".to_owned(),
            None,
            Status::Confirmed,
        ),
    };
    let resources: Vec<_> = entry
        .resources
        .iter()
        .map(|id| names.resource(*id))
        .collect();
    let mut categories: Vec<String> = resources.iter().map(|one| one.type_name.clone()).collect();
    categories.sort();
    categories.dedup();
    let mut places: Vec<String> = resources.into_iter().map(|one| one.name).collect();
    places.sort();
    if places.len() > RESOURCES_NAMED {
        let more = places.len() - RESOURCES_NAMED;
        places.truncate(RESOURCES_NAMED);
        places.push(format!("and {more} more"));
    }
    Event {
        uid: format!("{uid}@{host}"),
        sequence: entry.version,
        changed_at: entry.changed_at,
        start: entry.span.start(),
        end: entry.span.end(),
        zone_name,
        zone,
        status,
        summary,
        description,
        location: Some(places.join(", ")),
        categories,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_copy_that_is_still_good_is_known_by_its_tag() {
        let (tag, other) = (tag("a"), tag("b"));
        let asked = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, HeaderValue::from_str(value).unwrap());
            is_known(&headers, &tag)
        };
        assert!(asked(&tag) && asked(tag.trim_start_matches("W/")) && asked("*"));
        assert!(asked(&format!("{other}, {tag}")));
        assert!(!asked(&other) && !asked("nonsense"));
    }
}
