//! `berth audit`: who changed what, and whether anyone has rewritten the log.

use berth_api::audit::{ActionName, ActorKind, AuditEntry, AuditQuery};
use berth_api::reference::PersonReference;
use berth_model::Text;
use clap::{Args, Subcommand};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::ended;
use crate::pages::Length;
use crate::table::{Column, Table};
use crate::times::Times;

#[derive(Debug, Subcommand)]
pub enum Audit {
    /// List the changes in the site at hand, newest first (site admins)
    List {
        /// All sites, and what concerns none (global admins)
        #[arg(long)]
        everywhere: bool,
        #[command(flatten)]
        wanted: Wanted,
        #[command(flatten)]
        length: Length,
    },
    /// Follow the whole chain of the log and say whether it is intact (global admins)
    Verify,
}

#[derive(Debug, Args)]
pub struct Wanted {
    /// Only what this person did
    #[arg(long, value_name = "PERSON")]
    by: Option<PersonReference>,
    /// Only this action, `reservation.cancel`, or all that happens to a `reservation`
    #[arg(long)]
    action: Option<ActionName>,
    /// Only what was done to this, by its id
    #[arg(long, value_name = "ID")]
    subject: Option<Text>,
    /// Only from this time on
    #[arg(long, value_name = "WHEN")]
    from: Option<String>,
    /// Only before this time
    #[arg(long, value_name = "WHEN")]
    to: Option<String>,
}

pub async fn run(command: Audit, context: &Context) -> anyhow::Result<()> {
    match command {
        Audit::List {
            everywhere,
            wanted,
            length,
        } => list(everywhere, wanted, length, context).await,
        Audit::Verify => verify(context).await,
    }
}

async fn list(
    everywhere: bool,
    wanted: Wanted,
    length: Length,
    context: &Context,
) -> anyhow::Result<()> {
    let (client, times) = (&context.client, &context.times);
    let moment =
        |text: &Option<String>| text.as_deref().map(|at| times.read_moment(at)).transpose();
    let (from, to) = (moment(&wanted.from)?, moment(&wanted.to)?);
    let site = if everywhere {
        None
    } else {
        Some(context.site()?)
    };
    let page = length
        .read(async |limit, cursor| {
            let query = AuditQuery {
                actor: wanted.by.clone(),
                action: wanted.action.clone(),
                subject: wanted.subject.clone(),
                from,
                to,
                limit,
                cursor,
            };
            match site {
                Some(site) => client.site_audit(site, &query).await,
                None => client.audit(&query).await,
            }
        })
        .await?;
    context.out.show(&page, |screen| {
        let columns = [
            Column::right("NUMBER"),
            Column::left("AT"),
            Column::left("WHO"),
            Column::left("ACTION"),
            Column::left("SUBJECT"),
            Column::left("FROM").shrinks(1),
            Column::left("REASON").shrinks(2),
        ];
        let mut table = Table::new(columns, "Nothing is recorded.");
        for entry in &page.items {
            table.row(row(entry, &context.times));
        }
        context.times.render(&table, screen)
    })?;
    if let Some(more) = length.cut(&page) {
        context.out.note(more);
    }
    Ok(())
}

fn row(entry: &AuditEntry, times: &Times) -> [String; 7] {
    let who = match (entry.actor.kind, &entry.actor.person) {
        (ActorKind::Person, Some(person)) => person.login.clone(),
        (ActorKind::Person, None) => "someone".to_owned(),
        (ActorKind::System, _) => "Berth".to_owned(),
        (ActorKind::Anonymous, _) => "nobody signed in".to_owned(),
    };
    [
        entry.number.to_string(),
        times.moment(entry.at),
        who,
        entry.action.clone(),
        entry.subject.clone(),
        entry.origin.clone().unwrap_or_default(),
        entry
            .reason
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    ]
}

async fn verify(context: &Context) -> anyhow::Result<()> {
    let found = context.client.verify_audit().await?;
    context.out.show(&found, |_| match &found.broken {
        None => {
            let mut text = format!("The audit log is intact: {} entries.\n", found.entries);
            if found.waiting > 0 {
                text += &format!(
                    "{} more wait for their place in the chain.\n",
                    found.waiting
                );
            }
            if let Some(hash) = &found.last_hash {
                text += &format!("Its last hash is {hash}\n");
            }
            text
        }
        Some(broken) => format!(
            "The audit log is NOT intact: entry {}: {}\n",
            broken.number, broken.what
        ),
    })?;
    if found.intact {
        if found.last_hash.is_some() {
            context
                .out
                .note("Keep the last hash elsewhere: with it nobody can shorten the log unseen.");
        }
        Ok(())
    } else {
        context.out.note("Someone has changed the database from outside. Compare it with a backup before you go on.");
        Err(ended(Exit::Failed))
    }
}
