//! Finds the environment that a reference means.

use berth_drivers::environments::Prepared;
use berth_model::environment::{Environment, EnvironmentName, EnvironmentState};
use berth_model::reference::EnvironmentReference;
use berth_model::{PersonId, SiteId};
use berth_store::{Conn, environments, people};

use super::{WHAT, is_of};
use crate::App;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;

impl App {
    /// The version in the reference. Without one, the newest ready version, or else the newest.
    pub(super) async fn find_environment(
        &self,
        conn: &mut Conn,
        site: SiteId,
        person: PersonId,
        reference: &EnvironmentReference,
    ) -> Result<Environment> {
        let found = match reference {
            EnvironmentReference::Id(id) => environments::get(conn, site, *id).await?,
            EnvironmentReference::Name(name) => {
                self.environment_named(conn, site, person, name).await?
            }
        };
        found.ok_or(Error::NotFound(WHAT))
    }

    pub(super) async fn environment_named(
        &self,
        conn: &mut Conn,
        site: SiteId,
        person: PersonId,
        name: &EnvironmentName,
    ) -> Result<Option<Environment>> {
        let mut all = environments::called(conn, site, &name.name).await?;
        let is_there = |one: &Environment| one.state != EnvironmentState::Retired;
        let owner = match &name.owner {
            Some(login) => match people::by_login(conn, login).await? {
                Some(person) => Some(person.id),
                None => return Ok(None),
            },
            // Curated environments come first: a name must not mean one thing to one person and another to all others.
            None if all.iter().any(|one| is_of(one, None) && is_there(one)) => None,
            None => Some(person),
        };
        all.retain(|one| is_of(one, owner));
        if let Some(version) = name.version {
            return Ok(all.into_iter().find(|one| one.version == version));
        }
        all.retain(is_there);
        let ready = all.iter().position(Environment::is_ready);
        Ok(all.into_iter().nth(ready.unwrap_or(0)))
    }

    /// The full name of an environment, the same for everybody.
    pub(super) async fn environment_name(
        &self,
        conn: &mut Conn,
        of: &Environment,
        directory: &mut Directory,
    ) -> Result<EnvironmentName> {
        directory.learn_people(conn, of.owner).await?;
        let owner = of.owner.and_then(|id| directory.people.get(&id));
        Ok(EnvironmentName {
            owner: owner.map(|owner| owner.login.clone()),
            name: of.name.clone(),
            version: Some(of.version),
        })
    }

    /// Pins the image of a workload to a version, so a waiting workload runs in the version that existed at its
    /// submission. Without an environment store (`Shelf`), only the backend knows the meaning of an image.
    pub(crate) async fn pinned_image(
        &self,
        conn: &mut Conn,
        place: &Place,
        person: PersonId,
        image: &str,
    ) -> Result<Result<String, String>> {
        if self.shelf().is_none() {
            return Ok(Ok(image.to_owned()));
        }
        let reference: EnvironmentReference = match image.parse() {
            Ok(reference) => reference,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let found = self
            .find_environment(conn, place.id(), person, &reference)
            .await;
        match found {
            Ok(found) if found.is_ready() => {
                let mut directory = Directory::default();
                let name = self.environment_name(conn, &found, &mut directory).await?;
                Ok(Ok(name.to_string()))
            }
            Ok(_) => Ok(Err(format!("the environment `{image}` is not ready"))),
            Err(Error::NotFound(_)) => Ok(Err(match Prepared::how_to_make(image) {
                Some(command) => format!(
                    "there is no environment `{image}` here yet: an admin makes it with `{command}`, in the folder that \
                     `prepared_environments` names"
                ),
                None => format!(
                    "there is no environment `{image}` here; `berth env list` says which there are"
                ),
            })),
            Err(error) => Err(error),
        }
    }
}
