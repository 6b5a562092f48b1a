//! The public addresses of sessions: each at an origin of its own, or all below one path.
//!
//! An origin of its own isolates a session's scripts from Berth's pages and from other sessions. Below a path all
//! sessions share one origin. That is for installations without a wildcard host name, for people who trust each other.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, Uri, Version};

/// The opaque name of a session in its address: a valid label of a host name, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(Arc<str>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a label is 1 to 63 of a-z, 0-9 and hyphens, and no hyphen at its ends")]
pub struct NotALabel;

impl FromStr for Label {
    type Err = NotALabel;

    fn from_str(text: &str) -> Result<Self, NotALabel> {
        let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        let is_label = (1..=63).contains(&text.len())
            && text.bytes().all(allowed)
            && !text.starts_with('-')
            && !text.ends_with('-');
        is_label.then(|| Label(text.into())).ok_or(NotALabel)
    }
}

impl Label {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Borrow<str> for Label {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Converts a session's label to an address, and an address to a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addressing {
    scheme: &'static str,
    /// Without the port, in lower case.
    host: String,
    /// `:8443`; empty for the scheme's default port.
    port: String,
    way: Way,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    Origins,
    /// The path before the label: `/s/`, after the base path of Berth itself.
    Paths(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give the address as `https://host` or `http://host:port`, without a path")]
pub struct NotAnOrigin;

/// The part of a request's address that concerns sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    /// The address is not a session's.
    Elsewhere,
    /// A session address with an impossible label.
    Nobody,
    Label(&'a str),
}

impl Addressing {
    /// Each session at `label.host` of the given origin.
    pub fn origins(origin: &str) -> Result<Self, NotAnOrigin> {
        Self::parse(origin, Way::Origins)
    }

    /// All sessions at the given origin, below `base_path` and `/s/`.
    pub fn paths(origin: &str, base_path: &str) -> Result<Self, NotAnOrigin> {
        let before = format!("{}/s/", base_path.trim_end_matches('/'));
        Self::parse(origin, Way::Paths(before))
    }

    fn parse(origin: &str, way: Way) -> Result<Self, NotAnOrigin> {
        let uri: Uri = origin.parse().map_err(|_| NotAnOrigin)?;
        let (scheme, own_port) = match uri.scheme_str() {
            Some("http") => ("http", 80),
            Some("https") => ("https", 443),
            _ => return Err(NotAnOrigin),
        };
        let authority = uri.authority().ok_or(NotAnOrigin)?;
        let is_bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
        if !is_bare || authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(NotAnOrigin);
        }
        let port = authority.port_u16().filter(|port| *port != own_port);
        Ok(Self {
            scheme,
            host: authority.host().to_ascii_lowercase(),
            port: port.map_or(String::new(), |port| format!(":{port}")),
            way,
        })
    }

    /// Whether every session has an origin of its own.
    pub fn is_isolating(&self) -> bool {
        self.way == Way::Origins
    }

    /// Whether browsers use HTTPS.
    pub fn is_secure(&self) -> bool {
        self.scheme == "https"
    }

    pub(crate) fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// The host, with its port, in the address bar of a session's visitors.
    pub(crate) fn host(&self, label: &Label) -> String {
        match self.way {
            Way::Origins => format!("{label}.{}{}", self.host, self.port),
            Way::Paths(_) => format!("{}{}", self.host, self.port),
        }
    }

    /// The session's origin, as browsers write it in `Origin`.
    pub fn origin(&self, label: &Label) -> String {
        format!("{}://{}", self.scheme, self.host(label))
    }

    /// The path that all of the session's addresses begin with, with a slash at its end.
    pub fn base(&self, label: &Label) -> String {
        match &self.way {
            Way::Origins => "/".to_owned(),
            Way::Paths(before) => format!("{before}{label}/"),
        }
    }

    /// The session's start page.
    pub fn url(&self, label: &Label) -> String {
        self.origin(label) + &self.base(label)
    }

    /// The label in a request's address. Every host in the request must be the same: with two different hosts, an
    /// attacker could make Berth and another party read different addresses.
    pub(crate) fn named<'a>(
        &self,
        uri: &'a Uri,
        headers: &'a HeaderMap,
        version: Version,
    ) -> Named<'a> {
        let before = match &self.way {
            Way::Origins => return self.named_by_host(uri, headers, version),
            Way::Paths(before) => before,
        };
        let Some(rest) = uri.path().strip_prefix(before.as_str()) else {
            return Named::Elsewhere;
        };
        Named::Label(rest.split('/').next().unwrap_or(rest))
    }

    fn named_by_host<'a>(
        &self,
        uri: &'a Uri,
        headers: &'a HeaderMap,
        version: Version,
    ) -> Named<'a> {
        let in_headers = headers.get_all(HOST).iter();
        let in_headers = in_headers.map(|value| value.to_str().unwrap_or_default());
        let mut hosts = in_headers
            .chain(uri.authority().map(Authority::as_str))
            .map(|host| self.label_of(host));
        let Some(first) = hosts.next() else {
            return Named::Elsewhere;
        };
        // An HTTP/1 client has no reason to send two `Host` headers, or a host in its request line.
        let is_plain = version == Version::HTTP_2 || uri.authority().is_none();
        let is_single = headers.get_all(HOST).iter().nth(1).is_none();
        if hosts.all(|other| other == first) && (is_plain && is_single || first == Named::Elsewhere)
        {
            first
        } else {
            Named::Nobody
        }
    }

    fn label_of<'a>(&self, host: &'a str) -> Named<'a> {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) => name,
            _ => host,
        };
        // A host name may end with the root's dot.
        let name = name.strip_suffix('.').unwrap_or(name);
        let Some(cut) = name.len().checked_sub(self.host.len()) else {
            return Named::Elsewhere;
        };
        let (label, domain) = name.as_bytes().split_at(cut);
        if !domain.eq_ignore_ascii_case(self.host.as_bytes()) {
            return Named::Elsewhere;
        }
        match label.strip_suffix(b".") {
            Some(label) => Named::Label(str::from_utf8(label).unwrap_or_default()),
            // The domain itself, or another name with the same ending.
            None => Named::Elsewhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_host(hosts: &[&str], target: &str) -> String {
        let addressing = Addressing::origins("https://Sessions.example.org").unwrap();
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().unwrap());
        }
        let uri = target.parse().unwrap();
        match addressing.named(&uri, &headers, Version::HTTP_11) {
            Named::Elsewhere => "elsewhere".to_owned(),
            Named::Nobody => "nobody".to_owned(),
            Named::Label(label) => format!("label {label}"),
        }
    }

    #[test]
    fn the_first_label_of_the_host_names_the_session() {
        for (host, expected) in [
            ("abc.sessions.example.org", "label abc"),
            ("abc.SESSIONS.example.org:8443", "label abc"),
            ("abc.sessions.example.org.", "label abc"),
            // No session can have this label, so the table does not contain it.
            ("a.b.sessions.example.org", "label a.b"),
            ("x@y.sessions.example.org", "label x@y"),
            ("abc.sessions.example.org:80@evil.example", "elsewhere"),
            ("[::1]:8443", "elsewhere"),
            ("sessions.example.org", "elsewhere"),
            ("evilsessions.example.org", "elsewhere"),
            ("abc.sessions.example.org.evil.example", "elsewhere"),
            ("berth.example.org", "elsewhere"),
            ("", "elsewhere"),
        ] {
            assert_eq!(by_host(&[host], "/"), expected, "{host}");
        }
    }

    #[test]
    fn a_request_that_names_two_hosts_is_nobodys() {
        let (mine, other) = ("abc.sessions.example.org", "def.sessions.example.org");
        assert_eq!(by_host(&[mine, other], "/"), "nobody");
        assert_eq!(by_host(&[mine, mine], "/"), "nobody");
        assert_eq!(by_host(&[mine, "evil.example"], "/"), "nobody");
        assert_eq!(by_host(&[mine], "https://evil.example/"), "nobody");
        assert_eq!(
            by_host(&["evil.example"], &format!("https://{mine}/")),
            "nobody"
        );
        assert_eq!(by_host(&[mine], &format!("https://{mine}/")), "nobody");
    }

    #[test]
    fn below_a_path_the_label_is_the_segment_after_it() {
        let addressing = Addressing::paths("https://berth.example.org", "/berth/").unwrap();
        let headers = HeaderMap::new();
        for (path, expected) in [
            ("/berth/s/abc/lab?x", Named::Label("abc")),
            ("/berth/s/abc", Named::Label("abc")),
            ("/berth/s/%61bc/", Named::Label("%61bc")),
            ("/berth/s/", Named::Label("")),
            ("/s/abc/", Named::Elsewhere),
            ("/berth/sites/", Named::Elsewhere),
        ] {
            let uri = path.parse().unwrap();
            let named = addressing.named(&uri, &headers, Version::HTTP_11);
            assert_eq!(named, expected, "{path}");
        }
    }

    #[test]
    fn a_session_has_one_address() {
        let label: Label = "abc-1".parse().unwrap();
        let own = Addressing::origins("http://localhost:8080").unwrap();
        assert_eq!(own.url(&label), "http://abc-1.localhost:8080/");
        assert!(own.is_isolating());
        let shared = Addressing::paths("https://Berth.example.org:443/", "").unwrap();
        assert_eq!(shared.url(&label), "https://berth.example.org/s/abc-1/");
        assert_eq!(shared.origin(&label), "https://berth.example.org");
        assert!(!shared.is_isolating());
    }

    #[test]
    fn what_is_no_origin_or_label_is_refused() {
        for text in [
            "",
            "example.org",
            "ftp://x",
            "https://a@b",
            "https://x/y",
            "https://x?y",
        ] {
            assert_eq!(Addressing::origins(text), Err(NotAnOrigin), "{text}");
        }
        for text in [
            "",
            "-a",
            "a-",
            "A",
            "a.b",
            "a/b",
            "a%41",
            "ä",
            &"a".repeat(64),
        ] {
            assert_eq!(text.parse::<Label>(), Err(NotALabel), "{text}");
        }
    }
}
