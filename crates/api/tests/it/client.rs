//! The client against a small server of its own, which answers as it is told and keeps what it was sent.

#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use std::time::Duration;

use berth_api::client::{Error, all_pages};
use berth_api::events::{EventStreamQuery, Position};
use berth_api::headers::IfMatch;
use berth_api::page::PageQuery;
use berth_api::reference::SiteReference;
use berth_api::reservations::{Extension, NewReservation, ReservationQuery};
use berth_api::sites::SitePatch;
use berth_api::{Client, Code, Credential, Problem};
use futures::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Answers one connection after the other with the given texts; gives its address and what it receives.
async fn server(answers: Vec<String>) -> (String, UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = unbounded_channel();
    tokio::spawn(async move {
        for answer in answers {
            let (mut connection, _) = listener.accept().await.unwrap();
            sender.send(read_request(&mut connection).await).unwrap();
            connection.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (address, received)
}

/// Head and body of one request, as far as `content-length` says.
async fn read_request(connection: &mut tokio::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        assert_ne!(
            connection.read_buf(&mut bytes).await.unwrap(),
            0,
            "cut off: {text}"
        );
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

fn refusal(problem: &Problem) -> String {
    let status = format!("{} Refused", problem.status);
    let body = serde_json::to_string(problem).unwrap();
    answer(&status, "content-type: application/problem+json\r\n", &body)
}

fn site() -> SiteReference {
    "torino".parse().unwrap()
}

fn booking() -> NewReservation {
    serde_json::from_value(serde_json::json!({
        "title": "fine tuning",
        "start": "2026-11-20T09:00:00Z",
        "end": "2026-11-20T10:00:00Z",
        "resources": [{"resource": "gpu-01"}],
    }))
    .unwrap()
}

const RESERVATION: &str = r#"{
    "id": "rsv_01kc3v9xwbe8rv5w2n9q3m7t4h",
    "site": {"id": "sit_01kc3v9xwbe8rv5w2n9q3m7t4h", "name": "torino", "title": "Torino"},
    "owner": {"id": "per_01kc3v9xwbe8rv5w2n9q3m7t4h", "login": "ada", "display_name": "Ada"},
    "project": null, "title": "fine tuning", "privacy": "site", "state": "confirmed", "state_reason": null,
    "start": "2026-11-20T09:00:00Z", "end": "2026-11-20T10:00:00Z",
    "resources": [{
        "resource": {"id": "res_01kc3v9xwbe8rv5w2n9q3m7t4h", "name": "gpu-01", "type": "gpu"},
        "amount": null, "claim": "clm_01kc3v9xwbe8rv5w2n9q3m7t4h"
    }],
    "parameters": {}, "terms": {"asks_leave": false, "decide_by": null, "undecided": "reject", "check_in": "not_asked"},
    "version": 1,
    "created_at": "2026-11-15T09:00:00Z", "updated_at": "2026-11-15T09:00:00Z"
}"#;

#[tokio::test]
async fn a_booking_carries_its_key_token_and_body_below_the_base_path() {
    let replayed = answer("201 Created", "idempotency-replayed: true\r\n", RESERVATION);
    let (address, mut received) = server(vec![replayed]).await;
    let token = Credential::Token("brt_canary".to_owned().into());
    let client = Client::new(&format!("{address}/berth/"), token).unwrap();

    let key = "k-1".parse().unwrap();
    let made = client.book(&site(), &booking(), Some(&key)).await.unwrap();
    assert!(made.replayed);
    assert_eq!(made.object.owner.login, "ada");

    let sent = received.recv().await.unwrap();
    assert!(
        sent.starts_with("POST /berth/api/v1/sites/torino/reservations HTTP/1.1\r\n"),
        "{sent}"
    );
    assert!(sent.contains("idempotency-key: k-1\r\n"), "{sent}");
    assert!(
        sent.contains("authorization: Bearer brt_canary\r\n"),
        "{sent}"
    );
    assert!(
        sent.contains("content-type: application/json\r\n"),
        "{sent}"
    );
    let (_, body) = sent.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        serde_json::from_str::<NewReservation>(body).unwrap(),
        booking()
    );
}

#[tokio::test]
async fn a_change_names_its_version_and_a_session_its_csrf_token() {
    let mismatch = Problem::new(Code::RequestVersionMismatch).version(8);
    let (address, mut received) = server(vec![refusal(&mismatch)]).await;
    let session = Credential::Session {
        cookie: "berth_session=c00kie".to_owned().into(),
        csrf_token: "c5rf".to_owned().into(),
    };
    let client = Client::new(&address, session).unwrap();
    let patch = SitePatch::default();
    let error = client
        .change_site(&site(), IfMatch::Version(7), &patch)
        .await
        .unwrap_err();
    assert!(error.is(Code::RequestVersionMismatch), "{error:?}");
    assert_eq!(error.problem().unwrap().version, Some(8));

    let sent = received.recv().await.unwrap();
    assert!(
        sent.starts_with("PATCH /api/v1/sites/torino HTTP/1.1\r\n"),
        "{sent}"
    );
    for header in [
        "if-match: \"7\"",
        "cookie: berth_session=c00kie",
        "x-csrf-token: c5rf",
    ] {
        assert!(sent.contains(&format!("{header}\r\n")), "{header}: {sent}");
    }
}

#[tokio::test]
async fn signing_in_gives_a_credential_to_go_on_with() {
    let body = r#"{"csrf_token": "c5rf", "person": {
        "id": "per_01kc3v9xwbe8rv5w2n9q3m7t4h", "login": "ada", "display_name": "Ada", "email": null,
        "time_zone": "UTC", "global_admin": false, "state": "active", "version": 1,
        "created_at": "2026-11-15T09:00:00Z"}}"#;
    let cookie = "set-cookie: other=1\r\nset-cookie: berth_session=c00kie; HttpOnly; Path=/\r\n";
    let nothing = answer("204 No Content", "", "");
    let (address, mut received) = server(vec![answer("200 OK", cookie, body), nothing]).await;
    let client = Client::new(&address, Credential::None).unwrap();
    let sign_in = serde_json::from_str(r#"{"login": "ada", "password": "secret"}"#).unwrap();
    let (signed_in, session) = client.sign_in(&sign_in).await.unwrap();
    assert_eq!(signed_in.person.login.as_str(), "ada");
    client.with(session).sign_out().await.unwrap();

    let first = received.recv().await.unwrap();
    assert!(!first.contains("cookie:"), "{first}");
    let second = received.recv().await.unwrap();
    assert!(
        second.contains("cookie: berth_session=c00kie\r\n"),
        "{second}"
    );
}

#[tokio::test]
async fn all_pages_follows_the_cursors() {
    let page = |next: &str| {
        answer(
            "200 OK",
            "",
            &format!(r#"{{"items": [{RESERVATION}], "next": {next}}}"#),
        )
    };
    let pages = vec![page("\"p2\""), page("\"p3\""), page("null")];
    let (address, mut received) = server(pages).await;
    let client = Client::new(&address, Credential::None).unwrap();
    let all = all_pages(async |cursor| {
        let query = ReservationQuery {
            cursor,
            ..ReservationQuery::default()
        };
        client.reservations(&site(), &query).await
    });
    assert_eq!(all.await.unwrap().len(), 3);
    for query in ["limit=100", "limit=100&cursor=p2", "limit=100&cursor=p3"] {
        let sent = received.recv().await.unwrap();
        let line = format!("GET /api/v1/sites/torino/reservations?{query} HTTP/1.1\r\n");
        assert!(sent.starts_with(&line), "{sent}");
    }
}

#[tokio::test]
async fn a_list_that_goes_in_a_circle_is_left() {
    let page = || answer("200 OK", "", r#"{"items": [], "next": "p2"}"#);
    let (address, _received) = server(vec![page(), page()]).await;
    let client = Client::new(&address, Credential::None).unwrap();
    let all = all_pages(async |cursor| {
        let query = PageQuery {
            cursor,
            ..PageQuery::default()
        };
        client.sites(&query).await
    });
    assert!(matches!(all.await, Err(Error::Unexpected(_))));
}

#[tokio::test]
async fn strange_answers_are_told_apart_from_berth_s() {
    let html = answer(
        "502 Bad Gateway",
        "content-type: text/html\r\n",
        "<h1>Bad\ngateway</h1>",
    );
    let elsewhere = answer("302 Found", "location: https://lab.example/\r\n", "");
    let nonsense = answer("200 OK", "", "welcome");
    let (address, _received) = server(vec![html, elsewhere, nonsense]).await;
    let client = Client::new(&address, Credential::None).unwrap();
    for expected in [
        "502 Bad Gateway: <h1>Bad gateway</h1>",
        "https://lab.example/",
        "does not read",
    ] {
        let error = client.me().await.unwrap_err();
        assert!(matches!(error, Error::Unexpected(_)), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn no_server_says_so_with_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = Client::new(&address, Credential::None).unwrap();
    let extension = Extension::By("PT2H".parse().unwrap());
    let id = "rsv_01kc3v9xwbe8rv5w2n9q3m7t4h".parse().unwrap();
    let error = client
        .extend_reservation(&site(), id, extension)
        .await
        .unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains(&address) && said.contains("server is running"),
        "{said}"
    );
}

#[tokio::test]
async fn localhost_is_found_without_asking() {
    let (address, _received) = server(vec![answer("200 OK", "", "")]).await;
    let client = Client::new(&address.replace("127.0.0.1", "localhost"), Credential::None).unwrap();
    client.healthy().await.unwrap();
}

#[tokio::test]
async fn the_stream_yields_events_until_the_server_says_why_it_ends() {
    let event = |number: u64| {
        format!(
            "id: {number}\nevent: site.created\ndata: {{\"number\": {number}, \"kind\": \"site.created\", \
             \"id\": \"evt_01kc3v9xwbe8rv5w2n9q3m7t4h\", \"at\": \"2026-11-15T09:00:00Z\", \"site\": null, \
             \"subject\": \"sit_01kc3v9xwbe8rv5w2n9q3m7t4h\", \"data\": {{}}}}\n\n"
        )
    };
    let problem = serde_json::to_string(&Problem::new(Code::AuthTokenExpired)).unwrap();
    let frames = format!(
        ": hello\n\n{}{}event: problem\ndata: {problem}\n\n",
        event(8),
        event(9)
    );
    let stream = answer("200 OK", "content-type: text/event-stream\r\n", &frames);
    let (address, mut received) = server(vec![stream]).await;
    let client = Client::new(&address, Credential::None).unwrap();
    let query = EventStreamQuery {
        after: Position::try_from(7).ok(),
        site: Some(site()),
    };
    let mut events = client.events_stream(&query).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().number, 8);
    assert_eq!(events.next().await.unwrap().unwrap().number, 9);
    assert!(
        events
            .next()
            .await
            .unwrap()
            .unwrap_err()
            .is(Code::AuthTokenExpired)
    );
    assert!(events.next().await.is_none());

    let sent = received.recv().await.unwrap();
    assert!(
        sent.starts_with("GET /api/v1/events/stream?after=7&site=torino HTTP/1.1\r\n"),
        "{sent}"
    );
    let wanted = sent.lines().filter(|line| line.starts_with("accept:"));
    assert_eq!(wanted.collect::<Vec<_>>(), ["accept: text/event-stream"]);
}

/// The CLI makes a client for each command and has 20 ms for the whole of it. The best of several
/// attempts is counted, so that a busy machine does not fail the test.
#[tokio::test]
async fn making_a_client_without_tls_takes_no_time() {
    let best = (0..20)
        .map(|_| {
            let begun = std::time::Instant::now();
            Client::new("http://localhost:8080", Credential::None).unwrap();
            begun.elapsed()
        })
        .min()
        .unwrap();
    assert!(best < Duration::from_millis(2), "{best:?}");
}
