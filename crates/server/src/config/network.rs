//! Ranges of network addresses, and hosts by name.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use super::values::Malformed;

/// A range of addresses, written as in `10.0.0.0/8`; one address is the range of itself alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// The lowest address of the range.
    first: IpAddr,
    prefix_bits: u32,
}

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        // A listener on an IPv6 address sees IPv4 callers in the mapped form.
        lowest(address.to_canonical(), self.prefix_bits) == Some(self.first)
    }

    /// Its lowest address and how many of its first bits count, unless it is of IPv6.
    pub fn ipv4(&self) -> Option<(Ipv4Addr, u32)> {
        match self.first {
            IpAddr::V4(first) => Some((first, self.prefix_bits)),
            IpAddr::V6(_) => None,
        }
    }
}

/// The address with all but its first bits cleared; `None` if it has no so many.
fn lowest(address: IpAddr, prefix_bits: u32) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => {
            let host_bits = u32::BITS.checked_sub(prefix_bits)?;
            let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
            Some(IpAddr::V4((address.to_bits() & mask).into()))
        }
        IpAddr::V6(address) => {
            let host_bits = u128::BITS.checked_sub(prefix_bits)?;
            let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
            Some(IpAddr::V6((address.to_bits() & mask).into()))
        }
    }
}

impl FromStr for Network {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| Malformed)?;
        let bits = if address.is_ipv4() {
            u32::BITS
        } else {
            u128::BITS
        };
        let prefix_bits = prefix.map_or(Ok(bits), str::parse).map_err(|_| Malformed)?;
        let first = lowest(address, prefix_bits).ok_or(Malformed)?;
        match first.to_canonical() {
            same if same == first => Ok(Network { first, prefix_bits }),
            // IPv4 in the mapped form, of whose prefix the first 96 bits are the mapping.
            mapped => {
                let prefix_bits = prefix_bits.checked_sub(96).ok_or(Malformed)?;
                Ok(Network {
                    first: mapped,
                    prefix_bits,
                })
            }
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = if self.first.is_ipv4() {
            u32::BITS
        } else {
            u128::BITS
        };
        if self.prefix_bits == bits {
            write!(out, "{}", self.first)
        } else {
            write!(out, "{}/{}", self.first, self.prefix_bits)
        }
    }
}

/// Where runs may go: a range of IPv4 addresses, for they have no IPv6, or a host by its name, with all its ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    Network(Network),
    Name(String),
}

impl FromStr for Destination {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        if let Ok(network) = text.parse::<Network>() {
            let is_reachable = network.ipv4().is_some();
            return (is_reachable.then_some(Destination::Network(network))).ok_or(Malformed);
        }
        match is_host_name(text) {
            true => Ok(Destination::Name(text.to_lowercase())),
            false => Err(Malformed),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Network(network) => network.fmt(out),
            Destination::Name(name) => out.write_str(name),
        }
    }
}

/// RFC 1123. A last part of digits alone is an address that was misspelt, never a name.
fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    text.len() <= 253
        && text.split('.').all(is_label)
        && !last.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_shown_by_their_lowest_address() {
        for (text, expected) in [
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("10.1.2.3/8", Some("10.0.0.0/8")),
            ("10.1.2.3", Some("10.1.2.3")),
            ("10.1.2.3/32", Some("10.1.2.3")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("fd00:1:2::3/48", Some("fd00:1:2::/48")),
            ("::1", Some("::1")),
            ("::/0", Some("::/0")),
            ("::ffff:10.1.2.3/104", Some("10.0.0.0/8")),
            ("10.0.0.0/33", None),
            ("10.0.0.0/-1", None),
            ("10.0.0/8", None),
            ("proxy.example.org", None),
            ("", None),
        ] {
            let network = text
                .parse::<Network>()
                .ok()
                .map(|network| network.to_string());
            assert_eq!(network.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_destination_is_a_network_or_a_name_without_a_port() {
        for (text, expected) in [
            ("10.1.2.3/8", Some("10.0.0.0/8")),
            ("10.1.2.3", Some("10.1.2.3")),
            ("::ffff:10.1.2.3", Some("10.1.2.3")),
            ("fd00::1", None),
            ("fd00::/8", None),
            ("::/0", None),
            ("Storage.Example.org", Some("storage.example.org")),
            ("nas", Some("nas")),
            ("nas-2.lab", Some("nas-2.lab")),
            ("nas:2049", None),
            ("10.0.0.300", None),
            ("10", None),
            ("nas.", None),
            ("-nas", None),
            ("nas_2", None),
            ("nas/24", None),
            ("https://nas", None),
            ("", None),
        ] {
            let destination = text.parse::<Destination>();
            let shown = destination.ok().map(|one| one.to_string());
            assert_eq!(shown.as_deref(), expected, "{text}");
        }
        assert_eq!("x".repeat(64).parse::<Destination>(), Err(Malformed));
    }

    #[test]
    fn networks_contain_their_addresses_and_no_others() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("10.0.0.0/8", "a00::1", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.4", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "203.0.113.9", false),
            ("fd00::/64", "fd00::ffff:1", true),
            ("fd00::/64", "fd00:0:0:1::1", false),
        ] {
            let network: Network = network.parse().expect("a network");
            let address = address.parse().expect("an address");
            assert_eq!(network.contains(address), expected, "{network} {address}");
        }
    }
}
