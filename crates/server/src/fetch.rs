//! Reading what stands at an address that somebody gave us.
//!
//! Such an address may point anywhere, also at machines that only this server can reach. So the guard looks at every
//! address that is about to be connected to, after the name was looked up, and once more at the one that answered;
//! what is not public is refused unless the configuration names its network. Redirects are followed by hand, each
//! through the same guard, and no proxy stands between, since behind one nobody could tell where a request goes.

use std::error::Error as StdError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use berth_app::closures::{CALENDAR_MAX_BYTES, Fetch, Fetched, Fetching};
use futures::StreamExt;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, ETAG, IF_NONE_MATCH, LOCATION};
use reqwest::{Client, Response, StatusCode, Url, redirect};

use crate::config::Network;
use crate::failure::Chain;

const REDIRECTS_MAX: usize = 3;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For all of it, redirects included; less than the time a request has.
const PATIENCE: Duration = Duration::from_secs(20);
const ETAG_MAX: usize = 500;
const TROUBLE_MAX_CHARS: usize = 200;

/// Fetches calendars over the network.
#[derive(Debug, Clone)]
pub struct Fetcher {
    guard: Guard,
}

/// Which addresses may be connected to.
#[derive(Debug, Clone)]
struct Guard {
    /// Networks that are not public, and may be read from all the same.
    allowed: Arc<[Network]>,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the address is inside a private network, from which calendars are not read; an administrator of the server can allow it with `calendar_networks`"
)]
struct NotPublic;

impl Fetcher {
    pub fn new(allowed: &[Network]) -> Self {
        let guard = Guard {
            allowed: allowed.into(),
        };
        Self { guard }
    }

    async fn get(&self, address: &str, etag: Option<&str>) -> Result<Fetched, String> {
        let mut url = Url::parse(address).map_err(|_| "it is no address".to_owned())?;
        for _ in 0..=REDIRECTS_MAX {
            let response = self.ask(&url, etag).await?;
            match response.status() {
                StatusCode::NOT_MODIFIED => return Ok(Fetched::Same),
                status if status.is_success() => return whole(response).await,
                status if status.is_redirection() => {
                    let target = response.headers().get(LOCATION);
                    let target = target.and_then(|target| target.to_str().ok());
                    let target = target.and_then(|target| url.join(target).ok());
                    url = target.ok_or("it redirects without saying where to")?;
                }
                status => return Err(format!("the server there answered {status}")),
            }
        }
        Err(format!("it redirects more than {REDIRECTS_MAX} times"))
    }

    async fn ask(&self, url: &Url, etag: Option<&str>) -> Result<Response, String> {
        let guard = self.guard.for_scheme(url.scheme())?;
        // A number needs no looking up, so the resolver would never see it.
        if let Some(address) = literal(url)
            && !guard.lets_through(address)
        {
            return Err(NotPublic.to_string());
        }
        let client = Client::builder()
            .user_agent(concat!("berth/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .dns_resolver(guard.clone())
            .build()
            .map_err(|error| trouble(&error.without_url()))?;
        let mut request = client
            .get(url.clone())
            .header(ACCEPT, "text/calendar, text/plain;q=0.5, */*;q=0.1");
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let response = request.send().await;
        let response = response.map_err(|error| trouble(&error.without_url()))?;
        match response.remote_addr() {
            Some(address) if !guard.lets_through(address.ip()) => Err(NotPublic.to_string()),
            _ => Ok(response),
        }
    }
}

impl Fetch for Fetcher {
    fn fetch<'a>(&'a self, address: &'a str, etag: Option<&'a str>) -> Fetching<'a> {
        Box::pin(async move {
            let fetched = tokio::time::timeout(PATIENCE, self.get(address, etag)).await;
            fetched
                .unwrap_or_else(|_| Err(format!("there was no whole answer within {PATIENCE:?}")))
        })
    }
}

/// The body, as far as it is small enough.
async fn whole(response: Response) -> Result<Fetched, String> {
    let etag = response
        .headers()
        .get(ETAG)
        .and_then(|etag| etag.to_str().ok());
    let etag = etag
        .filter(|etag| etag.len() <= ETAG_MAX)
        .map(str::to_owned);
    let mut bytes = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| trouble(&error.without_url()))?;
        if bytes.len() + piece.len() > CALENDAR_MAX_BYTES {
            return Err(format!("it is larger than {CALENDAR_MAX_BYTES} bytes"));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Fetched::New { bytes, etag })
}

/// What went wrong, in a sentence. The address is not in it.
fn trouble(error: &(dyn StdError + 'static)) -> String {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<NotPublic>() {
            return NotPublic.to_string();
        }
        cause = error.source();
    }
    let told = format!("it could not be reached: {}", Chain(error));
    told.chars().take(TROUBLE_MAX_CHARS).collect()
}

fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok()
}

/// The guard for one connection: what is not encrypted stays inside the networks that were named.
#[derive(Debug, Clone)]
struct Door {
    guard: Guard,
    is_encrypted: bool,
}

impl Guard {
    fn for_scheme(&self, scheme: &str) -> Result<Door, String> {
        let is_encrypted = match scheme {
            "https" => true,
            "http" => false,
            other => return Err(format!("`{other}` is not https")),
        };
        Ok(Door {
            guard: self.clone(),
            is_encrypted,
        })
    }
}

impl Door {
    fn lets_through(&self, address: IpAddr) -> bool {
        let is_named = self
            .guard
            .allowed
            .iter()
            .any(|network| network.contains(address));
        is_named || (self.is_encrypted && is_public(address))
    }
}

impl Resolve for Door {
    fn resolve(&self, name: Name) -> Resolving {
        let door = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let good: Vec<SocketAddr> = found.filter(|at| door.lets_through(at.ip())).collect();
            if good.is_empty() {
                return Err(NotPublic.into());
            }
            Ok(Box::new(good.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is one of the public internet. Those that carry an IPv4 address inside are judged by that.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match carried(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = matches!(
        (a, b, c),
        // This network, shared by a provider, assigned by protocols, for benchmarks, multicast and beyond.
        (0, ..)
            | (100, 64..=127, _)
            | (192, 0, 0)
            | (192, 88, 99)
            | (198, 18 | 19, _)
            | (224.., ..)
    );
    !(is_special
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    // Only 2000::/3 is given out at all; of it, 2001::/23 is for protocols and 2001:db8::/32 and 3fff::/20 for books.
    let is_given_out = first & 0xe000 == 0x2000;
    let is_special = (first == 0x2001 && (second < 0x200 || second == 0xdb8))
        || (first == 0x3fff && second < 0x1000);
    is_given_out && !is_special
}

/// The IPv4 address that is reached by way of this one: NAT64 and 6to4.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    match (a, b) {
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => {
            Some(Ipv4Addr::from_bits(u32::from(g) << 16 | u32::from(h)))
        }
        (0x2002, _) => Some(Ipv4Addr::from_bits(u32::from(b) << 16 | u32::from(c))),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
