//! Hosts that an admin opens by name: a private network with one neighbour and a list of names, which this test's thread
//! and what it starts have for themselves.
//!
//! Only root makes such a network, so this is for root; CI is.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use berth_model::workload::Outcome;
use nix::sched::{CloneFlags, unshare};

use super::{Machine, eventually};

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

/// What a run of this machine reaches.
async fn reached(names: &[&str], lines: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let machine = Machine::with(|settings| settings.opened_names.clone_from(&names));
    let (outcome, said, log) = machine.shell(1, lines).await;
    assert_eq!(outcome, Outcome::Completed, "{said} {log}");
    log
}

#[test]
fn a_run_reaches_a_host_that_was_opened_by_name_and_nothing_that_means_this_machine() {
    on_a_thread_of_its_own(async || {
        let _neighbour = Neighbour::start();
        let address = SocketAddr::from((NEIGHBOUR, PORT));
        eventually("the neighbour to serve", async || {
            TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()
        })
        .await;
        let own = std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT));
        let _own = own.expect("it works");
        let hosts = [NEIGHBOUR, HERE, Ipv4Addr::LOCALHOST];
        let lines: String = hosts
            .iter()
            .map(|to| format!("(timeout 20 bash -c '</dev/tcp/{to}/{PORT}' && echo reached {to}) 2>/dev/null; "))
            .collect();
        let lines = format!("{lines} ip route show table main; true");
        let is_reached = |log: &str, host: Ipv4Addr| log.contains(&format!("reached {host}\n"));

        let closed = reached(&[], &lines).await;
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
        let opened = reached(&names, &lines).await;
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
