//! Visitors who showed a key or a token that was good, so that not every request asks the database.
//!
//! What may have ended a visitor's access is told in the stream of events, and whoever it touches is looked at again at
//! once; besides, nobody passes who was not looked at for [`FRESH`]. Who may no longer come is forgotten, and all that
//! they have open is cut. The lock here is never held while somebody waits.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use berth_app::sessions::{Entered, Key};
use berth_app::{App, Error, Result};
use berth_model::event::{Audience, Event, EventKind, NumberedEvent};
use berth_model::session::Access;
use berth_model::{PersonId, SessionId, SiteId};
use berth_proxy::{Credential, Label, Visitor};
use futures::stream::{self, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

/// For so long a visitor is believed without another look.
const FRESH: Duration = Duration::from_secs(5);
/// Before that, those who have something open are looked at again without being asked for anything.
const AGEING: Duration = Duration::from_secs(3);
/// The most that are looked at again in one go merely because time has passed.
const AGEING_MAX: usize = 200;
/// The most that are remembered. When there are more, who has not come for longest is forgotten, and comes in anew.
const KNOWN_MAX: usize = 16_384;
/// The most of them that are one person's.
const OWN_MAX: usize = 256;
/// Who has nothing open and has not come for so long is forgotten.
const ABSENT: Duration = Duration::from_secs(600);
/// Questions to the database at the same time about keys that nobody has seen.
const QUESTIONS_MAX: usize = 16;

const PERSON: HeaderName = HeaderName::from_static("x-berth-person");
const ACCESS: HeaderName = HeaderName::from_static("x-berth-access");
const SESSION: HeaderName = HeaderName::from_static("x-berth-session");

/// What a request shows of its sender.
#[derive(Debug, Clone)]
pub enum Shown {
    Key(Key),
    Token(SecretString),
}

impl Shown {
    pub fn secret(&self) -> &str {
        match self {
            Shown::Key(key) => key.reveal(),
            Shown::Token(token) => token.expose_secret(),
        }
    }
}

/// Somebody who was let in to one session.
#[derive(Debug)]
pub struct Known {
    label: Label,
    shown: Shown,
    session: SessionId,
    site: SiteId,
    person: PersonId,
    pub access: Access,
    pub visitor: Visitor,
    until: Timestamp,
    hub_word: OnceLock<HeaderValue>,
    /// Milliseconds since the table was made.
    checked_ms: AtomicU64,
    used_ms: AtomicU64,
    /// One looks at a time; the others take what that one found.
    checking: Mutex<()>,
    is_over: AtomicBool,
}

impl Known {
    /// How a program is called, in place of its token, to an app that takes Berth for a JupyterHub.
    pub fn hub_word(&self, app: &App) -> Result<Option<HeaderValue>> {
        if self.visitor.credential != Credential::Token {
            return Ok(None);
        }
        if let Some(word) = self.hub_word.get() {
            return Ok(Some(word.clone()));
        }
        let word = app.hub_word_for(self.session, self.person, self.until)?;
        let Ok(mut word) = HeaderValue::try_from(format!("token {word}")) else {
            return Ok(None);
        };
        word.set_sensitive(true);
        Ok(Some(self.hub_word.get_or_init(|| word).clone()))
    }
}

/// The label and what was shown for it, as nobody can read it back.
type Id = [u8; 32];

#[derive(Debug)]
pub struct Visitors {
    since: Instant,
    known: RwLock<HashMap<Id, Arc<Known>>>,
    questions: Semaphore,
    /// Counts the looks that something which happened gave rise to.
    happened: AtomicU64,
}

impl Visitors {
    pub fn new() -> Self {
        Self {
            since: Instant::now(),
            known: RwLock::default(),
            questions: Semaphore::new(QUESTIONS_MAX),
            happened: AtomicU64::new(0),
        }
    }

    /// Who shows one of these at the session's address, if they are remembered and may still come in.
    pub async fn remembered(
        &self,
        app: &App,
        label: &Label,
        shown: &[Shown],
    ) -> Result<Option<Arc<Known>>> {
        for shown in shown {
            let id = id(label, shown);
            if let Some(known) = self.get(&id) {
                known.used_ms.store(self.now_ms(), Relaxed);
                if self.is_younger(&known, FRESH)
                    || self.look_again(app, &id, &known, FRESH).await?
                {
                    return Ok(Some(known));
                }
            }
        }
        Ok(None)
    }

    /// Who shows one of these at the session's address, if they may come in.
    pub async fn find(
        &self,
        app: &App,
        label: &Label,
        shown: Vec<Shown>,
        origin: &str,
    ) -> Result<Option<Arc<Known>>> {
        let happened = self.happened.load(Relaxed);
        // The semaphore is never closed.
        let _turn = self.questions.acquire().await;
        let Some((shown, entered)) = ask(app, label, shown, origin).await? else {
            return Ok(None);
        };
        let id = id(label, &shown);
        let known = Arc::new(self.known(label.clone(), shown, entered));
        let known = self.put(id, known);
        // Something may have ended their access after it was asked for and before they stood in the table.
        let is_good = self.happened.load(Relaxed) == happened
            || self.look_again(app, &id, &known, Duration::ZERO).await?;
        Ok(is_good.then_some(known))
    }

    /// Looks at everybody whom one of these may have touched.
    pub async fn look_after(&self, app: &App, events: &[Arc<NumberedEvent>]) {
        self.happened.fetch_add(1, Relaxed);
        let is_touched = |known: &Known| events.iter().any(|event| touches(&event.event, known));
        self.look_at(app, self.some(is_touched), Duration::ZERO)
            .await;
    }

    /// Looks at everybody, since anything may have happened.
    pub async fn look_at_all(&self, app: &App) {
        self.happened.fetch_add(1, Relaxed);
        self.look_at(app, self.some(|_| true), Duration::ZERO).await;
    }

    /// Looks at those who have something open and were not looked at for a while, the longest first. Who has nothing
    /// open is looked at when they come, and forgotten when they do not.
    pub async fn look_at_aged(&self, app: &App) {
        self.forget_absent();
        let is_aged = |known: &Known| known.is_here() && !self.is_younger(known, AGEING);
        let mut aged = self.some(is_aged);
        aged.sort_unstable_by_key(|(_, known)| known.checked_ms.load(Relaxed));
        aged.truncate(AGEING_MAX);
        self.look_at(app, aged, AGEING).await;
    }

    async fn look_at(&self, app: &App, some: Vec<(Id, Arc<Known>)>, age: Duration) {
        let looks = some.into_iter().map(|(id, known)| async move {
            if let Err(error) = self.look_again(app, &id, &known, age).await {
                // Not believed any more, and asked again when they next come or the next look is due.
                known.checked_ms.store(0, Relaxed);
                tracing::warn!("a visitor's access could not be looked at: {error}");
            }
        });
        let mut looks = stream::iter(looks).buffer_unordered(QUESTIONS_MAX);
        while looks.next().await.is_some() {}
    }

    /// Whether they may still be there, unless they were looked at less than `age` ago. If not, they are forgotten, and
    /// what they have open is cut.
    async fn look_again(
        &self,
        app: &App,
        id: &Id,
        known: &Arc<Known>,
        age: Duration,
    ) -> Result<bool> {
        let _turn = known.checking.lock().await;
        if known.is_over.load(Relaxed) {
            return Ok(false);
        }
        if self.is_younger(known, age) {
            return Ok(true);
        }
        let began_ms = self.now_ms();
        let found = ask(app, &known.label, vec![known.shown.clone()], "").await?;
        // Who may do less than before comes in anew, with less.
        let is_same = found.is_some_and(|(_, found)| {
            found.access == known.access
                && found.person.id == known.person
                && found.session == known.session
        });
        if is_same {
            known.checked_ms.store(began_ms, Relaxed);
        } else {
            self.forget(id, known);
        }
        Ok(is_same)
    }

    fn forget(&self, id: &Id, known: &Arc<Known>) {
        let mut table = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if table
            .get(id)
            .is_some_and(|standing| Arc::ptr_eq(standing, known))
        {
            table.remove(id);
        }
        drop(table);
        known.end();
    }

    /// Forgets who has nothing open and has not come for a while.
    fn forget_absent(&self) {
        let now_ms = self.now_ms();
        let is_late = |known: &Known| {
            let since_ms = now_ms.saturating_sub(known.used_ms.load(Relaxed));
            Duration::from_millis(since_ms) >= ABSENT
        };
        let mut table = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Nobody else holds one of these, so nothing can be opened by it either.
        table.retain(|_, known| known.is_here() || Arc::strong_count(known) > 1 || !is_late(known));
    }

    fn known(&self, label: Label, shown: Shown, entered: Entered) -> Known {
        let now_ms = self.now_ms();
        Known {
            visitor: Visitor {
                credential: match shown {
                    Shown::Key(_) => Credential::Cookie,
                    Shown::Token(_) => Credential::Token,
                },
                address: None,
                headers: told(&entered),
                over: CancellationToken::new(),
                here: Arc::default(),
            },
            label,
            shown,
            session: entered.session,
            site: entered.site,
            person: entered.person.id,
            access: entered.access,
            until: entered.expires_at,
            hub_word: OnceLock::new(),
            checked_ms: now_ms.into(),
            used_ms: now_ms.into(),
            checking: Mutex::new(()),
            is_over: AtomicBool::new(false),
        }
    }

    /// Puts somebody into the table; who was put there meanwhile stays.
    fn put(&self, id: Id, known: Arc<Known>) -> Arc<Known> {
        let mut table = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(standing) = table.get(&id) {
            return standing.clone();
        }
        let is_own = |other: &Known| other.person == known.person;
        let own = table.values().filter(|other| is_own(other)).count();
        // Nobody pushes others out by coming in again and again.
        let surplus = if own >= OWN_MAX {
            longest_away(&table, is_own)
        } else if table.len() >= KNOWN_MAX {
            longest_away(&table, |_| true)
        } else {
            None
        };
        let surplus = surplus.and_then(|id| table.remove(&id));
        table.insert(id, known.clone());
        drop(table);
        if let Some(forgotten) = surplus {
            forgotten.end();
        }
        known
    }

    fn get(&self, id: &Id) -> Option<Arc<Known>> {
        let table = self.known.read().unwrap_or_else(PoisonError::into_inner);
        table.get(id).cloned()
    }

    fn some(&self, wanted: impl Fn(&Known) -> bool) -> Vec<(Id, Arc<Known>)> {
        let table = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let found = table.iter().filter(|(_, known)| wanted(known));
        found.map(|(id, known)| (*id, known.clone())).collect()
    }

    fn is_younger(&self, known: &Known, age: Duration) -> bool {
        let checked_ms = known.checked_ms.load(Relaxed);
        let age_ms = self.now_ms().saturating_sub(checked_ms);
        checked_ms > 0 && Duration::from_millis(age_ms) < age
    }

    /// Never nothing, which stands for "not believed".
    fn now_ms(&self) -> u64 {
        let ms = self.since.elapsed().as_millis();
        u64::try_from(ms).unwrap_or(u64::MAX).max(1)
    }
}

/// Who of these has not come for longest; those who have something open come last.
fn longest_away(table: &HashMap<Id, Arc<Known>>, some: impl Fn(&Known) -> bool) -> Option<Id> {
    let some = table.iter().filter(|(_, known)| some(known));
    let longest = some.min_by_key(|(_, known)| (known.is_here(), known.used_ms.load(Relaxed)));
    longest.map(|(id, _)| *id)
}

impl Known {
    /// What they showed.
    pub fn secret(&self) -> &str {
        self.shown.secret()
    }

    /// Whether they have something open.
    fn is_here(&self) -> bool {
        Arc::strong_count(&self.visitor.here) > 1
    }

    fn end(&self) {
        self.is_over.store(true, Relaxed);
        self.visitor.over.cancel();
    }
}

fn id(label: &Label, shown: &Shown) -> Id {
    let digest = Sha256::new()
        .chain_update(label.as_str())
        .chain_update([0])
        .chain_update(shown.secret());
    digest.finalize().into()
}

/// Who shows one of these, if they may come in now. Of keys there may be several; a token comes alone.
async fn ask(
    app: &App,
    label: &Label,
    shown: Vec<Shown>,
    origin: &str,
) -> Result<Option<(Shown, Entered)>> {
    let mut keys = Vec::new();
    for one in shown {
        match one {
            Shown::Key(key) => keys.push(key),
            Shown::Token(token) => {
                let entered = ask_by_token(app, label, &token, origin).await?;
                return Ok(entered.map(|entered| (Shown::Token(token), entered)));
            }
        }
    }
    let found = app.visitor_among(label.as_str(), &keys).await?;
    Ok(found.map(|(key, entered)| (Shown::Key(key), entered)))
}

async fn ask_by_token(
    app: &App,
    label: &Label,
    token: &SecretString,
    origin: &str,
) -> Result<Option<Entered>> {
    let found = match app.caller_by_token(token.expose_secret(), origin).await {
        Ok(caller) => app.visitor_by_token(&caller, label.as_str()).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(entered) => Ok(Some(entered)),
        Err(error @ (Error::Store(_) | Error::Internal(_))) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Whether an event may have changed what this visitor may do.
fn touches(event: &Event, known: &Known) -> bool {
    match event.kind {
        EventKind::SignedOut
        | EventKind::TokenRevoked
        | EventKind::PersonChanged
        | EventKind::PersonRemoved => {
            event.audience == Audience::Person(known.person)
                || event.subject == known.person.to_string()
        }
        EventKind::MemberJoined
        | EventKind::MemberChanged
        | EventKind::MemberLeft
        | EventKind::SiteChanged => event.site == Some(known.site),
        EventKind::SessionChanged | EventKind::SessionFailed => {
            event.subject == known.session.to_string()
        }
        _ => false,
    }
}

/// What the app is told of its visitor. It comes by a door that only Berth has, so it needs no seal.
fn told(entered: &Entered) -> HeaderMap {
    let access = match entered.access {
        Access::View => "view",
        Access::Edit => "edit",
    };
    let said = [
        (PERSON, entered.person.login.to_string()),
        (ACCESS, access.to_owned()),
        (SESSION, entered.session.to_string()),
    ];
    let value =
        |(name, text): (HeaderName, String)| Some((name, HeaderValue::try_from(text).ok()?));
    said.into_iter().filter_map(value).collect()
}
