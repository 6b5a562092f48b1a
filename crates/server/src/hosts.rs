//! Whose name a request was sent to. A request for another host is refused before anything else looks at it.
//!
//! A web page can make its own name lead to this server's address (DNS rebinding). Its visitors' browsers then take
//! this server for a part of that page, and links that are made from the host would lead to it. Both end here.

use std::net::SocketAddr;

use berth_api::{Code, paths};
use http::header::HOST;
use http::{HeaderMap, Uri, Version};

use crate::config::{Config, Host, HostPattern};
use crate::failure::Failure;
use crate::visits::address::own_origin;

/// The hosts that this server answers for.
#[derive(Debug)]
pub struct AllowedHosts {
    patterns: Vec<HostPattern>,
    /// Paths that load balancers probe by whatever address they know.
    probes: [String; 2],
}

/// Why a request is for no host of this server.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Misdirected {
    /// It names no host, or several in its headers, or something that is no host.
    Unreadable,
    Unknown(Host),
}

impl AllowedHosts {
    pub fn new(config: &Config, is_demo: bool) -> Self {
        let own = host_of(&own_origin(config));
        let is_local = is_demo || own.as_ref().is_some_and(Host::is_loopback);
        let sessions = config.session_origin.as_ref();
        let sessions = sessions.and_then(|origin| host_of(origin.as_str()));
        let exact = own.into_iter().chain(listened(config.listen));
        let patterns = exact
            .map(HostPattern::exactly)
            .chain(sessions.map(HostPattern::below))
            .chain(is_local.then(loopback).into_iter().flatten())
            .chain(config.allowed_hosts.iter().cloned())
            .collect();
        let base = config.base_path.as_str();
        Self {
            patterns,
            probes: [paths::HEALTHZ, paths::READYZ].map(|path| format!("{base}{path}")),
        }
    }

    /// Refuses a request that was not sent to this server.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap, version: Version) -> Result<(), Failure> {
        if self.probes.iter().any(|probe| probe == uri.path()) {
            return Ok(());
        }
        self.judge(uri, headers, version).map_err(refusal)
    }

    /// Every host that a request names must be allowed: the one in its headers, and the one in its target
    /// (`:authority`, or the absolute form).
    fn judge(&self, uri: &Uri, headers: &HeaderMap, version: Version) -> Result<(), Misdirected> {
        let mut in_headers = headers.get_all(HOST).iter();
        let header = in_headers.next();
        // HTTP/2 has `:authority` instead of the header.
        let is_named = header.is_some() || version >= Version::HTTP_2 && uri.authority().is_some();
        if !is_named || in_headers.next().is_some() {
            return Err(Misdirected::Unreadable);
        }
        let header = header.map(|value| value.to_str().unwrap_or_default());
        let target = uri.authority().map(|authority| authority.as_str());
        header
            .into_iter()
            .chain(target)
            .try_for_each(|host| self.find(host))
    }

    /// Whether this is one of the hosts, as a proxy may repeat it in a header of its own.
    pub fn allow(&self, host: &str) -> bool {
        self.find(host).is_ok()
    }

    fn find(&self, text: &str) -> Result<(), Misdirected> {
        let host: Host = text.parse().map_err(|_| Misdirected::Unreadable)?;
        match self.patterns.iter().any(|pattern| pattern.matches(&host)) {
            true => Ok(()),
            false => Err(Misdirected::Unknown(host)),
        }
    }
}

/// The host of an origin, at any port: a proxy or a tunnel may pass another one on.
fn host_of(origin: &str) -> Option<Host> {
    let (_, host) = origin.split_once("://")?;
    host.parse().ok().map(Host::without_port)
}

/// The address that the server listens on, unless that is every address of the machine.
fn listened(address: SocketAddr) -> Option<Host> {
    if address.ip().is_unspecified() {
        return None;
    }
    let host: Host = address.to_string().parse().ok()?;
    // Port 0 lets the system choose.
    Some(match address.port() {
        0 => host.without_port(),
        _ => host,
    })
}

/// The names of this machine that no DNS server can give to anybody else.
fn loopback() -> impl Iterator<Item = HostPattern> {
    ["localhost", "*.localhost", "127.0.0.1", "[::1]"]
        .into_iter()
        .filter_map(|pattern| pattern.parse().ok())
}

fn refusal(misdirected: Misdirected) -> Failure {
    let failure = Failure::new(Code::RequestMisdirected);
    match misdirected {
        Misdirected::Unreadable => {
            failure.detail("The request names no host, more than one host, or an invalid one.")
        }
        // A host that was read has only letters, digits and `-_.:[]`.
        Misdirected::Unknown(host) => {
            failure.detail(format!("This server does not answer for the host {host}."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &str = "listen = '192.0.2.7:8080'\npublic_url = 'https://Berth.example.org'\n\
        session_origin = 'https://sessions.example.org'\n\
        allowed_hosts = ['inner:9000', '*.Corp.example', '[2001:db8::1]']";

    fn hosts(file: &str, is_demo: bool) -> AllowedHosts {
        let env = [("HOME".to_owned(), "/home/ada".to_owned())];
        let loaded = Config::layer(Some(("t", file)), env.into_iter(), Default::default());
        AllowedHosts::new(&loaded.unwrap().config, is_demo)
    }

    fn is_allowed(hosts: &AllowedHosts, named: &[&str], target: &str, version: Version) -> bool {
        let mut headers = HeaderMap::new();
        for host in named {
            headers.append(HOST, host.parse().unwrap());
        }
        let uri: Uri = target.parse().unwrap();
        hosts.check(&uri, &headers, version).is_ok()
    }

    #[track_caller]
    fn expect(file: &str, is_demo: bool, table: &[(&str, bool)]) {
        let hosts = hosts(file, is_demo);
        for (host, expected) in table {
            for version in [Version::HTTP_10, Version::HTTP_11] {
                let found = is_allowed(&hosts, &[host], "/", version);
                assert_eq!(found, *expected, "{host:?} {version:?} {file}");
            }
            // As the target of HTTP/2, where it can stand there.
            let target = format!("http://{host}/");
            let authority = target.parse::<Uri>().ok();
            if authority.is_some_and(|uri| uri.authority().is_some_and(|own| own == host)) {
                let found = is_allowed(&hosts, &[], &target, Version::HTTP_2);
                assert_eq!(found, *expected, "{target} {file}");
            }
        }
    }

    #[test]
    fn a_host_is_allowed_if_the_configuration_names_it() {
        expect(
            PUBLIC,
            false,
            &[
                ("berth.example.org", true),
                ("BERTH.Example.ORG", true),
                ("berth.example.org.", true),
                ("berth.example.org:443", true),
                ("berth.example.org.:8443", true),
                ("berth.example.org..", false),
                (".berth.example.org", false),
                ("x.berth.example.org", false),
                ("evilberth.example.org", false),
                ("berth.example.org.evil.example", false),
                ("example.org", false),
                ("berth.example.org:", false),
                ("berth.example.org:65536", false),
                ("berth.example.org:+80", false),
                ("berth.example.org:80:80", false),
                ("berth.example.org:80@evil.example", false),
                ("berth.example.org@evil.example", false),
                ("ada@berth.example.org", false),
                ("ada:berth@berth.example.org", false),
                ("berth.example.org/", false),
                ("berth.example.org#evil.example", false),
                ("berth.example.org,evil.example", false),
                ("berth.example.org evil.example", false),
                ("berth%2eexample.org", false),
                ("https://berth.example.org", false),
                ("", false),
                (".", false),
                (":443", false),
                ("*", false),
                ("[", false),
                ("[]", false),
                // Sessions, but not the name that they stand below.
                ("x7.sessions.example.org", true),
                ("x7.SESSIONS.example.org.:443", true),
                ("sessions.example.org", false),
                (".sessions.example.org", false),
                ("evilsessions.example.org", false),
                // The address that it listens on, with its port.
                ("192.0.2.7:8080", true),
                ("192.0.2.7", false),
                ("192.0.2.7:80", false),
                ("192.0.2.8:8080", false),
                ("3221225991:8080", false),
                ("192.0.519:8080", false),
                // `allowed_hosts`.
                ("inner:9000", true),
                ("inner:9001", false),
                ("inner", false),
                ("a.corp.example", true),
                ("a.b.corp.example:1", true),
                ("corp.example", false),
                ("[2001:db8::1]", true),
                ("[2001:DB8:0::1]:8080", true),
                ("2001:db8::1", false),
                ("[2001:db8::2]", false),
                ("[2001:db8::1%25eth0]", false),
                ("[2001:db8::1]evil.example", false),
                // Browsers elsewhere mean themselves by these.
                ("localhost", false),
                ("x.localhost:8080", false),
                ("127.0.0.1:8080", false),
                ("[::1]", false),
            ],
        );
    }

    #[test]
    fn the_names_of_this_machine_are_allowed_where_berth_is_on_it() {
        let local = &[
            ("localhost", true),
            ("LOCALHOST.:9999", true),
            ("x7.localhost:8080", true),
            ("127.0.0.1", true),
            ("127.0.0.1:9999", true),
            ("[::1]:8080", true),
            ("[0:0:0:0:0:0:0:1]", true),
            ("127.1", false),
            ("2130706433", false),
            ("0x7f.1", false),
            ("127.0.0.2", false),
            ("[::ffff:127.0.0.1]", false),
            ("[::]", false),
            ("0.0.0.0:8080", false),
            ("localhost.evil.example", false),
            ("evillocalhost", false),
            ("evil.example", false),
            ("192.0.2.7:8080", false),
        ];
        for file in [
            "",
            "listen = '0.0.0.0:8080'",
            "public_url = 'http://localhost:81'",
            "public_url = 'http://berth.localhost'",
            "public_url = 'http://[::1]:81'",
        ] {
            expect(file, false, local);
        }
        let elsewhere = "listen = '0.0.0.0:81'\npublic_url = 'https://berth.example.org'";
        expect(elsewhere, true, local);
        expect(
            elsewhere,
            false,
            &[("localhost", false), ("127.0.0.1:81", false)],
        );
        let chosen = "listen = '127.0.0.1:0'\npublic_url = 'https://berth.example.org'";
        expect(
            chosen,
            false,
            &[("127.0.0.1:41234", true), ("localhost", false)],
        );
    }

    #[test]
    fn a_request_names_one_host_and_each_one_it_names_is_allowed() {
        let hosts = hosts(PUBLIC, false);
        let (own, evil) = ("berth.example.org", "evil.example");
        let (absolute, elsewhere) = ("http://berth.example.org/x", "http://evil.example/x");
        for (named, target, version, expected) in [
            (&[][..], "/", Version::HTTP_11, false),
            (&[], "/", Version::HTTP_10, false),
            (&[], "/", Version::HTTP_2, false),
            (&[], absolute, Version::HTTP_11, false),
            (&[], absolute, Version::HTTP_2, true),
            (&[own], absolute, Version::HTTP_11, true),
            (&[own], absolute, Version::HTTP_2, true),
            (&[evil], absolute, Version::HTTP_11, false),
            (&[evil], absolute, Version::HTTP_2, false),
            (&[own], elsewhere, Version::HTTP_11, false),
            (&[own], elsewhere, Version::HTTP_2, false),
            (&[own, own], "/", Version::HTTP_11, false),
            (&[own, own], absolute, Version::HTTP_2, false),
            (&[own, evil], "/", Version::HTTP_11, false),
            (&[evil, own], "/", Version::HTTP_11, false),
        ] {
            let found = is_allowed(&hosts, named, target, version);
            assert_eq!(found, expected, "{named:?} {target} {version:?}");
        }
    }

    #[test]
    fn probes_need_no_host() {
        let below = hosts(
            "public_url = 'https://berth.example.org'\nbase_path = '/lab'",
            false,
        );
        for (path, expected) in [
            ("/lab/healthz", true),
            ("/lab/readyz?verbose", true),
            ("/lab/metrics", false),
            ("/lab/healthz/", false),
            ("/healthz", false),
            ("/lab/api/v1/me", false),
        ] {
            for named in [&[][..], &["10.0.0.7"], &["x", "y"]] {
                let found = is_allowed(&below, named, path, Version::HTTP_11);
                assert_eq!(found, expected, "{path} {named:?}");
            }
        }
    }

    #[test]
    fn a_refusal_repeats_no_more_than_a_host() {
        let hosts = hosts(PUBLIC, false);
        for (host, detail) in [
            (
                "<script>.example",
                "The request names no host, more than one host, or an invalid one.",
            ),
            (
                "Evil.example:80",
                "This server does not answer for the host evil.example:80.",
            ),
        ] {
            let headers = HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
            let refused = hosts.check(&Uri::from_static("/"), &headers, Version::HTTP_11);
            let problem = refused.unwrap_err().problem().clone();
            assert_eq!((problem.status, problem.detail.as_str()), (421, detail));
            assert!(problem.hint.contains("allowed_hosts"), "{}", problem.hint);
        }
    }
}
