//! One resource in full, and how its status changed.

use berth_api::reference::ResourceReference;
use berth_api::resources::{Resource, ResourceQuery};

use crate::arguments::Placed;
use crate::commands::free::outlooks;
use crate::context::Context;
use crate::details::Details;
use crate::pages::whole;
use crate::show;
use crate::table::{Column, Table};

pub async fn one(named: &Placed<ResourceReference>, context: &Context) -> anyhow::Result<()> {
    let site = context.site_of(named)?;
    let below = ResourceQuery {
        under: Some(named.it.clone()),
        ..ResourceQuery::default()
    };
    let (resource, free) = tokio::join!(
        context.client.resource(&site, &named.it),
        outlooks(context, &site, &below)
    );
    let resource = resource?;
    let now = free
        .get(&resource.id)
        .map(|outlook| outlook.words(&context.times));
    context.out.show(&resource, |screen| {
        details(&resource, now).render(screen) + &context.times.footnote()
    })
}

fn details(resource: &Resource, now: Option<String>) -> Details {
    let facts = &resource.facts;
    let capacity = resource.capacity.as_ref();
    Details::default()
        .line("Name", &resource.name)
        .maybe("Title", resource.title.as_ref())
        .line("Site", &resource.site.name)
        .line("Type", &resource.kind.name)
        .maybe("In", resource.parent.as_ref().map(|parent| &parent.name))
        .maybe(
            "Capacity",
            capacity.map(|has| format!("{} {}", has.amount.get(), has.unit)),
        )
        .line(
            "Status",
            show::status(resource.effective_status, resource.status_from.as_ref()),
        )
        .maybe("Reason", resource.status_reason.as_ref())
        .maybe("Now", now)
        .lines(
            "Attributes",
            resource
                .attributes
                .iter()
                .map(|(name, value)| format!("{name} = {value}")),
        )
        .maybe("Location", facts.location.as_ref())
        .maybe("Contact", facts.contact.as_ref())
        .maybe("Monitoring", facts.monitoring_url.as_ref())
        .maybe("Provisioning", facts.provisioning_address.as_ref())
        .line("Id", resource.id)
        .line("Version", resource.version)
}

pub async fn history(named: &Placed<ResourceReference>, context: &Context) -> anyhow::Result<()> {
    let site = context.site_of(named)?;
    let client = &context.client;
    let changes =
        whole(async |query| client.status_history(&site, &named.it, &query).await).await?;
    context.out.show(&changes, |screen| {
        let columns = [
            Column::left("WHEN"),
            Column::left("STATUS"),
            Column::left("BY"),
            Column::left("REASON").shrinks(1),
        ];
        let mut table = Table::new(columns, "Its status never changed.");
        for change in &changes.items {
            table.row([
                context.times.moment(change.at),
                change.status.to_string(),
                show::by(change.by.as_ref()),
                change
                    .reason
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ]);
        }
        context.times.render(&table, screen)
    })
}
