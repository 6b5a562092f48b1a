//! `berth feed`: what calendar programs subscribe to.

use berth_api::feeds::{Feed as FeedObject, NewFeed};
use berth_api::reference::{ResourceReference, TypeReference};
use berth_model::{FeedId, Text};
use clap::Subcommand;

use super::Once;
use crate::arguments::Placed;
use crate::context::Context;
use crate::handle::{Handle, ending};
use crate::pages::whole;
use crate::table::{Column, Table};

#[derive(Debug, Subcommand)]
pub enum Feed {
    /// List your feeds
    List,
    /// Make a feed, of your own bookings or of what you name; its address is shown this once
    Create {
        /// Where it is read, so that you know later which one to revoke
        label: Text,
        /// All bookings and maintenance of the site
        #[arg(long, conflicts_with_all = ["of_type", "resource"])]
        whole_site: bool,
        /// What occupies the resources of this type
        #[arg(long = "type", value_name = "TYPE", conflicts_with = "resource")]
        of_type: Option<Placed<TypeReference>>,
        /// What occupies this resource, or part of it
        #[arg(long, value_name = "RESOURCE")]
        resource: Option<Placed<ResourceReference>>,
        #[command(flatten)]
        once: Once,
    },
    /// Make a feed's address lead nowhere, at once
    Revoke {
        /// The feed, by its id or the end of it
        feed: Handle<FeedId>,
    },
}

pub async fn run(command: Feed, context: &Context) -> anyhow::Result<()> {
    let (client, out) = (&context.client, &context.out);
    match command {
        Feed::List => {
            let feeds = whole(async |query| client.my_feeds(&query).await).await?;
            out.show(&feeds, |screen| {
                context.times.render(&list(&feeds.items, context), screen)
            })
        }
        Feed::Create {
            label,
            whole_site,
            of_type,
            resource,
            once,
        } => {
            let site = match (&of_type, &resource) {
                (Some(kind), _) => Some(context.site_of(kind)?),
                (None, Some(resource)) => Some(context.site_of(resource)?),
                (None, None) if whole_site => Some(context.site()?.clone()),
                (None, None) => None,
            };
            let new = NewFeed {
                label,
                site,
                kind: of_type.map(|kind| kind.it),
                resource: resource.map(|resource| resource.it),
            };
            let made = client.create_feed(&new, once.key()).await?.object;
            let Some(address) = &made.address else {
                let said =
                    "This key made the feed before; its address was shown then, and is not kept.\n";
                return out.show(&made, |_| said.to_owned());
            };
            let address = whole_address(address.expose(), client.base_url());
            out.show(&made, |_| format!("{address}\n"))?;
            out.note(format!(
                "Made the feed {}. Subscribe to this address in your calendar program; whoever has it can read the \
                 feed, and it is shown this once.",
                made.feed.label
            ));
            Ok(())
        }
        Feed::Revoke { feed } => {
            let id = match feed {
                Handle::Id(id) => id,
                Handle::Ending(_) => {
                    let all = whole(async |query| client.my_feeds(&query).await)
                        .await?
                        .items;
                    feed.pick_one(all, |feed| feed.id, "feed of yours")?.id
                }
            };
            client.revoke_feed(id).await?;
            out.say(&format!("Revoked the feed {id}.\n"))
        }
    }
}

/// A server that does not know its own address gives the path on its host; we know the host.
fn whole_address(address: &str, base_url: &str) -> String {
    if !address.starts_with('/') {
        return address.to_owned();
    }
    let host_begins = base_url.find("://").map_or(0, |at| at + 3);
    let host_ends = base_url[host_begins..].find('/').map(|at| host_begins + at);
    let origin = host_ends.map_or(base_url, |end| &base_url[..end]);
    format!("{origin}{address}")
}

/// What a feed shows, in words.
fn shows(feed: &FeedObject) -> String {
    match (&feed.site, &feed.kind, &feed.resource) {
        (None, ..) => "my bookings".to_owned(),
        (Some(site), Some(kind), _) => format!("{}/{} (type)", site.name, kind.name),
        (Some(site), None, Some(resource)) => format!("{}/{}", site.name, resource.name),
        (Some(site), None, None) => format!("all of {}", site.name),
    }
}

fn list(feeds: &[FeedObject], context: &Context) -> Table<5> {
    let columns = [
        Column::left("ID"),
        Column::left("LABEL").shrinks(1),
        Column::left("SHOWS").shrinks(2),
        Column::left("LAST READ"),
        Column::left("MADE"),
    ];
    let mut table = Table::new(
        columns,
        "There are no feeds. `berth feed create LABEL` makes one of your bookings.",
    );
    for feed in feeds {
        let read = feed.last_read_at.map(|at| context.times.relative(at));
        table.row([
            ending(feed.id),
            feed.label.to_string(),
            shows(feed),
            read.unwrap_or_else(|| "never".to_owned()),
            context.times.moment(feed.created_at),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_an_address_on_the_server_s_host() {
        let whole = "https://lab.example/berth/feeds/x.ics";
        assert_eq!(whole_address(whole, "http://localhost:8080"), whole);
        let path = "/berth/feeds/x.ics";
        assert_eq!(whole_address(path, "https://lab.example/berth"), whole);
        let bare = whole_address("/feeds/x.ics", "http://localhost:8080");
        assert_eq!(bare, "http://localhost:8080/feeds/x.ics");
    }
}
