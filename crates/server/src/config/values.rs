//! The types of settings that are more than a number, a path or a word.
//!
//! Each is read once, here, and is right from then on.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use secrecy::{ExposeSecret, SecretString};

/// A value was not of the form that the table of settings describes. It says no more because the
/// table does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Where people reach the server: a scheme and a host, as browsers write an origin, without a path
/// or a slash at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(String);

impl PublicUrl {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PublicUrl {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let uri: Uri = text.parse().map_err(|_| Malformed)?;
        let default_port = match uri.scheme_str() {
            Some("http") => ":80",
            Some("https") => ":443",
            _ => return Err(Malformed),
        };
        let authority = uri.authority().ok_or(Malformed)?.as_str();
        let bare = uri.path() == "/" && uri.query().is_none() && !text.contains('#');
        if !bare || authority.contains('@') || authority.starts_with(':') {
            return Err(Malformed);
        }
        let host = authority.strip_suffix(default_port).unwrap_or(authority);
        let scheme = uri.scheme_str().unwrap_or_default();
        Ok(PublicUrl(format!("{scheme}://{host}").to_lowercase()))
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Where sessions get names of their own: an origin whose host is a name, since nothing stands below a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOrigin(PublicUrl);

impl SessionOrigin {
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for SessionOrigin {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let origin: PublicUrl = text.parse()?;
        let uri: Uri = origin.as_str().parse().map_err(|_| Malformed)?;
        let host = uri.host().unwrap_or_default();
        let is_number = host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
        if is_number {
            return Err(Malformed);
        }
        Ok(SessionOrigin(origin))
    }
}

impl fmt::Display for SessionOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// The path under which the server lives: empty, or `/` and segments without one at the end, so
/// that a path of the API can always be appended to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BasePath(String);

impl BasePath {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BasePath {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let inner = text.strip_prefix('/').unwrap_or(text);
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        if inner.is_empty() {
            return Ok(BasePath(String::new()));
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let sound =
            |segment: &str| !["", ".", ".."].contains(&segment) && segment.bytes().all(plain);
        if inner.split('/').all(sound) {
            Ok(BasePath(format!("/{inner}")))
        } else {
            Err(Malformed)
        }
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_empty() { "/" } else { &self.0 })
    }
}

/// Which database, and where. Neither `Debug` nor `Display` shows a password.
#[derive(Debug, Clone)]
pub enum Database {
    Sqlite(PathBuf),
    Postgres(SecretString),
}

impl Database {
    /// The machine that it is on, where its address names one.
    pub fn host(&self) -> Option<String> {
        let Database::Postgres(address) = self else {
            return None;
        };
        let uri: Uri = address.expose_secret().parse().ok()?;
        let host = uri.host().filter(|host| !host.is_empty())?;
        Some(host.trim_matches(['[', ']']).to_owned())
    }
}

impl FromStr for Database {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            // A database in memory would forget every promise at the next start.
            let is_file = !path.is_empty() && !path.starts_with(':') && !path.contains('?');
            return if is_file {
                Ok(Database::Sqlite(path.into()))
            } else {
                Err(Malformed)
            };
        }
        let schemes = ["postgres://", "postgresql://"];
        let address = schemes
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme))
            .ok_or(Malformed)?;
        let sound = !address.is_empty() && !address.contains(char::is_whitespace);
        if sound && (address.contains('@') || ends_in_port_or_name(address)) {
            Ok(Database::Postgres(text.into()))
        } else {
            Err(Malformed)
        }
    }
}

/// Whether what follows the last colon of the host, if there is one, can be a port. If not, it may
/// be the password of someone who forgot the host, and must not be taken for something harmless.
fn ends_in_port_or_name(address: &str) -> bool {
    let host = address.split(['/', '?']).next().unwrap_or_default();
    host.ends_with(']')
        || host
            .rsplit_once(':')
            .is_none_or(|(_, port)| port.parse::<u16>().is_ok())
}

impl fmt::Display for Database {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Database::Sqlite(path) => write!(out, "sqlite:{}", path.display()),
            Database::Postgres(url) => out.write_str(&masked(url.expose_secret())),
        }
    }
}

/// The address of a database with its passwords replaced by `****`. It hides rather too much: all
/// between the user's name and the last `@`, and every password in the query.
fn masked(url: &str) -> String {
    let credentials_end = url.rfind('@').unwrap_or(0);
    let user = url.find("://").map_or(0, |scheme| scheme + "://".len());
    let colon = url
        .get(user..credentials_end)
        .and_then(|user| user.find(':'));
    let url = match colon {
        Some(colon) => format!("{}:****{}", &url[..user + colon], &url[credentials_end..]),
        None => url.to_owned(),
    };
    let Some((before, query)) = url.split_once('?') else {
        return url;
    };
    let hide = |part: &str| match part.split_once('=') {
        Some((name, _)) if name.to_lowercase().contains("password") => format!("{name}=****"),
        _ => part.to_owned(),
    };
    format!(
        "{before}?{}",
        query.split('&').map(hide).collect::<Vec<_>>().join("&")
    )
}

/// Where an installer takes packages from. Whoever makes an environment can read it, so it has no password in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageIndex(String);

impl PackageIndex {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PackageIndex {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let rest = text
            .strip_prefix("https://")
            .or(text.strip_prefix("http://"));
        let is_good = |c: char| c.is_ascii_graphic() && !"@\"'".contains(c);
        match rest {
            Some(rest) if !rest.is_empty() && rest.chars().all(is_good) => {
                Ok(PackageIndex(text.to_owned()))
            }
            _ => Err(Malformed),
        }
    }
}

impl fmt::Display for PackageIndex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object in a line, for programs.
    Json,
}

/// What runs the work of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueBackend {
    /// Nothing: work can be submitted, and waits.
    None,
    /// A world that only says what would happen.
    Simulated,
    /// This machine, by processes in sandboxes.
    Local,
}

impl FromStr for QueueBackend {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        match text {
            "none" => Ok(QueueBackend::None),
            "simulated" => Ok(QueueBackend::Simulated),
            "local" => Ok(QueueBackend::Local),
            _ => Err(Malformed),
        }
    }
}

impl fmt::Display for QueueBackend {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            QueueBackend::None => "none",
            QueueBackend::Simulated => "simulated",
            QueueBackend::Local => "local",
        })
    }
}

impl FromStr for LogFormat {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        match text {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err(Malformed),
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: FromStr<Err = Malformed> + fmt::Display>(text: &str) -> Option<String> {
        text.parse::<T>().ok().map(|value| value.to_string())
    }

    #[test]
    fn a_database_says_which_machine_it_is_on() {
        for (text, expected) in [
            ("sqlite:berth.sqlite", None),
            ("postgres://host/berth", Some("host")),
            ("postgres://me:s3cret@db.lab:5432/berth", Some("db.lab")),
            ("postgres://[::1]/berth", Some("::1")),
            ("postgres:///berth?host=/run/pg", None),
        ] {
            let database: Database = text.parse().unwrap();
            assert_eq!(database.host().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn sessions_stand_below_a_name() {
        for (text, expected) in [
            ("https://S.example.org/", Some("https://s.example.org")),
            ("http://localhost:8080", Some("http://localhost:8080")),
            ("http://127.0.0.1:8080", None),
            ("http://[::1]:8080", None),
            ("https://s.example.org/below", None),
            ("s.example.org", None),
        ] {
            assert_eq!(read::<SessionOrigin>(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn public_addresses_are_origins_as_browsers_write_them() {
        for (text, expected) in [
            (
                "https://berth.example.org",
                Some("https://berth.example.org"),
            ),
            (
                "https://Berth.Example.org/",
                Some("https://berth.example.org"),
            ),
            (
                "https://berth.example.org:443",
                Some("https://berth.example.org"),
            ),
            ("http://localhost:8080", Some("http://localhost:8080")),
            ("http://[::1]:80", Some("http://[::1]")),
            ("berth.example.org", None),
            ("ftp://berth.example.org", None),
            ("https://", None),
            ("https://berth.example.org/lab", None),
            ("https://berth.example.org/?a=b", None),
            ("https://berth.example.org#top", None),
            ("https://me:pw@berth.example.org", None),
        ] {
            assert_eq!(read::<PublicUrl>(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn base_paths_are_normalised() {
        for (text, expected) in [
            ("", Some("")),
            ("/", Some("")),
            ("berth", Some("/berth")),
            ("/berth/", Some("/berth")),
            ("/lab/berth", Some("/lab/berth")),
            ("//", Some("")),
            ("/lab//berth", None),
            ("/lab/../berth", None),
            ("/la b", None),
            ("/lab?x", None),
        ] {
            let path = text.parse::<BasePath>().ok();
            assert_eq!(path.as_ref().map(BasePath::as_str), expected, "{text}");
        }
    }

    #[test]
    fn databases_are_files_or_servers_and_never_show_a_password() {
        for (text, expected) in [
            ("sqlite:berth.sqlite", Some("sqlite:berth.sqlite")),
            (
                "sqlite:///srv/berth.sqlite",
                Some("sqlite:/srv/berth.sqlite"),
            ),
            ("sqlite:", None),
            ("sqlite::memory:", None),
            ("sqlite:x?mode=memory", None),
            ("berth.sqlite", None),
            ("mysql://host/berth", None),
            ("postgres://", None),
            ("postgres://host/berth", Some("postgres://host/berth")),
            (
                "postgres://host:5432/berth",
                Some("postgres://host:5432/berth"),
            ),
            ("postgres://[::1]/berth", Some("postgres://[::1]/berth")),
            (
                "postgres:///berth?host=/run/pg",
                Some("postgres:///berth?host=/run/pg"),
            ),
            ("postgres://me@host/berth", Some("postgres://me@host/berth")),
            (
                "postgresql://me:s3cret@host/berth",
                Some("postgresql://me:****@host/berth"),
            ),
            (
                "postgres://me:a@b/c?d@host/berth",
                Some("postgres://me:****@host/berth"),
            ),
            (
                "postgres://host/berth?user=me&password=s3cret&sslmode=require",
                Some("postgres://host/berth?user=me&password=****&sslmode=require"),
            ),
            ("postgres://me:s3cret", None),
        ] {
            assert_eq!(read::<Database>(text).as_deref(), expected, "{text}");
        }
        let database: Database = "postgres://me:s3cret@host/berth"
            .parse()
            .expect("a database");
        assert!(!format!("{database:?}").contains("s3cret"));
    }
}
