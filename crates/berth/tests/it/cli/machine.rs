//! The commands of the server's own machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use berth_testkit::postgres::Database;

use super::lab::lab;
use crate::support::desk::{Desk, RESERVATION};

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_and_the_configuration_say_what_is_wrong() {
    let mut desk = Desk::with_admin().await;
    let config = desk.config();
    let well = desk.run(&format!("doctor --config {config}")).succeeds();
    assert!(well.stdout.contains("is ready"), "{well:?}");
    assert!(well.stdout.contains("synchronous 2"), "{well:?}");
    let second = desk.run(&format!("serve --config {config}"));
    second.ends_with(1);
    assert!(
        second.stderr.contains("another `berth serve`"),
        "{second:?}"
    );

    let checked = desk
        .run(&format!(
            "config check --config {config} --log-filter debug"
        ))
        .succeeds();
    assert!(checked.stdout.contains("berth.toml:1"), "{checked:?}");
    assert!(checked.stdout.contains("--log-filter"), "{checked:?}");
    desk.write(
        "wrong.toml",
        "lisen = \"127.0.0.1:1\"\nrequest_timeout_s = \"soon\"\n",
    );
    let wrong = desk.run("config check --config wrong.toml");
    wrong.ends_with(1);
    assert!(wrong.stderr.contains("Did you mean `listen`?"), "{wrong:?}");
    assert!(wrong.stderr.contains("request_timeout_s"), "{wrong:?}");

    desk.server_mut().stop().await.expect("stop");
    let key = desk.server().directory().join("secret.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("open the key to all");
    let ill = desk.run(&format!("doctor --config {config} -o json"));
    ill.ends_with(1);
    let findings = ill.json();
    let failed = |subject: &str| {
        let all = findings.as_array().expect("findings").iter();
        all.filter(|one| one["subject"] == subject)
            .any(|one| one["level"] == "fail")
    };
    assert!(failed("secret key") && !failed("database"), "{findings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_moves_to_postgresql() {
    let mut desk = lab().await;
    let booked = desk
        .run("book licences:2 --from |2101-03-08 09:00| --for 1h")
        .succeeds();
    let id = booked.find(RESERVATION);
    let database = Database::fresh().await;
    let config = desk.config();
    let line = format!("db move --config {config} --to {}", database.url);
    let running = desk.run(&line);
    running.ends_with(1);
    assert!(running.stderr.contains("stop it first"), "{running:?}");

    desk.server_mut().stop().await.expect("stop");
    let moved = desk.run(&line).succeeds();
    assert!(moved.stdout.contains("reservation"), "{moved:?}");
    assert!(moved.stdout.contains("the same on both sides"), "{moved:?}");
    desk.run(&line).ends_with(1);

    // People, their passwords, what they booked and the rule that guards it: all of it came along.
    let data = desk.server().directory().display();
    let url = &database.url;
    let grown = Desk::before(&format!(
        "listen = \"127.0.0.1:{{port}}\"\ndata_dir = \"{data}\"\ndatabase = \"{url}\"\n"
    ))
    .await;
    grown.login("ada");
    grown.run("site use torino").succeeds();
    let shown = grown
        .run(&format!("reservation show {id} -o json"))
        .succeeds()
        .json();
    assert_eq!(shown["state"], "confirmed");
    grown
        .run("book licences:9 --from |2101-03-08 10:00| --for 1h")
        .succeeds();
    grown
        .run("book licences:9 --from |2101-03-08 10:30| --for 1h")
        .ends_with(5);
    grown.run("audit verify").succeeds();
}
