//! Hosts as requests name them, and the patterns that say which of them are this server's.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::values::Malformed;

/// The longest name that DNS knows.
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;

/// A host with an optional port, as `Host` and `:authority` carry it. Names are in lower case and without the root's
/// dot at the end, so that equal hosts are equal values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    name: HostName,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostName {
    Name(String),
    Address(IpAddr),
}

impl FromStr for Host {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        // The colons of an IPv6 address stand in brackets.
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(read_port(port)?)),
            _ => (text, None),
        };
        Ok(Host {
            name: name.parse()?,
            port,
        })
    }
}

/// `u16` alone would also read `+80`.
fn read_port(text: &str) -> Result<u16, Malformed> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|_| is_number);
    port.ok_or(Malformed)
}

impl FromStr for HostName {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        if let Some(inner) = text.strip_prefix('[') {
            let address: Ipv6Addr = inner
                .strip_suffix(']')
                .and_then(|inner| inner.parse().ok())
                .ok_or(Malformed)?;
            return Ok(HostName::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Ok(HostName::Address(address.into()));
        }
        let last = name.rsplit('.').next().unwrap_or_default();
        // Some resolvers read `127.1` as an address.
        let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
        match name.len() <= NAME_MAX && !is_number && name.split('.').all(is_label) {
            true => Ok(HostName::Name(name)),
            false => Err(Malformed),
        }
    }
}

fn is_label(label: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=LABEL_MAX).contains(&label.len()) && label.bytes().all(is_plain)
}

impl Host {
    /// The same host at any port.
    pub fn without_port(self) -> Self {
        Host { port: None, ..self }
    }

    /// Whether browsers find this host on the machine that they run on.
    pub fn is_loopback(&self) -> bool {
        match &self.name {
            HostName::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            HostName::Address(address) => address.is_loopback(),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            HostName::Name(name) => out.write_str(name),
            HostName::Address(IpAddr::V4(address)) => address.fmt(out),
            HostName::Address(IpAddr::V6(address)) => write!(out, "[{address}]"),
        }?;
        self.port.map_or(Ok(()), |port| write!(out, ":{port}"))
    }
}

/// One or more hosts: `name`, `name:port`, an address, or `*.name` for every name below it. Without a port it matches
/// every port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    host: Host,
    is_wildcard: bool,
}

impl HostPattern {
    pub fn exactly(host: Host) -> Self {
        HostPattern {
            host,
            is_wildcard: false,
        }
    }

    /// Every name below this one, but not the name itself.
    pub fn below(host: Host) -> Self {
        HostPattern {
            host,
            is_wildcard: true,
        }
    }

    pub fn matches(&self, host: &Host) -> bool {
        self.matches_name(&host.name) && self.matches_port(host.port)
    }

    fn matches_name(&self, name: &HostName) -> bool {
        if !self.is_wildcard {
            return self.host.name == *name;
        }
        match (&self.host.name, name) {
            (HostName::Name(domain), HostName::Name(name)) => name
                .strip_suffix(domain.as_str())
                .is_some_and(|before| before.ends_with('.')),
            _ => false,
        }
    }

    /// A request that names no port was sent to the one of its scheme.
    fn matches_port(&self, port: Option<u16>) -> bool {
        match (self.host.port, port) {
            (None, _) => true,
            (Some(own), None) => matches!(own, 80 | 443),
            (Some(own), Some(port)) => own == port,
        }
    }
}

impl FromStr for HostPattern {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let Some(domain) = text.strip_prefix("*.") else {
            return text.parse().map(HostPattern::exactly);
        };
        let host: Host = domain.parse()?;
        match host.name {
            HostName::Name(_) => Ok(HostPattern::below(host)),
            HostName::Address(_) => Err(Malformed),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = if self.is_wildcard { "*." } else { "" };
        write!(out, "{before}{}", self.host)
    }
}
