//! What a command of the client works with: the server, the site, the time and where words go.
//!
//! Everything is settled here once, flag before environment before what `berth login` remembered, so that a command
//! only does its own work. The token comes from the environment or the remembered sign-in and never from a flag:
//! every user of a machine can see the arguments of every process.

use std::fs;

use anyhow::Context as _;
use berth_api::reference::SiteReference;
use berth_api::{Client, Credential};
use jiff::tz::TimeZone;
use secrecy::SecretString;

use crate::arguments::Placed;
use crate::cli::Options;
use crate::exit::Exit;
use crate::failure::{Failure, usage};
use crate::output::Output;
use crate::remembered::Remembered;
use crate::times::Times;

#[derive(Debug)]
pub struct Context {
    pub client: Client,
    pub times: Times,
    pub out: Output,
    site: Option<SiteReference>,
    /// The site that was asked for on the command line or in the environment.
    asked_site: Option<SiteReference>,
    /// The site that a command shown to a person need not name.
    remembered_site: Option<SiteReference>,
}

impl Context {
    pub fn new(options: &Options) -> anyhow::Result<Self> {
        let remembered = Remembered::load()?;
        let server = options.server.clone().or_else(|| remembered.server.clone());
        let server = server.ok_or_else(|| {
            usage("which server? Sign in with `berth login`, or name it with --server or BERTH_SERVER")
        })?;
        let anonymous = Client::new(&server, Credential::None)?;
        let account = remembered.account(anonymous.base_url());
        let token = match token_from_environment()? {
            Some(token) => Some(token),
            None => account.and_then(|account| account.token.clone()),
        };
        let token = token.ok_or_else(|| {
            let message = format!(
                "you are not signed in to {}. Run `berth login`, or set BERTH_TOKEN to an API token",
                anonymous.base_url()
            );
            Failure::new(Exit::SignIn, message)
        })?;
        let client = match account.and_then(|account| account.certificates.as_ref()) {
            Some(file) => {
                let pem = fs::read(file)
                    .with_context(|| format!("cannot read the certificates {}", file.display()))?;
                Client::trusting(&server, Credential::Token(token), &pem)?
            }
            None => anonymous.with(Credential::Token(token)),
        };
        let remembered_site = account.and_then(|account| account.site.clone());
        let zone = match (&options.zone, account.and_then(|a| a.time_zone.as_ref())) {
            (Some(zone), _) | (None, Some(zone)) => zone.rules(),
            (None, None) => TimeZone::system(),
        };
        Ok(Self {
            client,
            times: Times::new(zone),
            out: Output::new(options.output),
            asked_site: options.site.clone(),
            site: options.site.clone().or_else(|| remembered_site.clone()),
            remembered_site,
        })
    }

    /// The site at hand.
    pub fn site(&self) -> anyhow::Result<&SiteReference> {
        self.site.as_ref().ok_or_else(|| {
            usage(
                "which site? Choose one for good with `berth site use NAME`, or name it with --site, \
                 BERTH_SITE, or before the name, as in `torino/gpu-01`",
            )
        })
    }

    /// The site that was asked for just now, rather than remembered.
    pub fn asked_site(&self) -> Option<&SiteReference> {
        self.asked_site.as_ref()
    }

    pub fn site_if_any(&self) -> Option<&SiteReference> {
        self.site.as_ref()
    }

    /// The site of something that may have been named with its own.
    pub fn site_of<T>(&self, placed: &Placed<T>) -> anyhow::Result<SiteReference> {
        match &placed.site {
            Some(site) => Ok(site.clone()),
            None => self.site().cloned(),
        }
    }

    /// The one site of several things.
    pub fn site_of_all<T>(&self, placed: &[Placed<T>]) -> anyhow::Result<SiteReference> {
        let mut sites = placed.iter().map(|one| self.site_of(one));
        let Some(first) = sites.next() else {
            return self.site().cloned();
        };
        let first = first?;
        for other in sites {
            let other = other?;
            if other != first {
                return Err(usage(format!(
                    "these are in two sites, {first} and {other}; one command stays in one site"
                )));
            }
        }
        Ok(first)
    }

    /// What to type to mean `it` in this site: with the site, unless it is the remembered one.
    pub fn typed(&self, site: &str, it: impl std::fmt::Display) -> String {
        match &self.remembered_site {
            Some(remembered) if remembered.to_string() == site => it.to_string(),
            _ => format!("{site}/{it}"),
        }
    }
}

/// A token set to nothing is treated as none: that is how people unset a variable for one command.
fn token_from_environment() -> anyhow::Result<Option<SecretString>> {
    match std::env::var("BERTH_TOKEN") {
        Ok(token) if !token.trim().is_empty() => Ok(Some(token.trim().to_owned().into())),
        Ok(_) | Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(usage("BERTH_TOKEN is not a token")),
    }
}
