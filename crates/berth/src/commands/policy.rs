//! `berth policy`: what is asked of bookings, in a site and in all of them.

mod read;
mod test;

use std::path::PathBuf;

use berth_api::headers::IfMatch;
use berth_api::policies::{
    GlobalPolicyChangeQuery, GlobalScope, NewPolicy, PolicyChange, PolicyChangeQuery, PolicyList,
    PolicyVersion,
};
use berth_model::policy::{Part, Policy as Rules, Scope};
use berth_model::site::Role;
use berth_model::{Name, Text};
use clap::{Args, Subcommand};

use crate::arguments;
use crate::context::Context;
use crate::details::Details;
use crate::failure::not_found;
use crate::handle::ending;
use crate::show;
use crate::table::{Column, Screen, Table, printable};
use crate::times::Times;
use read::Pair;

#[derive(Debug, Subcommand)]
pub enum Policy {
    /// List what holds in the site, ceilings and defaults of all sites included
    List {
        /// Only the ceilings and defaults of all sites (global admins)
        #[arg(long)]
        global: bool,
    },
    /// Show one policy, rule by rule
    Show {
        #[command(flatten)]
        of: Of,
    },
    /// Set a policy, from a file or rule by rule as in `length_max=12h`
    Set(Set),
    /// Take a policy away
    Remove {
        #[command(flatten)]
        of: Of,
        /// Why; kept with the version
        #[arg(long)]
        reason: Option<Text>,
        /// Say which standing bookings would break, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Show every version of a policy, and who set it when and why
    History {
        #[command(flatten)]
        of: Of,
    },
    /// Explain what the policies make of a booking, rule by rule, without making it
    Test(test::Test),
}

/// Which policy: of the whole site, if nothing is said.
#[derive(Debug, Clone, Default, Args)]
pub struct Of {
    /// The policy for bookings of this type of resource
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<Name>,
    /// The policy for people with this role in the site
    #[arg(long, value_parser = arguments::role)]
    role: Option<Role>,
    /// The policy for bookings of this project
    #[arg(long)]
    project: Option<Name>,
    /// The ceilings that bind every site (global admins)
    #[arg(long, conflicts_with_all = ["kind", "role", "project", "defaults"])]
    ceilings: bool,
    /// The defaults that hold where a site says nothing (global admins)
    #[arg(long, conflicts_with_all = ["kind", "role", "project"])]
    defaults: bool,
}

#[derive(Debug, Args)]
pub struct Set {
    #[command(flatten)]
    of: Of,
    /// Rules to change, as in `length_max=12h`; `length_max=` takes one away, and the others stay
    #[arg(
        value_name = "RULE=VALUE",
        conflicts_with = "file",
        required_unless_present = "file"
    )]
    pairs: Vec<Pair>,
    /// A file with all the policy asks from now on, YAML or JSON (`-` for the standard input)
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Why; kept with the version
    #[arg(long)]
    reason: Option<Text>,
    /// Say which standing bookings would break, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Change it only if it still has this version
    #[arg(long, value_name = "VERSION")]
    if_version: Option<u64>,
}

/// The policy that was named.
enum Named {
    Global(GlobalScope),
    Site(Part),
}

impl Of {
    fn named(&self) -> Named {
        match (self.ceilings, self.defaults) {
            (true, _) => Named::Global(GlobalScope::Ceilings),
            (_, true) => Named::Global(GlobalScope::Defaults),
            _ => Named::Site(Part {
                resource_type: self.kind.clone(),
                role: self.role,
                project: self.project.clone(),
            }),
        }
    }

    fn scope(&self) -> Scope {
        match self.named() {
            Named::Global(GlobalScope::Ceilings) => Scope::Ceilings,
            Named::Global(GlobalScope::Defaults) => Scope::Defaults,
            Named::Site(part) => Scope::Site(part),
        }
    }
}

pub async fn run(command: Policy, context: &Context) -> anyhow::Result<()> {
    let (client, out, times) = (&context.client, &context.out, &context.times);
    match command {
        Policy::List { global } => {
            let list = match global {
                true => client.global_policies().await?,
                false => client.policies(context.site()?).await?,
            };
            out.show(&list, |screen| times.render(&table(&list, times), screen))
        }
        Policy::Show { of } => {
            let found = current(&of, context).await?;
            let found = found.ok_or_else(|| {
                not_found(format!(
                    "there is no {}; `berth policy list` shows those there are",
                    of.scope()
                ))
            })?;
            out.show(&found, |screen| {
                details(&found, times).render(screen) + &times.footnote()
            })
        }
        Policy::Set(set) => self::set(set, context).await,
        Policy::Remove {
            of,
            reason,
            dry_run,
        } => {
            let change = match of.named() {
                Named::Global(scope) => {
                    let query = GlobalPolicyChangeQuery { dry_run, reason };
                    client.remove_global_policy(scope, &query).await?
                }
                Named::Site(part) => {
                    let query = PolicyChangeQuery::new(part, dry_run, reason);
                    client.remove_policy(context.site()?, &query).await?
                }
            };
            told("Removed", "remove", &change, context)
        }
        Policy::History { of } => {
            let history = match of.named() {
                Named::Global(scope) => client.global_policy_history(scope).await?,
                Named::Site(part) => client.policy_history(context.site()?, &part.into()).await?,
            };
            out.show(&history, |screen| {
                times.render(&versions(&history, times), screen)
            })
        }
        Policy::Test(test) => test::run(test, context).await,
    }
}

/// The policy as it is now, if there is one.
async fn current(of: &Of, context: &Context) -> anyhow::Result<Option<PolicyVersion>> {
    let client = &context.client;
    let list = match of.named() {
        Named::Global(_) => client.global_policies().await?,
        Named::Site(_) => client.policies(context.site()?).await?,
    };
    let scope = of.scope();
    Ok(list.items.into_iter().find(|one| one.scope == scope))
}

async fn set(set: Set, context: &Context) -> anyhow::Result<()> {
    let mut version = set.if_version.map(IfMatch::Version);
    let policy: Rules = match &set.file {
        Some(file) => read::policy(file)?,
        None => {
            let before = current(&set.of, context).await?;
            // The other rules stay as they were read, so nobody may have changed them meanwhile.
            if let (None, Some(before)) = (&version, &before) {
                version = Some(IfMatch::Version(before.version));
            }
            let before = before.and_then(|before| before.policy).unwrap_or_default();
            read::changed(&before, &set.pairs)?
        }
    };
    let client = &context.client;
    let new = NewPolicy {
        policy,
        reason: set.reason,
    };
    let change = match set.of.named() {
        Named::Global(scope) => {
            let query = GlobalPolicyChangeQuery {
                dry_run: set.dry_run,
                reason: None,
            };
            client
                .set_global_policy(scope, &query, version, &new)
                .await?
        }
        Named::Site(part) => {
            let query = PolicyChangeQuery::new(part, set.dry_run, None);
            client
                .set_policy(context.site()?, &query, version, &new)
                .await?
        }
    };
    told("Set", "set", &change, context)
}

/// What was done or would be, and whom it meets.
fn told(done: &str, verb: &str, change: &PolicyChange, context: &Context) -> anyhow::Result<()> {
    context.out.show(change, |screen| {
        let (scope, version) = (&change.now.scope, change.now.version);
        let mut text = match change.applied {
            true => format!("{done} the {scope}, version {version}.\n"),
            false => format!("This would {verb} the {scope}, as version {version}.\n"),
        };
        for overruled in &change.overruled {
            text += &format!("Without effect from then on: {}\n", printable(overruled));
        }
        text + &breaks(change, &context.times, screen)
    })
}

fn breaks(change: &PolicyChange, times: &Times, screen: Screen) -> String {
    if change.breaks_count == 0 {
        return "Every standing booking keeps it.\n".to_owned();
    }
    let columns = [
        Column::left("ID"),
        Column::left("SITE"),
        Column::left("OWNER"),
        Column::left("WHEN"),
        Column::left("BREAKS").shrinks(1),
    ];
    let mut table = Table::new(columns, "");
    for broken in &change.breaks {
        let reservation = &broken.reservation;
        let rules: Vec<String> = broken
            .breaches
            .iter()
            .map(|one| one.detail.clone())
            .collect();
        table.row([
            ending(reservation.id),
            reservation.site.name.clone(),
            reservation.owner.login.clone(),
            times.span(reservation.start, reservation.end),
            rules.join(". "),
        ]);
    }
    let more = match change.breaks_count - change.breaks.len() as u64 {
        0 => String::new(),
        more => format!("And {more} more.\n"),
    };
    format!(
        "Standing bookings that do not keep it, and stay as they are: {}\n{}{more}",
        change.breaks_count,
        times.render(&table, screen)
    )
}

/// `length_max=12h`, for each rule that a policy has.
fn written(policy: &Rules) -> Vec<String> {
    let rules = serde_json::to_value(policy).unwrap_or_default();
    let rules = rules.as_object().into_iter().flatten();
    rules
        .map(|(rule, value)| match value {
            serde_json::Value::String(text) => format!("{rule}={text}"),
            value => format!("{rule}={value}"),
        })
        .collect()
}

fn table(list: &PolicyList, times: &Times) -> Table<5> {
    let columns = [
        Column::left("POLICY"),
        Column::left("VERSION"),
        Column::left("SINCE"),
        Column::left("BY"),
        Column::left("ASKS").shrinks(1),
    ];
    let mut table = Table::new(
        columns,
        "There are no policies: whoever may book may book what is free.",
    );
    for one in &list.items {
        table.row([
            one.scope.to_string(),
            one.version.to_string(),
            times.moment(one.set_at),
            show::by(one.set_by.as_ref()),
            one.policy
                .as_ref()
                .map(written)
                .unwrap_or_default()
                .join(" "),
        ]);
    }
    table
}

fn versions(list: &PolicyList, times: &Times) -> Table<5> {
    let columns = [
        Column::left("VERSION"),
        Column::left("SET"),
        Column::left("BY"),
        Column::left("REASON").shrinks(2),
        Column::left("ASKS").shrinks(1),
    ];
    let mut table = Table::new(columns, "There never was such a policy.");
    for one in &list.items {
        table.row([
            one.version.to_string(),
            times.moment(one.set_at),
            show::by(one.set_by.as_ref()),
            one.reason
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            match &one.policy {
                Some(policy) => written(policy).join(" "),
                None => "(removed)".to_owned(),
            },
        ]);
    }
    table
}

fn details(one: &PolicyVersion, times: &Times) -> Details {
    Details::default()
        .line("Policy", &one.scope)
        .lines("Asks", one.policy.as_ref().map(written).unwrap_or_default())
        .line("Version", one.version)
        .line("Set", times.moment(one.set_at))
        .line("By", show::by(one.set_by.as_ref()))
        .maybe("Reason", one.reason.as_ref())
}
