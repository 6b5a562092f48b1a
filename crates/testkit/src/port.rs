//! A TCP port on loopback that a server under test can bind, and bind again after a crash.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

/// Below the kernel's range of ephemeral ports. While a killed server is down, a client's connection could take a port
/// inside that range, and the restart would fail.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port on which nothing listens at this moment.
///
/// # Panics
/// When all ten thousand candidates are taken.
pub fn free() -> u16 {
    // A random start keeps concurrent test processes out of each other's way.
    let offset = (RandomState::new().hash_one(std::process::id()) % u64::from(COUNT)) as u16;
    (0..COUNT)
        .map(|step| FIRST + (offset + step) % COUNT)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("a free port on loopback")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_can_be_bound_and_lies_below_the_clients_range() {
        let port = free();
        assert!((FIRST..FIRST + COUNT).contains(&port));
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("bind the free port");
    }
}
