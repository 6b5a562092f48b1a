//! The resources of a site, as a list and as a tree, with whether each is free.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use berth_api::Page;
use berth_api::client::all_pages;
use berth_api::page::Limit;
use berth_api::resources::{Resource, ResourceQuery};
use berth_model::{ResourceId, Status};

use super::Filter;
use crate::commands::free::{Outlook, outlooks};
use crate::context::Context;
use crate::show;
use crate::table::{Branch, Column, Table};

const EMPTY: &str = "No resource matches. `berth resource add NAME --type TYPE` adds one.";

pub async fn list(filter: Filter, context: &Context) -> anyhow::Result<()> {
    let (resources, free) = read(filter, context).await?;
    context.out.show(&resources, |screen| {
        let columns = [
            Column::left("NAME"),
            Column::left("TYPE"),
            Column::left("IN"),
            Column::left("STATUS"),
            Column::left("NOW"),
            Column::left("ATTRIBUTES").shrinks(1),
        ];
        let mut table = Table::new(columns, EMPTY);
        for resource in &resources.items {
            let [name, kind, status, now, attributes] = cells(resource, &free, context);
            let parent = resource.parent.as_ref().map(|parent| parent.name.clone());
            table.row([
                name,
                kind,
                parent.unwrap_or_default(),
                status,
                now,
                attributes,
            ]);
        }
        context.times.render(&table, screen)
    })
}

pub async fn tree(filter: Filter, context: &Context) -> anyhow::Result<()> {
    let (resources, free) = read(filter, context).await?;
    context.out.show(&resources, |screen| {
        let columns = [
            Column::left("RESOURCE"),
            Column::left("TYPE"),
            Column::left("STATUS"),
            Column::left("NOW"),
            Column::left("ATTRIBUTES").shrinks(1),
        ];
        let mut table = Table::new(columns, EMPTY);
        for root in grow(&resources.items, |resource| cells(resource, &free, context)) {
            table.tree(&root);
        }
        context.times.render(&table, screen)
    })
}

/// The resources, and of those that one may know about when they are free. Both at the same time, since neither
/// waits for the other.
async fn read(
    filter: Filter,
    context: &Context,
) -> anyhow::Result<(Page<Resource>, HashMap<ResourceId, Outlook>)> {
    let site = context.site()?;
    let query = filter.query()?;
    let resources = all_pages(async |cursor| {
        let query = ResourceQuery {
            limit: Limit::LARGEST,
            cursor,
            ..query.clone()
        };
        context.client.resources(site, &query).await
    });
    let (resources, free) = tokio::join!(resources, outlooks(context, site, &query));
    Ok((Page::whole(resources?), free))
}

fn cells(
    resource: &Resource,
    free: &HashMap<ResourceId, Outlook>,
    context: &Context,
) -> [String; 5] {
    let attributes: Vec<String> = resource
        .attributes
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let capacity = resource
        .capacity
        .as_ref()
        .map(|capacity| format!("{} {}", capacity.amount.get(), capacity.unit));
    [
        resource.name.to_string(),
        resource.kind.name.clone(),
        show::status(resource.effective_status, resource.status_from.as_ref()),
        now(resource, free, context),
        capacity
            .into_iter()
            .chain(attributes)
            .collect::<Vec<_>>()
            .join(" "),
    ]
}

/// Whether it is free; of one that takes no bookings nobody needs to know.
fn now(resource: &Resource, free: &HashMap<ResourceId, Outlook>, context: &Context) -> String {
    match free.get(&resource.id) {
        _ if resource.effective_status != Status::Active => "closed".to_owned(),
        Some(outlook) => outlook.words(&context.times),
        None => String::new(),
    }
}

/// Puts every resource under its parent. One whose parent is not in the list, because a filter left it out, stands
/// at the top.
fn grow<const COLUMNS: usize>(
    resources: &[Resource],
    cells: impl Fn(&Resource) -> [String; COLUMNS],
) -> Vec<Branch<COLUMNS>> {
    let listed: BTreeSet<ResourceId> = resources.iter().map(|resource| resource.id).collect();
    let mut below: BTreeMap<Option<ResourceId>, Vec<&Resource>> = BTreeMap::new();
    for resource in resources {
        let parent = resource.parent.as_ref().map(|parent| parent.id);
        below
            .entry(parent.filter(|parent| listed.contains(parent)))
            .or_default()
            .push(resource);
    }
    branches(None, &below, &cells)
}

fn branches<const COLUMNS: usize>(
    parent: Option<ResourceId>,
    below: &BTreeMap<Option<ResourceId>, Vec<&Resource>>,
    cells: &impl Fn(&Resource) -> [String; COLUMNS],
) -> Vec<Branch<COLUMNS>> {
    let children = below.get(&parent).map(Vec::as_slice).unwrap_or_default();
    children
        .iter()
        .map(|resource| Branch {
            cells: cells(resource),
            children: branches(Some(resource.id), below, cells),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resource(number: u8, name: &str, parent: Option<u8>) -> Resource {
        let id = |number: u8| format!("res_01kc3v9xwbe8rv5w2n9q3m7t4{number}");
        let parent = parent.map(|number| json!({"id": id(number), "name": "x", "type": "rack"}));
        serde_json::from_value(json!({
            "id": id(number), "name": name, "title": null, "parent": parent,
            "site": {"id": "sit_01kc3v9xwbe8rv5w2n9q3m7t4h", "name": "torino", "title": "Torino"},
            "type": {"id": "typ_01kc3v9xwbe8rv5w2n9q3m7t4h", "name": "gpu", "title": "GPU"},
            "attributes": {}, "facts": {}, "capacity": null, "status": "ACTIVE", "status_reason": null,
            "effective_status": "ACTIVE", "status_from": null, "version": 1
        }))
        .unwrap()
    }

    #[test]
    fn every_resource_stands_under_its_parent_and_orphans_at_the_top() {
        let all = [
            resource(1, "gpu-01", Some(3)),
            resource(2, "gpu-02", Some(3)),
            resource(3, "rack-1", None),
            resource(4, "stray", Some(9)),
        ];
        let roots = grow(&all, |resource| [resource.name.to_string()]);
        let names: Vec<&str> = roots.iter().map(|root| root.cells[0].as_str()).collect();
        assert_eq!(names, ["rack-1", "stray"]);
        assert_eq!(roots[0].children.len(), 2);
    }
}
