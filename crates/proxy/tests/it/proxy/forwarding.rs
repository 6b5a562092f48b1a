//! What the app gets of a request, and what the visitor gets of its answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use berth_proxy::{Addressing, HostSent, Prefix};
use bytes::Bytes;
use http::{HeaderValue, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use tokio::sync::Notify;

use super::client::{Client, ask, head, raw, status};
use super::rig::{HOST, Rig, Setting, shown, text};

async fn echo(request: http::Request<hyper::body::Incoming>) -> super::rig::AppAnswer {
    text(shown(request).await)
}

#[tokio::test]
async fn the_app_is_told_of_its_visitor_by_berth_alone() {
    let rig = Rig::new(echo).await;
    let answer = ask(
        &rig,
        "GET /lab/tree?a=%2F&b",
        "X-Forwarded-For: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n\
         X-Real-Ip: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Berth-Person: mallory\r\nX_Berth_Person: mallory\r\n\
         X-App: kept\r\n",
    )
    .await;
    let (_, seen) = answer.split_once("\r\n\r\n").expect("a body");
    let mut lines: Vec<_> = seen.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "GET /lab/tree?a=%2F&b",
            "[]",
            &format!("host: {HOST}"),
            &format!("origin: http://{HOST}"),
            "x-app: kept",
            "x-berth-person: alice",
            "x-forwarded-for: 127.0.0.1",
            &format!("x-forwarded-host: {HOST}"),
            "x-forwarded-proto: http",
        ]
    );
}

#[tokio::test]
async fn berths_cookies_and_tokens_never_reach_an_app_and_its_own_do() {
    let rig = Rig::new(echo).await;
    let answer = ask(
        &rig,
        "GET /",
        "Cookie: _xsrf=2|a; berth_session=s\r\nAuthorization: token app\r\n",
    )
    .await;
    assert!(answer.contains("cookie: _xsrf=2|a\n"), "{answer}");
    assert!(answer.contains("authorization: token app"), "{answer}");
    assert!(!answer.contains("berth_"), "{answer}");
    let by_token = "GET / HTTP/1.1\r\nHost: x7f3.berth.test\r\nAuthorization: Bearer berth_alice\r\nConnection: close\r\n\r\n";
    let answer = raw(&rig, by_token).await;
    assert_eq!(status(&answer), "200");
    assert!(!answer.contains("berth_alice"), "{answer}");
}

#[tokio::test]
async fn cve_2024_28233_an_app_cannot_set_cookies_for_berth_or_its_siblings() {
    let rig = Rig::new(async |_| {
        let mut answer = text("");
        for line in [
            "a=1; Domain=berth.test; Path=/",
            "berth_visit=mallory",
            "__Host-berth_session=m; Secure; Path=/",
        ] {
            answer
                .headers_mut()
                .append("set-cookie", HeaderValue::from_static(line));
        }
        answer
            .headers_mut()
            .insert("clear-site-data", HeaderValue::from_static("\"cookies\""));
        answer
    })
    .await;
    let answer = ask(&rig, "GET /", "").await.to_lowercase();
    assert!(answer.contains("set-cookie: a=1; path=/\r\n"), "{answer}");
    assert_eq!(answer.matches("set-cookie").count(), 1, "{answer}");
    assert!(!answer.contains("clear-site-data"), "{answer}");
}

#[tokio::test]
async fn what_concerns_one_connection_stays_on_it() {
    let rig = Rig::new(async |request| {
        let mut answer = text(shown(request).await);
        for (name, value) in [
            ("connection", "x-inner"),
            ("x-inner", "1"),
            ("keep-alive", "timeout=5"),
            ("x-outer", "1"),
        ] {
            answer
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        answer
    })
    .await;
    let request = format!(
        "{}Connection: close, X-Hop, Host\r\nX-Hop: 1\r\nTE: trailers\r\nKeep-Alive: 1\r\nUpgrade: h2c\r\n\
         HTTP2-Settings: AAMAAABk\r\nProxy-Authorization: x\r\nX-End: 1\r\n\r\n",
        head("GET /")
    );
    let answer = raw(&rig, request).await;
    for gone in [
        "x-hop",
        "\nte:",
        "keep-alive",
        "upgrade",
        "http2-settings",
        "proxy-authorization",
        "x-inner",
    ] {
        assert!(!answer.contains(gone), "{gone} in {answer}");
    }
    assert!(
        answer.contains("x-end: 1") && answer.contains("x-outer: 1"),
        "{answer}"
    );
    assert!(answer.contains(&format!("host: {HOST}")), "{answer}");
}

#[tokio::test]
async fn an_app_that_knows_one_host_is_asked_by_it_and_leads_to_the_public_one() {
    let setting = Setting {
        host: HostSent::Fixed(HeaderValue::from_static("localhost:8888")),
        ..Setting::default()
    };
    let rig = Rig::set(setting, async |request| {
        let mut answer = text(shown(request).await);
        let location = HeaderValue::from_static("http://localhost:8888/lab");
        answer.headers_mut().insert("location", location);
        answer
    })
    .await;
    let answer = ask(
        &rig,
        "POST /",
        &format!("Referer: http://{HOST}/tree\r\nContent-Length: 0\r\n"),
    )
    .await;
    for expected in [
        "host: localhost:8888",
        "origin: http://localhost:8888\n",
        "referer: http://localhost:8888/tree",
        &format!("location: http://{HOST}/lab\r\n"),
    ] {
        assert!(answer.contains(expected), "{expected} in {answer}");
    }
}

#[tokio::test]
async fn below_a_path_the_prefix_is_kept_or_stripped_as_the_route_says() {
    for (prefix, path, line) in [
        (Prefix::Kept, "/s/x7f3/lab?q", "GET /s/x7f3/lab?q"),
        (Prefix::Stripped, "/s/x7f3/lab?q", "GET /lab?q"),
        (Prefix::Stripped, "/s/x7f3/", "GET /"),
    ] {
        let setting = Setting {
            addressing: Addressing::paths("http://x7f3.berth.test", "").unwrap(),
            prefix,
            ..Setting::default()
        };
        let rig = Rig::set(setting, async |request| {
            let mut answer = text(shown(request).await);
            let scope = HeaderValue::from_static("/");
            answer.headers_mut().insert("service-worker-allowed", scope);
            answer
                .headers_mut()
                .insert("set-cookie", HeaderValue::from_static("a=1; Path=/"));
            answer
        })
        .await;
        let answer = ask(&rig, &format!("GET {path}"), "").await;
        assert!(answer.contains(&format!("\r\n\r\n{line}\n")), "{answer}");
        assert!(!answer.contains("service-worker"), "{answer}");
        assert!(
            answer.contains("set-cookie: a=1; Path=/s/x7f3/\r\n"),
            "{answer}"
        );
        let stripped = prefix == Prefix::Stripped;
        assert_eq!(
            answer.contains("x-forwarded-prefix: /s/x7f3\n"),
            stripped,
            "{answer}"
        );
        let answer = ask(&rig, "GET /s/x7f3?q=//evil.example", "").await;
        assert_eq!(status(&answer), "307");
        assert!(answer.contains("location: /s/x7f3/\r\n"), "{answer}");
        assert_eq!(status(&ask(&rig, "GET /s/x7f4/", "").await), "404");
        assert_eq!(status(&ask(&rig, "GET /elsewhere", "").await), "418");
    }
}

#[tokio::test]
async fn bodies_of_known_and_unknown_length_arrive_whole() {
    let rig = Rig::new(echo).await;
    let known = ask(&rig, "POST /", "Content-Length: 5\r\n\r\nhello").await;
    assert!(
        known.contains("content-length: 5\n") && known.ends_with("[hello]"),
        "{known}"
    );
    for method in ["POST", "GET"] {
        let chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n";
        let answer = ask(&rig, &format!("{method} /"), chunked).await;
        assert!(answer.ends_with("[hello]"), "{answer}");
        assert!(answer.contains("transfer-encoding: chunked\n"), "{answer}");
    }
    let empty = ask(&rig, "POST /", "Content-Length: 0\r\n").await;
    assert!(
        empty.contains("content-length: 0\n") && empty.ends_with("[]"),
        "{empty}"
    );
    let expecting = ask(
        &rig,
        "POST /",
        "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nok",
    )
    .await;
    assert!(
        expecting.starts_with("HTTP/1.1 100 ") && expecting.ends_with("[ok]"),
        "{expecting}"
    );
    let head = ask(&rig, "HEAD /", "").await;
    assert_eq!(status(&head), "200");
    assert!(
        head.contains("content-length: ") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    let route = rig.route();
    super::until("everything to be over", || route.activity().open == 0).await;
    assert_eq!(route.activity().requests, 6);
    assert_eq!(route.activity().bytes_in, 5 + 5 + 5 + 2);
}

#[tokio::test]
async fn an_answer_arrives_part_by_part_as_the_app_makes_it() {
    let next = Arc::new(Notify::new());
    let parts = next.clone();
    let rig = Rig::new(move |_| {
        let parts = parts.clone();
        async move {
            let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
            tokio::spawn(async move {
                for part in ["one", "two"] {
                    sender.send(Bytes::from(part)).await.ok();
                    parts.notified().await;
                }
            });
            Response::new(Parts(receiver).boxed_unsync())
        }
    })
    .await;
    let mut client = Client::open(&rig).await;
    client.write(format!("{}\r\n", head("GET /"))).await;
    client.read_until("one\r\n").await;
    next.notify_one();
    client.read_until("two\r\n").await;
    next.notify_one();
    client.read_until("0\r\n\r\n").await;
    assert_eq!(rig.route().activity().bytes_out, 6);
}

struct Parts(tokio::sync::mpsc::Receiver<Bytes>);

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.0.poll_recv(cx);
        part.map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}

#[tokio::test]
async fn a_long_poll_waits_for_as_long_as_the_app_does() {
    let news = Arc::new(Notify::new());
    let bell = news.clone();
    let rig = Rig::new(move |_| {
        let bell = bell.clone();
        async move {
            bell.notified().await;
            text("news")
        }
    })
    .await;
    let mut client = Client::open(&rig).await;
    client.write(format!("{}\r\n", head("GET /poll"))).await;
    let route = rig.route();
    super::until("the poll to be open", || route.activity().open == 1).await;
    news.notify_one();
    client.read_until("news").await;
}

#[tokio::test]
async fn connections_to_an_app_are_used_again_and_one_it_closed_is_not() {
    let rig = Rig::new(async |request| {
        let closes = request.uri().path() == "/last";
        let mut answer = text("done");
        if closes {
            answer
                .headers_mut()
                .insert("connection", HeaderValue::from_static("close"));
        }
        answer
    })
    .await;
    let mut client = Client::open(&rig).await;
    for (path, connections) in [("/", 1), ("/", 1), ("/last", 1), ("/", 2), ("/", 2)] {
        client
            .write(format!("{}\r\n", head(&format!("GET {path}"))))
            .await;
        client.read_until("done").await;
        assert_eq!(rig.accepted.load(Relaxed), connections, "{path}");
    }
}
