//! Whether a server answers where it should, and whether it is this one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use berth_api::Credential;
use berth_api::client::Client;
use berth_server::config::{Config, Database, QueueBackend};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Finding;

const SUBJECT: &str = "server";
const PATIENCE: Duration = Duration::from_secs(5);

pub async fn look(config: &Config, locked: bool) -> Vec<Finding> {
    let address = reachable(config.listen);
    let listening = timeout(PATIENCE, TcpStream::connect(address)).await;
    let listening = matches!(listening, Ok(Ok(_)));
    let finding = match (listening, locked) {
        (false, true) => {
            let found = format!("a server holds the database, but nothing answers on {address}");
            Finding::fail(
                SUBJECT,
                found,
                "it may be starting, or use another `listen`; look at its log",
            )
        }
        (false, false) => Finding::warn(
            SUBJECT,
            format!("nothing listens on {address}"),
            "start it with: berth serve",
        ),
        (true, _) if config.tls().is_some() => Finding::ok(
            SUBJECT,
            format!("something listens on {address} (TLS; ask it under its own name to see more)"),
        ),
        (true, locked) => ask(config, address, locked).await,
    };
    vec![finding]
}

/// Whether requests from other machines are refused because nobody has named this server.
pub fn hosts(config: &Config) -> Option<Finding> {
    let is_unnamed = config.public_url.is_none() && config.allowed_hosts.is_empty();
    let is_open = config.listen.ip().is_unspecified();
    (is_open && is_unnamed).then(|| {
        Finding::warn(
            "hosts",
            "requests from other machines are refused: the server answers for names of this machine only",
            "set `public_url` to the address that people type, and further names in `allowed_hosts`",
        )
    })
}

/// Whether what runs in sessions is kept apart from Berth's own pages.
pub fn sessions(config: &Config) -> Finding {
    const SUBJECT: &str = "sessions";
    let runs_something = config.queue_backend != QueueBackend::None;
    if !berth_server::sessions_share_origin(config) {
        return Finding::ok(SUBJECT, "each session has an origin of its own");
    }
    let found = "sessions share Berth's own address: a script in one can act as its visitors in Berth and in other sessions";
    let advice = "set `session_origin` to a name with a wildcard, unless all people here trust each other; docs/sessions.md says how";
    match (runs_something, config.unsafe_shared_origin) {
        (true, true) => Finding::warn(SUBJECT, found, advice),
        (true, false) => Finding::fail(
            SUBJECT,
            "sessions have no origin of their own, so the server does not start",
            "set `session_origin` to a name with a wildcard, or `unsafe_shared_origin` if all people here trust each other",
        ),
        (false, _) => Finding::ok(SUBJECT, "nothing runs sessions here"),
    }
}

async fn ask(config: &Config, address: SocketAddr, locked: bool) -> Finding {
    let url = format!("http://{address}{}", config.base_path.as_str());
    let client = match Client::new(&url, Credential::None) {
        Ok(client) => client,
        Err(error) => return Finding::fail(SUBJECT, error.to_string(), "correct `listen`"),
    };
    let knows_better = matches!(config.database, Database::Sqlite(_)) && !locked;
    match (
        timeout(PATIENCE, client.healthy()).await,
        timeout(PATIENCE, client.ready()).await,
    ) {
        (Ok(Ok(())), _) if knows_better => {
            let found = format!("a Berth answers on {url}, but it does not use this database");
            Finding::warn(
                SUBJECT,
                found,
                "check that --config names the file the server was started with",
            )
        }
        (Ok(Ok(())), Ok(Ok(()))) => Finding::ok(SUBJECT, format!("{url} is ready")),
        (Ok(Ok(())), _) => {
            let found = format!("{url} runs, but is not ready");
            Finding::fail(
                SUBJECT,
                found,
                "look at its log; its database may not answer",
            )
        }
        _ => {
            let found =
                format!("something that is not Berth, or not under this path, answers on {url}");
            Finding::fail(
                SUBJECT,
                found,
                "stop it, or correct `listen` and `base_path`",
            )
        }
    }
}

/// An address that means "all of them" is asked on this machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_are_asked_on_this_machine() {
        for (listen, asked) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("10.0.0.7:80", "10.0.0.7:80"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), asked);
        }
    }
}
