//! The layer that holds back whoever asks too much, before anything is done for them.
//!
//! Someone who is signed in is counted as themselves, wherever they sit: a university behind one address is many
//! people. Everyone else is counted by address, and guessing passwords has a tighter limit of its own.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use berth_api::{Code, Problem, paths};
use berth_model::PersonId;
use http::header::AUTHORIZATION;
use http::request::Parts;
use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::limits::{Limiter, Recent, Wait};
use crate::observe::AskedBy;
use crate::request::address::client_address;
use crate::request::{Identity, identify};
use crate::server::Server;

/// Signing in costs a core for a moment; a lecture hall behind one address still gets in at nine o'clock.
const SIGN_IN_INTERVAL: Duration = Duration::from_secs(1);
const SIGN_IN_BURST: u32 = 60;

/// Tokens that are not good, and codes for sessions, from one network: each costs a look in the database.
const UNKNOWN_INTERVAL: Duration = Duration::from_secs(1);
const UNKNOWN_BURST: u32 = 60;

/// A hash of a token, as it was shown.
type TokenHash = [u8; 32];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Subject {
    Person(PersonId),
    Network(IpAddr),
}

/// The limits of one server; none where the configuration turns them off.
#[derive(Debug)]
pub struct Throttle {
    requests: Option<Limiter<Subject>>,
    sign_ins: Option<Limiter<IpAddr>>,
    bad_tokens: Option<Limiter<IpAddr>>,
    /// Tokens that were good: others behind the same address must not keep them out.
    good_tokens: Recent<TokenHash>,
    codes: Option<Limiter<IpAddr>>,
}

impl Throttle {
    pub fn new(config: &Config) -> Self {
        let requests = Limiter::per_second(config.rate_limit_per_s, config.rate_limit_burst);
        let sign_ins = requests
            .as_ref()
            .and_then(|_| Limiter::new(SIGN_IN_INTERVAL, SIGN_IN_BURST));
        let unknown = || {
            let limiter = || Limiter::new(UNKNOWN_INTERVAL, UNKNOWN_BURST);
            requests.as_ref().and_then(|_| limiter())
        };
        Self {
            bad_tokens: unknown(),
            codes: unknown(),
            requests,
            sign_ins,
            good_tokens: Recent::default(),
        }
    }

    /// Refuses a token before the database is asked, where too many came from its network that were not good.
    fn admit_token(&self, network: IpAddr, token: &TokenHash) -> Result<()> {
        match &self.bad_tokens {
            Some(limiter) if !self.good_tokens.contains(token) => {
                limiter.look(&network, Instant::now()).map_err(too_many)
            }
            _ => Ok(()),
        }
    }

    fn note_token(&self, network: IpAddr, token: TokenHash, is_good: bool) {
        match &self.bad_tokens {
            Some(_) if is_good => self.good_tokens.insert(token),
            Some(limiter) => {
                self.good_tokens.remove(&token);
                limiter.take(network, Instant::now()).ok();
            }
            None => {}
        }
    }

    /// Refuses to look for a code of a session, where too many came from its network.
    fn admit_code(&self, network: IpAddr) -> Result<()> {
        match &self.codes {
            Some(limiter) => limiter.take(network, Instant::now()).map_err(too_many),
            None => Ok(()),
        }
    }
}

/// A token on its way to the database, and back.
pub(crate) struct ShownToken(Option<(IpAddr, TokenHash)>);

impl ShownToken {
    /// The token that a request shows, if there is one and it may be looked for.
    pub fn admit(parts: &Parts, server: &Server) -> Result<Self> {
        let shown = parts.headers.get(AUTHORIZATION);
        let shown = shown.zip(client_address(parts, server));
        let Some((token, address)) = shown else {
            return Ok(Self(None));
        };
        let (network, token) = (network(address), Sha256::digest(token.as_bytes()).into());
        server.throttle.admit_token(network, &token)?;
        Ok(Self(Some((network, token))))
    }

    pub fn was(self, is_good: bool, server: &Server) {
        if let Some((network, token)) = self.0 {
            server.throttle.note_token(network, token, is_good);
        }
    }
}

/// Refuses a code for a session before the database is asked, where too many came from its network.
pub(crate) fn admit_code(parts: &Parts, server: &Server) -> Result<()> {
    match client_address(parts, server) {
        Some(address) => server.throttle.admit_code(network(address)),
        None => Ok(()),
    }
}

pub async fn throttle(State(server): State<Server>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let shown = match ShownToken::admit(&parts, &server) {
        Ok(shown) => shown,
        Err(failure) => return failure.into_response(),
    };
    let identity = identify(&mut parts, &server).await;
    shown.was(matches!(identity, Identity::Known { .. }), &server);
    let person = match &identity {
        Identity::Known { caller, .. } => Some(caller.person.id),
        Identity::Anonymous | Identity::Refused(_) => None,
    };
    let mut response = match check(&parts, &server, person) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(failure) => failure.into_response(),
    };
    if let Some(person) = person {
        response.extensions_mut().insert(AskedBy(person));
    }
    response
}

fn check(parts: &Parts, server: &Server, person: Option<PersonId>) -> Result<()> {
    let now = Instant::now();
    // Only a test without a connection has no address.
    let Some(network) = client_address(parts, server).map(network) else {
        return Ok(());
    };
    let subject = person.map_or(Subject::Network(network), Subject::Person);
    if let Some(limiter) = &server.throttle.requests {
        limiter.take(subject, now).map_err(too_many)?;
    }
    if let Some(limiter) = &server.throttle.sign_ins
        && guesses(parts, server)
    {
        limiter.take(network, now).map_err(too_many)?;
    }
    Ok(())
}

/// Whether this is a route on which secrets can be guessed.
fn guesses(parts: &Parts, server: &Server) -> bool {
    let route = server.route(parts.extensions.get::<MatchedPath>());
    let route = route.and_then(|route| route.strip_prefix(paths::API));
    matches!(route, Some(paths::SIGN_IN | paths::PASSWORD_RESET))
}

/// Whoever has one IPv6 address usually has 2^64 of them.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & (u128::MAX << 64)).into()),
    }
}

fn too_many(wait: Wait) -> Failure {
    let seconds = wait.seconds();
    Problem::new(Code::RequestRateLimited)
        .detail(format!("Too many requests: wait {seconds} s."))
        .retry_after_s(seconds)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_is_one_caller() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("203.0.113.9"), "203.0.113.9");
    }
}
