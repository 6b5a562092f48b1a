//! Addresses that name no session, and pages that are not its own.

use std::net::SocketAddr;

use super::client::{ask, raw, status};
use super::rig::{HOST, Rig, shown, text};

async fn get(rig: &Rig, path: &str, headers: &str) -> String {
    let cookie = "Cookie: berth_visit=alice\r\nConnection: close\r\n";
    raw(rig, format!("GET {path} HTTP/1.1\r\n{headers}{cookie}\r\n")).await
}

#[tokio::test]
async fn cve_2022_21697_no_request_can_say_where_to_connect() {
    let elsewhere = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = elsewhere.local_addr().unwrap();
    let rig = Rig::new(async |request| text(shown(request).await)).await;
    let port = address.port();
    for (path, headers) in [
        ("/".to_owned(), format!("Host: {address}\r\n")),
        ("/".to_owned(), format!("Host: {address}.berth.test\r\n")),
        ("/".to_owned(), format!("Host: {HOST}:{port}\r\n")),
        (
            "/".to_owned(),
            format!(
                "Host: {HOST}\r\nX-Forwarded-Host: {address}\r\nX-Original-Url: http://{address}/\r\n"
            ),
        ),
        (format!("/proxy/{address}/"), format!("Host: {HOST}\r\n")),
        (format!("//{address}/"), format!("Host: {HOST}\r\n")),
        (format!("/@{address}"), format!("Host: {HOST}\r\n")),
        (format!("http://{address}/"), format!("Host: {HOST}\r\n")),
    ] {
        let answer = get(&rig, &path, &headers).await;
        assert!(!answer.is_empty(), "{path} {headers}");
    }
    let nobody = elsewhere.into_std().unwrap().accept().unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_name_like_a_sessions_is_not_that_sessions() {
    let rig = Rig::new(async |_| text("the app")).await;
    for (host, expected) in [
        (HOST, "200"),
        ("x7f3.BERTH.test:8080", "200"),
        ("x7f3-a.berth.test", "404"),
        ("x7f3--a.berth.test", "404"),
        ("a.x7f3.berth.test", "404"),
        ("x7f3%2d.berth.test", "404"),
        ("x7f3/.berth.test", "404"),
        ("xn--x7f3-.berth.test", "404"),
        ("berth.test", "418"),
        ("x7f3.berth.test.evil.example", "418"),
    ] {
        let answer = get(&rig, "/", &format!("Host: {host}\r\n")).await;
        assert_eq!(status(&answer), expected, "{host}");
    }
    let twice = format!("Host: {HOST}\r\nHost: y.berth.test\r\n");
    assert_eq!(status(&get(&rig, "/", &twice).await), "404");
}

#[tokio::test]
async fn another_origins_page_changes_nothing() {
    let rig = Rig::new(async |_| text("changed")).await;
    for (method, origin, expected) in [
        ("POST", "Origin: http://x7f3.berth.test\r\n", "200"),
        ("POST", "Origin: http://y.berth.test\r\n", "403"),
        ("PUT", "", "403"),
        ("DELETE", "Origin: null\r\n", "403"),
        ("QUERY", "Sec-Fetch-Site: same-site\r\n", "403"),
        (
            "GET",
            "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: script\r\n",
            "403",
        ),
        (
            "GET",
            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n",
            "200",
        ),
    ] {
        let request = format!(
            "{method} / HTTP/1.1\r\nHost: {HOST}\r\n{origin}Cookie: berth_visit=alice\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(
            status(&raw(&rig, request).await),
            expected,
            "{method} {origin}"
        );
    }
}

#[tokio::test]
async fn an_app_that_repeats_a_path_is_no_open_redirect() {
    let rig = Rig::new(async |request| {
        let mut answer = text("");
        *answer.status_mut() = http::StatusCode::FOUND;
        // What apps do that want a slash at the end.
        let location = format!("{}/", request.uri().path());
        answer
            .headers_mut()
            .insert("location", location.parse().unwrap());
        answer
    })
    .await;
    let answer = ask(&rig, "GET //evil.example/%2e%2e", "").await;
    assert!(
        answer.contains("location: /evil.example/%2e%2e/\r\n"),
        "{answer}"
    );
}
