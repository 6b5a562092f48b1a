//! `berth series`: bookings made together by one rule. `berth book --every` makes them.

use berth_api::Page;
use berth_api::client::Error;
use berth_api::members::Reason;
use berth_api::moment::Moment;
use berth_api::page::PageQuery;
use berth_api::reference::{PersonReference, ProjectReference, SiteReference};
use berth_api::reservations::WantedResource;
use berth_api::series::{
    Scope, ScopeQuery, Series as SeriesObject, SeriesInstance, SeriesPatch, SeriesQuery, TimeOfDay,
};
use berth_model::{ReservationId, SeriesId, Text};
use clap::{Args, Subcommand};

use super::Version;
use super::book::repeat::left_out;
use super::person::cleared;
use super::reservation::SeenBy;
use crate::arguments::{Placed, Wanted};
use crate::context::Context;
use crate::details::Details;
use crate::failure::usage;
use crate::handle::{Handle, ending};
use crate::pages::whole;
use crate::show;
use crate::table::{Column, Screen, Table, printable};
use crate::times::Times;

/// A series by its id, by the end of its id, and with or without its site.
type Named = Placed<Handle<SeriesId>>;

#[derive(Debug, Subcommand)]
pub enum Series {
    /// List the series of the site
    List {
        /// Those of this person
        #[arg(long, value_name = "LOGIN")]
        owner: Option<PersonReference>,
        /// Those that are over too
        #[arg(long)]
        past: bool,
    },
    /// Show one series with its instances
    Show {
        /// The series, by its id or the end of it
        id: Named,
    },
    /// Change a series: its time of day, resources, title and so on
    Change(Change),
    /// Cancel all of a series that is to come, or a part of it
    Cancel {
        /// The series, by its id or the end of it
        id: Named,
        #[command(flatten)]
        part: PartArguments,
        /// Why; kept in the history of each instance
        #[arg(long)]
        reason: Option<Text>,
    },
}

/// All that is to come, if nothing is said.
#[derive(Debug, Args)]
pub struct PartArguments {
    /// Only this instance, by its reservation's id or the end of it
    #[arg(long, value_name = "INSTANCE", conflicts_with = "following")]
    this: Option<Handle<ReservationId>>,
    /// This instance and those after it
    #[arg(long, value_name = "INSTANCE")]
    following: Option<Handle<ReservationId>>,
}

#[derive(Debug, Args)]
pub struct Change {
    /// The series, by its id or the end of it
    id: Named,
    #[command(flatten)]
    part: PartArguments,
    /// When each instance starts, on the site's clock, as in `09:00`
    #[arg(long, value_name = "TIME")]
    at: Option<TimeOfDay>,
    /// How long each instance lasts, as in `3h` or `90m`
    #[arg(long = "for", value_name = "DURATION")]
    length: Option<String>,
    /// What it is for
    #[arg(long, short)]
    title: Option<Text>,
    /// All resources of each instance from now on; repeat it for several
    #[arg(long = "resource", value_name = "RESOURCE[:AMOUNT]")]
    resources: Vec<Wanted>,
    /// The project it belongs to
    #[arg(long)]
    project: Option<ProjectReference>,
    /// Take it out of its project
    #[arg(long, conflicts_with = "project")]
    no_project: bool,
    /// Who in the site sees more than that it is taken
    #[arg(long, value_name = "WHO")]
    seen_by: Option<SeenBy>,
    #[command(flatten)]
    version: Version,
}

pub async fn run(command: Series, context: &Context) -> anyhow::Result<()> {
    let (client, out, times) = (&context.client, &context.out, &context.times);
    match command {
        Series::List { owner, past } => {
            let from = if past {
                None
            } else {
                Some(times.read_moment("now")?)
            };
            let all = all(context, context.site()?, owner, from).await?;
            out.show(&all, |screen| {
                times.render(&list(&all.items, times), screen)
            })
        }
        Series::Show { id } => {
            let (site, id) = find(&id, context).await?;
            let series = client.series(&site, id).await?;
            out.show(&series, |screen| in_full(&series, times, screen))
        }
        Series::Change(command) => change(command, context).await,
        Series::Cancel { id, part, reason } => {
            let (site, id) = find(&id, context).await?;
            let scope = part.scope(&site, id, context).await?;
            let reason = Reason { reason };
            let series = client.cancel_series(&site, id, scope, &reason).await?;
            out.show(&series, |screen| {
                let what = match scope.scope {
                    Scope::All => "what is to come of",
                    Scope::Following => "that instance and those after it of",
                    Scope::This => "one instance of",
                };
                format!("Cancelled {what} “{}”.\n", printable(series.title.as_str()))
                    + &untouched(&series, times, screen)
            })
        }
    }
}

async fn change(command: Change, context: &Context) -> anyhow::Result<()> {
    let times = &context.times;
    let resources: Vec<WantedResource> = command.resources.into_iter().map(Into::into).collect();
    let patch = SeriesPatch {
        title: command.title,
        at: command.at,
        length: command
            .length
            .as_deref()
            .map(|text| times.read_period(text, &times.now))
            .transpose()?,
        resources: if resources.is_empty() {
            None
        } else {
            Some(resources.try_into()?)
        },
        project: cleared(command.project, command.no_project),
        privacy: command.seen_by.map(SeenBy::privacy),
    };
    if patch == SeriesPatch::default() {
        return Err(usage(
            "nothing to change was said; see `berth series change --help`",
        ));
    }
    let (site, id) = find(&command.id, context).await?;
    let scope = command.part.scope(&site, id, context).await?;
    let version = command.version.if_match();
    let changed = context
        .client
        .change_series(&site, id, version, scope, &patch)
        .await?;
    context.out.show(&changed, |screen| {
        let said = if changed.id == id {
            format!("Changed “{}”.\n", printable(changed.title.as_str()))
        } else {
            format!(
                "Changed what follows; it is a series of its own now, {}.\n",
                ending(changed.id)
            )
        };
        said + &instances(&changed, times, screen) + &untouched(&changed, times, screen)
    })
}

impl PartArguments {
    /// The part as the API takes it; the end of an instance's id is looked up among those of the series.
    async fn scope(
        &self,
        site: &SiteReference,
        series: SeriesId,
        context: &Context,
    ) -> anyhow::Result<ScopeQuery> {
        let (scope, named) = match (&self.this, &self.following) {
            (Some(this), _) => (Scope::This, this),
            (None, Some(following)) => (Scope::Following, following),
            (None, None) => return Ok(ScopeQuery::default()),
        };
        let instance = match named {
            Handle::Id(id) => *id,
            Handle::Ending(_) => {
                let series = context.client.series(site, series).await?;
                let instances = series.instances.unwrap_or_default();
                let found =
                    named.pick_one(instances, |one| one.reservation, "instance of the series")?;
                found.reservation
            }
        };
        Ok(ScopeQuery {
            scope,
            instance: Some(instance),
        })
    }
}

async fn find(named: &Named, context: &Context) -> anyhow::Result<(SiteReference, SeriesId)> {
    let site = context.site_of(named)?;
    if let Handle::Id(id) = named.it {
        return Ok((site, id));
    }
    let all = all(context, &site, None, None).await?;
    let what = format!("series in {site}");
    let found = named.it.pick_one(all.items, |series| series.id, &what)?;
    Ok((site, found.id))
}

async fn all(
    context: &Context,
    site: &SiteReference,
    owner: Option<PersonReference>,
    from: Option<Moment>,
) -> Result<Page<SeriesObject>, Error> {
    whole(async |PageQuery { limit, cursor }| {
        let query = SeriesQuery {
            owner: owner.clone(),
            from,
            limit,
            cursor,
        };
        context.client.all_series(site, &query).await
    })
    .await
}

fn list(all: &[SeriesObject], times: &Times) -> Table<6> {
    let columns = [
        Column::left("ID"),
        Column::left("OWNER"),
        Column::left("RULE").shrinks(2),
        Column::left("FIRST"),
        Column::left("ENDS"),
        Column::left("TITLE").shrinks(1),
    ];
    let nothing =
        "There are no series. `berth book RESOURCE --for 2h --every week --count 10` makes one.";
    let mut table = Table::new(columns, nothing);
    for series in all {
        table.row([
            ending(series.id),
            series.owner.login.clone(),
            series.rule.to_string(),
            first(series),
            times.moment(series.ends),
            series.title.to_string(),
        ]);
    }
    table
}

/// When it begins, as the clocks of its site show it.
fn first(series: &SeriesObject) -> String {
    series.first.strftime("%Y-%m-%d %H:%M").to_string()
}

fn in_full(series: &SeriesObject, times: &Times, screen: Screen) -> String {
    let details = Details::default()
        .line("Title", &series.title)
        .line("Rule", &series.rule)
        .line(
            "First",
            format!("{} {}", first(series), series.time_zone.as_str()),
        )
        .line("Each for", format!("{:#}", series.length.duration()))
        .lines("Except", series.except.iter().map(ToString::to_string))
        .line("Owner", show::person(&series.owner))
        .line("Site", &series.site.name)
        .line("Seen by", show::seen_by(series.privacy))
        .line("Made", times.moment(series.created_at))
        .line("Id", series.id)
        .line("Version", series.version);
    let skipped = series.skipped.as_deref().unwrap_or_default();
    format!(
        "{}\n{}{}",
        details.render(screen),
        instances(series, times, screen),
        left_out(skipped, times, screen)
    )
}

fn instances(series: &SeriesObject, times: &Times, screen: Screen) -> String {
    let columns = [
        Column::left("ID"),
        Column::left("WHEN"),
        Column::left("STATE"),
        Column::left("REMARK"),
    ];
    let mut table = Table::new(columns, "It has no instances.");
    for one in series.instances.iter().flatten() {
        table.row([
            ending(one.reservation),
            times.span(one.start, one.end),
            one.state.to_string(),
            remark(one).to_owned(),
        ]);
    }
    times.render(&table, screen)
}

fn remark(instance: &SeriesInstance) -> &'static str {
    if instance.differs { "differs" } else { "" }
}

/// What a change left alone, said so that nobody has to find out.
fn untouched(series: &SeriesObject, times: &Times, screen: Screen) -> String {
    if series.left_alone.is_empty() {
        return String::new();
    }
    let columns = [Column::left("LEFT ALONE"), Column::left("WHEN")];
    let mut table = Table::new(columns, "Nothing was left alone.");
    for id in &series.left_alone {
        let mut instances = series.instances.iter().flatten();
        let when = instances.find(|one| one.reservation == *id);
        let when = when.map(|one| times.span(one.start, one.end));
        table.row([ending(id), when.unwrap_or_default()]);
    }
    times.render(&table, screen)
}
