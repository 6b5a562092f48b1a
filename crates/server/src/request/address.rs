//! Where a request comes from, as far as that can be believed.
//!
//! Only proxies that the configuration names are believed, and only about the hop before them: a client can
//! write anything into `X-Forwarded-For`, but what it wrote stands to the left of what the proxies added.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

use axum::extract::FromRequestParts;
use http::HeaderMap;
use http::request::Parts;

use crate::config::Network;
use crate::server::Server;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The other end of the connection; the listener puts it into every request.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// The client's address: the peer, or the first hop before our own proxies.
pub fn client_address(parts: &Parts, server: &Server) -> Option<IpAddr> {
    let Peer(peer) = parts.extensions.get::<Peer>()?;
    let peer = peer.ip().to_canonical();
    Some(believed(
        peer,
        &parts.headers,
        &server.config.trusted_proxies,
    ))
}

/// Where a request comes from, in words for the audit log.
#[derive(Debug, Clone)]
pub struct Origin(pub String);

impl FromRequestParts<Server> for Origin {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Infallible> {
        Ok(Origin(origin(parts, server)))
    }
}

pub(crate) fn origin(parts: &Parts, server: &Server) -> String {
    let address = client_address(parts, server);
    address.map_or_else(|| "unknown".to_owned(), |address| address.to_string())
}

/// Whether the request came through a proxy whose headers are believed.
pub fn is_proxied(parts: &Parts, server: &Server) -> bool {
    let peer = parts.extensions.get::<Peer>();
    peer.is_some_and(|Peer(peer)| is_trusted(peer.ip(), &server.config.trusted_proxies))
}

fn believed(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    if !is_trusted(peer, trusted) {
        return peer;
    }
    let hops = headers
        .get_all(FORWARDED_FOR)
        .iter()
        .rev()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.rsplit(','));
    let mut nearest = peer;
    for hop in hops {
        // Beyond a hop that cannot be read nothing can be believed either.
        let Some(address) = address(hop.trim()) else {
            break;
        };
        nearest = address;
        if !is_trusted(address, trusted) {
            break;
        }
    }
    nearest
}

pub(crate) fn is_trusted(address: IpAddr, trusted: &[Network]) -> bool {
    trusted.iter().any(|network| network.contains(address))
}

/// Some proxies write the port too.
fn address(hop: &str) -> Option<IpAddr> {
    let with_port = || hop.parse::<SocketAddr>().map(|address| address.ip()).ok();
    let address = hop.parse::<IpAddr>().ok().or_else(with_port)?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(peer: &str, forwarded: &[&str]) -> String {
        let trusted = ["10.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()];
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        believed(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn a_stranger_is_not_believed() {
        assert_eq!(seen("203.0.113.9", &["198.51.100.1"]), "203.0.113.9");
        assert_eq!(seen("203.0.113.9", &[]), "203.0.113.9");
    }

    #[test]
    fn our_proxies_are_believed_about_the_hop_before_them_only() {
        assert_eq!(seen("10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(seen("10.0.0.1", &["1.2.3.4, 198.51.100.1"]), "198.51.100.1");
        assert_eq!(
            seen("10.0.0.1", &["1.2.3.4, 198.51.100.1, 10.0.0.2"]),
            "198.51.100.1"
        );
        assert_eq!(
            seen("10.0.0.1", &["1.2.3.4", "198.51.100.1"]),
            "198.51.100.1"
        );
        assert_eq!(seen("::1", &["[2001:db8::5]:4711"]), "2001:db8::5");
        assert_eq!(seen("10.0.0.1", &["198.51.100.1:4711"]), "198.51.100.1");
    }

    #[test]
    fn without_a_believable_hop_the_nearest_known_one_stands() {
        assert_eq!(seen("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(seen("10.0.0.1", &["unknown"]), "10.0.0.1");
        assert_eq!(seen("10.0.0.1", &["1.2.3.4, junk, 10.0.0.7"]), "10.0.0.7");
        assert_eq!(seen("10.0.0.1", &["10.0.0.3"]), "10.0.0.3");
    }
}
