//! JupyterHub's own server, as it comes, in its sandbox under Berth: started and stopped by JupyterHub's REST, and opened by
//! a browser that OAuth leads around.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use berth_model::RunId;
use berth_testkit::{repository, wait};
use reqwest::header::{ACCEPT, AUTHORIZATION, COOKIE, HOST, LOCATION, SET_COOKIE};
use reqwest::{Client, Method, StatusCode, Url};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::support::desk::{Desk, PASSWORD};

const CONFIG: &str = "listen = \"127.0.0.1:{port}\"\ndata_dir = \"{directory}\"\nqueue_backend = \"local\"\n\
     rate_limit_per_s = 0\nrate_limit_burst = 0\nprepared_environments = \"{cache}\"\n";

const QUEUE: &str = r"
roles: { node: node, cpu: cores, memory: memory }
grace: PT5S
profiles:
  hub:
    title: JupyterHub's own server
    wishes: [{ task: { cores_milli: 500, memory_mib: 1024 }, limit: PT1H }]
    session: { app: jupyterhub-singleuser }
";

/// Machines are busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// Where what can be made again is kept: between runs of the tests as well.
fn cache() -> PathBuf {
    repository::cache().join("environments")
}

/// A site of this machine, where `ada` has what JupyterHub's server needs.
async fn site() -> Desk {
    let cache = cache().display().to_string();
    let desk = Desk::with_admin_of(&CONFIG.replace("{cache}", &cache)).await;
    let desk = desk.with_site(QUEUE);
    let prepare = format!("env prepare jupyterlab --into {cache}");
    desk.run(&prepare).succeeds();
    wait::until("it to be taken in", PATIENCE, async || {
        let listed = desk.run("env list -o json").succeeds().json();
        let items = listed["items"].as_array().expect("items");
        let is_it = |item: &Value| item["name"] == "jupyterlab" && item["state"] == "ready";
        items.iter().any(is_it)
    })
    .await;
    desk
}

/// Asks at this server whatever host a URL names, as a browser does that finds all of them here.
struct Asks {
    client: Client,
    port: u16,
    cookies: HashMap<(String, String), String>,
}

struct Answer {
    status: StatusCode,
    location: Option<String>,
    body: String,
}

impl Answer {
    #[track_caller]
    fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
}

impl Asks {
    fn at(desk: &Desk) -> Asks {
        let url: Url = desk.server().url("").parse().expect("an address");
        let client = Client::builder().redirect(reqwest::redirect::Policy::none());
        Asks {
            client: client.build().expect("a client"),
            port: url.port().expect("a port"),
            cookies: HashMap::new(),
        }
    }

    fn home(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.port)
    }

    async fn send(&mut self, method: Method, url: &str, token: &str, body: &Value) -> Answer {
        let mut url: Url = url.parse().expect("an address");
        let host = url.host_str().expect("a host").to_owned();
        let named = format!("{host}:{}", self.port);
        url.set_host(Some("127.0.0.1")).expect("an address");
        let mut request = self.client.request(method, url).header(HOST, named);
        if token.is_empty() {
            let own = self.cookies.iter().filter(|((at, _), _)| *at == host);
            let own: Vec<_> = own
                .map(|((_, name), value)| format!("{name}={value}"))
                .collect();
            request = request.header(COOKIE, own.join("; "));
            request = request.header(ACCEPT, "text/html,*/*");
        } else {
            request = request.header(AUTHORIZATION, format!("token {token}"));
        }
        if !body.is_null() {
            request = request.json(body);
        }
        let answer = request.send().await.expect("an answer");
        for cookie in answer.headers().get_all(SET_COOKIE) {
            let cookie = cookie.to_str().expect("text");
            let pair = cookie.split(';').next().expect("a pair");
            let (name, value) = pair.split_once('=').expect("a pair");
            self.cookies
                .insert((host.clone(), name.to_owned()), value.to_owned());
        }
        let location = answer.headers().get(LOCATION);
        Answer {
            status: answer.status(),
            location: location.map(|to| to.to_str().expect("text").to_owned()),
            body: answer.text().await.expect("a body"),
        }
    }

    async fn hub(&mut self, method: Method, path: &str, token: &str, body: &Value) -> Answer {
        let url = self.home(&format!("/hub/api{path}"));
        self.send(method, &url, token, body).await
    }

    async fn get(&mut self, path: &str, token: &str) -> Answer {
        self.hub(Method::GET, path, token, &Value::Null).await
    }

    /// Goes to a page, wherever it leads; says by which addresses.
    async fn visit(&mut self, url: &str) -> (Vec<String>, Answer) {
        let mut way = vec![url.to_owned()];
        loop {
            let here: Url = way.last().expect("a place").parse().expect("an address");
            let answer = self
                .send(Method::GET, here.as_str(), "", &Value::Null)
                .await;
            let Some(to) = &answer.location else {
                return (way, answer);
            };
            way.push(here.join(to).expect("an address").to_string());
            assert!(way.len() < 20, "it goes round in circles: {way:#?}");
        }
    }
}

impl Asks {
    /// A code for whoever is signed in.
    async fn code(&mut self, authorize: &str) -> String {
        let answer = self.send(Method::GET, authorize, "", &Value::Null).await;
        let back: Url = answer.location.expect("the way back").parse().expect("it");
        let code = back.query_pairs().find(|(name, _)| name == "code");
        code.expect("a code").1.into_owned()
    }

    async fn spend(&self, client: &str, secret: &str, code: &str, back: &str) -> u16 {
        let mut url: Url = format!("http://127.0.0.1:{}/hub/api/oauth2/token", self.port)
            .parse()
            .expect("an address");
        url.query_pairs_mut()
            .append_pair("grant_type", "authorization_code")
            .append_pair("client_id", client)
            .append_pair("client_secret", secret)
            .append_pair("code", code)
            .append_pair("redirect_uri", back);
        let form = url.query().expect("fields").to_owned();
        url.set_query(None);
        let request = self.client.post(url).body(form);
        request.send().await.expect("an answer").status().as_u16()
    }
}

/// A variable of the one run's app. No file holds it: it is read from the app's process.
fn told(desk: &Desk, variable: &str) -> String {
    let runs = desk.server().directory().join("work/runs");
    let runs: Vec<_> = std::fs::read_dir(runs).expect("runs").collect();
    let [Ok(run)] = &runs[..] else {
        panic!("one run: {runs:?}");
    };
    let run = run.file_name().into_string().expect("text");
    let run = berth_model::RunId(run.parse().expect("a run"));
    let mark = format!("BERTH_RUN={run}");
    let processes = std::fs::read_dir("/proc").expect("it is there");
    let environments = processes.filter_map(|one| {
        let environ = std::fs::read(one.ok()?.path().join("environ")).ok()?;
        let text = String::from_utf8(environ).ok()?;
        text.split('\0').any(|one| one == mark).then_some(text)
    });
    let prefix = format!("{variable}=");
    let values = environments.filter_map(|text| {
        let mut values = text.split('\0').filter_map(|one| one.strip_prefix(&prefix));
        values.next().map(str::to_owned)
    });
    let all: std::collections::BTreeSet<String> = values.collect();
    assert_eq!(all.len(), 1, "one value of {variable}");
    all.into_iter().next().expect("one")
}

#[tokio::test(flavor = "multi_thread")]
async fn jupyterhubs_own_server_runs_unchanged_and_is_started_used_and_stopped_by_its_rest() {
    let desk = site().await;
    let made = desk
        .run("token create hub --scope read --scope book --scope manage -o json")
        .succeeds()
        .json();
    let token = made["secret"].as_str().expect("a secret").to_owned();
    let mut asks = Asks::at(&desk);
    let start = json!({"user_options": {"profile": "hub"}});
    let started = asks.hub(Method::POST, "/users/ada/servers/lab", &token, &start);
    started.await.expect(202);
    let progress = asks.get("/users/ada/servers/lab/progress", &token).await;
    let last = progress
        .body
        .lines()
        .rfind(|line| line.starts_with("data:"));
    let last = last.expect("something is told").to_owned();
    let log = desk.run("session log lab").stdout;
    assert!(last.contains("\"ready\":true"), "{last}\n{log}");

    // It learned from Berth who comes with their token, which it never saw.
    let user = asks.get("/users/ada", &token).await.expect(200);
    let url = user["servers"]["lab"]["url"]
        .as_str()
        .expect("its address")
        .to_owned();
    let status_at = format!("{url}api/status");
    let status = asks.send(Method::GET, &status_at, &token, &Value::Null);
    assert!(status.await.expect(200)["started"].is_string());
    let me_at = format!("{url}api/me");
    let me = asks.send(Method::GET, &me_at, &token, &Value::Null);
    assert_eq!(me.await.expect(200)["identity"]["username"], "ada");

    // A browser is led around by OAuth, and asked nothing.
    let sign_in = json!({"login": "ada", "password": PASSWORD});
    let home = asks.home("/api/v1/sign-in");
    asks.send(Method::POST, &home, "", &sign_in)
        .await
        .expect(200);
    let (way, page) = asks.visit(&url).await;
    assert_eq!(page.status, 200, "{way:#?}\n{}", page.body);
    assert!(
        way.last()
            .is_some_and(|at| at.starts_with(&format!("{url}lab"))),
        "{way:#?}"
    );
    for step in ["/hub/api/oauth2/authorize?", "oauth_callback?code="] {
        assert!(
            way.iter().any(|at| at.contains(step)),
            "{step} is not on {way:#?}"
        );
    }
    let me = asks.send(Method::GET, &me_at, "", &Value::Null);
    assert_eq!(me.await.expect(200)["identity"]["username"], "ada");
    let authorize = way.iter().find(|at| at.contains("/oauth2/authorize?"));
    let authorize = authorize.expect("there").clone();
    let elsewhere = authorize.replace("oauth_callback", "files");
    asks.send(Method::GET, &elsewhere, "", &Value::Null)
        .await
        .expect(400);

    // A code is good once, to the session's own server, and to whoever can prove what it was asked for with.
    let word = told(&desk, "JUPYTERHUB_API_TOKEN");
    let client = told(&desk, "JUPYTERHUB_CLIENT_ID");
    let back = told(&desk, "JUPYTERHUB_OAUTH_CALLBACK_URL");
    let proven = asks.code(&authorize).await;
    let plain = asks
        .code(authorize.split("&code_challenge").next().expect("it"))
        .await;
    let other = "session-0123456789abcdef";
    for (client, secret, code, expected) in [
        (client.as_str(), &word, &proven, 400),
        (other, &word, &plain, 400),
        (client.as_str(), &token, &plain, 400),
        (client.as_str(), &word, &plain, 200),
        (client.as_str(), &word, &plain, 400),
    ] {
        let status = asks.spend(client, secret, code, &back).await;
        assert_eq!(status, expected, "{client}");
    }

    // Its own word names it, reports for it, and is good for nothing else.
    let own = asks.get("/user", &word).await.expect(200);
    assert_eq!(
        (&own["name"], &own["scopes"]),
        (&json!("ada"), &json!(["users:activity!server=ada/lab"]))
    );
    let before = user["servers"]["lab"]["last_activity"].clone();
    let now = jiff_now();
    let acted = json!({"servers": {"lab": {"last_activity": now}}, "last_activity": now});
    asks.hub(Method::POST, "/users/ada/activity", &word, &acted)
        .await
        .expect(200);
    let user = asks.get("/users/ada", &token).await.expect(200);
    assert_ne!(user["servers"]["lab"]["last_activity"], before);
    let others = json!({"servers": {"other": {"last_activity": now}}});
    asks.hub(Method::POST, "/users/ada/activity", &word, &others)
        .await
        .expect(403);
    asks.hub(Method::POST, "/users/bo/activity", &word, &acted)
        .await
        .expect(403);
    for path in ["/users/ada", "/users/ada/tokens"] {
        asks.get(path, &word).await.expect(403);
    }
    let stop = asks.hub(
        Method::DELETE,
        "/users/ada/servers/lab",
        &word,
        &Value::Null,
    );
    stop.await.expect(403);
    let changed = word.replace("hub_", "hub_A");
    asks.get("/user", &changed).await.expect(403);

    // By the way out of a sandbox only that sandbox's own word is taken.
    let run = told(&desk, "BERTH_RUN");
    let socket = desk.server().directory().join("work/hub.sock");
    let other = RunId(uuid::Uuid::now_v7()).to_string();
    for (run, path, shown, expected) in [
        (&run, "/user", &word, "200"),
        (&other, "/user", &word, "403"),
        (&run, "/user", &token, "403"),
        (&run, "/users/ada", &token, "404"),
    ] {
        let mut stream = UnixStream::connect(&socket).await.expect("it listens");
        let ask = format!(
            "{run}\nGET /hub/api{path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: token {shown}\r\n\r\n"
        );
        stream.write_all(ask.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        stream
            .read_to_string(&mut answer)
            .await
            .expect("it answers");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expected}")),
            "{path}: {answer}"
        );
    }
    let log = desk.run("session log lab").succeeds().stdout;
    assert!(log.contains("Updating Hub with activity"), "{log}");
    assert!(!log.contains("Error notifying Hub"), "{log}");
    let shown = desk.run("session show lab -o json").succeeds().stdout;
    let jobs = desk.run("queue -o json").stdout;
    for text in [&shown, &jobs, &log] {
        assert!(!text.contains(&word), "its word is nowhere else");
    }

    let stop = asks.hub(
        Method::DELETE,
        "/users/ada/servers/lab",
        &token,
        &Value::Null,
    );
    stop.await.expect(202);
    wait::until("it to be stopped", PATIENCE, async || {
        let url = format!("{}/hub/api/users/ada", desk.server().url(""));
        let request = Client::new()
            .get(url)
            .header(AUTHORIZATION, format!("token {token}"));
        let user: Value = request
            .send()
            .await
            .expect("an answer")
            .json()
            .await
            .expect("JSON");
        user["servers"] == json!({})
    })
    .await;
    asks.get("/user", &word).await.expect(403);
}

#[expect(
    clippy::disallowed_methods,
    reason = "what runs here runs in real time"
)]
fn jiff_now() -> String {
    jiff::Timestamp::now().to_string()
}
