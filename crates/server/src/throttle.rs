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

use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::limits::{Limiter, Wait};
use crate::observe::AskedBy;
use crate::request::address::client_address;
use crate::request::{Identity, identify};
use crate::server::Server;

/// Signing in costs a core for a moment; a lecture hall behind one address still gets in at nine o'clock.
const SIGN_IN_INTERVAL: Duration = Duration::from_secs(1);
const SIGN_IN_BURST: u32 = 60;

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
}

impl Throttle {
    pub fn new(config: &Config) -> Self {
        let requests = Limiter::per_second(config.rate_limit_per_s, config.rate_limit_burst);
        let sign_ins = requests
            .as_ref()
            .and_then(|_| Limiter::new(SIGN_IN_INTERVAL, SIGN_IN_BURST));
        Self { requests, sign_ins }
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
    fn an_ipv6_network_is_one_caller() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("203.0.113.9"), "203.0.113.9");
    }
}
