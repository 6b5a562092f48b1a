//! The typed client: every route as a method, for the command line, the tests and the benchmarks.
//!
//! It does not retry. A caller that wants to repeat a create or an action passes an idempotency key, with which
//! repeating is safe; everything else is the caller's to judge.
//!
//! Making one is cheap, because a command of the CLI makes one each time: no certificates are loaded for an
//! address without TLS, and no proxy settings are looked up for this very machine.

mod calendars;
mod call;
mod environments;
mod error;
mod inventory;
mod people;
mod policies;
mod records;
mod reservations;
mod series;
mod sessions;
mod sites;
mod sse;
mod timeline;
mod usage;
mod workloads;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Certificate, ClientBuilder, Url, redirect};
use secrecy::SecretString;

use crate::headers::{IdempotencyKey, IfMatch};
use crate::page::{Cursor, Page};

pub use call::Created;
pub use error::Error;
pub use sse::{EventStream, PROBLEM_EVENT};

/// Longer than any answer should take, shorter than a person's patience.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A server that says nothing for this long is gone; streams carry a sign of life more often than this.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// How the client shows who it is.
#[derive(Clone)]
pub enum Credential {
    None,
    /// An API token.
    Token(SecretString),
    /// A browser's session, as [`Client::sign_in`] gives it.
    Session {
        /// The cookie as the server set it: `name=value`.
        cookie: SecretString,
        csrf_token: SecretString,
    },
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credential::None => "None",
            Credential::Token(_) => "Token",
            Credential::Session { .. } => "Session",
        })
    }
}

/// A client of one server. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    /// Where the server lives, base path included, without a slash at the end.
    base: Arc<str>,
    credential: Credential,
    /// What its calls carry besides, for actions.
    key: Option<IdempotencyKey>,
    version: Option<IfMatch>,
}

impl Client {
    /// A client of the server at `base_url`, which may include a path (`https://lab.example/berth`).
    pub fn new(base_url: &str, credential: Credential) -> Result<Self, Error> {
        let url = parse_base(base_url)?;
        Self::build(&url, credential, prepared(&url))
    }

    /// The same, trusting only the certificates in `ca_pem`, for a server that made its own.
    pub fn trusting(base_url: &str, credential: Credential, ca_pem: &[u8]) -> Result<Self, Error> {
        let url = parse_base(base_url)?;
        let trusted = Certificate::from_pem_bundle(ca_pem).map_err(Error::setup)?;
        Self::build(&url, credential, prepared(&url).tls_certs_only(trusted))
    }

    fn build(url: &Url, credential: Credential, builder: ClientBuilder) -> Result<Self, Error> {
        Ok(Self {
            http: builder.build().map_err(Error::setup)?,
            base: url.as_str().trim_end_matches('/').into(),
            credential,
            key: None,
            version: None,
        })
    }

    /// The same client for someone else, sharing its connections.
    pub fn with(&self, credential: Credential) -> Self {
        Self {
            credential,
            ..self.clone()
        }
    }

    /// The same client, for actions: a key makes each safe to repeat, a version refuses it on any other version.
    pub fn acting(&self, key: Option<&IdempotencyKey>, version: Option<IfMatch>) -> Self {
        Self {
            key: key.cloned(),
            version,
            ..self.clone()
        }
    }

    /// Where the server lives, without a slash at the end.
    pub fn base_url(&self) -> &str {
        &self.base
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base", &self.base)
            .field("credential", &self.credential)
            .finish_non_exhaustive()
    }
}

fn parse_base(text: &str) -> Result<Url, Error> {
    let refuse = |why: &str| Error::Address {
        address: text.to_owned(),
        why: why.to_owned(),
    };
    let url = Url::parse(text).map_err(|error| refuse(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        Err(refuse("it must begin with http:// or https://"))
    } else if !url.username().is_empty() || url.password().is_some() {
        // An address ends up in logs and histories.
        Err(Error::Address {
            address: url.host_str().unwrap_or_default().to_owned(),
            why: "it must not contain a name or password; use a token".to_owned(),
        })
    } else if url.query().is_some() || url.fragment().is_some() {
        Err(refuse("it must end with the path, without `?` or `#`"))
    } else {
        Ok(url)
    }
}

fn prepared(url: &Url) -> ClientBuilder {
    let mut builder = ClientBuilder::new()
        .user_agent(concat!("berth/", env!("CARGO_PKG_VERSION")))
        // A redirect would carry the credential to an address that nobody chose.
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(SILENCE_MAX);
    if url.scheme() == "http" {
        // Nothing will be verified, so no certificates are read from the system.
        builder = builder.tls_certs_only([]);
    }
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if host == "localhost" {
        // RFC 6761 says what `localhost` is; asking the resolver would take a thread and a file.
        let here = [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ];
        builder
            .no_proxy()
            .resolve_to_addrs(host, &here.map(|ip| SocketAddr::new(ip, 0)))
    } else if bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()) {
        builder.no_proxy()
    } else {
        builder
    }
}

/// Reads a list to its end, page by page.
///
/// ```no_run
/// # use berth_api::client::{Client, Error, all_pages};
/// # use berth_api::page::{Limit, PageQuery};
/// # async fn example(client: &Client) -> Result<(), Error> {
/// let limit = Limit::LARGEST;
/// let sites = all_pages(async |cursor| client.sites(&PageQuery { limit, cursor }).await).await?;
/// # Ok(())
/// # }
/// ```
pub async fn all_pages<T>(
    mut fetch: impl AsyncFnMut(Option<Cursor>) -> Result<Page<T>, Error>,
) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    let mut cursor = None;
    loop {
        let page = fetch(cursor.clone()).await?;
        all.extend(page.items);
        if page.next.is_some() && page.next == cursor {
            return Err(Error::unexpected("the list goes in a circle"));
        }
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_and_kept_without_the_last_slash() {
        let base = |text| Client::new(text, Credential::None).map(|c| c.base_url().to_owned());
        assert_eq!(
            base("http://localhost:8080").unwrap(),
            "http://localhost:8080"
        );
        assert_eq!(base("http://[::1]:8080/").unwrap(), "http://[::1]:8080");
        assert_eq!(
            base("https://lab.example/berth/").unwrap(),
            "https://lab.example/berth"
        );
        for bad in [
            "localhost:8080",
            "ftp://x",
            "http://",
            "http://x/?a=b",
            "nonsense",
        ] {
            let said = base(bad).unwrap_err().to_string();
            assert!(said.contains("address"), "{bad}: {said}");
        }
        let said = base("http://ada:canary@x/").unwrap_err().to_string();
        assert!(!said.contains("canary"), "{said}");
    }

    #[test]
    fn a_credential_is_never_printed() {
        let token = Credential::Token("canary".to_owned().into());
        let client = Client::new("http://localhost:8080", token).unwrap();
        assert!(!format!("{client:?}").contains("canary"));
        let session = Credential::Session {
            cookie: "canary".to_owned().into(),
            csrf_token: "canary".to_owned().into(),
        };
        assert!(!format!("{:?}", client.with(session)).contains("canary"));
    }
}
