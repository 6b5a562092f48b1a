//! The table of settings. To add one, add a row; to see them all, read on.
//!
//! A row is the help, the key, the type, the default and the kind of value. Defaults are written
//! as a user would write them and read by the same code. `{user_data}` and `{data_dir}` in one
//! stand for directories known only at run time, so `data_dir` comes before those that use it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use berth_model::Name;

use super::host::HostPattern;
use super::kinds::{Kind, list, optional, parsed, path, text, truth, whole};
use super::layers::{Layers, variable};
use super::network::{Destination, Network};
use super::values::{
    BasePath, Database, LogFormat, PackageIndex, PublicUrl, QueueBackend, SessionOrigin,
};

macro_rules! settings {
    ($($(#[doc = $help:literal])+ $key:ident: $type:ty = $default:literal, $kind:expr;)+) => {
        /// Everything that can be set about a server, read and ready for use.
        #[derive(Debug, Clone)]
        pub struct Config {
            $($(#[doc = $help])+ pub $key: $type,)+
        }

        /// Every key, in the order of the table.
        pub(super) const KEYS: &[&str] = &[$(stringify!($key)),+];

        impl Config {
            /// Takes every setting out of the layers; `None` if any was wrong.
            pub(super) fn resolve(layers: &mut Layers) -> Option<Config> {
                $(let $key: Option<$type> = layers.resolve(stringify!($key), $default, &$kind);)+
                Some(Config { $($key: $key?),+ })
            }
        }

        fn rows() -> Vec<Row> {
            vec![$(Row::new::<$type>(stringify!($key), $default, &$kind, &[$($help),+])),+]
        }
    };
}

settings! {
    /// The address and port to listen on.
    listen: SocketAddr = "127.0.0.1:8080", parsed("an address and port such as 127.0.0.1:8080");
    /// The address people type into a browser, for links in what Berth sends out.
    public_url: Option<PublicUrl> = "", optional(parsed(
        "an address such as https://berth.example.org (a path goes into base_path)",
    ));
    /// The address below which every session gets a name of its own, as in
    /// `https://NAME.sessions.example.org`. Without it, sessions are at names below `localhost` where
    /// Berth itself is on this machine, and share Berth's own address everywhere else.
    session_origin: Option<SessionOrigin> = "", optional(parsed(
        "an address such as https://sessions.example.org, with a name and not a number",
    ));
    /// Further hosts that the server answers for, beside those of `public_url` and `session_origin` and the
    /// address it listens on: for example an inner name that metrics are read by. A request for any other host is
    /// refused, except for `/healthz` and `/readyz`.
    allowed_hosts: Vec<HostPattern> = "", list(parsed(
        "a host such as berth.internal, *.berth.internal or 10.0.0.5, and a port if only that one is meant",
    ));
    /// The path under which Berth lives when it shares its address with others.
    base_path: BasePath = "", parsed("nothing, or a path such as /berth");
    /// Where Berth keeps its files. Without `XDG_DATA_HOME` the default is below
    /// `~/.local/share`.
    data_dir: PathBuf = "{user_data}/berth", path();
    /// The database: a file of SQLite, or a server of PostgreSQL.
    database: Database = "sqlite:{data_dir}/berth.sqlite", parsed(
        "sqlite: and the path of a file, or postgres://user:password@host/name",
    ).secret();
    /// The file with the key that encrypts secrets in the database. Made on the first start;
    /// keep a copy away from the copies of the database.
    secret_key_file: PathBuf = "{data_dir}/secret.key", path();
    /// The certificate chain (PEM) for serving HTTPS without a proxy; needs tls_key.
    tls_certificate: Option<PathBuf> = "", optional(path());
    /// The private key (PEM) of the certificate; needs tls_certificate.
    tls_key: Option<PathBuf> = "", optional(path());
    /// The reverse proxies whose word on the caller's address is taken.
    trusted_proxies: Vec<Network> = "", list(parsed(
        "an address or network such as 10.0.0.0/8",
    ));
    /// The file with the token that `/metrics` asks for. Without it, and besides it, `/metrics` answers programs on this
    /// machine that come directly and not through a proxy.
    metrics_token_file: Option<PathBuf> = "", optional(path());
    /// Networks that are not public, and from which closure calendars may be read by address all
    /// the same, also without TLS.
    calendar_networks: Vec<Network> = "", list(parsed(
        "an address or network such as 10.0.0.0/8",
    ));
    /// What runs the work of the queue: nothing, a simulated world for trying things out, or this
    /// machine.
    queue_backend: QueueBackend = "none", parsed("none, simulated or local");
    /// Networks that runs never reach, in addition to the machine itself, private networks and
    /// the addresses of cloud metadata services. Runs have no IPv6, so IPv6 networks are closed anyway.
    closed_networks: Vec<Network> = "", list(parsed(
        "an address or network such as 10.0.0.0/8",
    ));
    /// Private networks that runs may reach all the same, such as the storage of the institution. A host name opens the
    /// addresses that it has when a run starts, with all their ports.
    opened_networks: Vec<Destination> = "", list(parsed(
        "an IPv4 address, an IPv4 network such as 10.0.0.0/8, or a host name (runs have no IPv6)",
    ));
    /// The first of the user numbers that people get on this machine, where the server is root;
    /// nothing else may use the numbers from there on. A home that belongs to a lower number is not used.
    first_user: u32 = "200000", whole(1000..=2_000_000_000);
    /// Seconds between two looks for sessions that nobody uses.
    cull_every_s: u64 = "600", whole(1..=86_400);
    /// Seconds before a session is stopped for being idle in which its owner knows of it.
    cull_warning_s: u64 = "300", whole(1..=86_400);
    /// The site in whose inventory this machine stands with its cores, memory and GPUs, where it
    /// runs work itself.
    machine_site: Option<Name> = "", optional(parsed("the name of a site"));
    /// Cores of this machine that are kept for the machine itself.
    machine_cores_kept: u64 = "0", whole(0..=10_000);
    /// Memory of this machine, in MiB, that is kept for the machine itself.
    machine_memory_kept_mib: u64 = "512", whole(0..=100_000_000);
    /// Whether several people's work may run on this machine although the boundary of a run does not
    /// hold there: it has no sandbox, or the server is not root. Every page then says so.
    unsafe_shared_user: bool = "false", truth();
    /// Whether sessions may share Berth's own address where they have no origin of their own
    /// (`session_origin`). What runs in one can then act as its visitors. Every page then says so.
    unsafe_shared_origin: bool = "false", truth();
    /// A folder with environments that were made before the server is started (by
    /// `berth env prepare`); every site with a queue has them.
    prepared_environments: Option<PathBuf> = "", optional(path());
    /// The most warm servers that this machine keeps, so that a notebook starts at once: one for
    /// each prepared environment in use. Each takes about 100 MiB of what is kept for the machine.
    warm_servers: usize = "4", whole(0..=64);
    /// The index from which packages of environments are taken; the installer's own, if none.
    package_index: Option<PackageIndex> = "", optional(parsed(
        "an address such as https://packages.example.org/simple, without a password",
    ));
    /// Space, in MiB, that the server keeps free inside the files of an SQLite database, so that it can
    /// write when the disk is full; 0 keeps none. The disk of a PostgreSQL is its own admin's.
    database_reserve_mib: u64 = "16", whole(0..=100_000);
    /// The most disk space, in MiB, that a person's home may take on this machine. Above it nothing
    /// more of theirs starts, except work of at most ten minutes; 0 turns the limit off.
    home_limit_mib: u64 = "102400", whole(0..=1_000_000_000);
    /// The most disk space, in MiB, that a person's own environments may take together. Above it they
    /// cannot make another, and one that is being made is ended; 0 turns the limit off.
    environments_limit_mib: u64 = "51200", whole(0..=1_000_000_000);
    /// Disk space, in MiB, that has to be free where homes, runs and environments are. Below it
    /// nothing more starts on this machine; 0 turns the reserve off.
    disk_reserve_mib: u64 = "1024", whole(0..=1_000_000_000);
    /// Days after the end of a run for which its folder on this machine is kept. Then the folder is
    /// removed, and the last 64 KiB of the run's log are kept for as long as `log_retention_d` says.
    run_retention_d: u32 = "14", whole(0..=36_500);
    /// Days after the end of a run for which its log can be read.
    log_retention_d: u32 = "365", whole(0..=36_500);
    /// How log lines are written: for people or for programs.
    log_format: LogFormat = "text", parsed("text or json");
    /// What is logged: a level, or levels by module such as `info,berth_server=debug`.
    log_filter: String = "info", text();
    /// Connections to the database held at most.
    db_connections: u32 = "64", whole(1..=1000);
    /// The largest request body that is read.
    request_body_limit_bytes: usize = "1048576", whole(1024..=1_073_741_824);
    /// Time for answering a request; live streams are exempt.
    request_timeout_s: u64 = "30", whole(1..=3600);
    /// Time for a client to send the head of its request.
    header_timeout_s: u64 = "10", whole(1..=600);
    /// Connections served at the same time; more wait to be accepted.
    connections_max: usize = "4096", whole(1..=1_000_000);
    /// Requests each caller may make in a second, in the long run; 0 turns the limit off.
    rate_limit_per_s: u32 = "50", whole(0..=1_000_000);
    /// Requests each caller may make at once before that limit holds; 0 turns the limit off.
    rate_limit_burst: u32 = "200", whole(0..=1_000_000);
    /// Wrong passwords for one login from one network in 15 minutes; then that network waits until it may try again.
    sign_in_attempts_max: u32 = "10", whole(1..=1000);
    /// Wrong passwords for one login from all networks in 15 minutes; then the account is locked for a while.
    sign_in_attempts_login_max: u32 = "50", whole(1..=10_000);
    /// Wrong passwords from one network in 15 minutes, for all logins; then that network waits until it may try again.
    sign_in_attempts_network_max: u32 = "200", whole(1..=100_000);
    /// Hours without a request after which a browser session ends.
    session_idle_h: u32 = "12", whole(1..=8760);
    /// Days after which a browser session ends in any case.
    session_absolute_d: u32 = "30", whole(1..=3650);
    /// The fewest characters of a password.
    password_min_length: usize = "12", whole(8..=128);
    /// Days for which events can be read again by a client that was away.
    event_retention_d: u32 = "400", whole(1..=36_500);
}

impl Config {
    /// Certificate and key, when Berth serves HTTPS itself.
    pub fn tls(&self) -> Option<(&Path, &Path)> {
        self.tls_certificate.as_deref().zip(self.tls_key.as_deref())
    }

    /// Whether people's work may meet on this machine.
    pub fn shares_a_user(&self) -> bool {
        self.unsafe_shared_user && self.queue_backend == QueueBackend::Local
    }

    /// The table of all settings as Markdown.
    pub fn documentation() -> String {
        let mut out = "| key | environment variable | default | accepts | meaning |\n\
                       |---|---|---|---|---|\n"
            .to_owned();
        for Row {
            key,
            default,
            accepts,
            help,
        } in rows()
        {
            let default = match default {
                "" => "none".to_owned(),
                template => {
                    format!("`{}`", template.replace("{user_data}", "$XDG_DATA_HOME"))
                }
            };
            let variable = variable(key);
            out += &format!("| `{key}` | `{variable}` | {default} | {accepts} | {help} |\n");
        }
        out
    }
}

/// One setting, as the documentation shows it.
struct Row {
    key: &'static str,
    default: &'static str,
    accepts: String,
    help: String,
}

impl Row {
    fn new<T: 'static>(
        key: &'static str,
        default: &'static str,
        kind: &Kind<T>,
        help: &[&'static str],
    ) -> Self {
        let help: Vec<&str> = help.iter().map(|line| line.trim()).collect();
        Row {
            key,
            default,
            accepts: kind.accepts.clone(),
            help: help.join(" "),
        }
    }
}
