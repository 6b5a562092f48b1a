//! The proxy's own pages.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};

use super::client::{ask, raw, status};
use super::rig::{Rig, Setting, text};

/// A body that begins and does not end.
pub struct Endless(pub Option<Bytes>);

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.take() {
            Some(part) => Poll::Ready(Some(Ok(Frame::data(part)))),
            None => Poll::Pending,
        }
    }
}

#[tokio::test]
async fn cve_2024_35225_no_page_repeats_what_was_asked() {
    const MARK: &str = "mark7531";
    let (rig, listener) = Rig::without_app(Setting::default()).await;
    drop(listener);
    let script = format!("<script>{MARK}</script>");
    let mark = &format!("X-Mark: {script}\r\nReferer: http://{MARK}/\r\nUser-Agent: {script}\r\n");
    let mut answers = vec![
        ask(&rig, &format!("GET /{MARK}?{MARK}"), mark).await,
        ask(&rig, &format!("CONNECT {MARK}:80"), mark).await,
        ask(
            &rig,
            &format!("{MARK} /"),
            &format!("Origin: http://{MARK}\r\n{mark}"),
        )
        .await,
        raw(
            &rig,
            format!(
                "GET /{MARK} HTTP/1.1\r\nHost: {MARK}.berth.test\r\n{mark}Connection: close\r\n\r\n"
            ),
        )
        .await,
        raw(
            &rig,
            format!(
                "GET / HTTP/1.1\r\nHost: {script}.berth.test\r\n{mark}Connection: close\r\n\r\n"
            ),
        )
        .await,
        ask(
            &rig,
            "GET /",
            &format!("{mark}X-Long: {}\r\n", MARK.repeat(8 * 1024)),
        )
        .await,
    ];
    answers.push(
        ask(
            &rig,
            "GET /",
            &format!("Accept: application/json+{MARK}\r\n{mark}"),
        )
        .await,
    );
    for answer in answers {
        assert!(["4", "5"].contains(&&status(&answer)[..1]), "{answer}");
        assert!(!answer.contains(MARK), "{answer}");
    }
}

#[tokio::test]
async fn people_get_a_page_and_programs_a_problem() {
    let (rig, listener) = Rig::without_app(Setting::default()).await;
    drop(listener);
    let page = ask(
        &rig,
        "GET /",
        "Accept: text/html,application/json;q=0.9\r\n",
    )
    .await;
    assert!(
        page.contains("content-type: text/html") && page.contains("<h1>"),
        "{page}"
    );
    assert!(
        page.contains("content-security-policy: default-src 'none'"),
        "{page}"
    );
    let problem = ask(&rig, "GET /", "Accept: application/json\r\n").await;
    assert!(
        problem.contains("content-type: application/problem+json"),
        "{problem}"
    );
    assert!(problem.contains("\"status\":502"), "{problem}");
    assert!(problem.contains("cache-control: no-store"), "{problem}");
}

#[tokio::test]
async fn the_apps_own_errors_pass_as_they_are() {
    let rig = Rig::new(async |_| {
        let mut answer = text("the app's own words");
        *answer.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        answer
    })
    .await;
    let answer = ask(&rig, "GET /", "").await;
    assert_eq!(status(&answer), "500");
    assert!(answer.ends_with("the app's own words"), "{answer}");
}
