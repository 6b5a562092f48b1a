//! WebSockets: opened only for those who may, and bytes both ways from then on.

use std::sync::atomic::Ordering::Relaxed;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;

use super::client::{Client, head, raw, status};
use super::rig::{AppAnswer, HOST, Rig, text};

pub const UPGRADE: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Opens a socket for whoever asks, and sends back what comes.
pub async fn echo(mut request: Request<Incoming>) -> AppAnswer {
    if !request.headers().contains_key("upgrade") {
        return text("no socket");
    }
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut stream = TokioIo::new(upgrade.await.expect("a socket"));
        let (mut read, mut write) = tokio::io::split(&mut stream);
        tokio::io::copy(&mut read, &mut write).await.ok();
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        .body(Empty::new().boxed_unsync())
        .expect("an answer")
}

pub async fn open(rig: &Rig) -> Client {
    let mut client = Client::open(rig).await;
    client
        .write(format!("{}{UPGRADE}\r\n", head("GET /ws")))
        .await;
    let answer = client.read_until("\r\n\r\n").await.to_lowercase();
    assert!(answer.starts_with("http/1.1 101 "), "{answer}");
    assert!(
        answer.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="),
        "{answer}"
    );
    client
}

#[tokio::test]
async fn a_socket_carries_bytes_both_ways() {
    let rig = Rig::new(echo).await;
    let mut client = open(&rig).await;
    for message in ["\u{1}\u{2}hello", "again"] {
        client.write(message).await;
        assert_eq!(client.read_until(message).await, message);
    }
    let activity = rig.route().activity();
    assert_eq!((activity.open, activity.sockets), (1, 1));
    assert_eq!((activity.bytes_in, activity.bytes_out), (12, 12));
    drop(client);
    let route = rig.route();
    super::until("the socket to be closed", || route.activity().open == 0).await;
    assert_eq!(route.activity().sockets, 0);
}

#[tokio::test]
async fn what_is_sent_before_the_answer_is_not_lost() {
    let rig = Rig::new(echo).await;
    let mut client = Client::open(&rig).await;
    client
        .write(format!("{}{UPGRADE}\r\nearly", head("GET /ws")))
        .await;
    client.read_until("early").await;
}

#[tokio::test]
async fn cve_2024_28179_no_socket_opens_for_somebody_unknown() {
    let rig = Rig::new(echo).await;
    for who in [
        "",
        "Cookie: berth_visit=mallory\r\n",
        "Authorization: Bearer berth_mallory\r\n",
    ] {
        let request = format!(
            "GET /ws HTTP/1.1\r\nHost: {HOST}\r\nOrigin: http://{HOST}\r\n{who}{UPGRADE}\r\n"
        );
        let mut client = Client::open(&rig).await;
        client.write(request).await;
        let answer = client.read_until("\r\n\r\n").await;
        assert_eq!(status(&answer), "401", "{who}");
    }
    assert_eq!(rig.accepted.load(Relaxed), 0, "the app was asked");
}

#[tokio::test]
async fn no_socket_opens_for_another_origins_page() {
    let rig = Rig::new(echo).await;
    for origin in [
        "",
        "Origin: http://y.berth.test\r\n",
        "Origin: null\r\n",
        "Origin: http://berth.test\r\n",
    ] {
        let request = format!(
            "GET /ws HTTP/1.1\r\nHost: {HOST}\r\nCookie: berth_visit=alice\r\n{origin}{UPGRADE}\r\n"
        );
        let mut client = Client::open(&rig).await;
        client.write(request).await;
        let answer = client.read_until("\r\n\r\n").await;
        assert_eq!(status(&answer), "403", "{origin}");
    }
    assert_eq!(rig.accepted.load(Relaxed), 0, "the app was asked");
}

#[tokio::test]
async fn an_app_that_opens_no_socket_gets_no_tunnel() {
    let rig = Rig::new(async |_| {
        let mut answer = text("upgrade required");
        *answer.status_mut() = StatusCode::UPGRADE_REQUIRED;
        answer
    })
    .await;
    // After a refused upgrade, a proxy that believed in it would pass on the second request unseen.
    let second = "GET /second HTTP/1.1\r\nHost: x7f3.berth.test\r\nConnection: close\r\n\r\n";
    let request = format!("{}{UPGRADE}\r\n{second}", head("GET /ws"));
    let answer = raw(&rig, request).await;
    assert_eq!(status(&answer), "426");
    assert!(
        answer.contains("HTTP/1.1 401 "),
        "the second was not looked at: {answer}"
    );
}

#[tokio::test]
async fn only_messages_of_the_visitor_count_as_activity() {
    tokio::time::pause();
    let rig = Rig::new(echo).await;
    let mut client = open(&rig).await;
    tokio::time::advance(std::time::Duration::from_secs(3600)).await;
    let pong = [0x8a, 0x80, 1, 2, 3, 4];
    client.write(pong).await;
    let route = rig.route();
    super::until("the pong to pass", || route.activity().bytes_out == 6).await;
    assert!(route.activity().since_acted.as_secs() >= 3600);
    let message = [0x81, 0x81, 1, 2, 3, 4, 0];
    client.write(message).await;
    super::until("the message to pass", || route.activity().bytes_out == 13).await;
    assert!(route.activity().since_acted.as_secs() < 3600);
}
