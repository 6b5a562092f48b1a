//! The event stream: numbered events, each shown to the people whom it concerns.
//!
//! Every server keeps the newest events in memory, so that a thousand open pages cost one query per change and not a
//! thousand. A listener that fell behind, or reconnects, reads the missing events from the store.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, RwLock};

use berth_engine::rights::{Action, Standing};
use berth_engine::sight::hears;
use berth_model::SiteId;
use berth_model::event::{Audience, Event, EventKind, NumberedEvent};
use berth_model::reference::SiteReference;
use berth_model::site::{OutsiderView, Role, Site};
use berth_store::{Conn, events, people, sites};
use tokio::sync::watch;

use crate::App;
use crate::caller::{Caller, Via};
use crate::error::{Error, Result};

const KEPT: usize = 4096;
const PAGE: u64 = 500;

/// The newest events, and a wake-up when there are more.
#[derive(Debug)]
pub struct Tail {
    recent: RwLock<VecDeque<Arc<NumberedEvent>>>,
    newest: watch::Sender<u64>,
}

impl Default for Tail {
    fn default() -> Self {
        Self {
            recent: RwLock::default(),
            newest: watch::channel(0).0,
        }
    }
}

impl Tail {
    /// Changes when there are more events.
    pub(crate) fn bell(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    pub fn newest(&self) -> u64 {
        *self.newest.borrow()
    }

    fn push(&self, new: Vec<NumberedEvent>) {
        let Some(last) = new.last().map(|event| event.number) else {
            return;
        };
        let mut recent = self
            .recent
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        recent.extend(new.into_iter().map(Arc::new));
        let surplus = recent.len().saturating_sub(KEPT);
        recent.drain(..surplus);
        drop(recent);
        self.newest.send_replace(last);
    }

    /// The events after `position`, if all of them are still in memory.
    pub(crate) fn after(&self, position: u64) -> Option<Vec<Arc<NumberedEvent>>> {
        let recent = self
            .recent
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let first = recent.front()?.number;
        if position + 1 < first {
            return None;
        }
        let skip = usize::try_from(position + 1 - first).unwrap_or(usize::MAX);
        Some(
            recent
                .iter()
                .skip(skip)
                .take(PAGE as usize)
                .cloned()
                .collect(),
        )
    }
}

impl App {
    /// Updates the tail from the store. Returns how many events were new.
    pub(crate) async fn refresh_tail(&self) -> Result<usize> {
        let mut reader = self.store.read().await?;
        if self.tail.newest() == 0 {
            // At start: listeners read older events from the store.
            let last = events::last_number(&mut reader).await?;
            self.tail.newest.send_replace(last);
        }
        let new = events::after(&mut reader, self.tail.newest(), PAGE).await?;
        let count = new.len();
        self.tail.push(new);
        Ok(count)
    }

    /// A page of events after a number, as this caller may see them, and the number to continue from.
    pub async fn events_after(
        &self,
        caller: &Caller,
        site: Option<&SiteReference>,
        after: u64,
        limit: u64,
    ) -> Result<EventsPage> {
        let mut listener = self.listen(caller, site, after).await?;
        let mut shown = Vec::new();
        // Skips pages without an event for the caller, up to a limit.
        for _ in 0..20 {
            let page = listener.read(limit).await?;
            let ended = page.is_empty();
            shown.extend(page.into_iter().filter(|event| listener.hears(event)));
            if ended || shown.len() as u64 >= limit {
                break;
            }
        }
        shown.truncate(limit as usize);
        let position = if shown.len() as u64 >= limit {
            shown.last().map_or(after, |e| e.number)
        } else {
            listener.position
        };
        let more = position < self.tail.newest();
        Ok(EventsPage {
            events: shown,
            position,
            more,
            sites: listener.site_names(),
        })
    }

    /// Starts listening after a number. None means from now on.
    pub async fn follow(
        &self,
        caller: &Caller,
        site: Option<&SiteReference>,
        after: Option<u64>,
    ) -> Result<Listener> {
        let after = after.unwrap_or_else(|| self.tail.newest());
        self.listen(caller, site, after).await
    }

    async fn listen(
        &self,
        caller: &Caller,
        site: Option<&SiteReference>,
        position: u64,
    ) -> Result<Listener> {
        let mut reader = self.store.read().await?;
        let only = match site {
            Some(site) => Some(
                self.place(&mut reader, caller, site, Action::FollowSite)
                    .await?
                    .id(),
            ),
            None => {
                caller.may(Action::SeeOwnAccount, true, "account")?;
                None
            }
        };
        let standings = standings(&mut reader, caller).await?;
        Ok(Listener {
            app: self.clone(),
            caller: caller.clone(),
            only,
            position,
            standings,
        })
    }

    /// All events that are numbered from now on, for the server's own caches.
    pub fn watch(&self) -> Watch {
        let bell = self.tail.bell();
        let position = *bell.borrow();
        Watch {
            app: self.clone(),
            bell,
            position,
        }
    }

    /// Whether the caller's sign-in or token is still valid. A long stream checks this from time to time.
    pub async fn is_still_welcome(&self, caller: &Caller) -> Result<bool> {
        let mut reader = self.store.read().await?;
        let now = self.now();
        Ok(match caller.via {
            Via::Session(id) => berth_store::sign_ins::lives(&mut reader, id, now).await?,
            Via::Token(id) => berth_store::sign_ins::token_lives(&mut reader, id, now).await?,
            Via::Direct => true,
        })
    }
}

#[derive(Debug)]
pub struct EventsPage {
    pub events: Vec<Arc<NumberedEvent>>,
    pub position: u64,
    pub more: bool,
    pub sites: HashMap<SiteId, Site>,
}

/// The server's own position in the stream. It reads every event and sends none.
#[derive(Debug)]
pub struct Watch {
    app: App,
    bell: watch::Receiver<u64>,
    position: u64,
}

impl Watch {
    /// The events since the last call; waits until there are some. None if some were missed: then anything may have
    /// happened. Safe to drop while waiting.
    pub async fn next(&mut self) -> Option<Vec<Arc<NumberedEvent>>> {
        while *self.bell.borrow_and_update() <= self.position {
            // The sender is dropped only when the server ends.
            if self.bell.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        let found = self.app.tail.after(self.position);
        let last = found.as_ref().and_then(|found| found.last());
        self.position = match last {
            Some(last) => last.number,
            None => *self.bell.borrow(),
        };
        found.filter(|found| !found.is_empty())
    }
}

/// One caller's position in the stream.
#[derive(Debug)]
pub struct Listener {
    app: App,
    caller: Caller,
    only: Option<SiteId>,
    position: u64,
    standings: HashMap<SiteId, (Site, Standing)>,
}

impl Listener {
    /// The next events that concern this caller; waits until there are some. Safe to drop while waiting. Fails with
    /// [`Error::Expired`] when the sign-in or token of the listener has ended.
    pub async fn next(&mut self) -> Result<Vec<Arc<NumberedEvent>>> {
        let mut bell = self.app.tail.newest.subscribe();
        loop {
            bell.mark_unchanged();
            let page = self.read(PAGE).await?;
            if page.is_empty() {
                // The sender is dropped only when the server ends; then the stream is dropped, too.
                if bell.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                continue;
            }
            if page.iter().any(|event| self.is_touched_by(&event.event)) {
                self.look_again().await?;
            }
            let heard: Vec<_> = page.into_iter().filter(|event| self.hears(event)).collect();
            if !heard.is_empty() {
                return Ok(heard);
            }
        }
    }

    /// Whether an event may change which events the caller may see, or end the caller's access. It precedes in the
    /// stream all events that the caller may no longer see, whichever server wrote it.
    fn is_touched_by(&self, event: &Event) -> bool {
        match event.kind {
            EventKind::MemberJoined
            | EventKind::MemberChanged
            | EventKind::MemberLeft
            | EventKind::SiteCreated
            | EventKind::SiteChanged => true,
            EventKind::PersonChanged | EventKind::SignedOut | EventKind::TokenRevoked => {
                event.audience == Audience::Person(self.caller.id())
            }
            EventKind::PersonRemoved => event.subject == self.caller.id().to_string(),
            _ => false,
        }
    }

    /// Checks again whether the caller may listen, and reloads the person and their standings.
    async fn look_again(&mut self) -> Result<()> {
        if !self.app.is_still_welcome(&self.caller).await? {
            return Err(Error::Expired);
        }
        let mut reader = self.app.store.read().await?;
        let person = people::get(&mut reader, self.caller.id()).await?;
        self.caller.person = person.ok_or(Error::Expired)?;
        self.standings = standings(&mut reader, &self.caller).await?;
        Ok(())
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn site_names(&self) -> HashMap<SiteId, Site> {
        self.standings
            .iter()
            .map(|(id, (site, _))| (*id, site.clone()))
            .collect()
    }

    async fn read(&mut self, limit: u64) -> Result<Vec<Arc<NumberedEvent>>> {
        let page = match self.app.tail.after(self.position) {
            Some(page) => page,
            None => {
                let mut reader = self.app.store.read().await?;
                events::after(&mut reader, self.position, limit)
                    .await?
                    .into_iter()
                    .map(Arc::new)
                    .collect()
            }
        };
        if let Some(last) = page.last() {
            self.position = last.number;
        }
        Ok(page)
    }

    fn hears(&self, event: &NumberedEvent) -> bool {
        let site = event.event.site;
        if self.only.is_some() && self.only != site {
            return false;
        }
        let standing = match site.and_then(|site| self.standings.get(&site)) {
            Some((_, standing)) => *standing,
            None if self.caller.person.global_admin => Standing::GlobalAdmin,
            None => Standing::Outsider(OutsiderView::Nothing),
        };
        hears(standing, self.caller.id(), event.event.audience)
    }
}

async fn standings(conn: &mut Conn, caller: &Caller) -> Result<HashMap<SiteId, (Site, Standing)>> {
    let found: Vec<(Site, Option<Role>)> = if caller.person.global_admin {
        sites::list_for(conn, caller.id(), true, "", 10_000).await?
    } else {
        sites::memberships_of(conn, caller.id())
            .await?
            .into_iter()
            .map(|(site, member)| (site, Some(member.role)))
            .collect()
    };
    let standings = found.into_iter().map(|(site, role)| {
        let standing = Standing::of(&caller.person, role, site.outsiders_see);
        (site.id, (site, standing))
    });
    Ok(standings.collect())
}
