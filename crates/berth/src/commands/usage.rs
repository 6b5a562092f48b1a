//! `berth usage`: how much of a site was used, by whom and when, and what became of bookings.

mod draw;
mod table;

use berth_api::reference::TypeReference;
use berth_api::usage::{AllUsageQuery, Bucket, UsageQuery};
use clap::{Args, ValueEnum};

use crate::context::Context;
use crate::output::{Format, print};

#[derive(Debug, Args)]
pub struct Usage {
    /// From when on; 30 days before the end, if left out
    #[arg(long, value_name = "WHEN")]
    from: Option<String>,
    /// Until when; now, if left out
    #[arg(long, value_name = "WHEN")]
    to: Option<String>,
    /// How the time is cut, by the site's clock
    #[arg(long, value_name = "STEP", default_value = "day")]
    bucket: Step,
    /// Count only resources of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<TypeReference>,
    /// Only your own use, which members of a site may see
    #[arg(long)]
    mine: bool,
    /// The sums of every site (global admins)
    #[arg(long, conflicts_with_all = ["bucket", "kind", "mine"])]
    all_sites: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Step {
    Hour,
    Day,
    Week,
}

impl From<Step> for Bucket {
    fn from(step: Step) -> Bucket {
        match step {
            Step::Hour => Bucket::Hour,
            Step::Day => Bucket::Day,
            Step::Week => Bucket::Week,
        }
    }
}

pub async fn run(usage: Usage, context: &Context) -> anyhow::Result<()> {
    let (client, out, times) = (&context.client, &context.out, &context.times);
    let moment =
        |text: &Option<String>| text.as_deref().map(|at| times.read_moment(at)).transpose();
    let (from, to) = (moment(&usage.from)?, moment(&usage.to)?);
    if usage.all_sites {
        let found = client.all_usage(&AllUsageQuery { from, to }).await?;
        return match out.format {
            Format::Csv => print(&table::sites_as_csv(&found)?),
            _ => out.show(&found, |screen| draw::sites(&found, times, screen)),
        };
    }
    let query = UsageQuery {
        from,
        to,
        bucket: usage.bucket.into(),
        kind: usage.kind,
        mine: usage.mine,
    };
    let found = client.usage(context.site()?, &query).await?;
    match out.format {
        Format::Csv => print(&table::as_csv(&found)?),
        _ => out.show(&found, |screen| draw::site(&found, screen)),
    }
}
