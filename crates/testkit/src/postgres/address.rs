//! The address of a server, and of each of its databases.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};

use crate::tool;

/// A PostgreSQL server, given by the URL of one of its databases: `postgresql:///postgres?host=…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Up to and including the slash before the database's name.
    head: String,
    database: String,
    /// From the question mark on; it may be empty.
    query: String,
}

impl Address {
    /// The server with its socket in `directory`. The address is complete, so a stray `PGPORT` or `PGUSER` in the
    /// environment changes nothing.
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            head: "postgresql:///".to_owned(),
            database: "postgres".to_owned(),
            query: format!("?host={}&port=5432&user=postgres", directory.display()),
        }
    }

    /// Another database of the same server.
    pub fn database(&self, name: &str) -> Self {
        Self {
            database: name.to_owned(),
            ..self.clone()
        }
    }

    /// Runs SQL with `psql` and returns the output without decoration.
    pub fn execute(&self, statement: &str) -> Result<String> {
        let output = Command::new(tool::find("psql")?)
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
            .args(["--set=ON_ERROR_STOP=1", "--dbname"])
            .arg(self.to_string())
            .args(["--command", statement])
            .output()
            .context("could not run psql")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "`{statement}` failed: {}",
            complaint.trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self> {
        let (rest, query) = match url.find('?') {
            Some(mark) => url.split_at(mark),
            None => (url, ""),
        };
        let path = rest
            .strip_prefix("postgresql://")
            .or_else(|| rest.strip_prefix("postgres://"))
            .and_then(|rest| rest.find('/').map(|slash| &rest[slash + 1..]))
            .filter(|database| !database.is_empty() && !database.contains('/'));
        let Some(database) = path else {
            anyhow::bail!("`{url}` is not the address of a database, like postgresql://HOST/NAME");
        };
        let head = rest[..rest.len() - database.len()].to_owned();
        Ok(Self {
            head,
            database: database.to_owned(),
            query: query.to_owned(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.head, self.database, self.query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swaps_the_database_and_keeps_the_rest() {
        for (admin, expected) in [
            (
                "postgres://ann:pw@db:5433/postgres",
                "postgres://ann:pw@db:5433/own",
            ),
            (
                "postgresql:///postgres?host=/tmp/x&user=a",
                "postgresql:///own?host=/tmp/x&user=a",
            ),
        ] {
            let address: Address = admin.parse().expect(admin);
            assert_eq!(address.to_string(), admin);
            assert_eq!(address.database("own").to_string(), expected);
        }
    }

    #[test]
    fn refuses_what_names_no_database() {
        for wrong in [
            "",
            "postgres://host",
            "postgres://host/",
            "mysql://host/db",
            "/tmp/socket",
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_directory_is_an_address() {
        let address = Address::in_directory(Path::new("/tmp/pg"));
        assert_eq!(
            address
                .to_string()
                .parse::<Address>()
                .expect("its own text"),
            address
        );
    }
}
