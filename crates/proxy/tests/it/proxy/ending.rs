//! When access ends, so does everything that is open.

use berth_proxy::{HostSent, Prefix, Target, Upstream};
use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;

use super::client::{Client, ask, head, raw, status};
use super::pages::Endless;
use super::rig::{Rig, label, text};
use super::sockets;

/// A rig with a socket, a stream and a poll of alice's open.
async fn busy() -> (Rig, Client, Client, Client) {
    let rig = Rig::new(async |request| match request.uri().path() {
        "/ws" => sockets::echo(request).await,
        "/stream" => Response::new(Endless(Some(Bytes::from("first"))).boxed_unsync()),
        _ => std::future::pending().await,
    })
    .await;
    let socket = sockets::open(&rig).await;
    let mut stream = Client::open(&rig).await;
    stream.write(format!("{}\r\n", head("GET /stream"))).await;
    stream.read_until("first").await;
    let mut poll = Client::open(&rig).await;
    poll.write(format!("{}Connection: close\r\n\r\n", head("GET /poll")))
        .await;
    let route = rig.route();
    super::until("three to be open", || route.activity().open == 3).await;
    (rig, socket, stream, poll)
}

async fn expect_cut(mut socket: Client, mut stream: Client, mut poll: Client) {
    assert_eq!(socket.read_to_end().await, "");
    let rest = stream.read_to_end().await;
    assert!(
        !rest.contains("0\r\n\r\n"),
        "a cut stream looks whole: {rest:?}"
    );
    assert_eq!(status(&poll.read_to_end().await), "410");
}

#[tokio::test]
async fn a_visitor_who_signs_out_is_cut_off_at_once() {
    let (rig, socket, stream, poll) = busy().await;
    rig.alice.cancel();
    expect_cut(socket, stream, poll).await;
    let route = rig.route();
    super::until("nothing to be open", || route.activity().open == 0).await;
    assert_eq!(status(&ask(&rig, "GET /", "").await), "410");
}

#[tokio::test]
async fn a_session_that_ends_is_cut_off_at_once() {
    let (rig, socket, stream, poll) = busy().await;
    assert!(rig.proxy.routes.remove(&label()));
    expect_cut(socket, stream, poll).await;
    assert_eq!(status(&ask(&rig, "GET /", "").await), "404");
    assert!(!rig.proxy.routes.remove(&label()));
}

#[tokio::test]
async fn a_server_that_stops_cuts_everything() {
    let (rig, socket, stream, poll) = busy().await;
    rig.proxy.routes.close();
    expect_cut(socket, stream, poll).await;
}

#[tokio::test]
async fn a_label_given_to_another_app_leads_there_from_the_next_request_on() {
    let (rig, socket, stream, poll) = busy().await;
    let other = Rig::new(async |_| text("the other app")).await;
    let target = Target {
        upstream: Upstream::unix(other.path("app.sock")),
        host: HostSent::Public,
        prefix: Prefix::Kept,
        authorization: None,
    };
    rig.proxy.routes.put(label(), target);
    let request = format!("{}Connection: close\r\n\r\n", head("GET /"));
    assert!(raw(&rig, request).await.ends_with("the other app"));
    expect_cut(socket, stream, poll).await;
}
