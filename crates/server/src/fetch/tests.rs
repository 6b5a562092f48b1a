use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const CALENDAR: &str = "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n";

/// A server on this machine that gives each connection the next answer, and says what was asked of it.
async fn serve(answers: Vec<String>) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            asked.push(String::from_utf8(head).unwrap().to_lowercase());
            // Whoever has read enough hangs up.
            stream.write_all(answer.as_bytes()).await.ok();
        }
        asked
    });
    (port, task)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
}

fn here() -> Fetcher {
    Fetcher::new(&["127.0.0.0/8".parse().unwrap()])
}

#[test]
fn what_is_not_public_is_told_from_what_is() {
    for public in [
        "8.8.8.8",
        "193.204.1.1",
        "2606:4700::1111",
        "2a00:1450::1",
        "::ffff:8.8.8.8",
        "2002:808:808::1",
    ] {
        assert!(is_public(public.parse().unwrap()), "{public}");
    }
    for private in [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.1.1",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "fc00::1",
        "fe80::1",
        "ff02::1",
        "2001:db8::1",
        "2001::1",
        "3fff::1",
        "5f00::1",
    ] {
        assert!(!is_public(private.parse().unwrap()), "{private}");
    }
}

#[tokio::test]
async fn private_addresses_are_refused_before_anything_is_sent() {
    let (port, _server) = serve(vec![answer("200 OK", "", CALENDAR)]).await;
    let strict = Fetcher::new(&[]);
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "2130706433",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
    ] {
        for scheme in ["http", "https"] {
            let address = format!("{scheme}://{host}:{port}/secret-path");
            let refused = strict.fetch(&address, None).await.unwrap_err();
            assert!(refused.contains("private network"), "{address}: {refused}");
            assert!(!refused.contains("secret-path"), "{refused}");
        }
    }
    let other = strict.fetch("ftp://example.org/x", None).await.unwrap_err();
    assert!(other.contains("not https"), "{other}");
}

#[tokio::test]
async fn a_named_network_is_read_from_and_versions_are_compared() {
    let new = answer("200 OK", "etag: \"7\"\r\n", CALENDAR);
    let same = answer("304 Not Modified", "", "");
    let (port, server) = serve(vec![new, same]).await;
    let address = format!("http://localhost:{port}/holidays.ics");
    let first = here().fetch(&address, None).await.unwrap();
    let bytes = CALENDAR.as_bytes().to_vec();
    let etag = Some("\"7\"".to_owned());
    assert_eq!(
        first,
        Fetched::New {
            bytes,
            etag: etag.clone()
        }
    );
    assert_eq!(
        here().fetch(&address, etag.as_deref()).await,
        Ok(Fetched::Same)
    );
    let asked = server.await.unwrap();
    assert!(!asked[0].contains("if-none-match"), "{}", asked[0]);
    assert!(asked[1].contains("if-none-match: \"7\""), "{}", asked[1]);
}

#[tokio::test]
async fn redirects_are_followed_a_few_times_and_never_around_the_guard() {
    let to = |target: &str| answer("302 Found", &format!("location: {target}\r\n"), "");
    let (port, _server) = serve(vec![to("/there"), answer("200 OK", "", CALENDAR)]).await;
    let address = format!("http://127.0.0.1:{port}/here");
    assert!(here().fetch(&address, None).await.is_ok());

    let (port, _server) = serve(vec![to("http://169.254.169.254/latest/meta-data")]).await;
    let address = format!("http://127.0.0.1:{port}/here");
    let refused = here().fetch(&address, None).await.unwrap_err();
    assert!(refused.contains("private network"), "{refused}");

    let (port, _server) = serve(vec![to("/x"); REDIRECTS_MAX + 1]).await;
    let address = format!("http://127.0.0.1:{port}/here");
    let refused = here().fetch(&address, None).await.unwrap_err();
    assert!(refused.contains("redirects more than"), "{refused}");
}

#[tokio::test]
async fn what_is_too_large_or_not_there_is_said_in_words() {
    let large = "x".repeat(CALENDAR_MAX_BYTES + 1);
    let answers = vec![answer("200 OK", "", &large), answer("500 Oh", "", "")];
    let (port, _server) = serve(answers).await;
    let address = format!("http://127.0.0.1:{port}/secret-path");
    let large = here().fetch(&address, None).await.unwrap_err();
    assert!(large.contains("larger than 1048576"), "{large}");
    let failed = here().fetch(&address, None).await.unwrap_err();
    assert!(failed.contains("answered 500"), "{failed}");
    // A port on which nobody listens: it was this test's own until now.
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let gone = here()
        .fetch(&format!("http://127.0.0.1:{free}/secret-path"), None)
        .await;
    let gone = gone.unwrap_err();
    assert!(gone.starts_with("it could not be reached"), "{gone}");
    assert!(!gone.contains("secret-path"), "{gone}");
}
