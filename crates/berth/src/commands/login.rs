//! `berth login`: signs in once, and leaves a token of its own behind for later commands.
//!
//! The password is used to make an API token named after this machine and is then forgotten; only the token is kept.
//! Losing the machine therefore costs one `berth token revoke`, not a password.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use berth_api::Credential;
use berth_api::client::Client;
use berth_api::reference::SiteReference;
use berth_api::secret::{Password, Secret};
use berth_api::sign_in::{Me, SignIn};
use berth_api::tokens::NewToken;
use berth_model::person::{Scope, TimeZone as ZoneName};
use berth_model::{LoginName, Text, TokenId};
use clap::Args;
use jiff::tz::TimeZone;
use secrecy::{ExposeSecret, SecretString};

use crate::cli::Options;
use crate::failure::usage;
use crate::output::{Output, complain};
use crate::prompt;
use crate::remembered::{Account, Remembered};
use crate::times::Times;

#[derive(Debug, Args)]
pub struct Login {
    /// The server; asked for, if left out
    #[arg(value_name = "SERVER")]
    address: Option<String>,
    /// Your login; asked for, if left out
    #[arg(long, short)]
    login: Option<LoginName>,
    /// Take the password from the standard input instead of asking
    #[arg(long)]
    password_stdin: bool,
    /// Take an API token from the standard input instead of making one
    #[arg(long, conflicts_with_all = ["login", "password_stdin"])]
    token_stdin: bool,
    /// How long the sign-in lasts, as in `30d`
    #[arg(long, value_name = "DURATION", default_value = "90d")]
    lasts: String,
    /// Trust the certificates in this file (PEM), for a server that made its own
    #[arg(long, value_name = "FILE")]
    certificates: Option<PathBuf>,
}

const USUAL_SERVER: &str = "http://localhost:8080";

pub async fn run(login: Login, options: &Options) -> anyhow::Result<()> {
    let out = Output::new(options.output);
    let (client, certificates) = client(&login, options)?;
    warn_of_open_road(client.base_url());
    let account = if login.token_stdin {
        Account {
            token: Some(prompt::secret_from_stdin()?),
            ..Account::default()
        }
    } else {
        sign_in(&client, &login).await?
    };
    let token = account.token.clone().context("the server gave no token")?;
    let signed_in = client.with(Credential::Token(token));
    let me = signed_in.me().await?;
    let account = Account {
        certificates,
        ..account
    };
    let (site, spent) = remember(&client, account, &me)?;
    if let Some(spent) = spent {
        // The sign-in that this one replaces. Should this fail, it expires by itself.
        signed_in.revoke_my_token(spent).await.ok();
    }
    out.show(&me, |_| welcome(&me, site.as_ref(), client.base_url()))
}

/// The client of the server that is meant, and the certificates it trusts if those are special.
fn client(login: &Login, options: &Options) -> anyhow::Result<(Client, Option<PathBuf>)> {
    let remembered = Remembered::load()?;
    let known = remembered.server.as_deref();
    let named = login.address.clone().or_else(|| options.server.clone());
    let address = match named {
        Some(address) => address,
        None if prompt::can_ask() => prompt::line("Server", known.or(Some(USUAL_SERVER)))?,
        None => known
            .map(ToOwned::to_owned)
            .ok_or_else(|| usage("which server? Name it: berth login https://berth.example.org"))?,
    };
    let plain = Client::new(&address, Credential::None)?;
    let certificates = match &login.certificates {
        Some(file) => Some(
            fs::canonicalize(file).with_context(|| format!("cannot read {}", file.display()))?,
        ),
        None => remembered
            .account(plain.base_url())
            .and_then(|account| account.certificates.clone()),
    };
    match &certificates {
        Some(file) => {
            let pem = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            let client = Client::trusting(&address, Credential::None, &pem)?;
            Ok((client, certificates))
        }
        None => Ok((plain, None)),
    }
}

/// Without TLS everyone on the way can read the password; on this very machine there is no way.
fn warn_of_open_road(base_url: &str) {
    let Some(rest) = base_url.strip_prefix("http://") else {
        return;
    };
    let near = ["localhost", "127.", "[::1]"];
    if !near.iter().any(|host| rest.starts_with(host)) {
        complain(
            "warning: this address is not encrypted (http); others on the network can read what you send",
        );
    }
}

async fn sign_in(client: &Client, login: &Login) -> anyhow::Result<Account> {
    let ask = prompt::can_ask();
    let name = match &login.login {
        Some(name) => name.clone(),
        None if ask && !login.password_stdin => prompt::line("Login", None)?
            .parse()
            .map_err(|error: berth_model::name::NameError| usage(error.to_string()))?,
        None => return Err(usage("who are you? Give your login with --login")),
    };
    let password = match (login.password_stdin, ask) {
        (true, _) => prompt::secret_from_stdin()?,
        (false, true) => prompt::secret("Password")?,
        (false, false) => {
            return Err(usage(
                "nobody is here to ask for a password; use --password-stdin or --token-stdin",
            ));
        }
    };
    let sign_in = SignIn {
        login: name,
        password: typed(&password)?,
    };
    let (_, session) = client.sign_in(&sign_in).await?;
    let session = client.with(session);
    let expires_at = Times::new(TimeZone::UTC).read_moment(&format!("+{}", login.lasts))?;
    let new = NewToken {
        label: label()?,
        scopes: Scope::ALL.to_vec().try_into()?,
        expires_at,
    };
    let made = session.create_token(&new, None).await?.object;
    // The session has done its work; should ending it fail, it ends by itself.
    session.sign_out().await.ok();
    Ok(Account {
        token_id: Some(made.token.id),
        expires_at: Some(made.token.expires_at),
        token: made.secret.map(Secret::into_inner),
        ..Account::default()
    })
}

fn typed(password: &SecretString) -> anyhow::Result<Password> {
    Password::new(password.expose_secret().to_owned())
        .map_err(|error| usage(format!("the password {error}")))
}

/// The token's name: the machine's, so that its owner knows later which one to revoke.
fn label() -> anyhow::Result<Text> {
    let system = rustix::system::uname();
    let machine = system.nodename().to_string_lossy();
    let label = format!("berth on {machine}").parse();
    Ok(label.or_else(|_| "berth login".parse())?)
}

/// Keeps the account, with the site that was chosen before on the same server; the first time, with the only site
/// one belongs to. Gives that site, and the token that the new one replaces.
fn remember(
    client: &Client,
    account: Account,
    me: &Me,
) -> anyhow::Result<(Option<SiteReference>, Option<TokenId>)> {
    let path = Remembered::path()?;
    let mut all = Remembered::read(&path)?;
    let server = client.base_url().to_owned();
    let before = all
        .servers
        .remove(&server)
        .filter(|before| before.login.as_ref() == Some(&me.person.login))
        .unwrap_or_default();
    let only = match me.memberships.as_slice() {
        [only] => only.site.name.parse().ok(),
        _ => None,
    };
    let site = before.site.or(only);
    let account = Account {
        login: Some(me.person.login.clone()),
        time_zone: Some(me.person.time_zone.clone()),
        site: site.clone(),
        ..account
    };
    all.server = Some(server.clone());
    all.servers.insert(server, account);
    all.write(&path)?;
    Ok((site, before.token_id))
}

fn welcome(me: &Me, site: Option<&SiteReference>, base_url: &str) -> String {
    let mut text = format!("Signed in to {base_url} as {}.\n", me.person.login);
    match site {
        Some(site) => {
            text += &format!("Your site is {site}. Change it with: berth site use NAME\n")
        }
        None => text += "Choose a site with: berth site list, then berth site use NAME\n",
    }
    let zone = &me.person.time_zone;
    text += &format!(
        "Times are shown in {}, as your profile says.\n",
        zone.as_str()
    );
    let here = TimeZone::system();
    if let Some(here) = here.iana_name()
        && *zone == ZoneName::utc()
        && !here.ends_with("UTC")
    {
        text += &format!(
            "This machine is in {here}; take that with: berth profile edit --time-zone {here}\n"
        );
    }
    text
}
