//! Resources: create, read, update, remove.

use berth_engine::rights::Action;
use berth_engine::tree::Tree;
use berth_model::attribute::{Attributes, Requirement};
use berth_model::declared::LEVELS_MAX;
use berth_model::inventory::{Capacity, Facts};
use berth_model::reference::{ResourceReference, SiteReference, TypeReference};
use berth_model::{Name, Reference, Resource, ResourceId, SiteId, Status, Text};
use berth_store::{Conn, Refused, inventory};

use crate::App;
use crate::calendar::split;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::place::Place;
use crate::transact::transact;
use crate::version;

#[derive(Debug, Clone)]
pub struct NewResource {
    pub name: Name,
    pub kind: TypeReference,
    pub parent: Option<ResourceReference>,
    pub title: Option<Text>,
    pub attributes: Attributes,
    pub facts: Facts,
    pub capacity: Option<Capacity>,
}

#[derive(Debug, Clone, Default)]
pub struct ResourceChange {
    pub name: Option<Name>,
    pub title: Option<Option<Text>>,
    pub attributes: Option<Attributes>,
    pub facts: Option<Facts>,
    pub capacity: Option<Option<Capacity>>,
}

/// Which resources to list.
#[derive(Debug, Clone, Default)]
pub struct ResourceFilter {
    pub kind: Option<TypeReference>,
    pub requirements: Vec<Requirement>,
    /// The effective status, which may be inherited.
    pub status: Option<Status>,
    pub under: Option<ResourceReference>,
}

/// A resource with its effective status.
#[derive(Debug, Clone)]
pub struct ResourceView {
    pub resource: Resource,
    pub status: Status,
    /// The resource that sets this status: the resource itself, or one above it.
    pub status_from: ResourceId,
}

impl App {
    pub(crate) async fn resource(
        &self,
        conn: &mut Conn,
        site: SiteId,
        resource: &ResourceReference,
    ) -> Result<Resource> {
        let found = match resource {
            Reference::Id(id) => inventory::by_id(conn, site, *id).await?,
            Reference::Name(name) => inventory::by_name(conn, site, name).await?,
        };
        found.ok_or(Error::NotFound("resource"))
    }

    /// One resource with its effective status, its type and its ancestors.
    pub(crate) async fn resource_view(
        &self,
        conn: &mut Conn,
        place: &Place,
        resource: ResourceId,
        directory: &mut Directory,
    ) -> Result<ResourceView> {
        let wanted = inventory::wanted(conn, place.id(), vec![resource], vec![]).await?;
        let wanted = wanted
            .into_iter()
            .next()
            .ok_or(Error::NotFound("resource"))?;
        directory.add_type(&wanted.kind);
        directory.add_resource(&wanted.resource);
        wanted
            .above
            .iter()
            .for_each(|above| directory.add_resource(above));
        directory.learn_resources(conn, []).await?;
        let (status, from) = wanted.effective_status();
        let status_from = from.id;
        Ok(ResourceView {
            status,
            status_from,
            resource: wanted.resource,
        })
    }

    pub async fn create_resource(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: NewResource,
    ) -> Result<Made<(Place, ResourceView, Directory)>> {
        let now = self.now();
        let id = ResourceId(fresh(now));
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::ManageInventory).await?;
            let mut directory = Directory::with_site(&place.site);
            if let Some(earlier) = self.first_time(&mut tx, caller, id).await? {
                let view = self.resource_view(&mut tx, &place, earlier, &mut directory).await?;
                return Ok(Made::before((place, view, directory)));
            }
            let kind = self.resource_type(&mut tx, place.id(), &new.kind).await?;
            let parent = match &new.parent {
                Some(parent) => {
                    let (ids, names) = split(std::slice::from_ref(parent));
                    let found = inventory::wanted(&mut tx, place.id(), ids, names).await?;
                    let parent = found.first().ok_or(Error::NotFound("resource"))?;
                    if parent.above.len() + 2 > LEVELS_MAX {
                        return Err(Error::TooDeep);
                    }
                    Some(parent.resource.id)
                }
                None => None,
            };
            let resource = Resource {
                id,
                site: place.id(),
                parent,
                type_id: kind.id,
                name: new.name.clone(),
                title: new.title.clone(),
                attributes: new.attributes.clone(),
                facts: new.facts.clone(),
                capacity: new.capacity.clone(),
                status: Status::Active,
                status_reason: None,
                version: 1,
            };
            self.write_new_resource(&mut tx, caller, &resource).await?;
            let view = self.resource_view(&mut tx, &place, id, &mut directory).await?;
            Ok(Made::now((place, view, directory)))
        })
        .map_err(|error: Error| error.taken(&new.name))
    }

    pub async fn get_resource(
        &self,
        caller: &Caller,
        site: &SiteReference,
        resource: &ResourceReference,
    ) -> Result<(Place, ResourceView, Directory)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeCatalogue)
            .await?;
        let id = self.resource(&mut reader, place.id(), resource).await?.id;
        let mut directory = Directory::with_site(&place.site);
        let view = self
            .resource_view(&mut reader, &place, id, &mut directory)
            .await?;
        Ok((place, view, directory))
    }

    /// The matching resources by name, starting after `after`.
    pub async fn list_resources(
        &self,
        caller: &Caller,
        site: &SiteReference,
        filter: &ResourceFilter,
        after: &str,
        limit: usize,
    ) -> Result<(Place, Vec<ResourceView>, Directory)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeCatalogue)
            .await?;
        let (mut views, directory) = self.matching(&mut reader, &place, filter).await?;
        page(&mut views, after, limit);
        Ok((place, views, directory))
    }

    /// Every resource of the site that meets the filter, by name, with its effective status.
    pub(crate) async fn matching(
        &self,
        conn: &mut Conn,
        place: &Place,
        filter: &ResourceFilter,
    ) -> Result<(Vec<ResourceView>, Directory)> {
        let mut directory = Directory::with_site(&place.site);
        let resources = inventory::of_site(conn, place.id()).await?;
        let tree = tree_of(&resources)?;
        for kind in inventory::types(conn, place.id()).await? {
            directory.add_type(&kind);
        }
        for resource in &resources {
            directory.add_resource(resource);
        }
        let kind = match &filter.kind {
            Some(kind) => Some(self.resource_type(conn, place.id(), kind).await?.id),
            None => None,
        };
        let under = match &filter.under {
            Some(under) => Some(self.resource(conn, place.id(), under).await?.id),
            None => None,
        };
        let status_of = |id| {
            directory
                .resources
                .get(&id)
                .map_or(Status::Active, |resource| resource.status)
        };
        let views = resources.into_iter().filter_map(|resource| {
            let (status, status_from) = tree.effective_status(resource.id, status_of);
            let fits = kind.is_none_or(|kind| resource.type_id == kind)
                && filter.status.is_none_or(|wanted| status == wanted)
                && under.is_none_or(|under| tree.is_at_or_below(resource.id, under))
                && filter
                    .requirements
                    .iter()
                    .all(|requirement| requirement.is_met_by(&resource.attributes));
            fits.then_some(ResourceView {
                resource,
                status,
                status_from,
            })
        });
        let views = views.collect();
        Ok((views, directory))
    }

    pub async fn update_resource(
        &self,
        caller: &Caller,
        site: &SiteReference,
        resource: &ResourceReference,
        version: Option<u64>,
        change: ResourceChange,
    ) -> Result<(Place, ResourceView, Directory)> {
        let wanted = change.name.clone();
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeCatalogue).await?;
            place.may(caller, Action::ManageInventory, false, "resource")?;
            let before = self.resource(&mut tx, place.id(), resource).await?;
            version::expect(version, before.version)?;
            let after = Resource {
                name: change.name.clone().unwrap_or(before.name.clone()),
                title: change.title.clone().unwrap_or(before.title.clone()),
                attributes: change.attributes.clone().unwrap_or(before.attributes.clone()),
                facts: change.facts.clone().unwrap_or(before.facts.clone()),
                capacity: change.capacity.clone().unwrap_or(before.capacity.clone()),
                version: before.version + 1,
                ..before.clone()
            };
            if !self.write_resource(&mut tx, caller, &before, &after).await? {
                return Err(version::overtaken(before.version));
            }
            let mut directory = Directory::with_site(&place.site);
            let view = self.resource_view(&mut tx, &place, after.id, &mut directory).await?;
            Ok((place, view, directory))
        })
        .map_err(|error: Error| match error {
            error if error.is_refused(Refused::Amount) => Error::Amount(
                "more than that is promised already; move or cancel those bookings first".into(),
            ),
            error => error.taken(wanted.map(String::from).unwrap_or_default()),
        })
    }

    /// Removes a resource from the inventory, if it has no children and no claims.
    pub async fn remove_resource(
        &self,
        caller: &Caller,
        site: &SiteReference,
        resource: &ResourceReference,
    ) -> Result<()> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeCatalogue).await?;
            place.may(caller, Action::ManageInventory, false, "resource")?;
            let before = self.resource(&mut tx, place.id(), resource).await?;
            caller.expects(before.version)?;
            if !self.write_off_resource(&mut tx, caller, &before).await? {
                return Err(Error::InUse(format!(
                    "`{}` has resources below it or bookings that still hold it; settle those first", before.name
                )));
            }
            Ok(())
        })
    }
}

/// Keeps up to `limit` resources that come after `after` by name. Sorts here, because databases order letters by their
/// own rules.
pub(crate) fn page(views: &mut Vec<ResourceView>, after: &str, limit: usize) {
    views.sort_by(|a, b| a.resource.name.cmp(&b.resource.name));
    views.retain(|view| view.resource.name.as_str() > after);
    views.truncate(limit);
}

/// A resource for the event stream, which every member reads. So it has no provisioning address.
pub(super) fn told(resource: &Resource) -> serde_json::Value {
    let facts = Facts {
        provisioning_address: None,
        ..resource.facts.clone()
    };
    serde_json::to_value(Resource {
        facts,
        ..resource.clone()
    })
    .unwrap_or_default()
}

pub(crate) fn tree_of<'a>(resources: impl IntoIterator<Item = &'a Resource>) -> Result<Tree> {
    let resources = resources.into_iter();
    Tree::new(resources.map(|resource| (resource.id, resource.parent)))
        .map_err(|error| Error::Internal(format!("the stored tree is broken: {error}")))
}
