//! `berth env`: managed environments of a site, read-only and in versions.

pub mod prepare;

use std::time::Duration;

use berth_api::environments::{Environment, EnvironmentChange, EnvironmentPhase, NewEnvironment};
use berth_api::reference::{EnvironmentReference, SiteReference};
use berth_model::Name;
use berth_model::environment::Package;
use clap::{Args, Subcommand};

use super::Once;
use crate::context::Context;
use crate::details::Details;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::pages::whole;
use crate::show;
use crate::table::{Column, Table, printable};
use crate::times::Times;

#[derive(Debug, Subcommand)]
pub enum Env {
    /// List the environments of the site
    List,
    /// Show one: a version, or the newest that is ready
    Show {
        /// The environment, such as `torch`, `torch@2` or `~ada/torch`
        environment: EnvironmentReference,
    },
    /// Make an environment of one's own, or as an admin one for everybody
    Create(Create),
    /// Make one on top of another: it has all of that, and what you add
    Clone(Extend),
    /// Make the next version; those that there are stay as they are
    Update(Update),
    /// Let nothing new begin in one: in one version, or in all where none is named
    Delete {
        /// The environment, such as `torch@2`
        environment: EnvironmentReference,
    },
    /// Show the end of what was said while it was made
    Log {
        /// The environment, such as `torch@2`
        environment: EnvironmentReference,
    },
    /// Make an environment that Berth brings along, without a server, for `prepared_environments`
    Prepare(prepare::Prepare),
}

#[derive(Debug, Args)]
pub struct Create {
    /// What to call it: lower-case letters, digits, `-`, `_` and `.`
    name: Name,
    /// Packages, such as `numpy` or `torch>=2.1`
    packages: Vec<Package>,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
pub struct Extend {
    /// What to extend, such as `torch` or `torch@2`
    base: EnvironmentReference,
    /// What to call the new one
    name: Name,
    /// What to add, such as `numpy` or `dask>=2024`
    packages: Vec<Package>,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
pub struct How {
    /// For everybody in the site; for its admins
    #[arg(long)]
    curated: bool,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    once: Once,
}

#[derive(Debug, Args)]
pub struct Update {
    /// The environment, such as `torch`
    environment: EnvironmentReference,
    /// Packages to add, or to ask for in another version
    #[arg(long = "add", value_name = "PACKAGE")]
    add: Vec<Package>,
    /// Packages to leave out
    #[arg(long = "remove", value_name = "PACKAGE")]
    remove: Vec<Package>,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    once: Once,
}

#[derive(Debug, Args)]
pub struct Wait {
    /// Stay until it is ready, and show how far it is
    #[arg(long)]
    wait: bool,
}

pub async fn run(command: Env, context: &Context) -> anyhow::Result<()> {
    let (client, out, times) = (&context.client, &context.out, &context.times);
    let site = context.site()?;
    match command {
        Env::List => {
            let all = whole(async |query| client.environments(site, &query).await).await?;
            out.show(&all, |screen| {
                times.render(&list(&all.items, times), screen)
            })
        }
        Env::Show { environment } => {
            let one = client.environment(site, &environment).await?;
            out.show(&one, |screen| {
                details(&one, times).render(screen) + &times.footnote()
            })
        }
        Env::Create(Create {
            name,
            packages,
            how,
        }) => make(context, site, name, None, packages, how).await,
        Env::Clone(Extend {
            base,
            name,
            packages,
            how,
        }) => make(context, site, name, Some(base), packages, how).await,
        Env::Update(update) => {
            let change = EnvironmentChange {
                add: update.add,
                remove: update.remove,
            };
            let made = client
                .change_environment(site, &update.environment, &change, update.once.key())
                .await?
                .object;
            follow(context, site, made, &update.wait).await
        }
        Env::Delete { environment } => {
            client.remove_environment(site, &environment).await?;
            out.say(&format!("Nothing new begins in {environment}.\n"))
        }
        Env::Log { environment } => {
            let log = client.environment_log(site, &environment).await?;
            out.show(&log, |_| {
                let lines = log.log.lines().map(|line| format!("{}\n", printable(line)));
                lines.collect()
            })
        }
        Env::Prepare(command) => prepare::run(&command).await,
    }
}

async fn make(
    context: &Context,
    site: &SiteReference,
    name: Name,
    base: Option<EnvironmentReference>,
    packages: Vec<Package>,
    how: How,
) -> anyhow::Result<()> {
    let new = NewEnvironment {
        name,
        curated: how.curated,
        base,
        packages,
    };
    let made = context
        .client
        .make_environment(site, &new, how.once.key())
        .await?
        .object;
    follow(context, site, made, &how.wait).await
}

/// How often somebody who waits is told.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Tells what was begun, or stays with it to its end.
async fn follow(
    context: &Context,
    site: &SiteReference,
    mut made: Environment,
    wait: &Wait,
) -> anyhow::Result<()> {
    let out = &context.out;
    let mut told = String::new();
    let is_on_its_way = |one: &Environment| {
        matches!(
            one.state,
            EnvironmentPhase::Waiting | EnvironmentPhase::Building
        )
    };
    while wait.wait && is_on_its_way(&made) {
        let now = how_far(&made);
        if now != told {
            out.note(&now);
            told = now;
        }
        tokio::time::sleep(LOOK_EVERY).await;
        made = context.client.environment(site, &made.id.into()).await?;
    }
    out.show(&made, |_| outcome(&made))?;
    match made.state {
        EnvironmentPhase::Failed | EnvironmentPhase::Retired if wait.wait => {
            let message = format!("{} was not made", made.reference);
            Err(Failure::new(Exit::Failed, message).into())
        }
        _ => Ok(()),
    }
}

fn how_far(one: &Environment) -> String {
    let saying = one.saying.as_deref().map(printable).unwrap_or_default();
    match one.state {
        EnvironmentPhase::Waiting => "waiting for room".to_owned(),
        _ => format!("{:>3} %  {saying}", one.percent),
    }
}

fn outcome(one: &Environment) -> String {
    let reference = &one.reference;
    match one.state {
        EnvironmentPhase::Ready => format!("{reference} is ready at {}.\n", one.path),
        EnvironmentPhase::Failed => format!(
            "{reference} could not be made: {}. `berth env log {reference}` says more.\n",
            printable(one.trouble.as_deref().unwrap_or("nobody knows why"))
        ),
        EnvironmentPhase::Retired => format!("{reference} is not wanted any more.\n"),
        _ => {
            format!("{reference} is being made; `berth env show {reference}` says how far it is.\n")
        }
    }
}

fn list(all: &[Environment], times: &Times) -> Table<6> {
    let columns = [
        Column::left("ENVIRONMENT"),
        Column::left("STATE"),
        Column::left("ON TOP OF"),
        Column::left("PACKAGES").shrinks(1),
        Column::right("SIZE"),
        Column::left("MADE"),
    ];
    let mut table = Table::new(columns, "The site has no environments.");
    for one in all {
        let packages: Vec<&str> = one.packages.iter().map(Package::as_str).collect();
        table.row([
            one.reference.clone(),
            state(one),
            one.base.clone().unwrap_or_default(),
            packages.join(" "),
            one.bytes.map(size).unwrap_or_default(),
            times.relative(one.created_at),
        ]);
    }
    table
}

fn state(one: &Environment) -> String {
    match one.state {
        EnvironmentPhase::Building => format!("building {} %", one.percent),
        other => show::word(other),
    }
}

fn size(bytes: u64) -> String {
    let mib = bytes / (1 << 20);
    match mib {
        0..1024 => format!("{mib} MiB"),
        _ => format!("{:.1} GiB", mib as f64 / 1024.0),
    }
}

fn details(one: &Environment, times: &Times) -> Details {
    Details::default()
        .line("Environment", &one.reference)
        .line("Site", &one.site.name)
        .line("State", state(one))
        .maybe("Saying", one.saying.as_ref())
        .maybe("Trouble", one.trouble.as_ref())
        .maybe("On top of", one.base.as_ref())
        .lines("Packages", one.packages.iter().map(ToString::to_string))
        .maybe("Python", one.python.as_ref())
        .maybe("Size", one.bytes.map(size))
        .line("Path", &one.path)
        .maybe("Owner", one.owner.as_ref().map(show::person))
        .line("Made", times.moment_and_distance(one.created_at))
        .maybe("Workload", one.workload)
        .line("Id", one.id)
}
