//! What is too much, too long or not there.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use berth_proxy::Limits;
use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::client::{Client, ask, head, status};
use super::pages::Endless;
use super::rig::{Rig, Setting, text};
use super::sockets;

fn limited(change: impl FnOnce(&mut Limits)) -> Setting {
    let mut setting = Setting::default();
    change(&mut setting.limits);
    setting
}

#[tokio::test]
async fn one_route_has_only_so_much_open() {
    let rig = Rig::set(limited(|limits| limits.open_max = 1), sockets::echo).await;
    let socket = sockets::open(&rig).await;
    assert_eq!(status(&ask(&rig, "GET /", "").await), "503");
    drop(socket);
    let route = rig.route();
    super::until("the place to be free", || route.activity().open == 0).await;
    assert_eq!(status(&ask(&rig, "GET /", "").await), "200");
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let rig = Rig::set(limited(|limits| limits.head_bytes_max = 9000), async |_| {
        let mut answer = text("");
        let long = "x".repeat(10_000).parse().unwrap();
        answer.headers_mut().insert("x-long", long);
        answer
    })
    .await;
    let long = format!("X-Long: {}\r\n", "x".repeat(9000));
    assert_eq!(status(&ask(&rig, "GET /", &long).await), "431");
    assert_eq!(rig.accepted.load(Relaxed), 0, "the app was asked");
    assert_eq!(status(&ask(&rig, "GET /", "").await), "502");
}

#[tokio::test]
async fn an_app_that_is_not_there_is_said_to_be() {
    let (rig, listener) = Rig::without_app(Setting::default()).await;
    drop(listener);
    assert_eq!(status(&ask(&rig, "GET /", "").await), "502");
    std::fs::remove_file(rig.path("app.sock")).unwrap();
    assert_eq!(status(&ask(&rig, "GET /", "").await), "502");
    assert_eq!(rig.route().activity().open, 0);
}

#[tokio::test]
async fn an_app_that_talks_nonsense_or_hangs_up_is_said_to() {
    for nonsense in [
        "nonsense\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ] {
        let (rig, listener) = Rig::without_app(Setting::default()).await;
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.read_buf(&mut Vec::with_capacity(4096)).await.ok();
                stream.write_all(nonsense.as_bytes()).await.ok();
            }
        });
        assert_eq!(status(&ask(&rig, "GET /", "").await), "502", "{nonsense:?}");
    }
}

#[tokio::test]
async fn an_app_that_does_not_answer_at_all_is_given_up() {
    tokio::time::pause();
    let rig = Rig::new(async |_| std::future::pending().await).await;
    assert_eq!(status(&ask(&rig, "GET /", "").await), "504");
}

#[tokio::test]
async fn a_stream_in_which_nothing_moves_is_cut_and_a_silent_socket_is_not() {
    let rig = Rig::new(async |request| match request.uri().path() {
        "/ws" => sockets::echo(request).await,
        _ => Response::new(Endless(Some(Bytes::from("first"))).boxed_unsync()),
    })
    .await;
    let mut socket = sockets::open(&rig).await;
    let mut stream = Client::open(&rig).await;
    stream.write(format!("{}\r\n", head("GET /stream"))).await;
    stream.read_until("first").await;
    tokio::time::pause();
    tokio::time::advance(Limits::default().idle + Duration::from_secs(1)).await;
    stream.read_to_end().await;
    let route = rig.route();
    super::until("the stream to be over", || route.activity().open == 1).await;
    socket.write("still here").await;
    socket.read_until("still here").await;
}
