//! A site's queue settings, and the urgent grants that its admins give.

use std::collections::BTreeMap;

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::queue::{
    Grant, Level, LevelSetting, QueuePolicy, Quota, QuotaSetting, Settings, Whose,
};
use berth_model::reference::{PersonReference, ProjectReference, SiteReference};
use berth_model::{FieldErrors, GrantId, Name, ProjectId, Reference, SiteId, Text, TypeId};
use berth_store::{Conn, inventory, projects, queues};
use jiff::{SignedDuration, Timestamp};

use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::place::Place;
use crate::record::Change;
use crate::transact::transact;
use crate::version;

/// The settings of a site's queue, and their version; 0 if nobody has set any.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    pub place: Place,
    pub settings: Settings,
    pub version: u64,
}

/// The subject of an urgent grant, its end and its amount.
#[derive(Debug, Clone)]
pub struct NewGrant {
    pub project: Option<ProjectReference>,
    pub person: Option<PersonReference>,
    pub until: Timestamp,
    pub gpu_hours: u64,
    pub reason: Text,
}

/// Name of a site member in error messages.
const MEMBER: &str = "member of this site";
const LIST_MAX: usize = 1000;
const ALL: u64 = 100_000;
const HALF_LIFE_MAX: SignedDuration = SignedDuration::from_hours(24 * 366);

impl App {
    pub async fn queue_settings(
        &self,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<QueueSettings> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeQueue)
            .await?;
        let policy = queues::policy(&mut reader, place.id()).await?;
        let version = policy.version;
        let settings = self.in_names(&mut reader, place.id(), policy).await?;
        Ok(QueueSettings {
            place,
            settings,
            version,
        })
    }

    pub async fn set_queue_settings(
        &self,
        caller: &Caller,
        site: &SiteReference,
        wanted: Option<u64>,
        settings: Settings,
    ) -> Result<QueueSettings> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeQueue).await?;
            place.may(caller, Action::ManageQueue, false, "queue")?;
            let before = queues::policy(&mut tx, place.id()).await?;
            version::expect(wanted, before.version)?;
            let after = self.in_ids(&mut tx, place.id(), settings.clone()).await?;
            if !queues::set_policy(&mut tx, place.id(), &after, before.version).await? {
                return Err(version::overtaken(before.version));
            }
            let change = Change::new("queue.change", Some(place.id()), place.id());
            let change = change.before(&before).after(&after);
            let change = change.tell_only(EventKind::QueueChanged, Audience::Members, serde_json::json!({}));
            self.record(&mut tx, caller, change).await?;
            let version = before.version + 1;
            Ok(QueueSettings { place, settings: settings.clone(), version })
        })
    }

    async fn in_ids(
        &self,
        conn: &mut Conn,
        site: SiteId,
        settings: Settings,
    ) -> Result<QueuePolicy> {
        let mut errors = FieldErrors::default();
        check_lengths(&settings, &mut errors);
        let kinds = inventory::types(conn, site).await?;
        let kinds: BTreeMap<Name, TypeId> =
            kinds.into_iter().map(|kind| (kind.name, kind.id)).collect();
        let all = projects::list(conn, site, "", ALL).await?;
        let all: BTreeMap<Name, ProjectId> =
            all.into_iter().map(|one| (one.name, one.id)).collect();
        let mut roles = BTreeMap::new();
        for (name, role) in settings.roles {
            match kinds.get(&name) {
                Some(id) => {
                    roles.insert(*id, role);
                }
                None => errors.push("roles", format!("there is no resource type `{name}` here")),
            }
        }
        let mut unknown: Vec<(String, String)> = Vec::new();
        let mut project = |field: &str, name: &Name| {
            let found = all.get(name).copied();
            if found.is_none() {
                unknown.push((
                    field.to_owned(),
                    format!("there is no project `{name}` here"),
                ));
            }
            found
        };
        let mut shares = BTreeMap::new();
        for (name, weight) in settings.shares {
            shares.extend(project("shares", &name).map(|id| (id, weight)));
        }
        let mut levels = BTreeMap::new();
        for (name, LevelSetting { number, projects }) in settings.levels {
            let projects = projects
                .iter()
                .filter_map(|name| project("levels", name))
                .collect();
            levels.insert(name, Level { number, projects });
        }
        let mut quotas = Vec::new();
        for (
            number,
            QuotaSetting {
                project: of,
                person,
                amounts,
                hours,
            },
        ) in settings.quotas.into_iter().enumerate()
        {
            let field = format!("quotas[{number}]");
            let whose = match (of, person) {
                (None, None) => Some(Whose::Site),
                (Some(name), None) => project(&field, &name).map(Whose::Project),
                (None, Some(login)) => {
                    let person = Reference::Name(login);
                    match self.member_named(conn, site, &person, MEMBER).await {
                        Ok(person) => Some(Whose::Person(person.id)),
                        Err(Error::NotFound(_)) => None,
                        Err(error) => return Err(error),
                    }
                }
                (Some(_), Some(_)) => None,
            };
            match whose {
                Some(whose) => quotas.push(Quota {
                    whose,
                    amounts,
                    hours,
                }),
                None => errors.push(
                    field,
                    "name a project or a member of this site, and not both",
                ),
            }
        }
        for (field, message) in unknown {
            errors.push(field, message);
        }
        let policy = QueuePolicy {
            roles,
            half_life: settings.half_life,
            grace: settings.grace,
            checkpoint: settings.checkpoint,
            run_min: settings.run_min,
            limit_max: settings.limit_max,
            waiting_max: settings.waiting_max,
            shares,
            quotas,
            levels,
            profiles: settings.profiles,
            apps: settings.apps,
            lends: settings.lends,
            version: 0,
        };
        Ok(errors.or(Some(policy))?)
    }

    /// Leaves out names that no longer exist.
    async fn in_names(
        &self,
        conn: &mut Conn,
        site: SiteId,
        policy: QueuePolicy,
    ) -> Result<Settings> {
        let kinds = inventory::types(conn, site).await?;
        let kind = |id: &TypeId| {
            kinds
                .iter()
                .find(|kind| kind.id == *id)
                .map(|kind| kind.name.clone())
        };
        let all = projects::list(conn, site, "", ALL).await?;
        let project = |id: &ProjectId| {
            all.iter()
                .find(|one| one.id == *id)
                .map(|one| one.name.clone())
        };
        let mut directory = Directory::default();
        let named = policy.quotas.iter().filter_map(|quota| match quota.whose {
            Whose::Person(id) => Some(id),
            Whose::Site | Whose::Project(_) => None,
        });
        directory
            .learn_people(conn, named.collect::<Vec<_>>())
            .await?;
        let quota = |quota: Quota| {
            let (of, person) = match quota.whose {
                Whose::Site => (None, None),
                Whose::Project(id) => (Some(project(&id)?), None),
                Whose::Person(id) => (None, Some(directory.people.get(&id)?.login.clone())),
            };
            Some(QuotaSetting {
                project: of,
                person,
                amounts: quota.amounts,
                hours: quota.hours,
            })
        };
        let level = |level: Level| LevelSetting {
            number: level.number,
            projects: level.projects.iter().filter_map(project).collect(),
        };
        Ok(Settings {
            roles: policy
                .roles
                .iter()
                .filter_map(|(id, role)| Some((kind(id)?, *role)))
                .collect(),
            half_life: policy.half_life,
            grace: policy.grace,
            checkpoint: policy.checkpoint,
            run_min: policy.run_min,
            limit_max: policy.limit_max,
            waiting_max: policy.waiting_max,
            shares: policy
                .shares
                .iter()
                .filter_map(|(id, weight)| Some((project(id)?, *weight)))
                .collect(),
            quotas: policy.quotas.into_iter().filter_map(quota).collect(),
            levels: policy
                .levels
                .into_iter()
                .map(|(name, one)| (name, level(one)))
                .collect(),
            profiles: policy.profiles,
            apps: policy.apps,
            lends: policy.lends,
        })
    }

    /// Gives urgent priority to a project or person. The people it delays can see who gave it, and why.
    pub async fn grant_urgency(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: NewGrant,
    ) -> Result<Made<(Place, Grant, Directory)>> {
        let id = GrantId(fresh(self.now()));
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeQueue).await?;
            place.may(caller, Action::ManageQueue, false, "queue")?;
            let mut directory = Directory::with_site(&place.site);
            if let Some(earlier) = self.first_time(&mut tx, caller, id).await? {
                let known = queues::get_grant(&mut tx, place.id(), earlier).await?;
                let known = known.ok_or(Error::NotFound("grant"))?;
                learn(&mut tx, &mut directory, std::slice::from_ref(&known)).await?;
                return Ok(Made::before((place, known, directory)));
            }
            let whose = match (&new.project, &new.person) {
                (Some(project), None) => Whose::Project(self.project(&mut tx, place.id(), project).await?.id),
                (None, Some(person)) => {
                    Whose::Person(self.member_named(&mut tx, place.id(), person, MEMBER).await?.id)
                }
                _ => return Err(FieldErrors::one("project", "name a project or a member of this site, and not both").into()),
            };
            let now = self.now();
            if new.until <= now {
                return Err(FieldErrors::one("until", "it is over already").into());
            }
            let grant = Grant {
                id,
                site: place.id(),
                whose,
                from: now,
                until: new.until,
                gpu_hours: new.gpu_hours,
                reason: new.reason.clone(),
                by: caller.id(),
                revoked_at: None,
            };
            queues::insert_grant(&mut tx, &grant).await?;
            let change = Change::new("grant.give", Some(place.id()), grant.id).after(&grant);
            let change = change.because(Some(grant.reason.clone()));
            self.record(&mut tx, caller, change.tell(EventKind::GrantGiven, Audience::Members)).await?;
            learn(&mut tx, &mut directory, std::slice::from_ref(&grant)).await?;
            Ok(Made::now((place, grant, directory)))
        })
    }

    pub async fn revoke_urgency(
        &self,
        caller: &Caller,
        site: &SiteReference,
        grant: GrantId,
    ) -> Result<()> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeQueue).await?;
            place.may(caller, Action::ManageQueue, false, "queue")?;
            let known = queues::get_grant(&mut tx, place.id(), grant).await?.ok_or(Error::NotFound("grant"))?;
            if queues::revoke_grant(&mut tx, place.id(), grant, self.now()).await? {
                let change = Change::new("grant.revoke", Some(place.id()), grant).before(&known);
                self.record(&mut tx, caller, change.tell(EventKind::GrantRevoked, Audience::Members)).await?;
            }
            Ok(())
        })
    }

    /// The grants that apply now or later.
    pub async fn grants(
        &self,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<(Place, Vec<Grant>, Directory)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeQueue)
            .await?;
        let grants = queues::grants(&mut reader, place.id(), self.now()).await?;
        let mut directory = Directory::with_site(&place.site);
        learn(&mut reader, &mut directory, &grants).await?;
        Ok((place, grants, directory))
    }
}

async fn learn(conn: &mut Conn, directory: &mut Directory, grants: &[Grant]) -> Result<()> {
    let person = |grant: &Grant| match grant.whose {
        Whose::Person(id) => Some(id),
        Whose::Site | Whose::Project(_) => None,
    };
    let project = |grant: &Grant| match grant.whose {
        Whose::Project(id) => Some(id),
        Whose::Site | Whose::Person(_) => None,
    };
    let people: Vec<_> = grants
        .iter()
        .filter_map(person)
        .chain(grants.iter().map(|grant| grant.by))
        .collect();
    directory.learn_people(conn, people).await?;
    directory
        .learn_projects(conn, grants.iter().filter_map(project).collect::<Vec<_>>())
        .await
}

/// Somebody who looks away for a moment has not left.
const LEND_AFTER_MIN: SignedDuration = SignedDuration::from_mins(1);

fn check_lengths(settings: &Settings, errors: &mut FieldErrors) {
    let lengths = [
        (
            "half_life",
            settings.half_life,
            SignedDuration::from_hours(1),
            HALF_LIFE_MAX,
        ),
        (
            "grace",
            settings.grace,
            SignedDuration::ZERO,
            SignedDuration::from_hours(1),
        ),
        (
            "checkpoint",
            settings.checkpoint,
            SignedDuration::ZERO,
            SignedDuration::from_hours(1),
        ),
        (
            "run_min",
            settings.run_min,
            SignedDuration::ZERO,
            SignedDuration::from_hours(24),
        ),
        (
            "limit_max",
            settings.limit_max,
            SignedDuration::from_mins(1),
            HALF_LIFE_MAX,
        ),
    ];
    for (field, is, least, most) in lengths {
        if is < least || is > most {
            errors.push(field, format!("from {least:#} to {most:#}"));
        }
    }
    if !(1..=QueuePolicy::WAITING_MAX).contains(&settings.waiting_max) {
        let most = QueuePolicy::WAITING_MAX;
        errors.push("waiting_max", format!("from 1 to {most}"));
    }
    let lists = [
        ("roles", settings.roles.len()),
        ("shares", settings.shares.len()),
        ("quotas", settings.quotas.len()),
        ("levels", settings.levels.len()),
        ("profiles", settings.profiles.len()),
    ];
    for (field, is) in lists {
        if is > LIST_MAX {
            errors.push(field, format!("at most {LIST_MAX}"));
        }
    }
    for (name, profile) in &settings.profiles {
        if profile.wishes.is_empty() || profile.wishes.len() > berth_model::workload::Wish::MAX {
            errors.push(
                "profiles",
                format!(
                    "`{name}` needs one to {} wishes",
                    berth_model::workload::Wish::MAX
                ),
            );
        }
        let lend_after = profile.session.as_ref().and_then(|one| one.lend_after);
        if lend_after.is_some_and(|after| after < LEND_AFTER_MIN) {
            let least = LEND_AFTER_MIN;
            let message = format!("`{name}` lends after {least:#} or more, or never (null)");
            errors.push("profiles", message);
        }
    }
    for (number, quota) in settings.quotas.iter().enumerate() {
        let minutes = |minute: u16| minute > 24 * 60;
        let hours = quota.hours.as_ref();
        if hours.is_some_and(|hours| {
            minutes(hours.from_minute)
                || minutes(hours.to_minute)
                || hours.days.iter().any(|day| !(1..=7).contains(day))
        }) {
            errors.push(
                format!("quotas[{number}].hours"),
                "days are 1 (Monday) to 7, minutes 0 to 1440",
            );
        }
    }
}
