//! Clients that are slow, greedy, malformed or malicious: each gets its answer or is cut off, nobody else notices, and
//! the server is as well afterwards as before.

mod memory;
mod raw;

use std::time::Duration;

use crate::support::SOON;
use crate::support::ground::Ground;
use crate::support::http::{Http, Who};
use crate::support::world::{PASSWORD, World};
use berth_store::Engine;
use berth_testkit::server::BerthServer;
use berth_testkit::wait;
use memory::Memory;
use raw::{Raw, speak};
use serde_json::json;

/// Little patience and little room, so that a test need not wait long to use them up.
const STRICT: &str = "rate_limit_per_s = 0\nheader_timeout_s = 2\nrequest_timeout_s = 4\nconnections_max = 40\n\
                      request_body_limit_bytes = 65536";

struct Target {
    server: BerthServer,
    http: Http,
    world: World,
    _ground: Ground,
}

impl Target {
    async fn start(config: &str) -> Self {
        let ground = Ground::new(Engine::Sqlite).await;
        let world = World::build(&ground.url).await;
        let server = ground.launch(config).start().await.expect("the server");
        Self {
            http: Http::new(&server.url("")),
            server,
            world,
            _ground: ground,
        }
    }

    /// An ordinary person's ordinary request, on a connection of its own.
    async fn expect_service(&self) {
        let http = Http::new(&self.server.url(""));
        let ada = self.world.who("ada");
        let asked = http.get(&ada, "/sites/torino/resources");
        let answer = tokio::time::timeout(SOON, asked).await;
        answer.expect("an answer in time").expect(200);
    }

    /// Nothing of what happened has left a mark.
    async fn expect_health(&self) {
        self.expect_service().await;
        let ready = reqwest::get(self.server.url("/readyz"))
            .await
            .expect("an answer");
        assert_eq!(ready.status(), 200);
        let log = self.server.log();
        let marks = log
            .lines()
            .filter(|line| line.contains(" ERROR ") || line.contains("panicked"));
        assert_eq!(marks.collect::<Vec<_>>(), Vec::<&str>::new());
    }

    async fn post_raw(
        &self,
        path: &str,
        kind: &str,
        body: impl Into<reqwest::Body>,
    ) -> (u16, String) {
        let request = self.http.request(&self.world.who("root"), "POST", path);
        let answer = self
            .http
            .send(request.header("content-type", kind).body(body))
            .await;
        (answer.status, answer.code())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_slow_is_cut_off_and_holds_nobody_up() {
    let target = Target::start(STRICT).await;
    let port = target.server.port();

    // As many places as one address may have are taken by heads that never end, some of which drip on.
    let mut slow = Vec::new();
    for number in 0..20 {
        let mut raw = Raw::connect(2, port).await;
        raw.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
            .await;
        slow.push(tokio::spawn(async move {
            if number % 2 == 0 {
                raw.drip_until_cut(SOON).await
            } else {
                raw.expect_cut(SOON).await
            }
        }));
    }
    target.expect_service().await;
    for raw in slow {
        raw.await.expect("cut off in time");
    }

    // Bodies that never come, too.
    let mut bodies = Vec::new();
    for _ in 0..10 {
        let mut raw = Raw::connect(3, port).await;
        raw.send(
            "POST /api/v1/sign-in HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: 500\r\n\r\n{",
        )
        .await;
        bodies.push(raw);
    }
    target.expect_service().await;
    for raw in &mut bodies {
        assert_eq!(raw.status(SOON).await, 408);
    }
    drop(bodies);

    // From many addresses, more of them than there are places: whoever comes next waits until they are cut off, and
    // no longer.
    let mut crowd = Vec::new();
    for number in 0..60 {
        let mut raw = Raw::connect(10 + number % 4, port).await;
        raw.send("GET / HTTP/1.1\r\n").await;
        crowd.push(raw);
    }
    target.expect_service().await;
    drop(crowd);

    // Those who ask for much and take nothing of it are let go as well.
    let mut greedy = Vec::new();
    for _ in 0..5 {
        let mut raw = Raw::connect(4, port).await;
        let ask = "GET /docs HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(200);
        raw.try_send(&ask).await;
        greedy.push(raw);
    }
    target.expect_service().await;
    wait::until("only the onlooker to be connected", SOON, async || {
        let metrics = reqwest::get(target.server.url("/metrics"))
            .await
            .expect("an answer");
        let metrics = metrics.text().await.expect("the metrics");
        let open = metrics
            .lines()
            .find(|line| line.starts_with("berth_http_connections"));
        open.and_then(|line| line.rsplit(' ').next())
            .is_some_and(|open| open == "1")
    })
    .await;
    drop(greedy);
    target.expect_health().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_refused_for_what_it_is() {
    let target = Target::start(STRICT).await;
    let (path, json) = ("/sites/torino/projects", "application/json");
    let large = format!("{{\"name\": \"x\", \"title\": \"{}\"}}", "x".repeat(70_000));
    assert_eq!(
        target.post_raw(path, json, large).await,
        (413, "request.too_large".into())
    );
    for malformed in [
        "",
        "{",
        "{\"name\": }",
        "nul",
        "\u{0}",
        "{\"name\": 1e999, \"title\": \"x\"}",
    ] {
        let (status, code) = target.post_raw(path, json, malformed).await;
        assert!(
            matches!(status, 400 | 422),
            "{malformed:?}: {status} {code}"
        );
    }
    let not_text = b"{\"name\": \"\xff\xfe\", \"title\": \"x\"}".as_slice();
    assert_eq!(target.post_raw(path, json, not_text).await.0, 400);
    // Depth costs a reader its stack, unless it counts.
    for deep in ["[", "{\"a\":"] {
        let (status, code) = target.post_raw(path, json, deep.repeat(10_000)).await;
        assert!(matches!(status, 400 | 422), "{deep}: {status} {code}");
    }
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "multipart/form-data",
    ] {
        let body = "{\"name\": \"x\", \"title\": \"x\"}";
        let refused = target.post_raw(path, kind, body).await;
        assert_eq!(
            refused,
            (415, "request.unsupported_media_type".into()),
            "{kind}"
        );
    }
    let with_nul = "{\"name\": \"a\\u0000b\", \"title\": \"x\"}";
    assert_eq!(
        target.post_raw(path, json, with_nul).await,
        (422, "request.invalid".into())
    );
    let wrong_method = target.http.request(&Who::Nobody, "DELETE", "/sign-in");
    let wrong_method = target.http.send(wrong_method).await.expect(405);
    assert_eq!(wrong_method.header("allow"), Some("POST"));
    target.expect_health().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_requests_on_the_wire() {
    let target = Target::start(STRICT).await;
    let port = target.server.port();
    let ask = async |request: &str| speak(port, request, SOON).await;

    assert_eq!(ask("GET /healthz HTTP/1.0\r\n\r\n").await, 200);
    let many = "x-many: 1\r\n".repeat(300);
    assert_eq!(
        ask(&format!(
            "GET /healthz HTTP/1.1\r\nhost: localhost\r\n{many}\r\n"
        ))
        .await,
        431
    );
    let long = "x".repeat(100_000);
    let long_header = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: {long}\r\n\r\n");
    assert!(matches!(ask(&long_header).await, 400 | 431));
    let long_path = format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert!(matches!(ask(&long_path).await, 400 | 414 | 431));
    // Two lengths are the beginning of a smuggled request.
    let two = "POST /api/v1/sign-in HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}";
    assert_eq!(ask(two).await, 400);
    for garbage in [
        "\r\n\r\n\r\n",
        "\0\0\0\0",
        "GET\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        "HELO x\r\n\r\n",
    ] {
        let said = ask(garbage).await;
        assert!(matches!(said, 0 | 400), "{garbage:?}: {said}");
    }
    // Ways out of a tree that there is no way out of: none of them is a file, and none of them is a failure.
    for path in [
        "/../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/docs/errors/..%2f..%2f..%2fetc%2fpasswd",
        "/docs/errors/%00",
        "/api/v1/../../healthz",
        "/api/v1/sites/%2e%2e/resources",
        "/api/v1/sites/a%00b",
        "/api/v1/sites/%ff%fe",
        "/api/v1//sites",
        "//",
        "/%",
        "/api/v1/sites/..;/",
        "*",
    ] {
        let status = ask(&format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        ))
        .await;
        assert!(matches!(status, 400 | 401 | 404), "{path}: {status}");
    }
    // A request for somebody else's host.
    for (target, hosts) in [
        ("http://elsewhere.example/api/v1/me", "host: localhost\r\n"),
        ("/api/v1/me", "host: elsewhere.example\r\n"),
        ("/api/v1/me", "host: localhost\r\nhost: localhost\r\n"),
        ("/api/v1/me", ""),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
        assert_eq!(ask(&request).await, 421, "{target} {hosts}");
    }
    // A name as long as a path may be.
    let name = "n".repeat(8000);
    let answer = target
        .http
        .get(&target.world.who("ada"), &format!("/sites/{name}"))
        .await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (404, "object.not_found")
    );
    target.expect_health().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_too_much_waits_and_others_do_not() {
    let target = Target::start("rate_limit_per_s = 1\nrate_limit_burst = 10").await;
    let ada = target.world.who("ada");
    let refused = wait::some("the limit to be felt", SOON, async || {
        let answer = target.http.get(&ada, "/me").await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (429, "request.rate_limited")
    );
    let wait_s: u64 = refused
        .header("retry-after")
        .and_then(|text| text.parse().ok())
        .expect("a time");
    assert!((1..=2).contains(&wait_s), "{wait_s}");
    target
        .http
        .get(&target.world.who("bob"), "/me")
        .await
        .expect(200);
    // Waiting as told is enough.
    let patience = Duration::from_secs(wait_s) + Duration::from_secs(5);
    wait::until("the limit to pass", patience, async || {
        target.http.get(&ada, "/me").await.status == 200
    })
    .await;
    // Strangers are counted by address; probes are not counted at all.
    wait::until("a stranger to be held back", SOON, async || {
        target.http.get(&Who::Nobody, "/me").await.status == 429
    })
    .await;
    for _ in 0..20 {
        let probe = reqwest::get(target.server.url("/readyz"))
            .await
            .expect("an answer");
        assert_eq!(probe.status(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_site_s_page_gets_nothing_done() {
    let target = Target::start(STRICT).await;
    let http = &target.http;
    let browser = http.sign_in("root", PASSWORD).await;
    let Who::Browser { cookie, csrf } = browser.clone() else {
        unreachable!("a browser signs in")
    };
    let csrf = csrf.expect("a token for its pages");
    let page = Who::Browser { cookie, csrf: None };
    let evil = "https://evil.example";
    let (path, body) = (
        "/sites/torino/projects",
        json!({"name": "planted", "title": "Planted"}),
    );

    // What a form can send, what a script can send, and the token that neither can know.
    let form = http.request(&page, "POST", path).header("origin", evil);
    let form = form
        .header("content-type", "application/x-www-form-urlencoded")
        .body("name=planted");
    let plain = http.request(&page, "POST", path).header("origin", evil);
    let plain = plain
        .header("content-type", "text/plain")
        .body(body.to_string());
    let script = http
        .request(&page, "POST", path)
        .header("origin", evil)
        .json(&body);
    let guessed = http
        .request(&page, "POST", path)
        .header("x-csrf-token", "0".repeat(32))
        .json(&body);
    let stolen = http
        .request(&page, "POST", path)
        .header("origin", evil)
        .header("x-csrf-token", &csrf);
    let sandboxed = http
        .request(&page, "POST", path)
        .header("origin", "null")
        .header("x-csrf-token", &csrf);
    for request in [
        form,
        plain,
        script,
        guessed,
        stolen.json(&body),
        sandboxed.json(&body),
    ] {
        let answer = http.send(request).await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "auth.csrf"));
    }
    let planted = http.get(&browser, "/sites/torino/projects/planted").await;
    assert_eq!(planted.status, 404);
    // Nor does any answer invite another site to read it.
    let preflight = http
        .request(&Who::Nobody, "OPTIONS", path)
        .header("origin", evil);
    let preflight = http
        .send(preflight.header("access-control-request-method", "POST"))
        .await;
    let read = http
        .send(http.request(&page, "GET", "/me").header("origin", evil))
        .await;
    for answer in [preflight, read] {
        let invites = answer
            .headers
            .keys()
            .any(|name| name.as_str().starts_with("access-control-"));
        assert!(!invites, "{answer:?}");
    }
    http.make(&browser, path, &body).await;
    target.expect_health().await;
}

/// A password hash takes 19 MiB while it is computed, and allocators keep such blocks for each thread that had one:
/// 55 at once would be 1 GiB.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_five_sign_ins_at_once_take_little_memory_and_keep_little() {
    const AT_ONCE: usize = 55;
    const GROWTH_MAX_MIB: u64 = 96;
    let target = Target::start(
        "rate_limit_per_s = 0\nrequest_timeout_s = 3600\nsign_in_attempts_max = 1000\n\
         sign_in_attempts_login_max = 1000\nsign_in_attempts_network_max = 1000",
    )
    .await;
    let process = target.server.id().expect("it runs");
    target.expect_health().await;
    let before = Memory::of(process);
    let mut signing_in = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let http = target.http.clone();
        signing_in.spawn(async move { http.sign_in("ada", PASSWORD).await });
    }
    let signed_in = signing_in.join_all().await;
    assert_eq!(signed_in.len(), AT_ONCE);
    let after = Memory::of(process);
    let most = before.now_mib + GROWTH_MAX_MIB;
    assert!(after.peak_mib <= most, "before {before:?}, after {after:?}");
    assert!(after.now_mib <= most, "before {before:?}, after {after:?}");
    target.expect_health().await;
}
