//! The throw-away PostgreSQL must be durable while it runs, and leave nothing behind afterwards.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use berth_testkit::postgres::{Database, Server};
use berth_testkit::wait;

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn every_test_gets_an_empty_database_of_its_own() {
    let (one, other) = (Database::fresh().await, Database::fresh().await);
    one.execute("CREATE TABLE mine (x int)")
        .expect("create a table");
    let count = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(one.execute(count).expect("count"), "1");
    assert_eq!(other.execute(count).expect("count"), "0");
}

#[tokio::test]
async fn a_dropped_database_is_gone() {
    let onlooker = Database::fresh().await;
    let dropped = Database::fresh().await;
    let name = dropped
        .execute("SELECT current_database()")
        .expect("ask for its name");
    drop(dropped);
    let count = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
    assert_eq!(onlooker.execute(&count).expect("count"), "0");
}

#[tokio::test]
async fn the_server_is_as_durable_as_a_real_one() {
    let database = Database::fresh().await;
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        assert_eq!(
            database.execute(&format!("SHOW {setting}")).expect(setting),
            "on",
            "{setting}"
        );
    }
}

#[test]
fn what_was_committed_survives_a_crash_and_a_stop() {
    let mut server = Server::start().expect("start PostgreSQL");
    let database = Database::on(server.address()).expect("make a database");
    database
        .execute("CREATE TABLE t (x int); INSERT INTO t VALUES (1)")
        .expect("write");
    server.crash().expect("crash");
    database
        .execute("SELECT 1")
        .expect_err("nobody is there to answer");
    server.resume().expect("recover");
    database
        .execute("INSERT INTO t VALUES (2)")
        .expect("write again");
    server.stop().expect("stop");
    server.resume().expect("start again");
    assert_eq!(database.execute("SELECT sum(x) FROM t").expect("read"), "3");
}

#[tokio::test]
async fn nothing_stays_behind_when_the_owner_is_killed() {
    // The inner command ends with its input, so that it does not outlive this test.
    let mut owner = Command::new(env!("CARGO_BIN_EXE_with-postgres"))
        .args(["sh", "-c", "echo \"$BERTH_TEST_POSTGRES\"; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start with-postgres");
    let mut url = String::new();
    let stdout = owner.stdout.take().expect("its output");
    BufReader::new(stdout)
        .read_line(&mut url)
        .expect("read the address");
    let directory = url
        .split("host=")
        .nth(1)
        .and_then(|rest| rest.split('&').next());
    let directory = PathBuf::from(directory.expect("a directory in the address"));
    let postmaster = std::fs::read_to_string(directory.join("data/postmaster.pid"))
        .expect("the postmaster's file")
        .lines()
        .next()
        .expect("its first line")
        .to_owned();

    owner.kill().expect("kill -9");
    owner.wait().expect("wait for the owner");

    wait::until("the directory to be removed", PATIENCE, async || {
        !directory.exists()
    })
    .await;
    wait::until("the postmaster to end", PATIENCE, async || {
        !runs(&postmaster)
    })
    .await;
}

#[test]
fn with_postgres_passes_the_exit_code_on() {
    let status = Command::new(env!("CARGO_BIN_EXE_with-postgres"))
        .args(["sh", "-c", "exit 7"])
        .status()
        .expect("run with-postgres");
    assert_eq!(status.code(), Some(7));
}

/// Whether the process is still running. A zombie (`Z`), which nobody has reaped yet, is not.
fn runs(process: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .starts_with(" Z")
    })
}
