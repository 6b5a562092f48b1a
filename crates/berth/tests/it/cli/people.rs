//! Signing in, joining, deciding and leaving.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::lab::lab;
use crate::support::desk::{Desk, PASSWORD, RESERVATION};

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
async fn a_feed_is_read_until_it_is_revoked() {
    let desk = lab().await;
    desk.run("book gpu-01 --for 2h --title |fine tuning| --param gpu-server.image=ubuntu")
        .succeeds();
    let made = desk.run("feed create |my phone|").succeeds();
    let address = made.stdout.trim().to_owned();
    assert!(address.starts_with("http://"), "a whole address: {made:?}");
    let read = async || {
        let answer = reqwest::get(&address).await.expect("an answer");
        (
            answer.status().as_u16(),
            answer.text().await.expect("a text"),
        )
    };
    let (status, text) = read().await;
    assert_eq!(status, 200, "{text}");
    assert!(text.starts_with("BEGIN:VCALENDAR\r\n"), "{text}");
    assert!(text.contains("\r\nSUMMARY:fine tuning\r\n"), "{text}");
    let listed = desk.run("feed list -o json").succeeds().json();
    let feed = listed["items"][0]["id"].as_str().expect("an id").to_owned();
    let secret = address.rsplit('/').next().expect("a file");
    assert!(!listed.to_string().contains(secret), "shown once");
    desk.run(&format!("feed revoke {}", &feed[24..])).succeeds();
    assert_eq!(read().await.0, 404);
    desk.run(&format!("feed revoke {feed}")).ends_with(4);
}
