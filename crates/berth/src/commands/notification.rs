//! `berth notification`: what you were told.

use berth_api::Page;
use berth_api::events::Position;
use berth_api::list::List;
use berth_api::notifications::{
    MarkRead, Notification as NotificationObject, NotificationPage, NotificationQuery,
};
use berth_api::page::Limit;
use clap::Subcommand;

use crate::context::Context;
use crate::pages::Length;
use crate::table::{Column, Table};
use crate::times::Times;

#[derive(Debug, Subcommand)]
pub enum Notification {
    /// List what you were told, newest first, in all your sites
    List {
        /// Only what you have not read
        #[arg(long)]
        unread: bool,
        #[command(flatten)]
        length: Length,
    },
    /// Mark notifications as read
    Read {
        /// The notifications, by their numbers
        #[arg(value_name = "NUMBER", required_unless_present = "all")]
        numbers: Vec<u64>,
        /// All that there are
        #[arg(long, conflicts_with = "numbers")]
        all: bool,
    },
}

pub async fn run(command: Notification, context: &Context) -> anyhow::Result<()> {
    match command {
        Notification::List { unread, length } => list(unread, length, context).await,
        Notification::Read { numbers, all } => read(numbers, all, context).await,
    }
}

async fn list(unread: bool, length: Length, context: &Context) -> anyhow::Result<()> {
    let mut left = 0;
    let page = length
        .read(async |limit, cursor| {
            let query = NotificationQuery {
                unread,
                limit,
                cursor,
                ..NotificationQuery::default()
            };
            let page = context.client.notifications(&query).await?;
            left = page.unread;
            Ok(Page {
                items: page.items,
                next: page.next,
            })
        })
        .await?;
    let more = length.cut(&page);
    let page = NotificationPage {
        items: page.items,
        next: page.next,
        unread: left,
    };
    let times = &context.times;
    context.out.show(&page, |screen| {
        times.render(&table(&page.items, times), screen)
    })?;
    if let Some(more) = more {
        context.out.note(more);
    }
    if page.unread > 0 {
        context.out.note(format!(
            "You have not read {}. Mark them with: berth notification read NUMBER…, or --all",
            page.unread
        ));
    }
    Ok(())
}

fn table(items: &[NotificationObject], times: &Times) -> Table<5> {
    let columns = [
        Column::right("NUMBER"),
        Column::left("NEW"),
        Column::left("AT"),
        Column::left("SITE"),
        Column::left("WHAT"),
    ];
    let mut table = Table::new(columns, "There is nothing to read.");
    for one in items {
        let site = one.site.as_ref().map(|site| site.name.clone());
        table.row([
            one.number.to_string(),
            if one.read { "" } else { "*" }.to_owned(),
            times.moment(one.at),
            site.unwrap_or_default(),
            times.localised(&one.text),
        ]);
    }
    table
}

/// How many one request may name.
const AT_ONCE: usize = 500;

async fn read(numbers: Vec<u64>, all: bool, context: &Context) -> anyhow::Result<()> {
    let client = &context.client;
    let mut left = None;
    if all {
        // Up to what there is now: what comes while this runs has not been seen by anybody.
        let newest = NotificationQuery {
            limit: Limit::try_from(1)?,
            ..NotificationQuery::default()
        };
        let newest = client.notifications(&newest).await?.items;
        let newest = newest.first().map_or(0, |one| one.number);
        let which = MarkRead {
            up_to: Some(Position::try_from(newest)?),
            numbers: None,
        };
        left = Some(client.mark_notifications_read(&which).await?);
    }
    for some in numbers.chunks(AT_ONCE) {
        let some: Result<Vec<Position>, _> =
            some.iter().map(|one| Position::try_from(*one)).collect();
        let which = MarkRead {
            numbers: Some(List::try_from(some?)?),
            up_to: None,
        };
        left = Some(client.mark_notifications_read(&which).await?);
    }
    match left {
        Some(left) => context
            .out
            .show(&left, |_| format!("Left to read: {}.\n", left.unread)),
        None => Ok(()),
    }
}
