//! Holes that others had to close, each by the name it was published under.

use std::collections::BTreeSet;

use berth_model::session::Access;
use serde_json::Value;

use super::browser::{Ask, echoes, until_closed};
use super::house::House;

/// JupyterHub: a script in a sibling's origin set cookies for the whole domain, and the hub believed them.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2024_28233_cookies_from_a_sibling_change_nothing() {
    let secure =
        "public_url = 'https://berth.example.org'\nsession_origin = 'https://s.example.org'";
    for config in ["public_url = 'http://localhost:{port}'", secure] {
        let house = House::with(config).await;
        let (good, evil) = (
            house.session("ada", "good").await,
            house.session("bob", "evil").await,
        );
        let bob = house.inside("bob", &evil).await;
        let set = bob.send(Ask::get(&evil.at("cookies"))).await.expect(200);
        let set = set.headers("set-cookie");
        assert_eq!(set, ["_xsrf=evil; Path=/"], "its own, and for itself alone");

        // What a script tosses over does not pass by us; the session's own key still counts.
        let ada = house.inside("ada", &good).await;
        for name in ["berth_visit", "berth_session", "__Host-berth_session"] {
            ada.toss(&good.url, name, "evil");
            ada.toss(&house.home, name, "evil");
        }
        let heard = ada.send(Ask::get(&good.at("x"))).await.expect(200).json();
        assert_eq!(heard["headers"]["x-berth-person"][0], "ada");
        assert_eq!(heard["headers"].get("cookie"), None);
    }
}

/// JupyterHub: another site's page could make an admin's browser call the API.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2020_36191_no_foreign_page_changes_anything() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    let (root, proof) = house.signed_in("root").await;
    let document = root.send(Ask::get(&format!("{}/api/v1/openapi.json", house.home)));
    let document = document.await.expect(200).json();
    let mut asked = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let is_open = operation["security"] == serde_json::json!([{}]);
            if matches!(method.as_str(), "get" | "head") || is_open {
                continue;
            }
            let path = filled(path);
            for (origin, with_proof) in [
                (session.origin(), false),
                (session.origin(), true),
                ("https://evil.example".to_owned(), true),
                ("null".to_owned(), true),
            ] {
                let url = format!("{}/api/v1{path}", house.home);
                let mut ask = Ask::new(&method.to_uppercase(), &url)
                    .header("content-type", "application/json")
                    .header("origin", &origin)
                    .body("{}".to_owned());
                if with_proof {
                    ask = ask.header("x-csrf-token", &proof);
                }
                let answer = root.send(ask).await;
                assert_eq!(
                    answer.status, 403,
                    "{method} {path} from {origin}: {}",
                    answer.body
                );
                assert_eq!(answer.json()["code"], "auth.csrf", "{method} {path}");
                asked += 1;
            }
        }
    }
    assert!(asked > 200, "only {asked}");

    // And into the session itself: neither another site's page, nor Berth's own, nor a sibling's.
    let ada = house.inside("ada", &session).await;
    for origin in [
        "https://evil.example",
        house.home.as_str(),
        "null",
        "http://x.localhost",
    ] {
        for method in ["POST", "PUT", "DELETE"] {
            let ask = Ask::new(method, &session.at("x")).header("origin", origin);
            ada.send(ask).await.expect(403);
        }
        let fetched = Ask::get(&session.at("x"))
            .header("origin", origin)
            .header("sec-fetch-site", "cross-site")
            .header("sec-fetch-mode", "cors");
        ada.send(fetched).await.expect(403);
    }
}

/// A path with something in place of every name.
fn filled(template: &str) -> String {
    let mut path = String::new();
    for segment in template.split('/').skip(1) {
        path.push('/');
        path.push_str(if segment.starts_with('{') {
            "x"
        } else {
            segment
        });
    }
    path
}

/// JupyterHub: signing out left other tabs and their servers signed in.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2021_41247_signing_out_ends_every_origin_and_socket() {
    let house = House::open().await;
    let sessions = [
        house.session("ada", "one").await,
        house.session("ada", "two").await,
    ];
    let (ada, proof) = house.signed_in("ada").await;
    let other = house.inside("ada", &sessions[0]).await;
    let mut open = Vec::new();
    for session in &sessions {
        ada.visit(&house.door(session)).await.1.expect(200);
        let ask = Ask::socket(&session.at("socket"), Some(&session.origin()));
        let (answer, mut socket) = ada.open(ask).await;
        answer.expect(101);
        assert!(echoes(&mut socket).await);
        let (_, stream) = ada.open(Ask::get(&session.at("endless"))).await;
        open.extend([socket, stream]);
    }
    let ask = Ask::socket(&sessions[0].at("socket"), Some(&sessions[0].origin()));
    let (answer, mut others) = other.open(ask).await;
    answer.expect(101);

    house.post(&ada, &proof, "/sign-out", "").await.expect(204);
    for mut one in open {
        until_closed(&mut one).await;
    }
    for session in &sessions {
        ada.send(Ask::get(&session.at("x"))).await.expect(401);
    }
    assert!(
        echoes(&mut others).await,
        "another browser is still signed in"
    );
}

/// JupyterHub and kubespawner: names of people and servers were joined, and `a-b` of one met `b` of `a`.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_108752_and_2020_15110_no_two_names_meet() {
    let house = House::open().await;
    let mut labels = BTreeSet::new();
    for (who, named) in [
        ("ada", "prod"),
        ("ada", "bob"),
        ("ada", "a-b"),
        ("ada", "a--b"),
        ("bob", "prod"),
        ("bob", "ada"),
        ("bob", "a-b"),
    ] {
        let session = house.session(who, named).await;
        for part in [who, named] {
            assert!(
                !session.label.contains(part) || part.len() < 3,
                "{}",
                session.label
            );
        }
        assert!(labels.insert(session.label), "a label of its own");
    }
    // What is no label names nothing, however it is written.
    let mine = house.session("ada", "mine").await;
    let inside = house.inside("ada", &mine).await;
    let port = house.address.port();
    for host in [
        format!("{}.x.localhost:{port}", mine.label),
        format!("x.{}.localhost:{port}", mine.label),
        format!("{}%2e.localhost:{port}", mine.label),
        format!("-{}.localhost:{port}", mine.label),
        format!("{}-.localhost:{port}", mine.label),
        format!("{}/.localhost:{port}", mine.label),
        format!("ada--lab.localhost:{port}"),
    ] {
        let answer = inside.send(Ask::get(&format!("http://{host}/x"))).await;
        assert!(
            !answer.is_from_the_app() && answer.status >= 400,
            "{host}: {answer:?}"
        );
    }
}

/// jupyter-server-proxy: a socket was opened without asking who wants it.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2024_28179_no_socket_without_a_visitor() {
    let house = House::open().await;
    let (mine, theirs) = (
        house.session("ada", "lab").await,
        house.session("bob", "lab").await,
    );
    let stranger = house.browser();
    let (signed_in, _) = house.signed_in("ada").await;
    let ada = house.inside("ada", &mine).await;
    for browser in [&stranger, &signed_in] {
        for origin in [
            None,
            Some(mine.origin()),
            Some("https://evil.example".to_owned()),
        ] {
            let ask = Ask::socket(&mine.at("socket"), origin.as_deref());
            browser.open(ask).await.0.expect(401);
        }
    }
    // With a key, but from another page, or for another session.
    for origin in [None, Some(theirs.origin()), Some(house.home.clone())] {
        let ask = Ask::socket(&mine.at("socket"), origin.as_deref());
        ada.open(ask).await.0.expect(403);
    }
    let ask = Ask::socket(&theirs.at("socket"), Some(&theirs.origin()));
    ada.open(ask).await.0.expect(401);
}

/// jupyter-server-proxy: the address said where to connect, and errors repeated it as HTML.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_21697_and_2024_35225_no_request_says_where_to_and_no_error_repeats_it() {
    const CANARY: &str = "<script>canary</script>";
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    let ada = house.inside("ada", &session).await;
    for path in [
        "http://169.254.169.254/latest/meta-data",
        "proxy/169.254.169.254/80",
        "@169.254.169.254/",
        "..//169.254.169.254/",
    ] {
        let answer = ada.send(Ask::get(&session.at(path))).await;
        if answer.status == 200 {
            assert!(answer.is_from_the_app(), "{path}");
        }
    }
    for header in [
        "x-forwarded-host",
        "forwarded",
        "x-original-url",
        "x-rewrite-url",
    ] {
        let ask = Ask::get(&session.at("x")).header(header, "169.254.169.254");
        let heard = ada.send(ask).await.expect(200).json();
        let told = &heard["headers"][header];
        assert!(!told.to_string().contains("169.254"), "{header}");
    }
    let port = house.address.port();
    for (host, path) in [
        (format!("{CANARY}.localhost:{port}"), "/".to_owned()),
        (
            format!("canary.localhost:{port}"),
            format!("/{CANARY}?{CANARY}"),
        ),
        (
            format!("{}.localhost:{port}", session.label),
            format!("/.berth/{CANARY}"),
        ),
        (
            format!("{}.localhost:{port}", session.label),
            format!("/.berth/enter?code={CANARY}&to={CANARY}"),
        ),
    ] {
        for ask in [Ask::get, Ask::page] {
            let ask = ask(&format!("http://{host}{path}")).header("x-canary", CANARY);
            let answer = house.browser().send(ask).await;
            assert!(
                !answer.body.contains("canary"),
                "{host}{path}: {}",
                answer.body
            );
            assert!(!answer.head.contains("<script>"), "{}", answer.head);
        }
    }
}

/// systemdspawner: tokens could be read by everybody. Ours are in no argument and no file that a session sees.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2020_26261_what_is_started_carries_no_secret() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    let ada = house.inside("ada", &session).await;
    let heard = ada.send(Ask::get(&session.at("x"))).await.expect(200).body;
    let view = house
        .app
        .get_session(
            house.person("ada"),
            &super::house::site(),
            &session.id.into(),
        )
        .await
        .unwrap();
    let started = serde_json::to_string(&view.workload.unwrap()).unwrap();
    for told in [heard, started] {
        for secret in ["berth_", "berth_visit", "code="] {
            assert!(!told.contains(secret), "{secret} in {told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_good_once_for_its_session_and_its_person() {
    let house = House::open().await;
    let (one, two) = (
        house.session("ada", "one").await,
        house.session("ada", "two").await,
    );
    let (ada, _) = house.signed_in("ada").await;
    let answer = ada.send(Ask::page(&house.door(&one))).await.expect(303);
    let way_in = answer.header("location").unwrap().to_owned();
    let elsewhere = way_in.replace(&one.label, &two.label);
    let thief = house.browser();
    let refused = thief.send(Ask::page(&elsewhere)).await.expect(410);
    assert_eq!(refused.header("set-cookie"), None);

    ada.send(Ask::page(&way_in)).await.expect(303);
    let refused = thief.send(Ask::page(&way_in)).await.expect(410);
    assert_eq!(refused.json()["code"], "session.code_spent");
    assert!(!thief.has_cookie(&one.url, "berth_visit"));
    // Whoever is in already and steps back goes on.
    let again = ada.send(Ask::page(&way_in)).await.expect(303);
    assert_eq!(again.header("location"), Some(one.url.as_str()));
    // A look ahead spends nothing.
    let answer = ada.send(Ask::page(&house.door(&one))).await.expect(303);
    let way_in = answer.header("location").unwrap().to_owned();
    ada.send(Ask::new("HEAD", &way_in)).await.expect(404);
    thief.send(Ask::page(&way_in)).await.expect(303);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_in_leads_nowhere_else() {
    let house = House::open().await;
    let session = house.session("ada", "lab").await;
    let (ada, _) = house.signed_in("ada").await;
    for evil in [
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "%2F%2Fevil.example",
        "/%0d%0aset-cookie:%20x=1",
        "javascript:alert(1)",
        "@evil.example",
        ".evil.example/",
    ] {
        let (arrived, _) = ada
            .visit(&format!("{}?to={evil}", house.door(&session)))
            .await;
        assert_eq!(arrived, session.url, "{evil}");
    }
    let label = format!("{}/open/evil.example%2f", house.home);
    ada.send(Ask::page(&label)).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_session_s_key_opens_no_other() {
    let house = House::open().await;
    let (mine, shared) = (
        house.session("bob", "mine").await,
        house.session("ada", "shared").await,
    );
    house.share(&shared, "bob", Some(Access::Edit)).await;
    let bob = house.inside("bob", &mine).await;
    let answer = bob.send(Ask::page(&house.door(&mine))).await;
    let way_in = answer.header("location").unwrap();
    let answer = bob.send(Ask::page(way_in)).await.expect(303);
    let key = answer.header("set-cookie").unwrap();
    let key = key.split(';').next().unwrap();
    let thief = house.browser();
    let ask = Ask::get(&mine.at("x")).header("cookie", key);
    thief.send(ask).await.expect(200);
    let ask = Ask::get(&shared.at("x")).header("cookie", key);
    let refused: Value = thief.send(ask).await.expect(401).json();
    assert_eq!(refused["code"], "auth.sign_in_required");
}
