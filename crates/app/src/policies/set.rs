//! Setting and removing a policy.

use berth_engine::policy::{Breach, Looser, Policies, Refused};
use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::policy::{Part, Policy, Scope};
use berth_model::reservation::Reservation;
use berth_model::site::Site;
use berth_model::{FieldErrors, Name, ReservationId, Text};
use berth_store::policies::{self, Version};
use berth_store::{Conn, reservations, sites};
use serde_json::json;

use super::PolicyAt;
use super::kept::combined;
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::record::Change;
use crate::settlement::Mode;
use crate::transact::transact;
use crate::version;

/// An existing booking that breaks a policy. It stays unchanged.
#[derive(Debug, Clone)]
pub struct Broken {
    pub reservation: Reservation,
    pub breaches: Vec<Breach>,
}

/// The result of a change, or of its preview.
#[derive(Debug, Clone)]
pub struct PolicyChange {
    pub applied: bool,
    /// The policy after the change.
    pub now: Version,
    /// The first existing bookings that break it.
    pub breaks: Vec<Broken>,
    pub breaks_count: u64,
    /// The looser values of narrower policies, which no longer have an effect, each with the name of its site.
    pub overruled: Vec<(Name, Looser)>,
    pub directory: Directory,
}

/// How many broken bookings an answer lists.
const BROKEN_SHOWN_MAX: usize = 200;
const SITES_MAX: u64 = 10_000;

impl App {
    /// Sets or removes a policy. `version` is the version that the change is meant for, if the caller names one.
    pub async fn set_policy(
        &self,
        caller: &Caller,
        at: &PolicyAt,
        policy: Option<&Policy>,
        version: Option<u64>,
        reason: Option<Text>,
        mode: Mode,
    ) -> Result<PolicyChange> {
        let mut reader = self.store.read().await?;
        let site = self.policy_site(&mut reader, caller, at).await?;
        if let Some(policy) = policy {
            self.check_names(&mut reader, site.as_ref(), &at.scope(), policy)
                .await?;
        }
        // Computed first and outside the transaction: it may take a while, and it changes nothing.
        let mut change = self
            .foresee(&mut reader, site.as_ref(), &at.scope(), policy, version)
            .await?;
        drop(reader);
        change.now.set_by = Some(caller.id());
        change.now.reason = reason;
        change.directory.add_person(&caller.person);
        if mode == Mode::DryRun {
            return Ok(change);
        }
        change.now = transact!(self, tx => {
            let site = self.policy_site(&mut tx, caller, at).await?;
            self.write_policy(&mut tx, caller, site.as_ref(), change.now.clone(), version).await
        })?;
        change.applied = true;
        Ok(change)
    }

    /// The site of the policy, if the caller may set it. None for the whole installation.
    async fn policy_site(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        at: &PolicyAt,
    ) -> Result<Option<Site>> {
        match at {
            PolicyAt::Site(site, _) => {
                let place = self.place(conn, caller, site, Action::SeePolicies).await?;
                place.may(caller, Action::ManagePolicies, false, "policy")?;
                Ok(Some(place.site))
            }
            PolicyAt::Ceilings | PolicyAt::Defaults => {
                caller.may(Action::ManageGlobalPolicies, false, "policy")?;
                Ok(None)
            }
        }
    }

    /// The effect that a change would have.
    async fn foresee(
        &self,
        conn: &mut Conn,
        site: Option<&Site>,
        scope: &Scope,
        policy: Option<&Policy>,
        version: Option<u64>,
    ) -> Result<PolicyChange> {
        let before = allowed(conn, site, scope, policy, version).await?;
        let sites = match site {
            Some(site) => vec![site.clone()],
            None => {
                let nobody = berth_model::PersonId(uuid::Uuid::nil());
                let all = sites::list_for(conn, nobody, true, "", SITES_MAX).await?;
                all.into_iter().map(|(site, _)| site).collect()
            }
        };
        let mut directory = Directory::default();
        let (mut breaks, mut breaks_count) = (Vec::new(), 0);
        let mut overruled = Vec::new();
        for site in &sites {
            directory.add_site(site);
            let standing = combined(policies::holding_in(conn, site.id).await?);
            if let Some(policy) = policy {
                let looser = standing.define(scope, policy).unwrap_or_default();
                overruled.extend(looser.into_iter().map(|one| (site.name.clone(), one)));
            }
            let mut changed = standing.clone();
            change_in(&mut changed, scope, policy);
            let broken = self
                .broken_by(conn, site, &standing, &changed, scope)
                .await?;
            breaks_count += broken.len() as u64;
            for (id, breaches) in broken {
                if breaks.len() < BROKEN_SHOWN_MAX
                    && let Some(reservation) = read(conn, site, id).await?
                {
                    breaks.push(Broken {
                        reservation,
                        breaches,
                    });
                }
            }
        }
        for broken in &breaks {
            directory
                .learn_reservations(conn, std::slice::from_ref(&broken.reservation))
                .await?;
        }
        Ok(PolicyChange {
            applied: false,
            now: Version {
                site: site.map(|site| site.id),
                scope: scope.clone(),
                version: before.map_or(0, |before| before.version) + 1,
                policy: policy.cloned(),
                set_by: None,
                set_at: self.now(),
                reason: None,
            },
            breaks,
            breaks_count,
            overruled,
            directory,
        })
    }

    /// Sets or removes a policy of a site as part of a larger change.
    pub(crate) async fn declare_policy(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        site: &Site,
        part: Part,
        policy: Option<Policy>,
    ) -> Result<()> {
        let scope = Scope::Site(part);
        if let Some(policy) = &policy {
            self.check_names(conn, Some(site), &scope, policy).await?;
        }
        let new = Version {
            site: Some(site.id),
            scope,
            version: 0,
            policy,
            set_by: Some(caller.id()),
            set_at: self.now(),
            reason: None,
        };
        self.write_policy(conn, caller, Some(site), new, None)
            .await?;
        Ok(())
    }

    /// Refuses the changes that [`App::declare_policy`] would refuse, in this order, without writing any.
    pub(crate) async fn check_declared(
        &self,
        conn: &mut Conn,
        site: &Site,
        changes: &[(Part, Option<Policy>)],
    ) -> Result<()> {
        let mut standing = combined(policies::holding_in(conn, site.id).await?);
        for (part, policy) in changes {
            let scope = Scope::Site(part.clone());
            if let Some(policy) = policy {
                standing
                    .define(&scope, policy)
                    .map_err(|refused| Error::Invalid(wrong(refused)))?;
            }
            change_in(&mut standing, &scope, policy.as_ref());
        }
        Ok(())
    }

    /// Writes the next version, unless the newest one is equal.
    async fn write_policy(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        site: Option<&Site>,
        new: Version,
        version: Option<u64>,
    ) -> Result<Version> {
        match site {
            Some(site) => policies::touch_site(conn, site.id).await?,
            None => policies::touch_all(conn).await?,
        }
        let before = allowed(conn, site, &new.scope, new.policy.as_ref(), version).await?;
        if let Some(before) = &before
            && before.policy == new.policy
        {
            return Ok(before.clone());
        }
        let new = Version {
            version: before.as_ref().map_or(0, |before| before.version) + 1,
            set_at: self.now(),
            ..new
        };
        policies::insert(conn, fresh(new.set_at), &new).await?;
        self.record_policy(conn, caller, before.as_ref(), &new)
            .await?;
        Ok(new)
    }

    pub(super) async fn record_policy(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        before: Option<&Version>,
        after: &Version,
    ) -> Result<()> {
        let (action, kind) = match after.policy {
            Some(_) => ("policy.set", EventKind::PolicyChanged),
            None => ("policy.remove", EventKind::PolicyRemoved),
        };
        // A policy for all sites notifies the admins. A policy of one site binds its members, so it notifies them.
        let audience = match after.site {
            Some(_) => Audience::Members,
            None => Audience::Admins,
        };
        let shown = |of: &Version| json!({ "scope": of.scope, "version": of.version, "policy": of.policy, "reason": of.reason });
        let change = Change::new(action, after.site, &after.scope).because(after.reason.clone());
        let change = match before {
            Some(before) => change.before(shown(before)),
            None => change,
        };
        let change = change.after(shown(after)).tell(kind, audience);
        self.record(conn, caller, change).await
    }
}

/// Checks whether the change is allowed. Returns the newest version.
async fn allowed(
    conn: &mut Conn,
    site: Option<&Site>,
    scope: &Scope,
    policy: Option<&Policy>,
    version: Option<u64>,
) -> Result<Option<Version>> {
    let id = site.map(|site| site.id);
    let newest = policies::history(conn, id, scope, 1).await?.pop();
    version::expect(version, newest.as_ref().map_or(0, |newest| newest.version))?;
    let Some(policy) = policy else {
        let is_there = newest
            .as_ref()
            .is_some_and(|newest| newest.policy.is_some());
        return match is_there {
            true => Ok(newest),
            false => Err(Error::NotFound("policy")),
        };
    };
    let standing = match site {
        Some(site) => policies::holding_in(conn, site.id).await?,
        None => policies::of_all(conn).await?,
    };
    combined(standing)
        .define(scope, policy)
        .map_err(|refused| Error::Invalid(wrong(refused)))?;
    Ok(newest)
}

/// Reports each value that is too loose as a field error, with the value that would be accepted.
fn wrong(refused: Refused) -> FieldErrors {
    match refused {
        Refused::Looser(all) => {
            let mut errors = FieldErrors::default();
            for one in &all {
                let (value, bound, from) = (&one.value, &one.bound, &one.from);
                let accepts = one.accepts();
                let message =
                    format!("{value} is looser than {bound} ({from}); {accepts} accepted");
                errors.push(format!("policy.{}", one.rule), message);
            }
            errors
        }
        refused @ Refused::NoLength { .. } => {
            FieldErrors::one("policy.length_min", refused.to_string())
        }
    }
}

fn change_in(policies: &mut Policies, scope: &Scope, policy: Option<&Policy>) {
    match (scope, policy) {
        (Scope::Site(part), None) => {
            policies.site.remove(part);
        }
        (scope, policy) => policies.set(scope.clone(), policy.cloned().unwrap_or_default()),
    }
}

async fn read(conn: &mut Conn, site: &Site, id: ReservationId) -> Result<Option<Reservation>> {
    Ok(reservations::get(conn, site.id, id).await?)
}
