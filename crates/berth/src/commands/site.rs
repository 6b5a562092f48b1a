//! `berth site`: the tenants, which of them is at hand, and joining one.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use berth_api::members::{JoinAcceptance, JoinRequest, NewJoinRequest, Reason};
use berth_api::reference::SiteReference;
use berth_api::sites::{NewSite, Site as SiteObject, SiteActivity, SitePatch};
use berth_model::branding::Accent;
use berth_model::person::TimeZone;
use berth_model::site::{JoinState, OutsiderView, Role};
use berth_model::{JoinRequestId, Name, Text};
use clap::Subcommand;

use super::{Once, Version};
use crate::arguments::{self, Placed};
use crate::context::Context;
use crate::details::Details;
use crate::handle::{Handle, ending};
use crate::pages::whole;
use crate::remembered::Remembered;
use crate::show;
use crate::table::{Column, Table};
use crate::times::Times;

#[derive(Debug, Subcommand)]
pub enum Site {
    /// List the sites that you may see
    List,
    /// Show what you have to do in each of your sites
    Mine,
    /// Show one site
    Show {
        /// The site; the one at hand, if left out
        site: Option<SiteReference>,
    },
    /// Choose the site that later commands work in
    Use {
        /// The site, by name or id
        site: SiteReference,
    },
    /// Make a site (global admins)
    Create {
        /// What people type: lower-case letters, digits, `-`, `_` and `.`
        name: Name,
        /// What people read
        #[arg(long)]
        title: Text,
        /// Where it is, as in Europe/Rome
        #[arg(long, value_name = "ZONE")]
        time_zone: TimeZone,
        /// What signed-in people who are not members see: nothing, name, catalogue or free-busy
        #[arg(long, value_name = "WHAT", default_value = "nothing", value_parser = arguments::outsider_view)]
        outsiders_see: OutsiderView,
        #[command(flatten)]
        once: Once,
    },
    /// Change a site (its admins)
    Edit {
        /// The site; the one at hand, if left out
        site: Option<SiteReference>,
        /// A new name
        #[arg(long)]
        name: Option<Name>,
        /// What people read
        #[arg(long)]
        title: Option<Text>,
        /// Where it is, as in Europe/Rome
        #[arg(long, value_name = "ZONE")]
        time_zone: Option<TimeZone>,
        /// What signed-in people who are not members see: nothing, name, catalogue or free-busy
        #[arg(long, value_name = "WHAT", value_parser = arguments::outsider_view)]
        outsiders_see: Option<OutsiderView>,
        /// The site's own colour, as in #1f77b4; it must be seen on light and on dark pages
        #[arg(long, value_name = "COLOUR")]
        accent: Option<Accent>,
        /// Take the site's own colour away
        #[arg(long, conflicts_with = "accent")]
        no_accent: bool,
        #[command(flatten)]
        version: Version,
    },
    /// Set the site's logo, or take it away (its admins)
    Logo {
        /// A PNG, WebP or SVG image of at most 128 KiB; `-` is what is piped in
        #[arg(value_name = "FILE", required_unless_present = "remove")]
        file: Option<PathBuf>,
        /// Take the logo away
        #[arg(long, conflicts_with = "file")]
        remove: bool,
        #[command(flatten)]
        version: Version,
    },
    /// Ask to be let into a site
    Join {
        /// The site, by name or id
        site: SiteReference,
        /// A word to the site's admins
        #[arg(long, short)]
        message: Option<Text>,
        #[command(flatten)]
        once: Once,
    },
    /// List the requests to join (the site's admins)
    Requests,
    /// Let someone in who asked to join
    Accept {
        /// The request, by its id or the end of it
        request: Placed<Handle<JoinRequestId>>,
        /// The role to begin with: member or site-admin
        #[arg(long, default_value = "member", value_parser = arguments::role)]
        role: Role,
    },
    /// Turn a request to join down
    Decline {
        /// The request, by its id or the end of it
        request: Placed<Handle<JoinRequestId>>,
        /// Why; kept in the record
        #[arg(long)]
        reason: Option<Text>,
    },
}

pub async fn run(command: Site, context: &Context) -> anyhow::Result<()> {
    let (client, out) = (&context.client, &context.out);
    match command {
        Site::List => {
            let sites = whole(async |query| client.sites(&query).await).await?;
            out.show(&sites, |screen| {
                let columns = [
                    Column::left("NAME"),
                    Column::left("TITLE").shrinks(1),
                    Column::left("YOU ARE"),
                    Column::left("YOU SEE"),
                    Column::left("TIME ZONE"),
                ];
                let mut table = Table::new(
                    columns,
                    "There is no site that you may see. Ask an admin to let you in.",
                );
                for site in &sites.items {
                    table.row([
                        site.name.to_string(),
                        site.title.to_string(),
                        show::word(site.standing),
                        show::word(site.you_see),
                        site.time_zone.as_str().to_owned(),
                    ]);
                }
                table.render(screen)
            })
        }
        Site::Mine => {
            let mine = client.my_sites().await?;
            out.show(&mine, |screen| {
                context
                    .times
                    .render(&mine_table(&mine.items, &context.times), screen)
            })
        }
        Site::Show { site } => {
            let site = client.site(&at_hand(context, site)?).await?;
            out.show(&site, |screen| details(&site, context).render(screen))
        }
        Site::Use { site } => {
            let site = client.site(&site).await?;
            let chosen: SiteReference = site.name.as_str().parse()?;
            Remembered::change(client.base_url(), |account| account.site = Some(chosen))?;
            out.show(&site, |_| {
                format!(
                    "From now on, names without a site are those of {}.\n",
                    site.name
                )
            })
        }
        Site::Create {
            name,
            title,
            time_zone,
            outsiders_see,
            once,
        } => {
            let new = NewSite {
                name,
                title,
                time_zone,
                outsiders_see,
            };
            let made = client.create_site(&new, once.key()).await?;
            out.show(&made.object, |_| {
                format!("Made the site {}.\n", made.object.name)
            })?;
            out.note(format!(
                "Work in it from now on with: berth site use {}",
                made.object.name
            ));
            Ok(())
        }
        Site::Edit {
            site,
            name,
            title,
            time_zone,
            outsiders_see,
            accent,
            no_accent,
            version,
        } => {
            let accent = accent.map(Some).or(no_accent.then_some(None));
            let patch = SitePatch {
                name,
                title,
                time_zone,
                outsiders_see,
                accent,
            };
            let site = at_hand(context, site)?;
            let site = client
                .change_site(&site, version.if_match(), &patch)
                .await?;
            out.show(&site, |_| format!("Changed the site {}.\n", site.name))
        }
        Site::Logo {
            file: None,
            version,
            ..
        } => {
            let site = context.site()?;
            version.client(client).remove_logo(site).await?;
            out.say(&format!("{site} has no logo now.\n"))
        }
        Site::Logo {
            file: Some(file),
            version,
            ..
        } => {
            let content =
                read_image(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let client = version.client(client);
            let site = client.set_logo(context.site()?, content).await?;
            out.show(&site, |_| format!("Set the logo of {}.\n", site.name))
        }
        Site::Join {
            site,
            message,
            once,
        } => {
            let asked = client
                .ask_to_join(&site, &NewJoinRequest { message }, once.key())
                .await?;
            out.show(&asked.object, |_| {
                format!(
                    "Asked to join {}. Its admins see the request and decide.\n",
                    asked.object.site.name
                )
            })
        }
        Site::Requests => {
            let site = context.site()?;
            let requests = whole(async |query| client.join_requests(site, &query).await).await?;
            out.show(&requests, |screen| {
                list_requests(&requests.items, context).render(screen)
            })
        }
        Site::Accept { request, role } => {
            let (site, id) = find(context, &request).await?;
            let request = client
                .accept_join(&site, id, &JoinAcceptance { role })
                .await?;
            out.show(&request, |_| {
                let person = show::person(&request.person);
                format!(
                    "{person} is now a {} of {}.\n",
                    show::word(role),
                    request.site.name
                )
            })
        }
        Site::Decline { request, reason } => {
            let (site, id) = find(context, &request).await?;
            let request = client.decline_join(&site, id, &Reason { reason }).await?;
            out.show(&request, |_| {
                format!(
                    "Turned down the request of {}.\n",
                    show::person(&request.person)
                )
            })
        }
    }
}

/// `-` is what is piped in.
fn read_image(file: &Path) -> std::io::Result<Vec<u8>> {
    if file != Path::new("-") {
        return std::fs::read(file);
    }
    let mut content = Vec::new();
    std::io::stdin().lock().read_to_end(&mut content)?;
    Ok(content)
}

fn at_hand(context: &Context, named: Option<SiteReference>) -> anyhow::Result<SiteReference> {
    match named {
        Some(site) => Ok(site),
        None => context.site().cloned(),
    }
}

fn mine_table(sites: &[SiteActivity], times: &Times) -> Table<6> {
    let columns = [
        Column::left("NAME"),
        Column::right("SESSIONS"),
        Column::right("WORKLOADS"),
        Column::right("RESERVATIONS"),
        Column::right("TO APPROVE"),
        Column::left("LAST ACTIVITY"),
    ];
    let mut table = Table::new(
        columns,
        "You are a member of no site. `berth site join SITE` asks to be let in.",
    );
    for one in sites {
        let last = one.last_activity.map(|at| times.moment_and_distance(at));
        table.row([
            one.site.name.clone(),
            one.sessions.to_string(),
            one.workloads.to_string(),
            one.reservations.to_string(),
            one.approvals.to_string(),
            last.unwrap_or_default(),
        ]);
    }
    table
}

fn details(site: &SiteObject, context: &Context) -> Details {
    Details::default()
        .line("Name", &site.name)
        .line("Title", &site.title)
        .line("Time zone", site.time_zone.as_str())
        .line("Outsiders see", show::word(site.outsiders_see))
        .maybe("Accent", site.accent.as_ref())
        .maybe("Logo", site.logo.as_ref())
        .line("You are", show::word(site.standing))
        .line("You see", show::word(site.you_see))
        .line("Made", context.times.moment(site.created_at))
        .line("Id", site.id)
        .line("Version", site.version)
}

fn list_requests(requests: &[JoinRequest], context: &Context) -> Table<5> {
    let columns = [
        Column::left("ID"),
        Column::left("WHO"),
        Column::left("ASKED"),
        Column::left("STATE"),
        Column::left("MESSAGE").shrinks(1),
    ];
    let mut table = Table::new(columns, "Nobody asks to join.");
    for request in requests {
        table.row([
            ending(request.id),
            show::person(&request.person),
            context.times.relative(request.created_at),
            show::word(request.state),
            request
                .message
                .as_ref()
                .map(Text::to_string)
                .unwrap_or_default(),
        ]);
    }
    table
}

/// The request that was meant. Of those with the same ending one that waits is meant rather than a decided one.
async fn find(
    context: &Context,
    named: &Placed<Handle<JoinRequestId>>,
) -> anyhow::Result<(SiteReference, JoinRequestId)> {
    let site = context.site_of(named)?;
    if let Handle::Id(id) = named.it {
        return Ok((site, id));
    }
    let all = whole(async |query| context.client.join_requests(&site, &query).await).await?;
    let (waiting, decided): (Vec<_>, Vec<_>) = all
        .items
        .into_iter()
        .partition(|request| request.state == JoinState::Waiting);
    let found = match named.it.pick(waiting, |request| request.id)? {
        Some(request) => request,
        None => named.it.pick_one(
            decided,
            |request| request.id,
            &format!("request to join {site}"),
        )?,
    };
    Ok((site, found.id))
}
