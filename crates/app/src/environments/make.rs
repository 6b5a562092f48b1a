//! Creates environments: new ones, extensions of others, and next versions.

use berth_drivers::backend::DiskSpace;
use berth_drivers::environments::Recipe;
use berth_engine::rights::Action;
use berth_model::environment::{Environment, EnvironmentState, Package};
use berth_model::event::{Audience, EventKind};
use berth_model::reference::{EnvironmentReference, SiteReference};
use berth_model::workload::{Ask, AskError, Class, Cores, Memory, Near, Task, TaskCount, Wish};
use berth_model::{EnvironmentId, FieldErrors, LoginName, Name, PersonId};
use berth_store::submissions;
use berth_store::{Conn, environments, people, queues, workloads};
use jiff::SignedDuration;

use super::{EnvironmentView, WHAT, is_of, recorded};
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::disk::check_space;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::place::Place;
use crate::queue::NewWorkload;
use crate::record::Change;
use crate::transact::transact;

/// Limits on the versions of one person, and on the curated versions of a site.
const OWN_MAX: u64 = 200;
const CURATED_MAX: u64 = 1000;
/// Resources of a build.
const CORES_MILLI: u64 = 1000;
const CORES_MILLI_MAX: u64 = 2000;
const MEMORY_MIB: u64 = 1024;
const MEMORY_MIB_MAX: u64 = 4096;
const LIMIT: SignedDuration = SignedDuration::from_hours(2);

#[derive(Debug, Clone)]
pub struct NewEnvironment {
    pub name: Name,
    /// Whether it belongs to the site, and not to the caller.
    pub is_curated: bool,
    /// The environment that it extends.
    pub base: Option<EnvironmentReference>,
    pub packages: Vec<Package>,
}

/// Changes for the next version.
#[derive(Debug, Clone, Default)]
pub struct EnvironmentChange {
    /// A package that the environment has already gets this new requirement.
    pub add: Vec<Package>,
    /// Matched by name.
    pub remove: Vec<Package>,
}

/// A version to build.
struct Draft {
    owner: Option<PersonId>,
    name: Name,
    version: u32,
    base: Option<Environment>,
    packages: Vec<Package>,
}

impl App {
    pub async fn make_environment(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewEnvironment,
    ) -> Result<Made<EnvironmentView>> {
        let space = self.disk_space(caller.id()).await;
        let made = transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeEnvironments).await?;
            place.may(caller, Action::ManageEnvironment, !new.is_curated, WHAT)?;
            let id = EnvironmentId(fresh(self.now()));
            if let Some(earlier) = self.earlier_environment(&mut tx, caller, &place, id).await? {
                return Ok(earlier);
            }
            let base = match &new.base {
                None => None,
                Some(reference) => Some(self.environment_base(&mut tx, caller, &place, reference).await?),
            };
            let owner = (!new.is_curated).then(|| caller.id());
            let versions = environments::called(&mut tx, place.id(), &new.name).await?;
            let theirs = || versions.iter().filter(|one| is_of(one, owner));
            if theirs().any(|one| matches!(one.state, EnvironmentState::Building | EnvironmentState::Ready)) {
                return Err(Error::NameTaken(new.name.to_string()));
            }
            let draft = Draft {
                owner,
                name: new.name.clone(),
                version: theirs().map(|one| one.version).max().unwrap_or(0) + 1,
                base,
                packages: new.packages.clone(),
            };
            self.write_environment_draft(&mut tx, caller, &place, (id, draft), &space).await
        });
        self.submitted.notify_one();
        made.map_err(|error: Error| error.taken(&new.name))
    }

    /// Creates the next version. Existing versions do not change.
    pub async fn change_environment(
        &self,
        caller: &Caller,
        site: &SiteReference,
        reference: &EnvironmentReference,
        change: &EnvironmentChange,
    ) -> Result<Made<EnvironmentView>> {
        let space = self.disk_space(caller.id()).await;
        let made = transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeEnvironments).await?;
            let from = self.find_environment(&mut tx, place.id(), caller.id(), reference).await?;
            place.may(caller, Action::ManageEnvironment, is_of(&from, Some(caller.id())), WHAT)?;
            let id = EnvironmentId(fresh(self.now()));
            if let Some(earlier) = self.earlier_environment(&mut tx, caller, &place, id).await? {
                return Ok(earlier);
            }
            let base = match from.base {
                None => None,
                Some(base) => Some(self.environment_base(&mut tx, caller, &place, &base.into()).await?),
            };
            let versions = environments::called(&mut tx, place.id(), &from.name).await?;
            let newest = versions.iter().filter(|one| is_of(one, from.owner)).map(|one| one.version).max();
            let draft = Draft {
                owner: from.owner,
                name: from.name.clone(),
                version: newest.unwrap_or(0) + 1,
                base,
                packages: changed(&from.packages, change)?,
            };
            self.write_environment_draft(&mut tx, caller, &place, (id, draft), &space).await
        });
        self.submitted.notify_one();
        made
    }

    async fn earlier_environment(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        id: EnvironmentId,
    ) -> Result<Option<Made<EnvironmentView>>> {
        let Some(earlier) = self.first_time(conn, caller, id).await? else {
            return Ok(None);
        };
        let known = environments::get(conn, place.id(), earlier).await?;
        let known = known.ok_or(Error::IdempotencyMismatch)?;
        let view = self.environment_view(conn, place, known).await?;
        Ok(Some(Made::before(view)))
    }

    /// The environment to extend, which has to be ready.
    async fn environment_base(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        reference: &EnvironmentReference,
    ) -> Result<Environment> {
        let found = self
            .find_environment(conn, place.id(), caller.id(), reference)
            .await;
        match found {
            Ok(found) if found.is_ready() => Ok(found),
            Ok(_) => {
                let message = format!("the environment `{reference}` is not ready to be extended");
                Err(FieldErrors::one("base", message).into())
            }
            Err(Error::NotFound(_)) => {
                let message = format!("there is no environment `{reference}` here");
                Err(FieldErrors::one("base", message).into())
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the version and submits its build in one transaction.
    async fn write_environment_draft(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        (id, draft): (EnvironmentId, Draft),
        space: &DiskSpace,
    ) -> Result<Made<EnvironmentView>> {
        let Draft {
            owner,
            name,
            version,
            base,
            packages,
        } = draft;
        check_packages(&packages)?;
        let most = if owner.is_some() {
            OWN_MAX
        } else {
            CURATED_MAX
        };
        if environments::count(conn, place.id(), owner).await? >= most {
            let message = format!("there are {most} versions already; remove one first");
            return Err(FieldErrors::one("name", message).into());
        }
        if let Some(owner) = owner {
            self.check_environments_limit(conn, owner).await?;
        }
        let login = match owner {
            None => None,
            Some(owner) => people::get(conn, owner).await?.map(|person| person.login),
        };
        let mut environment = Environment {
            id,
            site: place.id(),
            owner,
            version,
            base: base.as_ref().map(|base| base.id),
            packages,
            path: path(login.as_ref(), &name, version),
            name,
            prepared: None,
            workload: None,
            state: EnvironmentState::Building,
            trouble: None,
            python: None,
            bytes: None,
            is_on_disk: true,
            created_by: Some(caller.id()),
            created_at: self.now(),
            settled_at: None,
        };
        let recipe = recipe(&environment, login.as_ref(), base.as_ref());
        let limit = queues::policy(conn, place.id()).await?.limit_max.min(LIMIT);
        let ask = ask(&recipe, limit).map_err(|error| Error::Internal(error.to_string()))?;
        check_space(space, &ask)?;
        let new = NewWorkload {
            project: None,
            profile: None,
            is_held: false,
            ask,
        };
        let prepared = self.prepare(conn, caller, &place.id().into(), new).await?;
        let whose = (place.id(), caller.id());
        let since = prepared.workload.since;
        self.crowd
            .join(conn, whose, prepared.waiting_max, since)
            .await?;
        let number = workloads::next_numbers(conn, place.id(), 1).await?;
        let workload = berth_model::Workload {
            number,
            ..prepared.workload
        };
        environment.workload = Some(workload.id);
        let submission = self.submission(caller, workload)?;
        submissions::insert_all(conn, &[submission]).await?;
        environments::insert(conn, &environment).await?;
        let change = Change::new("environment.make", Some(place.id()), id)
            .after(recorded(&environment))
            .tell(EventKind::EnvironmentMade, Audience::Members);
        self.record(conn, caller, change).await?;
        let view = self.environment_view(conn, place, environment).await?;
        Ok(Made::now(view))
    }
}

/// Path of the environment for the programs in it. A login never changes, so the path never does.
fn path(login: Option<&LoginName>, name: &Name, version: u32) -> String {
    match login {
        None => format!("{name}/{version}"),
        Some(login) => format!("~{login}/{name}/{version}"),
    }
}

fn recipe(of: &Environment, login: Option<&LoginName>, base: Option<&Environment>) -> Recipe {
    let Environment { name, version, .. } = of;
    let (title, kernel) = match login {
        None => (format!("{name} {version}"), format!("{name}-{version}")),
        Some(login) => (
            format!("{name} {version} ({login})"),
            format!("{login}-{name}-{version}"),
        ),
    };
    Recipe {
        path: of.inside(),
        base: base.map(Environment::inside),
        packages: of.packages.clone(),
        lock: None,
        title,
        // Notebooks allow no `@` in the name of a kernel.
        kernel: format!("berth-{}", kernel.replace('@', "-")),
    }
}

fn ask(recipe: &Recipe, limit: SignedDuration) -> Result<Ask, AskError> {
    let title = format!("environment {}", recipe.title);
    let short: String = title.chars().take(200).collect();
    Ok(Ask {
        title: short.parse().map_err(|_| AskError::NoWish)?,
        class: Class::Guaranteed,
        level: None,
        wishes: vec![Wish {
            tasks: TaskCount::default(),
            task: Task {
                cores_milli: Cores::try_from(CORES_MILLI)?,
                cores_milli_limit: Some(Cores::try_from(CORES_MILLI_MAX)?),
                memory_mib: Memory::try_from(MEMORY_MIB)?,
                memory_mib_limit: Some(Memory::try_from(MEMORY_MIB_MAX)?),
                gpus: None,
            },
            limit,
            near: Near::default(),
            at_least: Near::default(),
            apart: false,
        }],
        seats: Vec::new(),
        inside: None,
        not_before: None,
        deadline: None,
        after: Vec::new(),
        array: None,
        // A build begins by emptying the folder, so it has the same result after any interruption.
        requeue: true,
        program: recipe.program(),
    })
}

fn check_packages(packages: &[Package]) -> Result<()> {
    if packages.len() > Environment::PACKAGES_MAX {
        let most = Environment::PACKAGES_MAX;
        let message = format!("an environment has at most {most} packages of its own");
        return Err(FieldErrors::one("packages", message).into());
    }
    let mut names: Vec<String> = packages.iter().map(Package::name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let message = format!("`{}` stands there twice", pair[0]);
            Err(FieldErrors::one("packages", message).into())
        }
    }
}

fn changed(packages: &[Package], change: &EnvironmentChange) -> Result<Vec<Package>> {
    let mut after = packages.to_vec();
    for gone in &change.remove {
        let had = after.len();
        after.retain(|one| one.name() != gone.name());
        if after.len() == had {
            let message = format!("it has no package `{}` of its own", gone.name());
            return Err(FieldErrors::one("remove", message).into());
        }
    }
    for new in &change.add {
        match after.iter_mut().find(|one| one.name() == new.name()) {
            Some(known) => known.clone_from(new),
            None => after.push(new.clone()),
        }
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages(lines: &[&str]) -> Vec<Package> {
        lines.iter().map(|line| line.parse().unwrap()).collect()
    }

    #[test]
    fn the_next_version_has_what_was_added_and_not_what_was_removed() {
        let change = EnvironmentChange {
            add: packages(&["Torch>=2", "dask"]),
            remove: packages(&["six"]),
        };
        let after = changed(&packages(&["torch<2", "six==1", "numpy"]), &change).unwrap();
        assert_eq!(after, packages(&["Torch>=2", "numpy", "dask"]));
        assert!(changed(&packages(&["numpy"]), &change).is_err());
    }

    #[test]
    fn nothing_stands_there_twice() {
        assert!(check_packages(&packages(&["a-b", "A_B>=1"])).is_err());
        assert!(check_packages(&packages(&["a-b", "a"])).is_ok());
    }
}
