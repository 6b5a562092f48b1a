//! `berth event`: what happens, read back or as it happens.

use std::time::Duration;

use berth_api::client::Error;
use berth_api::events::{Event as EventObject, EventQuery, EventStreamQuery, Position};
use berth_api::page::Limit;
use clap::{Args, Subcommand};
use futures::StreamExt;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{Format, print};
use crate::table::{Column, Table, printable};

#[derive(Debug, Subcommand)]
pub enum Event {
    /// List events in order
    List {
        #[command(flatten)]
        place: Place,
        /// List at most this many
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=500))]
        limit: u16,
    },
    /// Print events as they happen, until you press Ctrl-C
    Watch {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Args)]
pub struct Place {
    /// Only events after the one with this number
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
    /// Events of all your sites, not only of the one at hand
    #[arg(long)]
    everywhere: bool,
}

/// How long to wait before a cut stream is opened again.
const RECONNECT_AFTER: Duration = Duration::from_secs(2);

pub async fn run(command: Event, context: &Context) -> anyhow::Result<()> {
    match command {
        Event::List { place, limit } => list(place, limit, context).await,
        Event::Watch { place } => watch(place, context).await,
    }
}

async fn list(place: Place, limit: u16, context: &Context) -> anyhow::Result<()> {
    let query = EventQuery {
        after: Position::try_from(place.after.unwrap_or(0))?,
        site: if place.everywhere {
            None
        } else {
            context.site_if_any().cloned()
        },
        limit: Limit::try_from(limit)?,
    };
    let page = context.client.events(&query).await?;
    context.out.show(&page, |screen| {
        let columns = [
            Column::right("NUMBER"),
            Column::left("AT"),
            Column::left("KIND"),
            Column::left("SITE"),
            Column::left("SUBJECT"),
        ];
        let mut table = Table::new(columns, "No events.");
        for event in &page.items {
            table.row([
                event.number.to_string(),
                context.times.moment(event.at),
                event.kind.as_str().to_owned(),
                event
                    .site
                    .as_ref()
                    .map(|site| site.name.clone())
                    .unwrap_or_default(),
                event.subject.clone(),
            ]);
        }
        context.times.render(&table, screen)
    })?;
    if page.more {
        context.out.note(format!(
            "There are more; read on with --after {}.",
            page.after
        ));
    }
    Ok(())
}

/// Follows the stream. When the connection is cut it is opened again after the last event that was seen, so that
/// nothing is lost and nothing comes twice.
async fn watch(place: Place, context: &Context) -> anyhow::Result<()> {
    let mut query = EventStreamQuery {
        after: place.after.map(Position::try_from).transpose()?,
        site: if place.everywhere {
            None
        } else {
            context.site_if_any().cloned()
        },
    };
    context.out.note(format!(
        "Times are in {}. Ctrl-C ends.",
        context.times.zone_name()
    ));
    let mut stream = context.client.events_stream(&query).await?;
    loop {
        let cut = loop {
            match stream.next().await {
                Some(Ok(event)) => {
                    query.after = Some(Position::try_from(event.number)?);
                    tell(&event, context)?;
                }
                Some(Err(error @ Error::Problem(_))) => return Err(error.into()),
                Some(Err(error)) => break error.to_string(),
                None => break "the server ended the stream".to_owned(),
            }
        };
        context.out.note(format!("{cut}; connecting again"));
        stream = loop {
            tokio::time::sleep(RECONNECT_AFTER).await;
            match context.client.events_stream(&query).await {
                Ok(stream) => break stream,
                // A server that is on its way back, or a proxy that speaks for it meanwhile.
                Err(error) if Exit::of_client(&error) == Exit::NoAnswer => {}
                Err(Error::Unexpected(_)) => {}
                Err(error) => return Err(error.into()),
            }
        };
    }
}

fn tell(event: &EventObject, context: &Context) -> anyhow::Result<()> {
    match context.out.format {
        Format::Json => context.out.json_line(event),
        Format::Table | Format::Csv => {
            let at = event.at.to_zoned(context.times.zone().clone());
            let site = event.site.as_ref().map_or("", |site| site.name.as_str());
            let line = format!(
                "{:>6}  {}  {:<22}  {site}  {}",
                event.number,
                at.strftime("%F %T"),
                event.kind.as_str(),
                event.subject
            );
            print(&format!("{}\n", printable(&line)))
        }
    }
}
