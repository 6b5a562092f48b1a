//! `berth profile`: one's own name, mail address, time zone and password.

use berth_api::client::Client;
use berth_api::people::Email;
use berth_api::secret::{NewPassword, Password};
use berth_api::sign_in::{PasswordChange, PasswordReset, ProfilePatch};
use berth_api::{Credential, paths};
use berth_model::Text;
use berth_model::person::TimeZone;
use clap::Subcommand;
use secrecy::{ExposeSecret, SecretString};

use super::Version;
use super::person::cleared;
use crate::cli::Options;
use crate::context::Context;
use crate::failure::usage;
use crate::output::Output;
use crate::prompt;
use crate::remembered::Remembered;

#[derive(Debug, Subcommand)]
pub enum Profile {
    /// Change your name, mail address or time zone
    Edit {
        /// Your name as others read it
        #[arg(long)]
        name: Option<Text>,
        /// Where mail reaches you
        #[arg(long)]
        email: Option<Email>,
        /// Forget the mail address
        #[arg(long, conflicts_with = "email")]
        no_email: bool,
        /// The zone in which times are shown to you, as in Europe/Rome
        #[arg(long, value_name = "ZONE")]
        time_zone: Option<TimeZone>,
        #[command(flatten)]
        version: Version,
    },
    /// Change your password
    Password {
        /// Take the current and the new password as two lines from the standard input
        #[arg(long)]
        stdin: bool,
        /// Revoke all your API tokens too, also the one of this command
        #[arg(long)]
        revoke_tokens: bool,
    },
    /// Set a password with the one-time link an admin gave you
    Reset {
        /// Take the link and the new password as two lines from the standard input
        #[arg(long)]
        stdin: bool,
    },
}

pub async fn run(command: Profile, options: &Options) -> anyhow::Result<()> {
    match command {
        Profile::Edit {
            name,
            email,
            no_email,
            time_zone,
            version,
        } => {
            let patch = ProfilePatch {
                display_name: name,
                email: cleared(email, no_email),
                time_zone,
            };
            edit(&patch, &version, &Context::new(options)?).await
        }
        Profile::Password {
            stdin,
            revoke_tokens,
        } => {
            let context = Context::new(options)?;
            let [current, new] = two_secrets(stdin, ["Current password", "New password"])?;
            let change = PasswordChange {
                current: password(&current)?,
                new: new_password(&new)?,
                revoke_tokens,
            };
            context.client.change_password(&change).await?;
            context.out.say(match revoke_tokens {
                false => "Changed your password. Your other sign-ins have ended.\n",
                true => {
                    "Changed your password. Your other sign-ins have ended, and your API tokens are revoked.\n\
                     Sign in again with: berth login\n"
                }
            })
        }
        Profile::Reset { stdin } => reset(stdin, options).await,
    }
}

async fn edit(patch: &ProfilePatch, version: &Version, context: &Context) -> anyhow::Result<()> {
    let client = &context.client;
    let person = client.change_profile(version.if_match(), patch).await?;
    if patch.time_zone.is_some() {
        let zone = person.time_zone.clone();
        Remembered::change(client.base_url(), |account| account.time_zone = Some(zone))?;
    }
    context
        .out
        .show(&person, |_| "Changed your profile.\n".to_owned())
}

/// Sets a password for someone who cannot sign in yet.
async fn reset(stdin: bool, options: &Options) -> anyhow::Result<()> {
    let [link, new] = two_secrets(stdin, ["One-time link", "New password"])?;
    let named = options
        .server
        .clone()
        .or_else(|| server_of(link.expose_secret()));
    let server = match named {
        Some(server) => server,
        None => Remembered::load()?
            .server
            .ok_or_else(|| usage("which server? Name it with --server"))?,
    };
    let token = Password::new(token_of(link.expose_secret()).to_owned())
        .map_err(|_| usage("that is not a one-time link"))?;
    let reset = PasswordReset {
        token,
        new_password: new_password(&new)?,
    };
    Client::new(&server, Credential::None)?
        .reset_password(&reset)
        .await?;
    Output::new(options.output)
        .say("Your password is set, and your API tokens are revoked. Sign in with: berth login\n")
}

/// The token stands after the `#` of the link, where no server's log sees it.
fn token_of(link: &str) -> &str {
    link.trim()
        .rsplit_once('#')
        .map_or(link.trim(), |(_, token)| token)
}

/// What stands before the page of the link, if it is a full address.
fn server_of(link: &str) -> Option<String> {
    let (page, _) = link.trim().rsplit_once('#')?;
    let server = page.strip_suffix(paths::RESET_PAGE)?;
    server.starts_with("http").then(|| server.to_owned())
}

fn two_secrets(stdin: bool, questions: [&str; 2]) -> anyhow::Result<[SecretString; 2]> {
    if stdin {
        Ok([prompt::secret_from_stdin()?, prompt::secret_from_stdin()?])
    } else if prompt::can_ask() {
        Ok([
            prompt::secret(questions[0])?,
            prompt::new_secret(questions[1])?,
        ])
    } else {
        Err(usage("nobody is here to ask; use --stdin"))
    }
}

fn password(text: &SecretString) -> anyhow::Result<Password> {
    Password::new(text.expose_secret().to_owned())
        .map_err(|error| usage(format!("the password {error}")))
}

fn new_password(text: &SecretString) -> anyhow::Result<NewPassword> {
    NewPassword::new(text.expose_secret().to_owned())
        .map_err(|error| usage(format!("the new password {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_names_its_server_and_carries_its_token() {
        let link = "https://lab.example/berth/reset-password#abc_-1";
        assert_eq!(token_of(link), "abc_-1");
        assert_eq!(
            server_of(link).as_deref(),
            Some("https://lab.example/berth")
        );
        assert_eq!(token_of(" abc_-1\n"), "abc_-1");
        assert_eq!(server_of("abc_-1"), None);
        assert_eq!(server_of("/reset-password#abc"), None);
    }
}
