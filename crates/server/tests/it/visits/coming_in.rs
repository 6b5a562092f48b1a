//! How a browser gets in to a session, and what the app hears of it.

use berth_app::sessions::SessionChange;
use berth_model::session::{Access, State};
use serde_json::json;

use super::browser::{Ask, echoes};
use super::house::House;

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_session_leads_in_by_way_of_berth() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    assert!(session.url.ends_with(&format!(
        "://{}.localhost:{}/",
        session.label,
        house.address.port()
    )));
    let (browser, _) = house.signed_in("ada").await;
    let first = browser.send(Ask::page(&session.at("lab/tree?x=1"))).await;
    let door = format!("{}?to=%2Flab%2Ftree%3Fx%3D1", house.door(&session));
    assert_eq!(first.expect(303).header("location"), Some(door.as_str()));

    let (arrived, answer) = browser.visit(&session.at("lab/tree?x=1")).await;
    assert_eq!(arrived, session.at("lab/tree?x=1"));
    let heard = answer.expect(200).json();
    assert_eq!(heard["path"], "/lab/tree?x=1");
    let headers = &heard["headers"];
    assert_eq!(headers["x-berth-person"], json!(["ada"]));
    assert_eq!(headers["x-berth-access"], json!(["edit"]));
    assert_eq!(headers["x-berth-session"], json!([session.id.to_string()]));
    assert_eq!(headers.get("cookie"), None, "its key stays with Berth");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_sessions_would_share_its_origin_starts_only_where_an_admin_wants_it() {
    let shared = "public_url = 'http://berth.example.org'";
    let here = tokio::runtime::Handle::current();
    let start = move || drop(here.block_on(House::with(shared)));
    let started = tokio::task::spawn_blocking(start).await;
    assert!(started.is_err(), "it does not start");
    let wanted = format!("{shared}\nunsafe_shared_origin = true");
    House::with(&wanted).await.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cookie_is_as_narrow_as_can_be() {
    let secure =
        "public_url = 'https://berth.example.org'\nsession_origin = 'https://s.example.org'";
    let shared =
        "public_url = 'https://berth.example.org'\nbase_path = '/lab'\nunsafe_shared_origin = true";
    for (config, name, path, rest) in [
        (
            "public_url = 'http://localhost:{port}'",
            "berth_visit",
            "/",
            "",
        ),
        (secure, "__Host-berth_visit", "/", "; Secure"),
        (shared, "berth_visit", "/lab/s/{label}/", "; Secure"),
    ] {
        let house = House::with(config).await;
        let session = house.session("ada", "lab").await;
        let (browser, _) = house.signed_in("ada").await;
        let answer = browser
            .send(Ask::page(&house.door(&session)))
            .await
            .expect(303);
        let way_in = answer.header("location").unwrap();
        assert!(
            way_in.starts_with(&session.at(".berth/enter?code=")),
            "{way_in}"
        );
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        let answer = browser.send(Ask::page(way_in)).await.expect(303);
        assert_eq!(answer.header("location"), Some(session.url.as_str()));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        let cookie = answer.header("set-cookie").unwrap();
        let (pair, attributes) = cookie.split_once("; ").unwrap();
        assert!(pair.starts_with(&format!("{name}=")), "{pair}");
        let path = path.replace("{label}", &session.label);
        let age = attributes
            .split("Max-Age=")
            .nth(1)
            .unwrap()
            .split(';')
            .next()
            .unwrap();
        assert_eq!(
            attributes,
            format!("HttpOnly; SameSite=Lax; Path={path}; Max-Age={age}{rest}")
        );
        let page = browser
            .send(Ask::page(&session.at("x?y")))
            .await
            .expect(200);
        assert!(page.is_from_the_app());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_come_by_their_token_and_the_app_never_sees_it() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    let token = house.token("ada").await;
    let stranger = house.browser();
    for scheme in ["Bearer", "token", "bearer"] {
        let value = format!("{scheme} {token}");
        let ask = Ask::new("POST", &session.at("api/kernels"));
        let answer = stranger
            .send(ask.header("authorization", &value).body("x".repeat(9)))
            .await;
        let heard = answer.expect(200).json();
        assert_eq!(heard["bytes"], 9);
        assert_eq!(heard["headers"].get("authorization"), None);
    }
    let others = house.token("bob").await;
    for wrong in [others.as_str(), "berth_nonsense"] {
        let ask = Ask::get(&session.at("api")).header("authorization", &format!("Bearer {wrong}"));
        stranger.send(ask).await.expect(401);
    }
    let ask = Ask::socket(&session.at("socket"), None);
    let ask = ask.header("authorization", &format!("token {token}"));
    let (answer, mut socket) = stranger.open(ask).await;
    answer.expect(101);
    assert!(echoes(&mut socket).await);
    // An app's own token is the app's own business, and lets nobody in.
    let ask = Ask::get(&session.at("api")).header("authorization", "token of-the-app");
    stranger.send(ask).await.expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_look_changes_nothing_and_opens_no_socket() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    house.share(&session, "bob", Some(Access::View)).await;
    let bob = house.inside("bob", &session).await;
    let origin = session.origin();
    let look = bob
        .send(Ask::get(&session.at("x")))
        .await
        .expect(200)
        .json();
    assert_eq!(look["headers"]["x-berth-access"], json!(["view"]));
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let ask = Ask::new(method, &session.at("x")).header("origin", &origin);
        let answer = bob.send(ask).await.expect(403);
        assert_eq!(answer.json()["code"], "auth.not_allowed", "{method}");
    }
    let socket = Ask::socket(&session.at("socket"), Some(&origin));
    bob.open(socket).await.0.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_come_in_learns_nothing() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    for login in ["bob", "otto"] {
        let (browser, _) = house.signed_in(login).await;
        let refused = browser
            .send(Ask::page(&house.door(&session)))
            .await
            .expect(404);
        let unknown = format!("{}/open/0123456789abcdef", house.home);
        let nothing = browser.send(Ask::page(&unknown)).await.expect(404);
        let (refused, nothing) = (refused.json(), nothing.json());
        assert_eq!(refused["detail"], nothing["detail"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_says_why_and_the_owner_reads_it() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    let (adele, proof) = house.signed_in("adele").await;
    let answer = adele
        .send(Ask::page(&house.door(&session)))
        .await
        .expect(303);
    let page = format!("/sessions/{}?ask=reason", session.id);
    assert_eq!(answer.header("location"), Some(page.as_str()));

    let path = format!("/sites/torino/sessions/{}/visits", session.id);
    house.post(&adele, &proof, &path, "{}").await.expect(422);
    let body = json!({"reason": "the disk is full", "to": "/lab"}).to_string();
    let made = house.post(&adele, &proof, &path, &body).await.expect(200);
    let url = made.json()["url"].as_str().unwrap().to_owned();
    let (arrived, answer) = adele.visit(&url).await;
    assert_eq!(arrived, session.at("lab"));
    assert_eq!(answer.json()["headers"]["x-berth-person"], json!(["adele"]));
    let seen = house
        .app
        .session_visits(
            house.person("ada"),
            &super::house::site(),
            &session.id.into(),
        )
        .await
        .unwrap();
    let reasons: Vec<String> = seen
        .visits
        .iter()
        .filter_map(|one| one.visit.reason.as_ref().map(ToString::to_string))
        .collect();
    assert_eq!(reasons, ["the disk is full"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_run_sends_people_to_its_page_and_programs_away() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    let ada = house.inside("ada", &session).await;
    let stop = SessionChange::Stop { reason: None };
    house.change("ada", &session, stop).await;
    house.until("ada", &session, State::Stopped).await;
    let (arrived, _) = ada.visit(&session.at("lab")).await;
    assert_eq!(
        arrived,
        format!("{}/sessions/{}?to=%2Flab", house.home, session.id)
    );
    let answer = ada.send(Ask::get(&session.at("api"))).await.expect(503);
    assert_eq!(answer.json()["code"], "session.not_running");
    let unknown = format!(
        "http://0123456789abcdef.localhost:{}/",
        house.address.port()
    );
    ada.send(Ask::get(&unknown)).await.expect(503);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_uploads_pass_and_are_no_business_of_the_limits() {
    let house = House::with(
        "public_url = 'http://localhost:{port}'\nrequest_body_limit_bytes = 1024\nrequest_timeout_s = 1",
    )
    .await;
    let session = house.session("ada", "lab").await;
    let ada = house.inside("ada", &session).await;
    let ask = Ask::new("PUT", &session.at("api/contents/x")).header("origin", &session.origin());
    let answer = ada.send(ask.body("x".repeat(8 << 20))).await.expect(200);
    assert_eq!(answer.json()["bytes"], 8 << 20);
    assert_eq!(answer.header("content-encoding"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn below_a_path_the_same_is_asked_of_visitors() {
    let house =
        House::with("public_url = 'http://berth.example.org'\nunsafe_shared_origin = true").await;
    let session = house.session("ada", "lab").await;
    let path = format!("http://berth.example.org/s/{}/", session.label);
    assert_eq!(session.url, path);
    let stranger = house.browser();
    stranger
        .send(Ask::get(&session.at("api")))
        .await
        .expect(401);
    let ada = house.inside("ada", &session).await;
    let answer = ada
        .send(Ask::get(&session.at("api?x")))
        .await
        .expect(200)
        .json();
    assert_eq!(
        answer["path"], "/api?x",
        "the app believes to be at the root"
    );
    assert_eq!(
        answer["headers"].get("cookie"),
        None,
        "Berth's own stay behind too"
    );
    let about = stranger
        .send(Ask::get("http://berth.example.org/api/v1/about"))
        .await;
    assert_eq!(about.json()["sessions_share_origin"], true);
}
