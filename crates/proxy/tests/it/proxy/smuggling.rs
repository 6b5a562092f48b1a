//! Requests written to be read in two ways: by us in one, by the app in another.

use std::sync::{Arc, Mutex};

use super::client::{ask, head, raw, status};
use super::rig::{HOST, Rig, shown, text};

/// A rig that keeps the request lines its app has seen.
async fn witness() -> (Rig, Arc<Mutex<Vec<String>>>) {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = seen.clone();
    let rig = Rig::new(move |request| {
        let kept = kept.clone();
        async move {
            let shown = shown(request).await;
            kept.lock()
                .expect("the list")
                .push(shown.lines().next().unwrap_or_default().to_owned());
            text(shown)
        }
    })
    .await;
    (rig, seen)
}

#[tokio::test]
async fn a_body_with_two_lengths_hides_no_second_request() {
    let (rig, seen) = witness().await;
    let hidden = format!("GET /hidden HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
    for lengths in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: +5\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Content-Length: 0\r\nTransfer-Encoding:\x0bchunked\r\n",
    ] {
        let request = format!("{}{lengths}\r\n0\r\n\r\n{hidden}", head("POST /seen"));
        let answer = raw(&rig, request).await;
        let told = answer.matches("transfer-encoding: ").count()
            + answer.matches("content-length: 5\n").count();
        // What was let through was framed anew, in one way, and nothing more was read after it.
        let refused = answer.contains("HTTP/1.1 400 ") || answer.contains("connection: close");
        assert!(refused && told <= 1, "{lengths}: {answer}");
    }
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|line| line == "POST /seen"), "{seen:?}");
}

#[tokio::test]
async fn a_header_cannot_break_out_of_its_line() {
    let (rig, seen) = witness().await;
    for line in [
        "X-A: b\rX-Forwarded-For: 6.6.6.6\r\n",
        "X-A: b\nX-Berth-Person: mallory\r\n",
        "X-A: b\0c\r\n",
        "X-A\r\n: b\r\n",
        " X-A: b\r\n",
        "X-A: b\r\n X-Berth-Person: mallory\r\n",
        "X A: b\r\n",
    ] {
        let answer = ask(&rig, "GET /", line).await;
        assert!(
            !answer.contains("mallory") && !answer.contains("6.6.6.6"),
            "{line:?}: {answer}"
        );
        assert!(
            matches!(status(&answer), "200" | "400"),
            "{line:?}: {answer}"
        );
    }
    for path in ["/a\rb", "/a\0b", "/a b"] {
        let answer = ask(&rig, &format!("GET {path}"), "").await;
        assert_eq!(status(&answer), "400", "{path:?}");
    }
    // A line ended by a bare line feed is a line of its own, and is judged as one.
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|line| line == "GET /"), "{seen:?}");
}

#[tokio::test]
async fn a_target_that_names_a_host_is_refused() {
    let (rig, seen) = witness().await;
    for target in [
        format!("http://{HOST}/"),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        format!("https://{HOST}@169.254.169.254/"),
        "*".to_owned(),
    ] {
        for method in ["GET", "OPTIONS"] {
            let answer = ask(&rig, &format!("{method} {target}"), "").await;
            assert!(
                matches!(status(&answer), "400" | "404"),
                "{method} {target}: {answer}"
            );
        }
    }
    let answer = ask(&rig, "CONNECT 169.254.169.254:80", "").await;
    assert!(matches!(status(&answer), "400" | "404"), "{answer}");
    assert_eq!(status(&ask(&rig, "TRACE /", "").await), "400");
    assert!(seen.lock().unwrap().is_empty());
}
