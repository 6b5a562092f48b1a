//! What every request meets: probes, problems, limits, headers, the base path.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use berth_app::accounts::NewToken;
use berth_model::person::Scope;
use berth_store::idempotency;
use jiff::SignedDuration;
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use super::support::{PASSWORD, Running};

#[tokio::test]
async fn probes_and_counters_answer() -> Result<()> {
    let server = Running::start("").await?;
    assert_eq!(server.get("/healthz").await?.status, 200);
    assert_eq!(server.get("/readyz").await?.status, 200);
    server.get("/api/v1/me").await?;
    let metrics = server.get("/metrics").await?;
    for line in [
        r#"berth_http_requests_total{route="/api/v1/me",method="GET",status="401"} 1"#,
        r#"store="sqlite""#,
        "berth_sequencer_lag_seconds ",
    ] {
        assert!(
            metrics.body.contains(line),
            "{line} is missing in:\n{}",
            metrics.body
        );
    }
    server.stop().await
}

#[tokio::test]
async fn counters_are_for_this_machine_and_for_those_with_the_token() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("metrics.token");
    let config = format!("metrics_token_file = '{}'", file.display());
    let server = Running::start(&config).await?;
    let ask = async |headers: &str| {
        let answer = server.send("GET", "/metrics", headers, "").await?;
        anyhow::Ok(answer.status)
    };
    assert_eq!(ask("").await?, 200, "directly from this machine");
    let proxied = "x-forwarded-for: 192.0.2.7\r\n";
    for proxied in [proxied, "forwarded: for=192.0.2.7\r\n", "via: 1.1 x\r\n"] {
        assert_eq!(ask(proxied).await?, 401, "{proxied}");
    }
    let right = format!("{proxied}authorization: Bearer a long secret\r\n");
    assert_eq!(ask(&right).await?, 401, "there is no file");
    std::fs::write(&file, "\n")?;
    assert_eq!(
        ask(&format!("{proxied}authorization: Bearer \r\n")).await?,
        401
    );
    std::fs::write(&file, "a long secret\n")?;
    assert_eq!(ask(&right).await?, 200);
    assert_eq!(
        ask(&format!("{proxied}authorization: Bearer a long guess\r\n")).await?,
        401
    );
    server.stop().await
}

#[tokio::test]
async fn a_flood_of_bad_tokens_is_stopped_and_a_good_one_goes_on() -> Result<()> {
    let server = Running::start("rate_limit_per_s = 1000\nrate_limit_burst = 1000").await?;
    let new = NewToken {
        label: "a program".parse()?,
        scopes: Scope::ALL.into(),
        expires_at: server.app.now() + SignedDuration::from_hours(1),
    };
    let made = server.app.create_token(&server.caller(), new).await?;
    let (_, secret) = made.value;
    let secret = secret.context("it is new")?;
    let good = format!("authorization: Bearer {}\r\n", secret.expose_secret());
    let ask = async |headers: &str| {
        let answer = server.send("GET", "/api/v1/me", headers, "").await?;
        anyhow::Ok(answer.status)
    };
    assert_eq!(ask(&good).await?, 200);
    let mut refused = 0;
    for guess in 0..200 {
        let bad = format!("authorization: Bearer berth_{guess}\r\n");
        match ask(&bad).await? {
            401 => {}
            429 => refused += 1,
            other => anyhow::bail!("{other}"),
        }
    }
    assert!(refused > 0, "two hundred bad tokens were looked for");
    assert_eq!(
        ask(&good).await?,
        200,
        "who was here before is not kept out"
    );
    server.stop().await
}

/// What comes together is counted as well: each takes its place before the database is asked.
#[tokio::test]
async fn bad_tokens_that_come_together_are_stopped() -> Result<()> {
    let server =
        Arc::new(Running::start("rate_limit_per_s = 1000\nrate_limit_burst = 1000").await?);
    let started = Instant::now();
    let mut asking = JoinSet::new();
    for guess in 0..300 {
        let server = server.clone();
        asking.spawn(async move {
            let bad = format!("authorization: Bearer berth_{guess}\r\n");
            server.send("GET", "/api/v1/me", &bad, "").await
        });
    }
    let mut looked_up = 0;
    for answer in asking.join_all().await {
        match answer?.status {
            401 => looked_up += 1,
            429 => {}
            other => anyhow::bail!("{other}"),
        }
    }
    // One more comes back with each second.
    let most = 60 + started.elapsed().as_secs() + 1;
    assert!((1..=most).contains(&looked_up), "{looked_up}");
    Ok(())
}

/// A store that is gone shows who asks it: they get a 5xx.
#[tokio::test]
async fn floods_of_what_is_not_good_do_not_reach_the_store() -> Result<()> {
    let config = "rate_limit_per_s = 100000\nrate_limit_burst = 100000\nallowed_hosts = ['127.0.0.1']\n\
        public_url = 'https://berth.example.org'\nsession_origin = 'https://sessions.example.org'";
    let server = Arc::new(Running::start(config).await?);
    let cookie = sign_in(&server).await?;
    let (name, _) = cookie.split_once('=').context("a cookie")?;
    let name = name.to_owned();
    let me = async |cookie: &str| {
        let headers = format!("cookie: {cookie}\r\n");
        anyhow::Ok(server.send("GET", "/api/v1/me", &headers, "").await?.status)
    };
    let mut numbers = 0..;
    // Both limits are felt, however slow the machine is.
    loop {
        let batch = flood(&server, &name, numbers.by_ref().take(400)).await?;
        if batch
            .iter()
            .any(|(code, cookie)| (*code, *cookie) == (429, 429))
        {
            break;
        }
    }
    let felt = Instant::now();
    // Others behind the same address go on, and sign in; also somebody whose own cookie has ended.
    assert_eq!(me(&cookie).await?, 200);
    assert_eq!(me(&sign_in(&server).await?).await?, 200);
    let ended = format!("cookie: {name}={:043}\r\n", 0);
    let about = server.send("GET", "/api/v1/about", &ended, "").await?;
    assert_eq!(about.status, 200);
    server.app.store.close().await;
    let batch = flood(&server, &name, numbers.by_ref().take(100)).await?;
    // What comes back with each second: one code, five cookies.
    let seconds = felt.elapsed().as_secs() + 1;
    let asked =
        |status: fn(&(u16, u16)) -> u16| batch.iter().filter(|one| status(one) >= 500).count();
    let (codes, cookies) = (asked(|one| one.0), asked(|one| one.1));
    assert!(codes as u64 <= seconds, "{codes} codes in {seconds} s");
    assert!(
        cookies as u64 <= 5 * seconds,
        "{cookies} cookies in {seconds} s"
    );
    Ok(())
}

/// Shows a code at a session that does not exist, and a cookie, for each number; gives the statuses.
async fn flood(
    server: &Arc<Running>,
    name: &str,
    numbers: impl Iterator<Item = usize>,
) -> Result<Vec<(u16, u16)>> {
    let mut asking = JoinSet::new();
    for number in numbers {
        let (server, headers) = (server.clone(), format!("cookie: {name}={number:043}\r\n"));
        let request = format!(
            "GET /.berth/enter?code=guess HTTP/1.1\r\nhost: x{number}.sessions.example.org\r\n\
             connection: close\r\n\r\n"
        );
        asking.spawn(async move {
            let code = server.send_bytes(request.as_bytes()).await?.status;
            let cookie = server.send("GET", "/api/v1/me", &headers, "").await?.status;
            anyhow::Ok((code, cookie))
        });
    }
    asking.join_all().await.into_iter().collect()
}

async fn sign_in(server: &Running) -> Result<String> {
    let body = format!(r#"{{"login":"ada","password":"{PASSWORD}"}}"#);
    let json = "content-type: application/json\r\n";
    let signed_in = server.send("POST", "/api/v1/sign-in", json, &body).await?;
    let cookie = signed_in.header("set-cookie").context("signed in")?;
    Ok(cookie.split(';').next().unwrap_or_default().to_owned())
}

/// A password can be guessed against a plain hash of the request that set it.
#[tokio::test]
async fn what_is_kept_of_a_request_with_a_key_needs_the_vault_s_key() -> Result<()> {
    let server = Running::start("").await?;
    let cookie = sign_in(&server).await?;
    let me = server
        .send("GET", "/api/v1/me", &format!("cookie: {cookie}\r\n"), "")
        .await?;
    let me: serde_json::Value = serde_json::from_str(&me.body)?;
    let proof = me["csrf_token"].as_str().context("a proof")?;
    // What is kept is of the path below the API's own.
    let (path, key) = ("/people", "first");
    let body = r#"{"login":"grace","display_name":"Grace","password":"a quiet harbour"}"#;
    let headers = format!(
        "cookie: {cookie}\r\nx-csrf-token: {proof}\r\nidempotency-key: {key}\r\n\
         content-type: application/json\r\n"
    );
    for status in [201, 200] {
        assert_eq!(
            server
                .send("POST", &format!("/api/v1{path}"), &headers, body)
                .await?
                .status,
            status
        );
    }
    let mut reader = server.app.store.read().await?;
    let kept = idempotency::get(&mut reader, server.admin.id, key).await?;
    let kept = kept.context("the key is kept")?.fingerprint;
    assert_eq!(kept, server.app.fingerprint("POST", path, body.as_bytes()));
    let mut plain = Sha256::new();
    for part in ["POST", path, body] {
        plain.update((part.len() as u64).to_be_bytes());
        plain.update(part);
    }
    assert_ne!(kept, plain.finalize().as_slice());
    drop(reader);
    server.stop().await
}

#[tokio::test]
async fn a_store_that_is_gone_makes_the_server_unready_and_alive() -> Result<()> {
    let server = Running::start("").await?;
    server.app.store.close().await;
    let answer = server.get("/readyz").await?;
    let problem = answer.expect_problem(503, "server.unavailable")?;
    assert!(problem["request_id"].is_string());
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(server.get("/healthz").await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_met_is_a_problem() -> Result<()> {
    let server = Running::start("request_body_limit_bytes = 1024").await?;
    let json = "content-type: application/json\r\n";
    for path in [
        "/nowhere",
        "/api/v1/nowhere",
        "/api/v2",
        "/docs/errors/no.such",
    ] {
        server
            .get(path)
            .await?
            .expect_problem(404, "object.not_found")?;
    }
    let answer = server.send("DELETE", "/api/v1/me", "", "").await?;
    answer.expect_problem(405, "request.method_not_allowed")?;
    let mut allowed: Vec<&str> = answer
        .header("allow")
        .unwrap_or_default()
        .split(',')
        .collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "PATCH"]);

    let answer = server.get("/api/v1/me").await?;
    answer.expect_problem(401, "auth.sign_in_required")?;
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    let token = "authorization: Bearer berth_nonsense\r\n";
    let answer = server.send("GET", "/api/v1/me", token, "").await?;
    answer.expect_problem(401, "auth.token_invalid")?;

    let sign_in = "/api/v1/sign-in";
    for (headers, body, status, code) in [
        ("", "{}", 415, "request.unsupported_media_type"),
        (json, "{", 400, "request.malformed"),
        (json, "{}", 422, "request.invalid"),
        (json, &"x".repeat(2000), 413, "request.too_large"),
    ] {
        let answer = server.send("POST", sign_in, headers, body).await?;
        answer.expect_problem(status, code)?;
    }
    let wrong = r#"{"login":"ada","password":"not the password"}"#;
    let answer = server.send("POST", sign_in, json, wrong).await?;
    answer.expect_problem(401, "auth.wrong_credentials")?;
    server.stop().await
}

#[tokio::test]
async fn every_answer_is_guarded_against_being_misread() -> Result<()> {
    let server = Running::start("").await?;
    for path in [
        "/",
        "/docs",
        "/docs/errors",
        "/api/v1/me",
        "/nowhere",
        "/api/v1/openapi.json",
    ] {
        let answer = server.get(path).await?;
        let policy = answer.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("default-src 'none'"), "{path}: {answer:?}");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}");
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert_eq!(
            answer.header("referrer-policy"),
            Some("no-referrer"),
            "{path}"
        );
        assert_eq!(answer.header("strict-transport-security"), None, "{path}");
        assert_eq!(
            answer.header("x-request-id").map(str::len),
            Some(32),
            "{path}"
        );
        assert!(answer.header("cache-control").is_some(), "{path}");
    }
    server.stop().await
}

/// The browser app as the server serves it, at the root and below a base path. It must have been built: `make web/dist`.
#[tokio::test]
async fn the_browser_app_answers_for_every_address_that_is_no_other_s() -> Result<()> {
    const HTML: &str = "accept: text/html\r\n";
    for base in ["", "/lab/berth"] {
        let server = Running::start(&format!("base_path = '{base}'")).await?;
        let page = server
            .send("GET", &format!("{base}/sites/torino"), HTML, "")
            .await?;
        assert_eq!(page.status, 200, "{page:?}");
        assert_eq!(page.header("cache-control"), Some("no-cache"));
        let text = &page.body;
        assert!(text.contains(&format!("<base href=\"{base}/\"")), "{text}");
        let script = text
            .split("src=\"./")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let script = script.context("the page names its script; is web/dist there?")?;
        let file = server.get(&format!("{base}/{script}")).await?;
        assert_eq!(file.status, 200, "{script}");
        let kept = file.header("cache-control").unwrap_or_default();
        assert!(kept.contains("immutable"), "{kept}");
        for nothing in ["/assets/none.js", "/api/v1/none", "/../etc/passwd"] {
            let answer = server.get(&format!("{base}{nothing}")).await?;
            assert_eq!(answer.status, 404, "{nothing}");
        }
        let api = server
            .send("GET", &format!("{base}/api/v1/none"), HTML, "")
            .await?;
        assert_eq!(api.status, 404, "an address of the API is never the app's");
        for guide in ["guides", "desk", "errors"] {
            let page = server.get(&format!("{base}/docs/{guide}")).await?;
            assert_eq!(page.status, 200, "{guide}");
        }
        server.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn everything_lives_below_the_base_path() -> Result<()> {
    let config = "base_path = '/lab/berth'\npublic_url = 'https://lab.example'";
    let server = Running::start(config).await?;
    for path in [
        "/lab/berth",
        "/lab/berth/",
        "/lab/berth/docs",
        "/lab/berth/healthz",
    ] {
        assert_eq!(server.get(path).await?.status, 200, "{path}");
    }
    for path in ["/", "/healthz", "/api/v1/openapi.json", "/lab/berthing"] {
        let problem = server
            .get(path)
            .await?
            .expect_problem(404, "object.not_found")?;
        let page = "https://lab.example/lab/berth/docs/errors/object.not_found";
        assert_eq!(problem["type"], page, "{path}");
    }
    let document = server.get("/lab/berth/api/v1/openapi.json").await?.json()?;
    assert_eq!(
        document["servers"][0]["url"],
        "https://lab.example/lab/berth/api/v1"
    );
    let secure = server.get("/lab/berth").await?;
    assert!(secure.header("strict-transport-security").is_some());

    let body = format!(r#"{{"login":"ada","password":"{PASSWORD}"}}"#);
    let json = "content-type: application/json\r\n";
    let signed_in = server
        .send("POST", "/lab/berth/api/v1/sign-in", json, &body)
        .await?;
    assert_eq!(signed_in.status, 200, "{signed_in:?}");
    let cookie = signed_in.header("set-cookie").unwrap_or_default();
    assert!(
        cookie.contains("Path=/lab/berth;") && cookie.contains("Secure"),
        "{cookie}"
    );
    server.stop().await
}

#[tokio::test]
async fn whoever_asks_too_much_is_told_to_wait() -> Result<()> {
    let server = Running::start("rate_limit_per_s = 1\nrate_limit_burst = 3").await?;
    for _ in 0..3 {
        assert_eq!(server.get("/api/v1/me").await?.status, 401);
    }
    let answer = server.get("/api/v1/me").await?;
    let problem = answer.expect_problem(429, "request.rate_limited")?;
    assert_eq!(problem["retry_after_s"], 1);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(
        server.get("/healthz").await?.status,
        200,
        "probes are not limited"
    );
    for _ in 0..10 {
        let script = server.get("/assets/none.js").await?;
        assert_eq!(script.status, 404, "a page gets all its scripts");
    }
    server.stop().await
}

#[tokio::test]
async fn a_proxy_is_believed_about_addresses_only_if_it_is_trusted() -> Result<()> {
    let limits = "rate_limit_per_s = 1\nrate_limit_burst = 1\n";
    let trusting = Running::start(&format!("{limits}trusted_proxies = ['127.0.0.1']")).await?;
    let wary = Running::start(limits).await?;
    let ask = async |server: &Running, client: &str| {
        let header = format!("x-forwarded-for: {client}\r\n");
        let answer = server.send("GET", "/api/v1/me", &header, "").await;
        answer.map(|answer| answer.status)
    };
    assert_eq!(ask(&trusting, "203.0.113.1").await?, 401);
    assert_eq!(ask(&trusting, "203.0.113.2").await?, 401, "another client");
    assert_eq!(ask(&trusting, "203.0.113.1").await?, 429, "the same again");
    assert_eq!(ask(&wary, "203.0.113.1").await?, 401);
    assert_eq!(
        ask(&wary, "203.0.113.2").await?,
        429,
        "whatever it says, it is one"
    );
    trusting.stop().await?;
    wary.stop().await
}

#[tokio::test]
async fn a_request_for_another_host_is_refused_wherever_it_leads() -> Result<()> {
    let config = "public_url = 'https://berth.example.org'\n\
        session_origin = 'https://sessions.example.org'\nallowed_hosts = ['berth.internal']";
    let server = Running::start(config).await?;
    let ask = async |path: &str, hosts: &str| {
        let request = format!("GET {path} HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
        server.send_bytes(request.as_bytes()).await
    };
    let paths = [
        "/",
        "/docs",
        "/assets/none.js",
        "/feeds/none.ics",
        "/open/x7",
        "/metrics",
        "/hub/api/",
        "/api/v1/me",
        "/no/such/page",
    ];
    for path in paths {
        for hosts in [
            "",
            "host: \r\n",
            "host: evil.example\r\n",
            "host: localhost\r\n",
            "host: sessions.example.org\r\n",
            "host: x7.sessions.example.org.evil.example\r\n",
            "host: berth.example.org\r\nhost: berth.example.org\r\n",
            "host: berth.example.org\r\nhost: evil.example\r\n",
        ] {
            let answer = ask(path, hosts).await?;
            answer.expect_problem(421, "request.misdirected")?;
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        }
        let own = "host: berth.example.org\r\n";
        for hosts in [own, "host: BERTH.internal.:8080\r\n"] {
            assert_ne!(ask(path, hosts).await?.status, 421, "{path} {hosts}");
        }
        let absolute = format!("http://evil.example{path}");
        assert_eq!(ask(&absolute, own).await?.status, 421, "{absolute}");
    }
    let session = ask("/", "host: x7.sessions.example.org\r\n").await?;
    assert_ne!(session.status, 421, "a session's name");
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(ask(probe, "host: 10.0.0.7\r\n").await?.status, 200);
    }
    // HTTP/2 names the host in the target.
    for (host, expected) in [("evil.example", 421), ("berth.internal", 401)] {
        let client = client_to(host, &server)?;
        let url = format!("http://{host}:{}/api/v1/me", server.address.port());
        let answer = client.get(url).send().await?;
        assert_eq!(answer.version(), reqwest::Version::HTTP_2);
        assert_eq!(answer.status(), expected, "{host}");
    }
    server.stop().await
}

/// A client that speaks HTTP/2 and finds this name at the server.
fn client_to(host: &str, server: &Running) -> Result<reqwest::Client> {
    let client = reqwest::Client::builder().http2_prior_knowledge();
    Ok(client.resolve(host, server.address).build()?)
}
