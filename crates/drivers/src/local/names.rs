//! The host names that an admin opens to runs. They are resolved when a run starts, because their addresses change.
//!
//! A name server that does not answer must not block the queue. So a lookup has a timeout, and a name that failed is
//! not looked up again at once.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::machine;

/// Timeout for a name server.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before a failed name is looked up again.
const LOOKUP_AGAIN: Duration = Duration::from_secs(60);

/// The result for one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub name: String,
    /// The addresses that runs may reach.
    pub addresses: Vec<Ipv4Addr>,
    /// Why runs may reach fewer addresses than the name server returned.
    pub trouble: Option<String>,
}

/// The names in the settings, and the lookups that failed a moment ago.
#[derive(Debug)]
pub struct Names {
    names: Vec<String>,
    /// The host of the server's database, which nothing opens.
    database: Option<String>,
    failed: Mutex<HashMap<String, (Instant, String)>>,
}

impl Names {
    pub fn new(names: Vec<String>, database: Option<String>) -> Names {
        Names {
            names,
            database,
            failed: Mutex::default(),
        }
    }

    /// Resolves all names, in the order of the settings. The lookups run concurrently, so this takes as long as the
    /// slowest.
    pub async fn resolve(&self) -> Vec<Resolved> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let lookups: Vec<_> = self.names.iter().map(|name| self.begin(name)).collect();
        let never = self.never().await;
        let mut all = Vec::new();
        for (name, lookup) in self.names.iter().zip(lookups) {
            let found = self.end(name, lookup).await;
            all.push(judge(name, found, &never));
        }
        all
    }

    /// The addresses of the server itself and of its database. If they are unknown, no name may open anything.
    async fn never(&self) -> Result<BTreeSet<Ipv4Addr>, String> {
        let own = tokio::task::spawn_blocking(machine::own_addresses).await;
        let own = own.map_err(|error| error.to_string())?;
        let own = own.map_err(|error| format!("this machine's addresses: {error}"))?;
        let mut never: BTreeSet<Ipv4Addr> = own.into_iter().collect();
        never.extend(self.database().await?);
        Ok(never)
    }

    /// The addresses of the server's database, if its settings name a host.
    pub async fn database(&self) -> Result<Vec<Ipv4Addr>, String> {
        let Some(database) = &self.database else {
            return Ok(Vec::new());
        };
        let found = self.end(database, self.begin(database)).await;
        found.map_err(|why| format!("the database's host {database}: {why}"))
    }

    fn begin(&self, name: &str) -> Lookup {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match failed.get(name) {
            Some((at, why)) if at.elapsed() < LOOKUP_AGAIN => Lookup::Failed(why.clone()),
            _ => Lookup::Begun(tokio::spawn(addresses(name.to_owned()))),
        }
    }

    async fn end(&self, name: &str, lookup: Lookup) -> Result<Vec<Ipv4Addr>, String> {
        let found = match lookup {
            Lookup::Failed(why) => return Err(why),
            Lookup::Begun(task) => task.await.map_err(io::Error::other).flatten(),
        };
        let found = found.map_err(|error| error.to_string());
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match &found {
            Ok(_) => failed.remove(name),
            Err(why) => failed.insert(name.to_owned(), (Instant::now(), why.clone())),
        };
        found
    }
}

enum Lookup {
    Failed(String),
    Begun(tokio::task::JoinHandle<io::Result<Vec<Ipv4Addr>>>),
}

/// The IPv4 addresses of a host; runs have no IPv6. The lookup blocks a thread of its own, and continues there after
/// the timeout.
pub async fn addresses(host: String) -> io::Result<Vec<Ipv4Addr>> {
    let lookup = tokio::net::lookup_host((host, 0));
    let found = tokio::time::timeout(LOOKUP_PATIENCE, lookup).await;
    let found = found.map_err(|_| {
        let seconds = LOOKUP_PATIENCE.as_secs();
        io::Error::other(format!("no name server answered within {seconds} seconds"))
    })??;
    let four = found.filter_map(|address| match address {
        SocketAddr::V4(address) => Some(*address.ip()),
        SocketAddr::V6(_) => None,
    });
    let four: BTreeSet<Ipv4Addr> = four.collect();
    Ok(four.into_iter().collect())
}

/// Decides which addresses of a name runs may reach.
fn judge(
    name: &str,
    found: Result<Vec<Ipv4Addr>, String>,
    never: &Result<BTreeSet<Ipv4Addr>, String>,
) -> Resolved {
    let nothing = |trouble: String| Resolved {
        name: name.to_owned(),
        addresses: Vec::new(),
        trouble: Some(trouble),
    };
    let found = match found {
        Ok(found) => found,
        Err(why) => return nothing(format!("cannot be resolved: {why}")),
    };
    let never = match never {
        Ok(never) => never,
        Err(why) => return nothing(format!("opens nothing: {why}")),
    };
    if found.is_empty() {
        return nothing("has no IPv4 address".to_owned());
    }
    let (addresses, refused): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|address| may_be_opened(*address) && !never.contains(address));
    let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
    let trouble =
        (!refused.is_empty()).then(|| format!("is {}, which no name opens", refused.join(" and ")));
    Resolved {
        name: name.to_owned(),
        addresses,
        trouble,
    }
}

/// The owner of a name must not be able to choose an address of this machine or of the cloud's metadata service.
fn may_be_opened(address: Ipv4Addr) -> bool {
    let is_this_network = address.octets()[0] == 0;
    !(is_this_network
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(addresses: &[&str], never: &[&str]) -> Resolved {
        let read = |all: &[&str]| all.iter().map(|one| one.parse().unwrap()).collect();
        let never: Vec<Ipv4Addr> = read(never);
        judge(
            "storage",
            Ok(read(addresses)),
            &Ok(never.into_iter().collect()),
        )
    }

    #[test]
    fn a_name_opens_its_addresses() {
        let judged = judged(&["10.1.2.3", "203.0.113.9"], &["10.1.2.4"]);
        assert_eq!(judged.addresses.len(), 2);
        assert_eq!(judged.trouble, None);
    }

    #[test]
    fn a_name_never_opens_this_machine_its_database_or_link_local_addresses() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "169.254.169.254",
            "169.254.1.1",
            "224.0.0.1",
            "255.255.255.255",
            "10.1.2.4",
        ] {
            let judged = judged(&["10.1.2.3", address], &["10.1.2.4"]);
            assert_eq!(judged.addresses, [Ipv4Addr::new(10, 1, 2, 3)], "{address}");
            let trouble = judged.trouble.expect("it says so");
            assert_eq!(trouble, format!("is {address}, which no name opens"));
        }
    }

    #[test]
    fn where_the_database_is_unknown_no_name_opens_anything() {
        let found = Ok(vec![Ipv4Addr::new(10, 1, 2, 3)]);
        let judged = judge("storage", found, &Err("no answer".to_owned()));
        assert!(judged.addresses.is_empty() && judged.trouble.is_some());
    }

    #[tokio::test]
    async fn a_name_of_this_machine_opens_nothing_and_one_that_nobody_knows_is_said() {
        let names = ["localhost", "nobody.invalid"].map(str::to_owned);
        let resolved = Names::new(names.to_vec(), None).resolve().await;
        assert!(resolved.iter().all(|one| one.addresses.is_empty()));
        let trouble = |at: usize| resolved[at].trouble.clone().expect("it says so");
        assert_eq!(trouble(0), "is 127.0.0.1, which no name opens");
        assert!(
            trouble(1).starts_with("cannot be resolved: "),
            "{resolved:?}"
        );
    }

    #[tokio::test]
    async fn a_name_whose_lookup_failed_is_not_looked_up_again_at_once() {
        let names = Names::new(vec!["localhost".to_owned()], None);
        let failed = (
            "localhost".to_owned(),
            (Instant::now(), "no answer".to_owned()),
        );
        names.failed.lock().unwrap().extend([failed]);
        let resolved = names.resolve().await;
        let trouble = resolved[0].trouble.clone();
        assert_eq!(trouble.as_deref(), Some("cannot be resolved: no answer"));
    }

    #[tokio::test]
    async fn the_database_of_the_server_is_opened_by_no_name() {
        // A numeric address is its own result, so this asks no name server.
        let names = |database: Option<&str>| {
            Names::new(vec!["10.1.2.3".to_owned()], database.map(str::to_owned))
        };
        assert_eq!(names(None).resolve().await[0].addresses.len(), 1);
        let resolved = names(Some("10.1.2.3")).resolve().await;
        assert!(resolved[0].addresses.is_empty(), "{resolved:?}");
    }
}
