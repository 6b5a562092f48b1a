//! Closure calendars: the holidays and blackouts of a site, imported from the calendars of its institution.
//!
//! The calendar's text is stored together with the computed times: rules continue for ever, and the times are computed
//! only two years ahead. If a calendar cannot be read again, its last times stay.

use std::pin::Pin;

use berth_engine::rights::Action;
use berth_model::closure::{ClosedSpan, ClosedTime, Closure, ClosureKind};
use berth_model::event::{Audience, EventKind};
use berth_model::reference::{ClosureReference, SiteReference};
use berth_model::site::Site;
use berth_model::{ClosureId, FieldErrors, Name, Span, Text};
use berth_store::closures::{self, Source};
use berth_store::leases::{self, Lease};
use berth_store::{Conn, sites};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::place::Place;
use crate::record::{By, Change};
use crate::transact::transact;

/// The most calendars of one site.
const CLOSURES_MAX: usize = 100;
/// The largest calendar that is read.
pub const CALENDAR_MAX_BYTES: usize = 1 << 20;
/// No site has more closed times than this in the two years that can be searched.
const CLOSED_MAX: u64 = 5_000;
const LOOK_EVERY: SignedDuration = SignedDuration::from_hours(1);
const PAST: SignedDuration = SignedDuration::from_hours(90 * 24);
const AHEAD: SignedDuration = SignedDuration::from_hours(2 * 366 * 24);

/// Reads an address. The application does not know the network, so its caller provides this.
pub trait Fetch: Send + Sync + std::fmt::Debug {
    /// The content at the address, unless it is still the version `etag`. The error is a sentence for people, without
    /// the address, which may be a secret.
    fn fetch<'a>(&'a self, address: &'a str, etag: Option<&'a str>) -> Fetching<'a>;
}

pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<Fetched, String>> + Send + 'a>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    Same,
    New {
        bytes: Vec<u8>,
        etag: Option<String>,
    },
}

/// For an application without a network: calendars can only be imported from files.
#[derive(Debug, Clone, Copy)]
pub struct Offline;

impl Fetch for Offline {
    fn fetch<'a>(&'a self, _: &'a str, _: Option<&'a str>) -> Fetching<'a> {
        Box::pin(async { Err("this server reads no addresses".to_owned()) })
    }
}

#[derive(Debug, Clone)]
pub struct NewClosure {
    pub name: Name,
    pub kind: ClosureKind,
    pub from: NewSource,
}

#[derive(Debug, Clone)]
pub enum NewSource {
    File(String),
    Address(String),
}

/// A calendar with its closed times.
#[derive(Debug, Clone)]
pub struct ClosureView {
    pub closure: Closure,
    pub spans: Vec<ClosedSpan>,
    pub directory: Directory,
    /// Whether the caller may know the address, which may be a secret between the site and its institution.
    pub shows_address: bool,
}

/// A calendar's text, and the `etag` of this version.
#[derive(Debug, Clone)]
pub(crate) struct Brought {
    text: String,
    etag: Option<String>,
}

/// The closed times that a calendar yields.
struct WorkedOut {
    spans: Vec<ClosedSpan>,
    notes: Vec<String>,
}

impl App {
    /// Imports a calendar, which must be readable now.
    pub async fn add_closure(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewClosure,
        fetch: &dyn Fetch,
    ) -> Result<Made<ClosureView>> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::ManageClosures)
            .await?;
        drop(reader);
        let brought = match &new.from {
            NewSource::File(text) => brought(text.as_bytes(), None),
            NewSource::Address(address) => match fetch.fetch(address, None).await {
                Ok(Fetched::New { bytes, etag }) => brought(&bytes, etag),
                Ok(Fetched::Same) => Err("the address gave nothing to read".to_owned()),
                Err(trouble) => Err(trouble),
            },
        };
        let brought = brought.map_err(Error::Unreadable)?;
        let now = self.now();
        let worked_out = work_out(&brought.text, &place.site, now).map_err(Error::Unreadable)?;
        let id = ClosureId(fresh(now));
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::ManageClosures).await?;
            if let Some(earlier) = self.first_time(&mut tx, caller, id).await? {
                let found = closures::get(&mut tx, place.id(), &earlier.into()).await?;
                let closure = found.ok_or(Error::IdempotencyMismatch)?;
                return Ok(Made::before(self.closure_view(&mut tx, caller, &place, closure).await?));
            }
            if closures::list(&mut tx, place.id()).await?.len() >= CLOSURES_MAX {
                let message = format!("a site has at most {CLOSURES_MAX} closure calendars; remove one first");
                return Err(FieldErrors::one("name", message).into());
            }
            let closure = Closure {
                id,
                site: place.id(),
                name: new.name.clone(),
                kind: new.kind,
                address: match &new.from {
                    NewSource::File(_) => None,
                    NewSource::Address(address) => Some(address.clone()),
                },
                notes: worked_out.notes.clone(),
                read_at: now,
                tried_at: now,
                trouble: None,
                created_at: now,
                version: 1,
            };
            let source = Source {
                text: brought.text.clone(),
                etag: brought.etag.clone(),
                due_at: now + LOOK_EVERY,
            };
            closures::insert(&mut tx, &closure, &source).await?;
            closures::set_spans(&mut tx, &closure, &worked_out.spans).await?;
            let change = Change::new("closure.add", Some(place.id()), id)
                .after(recorded(&closure))
                .tell(EventKind::ClosureAdded, Audience::Members);
            self.record(&mut tx, caller, change).await?;
            Ok(Made::now(self.closure_view(&mut tx, caller, &place, closure).await?))
        })
        .map_err(|error: Error| error.taken(&new.name))
    }

    pub async fn closures(
        &self,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<(Vec<Closure>, Directory, bool)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeClosures)
            .await?;
        let closures = closures::list(&mut reader, place.id()).await?;
        let shows_address = place.can(caller, Action::ManageClosures);
        Ok((closures, Directory::with_site(&place.site), shows_address))
    }

    pub async fn closure(
        &self,
        caller: &Caller,
        site: &SiteReference,
        closure: &ClosureReference,
    ) -> Result<ClosureView> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeClosures)
            .await?;
        let closure = known(closures::get(&mut reader, place.id(), closure).await?)?;
        self.closure_view(&mut reader, caller, &place, closure)
            .await
    }

    pub async fn remove_closure(
        &self,
        caller: &Caller,
        site: &SiteReference,
        closure: &ClosureReference,
    ) -> Result<()> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::ManageClosures).await?;
            let closure = known(closures::get(&mut tx, place.id(), closure).await?)?;
            // Locked, so that no refresh comes between the version check and the removal.
            let (closure, _) = known(closures::get_locked(&mut tx, closure.id).await?)?;
            caller.expects(closure.version)?;
            if !closures::remove(&mut tx, closure.id).await? {
                return Err(Error::NotFound(WHAT));
            }
            let change = Change::new("closure.remove", Some(place.id()), closure.id)
                .before(recorded(&closure))
                .tell(EventKind::ClosureRemoved, Audience::Members);
            self.record(&mut tx, caller, change).await
        })
    }

    /// Reads a calendar again now. A failed read is part of the answer, not an error.
    pub async fn refresh_closure(
        &self,
        caller: &Caller,
        site: &SiteReference,
        closure: &ClosureReference,
        fetch: &dyn Fetch,
    ) -> Result<ClosureView> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::ManageClosures)
            .await?;
        let closure = known(closures::get(&mut reader, place.id(), closure).await?)?;
        let source = known(closures::source_of(&mut reader, closure.id).await?)?;
        drop(reader);
        let looked = look(&closure, &source, fetch).await;
        let by = By::from(caller);
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::ManageClosures).await?;
            let closure = self.take_in(&mut tx, &by, &place.site, closure.id, &looked).await?;
            self.closure_view(&mut tx, caller, &place, known(closure)?).await
        })
    }

    /// The calendars that are due for a new read.
    pub(crate) async fn closures_due(&self, limit: u64) -> Result<Vec<(Closure, Source)>> {
        let mut reader = self.store.read().await?;
        Ok(closures::due(&mut reader, self.now(), limit).await?)
    }

    /// Writes the result of reading a calendar, as the holder of a lease.
    pub(crate) async fn take_in_leased(
        &self,
        lease: &Lease,
        closure: &Closure,
        looked: &Result<Option<Brought>, String>,
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        leases::check(&mut tx, lease).await?;
        if let Some(site) = sites::by_id(&mut tx, closure.site).await? {
            self.take_in(&mut tx, &By::SYSTEM, &site, closure.id, looked)
                .await?;
        }
        tx.commit().await?;
        self.written.notify_one();
        Ok(())
    }

    /// Writes the result of reading a calendar. None if the calendar was removed meanwhile.
    async fn take_in(
        &self,
        conn: &mut Conn,
        by: &By,
        site: &Site,
        id: ClosureId,
        looked: &Result<Option<Brought>, String>,
    ) -> Result<Option<Closure>> {
        let Some((before, mut source)) = closures::get_locked(conn, id).await? else {
            return Ok(None);
        };
        let now = self.now();
        let mut after = Closure {
            tried_at: now,
            trouble: None,
            ..before.clone()
        };
        source.due_at = now + LOOK_EVERY;
        let text = match looked {
            Ok(Some(new)) => Ok(new.text.as_str()),
            Ok(None) => Ok(source.text.as_str()),
            Err(trouble) => Err(trouble.clone()),
        };
        let had = closures::spans(conn, id).await?;
        let mut spans = None;
        match text.and_then(|text| work_out(text, site, now)) {
            Ok(worked_out) => {
                after.read_at = now;
                after.notes = worked_out.notes;
                spans = Some(worked_out.spans).filter(|spans| *spans != had);
                if let Ok(Some(new)) = looked {
                    source.text.clone_from(&new.text);
                    source.etag.clone_from(&new.etag);
                }
            }
            Err(trouble) => {
                after.trouble = Some(trouble);
                // Otherwise the next read would report the bad version as unchanged, and clear its error.
                source.etag = None;
            }
        }
        let is_news = spans.is_some()
            || after.notes != before.notes
            || after.trouble.is_some() != before.trouble.is_some();
        if is_news {
            after.version += 1;
        }
        closures::update(conn, &after, &source).await?;
        if let Some(spans) = &spans {
            closures::set_spans(conn, &after, spans).await?;
        }
        if is_news {
            let change = Change::new("closure.refresh", Some(site.id), id)
                .before(recorded(&before))
                .after(recorded(&after))
                .tell(EventKind::ClosureChanged, Audience::Members);
            self.record(conn, by.clone(), change).await?;
        }
        Ok(Some(after))
    }

    async fn closure_view(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        closure: Closure,
    ) -> Result<ClosureView> {
        Ok(ClosureView {
            spans: closures::spans(conn, closure.id).await?,
            closure,
            directory: Directory::with_site(&place.site),
            shows_address: place.can(caller, Action::ManageClosures),
        })
    }

    /// The blackouts during a time in which this caller cannot book.
    pub(crate) async fn blackouts(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        during: Span,
    ) -> Result<Vec<Span>> {
        if !place.may_be_closed || place.can(caller, Action::BookOverBlackouts) {
            return Ok(Vec::new());
        }
        let blackouts = Some(ClosureKind::Blackouts);
        let closed =
            closures::closed_between(conn, place.id(), blackouts, during, CLOSED_MAX).await?;
        Ok(closed.into_iter().map(|one| one.closed.span).collect())
    }

    /// Refuses a span that overlaps a blackout, except for callers who may book over it.
    pub(crate) async fn expect_open(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        span: Span,
    ) -> Result<()> {
        if !place.may_be_closed || place.can(caller, Action::BookOverBlackouts) {
            return Ok(());
        }
        let blackouts = Some(ClosureKind::Blackouts);
        let met = closures::closed_between(conn, place.id(), blackouts, span, 1).await?;
        match met.into_iter().next() {
            None => Ok(()),
            Some(ClosedTime {
                calendar, closed, ..
            }) => Err(Error::Blackout { calendar, closed }),
        }
    }
}

const WHAT: &str = "closure calendar in this site";

fn known<T>(found: Option<T>) -> Result<T> {
    found.ok_or(Error::NotFound(WHAT))
}

/// The content at a calendar's address. None if it is unchanged, or if the calendar has no address.
pub(crate) async fn look(
    closure: &Closure,
    source: &Source,
    fetch: &dyn Fetch,
) -> Result<Option<Brought>, String> {
    let Some(address) = &closure.address else {
        return Ok(None);
    };
    match fetch.fetch(address, source.etag.as_deref()).await? {
        Fetched::Same => Ok(None),
        Fetched::New { bytes, etag } => brought(&bytes, etag).map(Some),
    }
}

/// A calendar's bytes as text for the database. Replaces invalid UTF-8, and removes NUL, which PostgreSQL cannot store.
fn brought(bytes: &[u8], etag: Option<String>) -> Result<Brought, String> {
    if bytes.len() > CALENDAR_MAX_BYTES {
        return Err(format!("it is larger than {CALENDAR_MAX_BYTES} bytes"));
    }
    let text = String::from_utf8_lossy(bytes).replace('\0', "");
    Ok(Brought { text, etag })
}

/// The closed times of the next two years, and of the last months.
fn work_out(text: &str, site: &Site, now: Timestamp) -> Result<WorkedOut, String> {
    let window = now - PAST..now + AHEAD;
    let reading = berth_ics::read(text.as_bytes(), &site.time_zone.rules(), window)
        .map_err(|error| error.to_string())?;
    let spans = reading.spans.into_iter().filter_map(|named| {
        let title: Option<Text> = named.title.parse().ok();
        let title = title.or_else(|| "closed".parse().ok())?;
        let span = Span::new(named.start, named.end).ok()?;
        Some(ClosedSpan { span, title })
    });
    Ok(WorkedOut {
        spans: spans.collect(),
        notes: reading.notes,
    })
}

/// A calendar for the audit log and the event: without its address, which may be a secret.
fn recorded(closure: &Closure) -> serde_json::Value {
    json!({
        "closure": closure.id,
        "name": closure.name,
        "kind": closure.kind,
        "trouble": closure.trouble,
        "version": closure.version,
    })
}
