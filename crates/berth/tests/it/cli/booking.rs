//! Booking, and what becomes of bookings.

use serde_json::json;

use super::lab::lab;
use crate::support::desk::RESERVATION;

#[tokio::test(flavor = "multi_thread")]
async fn a_booking_from_its_making_to_the_record_of_it() {
    let desk = lab().await;
    let book = "book gpu-01 --from |2101-03-08 09:00| --for 3h --title |fine tuning| --param gpu-server.image=ubuntu";

    let tried = desk.run(&format!("{book} --dry-run"));
    assert_eq!(tried.succeeds().stdout, "It would be accepted.\n");
    let booked = desk.run(book);
    let said = "Booked gpu-01, Tue 8 Mar 2101 09:00–12:00 (3 h) Europe/Rome.\n";
    assert_eq!(booked.succeeds().stdout, said);
    let id = booked.find(RESERVATION);
    assert!(
        booked
            .stderr
            .contains(&format!("berth reservation cancel {id}")),
        "{booked:?}"
    );
    let tail = &id[id.len() - 6..];

    // What is taken is not promised again: neither it, nor what contains it.
    for wanted in ["gpu-01 --param gpu-server.image=debian", "rack-a"] {
        let refused = desk.run(&format!(
            "book {wanted} --from |2101-03-08 11:00| --to 14:00"
        ));
        refused.ends_with(5);
        assert!(refused.stderr.contains("you: fine tuning"), "{refused:?}");
        assert!(refused.stderr.contains(tail), "{refused:?}");
        assert_eq!(refused.stdout, "");
    }
    let as_json = desk.run("book rack-a --from |2101-03-08 11:00| --to 14:00 -o json");
    as_json.ends_with(5);
    let problem: serde_json::Value = serde_json::from_str(&as_json.stderr).expect("a problem");
    assert_eq!(problem["code"], "reservation.conflict");
    assert_eq!(problem["conflicts"][0]["claim"]["reservation"], id.as_str());

    let listed = desk.run("reservation list").succeeds();
    assert!(
        listed.stdout.contains(tail) && listed.stdout.contains("Tue 8 Mar 2101 12:00"),
        "{listed:?}"
    );
    assert!(
        listed.stdout.ends_with("Times are in Europe/Rome.\n"),
        "{listed:?}"
    );
    desk.run("book gpu-02 --for 2h --param gpu-server.image=ubuntu")
        .succeeds();
    let tree = desk.run("resource tree").succeeds();
    let now_of = |name: &str| {
        let row = tree.stdout.lines().find(|row| row.contains(name));
        row.expect(name).to_owned()
    };
    assert!(now_of("├─ gpu-01").contains("free"), "{tree:?}");
    assert!(now_of("└─ gpu-02").contains("busy until"), "{tree:?}");

    // An extension counts from the end and never shortens; setting an end may.
    let extended = desk
        .run(&format!("reservation extend {tail} --by 2h"))
        .succeeds();
    assert!(
        extended.stdout.contains("Tue 8 Mar 2101 09:00–14:00 (5 h)"),
        "{extended:?}"
    );
    let shortening = desk.run(&format!(
        "reservation extend {tail} --until |2101-03-08 10:00|"
    ));
    shortening.ends_with(1);
    let set = desk
        .run(&format!("reservation set {tail} --end |2101-03-08 10:00|"))
        .succeeds();
    assert!(
        set.stdout.contains("Tue 8 Mar 2101 09:00–10:00 (1 h)"),
        "{set:?}"
    );

    let cancelled = desk.run(&format!(
        "reservation cancel {id} --reason |the run is done| -o json"
    ));
    assert_eq!(cancelled.succeeds().json()["state"], "cancelled");
    let history = desk.run(&format!("reservation history {tail}")).succeeds();
    assert!(
        history.stdout.contains("confirmed → cancelled"),
        "{history:?}"
    );
    assert!(history.stdout.contains("the run is done"), "{history:?}");

    let verified = desk.run("audit verify").succeeds();
    assert!(
        verified.stdout.starts_with("The audit log is intact: "),
        "{verified:?}"
    );
    let audited = desk.run("audit list").succeeds();
    assert!(audited.stdout.contains("reservation.cancel"), "{audited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_reaches_the_server_and_nobody_else() {
    let desk = lab().await;
    let typed = desk.run("book gpu-01 --for 1h --param gpu-server.root-password=canary");
    typed.ends_with(2);
    assert!(
        typed
            .stderr
            .contains("--param-stdin gpu-server.root-password"),
        "{typed:?}"
    );
    let line = "book gpu-01 --for 1h --param gpu-server.image=ubuntu --param-stdin gpu-server.root-password";
    let booked = desk.run_with(line, "canary\n").succeeds();
    let id = booked.find(RESERVATION);
    for line in [
        format!("reservation show {id}"),
        format!("reservation show {id} -o json"),
        "audit list -o json".to_owned(),
        "event list -o json".to_owned(),
    ] {
        let shown = desk.run(&line).succeeds();
        assert!(!shown.stdout.contains("canary"), "{line}: {shown:?}");
    }
    let shown = desk
        .run(&format!("reservation show {id} -o json"))
        .succeeds()
        .json();
    assert_eq!(
        shown["parameters"]["gpu-server"]["root-password"],
        "********"
    );
    assert!(!desk.server().log().contains("canary"));
}

#[tokio::test(flavor = "multi_thread")]
async fn amounts_approvals_and_maintenance() {
    let desk = lab().await;
    desk.run("book licences:6 --from |2101-03-08 09:00| --for 2h")
        .succeeds();
    desk.run("book torino/licences:5 --from |2101-03-08 10:00| --for 2h")
        .ends_with(5);
    desk.run("book licences:4 --from |2101-03-08 10:00| --for 2h")
        .succeeds();
    desk.run("book licences --from |2101-03-08 10:00| --for 2h")
        .fails();

    let booked = desk
        .run("book gpu-02 --from |2101-03-08 09:00| --for 2h --param gpu-server.image=debian")
        .succeeds();
    let tail = booked.find(RESERVATION)[24..].to_owned();
    let plan = "maintenance plan rack-a --from |2101-03-08 08:00| --for 6h --title firmware";
    let undecided = desk.run(plan);
    undecided.ends_with(5);
    assert!(
        undecided
            .stderr
            .contains("--keep-all, --move-all or --cancel-all"),
        "{undecided:?}"
    );
    let tried = desk.run(&format!("{plan} --dry-run"));
    tried.ends_with(5);
    assert!(tried.stdout.contains("not decided"), "{tried:?}");
    desk.run(&format!("{plan} --keep {tail}")).succeeds();
    let listed = desk.run("maintenance list -o json").succeeds().json();
    assert_eq!(
        listed["items"][0]["parts"].as_array().map(Vec::len),
        Some(2),
        "{listed}"
    );
    let drawn = desk.run("calendar gpu-02 --from 2101-03-08").succeeds();
    assert!(drawn.stdout.contains("▒▒▓▓▓▓▒▒▒▒▒▒"), "{drawn:?}");

    desk.run("resource status gpu-01 unavailable --reason |on fire|")
        .succeeds();
    let refused = desk.run("book gpu-01 --for 1h --param gpu-server.image=debian");
    refused.ends_with(5);
    assert!(refused.stderr.contains("gpu-01"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_with_a_key_happens_once() {
    let desk = lab().await;
    let line = "book licences:2 --from |2101-03-08 09:00| --for 1h --idempotency-key k-1 -o json";
    let first = desk.run(line).succeeds().json();
    let again = desk.run(line).succeeds().json();
    assert_eq!(first["id"], again["id"]);
    let all = desk.run("reservation list -o json").succeeds().json();
    assert_eq!(all["items"].as_array().map(Vec::len), Some(1), "{all}");
    assert_eq!(all["next"], json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_told_as_they_happen() {
    let desk = lab().await;
    let mut watch = desk.start("event watch -o json --after 0");
    let mut kinds = Vec::new();
    while kinds.last().map(String::as_str) != Some("reservation.created") {
        let event = watch.next_line();
        let event: serde_json::Value = serde_json::from_str(&event).expect("an event in a line");
        kinds.push(event["kind"].as_str().expect("a kind").to_owned());
        if kinds.len() == 1 {
            desk.run("book licences:1 --from |2101-03-08 09:00| --for 1h")
                .succeeds();
        }
    }
    assert_eq!(
        kinds[0], "site.created",
        "those before come first: {kinds:?}"
    );
}
