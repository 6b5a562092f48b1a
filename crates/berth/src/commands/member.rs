//! `berth member`: who belongs to the site at hand, and what becomes of a leaver's claims.

use berth_api::members::MemberRole;
use berth_api::reference::PersonReference;
use berth_model::site::Role;
use clap::Subcommand;

use super::person::{Leaving, confirm};
use crate::arguments;
use crate::context::Context;
use crate::pages::whole;
use crate::show;
use crate::table::{Column, Table};

#[derive(Debug, Subcommand)]
pub enum Member {
    /// List the members of the site
    List,
    /// Let a person in who has an account
    Add {
        /// The person's login
        person: PersonReference,
        /// Their role: member or site-admin
        #[arg(long, default_value = "member", value_parser = arguments::role)]
        role: Role,
    },
    /// Give a member another role
    Role {
        /// The person's login
        person: PersonReference,
        /// Their role from now on: member or site-admin
        #[arg(value_parser = arguments::role)]
        role: Role,
    },
    /// Remove a member, and settle what they hold here
    Remove {
        /// The person's login
        person: PersonReference,
        #[command(flatten)]
        leaving: Leaving,
    },
}

pub async fn run(command: Member, context: &Context) -> anyhow::Result<()> {
    let (client, out) = (&context.client, &context.out);
    let site = context.site()?;
    match command {
        Member::List => {
            let members = whole(async |query| client.members(site, &query).await).await?;
            out.show(&members, |screen| {
                let columns = [
                    Column::left("LOGIN"),
                    Column::left("NAME").shrinks(1),
                    Column::left("ROLE"),
                    Column::left("SINCE"),
                ];
                let mut table = Table::new(
                    columns,
                    "Nobody belongs to this site. `berth member add LOGIN` lets someone in.",
                );
                for member in &members.items {
                    table.row([
                        member.person.login.clone(),
                        member.person.display_name.clone(),
                        show::word(member.role),
                        context.times.moment(member.since),
                    ]);
                }
                context.times.render(&table, screen)
            })
        }
        Member::Add { person, role } | Member::Role { person, role } => {
            let member = client
                .put_member(site, &person, MemberRole { role })
                .await?;
            out.show(&member, |_| {
                format!(
                    "{} is now a {} of {site}.\n",
                    show::person(&member.person),
                    show::word(member.role)
                )
            })
        }
        Member::Remove { person, leaving } => {
            let preview = client.preview_remove_member(site, &person).await?;
            if !confirm(&preview, leaving, context, &format!("remove from {site}"))? {
                return Ok(());
            }
            let settled = client.remove_member(site, &person).await?;
            out.show(&settled, |_| {
                format!(
                    "{} is no longer a member of {site}.\n",
                    show::person(&settled.person)
                )
            })
        }
    }
}
