//! The real program, typed at as people and scripts type: against the real server, end to end.
//!
//! Bookings lie far ahead, on a day that no clock reaches while a test runs.

mod cli {
    pub mod desk;
    pub mod walk;
}

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;

use berth_testkit::postgres::Database;
use cli::desk::{Desk, PASSWORD, RESERVATION};
use cli::walk::{ELSEWHERE, WALK};
use serde_json::json;

const FORM: &str = r#"
[[parameters]]
key = "image"
label = "Operating system"
required = true
kind = { choice = { options = ["ubuntu", "debian"] } }

[[parameters]]
key = "root-password"
label = "Password of root"
kind = { secret = {} }
"#;

/// A site with a rack of two GPU servers and ten licences, and its admin signed in.
async fn lab() -> Desk {
    let desk = Desk::with_admin().await;
    desk.write("form.toml", FORM);
    for line in [
        "site create torino --title Torino --time-zone Europe/Rome",
        "site use torino",
        "profile edit --time-zone Europe/Rome",
        "type create rack --title Rack",
        "type create gpu-server --title GPU --parameters form.toml",
        "type create pool --title Pool",
        "resource add rack-a --type rack",
        "resource add gpu-01 --type gpu-server --in rack-a --attribute gpus=8",
        "resource add gpu-02 --type gpu-server --in rack-a --attribute gpus=4",
        "resource add licences --type pool --capacity 10:seats",
    ] {
        desk.run(line).succeeds();
    }
    desk
}

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
        undecided.stderr.contains("--keep-all or --cancel-all"),
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
async fn people_come_ask_to_join_and_go() {
    let desk = lab().await;
    desk.run("site edit --outsiders-see name").succeeds();
    let made = desk
        .run("person create grace --name |Grace Hopper|")
        .succeeds();
    let link = made.stdout.lines().last().expect("a link").to_owned();
    assert!(link.contains("/reset-password#"), "{made:?}");

    let grace = desk.another();
    let lines = format!("{link}\n{PASSWORD}\n");
    grace.run_with("profile reset --stdin", &lines).succeeds();
    grace.run_with("profile reset --stdin", &lines).ends_with(1);
    grace.login("grace");
    grace.run("resource list --site torino").ends_with(4);
    grace.run("site join torino --message |may I?|").succeeds();
    let request = desk.run("site requests -o json").succeeds().json();
    let request = request["items"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    desk.run(&format!("site accept {}", &request[request.len() - 6..]))
        .succeeds();
    grace.run("site use torino").succeeds();
    let booked = grace
        .run("book licences:1 --from |2101-03-08 09:00| --for 1h")
        .succeeds();
    grace
        .run("resource add gpu-09 --type gpu-server")
        .ends_with(7);
    // Her booking is found by the end of its id, also by an admin whose own it is not.
    let tail = booked.find(RESERVATION)[20..].to_owned();
    desk.run(&format!("reservation show {tail}")).succeeds();

    desk.run("member remove grace").ends_with(2);
    let tried = desk.run("member remove grace --dry-run").succeeds();
    assert!(tried.stdout.contains("cancelled"), "{tried:?}");
    desk.run("member remove grace --yes").succeeds();
    grace.run("reservation list --everyone").ends_with(4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_is_kept_private_and_ends() {
    let desk = Desk::with_admin().await;
    let file = desk.home().join(".config/berth/config.toml");
    assert_eq!(
        fs::metadata(&file).expect("the file").permissions().mode() & 0o777,
        0o600
    );
    let text = fs::read_to_string(&file).expect("the file");
    assert!(!text.contains(PASSWORD), "the password is not kept");
    let token = text
        .lines()
        .find_map(|line| line.strip_prefix("token = "))
        .expect("a token");
    let token = token.trim_matches('"').to_owned();

    let elsewhere = desk.another();
    elsewhere.run("whoami").ends_with(2);
    let url = desk.server().url("");
    elsewhere
        .run(&format!("whoami --server {url}"))
        .ends_with(3);
    let by_token = |token: &str| {
        let environment = [("BERTH_SERVER", url.as_str()), ("BERTH_TOKEN", token)];
        elsewhere.run_in("whoami -o json", &environment)
    };
    assert_eq!(by_token(&token).succeeds().json()["person"]["login"], "ada");
    by_token("berth_nonsense").ends_with(3);

    // A remembered token is not shown to another server.
    desk.run("whoami --server http://127.0.0.1:9").ends_with(3);
    desk.run("logout").succeeds();
    by_token(&token).ends_with(3);
    desk.run("whoami").ends_with(2);
    desk.login("ada");
    let wrong = desk.run_with("login --login ada --password-stdin", "wrong\n");
    wrong.ends_with(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_failure_has_its_number() {
    let mut desk = lab().await;
    for (line, code) in [
        ("nonsense", 2),
        ("book gpu-01 --from whenever --for 2h", 2),
        (
            "book gpu-01 --from |2101-03-08 09:00| --to |2101-03-07 09:00|",
            2,
        ),
        ("book gpu-99 --for 2h", 1),
        ("resource show gpu-99", 4),
        ("site show nowhere", 4),
        ("reservation show 000000", 4),
        ("type create rack --title Again", 5),
        ("site edit --title New --if-version 99", 5),
        ("help", 0),
        ("help exit-codes", 0),
        ("exit-codes", 0),
        ("completion bash", 0),
        ("config show-docs", 0),
        ("openapi", 0),
        ("version", 0),
    ] {
        desk.run(line).ends_with(code);
    }
    desk.server_mut().stop().await.expect("stop");
    desk.run("site list").ends_with(6);
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

#[tokio::test(flavor = "multi_thread")]
async fn every_command_runs() {
    let desk = Desk::with_admin().await;
    let mut kept: BTreeMap<&str, String> = BTreeMap::new();
    for line in WALK {
        let typed = kept
            .iter()
            .fold(line.typed.to_owned(), |typed, (name, id)| {
                typed.replace(&format!("{{{name}}}"), id)
            });
        let ended = desk.run_with(&typed, line.input).succeeds();
        if let Some(name) = line.keep {
            let id = ended.json()["id"].as_str().expect("an id").to_owned();
            kept.insert(name, id);
        }
    }
}

/// The commands, as the documentation prints them from the code.
fn documented() -> BTreeSet<String> {
    let page = include_str!("../../../docs/cli.md");
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `berth "));
    rows.map(|row| {
        let words = row.split(['`', '<', '[']).next().unwrap_or_default();
        words.trim().to_owned()
    })
    .collect()
}

#[test]
fn no_command_is_left_out() {
    let starts = |typed: &str, command: &str| {
        typed
            .strip_prefix(command)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let commands = documented();
    assert!(commands.len() > 60, "{commands:?}");
    let untried: Vec<_> = commands
        .iter()
        .filter(|command| !WALK.iter().any(|line| starts(line.typed, command)))
        .filter(|command| !ELSEWHERE.iter().any(|(known, _)| known == command))
        .collect();
    assert!(
        untried.is_empty(),
        "add a line to tests/cli/walk.rs: {untried:?}"
    );
    let gone: Vec<_> = ELSEWHERE
        .iter()
        .filter(|(known, _)| !commands.contains(*known))
        .collect();
    assert!(
        gone.is_empty(),
        "there is no such command any more: {gone:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_approval_is_decided() {
    let desk = lab().await;
    desk.run("type edit pool --needs-approval true").succeeds();
    desk.run("site edit --outsiders-see name").succeeds();
    let create = "person create cy --name Cy --password-stdin";
    desk.run_with(create, &format!("{PASSWORD}\n")).succeeds();
    let cy = desk.another();
    cy.login("cy");

    cy.run("site join torino").succeeds();
    let requests = desk.run("site requests -o json").succeeds().json();
    let request = requests["items"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    desk.run(&format!("site decline {request} --reason |not yet|"))
        .succeeds();
    desk.run("member add cy").succeeds();
    cy.run("site use torino").succeeds();

    let asked = |from: &str| {
        let line = format!("book licences:1 --from |2101-03-08 {from}| --for 1h");
        let asked = cy.run(&line).succeeds();
        assert!(
            asked.stdout.starts_with("Asked for 1 of licences"),
            "{asked:?}"
        );
        asked.find(RESERVATION)
    };
    let (first, second) = (asked("09:00"), asked("11:00"));
    let waiting = desk
        .run("reservation list --everyone --state pending-approval")
        .succeeds();
    assert!(waiting.stdout.contains(&first[24..]), "{waiting:?}");
    cy.run(&format!("reservation approve {first}")).ends_with(7);
    let approved = desk.run(&format!("reservation approve {first}")).succeeds();
    assert!(
        approved.stdout.ends_with("It is confirmed.\n"),
        "{approved:?}"
    );
    desk.run(&format!("reservation reject {second} --reason |too busy|"))
        .succeeds();
    let shown = cy.run(&format!("reservation show {second}")).succeeds();
    assert!(shown.stdout.contains("too busy"), "{shown:?}");

    // The admin takes away the token that Cy's machine signs in with.
    let tokens = desk.run("token list --person cy -o json").succeeds().json();
    let token = tokens["items"][0]["id"].as_str().expect("an id").to_owned();
    desk.run(&format!("token revoke {} --person cy", &token[24..]))
        .succeeds();
    cy.run("whoami").ends_with(3);
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
