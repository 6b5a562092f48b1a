//! Extending a reservation, and changing it.
//!
//! The two are kept apart on purpose. `extend` can only move the end to later, so a slip never shortens anything;
//! `set` puts whatever it is told, also an earlier end.

use berth_api::reference::ProjectReference;
use berth_api::reservations::{Extension, ReservationPatch, WantedResource};
use berth_model::Text;
use berth_model::reservation::Privacy;
use clap::{Args, ValueEnum};

use super::{Named, done, find};
use crate::arguments::Wanted;
use crate::commands::book::answers::AnswerArguments;
use crate::commands::book::{AtTheEnd, Lend};
use crate::commands::person::cleared;
use crate::commands::{Acting, Version};
use crate::context::Context;
use crate::failure::usage;
use crate::times::counts_days;

#[derive(Debug, Args)]
pub struct Extend {
    /// The reservation, by its id or the end of it
    id: Named,
    /// How much longer, as in `2h`, counted from its present end
    #[arg(long, value_name = "DURATION", required_unless_present = "until")]
    by: Option<String>,
    /// Until when; refused if that is earlier than its present end
    #[arg(long, value_name = "WHEN", conflicts_with = "by")]
    until: Option<String>,
    #[command(flatten)]
    acting: Acting,
}

pub async fn extend(extend: Extend, context: &Context) -> anyhow::Result<()> {
    let (times, client) = (&context.times, &context.client);
    let extension = match (&extend.by, &extend.until) {
        (None, Some(until)) => Some(Extension::Until(times.read_moment(until)?)),
        (Some(by), _) if !counts_days(by)? => {
            Some(Extension::By(times.read_period(by, &times.now)?))
        }
        _ => None,
    };
    let (site, id) = find::find(&extend.id, context).await?;
    let extension = match (extension, &extend.by) {
        (Some(extension), _) => extension,
        // A day from an end is not always 24 hours, so the end must be known.
        (None, by) => {
            let end = client
                .reservation(&site, id)
                .await?
                .end
                .to_zoned(times.zone().clone());
            Extension::By(times.read_period(by.as_deref().unwrap_or_default(), &end)?)
        }
    };
    let client = extend.acting.client(client);
    let extended = client.extend_reservation(&site, id, extension).await?;
    done("Extended", &extended, context)
}

#[derive(Debug, Args)]
pub struct Set {
    /// The reservation, by its id or the end of it
    id: Named,
    /// A new start
    #[arg(long, value_name = "WHEN")]
    start: Option<String>,
    /// A new end, earlier or later
    #[arg(long, value_name = "WHEN")]
    end: Option<String>,
    /// What it is for
    #[arg(long, short)]
    title: Option<Text>,
    /// All its resources from now on; repeat it for several
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
    /// What becomes of your work that still runs inside it when it ends
    #[arg(long, value_name = "WHAT", value_enum)]
    at_end: Option<AtTheEnd>,
    /// Whether its idle time is lent to opportunistic work
    #[arg(long, value_name = "WHETHER", value_enum)]
    lend: Option<Lend>,
    #[command(flatten)]
    answers: AnswerArguments,
    #[command(flatten)]
    version: Version,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SeenBy {
    /// All members of the site
    Site,
    /// Its owner and the site's admins
    Admins,
}

impl SeenBy {
    pub fn privacy(self) -> Privacy {
        match self {
            SeenBy::Site => Privacy::Site,
            SeenBy::Admins => Privacy::Private,
        }
    }
}

pub async fn set(set: Set, context: &Context) -> anyhow::Result<()> {
    let (times, client) = (&context.times, &context.client);
    let resources: Vec<WantedResource> = set.resources.into_iter().map(Into::into).collect();
    let mut patch = ReservationPatch {
        title: set.title,
        start: set
            .start
            .as_deref()
            .map(|text| times.read_moment(text))
            .transpose()?,
        end: set
            .end
            .as_deref()
            .map(|text| times.read_moment(text))
            .transpose()?,
        resources: if resources.is_empty() {
            None
        } else {
            Some(resources.try_into()?)
        },
        project: cleared(set.project, set.no_project),
        privacy: set.seen_by.map(SeenBy::privacy),
        parameters: None,
        at_end: set.at_end.map(Into::into),
        lends: set.lend.map(Into::into),
    };
    if patch == ReservationPatch::default() && set.answers.is_empty() {
        return Err(usage(
            "nothing to change was said; see `berth reservation set --help`",
        ));
    }
    let (site, id) = find::find(&set.id, context).await?;
    if !set.answers.is_empty() {
        patch.parameters = Some(set.answers.read(client, &site).await?);
    }
    let changed = client
        .change_reservation(&site, id, set.version.if_match(), &patch)
        .await?;
    done("Changed", &changed, context)
}
