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

/// Tokens and codes from one network that nobody has shown before: each costs a look in the database.
const UNKNOWN_INTERVAL: Duration = Duration::from_secs(1);
const UNKNOWN_BURST: u32 = 60;

/// Cookies and keys of visits. Browsers send those that have ended with every request, and many people sit behind one
/// address.
const COOKIE_INTERVAL: Duration = Duration::from_millis(200);
const COOKIE_BURST: u32 = 300;

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
    codes: Option<Limiter<IpAddr>>,
    pub(crate) tokens: SecretLimit,
    pub(crate) cookies: SecretLimit,
    pub(crate) visit_keys: SecretLimit,
}

impl Throttle {
    pub fn new(config: &Config) -> Self {
        let requests = Limiter::per_second(config.rate_limit_per_s, config.rate_limit_burst);
        let limiter = |interval, burst| {
            requests
                .as_ref()
                .and_then(|_| Limiter::new(interval, burst))
        };
        Self {
            sign_ins: limiter(SIGN_IN_INTERVAL, SIGN_IN_BURST),
            codes: limiter(UNKNOWN_INTERVAL, UNKNOWN_BURST),
            tokens: SecretLimit::new(limiter(UNKNOWN_INTERVAL, UNKNOWN_BURST)),
            cookies: SecretLimit::new(limiter(COOKIE_INTERVAL, COOKIE_BURST)),
            visit_keys: SecretLimit::new(limiter(COOKIE_INTERVAL, COOKIE_BURST)),
            requests,
        }
    }
}

/// A secret's hash: what was shown is not kept.
type SecretHash = [u8; 32];

/// Limits secrets that prove wrong. Each request with a secret that was not good before takes one from its network's
/// bucket before the database is asked, so a flood in parallel is stopped, too. What was taken comes back if the secret
/// is good. Secrets that were good pass, whatever others behind the same address do.
#[derive(Debug)]
pub(crate) struct SecretLimit {
    limiter: Option<Limiter<IpAddr>>,
    good: Recent<SecretHash>,
}

/// Secrets of one request that may be looked up.
#[derive(Debug)]
pub(crate) struct Admitted {
    secrets: Vec<SecretHash>,
    taken_from: Option<IpAddr>,
}

impl SecretLimit {
    fn new(limiter: Option<Limiter<IpAddr>>) -> Self {
        Self {
            limiter,
            good: Recent::default(),
        }
    }

    /// Refuses the secrets of a request before the database is asked, where too many came from its network that were not
    /// good.
    pub fn admit<'s>(
        &self,
        parts: &Parts,
        server: &Server,
        secrets: impl Iterator<Item = &'s str>,
    ) -> Result<Admitted> {
        // Only a test without a connection has no address.
        let network = client_address(parts, server).map(network);
        let secrets = secrets.map(hash).collect();
        self.take(network, secrets, Instant::now())
            .map_err(too_many)
    }

    fn take(
        &self,
        network: Option<IpAddr>,
        secrets: Vec<SecretHash>,
        now: Instant,
    ) -> Result<Admitted, Wait> {
        let is_good = secrets.iter().any(|secret| self.good.contains(secret));
        let taken_from = match (&self.limiter, network) {
            (Some(limiter), Some(network)) if !is_good => {
                limiter.take(network, now)?;
                Some(network)
            }
            _ => None,
        };
        Ok(Admitted {
            secrets,
            taken_from,
        })
    }

    /// One of the secrets was good.
    pub fn was_good(&self, admitted: Admitted, secret: &str) {
        if let (Some(limiter), Some(network)) = (&self.limiter, admitted.taken_from) {
            limiter.give_back(network);
        }
        self.made(secret);
    }

    /// None of them was, or not any more.
    pub fn were_bad(&self, admitted: Admitted) {
        for secret in &admitted.secrets {
            self.good.remove(secret);
        }
    }

    /// Berth has just handed this one out.
    pub fn made(&self, secret: &str) {
        if self.limiter.is_some() {
            self.good.insert(hash(secret));
        }
    }
}

fn hash(secret: &str) -> SecretHash {
    Sha256::digest(secret.as_bytes()).into()
}

/// Refuses a code for a session before the database is asked, where too many came from its network.
pub(crate) fn admit_code(parts: &Parts, server: &Server) -> Result<()> {
    match (&server.throttle.codes, client_address(parts, server)) {
        (Some(limiter), Some(address)) => limiter
            .take(network(address), Instant::now())
            .map_err(too_many),
        _ => Ok(()),
    }
}

pub async fn throttle(State(server): State<Server>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let identity = identify(&mut parts, &server).await;
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
    fn secrets_that_come_together_are_counted_before_any_is_looked_up() {
        let limit = SecretLimit::new(Limiter::new(Duration::from_secs(1), 3));
        let (here, now) = (Some(IpAddr::from([203, 0, 113, 9])), Instant::now());
        let take = |secret: &str| limit.take(here, vec![hash(secret)], now);
        let mut asked: Vec<Admitted> = ["a", "b", "c"].map(|one| take(one).unwrap()).into();
        assert!(take("d").is_err(), "three are on their way already");
        let elsewhere = Some(IpAddr::from([203, 0, 113, 10]));
        assert!(limit.take(elsewhere, vec![hash("d")], now).is_ok());
        limit.was_good(asked.pop().unwrap(), "c");
        asked.into_iter().for_each(|one| limit.were_bad(one));
        let next = take("d").expect("the good one gave its place back");
        limit.were_bad(next);
        assert!(take("d").is_err(), "the bad ones did not");
        for _ in 0..5 {
            limit.was_good(take("c").expect("it was good before"), "c");
        }
        limit.were_bad(take("c").unwrap());
        assert!(take("c").is_err(), "it has ended since");
        limit.made("e");
        assert!(take("e").is_ok(), "it was handed out just now");
    }

    #[test]
    fn an_ipv6_network_is_one_caller() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("203.0.113.9"), "203.0.113.9");
    }
}
