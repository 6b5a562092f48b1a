//! `berth person`: accounts, for global admins.

use berth_api::members::Settlement;
use berth_api::people::{Email, NewPerson, Person as PersonObject, PersonPatch};
use berth_api::reference::PersonReference;
use berth_api::secret::NewPassword;
use berth_model::person::TimeZone;
use berth_model::{LoginName, Text};
use clap::{ArgAction, Args, Subcommand};
use secrecy::ExposeSecret;

use super::{Once, Version};
use crate::context::Context;
use crate::details::Details;
use crate::failure::usage;
use crate::output::Format;
use crate::pages::whole;
use crate::prompt;
use crate::show;
use crate::table::{Column, Table};

#[derive(Debug, Subcommand)]
pub enum Person {
    /// List all people
    List,
    /// Show one person
    Show {
        /// The person, by login or id
        person: PersonReference,
    },
    /// Make an account; without a password it comes with a one-time link to set one
    Create {
        /// What the person signs in with
        login: LoginName,
        /// The person's name as others read it
        #[arg(long)]
        name: Text,
        /// Where mail reaches the person
        #[arg(long)]
        email: Option<Email>,
        /// UTC, if left out
        #[arg(long, value_name = "ZONE")]
        time_zone: Option<TimeZone>,
        /// Take a password from the standard input instead of making a link
        #[arg(long)]
        password_stdin: bool,
        #[command(flatten)]
        once: Once,
    },
    /// Change an account
    Edit {
        /// The person, by login or id
        person: PersonReference,
        /// The person's name as others read it
        #[arg(long)]
        name: Option<Text>,
        /// Where mail reaches the person
        #[arg(long)]
        email: Option<Email>,
        /// Forget the mail address
        #[arg(long, conflicts_with = "email")]
        no_email: bool,
        /// The zone in which times are shown to the person
        #[arg(long, value_name = "ZONE")]
        time_zone: Option<TimeZone>,
        /// Whether the person administers all sites
        #[arg(long, value_name = "true|false", action = ArgAction::Set)]
        global_admin: Option<bool>,
        /// Whether the person is kept from signing in; what they hold stands
        #[arg(long, value_name = "true|false", action = ArgAction::Set)]
        suspended: Option<bool>,
        #[command(flatten)]
        version: Version,
    },
    /// Remove a person for good, and settle what they hold everywhere
    Remove {
        /// The person, by login or id
        person: PersonReference,
        #[command(flatten)]
        leaving: Leaving,
    },
    /// Make a one-time link with which a person sets a new password
    ResetLink {
        /// The person, by login or id
        person: PersonReference,
    },
}

/// How sure one is about someone's leaving.
#[derive(Debug, Clone, Copy, Args)]
pub struct Leaving {
    /// Say what would happen, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

pub async fn run(command: Person, context: &Context) -> anyhow::Result<()> {
    let (client, out) = (&context.client, &context.out);
    match command {
        Person::List => {
            let people = whole(async |query| client.people(&query).await).await?;
            out.show(&people, |screen| list(&people.items).render(screen))
        }
        Person::Show { person } => {
            let person = client.person(&person).await?;
            out.show(&person, |screen| details(&person, context).render(screen))
        }
        Person::Create {
            login,
            name,
            email,
            time_zone,
            password_stdin,
            once,
        } => {
            let password = if password_stdin {
                Some(new_password()?)
            } else {
                None
            };
            let new = NewPerson {
                login,
                display_name: name,
                email,
                time_zone,
                password,
            };
            let made = client.create_person(&new, once.key()).await?.object;
            out.show(&made, |_| {
                let mut text = format!("Made an account for {}.\n", made.person.login);
                if let Some(reset) = &made.reset_link {
                    text += &link(reset.link.expose(), reset.expires_at, context);
                }
                text
            })
        }
        Person::Edit {
            person,
            name,
            email,
            no_email,
            time_zone,
            global_admin,
            suspended,
            version,
        } => {
            let patch = PersonPatch {
                display_name: name,
                email: cleared(email, no_email),
                time_zone,
                global_admin,
                suspended,
            };
            let person = client
                .change_person(&person, version.if_match(), &patch)
                .await?;
            out.show(&person, |_| {
                format!("Changed the account of {}.\n", person.login)
            })
        }
        Person::Remove { person, leaving } => {
            let preview = client.preview_remove_person(&person).await?;
            if !confirm(&preview, leaving, context, "remove for good")? {
                return Ok(());
            }
            let settled = client.remove_person(&person).await?;
            out.show(&settled, |_| {
                format!("Removed {}.\n", show::person(&settled.person))
            })
        }
        Person::ResetLink { person } => {
            let reset = client.reset_link(&person).await?;
            out.show(&reset, |_| {
                link(reset.link.expose(), reset.expires_at, context)
            })
        }
    }
}

/// A new value, an empty one, or none at all.
pub fn cleared<T>(value: Option<T>, clear: bool) -> Option<Option<T>> {
    match (value, clear) {
        (Some(value), _) => Some(Some(value)),
        (None, true) => Some(None),
        (None, false) => None,
    }
}

fn new_password() -> anyhow::Result<NewPassword> {
    let password = prompt::secret_from_stdin()?;
    NewPassword::new(password.expose_secret().to_owned())
        .map_err(|error| usage(format!("the password {error}")))
}

fn link(link: &str, expires_at: jiff::Timestamp, context: &Context) -> String {
    // A server that does not know its public address writes links without one.
    let host = if link.starts_with('/') {
        origin(context.client.base_url())
    } else {
        ""
    };
    format!(
        "Pass on this link, which works once and until {} {}:\n{host}{link}\n",
        context.times.moment(expires_at),
        context.times.zone_name()
    )
}

/// An address without its path: `https://lab.example` of `https://lab.example/berth`.
fn origin(address: &str) -> &str {
    let host = address.find("://").map_or(0, |scheme| scheme + "://".len());
    let end = address[host..]
        .find('/')
        .map_or(address.len(), |path| host + path);
    &address[..end]
}

/// Shows what someone's leaving does, and asks before it is done. Says whether to go on.
pub fn confirm(
    preview: &Settlement,
    leaving: Leaving,
    context: &Context,
    verb: &str,
) -> anyhow::Result<bool> {
    let person = show::person(&preview.person);
    if leaving.dry_run {
        context.out.show(preview, |screen| {
            show::settlement(preview, &context.times, screen)
        })?;
        return Ok(false);
    }
    if leaving.yes {
        return Ok(true);
    }
    if context.out.format == Format::Json || !prompt::can_ask() {
        return Err(usage(
            "nobody is here to confirm it: look with --dry-run, then repeat it with --yes",
        ));
    }
    crate::output::complain(&show::settlement(
        preview,
        &context.times,
        context.out.screen,
    ));
    if prompt::agreed(&format!("{person}: {verb}?"))? {
        return Ok(true);
    }
    context.out.note("Nothing was changed.");
    Ok(false)
}

fn list(people: &[PersonObject]) -> Table<6> {
    let columns = [
        Column::left("LOGIN"),
        Column::left("NAME").shrinks(2),
        Column::left("MAIL").shrinks(1),
        Column::left("TIME ZONE"),
        Column::left("STATE"),
        Column::left("ROLE"),
    ];
    let mut table = Table::new(columns, "Nobody has an account.");
    for person in people {
        table.row([
            person.login.to_string(),
            person.display_name.to_string(),
            person.email.clone().unwrap_or_default(),
            person.time_zone.as_str().to_owned(),
            show::word(person.state),
            if person.global_admin {
                "global admin".to_owned()
            } else {
                String::new()
            },
        ]);
    }
    table
}

pub fn details(person: &PersonObject, context: &Context) -> Details {
    Details::default()
        .line("Login", &person.login)
        .line("Name", &person.display_name)
        .maybe("Mail", person.email.as_ref())
        .line("Time zone", person.time_zone.as_str())
        .line("State", show::word(person.state))
        .maybe("Role", person.global_admin.then_some("global admin"))
        .line("Since", context.times.moment(person.created_at))
        .line("Id", person.id)
        .line("Version", person.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_no_path() {
        assert_eq!(origin("https://lab.example/berth"), "https://lab.example");
        assert_eq!(origin("http://localhost:8080"), "http://localhost:8080");
    }

    #[test]
    fn a_field_is_set_cleared_or_left_alone() {
        assert_eq!(cleared(Some(1), false), Some(Some(1)));
        assert_eq!(cleared(None::<u8>, true), Some(None));
        assert_eq!(cleared(None::<u8>, false), None);
    }
}
