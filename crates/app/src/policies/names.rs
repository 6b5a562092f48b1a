//! Policies name types, projects and people. The names must exist when a policy is set. Policies follow when a type or
//! a project is renamed or removed: a new type or project with the old name must not inherit its rights.

use std::collections::BTreeSet;

use berth_model::policy::{Approver, Policy, Scope};
use berth_model::site::Site;
use berth_model::{FieldErrors, LoginName, Name, Reference, SiteId, Text};
use berth_store::policies::{self, Version};
use berth_store::{Conn, inventory, people, projects};

use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::{Error, Result};

/// Each name costs a lookup, so the number is bounded.
const NAMES_MAX: usize = 200;

/// A type or a project that was renamed or removed.
#[derive(Debug, Clone)]
pub(crate) enum Renamed {
    Type { from: Name, to: Option<Name> },
    Project { from: Name, to: Option<Name> },
}

impl Renamed {
    fn reason(&self) -> Option<Text> {
        let (what, from, to) = match self {
            Renamed::Type { from, to } => ("type", from, to),
            Renamed::Project { from, to } => ("project", from, to),
        };
        let reason = match to {
            Some(to) => format!("{what} {from} is called {to} now"),
            None => format!("{what} {from} was removed"),
        };
        reason.parse().ok()
    }

    /// The scope under the new name. None if its type or project was removed.
    fn scope(&self, scope: &Scope) -> Option<Scope> {
        let Scope::Site(part) = scope else {
            return Some(scope.clone());
        };
        let mut part = part.clone();
        let (named, from, to) = match self {
            Renamed::Type { from, to } => (&mut part.resource_type, from, to),
            Renamed::Project { from, to } => (&mut part.project, from, to),
        };
        if named.as_ref() == Some(from) {
            *named = Some(to.clone()?);
        }
        Some(Scope::Site(part))
    }

    fn policy(&self, policy: &Policy) -> Policy {
        let mut policy = policy.clone();
        let Renamed::Project { from, to } = self else {
            return policy;
        };
        if let Some(projects) = policy
            .who_may_book
            .as_mut()
            .and_then(|who| who.projects.as_mut())
            && projects.remove(from)
        {
            projects.extend(to.clone());
        }
        if let Some(approval) = &mut policy.approval {
            let old = Approver::Project(from.clone());
            let new = to.clone().map(Approver::Project);
            for asked in [&mut approval.approvers, &mut approval.deputies] {
                if asked.remove(&old) {
                    asked.extend(new.clone());
                }
            }
            // Without approvers, nobody could approve and the booking could never be accepted.
            if approval.approvers.is_empty() {
                approval.approvers.insert(Approver::SiteAdmins);
            }
        }
        policy
    }
}

impl App {
    /// Reports every unknown name in a policy as a field error.
    pub(super) async fn check_names(
        &self,
        conn: &mut Conn,
        site: Option<&Site>,
        scope: &Scope,
        policy: &Policy,
    ) -> Result<()> {
        let projects = policy.who_may_book.iter().flat_map(|who| &who.projects);
        if projects.flatten().count() + asked(policy).count() > NAMES_MAX {
            let message = format!("names more than {NAMES_MAX} projects and people");
            return Err(FieldErrors::one("policy", message).into());
        }
        let mut errors = FieldErrors::default();
        if let (Some(site), Scope::Site(part)) = (site, scope) {
            if let Some(name) = &part.resource_type
                && inventory::type_by_name(conn, site.id, name)
                    .await?
                    .is_none()
            {
                errors.push("type", format!("this site has no type `{name}`"));
            }
            let named = policy.who_may_book.iter().flat_map(|who| &who.projects);
            let projects = part.project.iter().map(|name| ("project", name));
            let projects = projects.chain(
                named
                    .flatten()
                    .map(|name| ("policy.who_may_book.projects", name)),
            );
            let projects = projects.chain(asked(policy).filter_map(|approver| match approver {
                Approver::Project(name) => Some(("policy.approval", name)),
                _ => None,
            }));
            for (field, name) in projects.collect::<BTreeSet<_>>() {
                if projects::by_name(conn, site.id, name).await?.is_none() {
                    errors.push(field, format!("this site has no project `{name}`"));
                }
            }
        }
        for approver in asked(policy) {
            let Approver::Person(login) = approver else {
                continue;
            };
            if let Some(why) = self.cannot_decide(conn, site, login).await? {
                errors.push("policy.approval", why);
            }
        }
        if policy
            .approval
            .as_ref()
            .is_some_and(|rule| rule.approvers.is_empty())
        {
            errors.push(
                "policy.approval.approvers",
                "names nobody; name at least one",
            );
        }
        Ok(errors.or(Some(()))?)
    }

    /// The reason why a person could not decide although a policy asks them: they must belong to the policy's scope.
    async fn cannot_decide(
        &self,
        conn: &mut Conn,
        site: Option<&Site>,
        login: &LoginName,
    ) -> Result<Option<String>> {
        let Some(site) = site else {
            let person = people::by_login(conn, login).await?;
            let is_admin = person.is_some_and(|person| person.global_admin);
            let why = || {
                format!(
                    "`{login}` is no global admin; for all sites only they can be asked by name"
                )
            };
            return Ok((!is_admin).then(why));
        };
        let named = Reference::Name(login.clone());
        match self.member_named(conn, site.id, &named, "member").await {
            Ok(_) => Ok(None),
            Err(Error::NotFound(_)) => Ok(Some(format!("`{login}` is not a member of this site"))),
            Err(error) => Err(error),
        }
    }

    /// Updates the policies of a site after a rename.
    pub(crate) async fn policies_follow(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        site: SiteId,
        renamed: &Renamed,
    ) -> Result<()> {
        let of_site = |all: Vec<Version>| all.into_iter().filter(|one| one.site.is_some());
        if of_site(policies::holding_in(conn, site).await?)
            .next()
            .is_none()
        {
            return Ok(());
        }
        policies::touch_site(conn, site).await?;
        let holding: Vec<Version> = of_site(policies::holding_in(conn, site).await?).collect();
        for before in holding {
            let Some(policy) = &before.policy else {
                continue;
            };
            let (scope, policy) = (renamed.scope(&before.scope), renamed.policy(policy));
            if scope.as_ref() != Some(&before.scope) {
                self.follow_name(conn, caller, &before.scope, None, site, renamed)
                    .await?;
            }
            if let Some(scope) = scope
                && (scope != before.scope || before.policy.as_ref() != Some(&policy))
            {
                self.follow_name(conn, caller, &scope, Some(policy), site, renamed)
                    .await?;
            }
        }
        Ok(())
    }

    async fn follow_name(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        scope: &Scope,
        policy: Option<Policy>,
        site: SiteId,
        renamed: &Renamed,
    ) -> Result<()> {
        let before = policies::history(conn, Some(site), scope, 1).await?.pop();
        let after = Version {
            site: Some(site),
            scope: scope.clone(),
            version: before.as_ref().map_or(0, |before| before.version) + 1,
            policy,
            set_by: Some(caller.id()),
            set_at: self.now(),
            reason: renamed.reason(),
        };
        policies::insert(conn, fresh(after.set_at), &after).await?;
        self.record_policy(conn, caller, before.as_ref(), &after)
            .await
    }
}

fn asked(policy: &Policy) -> impl Iterator<Item = &Approver> {
    let rules = policy.approval.iter();
    rules.flat_map(|rule| rule.approvers.iter().chain(&rule.deputies))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_follows_its_names() {
        let name = |text: &str| text.parse::<Name>().unwrap();
        let policy: Policy = serde_json::from_value(json!({
            "who_may_book": {"projects": ["vision"]},
            "approval": {"approvers": [{"project": "vision"}]},
        }))
        .unwrap();
        let scope: Scope = serde_json::from_value(json!({"site": {"project": "vision"}})).unwrap();
        let renamed = |to: Option<&str>| Renamed::Project {
            from: name("vision"),
            to: to.map(name),
        };
        let sight = renamed(Some("sight"));
        assert_eq!(
            serde_json::to_value(sight.policy(&policy)).unwrap(),
            json!({
                "who_may_book": {"projects": ["sight"]},
                "approval": {"approvers": [{"project": "sight"}]},
            })
        );
        assert_eq!(
            serde_json::to_value(sight.scope(&scope)).unwrap(),
            json!({"site": {"project": "sight"}})
        );
        assert_eq!(
            serde_json::to_value(renamed(None).policy(&policy)).unwrap(),
            json!({
                "who_may_book": {"projects": []},
                "approval": {"approvers": ["site_admins"]},
            })
        );
        assert_eq!(renamed(None).scope(&scope), None);
        let other = Renamed::Type {
            from: name("vision"),
            to: None,
        };
        assert_eq!(other.scope(&scope), Some(scope));
        assert_eq!(other.policy(&policy), policy);
    }
}
