//! Ranges of network addresses.

use std::fmt;
use std::net::IpAddr;
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
