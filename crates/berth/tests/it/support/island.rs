//! A network and mounts of their own, for a server that a test cuts off from everything. Only root makes them.
//!
//! The test's end of the cable is in the machine's own network: a browser that runs at the same time sees the network change
//! and drops its requests.

use std::io::Read;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::net::{TcpListener, UnixStream};

/// A network namespace, joined to the test's own by one cable.
#[derive(Debug)]
pub struct Island {
    /// Keeps the namespace, and ends with the test.
    holder: Child,
    cable: String,
    /// The test's end of the cable, and the other one.
    pub shore: Ipv4Addr,
    pub address: Ipv4Addr,
}

impl Island {
    pub fn new() -> Island {
        // Tests of one program run at the same time, too.
        static ISLANDS: AtomicU8 = AtomicU8::new(0);
        let number = ISLANDS.fetch_add(1, Ordering::SeqCst);
        assert!(number < 63, "more islands than addresses");
        let mut holder = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "unshare", "--net"])
            .args(["sh", "-c", "echo apart; exec sleep infinity"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("setpriv and unshare");
        // Its network is its own from its first word on.
        let mut word = [0; 6];
        let said = holder.stdout.as_mut().expect("its output");
        said.read_exact(&mut word).expect("its first word");
        // Tests of several programs may run at the same time.
        let process = std::process::id();
        let [.., high, low] = process.to_be_bytes();
        let end = |last: u8| Ipv4Addr::new(10, high | 0x80, low, number * 4 + last);
        let island = Island {
            cable: format!("bi{process}n{number}"),
            shore: end(1),
            address: end(2),
            holder,
        };
        let (cable, inside) = (island.cable.as_str(), island.inside());
        let holder = island.holder.id().to_string();
        let pair = ["link", "add", cable, "type", "veth", "peer", "name"];
        ip(&[&pair[..], &["island", "netns", &holder]].concat());
        ip(&["addr", "add", &format!("{}/30", island.shore), "dev", cable]);
        ip(&["link", "set", cable, "up"]);
        for line in [
            format!("addr add {}/30 dev island", island.address),
            "link set island up".to_owned(),
            "link set lo up".to_owned(),
        ] {
            let words = line.split(' ').map(str::to_owned);
            let command: Vec<String> = inside
                .iter()
                .cloned()
                .chain(["ip".to_owned()])
                .chain(words)
                .collect();
            run(&command);
        }
        island
    }

    /// What is put in front of a command so that it runs there, with mounts of its own.
    pub fn inside(&self) -> Vec<String> {
        let holder = self.holder.id().to_string();
        [
            "nsenter", "--target", &holder, "--net", "--", "unshare", "--mount", "--",
        ]
        .map(str::to_owned)
        .into()
    }

    /// Pulls the cable, or plugs it in again.
    pub fn set_reachable(&self, is_reachable: bool) {
        let state = if is_reachable { "up" } else { "down" };
        ip(&["link", "set", &self.cable, state]);
    }

    /// Passes connections that come over the cable on to a socket of this machine; returns the port.
    pub async fn forward(&self, socket: &Path) -> u16 {
        let listener = TcpListener::bind((self.shore, 0)).await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let socket = socket.to_owned();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let socket = socket.clone();
                tokio::spawn(async move {
                    if let Ok(mut far) = UnixStream::connect(socket).await {
                        tokio::io::copy_bidirectional(&mut near, &mut far)
                            .await
                            .ok();
                    }
                });
            }
        });
        port
    }
}

impl Drop for Island {
    fn drop(&mut self) {
        self.holder.kill().ok();
        self.holder.wait().ok();
    }
}

fn ip(arguments: &[&str]) {
    let words = ["ip"].into_iter().chain(arguments.iter().copied());
    run(&words.map(str::to_owned).collect::<Vec<_>>());
}

fn run(command: &[String]) {
    let done = Command::new(&command[0]).args(&command[1..]).status();
    assert!(done.expect("a program").success(), "{command:?}");
}
