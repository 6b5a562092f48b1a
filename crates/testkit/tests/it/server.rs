//! Checks `BerthServer` with a stand-in program that behaves, dies and misbehaves on demand. The `berth` crate builds
//! the real binary, and its own tests use it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use berth_testkit::server::{Launch, Ready};
use berth_testkit::wait;
use tempfile::TempDir;
use tokio::net::TcpStream;

/// The command is `stand-in serve --config FILE`. The file holds a port, or a sentence with which the program must die.
const STAND_IN: &str = r#"#!/usr/bin/env python3
import http.server, os, signal, sys
text = open(sys.argv[3]).read()
print("settings:", sorted(name for name in os.environ if name.startswith("BERTH_")), flush=True)
if not text.isdigit():
    sys.exit("refused: " + text)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(text)), Handler).serve_forever()
"#;

fn stand_in(config: &str) -> (TempDir, Launch) {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("stand-in");
    fs::write(&program, STAND_IN).expect("write the program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("make it executable");
    (directory, Launch::new(program, config))
}

#[tokio::test]
async fn a_server_can_be_killed_restarted_and_stopped() {
    let (_program, launch) = stand_in("{port}");
    let mut server = launch.start().await.expect("start");
    let address = ("127.0.0.1", server.port());

    server.kill9().expect("kill");
    TcpStream::connect(address).await.expect_err("it is dead");
    server.kill9().expect_err("it cannot die twice");

    server.restart().await.expect("start again");
    TcpStream::connect(address)
        .await
        .expect("it lives on the same port");
    server
        .restart()
        .await
        .expect("a running one is stopped first");

    assert!(server.stop().await.expect("stop").success());
    assert_eq!(
        server.log().matches("settings:").count(),
        3,
        "one log over all its lives"
    );
}

#[tokio::test]
async fn a_refused_config_shows_what_the_server_said() {
    let (_program, launch) = stand_in("no such key");
    let error = launch
        .start()
        .await
        .expect_err("it must not start")
        .to_string();
    assert!(error.contains("ended before it was ready"), "{error}");
    assert!(error.contains("refused: no such key"), "{error}");
}

#[tokio::test]
async fn only_the_given_settings_reach_the_server() {
    let (_program, mut launch) = stand_in("{port}");
    launch.environment = vec![("BERTH_GIVEN".to_owned(), "1".to_owned())];
    launch.ready = Ready::Listening;
    let server = launch.start().await.expect("start");
    let said = "settings: ['BERTH_GIVEN']";
    wait::until(said, Duration::from_secs(10), async || {
        server.log().contains(said)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_survives_the_runtime_that_started_it() {
    let (_program, launch) = stand_in("{port}");
    let started = std::thread::spawn(|| {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(launch.start()).expect("start")
    });
    let mut server = started.join().expect("the starting thread");
    assert!(
        server
            .stop()
            .await
            .expect("it was still there to stop")
            .success()
    );
}
