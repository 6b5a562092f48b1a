//! `berth maintenance`: planned windows, negotiated with the bookings in their way.

mod plan;

use berth_api::Page;
use berth_api::client::Error;
use berth_api::maintenance::{MaintenanceQuery, MaintenanceWindow};
use berth_api::members::Reason;
use berth_api::moment::Moment;
use berth_api::page::PageQuery;
use berth_api::reference::SiteReference;
use berth_model::{Text, WindowId};
use clap::Subcommand;

use super::Acting;
use crate::arguments::Placed;
use crate::context::Context;
use crate::details::Details;
use crate::handle::{Handle, ending};
use crate::pages::whole;
use crate::show;
use crate::table::{Column, Table, printable};
use crate::times::Times;

#[derive(Debug, Subcommand)]
pub enum Maintenance {
    /// Plan a window, deciding about every booking in its way
    Plan(plan::Plan),
    /// List the windows of the site
    List {
        /// Those that are over too
        #[arg(long)]
        past: bool,
    },
    /// Show one window and what it occupies
    Show {
        /// The window, by its id or the end of it
        window: Placed<Handle<WindowId>>,
    },
    /// Cancel a window
    Cancel {
        /// The window, by its id or the end of it
        window: Placed<Handle<WindowId>>,
        /// Why
        #[arg(long)]
        reason: Option<Text>,
        #[command(flatten)]
        acting: Acting,
    },
}

pub async fn run(command: Maintenance, context: &Context) -> anyhow::Result<()> {
    let (client, out, times) = (&context.client, &context.out, &context.times);
    match command {
        Maintenance::Plan(plan) => plan::run(plan, context).await,
        Maintenance::List { past } => {
            let from = if past {
                None
            } else {
                Some(times.read_moment("now")?)
            };
            let windows = windows(context, context.site()?, from).await?;
            out.show(&windows, |screen| {
                times.render(&list(&windows.items, times), screen)
            })
        }
        Maintenance::Show { window } => {
            let (site, id) = find(&window, context).await?;
            let window = client.maintenance_window(&site, id).await?;
            out.show(&window, |screen| {
                details(&window, times).render(screen) + &times.footnote()
            })
        }
        Maintenance::Cancel {
            window,
            reason,
            acting,
        } => {
            let (site, id) = find(&window, context).await?;
            let client = acting.client(client);
            let window = client
                .cancel_maintenance(&site, id, &Reason { reason })
                .await?;
            out.show(&window, |_| {
                format!(
                    "Cancelled the maintenance “{}”, {}.\n",
                    printable(window.title.as_str()),
                    when(&window, times)
                )
            })
        }
    }
}

async fn find(
    named: &Placed<Handle<WindowId>>,
    context: &Context,
) -> anyhow::Result<(SiteReference, WindowId)> {
    let site = context.site_of(named)?;
    if let Handle::Id(id) = named.it {
        return Ok((site, id));
    }
    let all = windows(context, &site, None).await?;
    let what = format!("maintenance window in {site}");
    let found = named.it.pick_one(all.items, |window| window.id, &what)?;
    Ok((site, found.id))
}

async fn windows(
    context: &Context,
    site: &SiteReference,
    from: Option<Moment>,
) -> Result<Page<MaintenanceWindow>, Error> {
    whole(async |PageQuery { limit, cursor }| {
        let query = MaintenanceQuery {
            from,
            limit,
            cursor,
        };
        context.client.maintenance(site, &query).await
    })
    .await
}

fn when(window: &MaintenanceWindow, times: &Times) -> String {
    format!(
        "{} {}",
        times.span(window.start, window.end),
        times.zone_name()
    )
}

fn resources(window: &MaintenanceWindow) -> String {
    let mut names: Vec<&str> = window
        .parts
        .iter()
        .map(|part| part.resource.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

fn list(windows: &[MaintenanceWindow], times: &Times) -> Table<5> {
    let columns = [
        Column::left("ID"),
        Column::left("WHEN"),
        Column::left("STATE"),
        Column::left("RESOURCES").shrinks(2),
        Column::left("TITLE").shrinks(1),
    ];
    let mut table = Table::new(columns, "No maintenance is planned.");
    for window in windows {
        table.row([
            ending(window.id),
            times.span(window.start, window.end),
            show::word(window.state),
            resources(window),
            window.title.to_string(),
        ]);
    }
    table
}

fn details(window: &MaintenanceWindow, times: &Times) -> Details {
    let parts = window.parts.iter();
    Details::default()
        .line("Title", &window.title)
        .line("Site", &window.site.name)
        .line("When", times.span(window.start, window.end))
        .line("State", show::word(window.state))
        .lines(
            "Occupies",
            parts.map(|part| {
                format!(
                    "{} {}",
                    part.resource.name,
                    times.span(part.start, part.end)
                )
            }),
        )
        .line("Planned by", show::by(window.created_by.as_ref()))
        .line("Id", window.id)
        .line("Version", window.version)
}
