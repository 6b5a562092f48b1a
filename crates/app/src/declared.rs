//! A site as a file: exports the site, compares it with a file, and applies the file, all or nothing.
//!
//! A preview is binding: it carries the fingerprint of the site. An apply that expects another fingerprint than the
//! site has changes nothing.

mod carry;
mod meet;

use std::collections::{BTreeMap, HashMap};

use berth_engine::plan::{Plan, Prune, Step, plan};
use berth_engine::rights::Action;
use berth_model::declared::{
    Declared, DeclaredResource, Difference, Document, ProjectSection, SiteSection, TypeSection,
};
use berth_model::policy::{Part, Policy, Scope};
use berth_model::reference::SiteReference;
use berth_model::site::{Project, Site};
use berth_model::{FieldErrors, Name, Resource, ResourceId, ResourceType, TypeId};
use berth_store::{Conn, Refused, inventory, policies, projects, sites};
use sha2::{Digest, Sha256};

use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::seen::Conflict;
use crate::settlement::Mode;
use crate::transact::transact;

/// The desired state of a site.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub document: Document,
    pub prune: Prune,
    /// The fingerprint of the site for which the differences were shown.
    pub expected: Option<String>,
}

/// The differences, after an apply or a dry run.
#[derive(Debug, Clone)]
pub struct Applied {
    pub place: Place,
    /// The fingerprint of the current site.
    pub fingerprint: String,
    pub differences: Vec<Difference>,
    /// The bookings in the way. Always empty if the file was applied.
    pub conflicts: Vec<Conflict>,
    pub directory: Directory,
}

/// The current site in the form of a file, with the rows behind the names.
struct Present {
    declared: Declared,
    types: HashMap<Name, ResourceType>,
    resources: HashMap<Name, Resource>,
    projects: HashMap<Name, Project>,
}

/// A site compared with a file.
struct Compared {
    place: Place,
    present: Present,
    wanted: Declared,
    plan: Plan,
    conflicts: Vec<Conflict>,
    directory: Directory,
}

impl App {
    /// The whole site as a file declares it, and its fingerprint. It shows everything that admins see.
    pub async fn export_site(
        &self,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<(Document, String)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeProvisioningFacts)
            .await?;
        place.may(caller, Action::SeeProjects, false, "site")?;
        let present = self.present(&mut reader, &place.site).await?;
        let fingerprint = fingerprint(&present.declared);
        Ok((present.declared.nested(), fingerprint))
    }

    /// Applies a file to a site, or returns the changes that it would make.
    pub async fn apply_site(
        &self,
        caller: &Caller,
        site: &SiteReference,
        wanted: Wanted,
        mode: Mode,
    ) -> Result<Applied> {
        let expected = wanted.expected;
        let declared = wanted.document.flat()?;
        if mode == Mode::DryRun {
            let mut reader = self.store.read().await?;
            let place = self.applying(&mut reader, caller, site).await?;
            let compared = self
                .compare(
                    &mut reader,
                    caller,
                    place,
                    declared,
                    wanted.prune,
                    &expected,
                )
                .await?;
            let fingerprint = fingerprint(&compared.present.declared);
            return Ok(compared.told(fingerprint));
        }
        let applied = transact!(self, tx => {
            let id = self.applying(&mut tx, caller, site).await?.id();
            inventory::hold_shape(&mut tx, id).await?;
            // Checked again: the previous holder of the lock may have changed the site.
            let place = self.applying(&mut tx, caller, &id.into()).await?;
            let declared = declared.clone();
            let mut compared =
                self.compare(&mut tx, caller, place, declared, wanted.prune, &expected).await?;
            if !compared.conflicts.is_empty() {
                let Compared { conflicts, directory, .. } = compared;
                return Err(Error::ApplyConflict { conflicts, directory: Box::new(directory) });
            }
            if !compared.plan.is_empty() {
                self.carry_out_plan(&mut tx, caller, &mut compared).await?;
            }
            let site = self.applying(&mut tx, caller, &id.into()).await?.site;
            let fingerprint = fingerprint(&self.present(&mut tx, &site).await?.declared);
            Ok(compared.told(fingerprint))
        });
        applied.map_err(|error: Error| match error {
            // A booking was made between the comparison and the change, and the database refused the change.
            error
                if error.is_refused(Refused::Claim)
                    || error.is_refused(Refused::OutsideContainer) =>
            {
                Error::ApplyConflict {
                    conflicts: Vec::new(),
                    directory: Box::default(),
                }
            }
            error if error.is_refused(Refused::Taken) => Error::SiteChanged,
            error => error,
        })
    }

    /// A file may change everything that an admin of the site may change, so the caller must be an admin.
    async fn applying(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<Place> {
        let place = self
            .place(conn, caller, site, Action::ManageInventory)
            .await?;
        place.may(caller, Action::ManageSite, false, "site")?;
        place.may(caller, Action::ManageProjects, false, "site")?;
        place.may(caller, Action::ManagePolicies, false, "site")?;
        Ok(place)
    }

    async fn compare(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: Place,
        wanted: Declared,
        prune: Prune,
        expected: &Option<String>,
    ) -> Result<Compared> {
        let named = wanted.site.as_ref().and_then(|site| site.name.as_ref());
        if let Some(name) = named.filter(|name| **name != place.site.name) {
            let said = format!(
                "the file is for the site `{name}`, and this is `{}`; a file renames nothing",
                place.site.name
            );
            return Err(FieldErrors::one("site.name", said).into());
        }
        let present = self.present(conn, &place.site).await?;
        if expected
            .as_ref()
            .is_some_and(|expected| *expected != fingerprint(&present.declared))
        {
            return Err(Error::SiteChanged);
        }
        let plan = plan(&present.declared, &wanted, prune)?;
        check_members(conn, &place, &present.declared, &wanted).await?;
        let policies = policy_changes(&plan, &wanted);
        self.check_declared(conn, &place.site, &policies).await?;
        let mut directory = Directory::with_site(&place.site);
        let met = meet::in_the_way(conn, &present, &wanted, &plan).await?;
        let conflicts = self
            .explain(conn, &place, caller, met, &mut directory)
            .await?;
        Ok(Compared {
            place,
            present,
            wanted,
            plan,
            conflicts,
            directory,
        })
    }

    async fn present(&self, conn: &mut Conn, site: &Site) -> Result<Present> {
        let resources = inventory::of_site(conn, site.id).await?;
        let types = inventory::types(conn, site.id).await?;
        let projects = projects::with_members(conn, site.id).await?;
        let policies = policies::holding_in(conn, site.id).await?;
        let policies = policies
            .into_iter()
            .filter_map(|one| match one.scope {
                Scope::Site(part) => Some((part, one.policy?)),
                Scope::Ceilings | Scope::Defaults => None,
            })
            .collect();
        let type_names: HashMap<TypeId, &Name> =
            types.iter().map(|kind| (kind.id, &kind.name)).collect();
        let names: HashMap<ResourceId, &Name> = resources
            .iter()
            .map(|resource| (resource.id, &resource.name))
            .collect();
        // A dry run reads in several queries, and the site may have changed between them.
        let missing = || Error::Store(berth_store::Error::Retry);
        let mut tree = BTreeMap::new();
        for resource in &resources {
            let parent = match resource.parent {
                Some(parent) => Some((*names.get(&parent).ok_or_else(missing)?).clone()),
                None => None,
            };
            let kind = *type_names.get(&resource.type_id).ok_or_else(missing)?;
            let declared = DeclaredResource {
                parent,
                kind: kind.clone(),
                title: resource.title.clone(),
                attributes: resource.attributes.clone(),
                facts: resource.facts.clone(),
                capacity: resource.capacity.clone(),
            };
            tree.insert(resource.name.clone(), declared);
        }
        let declared = Declared {
            site: Some(SiteSection {
                name: Some(site.name.clone()),
                title: site.title.clone(),
                time_zone: site.time_zone.clone(),
                outsiders_see: site.outsiders_see,
                accent: site.accent.clone(),
            }),
            types: Some(types.iter().map(declared_type).collect()),
            resources: Some(tree),
            projects: Some(projects.iter().map(declared_project).collect()),
            policies: Some(policies),
        };
        Ok(Present {
            declared,
            types: types
                .into_iter()
                .map(|kind| (kind.name.clone(), kind))
                .collect(),
            resources: resources
                .into_iter()
                .map(|resource| (resource.name.clone(), resource))
                .collect(),
            projects: projects
                .into_iter()
                .map(|(project, _)| (project.name.clone(), project))
                .collect(),
        })
    }
}

impl Compared {
    fn told(self, fingerprint: String) -> Applied {
        Applied {
            place: self.place,
            fingerprint,
            differences: self.plan.differences,
            conflicts: self.conflicts,
            directory: self.directory,
        }
    }
}

fn declared_type(kind: &ResourceType) -> (Name, TypeSection) {
    let section = TypeSection {
        title: kind.title.clone(),
        colour: kind.colour.clone(),
        needs_approval: kind.needs_approval,
        form: kind.form.clone(),
    };
    (kind.name.clone(), section)
}

fn declared_project(
    (project, members): &(Project, std::collections::BTreeSet<berth_model::LoginName>),
) -> (Name, ProjectSection) {
    let section = ProjectSection {
        title: project.title.clone(),
        members: members.clone(),
    };
    (project.name.clone(), section)
}

/// The policies that the plan sets or removes, in its order.
fn policy_changes(plan: &Plan, wanted: &Declared) -> Vec<(Part, Option<Policy>)> {
    let wanted = wanted.policies.as_ref();
    let change = |step: &Step| match step {
        Step::SetPolicy(part) => {
            let policy = wanted.and_then(|all| all.get(part));
            Some((part.clone(), policy.cloned()))
        }
        Step::RemovePolicy(part) => Some((part.clone(), None)),
        _ => None,
    };
    plan.steps.iter().filter_map(change).collect()
}

/// Refuses new project members who do not belong to the site.
async fn check_members(
    conn: &mut Conn,
    place: &Place,
    now: &Declared,
    wanted: &Declared,
) -> Result<()> {
    let mut joining = Vec::new();
    for (name, project) in wanted.projects.iter().flatten() {
        let known = now
            .projects
            .as_ref()
            .and_then(|projects| projects.get(name));
        let is_new = |login: &&_| known.is_none_or(|known| !known.members.contains(*login));
        joining.extend(
            project
                .members
                .iter()
                .filter(is_new)
                .map(|login| (name, login)),
        );
    }
    if joining.is_empty() {
        return Ok(());
    }
    let logins = joining.iter().map(|(_, login)| login.to_string()).collect();
    let members = sites::members_among(conn, place.id(), logins).await?;
    let mut errors = FieldErrors::default();
    for (project, login) in joining
        .into_iter()
        .filter(|(_, login)| !members.contains(*login))
    {
        errors.push(
            format!("projects.{project}.members"),
            format!("`{login}` is not a member of this site; add them to it first"),
        );
    }
    Ok(errors.or(Some(()))?)
}

/// A text that is equal for two sites only if a file could not tell them apart.
fn fingerprint(declared: &Declared) -> String {
    // A document always serialises. If it did not, all sites would get the same fingerprint, but the versions would
    // still differ.
    let text = serde_json::to_vec(&declared.clone().nested()).unwrap_or_default();
    let hash = Sha256::digest(&text);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
