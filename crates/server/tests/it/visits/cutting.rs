//! When access ends, so does everything that is open by it.

use berth_app::sessions::SessionChange;
use berth_app::settlement::Mode;
use berth_model::session::Access;
use berth_model::site::Role;
use berth_testkit::wait;
use tokio::net::TcpStream;

use super::browser::{Ask, Browser, PATIENCE, echoes, until_closed};
use super::house::{House, Open, site};

/// A socket and a stream, both open and both alive.
async fn opened(browser: &Browser, session: &Open) -> [TcpStream; 2] {
    let ask = Ask::socket(&session.at("socket"), Some(&session.origin()));
    let (answer, mut socket) = browser.open(ask).await;
    answer.expect(101);
    assert!(echoes(&mut socket).await);
    let (answer, stream) = browser.open(Ask::get(&session.at("endless"))).await;
    answer.expect(200);
    [socket, stream]
}

async fn all_cut(open: [TcpStream; 2]) {
    for mut one in open {
        until_closed(&mut one).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unsharing_cuts_a_socket_and_leaves_the_owners() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    house.share(&session, "bob", Some(Access::Edit)).await;
    let (ada, bob) = (
        house.inside("ada", &session).await,
        house.inside("bob", &session).await,
    );
    let [mut mine, _stream] = opened(&ada, &session).await;
    let theirs = opened(&bob, &session).await;
    house.share(&session, "bob", None).await;
    all_cut(theirs).await;
    bob.send(Ask::get(&session.at("x"))).await.expect(401);
    assert!(echoes(&mut mine).await, "who may stay, stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_look_from_now_on_loses_the_socket_and_not_the_page() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    house.share(&session, "bob", Some(Access::Edit)).await;
    let bob = house.inside("bob", &session).await;
    let open = opened(&bob, &session).await;
    house.share(&session, "bob", Some(Access::View)).await;
    all_cut(open).await;
    let (_, page) = bob.visit(&session.url).await;
    assert!(page.is_from_the_app());
    let ask = Ask::socket(&session.at("socket"), Some(&session.origin()));
    bob.open(ask).await.0.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_the_site_cuts() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    house.share(&session, "bob", Some(Access::Edit)).await;
    let bob = house.inside("bob", &session).await;
    let open = opened(&bob, &session).await;
    let (root, person) = (house.person("root"), house.person("bob").id().into());
    house
        .app
        .remove_member(root, &site(), &person, Mode::Apply)
        .await
        .unwrap();
    all_cut(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_who_is_none_any_more_is_cut() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    let (adele, proof) = house.signed_in("adele").await;
    let path = format!("/sites/torino/sessions/{}/visits", session.id);
    let body = r#"{"reason": "the disk is full"}"#;
    let made = house.post(&adele, &proof, &path, body).await.expect(200);
    adele.visit(made.json()["url"].as_str().unwrap()).await;
    let open = opened(&adele, &session).await;
    let (root, person) = (house.person("root"), house.person("adele").id().into());
    let changed = house
        .app
        .set_member(root, &site(), &person, Role::Member)
        .await;
    changed.unwrap();
    all_cut(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_the_session_cuts() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    let ada = house.inside("ada", &session).await;
    let open = opened(&ada, &session).await;
    let stop = SessionChange::Stop { reason: None };
    house.change("ada", &session, stop).await;
    all_cut(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_token_cuts_what_it_opened() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    let token = house.token("ada").await;
    let program = house.browser();
    let ask = Ask::socket(&session.at("socket"), None);
    let ask = ask.header("authorization", &format!("Bearer {token}"));
    let (answer, mut socket) = program.open(ask).await;
    answer.expect(101);
    assert!(echoes(&mut socket).await);
    let ada = house.person("ada");
    let (_, tokens) = house.app.tokens(ada, None).await.unwrap();
    house
        .app
        .revoke_token(ada, None, tokens[0].id)
        .await
        .unwrap();
    until_closed(&mut socket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_token_cuts_the_browser_that_it_let_in() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    let token = house.token("ada").await;
    let visits = format!(
        "{}/api/v1/sites/torino/sessions/{}/visits",
        house.home, session.id
    );
    let ask = Ask::new("POST", &visits)
        .header("content-type", "application/json")
        .header("authorization", &format!("Bearer {token}"))
        .body("{}".to_owned());
    let browser = house.browser();
    let way_in = browser.send(ask).await.expect(200).json();
    let (_, page) = browser.visit(way_in["url"].as_str().unwrap()).await;
    assert!(page.is_from_the_app());
    let open = opened(&browser, &session).await;
    let ada = house.person("ada");
    let (_, tokens) = house.app.tokens(ada, None).await.unwrap();
    let revoked = house.app.revoke_token(ada, None, tokens[0].id).await;
    revoked.unwrap();
    all_cut(open).await;
    browser.send(Ask::get(&session.at("x"))).await.expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_does_not_wait_for_sockets() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    let ada = house.inside("ada", &session).await;
    let open = opened(&ada, &session).await;
    house.close().await;
    all_cut(open).await;
}

/// As on a machine whose disk hangs for a while.
#[tokio::test(flavor = "multi_thread")]
async fn a_door_that_is_not_found_in_time_cuts_nothing() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    let ada = house.inside("ada", &session).await;
    let [mut socket, _stream] = opened(&ada, &session).await;
    house.machine.hang();
    // Each of these is an event of the session, and one is looked at after the other.
    for times in 1..=3 {
        let access = [Access::Edit, Access::View][times % 2];
        house.share(&session, "bob", Some(access)).await;
        wait::until("the door to be asked for", PATIENCE, async || {
            house.machine.unanswered() >= Some(times)
        })
        .await;
    }
    assert!(echoes(&mut socket).await, "it is still open");
    ada.send(Ask::get(&session.at("x"))).await.expect(200);
}
