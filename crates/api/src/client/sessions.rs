//! Sessions: starting them, looking at them, and what becomes of them.

use berth_model::Name;
use reqwest::Method;

use super::{Client, Created, Error};
use crate::headers::IdempotencyKey;
use crate::paths;
use crate::reference::{SessionReference, SiteReference, WorkloadReference};
use crate::sessions::{
    KeepSession, NewSession, NewVisit, ProfileList, Session, SessionList, SessionLog, SessionPatch,
    SessionQuery, ShareSession, StartSession, StopSession, VisitList, WayIn,
};
use crate::workloads::WorkloadLog;

impl Client {
    pub async fn sessions(
        &self,
        site: &SiteReference,
        query: &SessionQuery,
    ) -> Result<SessionList, Error> {
        let call = self.call(Method::GET, &paths::sessions(site));
        call.query(query).json().await
    }

    pub async fn start_new_session(
        &self,
        site: &SiteReference,
        new: &NewSession,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<Session>, Error> {
        let call = self.call(Method::POST, &paths::sessions(site));
        call.key(key).body(new).created().await
    }

    pub async fn session(
        &self,
        site: &SiteReference,
        session: &SessionReference,
    ) -> Result<Session, Error> {
        let call = self.call(Method::GET, &paths::session(site, session));
        call.json().await
    }

    pub async fn rename_session(
        &self,
        site: &SiteReference,
        session: &SessionReference,
        name: &Name,
    ) -> Result<Session, Error> {
        let call = self.call(Method::PATCH, &paths::session(site, session));
        let patch = SessionPatch { name: name.clone() };
        call.body(&patch).json().await
    }

    pub async fn remove_session(
        &self,
        site: &SiteReference,
        session: &SessionReference,
    ) -> Result<(), Error> {
        let call = self.call(Method::DELETE, &paths::session(site, session));
        call.done().await
    }

    pub async fn start_session(
        &self,
        site: &SiteReference,
        session: &SessionReference,
        how: &StartSession,
    ) -> Result<Session, Error> {
        let call = self.call(Method::POST, &paths::session_start(site, session));
        call.body(how).json().await
    }

    pub async fn stop_session(
        &self,
        site: &SiteReference,
        session: &SessionReference,
        how: &StopSession,
    ) -> Result<Session, Error> {
        let call = self.call(Method::POST, &paths::session_stop(site, session));
        call.body(how).json().await
    }

    pub async fn keep_session(
        &self,
        site: &SiteReference,
        session: &SessionReference,
        how: &KeepSession,
    ) -> Result<Session, Error> {
        let call = self.call(Method::POST, &paths::session_keep(site, session));
        call.body(how).json().await
    }

    pub async fn share_session(
        &self,
        site: &SiteReference,
        session: &SessionReference,
        how: &ShareSession,
    ) -> Result<Session, Error> {
        let call = self.call(Method::POST, &paths::session_share(site, session));
        call.body(how).json().await
    }

    pub async fn session_log(
        &self,
        site: &SiteReference,
        session: &SessionReference,
    ) -> Result<SessionLog, Error> {
        let call = self.call(Method::GET, &paths::session_log(site, session));
        call.json().await
    }

    pub async fn workload_log(
        &self,
        site: &SiteReference,
        workload: &WorkloadReference,
    ) -> Result<WorkloadLog, Error> {
        let call = self.call(Method::GET, &paths::workload_log(site, workload));
        call.json().await
    }

    pub async fn session_visits(
        &self,
        site: &SiteReference,
        session: &SessionReference,
    ) -> Result<VisitList, Error> {
        let call = self.call(Method::GET, &paths::session_visits(site, session));
        call.json().await
    }

    /// The way in to a session, for one browser and for a minute.
    pub async fn visit_session(
        &self,
        site: &SiteReference,
        session: &SessionReference,
        visit: &NewVisit,
    ) -> Result<WayIn, Error> {
        let path = paths::session_visits(site, session);
        self.call(Method::POST, &path).body(visit).json().await
    }

    pub async fn session_profiles(&self, site: &SiteReference) -> Result<ProfileList, Error> {
        let call = self.call(Method::GET, &paths::session_profiles(site));
        call.json().await
    }

    pub async fn resume_session_profile(
        &self,
        site: &SiteReference,
        profile: &Name,
    ) -> Result<(), Error> {
        let path = paths::session_profile_resume(site, profile);
        self.call(Method::POST, &path).done().await
    }
}
