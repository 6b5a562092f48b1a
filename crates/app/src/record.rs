//! Records every change: an audit entry for later questions, and an event for current listeners.

use berth_model::audit::{Actor, AuditEntry};
use berth_model::event::{Audience, Event, EventKind};
use berth_model::{AuditId, EventId, PersonId, SiteId, Text};
use berth_store::Conn;
use serde_json::Value;

use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::Result;
use crate::once::Once;

/// A change, for the audit log and the event stream. Values must not hold secrets: callers mask parameters first.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub action: &'static str,
    pub site: Option<SiteId>,
    pub subject: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub reason: Option<Text>,
    pub event: Option<(EventKind, Audience, Value)>,
}

impl Change {
    pub fn new(action: &'static str, site: Option<SiteId>, subject: impl ToString) -> Self {
        let subject = subject.to_string();
        Self {
            action,
            site,
            subject,
            before: None,
            after: None,
            reason: None,
            event: None,
        }
    }

    pub fn before(mut self, value: impl serde::Serialize) -> Self {
        self.before = serde_json::to_value(value).ok();
        self
    }

    pub fn after(mut self, value: impl serde::Serialize) -> Self {
        self.after = serde_json::to_value(value).ok();
        self
    }

    pub fn because(mut self, reason: Option<Text>) -> Self {
        self.reason = reason;
        self
    }

    /// Sends listeners the state after the change, or the state before it for a removed object.
    pub fn tell(self, kind: EventKind, audience: Audience) -> Self {
        let data = self
            .after
            .clone()
            .or_else(|| self.before.clone())
            .unwrap_or(Value::Null);
        self.tell_only(kind, audience, data)
    }

    pub fn tell_only(mut self, kind: EventKind, audience: Audience, data: Value) -> Self {
        self.event = Some((kind, audience, data));
        self
    }
}

/// The actor of a change.
#[derive(Debug, Clone)]
pub(crate) struct By {
    pub actor: Actor,
    pub origin: Option<String>,
    /// The idempotency key of the request, if it is an action and has one.
    pub once: Option<(PersonId, Once)>,
}

impl By {
    pub const SYSTEM: By = By {
        actor: Actor::System,
        origin: None,
        once: None,
    };
}

impl From<&Caller> for By {
    fn from(caller: &Caller) -> Self {
        Self {
            actor: caller.actor(),
            origin: Some(caller.origin_text()),
            once: caller.once.clone().map(|once| (caller.id(), once)),
        }
    }
}

impl App {
    pub(crate) async fn record(
        &self,
        conn: &mut Conn,
        by: impl Into<By>,
        change: Change,
    ) -> Result<()> {
        let by = by.into();
        if let Some((person, once)) = &by.once {
            self.act_once(conn, *person, once).await?;
        }
        let (entry, event) = self.written(by, change);
        berth_store::audit::insert(conn, &entry).await?;
        if let Some(event) = event {
            berth_store::events::insert(conn, &event).await?;
        }
        Ok(())
    }

    /// Sends an event about a change that the queue made by itself. Writes no audit entry: the runs record these
    /// changes, and the audit log records what people do.
    pub(crate) async fn announce(&self, conn: &mut Conn, change: Change) -> Result<()> {
        let (_, event) = self.written(By::SYSTEM, change);
        if let Some(event) = event {
            berth_store::events::insert(conn, &event).await?;
        }
        Ok(())
    }

    /// The audit entry of a change, and its event if it has one.
    pub(crate) fn written(&self, by: impl Into<By>, change: Change) -> (AuditEntry, Option<Event>) {
        let by = by.into();
        let now = self.now();
        let event = change.event.map(|(kind, audience, data)| Event {
            id: EventId(fresh(now)),
            at: now,
            kind,
            site: change.site,
            subject: change.subject.clone(),
            audience,
            data,
        });
        let entry = AuditEntry {
            id: AuditId(fresh(now)),
            at: now,
            actor: by.actor,
            origin: by.origin,
            site: change.site,
            action: change.action.to_owned(),
            subject: change.subject,
            before: change.before,
            after: change.after,
            reason: change.reason,
        };
        (entry, event)
    }
}
