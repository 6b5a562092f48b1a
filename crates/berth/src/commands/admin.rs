//! `berth admin`: the first admin, made by whoever can run commands on the server's own machine.
//!
//! It writes to the database itself and works beside a running server, which notices the new rows by itself.

use berth_api::paths;
use berth_app::App;
use berth_model::{LoginName, Text};
use clap::Subcommand;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use crate::cli::Options;
use crate::failure::usage;
use crate::installation::{self, Lock, LockError};
use crate::output::Output;
use crate::prompt;
use crate::server_options::ServerOptions;
use berth_server::config::Config;

#[derive(Debug, Subcommand)]
pub enum Admin {
    /// Make a global admin
    Create {
        /// What the admin signs in with
        login: LoginName,
        /// The admin's name as others read it; the login, if left out
        #[arg(long)]
        name: Option<Text>,
        /// Take the password from the standard input instead of asking
        #[arg(long, conflicts_with = "link")]
        password_stdin: bool,
        /// Make a one-time link to set a password, instead of asking for one
        #[arg(long)]
        link: bool,
        #[command(flatten)]
        server: ServerOptions,
    },
}

pub async fn run(command: Admin, options: &Options) -> anyhow::Result<()> {
    let Admin::Create {
        login,
        name,
        password_stdin,
        link,
        server,
    } = command;
    let config = server.load()?.config;
    let password = password(password_stdin, link)?;
    let name = match name {
        Some(name) => name,
        None => login.as_str().parse()?,
    };
    installation::prepare(&config)?;
    let (app, _lock) = open(&config).await?;
    let made = app.create_admin(login, name, password.as_ref()).await;
    app.store.close().await;
    let (person, reset) = made?;
    let link = reset.map(|reset| link_text(&config, reset.token.expose_secret()));
    let as_json = json!({ "person": person, "reset_link": link });
    Output::new(options.output).show(&as_json, |_| {
        let mut text = format!("Made the global admin {}.\n", person.login);
        match &link {
            Some(link) => {
                text += &format!(
                    "Set a password with this link, which works once, within 48 hours:\n{link}\n"
                )
            }
            None => text += "Sign in with: berth login\n",
        }
        text
    })
}

fn password(stdin: bool, link: bool) -> anyhow::Result<Option<SecretString>> {
    match (stdin, link) {
        (true, _) => prompt::secret_from_stdin().map(Some),
        (_, true) => Ok(None),
        _ if prompt::can_ask() => prompt::new_secret("Password").map(Some),
        _ => Err(usage(
            "nobody is here to ask for a password; use --password-stdin or --link",
        )),
    }
}

/// While a server runs, its schema is as it should be, and it is not for us to change it.
async fn open(config: &Config) -> anyhow::Result<(App, Option<Lock>)> {
    let (store, lock) = match installation::lock(config) {
        Ok(lock) => (installation::open_store(config, &lock).await?, Some(lock)),
        Err(LockError::Held(_)) => (installation::connect_store(config).await?, None),
        Err(error) => return Err(error.into()),
    };
    Ok((installation::app(config, store)?, lock))
}

/// The same address as the server gives in its links.
fn link_text(config: &Config, token: &str) -> String {
    let origin = match &config.public_url {
        Some(url) => url.to_string(),
        None if config.tls().is_some() => format!("https://{}", config.listen),
        None => format!("http://{}", config.listen),
    };
    format!(
        "{origin}{}{}#{token}",
        config.base_path.as_str(),
        paths::RESET_PAGE
    )
}
