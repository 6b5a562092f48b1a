//! Resource types: the kinds of resources of a site, and what a booking of each kind requires.

use berth_engine::rights::Action;
use berth_model::inventory::Colour;
use berth_model::parameter::Form;
use berth_model::reference::{SiteReference, TypeReference};
use berth_model::{Name, Reference, ResourceType, SiteId, Text, TypeId};
use berth_store::{Conn, inventory};

use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::place::Place;
use crate::transact::transact;
use crate::version;

#[derive(Debug, Clone)]
pub struct NewType {
    pub name: Name,
    pub title: Text,
    pub colour: Colour,
    pub form: Form,
    pub needs_approval: bool,
}

#[derive(Debug, Clone, Default)]
pub struct TypeChange {
    pub name: Option<Name>,
    pub title: Option<Text>,
    pub colour: Option<Colour>,
    pub form: Option<Form>,
    pub needs_approval: Option<bool>,
}

impl App {
    pub(crate) async fn resource_type(
        &self,
        conn: &mut Conn,
        site: SiteId,
        kind: &TypeReference,
    ) -> Result<ResourceType> {
        let found = match kind {
            Reference::Id(id) => inventory::type_by_id(conn, site, *id).await?,
            Reference::Name(name) => inventory::type_by_name(conn, site, name).await?,
        };
        found.ok_or(Error::NotFound("resource type"))
    }

    pub async fn create_type(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: NewType,
    ) -> Result<Made<(Place, ResourceType)>> {
        let id = TypeId(fresh(self.now()));
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::ManageInventory).await?;
            if let Some(earlier) = self.first_time(&mut tx, caller, id).await? {
                let kind = self.resource_type(&mut tx, place.id(), &Reference::Id(earlier)).await?;
                return Ok(Made::before((place, kind)));
            }
            let kind = ResourceType {
                id,
                site: place.id(),
                name: new.name.clone(),
                title: new.title.clone(),
                colour: new.colour.clone(),
                form: new.form.clone(),
                needs_approval: new.needs_approval,
                version: 1,
            };
            self.write_new_type(&mut tx, caller, &kind).await?;
            Ok(Made::now((place, kind)))
        })
        .map_err(|error: Error| error.taken(&new.name))
    }

    pub async fn list_types(
        &self,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<(Place, Vec<ResourceType>)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeCatalogue)
            .await?;
        let types = inventory::types(&mut reader, place.id()).await?;
        Ok((place, types))
    }

    pub async fn get_type(
        &self,
        caller: &Caller,
        site: &SiteReference,
        kind: &TypeReference,
    ) -> Result<(Place, ResourceType)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeCatalogue)
            .await?;
        let kind = self.resource_type(&mut reader, place.id(), kind).await?;
        Ok((place, kind))
    }

    pub async fn update_type(
        &self,
        caller: &Caller,
        site: &SiteReference,
        kind: &TypeReference,
        version: Option<u64>,
        change: TypeChange,
    ) -> Result<(Place, ResourceType)> {
        let wanted = change.name.clone();
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeCatalogue).await?;
            place.may(caller, Action::ManageInventory, false, "resource type")?;
            let before = self.resource_type(&mut tx, place.id(), kind).await?;
            version::expect(version, before.version)?;
            let after = ResourceType {
                name: change.name.clone().unwrap_or(before.name.clone()),
                title: change.title.clone().unwrap_or(before.title.clone()),
                colour: change.colour.clone().unwrap_or(before.colour.clone()),
                form: change.form.clone().unwrap_or(before.form.clone()),
                needs_approval: change.needs_approval.unwrap_or(before.needs_approval),
                version: before.version + 1,
                ..before.clone()
            };
            if !self.write_type(&mut tx, caller, &before, &after).await? {
                return Err(version::overtaken(before.version));
            }
            Ok((place, after))
        })
        .map_err(|error: Error| error.taken(wanted.map(String::from).unwrap_or_default()))
    }

    /// Removes a type that no resource has any more.
    pub async fn remove_type(
        &self,
        caller: &Caller,
        site: &SiteReference,
        kind: &TypeReference,
    ) -> Result<()> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeCatalogue).await?;
            place.may(caller, Action::ManageInventory, false, "resource type")?;
            let before = self.resource_type(&mut tx, place.id(), kind).await?;
            caller.expects(before.version)?;
            if !self.write_off_type(&mut tx, caller, &before).await? {
                return Err(Error::InUse(format!("there are still resources of the type `{}`; remove or retype them first", before.name)));
            }
            Ok(())
        })
    }
}
