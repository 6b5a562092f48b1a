//! Where sessions are found, as the configuration says: each at an origin of its own wherever that can be.

use std::net::IpAddr;
use std::sync::Arc;

use berth_app::sessions::{Addresses, Home};
use berth_proxy::{Addressing, Label};
use http::Uri;

use crate::config::Config;

/// Berth's own origin, also where the configuration leaves it to be guessed: then it is this machine's.
pub fn own_origin(config: &Config) -> String {
    match &config.public_url {
        Some(url) => url.as_str().to_owned(),
        None => {
            let is_secure = config.tls().is_some();
            let scheme = if is_secure { "https" } else { "http" };
            format!("{scheme}://localhost:{}", config.listen.port())
        }
    }
}

/// How a session's label becomes its address.
pub fn addressing(config: &Config) -> Addressing {
    let own = own_origin(config);
    let named = match &config.session_origin {
        Some(origin) => Some(origin.as_str().to_owned()),
        None => on_this_machine(&own),
    };
    let made = match named {
        Some(origin) => Addressing::origins(&origin),
        None => Addressing::paths(&own, config.base_path.as_str()),
    };
    made.unwrap_or_else(|_| unreachable!("what the configuration has read is an origin"))
}

/// Whether sessions would share Berth's own origin, so that a script in one can do what its visitor can elsewhere.
pub fn share_origin(config: &Config) -> bool {
    !addressing(config).is_isolating()
}

/// The origin below which browsers find this machine by any name, if `origin` is on this machine.
fn on_this_machine(origin: &str) -> Option<String> {
    let uri: Uri = origin.parse().ok()?;
    let (scheme, host) = (uri.scheme_str()?, uri.host()?);
    let number = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = number
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    let name = match host {
        _ if is_loopback => "localhost",
        "localhost" => host,
        _ if host.ends_with(".localhost") => host,
        _ => return None,
    };
    let port = uri
        .port_u16()
        .map_or(String::new(), |port| format!(":{port}"));
    Some(format!("{scheme}://{name}{port}"))
}

/// What the application is told of all this.
pub fn addresses(config: &Config) -> Arc<dyn Addresses> {
    Arc::new(Told {
        addressing: addressing(config),
        home: Home {
            origin: own_origin(config),
            base: config.base_path.as_str().to_owned(),
        },
    })
}

#[derive(Debug)]
struct Told {
    addressing: Addressing,
    home: Home,
}

impl Addresses for Told {
    fn origin(&self, label: &str) -> String {
        self.with(label, Addressing::origin)
    }

    fn base(&self, label: &str) -> String {
        self.with(label, Addressing::base)
    }

    fn home(&self) -> Home {
        self.home.clone()
    }
}

impl Told {
    /// The application draws its labels from letters and digits, so that each is one.
    fn with(&self, label: &str, say: fn(&Addressing, &Label) -> String) -> String {
        let label = label.parse();
        label.map_or_else(|_| String::new(), |label| say(&self.addressing, &label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(file: &str) -> String {
        let env = [("HOME".to_owned(), "/home/ada".to_owned())];
        let loaded = Config::layer(Some(("t", file)), env.into_iter(), Default::default());
        let told = addresses(&loaded.unwrap().config);
        told.origin("x7") + &told.base("x7")
    }

    #[test]
    fn a_session_has_an_origin_of_its_own_wherever_that_can_be() {
        for (file, expected) in [
            ("", "http://x7.localhost:8080/"),
            ("listen = '0.0.0.0:81'", "http://x7.localhost:81/"),
            (
                "public_url = 'http://127.0.0.1:9000'",
                "http://x7.localhost:9000/",
            ),
            (
                "public_url = 'http://[::1]:9000'",
                "http://x7.localhost:9000/",
            ),
            (
                "public_url = 'http://berth.localhost'\nbase_path = '/b'",
                "http://x7.berth.localhost/",
            ),
            (
                "public_url = 'https://berth.example.org'\nsession_origin = 'https://s.example.org'",
                "https://x7.s.example.org/",
            ),
            (
                "public_url = 'https://berth.example.org'\nbase_path = '/lab'",
                "https://berth.example.org/lab/s/x7/",
            ),
            (
                "public_url = 'https://notlocalhost'",
                "https://notlocalhost/s/x7/",
            ),
        ] {
            assert_eq!(url(file), expected, "{file}");
        }
    }
}
