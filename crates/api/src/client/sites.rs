//! Sites, who belongs to them, and their projects.

use berth_model::JoinRequestId;
use reqwest::Method;

use super::{Client, Created, Error};
use crate::headers::{IdempotencyKey, IfMatch};
use crate::members::{
    JoinAcceptance, JoinRequest, Member, MemberRole, NewJoinRequest, Reason, Settlement,
};
use crate::page::{DryRunQuery, Page, PageQuery};
use crate::paths;
use crate::projects::{NewProject, Project, ProjectMember, ProjectPatch};
use crate::reference::{PersonReference, ProjectReference, SiteReference};
use crate::sites::{NewSite, Site, SiteActivity, SitePatch};

impl Client {
    /// The sites that the one who asks may see.
    pub async fn sites(&self, query: &PageQuery) -> Result<Page<Site>, Error> {
        let call = self.call(Method::GET, paths::SITES);
        call.query(query).json().await
    }

    /// The caller's sites, with what the caller has to do in each.
    pub async fn my_sites(&self) -> Result<Page<SiteActivity>, Error> {
        self.call(Method::GET, paths::MY_SITES).json().await
    }

    pub async fn create_site(
        &self,
        new: &NewSite,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<Site>, Error> {
        let call = self.call(Method::POST, paths::SITES);
        call.key(key).body(new).created().await
    }

    pub async fn site(&self, site: &SiteReference) -> Result<Site, Error> {
        let path = paths::site(site);
        self.call(Method::GET, &path).json().await
    }

    pub async fn change_site(
        &self,
        site: &SiteReference,
        version: IfMatch,
        patch: &SitePatch,
    ) -> Result<Site, Error> {
        let call = self.call(Method::PATCH, &paths::site(site));
        call.if_match(version).body(patch).json().await
    }

    /// Sets the site's logo, a PNG, WebP or SVG image.
    pub async fn set_logo(&self, site: &SiteReference, content: Vec<u8>) -> Result<Site, Error> {
        let call = self.call(Method::PUT, &paths::logo(site));
        call.content(content).json().await
    }

    pub async fn remove_logo(&self, site: &SiteReference) -> Result<(), Error> {
        let path = paths::logo(site);
        self.call(Method::DELETE, &path).done().await
    }

    pub async fn join_requests(
        &self,
        site: &SiteReference,
        query: &PageQuery,
    ) -> Result<Page<JoinRequest>, Error> {
        let call = self.call(Method::GET, &paths::join_requests(site));
        call.query(query).json().await
    }

    /// Asks to be let into the site.
    pub async fn ask_to_join(
        &self,
        site: &SiteReference,
        new: &NewJoinRequest,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<JoinRequest>, Error> {
        let call = self.call(Method::POST, &paths::join_requests(site));
        call.key(key).body(new).created().await
    }

    pub async fn accept_join(
        &self,
        site: &SiteReference,
        request: JoinRequestId,
        acceptance: &JoinAcceptance,
    ) -> Result<JoinRequest, Error> {
        let call = self.call(Method::POST, &paths::join_accept(site, &request));
        call.body(acceptance).json().await
    }

    pub async fn decline_join(
        &self,
        site: &SiteReference,
        request: JoinRequestId,
        reason: &Reason,
    ) -> Result<JoinRequest, Error> {
        let call = self.call(Method::POST, &paths::join_decline(site, &request));
        call.body(reason).json().await
    }

    pub async fn members(
        &self,
        site: &SiteReference,
        query: &PageQuery,
    ) -> Result<Page<Member>, Error> {
        let call = self.call(Method::GET, &paths::members(site));
        call.query(query).json().await
    }

    /// Lets a person in, or gives a member another role.
    pub async fn put_member(
        &self,
        site: &SiteReference,
        person: &PersonReference,
        role: MemberRole,
    ) -> Result<Member, Error> {
        let call = self.call(Method::PUT, &paths::member(site, person));
        call.body(&role).json().await
    }

    pub async fn remove_member(
        &self,
        site: &SiteReference,
        person: &PersonReference,
    ) -> Result<Settlement, Error> {
        let path = paths::member(site, person);
        self.call(Method::DELETE, &path).json().await
    }

    /// What removing the member would do.
    pub async fn preview_remove_member(
        &self,
        site: &SiteReference,
        person: &PersonReference,
    ) -> Result<Settlement, Error> {
        let call = self.call(Method::DELETE, &paths::member(site, person));
        call.query(&DryRunQuery { dry_run: true }).json().await
    }

    pub async fn projects(
        &self,
        site: &SiteReference,
        query: &PageQuery,
    ) -> Result<Page<Project>, Error> {
        let call = self.call(Method::GET, &paths::projects(site));
        call.query(query).json().await
    }

    pub async fn create_project(
        &self,
        site: &SiteReference,
        new: &NewProject,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<Project>, Error> {
        let call = self.call(Method::POST, &paths::projects(site));
        call.key(key).body(new).created().await
    }

    pub async fn project(
        &self,
        site: &SiteReference,
        project: &ProjectReference,
    ) -> Result<Project, Error> {
        let path = paths::project(site, project);
        self.call(Method::GET, &path).json().await
    }

    pub async fn change_project(
        &self,
        site: &SiteReference,
        project: &ProjectReference,
        version: IfMatch,
        patch: &ProjectPatch,
    ) -> Result<Project, Error> {
        let call = self.call(Method::PATCH, &paths::project(site, project));
        call.if_match(version).body(patch).json().await
    }

    pub async fn remove_project(
        &self,
        site: &SiteReference,
        project: &ProjectReference,
    ) -> Result<(), Error> {
        let path = paths::project(site, project);
        self.call(Method::DELETE, &path).done().await
    }

    pub async fn project_members(
        &self,
        site: &SiteReference,
        project: &ProjectReference,
        query: &PageQuery,
    ) -> Result<Page<ProjectMember>, Error> {
        let call = self.call(Method::GET, &paths::project_members(site, project));
        call.query(query).json().await
    }

    pub async fn put_project_member(
        &self,
        site: &SiteReference,
        project: &ProjectReference,
        person: &PersonReference,
    ) -> Result<ProjectMember, Error> {
        let path = paths::project_member(site, project, person);
        self.call(Method::PUT, &path).json().await
    }

    pub async fn remove_project_member(
        &self,
        site: &SiteReference,
        project: &ProjectReference,
        person: &PersonReference,
    ) -> Result<(), Error> {
        let path = paths::project_member(site, project, person);
        self.call(Method::DELETE, &path).done().await
    }
}
