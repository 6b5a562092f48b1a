//! What happened: audit, events, notifications, and whether the server is well.

use reqwest::Method;

use super::{Client, Error, EventStream, sse};
use crate::audit::{AuditEntry, AuditQuery, AuditVerification};
use crate::events::{EventPage, EventQuery, EventStreamQuery, Position};
use crate::headers;
use crate::health::HealthReport;
use crate::notifications::{MarkRead, MarkUnread, NotificationPage, NotificationQuery, Unread};
use crate::page::Page;
use crate::paths;
use crate::reference::SiteReference;

impl Client {
    pub async fn site_audit(
        &self,
        site: &SiteReference,
        query: &AuditQuery,
    ) -> Result<Page<AuditEntry>, Error> {
        let call = self.call(Method::GET, &paths::site_audit(site));
        call.query(query).json().await
    }

    pub async fn audit(&self, query: &AuditQuery) -> Result<Page<AuditEntry>, Error> {
        let call = self.call(Method::GET, paths::AUDIT);
        call.query(query).json().await
    }

    /// Follows the whole chain of the audit log.
    pub async fn verify_audit(&self) -> Result<AuditVerification, Error> {
        self.call(Method::GET, paths::AUDIT_VERIFY).json().await
    }

    pub async fn events(&self, query: &EventQuery) -> Result<EventPage, Error> {
        let call = self.call(Method::GET, paths::EVENTS);
        call.query(query).json().await
    }

    /// Opens the live stream of events.
    pub async fn events_stream(&self, query: &EventStreamQuery) -> Result<EventStream, Error> {
        let call = self.call(Method::GET, paths::EVENT_STREAM).query(query);
        sse::open(call, self.base_url().to_owned()).await
    }

    /// Opens the live stream of events again where it was cut, the way browsers do.
    pub async fn resume_events_stream(&self, last_seen: Position) -> Result<EventStream, Error> {
        let call = self.call(Method::GET, paths::EVENT_STREAM);
        let call = call.header(headers::LAST_EVENT_ID, last_seen.get());
        sse::open(call, self.base_url().to_owned()).await
    }

    /// How the server, its controllers and its database are.
    pub async fn health_report(&self) -> Result<HealthReport, Error> {
        self.call(Method::GET, paths::HEALTH_REPORT).json().await
    }

    pub async fn notifications(
        &self,
        query: &NotificationQuery,
    ) -> Result<NotificationPage, Error> {
        let call = self.call(Method::GET, paths::MY_NOTIFICATIONS);
        call.query(query).json().await
    }

    pub async fn mark_notifications_read(&self, which: &MarkRead) -> Result<Unread, Error> {
        let call = self.call(Method::POST, paths::NOTIFICATIONS_READ);
        call.body(which).json().await
    }

    pub async fn mark_notifications_unread(&self, which: &MarkUnread) -> Result<Unread, Error> {
        let call = self.call(Method::POST, paths::NOTIFICATIONS_UNREAD);
        call.body(which).json().await
    }

    /// Whether the server runs.
    pub async fn healthy(&self) -> Result<(), Error> {
        self.call_at(Method::GET, paths::HEALTHZ).done().await
    }

    /// Whether the server is ready for requests.
    pub async fn ready(&self) -> Result<(), Error> {
        self.call_at(Method::GET, paths::READYZ).done().await
    }

    /// The server's own description of its API.
    pub async fn openapi(&self) -> Result<serde_json::Value, Error> {
        self.call(Method::GET, paths::OPENAPI).json().await
    }
}
