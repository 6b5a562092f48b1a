//! `berth closure`: the calendars of a site's holidays and blackouts.

use std::path::PathBuf;

use berth_api::closures::{Closure as ClosureObject, ClosureDetails, NewClosure};
use berth_api::reference::ClosureReference;
use berth_model::Name;
use berth_model::closure::ClosureKind;
use clap::{Args, Subcommand};

use super::types::read_text;
use super::{Once, Version};
use crate::arguments::{self, Placed};
use crate::context::Context;
use crate::details::Details;
use crate::pages::whole;
use crate::show;
use crate::table::{Column, Table, printable};
use crate::times::Times;

#[derive(Debug, Subcommand)]
pub enum Closure {
    /// List the closure calendars of the site
    List,
    /// Show one calendar and its closed times
    Show {
        /// The calendar, by name or id
        calendar: Placed<ClosureReference>,
    },
    /// Bring in an iCalendar file, or the address of one, which is then read every hour
    Add(Add),
    /// Read a calendar again now
    Refresh {
        /// The calendar, by name or id
        calendar: Placed<ClosureReference>,
    },
    /// Remove a calendar; its times are open again at once
    Remove {
        /// The calendar, by name or id
        calendar: Placed<ClosureReference>,
        #[command(flatten)]
        version: Version,
    },
}

#[derive(Debug, Args)]
pub struct Add {
    /// What to call it: lower-case letters, digits, `-`, `_` and `.`
    name: Placed<Name>,
    /// What follows from it: `holidays` or `blackouts`, during which only admins can book
    #[arg(long, value_parser = arguments::closure_kind)]
    kind: ClosureKind,
    /// An .ics file; `-` reads the standard input
    #[arg(long, value_name = "FILE", required_unless_present = "address")]
    file: Option<PathBuf>,
    /// An https address
    #[arg(long, value_name = "URL", conflicts_with = "file")]
    address: Option<String>,
    #[command(flatten)]
    once: Once,
}

pub async fn run(command: Closure, context: &Context) -> anyhow::Result<()> {
    let (client, out, times) = (&context.client, &context.out, &context.times);
    match command {
        Closure::List => {
            let site = context.site()?;
            let closures = whole(async |query| client.closures(site, &query).await).await?;
            out.show(&closures, |screen| {
                times.render(&list(&closures.items, times), screen)
            })
        }
        Closure::Show { calendar } => {
            let site = context.site_of(&calendar)?;
            let closure = client.closure(&site, &calendar.it).await?;
            out.show(&closure, |screen| {
                details(&closure, times).render(screen) + &times.footnote()
            })
        }
        Closure::Add(add) => {
            let site = context.site_of(&add.name)?;
            let new = NewClosure {
                name: add.name.it,
                kind: add.kind,
                file: add.file.as_deref().map(read_text).transpose()?,
                address: add.address,
            };
            let made = client
                .add_closure(&site, &new, add.once.key())
                .await?
                .object;
            out.show(&made, |_| told("Brought in", &made))
        }
        Closure::Refresh { calendar } => {
            let site = context.site_of(&calendar)?;
            let closure = client.refresh_closure(&site, &calendar.it).await?;
            out.show(&closure, |_| match &closure.closure.trouble {
                None => told("Read", &closure),
                Some(trouble) => format!(
                    "Could not read {}: {}. Its times stay as they were {}.\n",
                    closure.closure.name,
                    printable(trouble),
                    times.relative(closure.closure.read_at)
                ),
            })
        }
        Closure::Remove { calendar, version } => {
            let site = context.site_of(&calendar)?;
            let client = version.client(client);
            client.remove_closure(&site, &calendar.it).await?;
            out.say(&format!("Removed the closure calendar {}.\n", calendar.it))
        }
    }
}

fn told(what: &str, closure: &ClosureDetails) -> String {
    let mut text = format!(
        "{what} {} with {} closed times.\n",
        closure.closure.name,
        closure.closed.len()
    );
    for note in &closure.closure.notes {
        text += &format!("{}\n", printable(note));
    }
    text
}

fn list(closures: &[ClosureObject], times: &Times) -> Table<5> {
    let columns = [
        Column::left("NAME"),
        Column::left("KIND"),
        Column::left("FROM").shrinks(1),
        Column::left("READ"),
        Column::left("TROUBLE").shrinks(2),
    ];
    let mut table = Table::new(columns, "The site has no closure calendars.");
    for closure in closures {
        table.row([
            closure.name.to_string(),
            show::word(closure.kind),
            closure.address.clone().unwrap_or_default(),
            times.relative(closure.read_at),
            closure.trouble.clone().unwrap_or_default(),
        ]);
    }
    table
}

fn details(closure: &ClosureDetails, times: &Times) -> Details {
    let about = &closure.closure;
    let now = times.now.timestamp();
    let to_come = closure.closed.iter().filter(|closed| closed.end > now);
    Details::default()
        .line("Name", &about.name)
        .line("Site", &about.site.name)
        .line("Kind", show::word(about.kind))
        .maybe("Address", about.address.as_ref())
        .line("Read", times.moment_and_distance(about.read_at))
        .maybe("Trouble", about.trouble.as_ref())
        .lines("Notes", about.notes.iter().cloned())
        .lines(
            "Closed",
            to_come
                .map(|closed| format!("{} {}", times.span(closed.start, closed.end), closed.title)),
        )
        .line("Id", about.id)
        .line("Version", about.version)
}
