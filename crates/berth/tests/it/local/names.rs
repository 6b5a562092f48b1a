//! Hosts and ranges that an admin opens: a private network with one neighbour and a list of names, which this test's
//! thread and what it starts have for themselves.
//!
//! Only root makes such a network, so this is for root; CI is.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use berth_drivers::backend::{Backend, Fence, Job};
use berth_drivers::local::Settings;
use berth_drivers::local::network::Range;
use berth_model::workload::Outcome;
use nix::sched::{CloneFlags, unshare};
use serde_json::json;

use super::{Machine, eventually, grant, now, work};

const HERE: Ipv4Addr = Ipv4Addr::new(10, 99, 7, 1);
const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(10, 99, 7, 2);
const PORT: u16 = 8000;
/// Names of the neighbour, of this machine in three ways, and of where clouds tell secrets.
const HOSTS: &str = "10.99.7.2 storage.lab\n127.0.0.1 sneaky.lab\n10.99.7.1 here.lab\n0.0.0.0 zero.lab\n169.254.169.254 cloud.lab\n";

fn run(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).status();
    assert!(done.expect(program).success(), "{program} {arguments:?}");
}

/// A machine on the other end of a cable, which serves its pages.
struct Neighbour(Child);

impl Neighbour {
    fn start() -> Neighbour {
        let serve = format!(
            "read ready && ip addr add {NEIGHBOUR}/30 dev far && ip link set far up && \
             exec python3 -m http.server {PORT} --bind {NEIGHBOUR} 2>/dev/null"
        );
        let mut child = Command::new("unshare")
            .args(["--net", "sh", "-c", &format!("echo apart; {serve}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare");
        // Its network is its own from its first word on.
        let mut word = [0; 6];
        let said = child.stdout.as_mut().expect("its output");
        std::io::Read::read_exact(said, &mut word).expect("its first word");
        let process = child.id().to_string();
        let cable = ["link", "add", "near", "type", "veth", "peer", "name", "far"];
        run("ip", &[&cable[..], &["netns", &process]].concat());
        run("ip", &["addr", "add", &format!("{HERE}/30"), "dev", "near"]);
        run("ip", &["link", "set", "near", "up"]);
        let ready = child.stdin.as_mut().expect("its input");
        ready.write_all(b"ready\n").expect("it listens");
        Neighbour(child)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Gives this thread mounts and a network of its own, in which these names are known.
fn move_out(hosts: &std::path::Path) {
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET).expect("only root may");
    run("mount", &["--make-rprivate", "/"]);
    std::fs::write(hosts, HOSTS).expect("it works");
    let hosts = hosts.to_str().expect("it is text");
    run("mount", &["--bind", hosts, "/etc/hosts"]);
    run("ip", &["link", "set", "lo", "up"]);
}

fn on_a_thread_of_its_own(test: impl AsyncFnOnce() + Send + 'static) {
    let thread = std::thread::spawn(move || {
        let folder = tempfile::tempdir().expect("it works");
        move_out(&folder.path().join("hosts"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("it works").block_on(test());
    });
    thread.join().expect("what it expected holds");
}

/// What a run of this machine says, with these settings and perhaps a package index.
async fn said(set: impl Fn(&mut Settings), index: Option<&str>, lines: &str) -> String {
    let machine = Machine::with(set);
    let (workload, run) = work(json!({"command": ["bash", "-c", lines]}));
    let mut grant = grant(1);
    grant.package_index = index.map(str::to_owned);
    let job = Job {
        workload: &workload,
        run: &run,
    };
    let started = machine.local.start(job, &grant, Fence(1), now()).await;
    started.expect("it works");
    let (outcome, said, log) = machine.until_over(&workload, &run).await;
    assert_eq!(outcome, Outcome::Completed, "{said} {log}");
    log
}

/// Lines that say which of these hosts they reach, and by which routes.
fn tries(hosts: &[Ipv4Addr]) -> String {
    let reach = |to: &Ipv4Addr| {
        format!("(timeout 20 bash -c '</dev/tcp/{to}/{PORT}' && echo reached {to}) 2>/dev/null; ")
    };
    let lines: String = hosts.iter().map(reach).collect();
    format!("{lines} ip route show table main; true")
}

fn is_reached(log: &str, host: Ipv4Addr) -> bool {
    log.contains(&format!("reached {host}\n"))
}

/// This machine listens, too, so that nothing but a closed route keeps a run from it.
async fn both_listen() -> std::net::TcpListener {
    let address = SocketAddr::from((NEIGHBOUR, PORT));
    eventually("the neighbour to serve", async || {
        TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()
    })
    .await;
    std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).expect("it works")
}

const HOSTS_TRIED: [Ipv4Addr; 3] = [NEIGHBOUR, HERE, Ipv4Addr::LOCALHOST];

#[test]
fn a_run_reaches_a_host_that_was_opened_by_name_and_nothing_that_means_this_machine() {
    on_a_thread_of_its_own(async || {
        let _neighbour = Neighbour::start();
        let _own = both_listen().await;
        let lines = tries(&HOSTS_TRIED);
        let closed = said(|_| {}, None, &lines).await;
        assert!(!closed.contains("reached"), "{closed}");

        // A name that nobody knows does not keep the run from starting, nor the others from being opened.
        let names = [
            "nobody.invalid",
            "storage.lab",
            "sneaky.lab",
            "here.lab",
            "zero.lab",
            "cloud.lab",
            "localhost",
        ];
        let open_names = |settings: &mut Settings| {
            settings.opened_names = names.map(str::to_owned).to_vec();
        };
        let opened = said(open_names, None, &lines).await;
        assert!(is_reached(&opened, NEIGHBOUR), "{opened}");
        assert!(!is_reached(&opened, HERE), "{opened}");
        assert!(!is_reached(&opened, Ipv4Addr::LOCALHOST), "{opened}");
        let routes: Vec<&str> = opened
            .lines()
            .filter(|line| line.contains(" via 10.0.2.2 "))
            .collect();
        let is_default = |route: &&str| route.starts_with("default ");
        let routes: Vec<_> = routes.iter().filter(|route| !is_default(route)).collect();
        assert_eq!(routes.len(), 1, "{opened}");
        assert!(routes[0].starts_with("10.99.7.2 "), "{opened}");
    });
}

/// A range that is opened, what is closed and where the database is; whether a run then reaches the neighbour.
struct Opened {
    range: (Ipv4Addr, u32),
    closed: Option<(Ipv4Addr, u32)>,
    database: Option<&'static str>,
    is_reached: bool,
}

const EQUAL: (Ipv4Addr, u32) = (Ipv4Addr::new(10, 0, 0, 0), 8);

const fn opened(range: (Ipv4Addr, u32), is_reached: bool) -> Opened {
    Opened {
        range,
        closed: None,
        database: None,
        is_reached,
    }
}

#[test]
fn a_run_reaches_a_private_range_that_was_opened_and_nothing_in_it_that_stays_closed() {
    on_a_thread_of_its_own(async || {
        let _neighbour = Neighbour::start();
        let _own = both_listen().await;
        let lines = tries(&HOSTS_TRIED);
        let narrower = (Ipv4Addr::new(10, 99, 0, 0), 16);
        let all = [
            opened(EQUAL, true),
            opened(narrower, true),
            opened((Ipv4Addr::new(8, 0, 0, 0), 6), true),
            opened((Ipv4Addr::UNSPECIFIED, 0), true),
            opened((Ipv4Addr::new(192, 168, 0, 0), 16), false),
            Opened {
                closed: Some(narrower),
                ..opened(EQUAL, false)
            },
            Opened {
                closed: Some(EQUAL),
                ..opened(EQUAL, false)
            },
            Opened {
                database: Some("storage.lab"),
                ..opened(EQUAL, false)
            },
            // Nobody knows where the database is: it could be there.
            Opened {
                database: Some("nobody.invalid"),
                ..opened(EQUAL, false)
            },
        ];
        for one in all {
            let set = |settings: &mut Settings| {
                settings.opened = vec![Range::new(one.range.0, one.range.1)];
                settings.closed = one
                    .closed
                    .map(|(first, bits)| Range::new(first, bits))
                    .into_iter()
                    .collect();
                settings.database_host = one.database.map(str::to_owned);
            };
            let log = said(set, None, &lines).await;
            let (first, bits) = one.range;
            assert_eq!(
                is_reached(&log, NEIGHBOUR),
                one.is_reached,
                "{first}/{bits}: {log}"
            );
            for never in [HERE, Ipv4Addr::LOCALHOST] {
                assert!(!is_reached(&log, never), "{first}/{bits}: {log}");
            }
            for never in ["10.0.2.2", "169.254.169.254", "169.254.170.2"] {
                let route = format!("unreachable {never} ");
                assert!(log.contains(&route), "{first}/{bits}: {log}");
            }
        }
    });
}

/// What makes an environment takes its packages from there.
#[test]
fn a_package_index_at_a_private_address_is_reached_by_what_is_given_one() {
    on_a_thread_of_its_own(async || {
        let _neighbour = Neighbour::start();
        let _own = both_listen().await;
        let lines = tries(&HOSTS_TRIED);
        for index in [
            "http://10.99.7.2:8000/simple",
            "http://storage.lab:8000/simple",
        ] {
            let log = said(|_| {}, Some(index), &lines).await;
            assert!(is_reached(&log, NEIGHBOUR), "{index}: {log}");
            assert!(!is_reached(&log, HERE), "{index}: {log}");
        }
        let own = format!("http://{HERE}:{PORT}/simple");
        let log = said(|_| {}, Some(&own), &lines).await;
        assert!(!log.contains("reached"), "{log}");
    });
}
