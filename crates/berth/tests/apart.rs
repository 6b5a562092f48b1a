//! Two people's sessions that really run, side by side on one machine, each with a shell in its sandbox: whatever one has
//! of the other's, a word, a key, a code, a socket's path, an address, a process's number, opens nothing.
//!
//! Everything that is refused is also done by whom it belongs to, so that a test which asks for nothing cannot pass.

#[allow(dead_code, reason = "the command line's own tests need more of it")]
#[path = "cli/desk.rs"]
mod desk;

use std::path::{Path, PathBuf};
use std::time::Duration;

use berth_testkit::wait;
use reqwest::header::{AUTHORIZATION, COOKIE, HOST, SET_COOKIE};
use reqwest::{Client, Method, RequestBuilder, Url};
use serde_json::{Value, json};

use desk::{Desk, PASSWORD};

const CONFIG: &str = "listen = \"127.0.0.1:{port}\"\ndata_dir = \"{directory}\"\nqueue_backend = \"local\"\n\
     rate_limit_per_s = 0\nrate_limit_burst = 0\n";

/// Machines are busy.
const SOON: Duration = Duration::from_secs(120);

/// An app that does what it is told, in the sandbox and as whoever runs there.
const SHELL: &str = r#"
import http.server, socketserver, subprocess, sys

class Shell(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.say(b"ready")
    def do_POST(self):
        lines = self.rfile.read(int(self.headers["content-length"]))
        self.say(subprocess.run(["bash", "-c", lines], stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout)
    def say(self, text):
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *_):
        pass

socketserver.ThreadingUnixStreamServer(sys.argv[1], Shell).serve_forever()
"#;

/// The word makes it one of those that take Berth for a JupyterHub.
fn queue() -> Value {
    let task = json!({"cores_milli": 200, "memory_mib": 256});
    json!({
        "roles": {"node": "node", "cpu": "cores", "memory": "memory"},
        "grace": "PT5S",
        "profiles": {"shell": {
            "title": "A shell",
            "wishes": [{"task": task, "limit": "PT10M"}],
            "session": {"app": "shell"},
        }},
        "apps": {"shell": {
            "title": "A shell",
            "command": ["python3", "-c", SHELL, "{socket}"],
            "serves": "socket",
            "variables": {"WORD": "{hub_token}"},
        }},
    })
}

/// A site of this machine with two members, who have nothing to do with each other.
async fn site() -> Desk {
    // What is JSON is YAML, too.
    let desk = Desk::with_admin_of(CONFIG).await;
    let desk = desk.with_site(&queue().to_string());
    for login in ["bo", "cy"] {
        let create = format!("person create {login} --name {login} --password-stdin");
        desk.run_with(&create, &format!("{PASSWORD}\n")).succeeds();
        desk.run(&format!("member add {login}")).succeeds();
    }
    desk
}

/// Somebody, and their session with all that is secret about it.
struct Person {
    login: &'static str,
    desk: Desk,
    client: Client,
    port: u16,
    /// Their API token.
    token: String,
    /// The name and value of the cookie that they are signed in with.
    sign_in: String,
    /// Their session's address in the browser's bar, and its label.
    host: String,
    label: String,
    /// The cookie by which they visit it.
    visit: String,
    /// What their session's own server shows at the hub.
    word: String,
    /// Where on the machine the run's files are.
    folder: PathBuf,
}

impl Person {
    /// Signs in, starts a session and comes into it.
    async fn at_work(owner: &Desk, login: &'static str) -> Person {
        let desk = owner.another();
        desk.login(login);
        desk.run("site use torino").succeeds();
        let made = desk.run("token create t --scope read --scope book --scope manage -o json");
        let token = made.succeeds().json()["secret"].as_str().map(str::to_owned);
        desk.run("session start shell").succeeds();
        let session = desk.run("session show shell -o json").succeeds().json();
        let url: Url = session["url"].as_str().expect("it").parse().expect("a URL");
        let label = url.host_str().and_then(|host| host.split('.').next());
        let port = url.port().expect("a port");
        let client = Client::builder().redirect(reqwest::redirect::Policy::none());
        let mut person = Person {
            login,
            client: client.no_proxy().build().expect("a client"),
            port,
            token: token.expect("a secret"),
            sign_in: String::new(),
            host: format!("{}:{port}", url.host_str().expect("a host")),
            label: label.expect("a label").to_owned(),
            visit: String::new(),
            word: String::new(),
            folder: PathBuf::new(),
            desk,
        };
        person.sign_in().await;
        person.visit = person.come_in().await;
        person.word = person.shell("printf %s \"$WORD\"").await;
        assert!(person.word.starts_with("hub_"), "{}", person.word);
        let run = person.shell("printf %s \"$BERTH_RUN\"").await;
        let run = run.parse::<berth_model::RunId>().expect("a run");
        let runs = owner.server().directory().join("work/runs");
        person.folder = runs.join(run.0.simple().to_string());
        assert!(person.folder.join("app.sock").exists(), "it listens");
        person
    }

    async fn sign_in(&mut self) {
        let body = json!({"login": self.login, "password": PASSWORD});
        let request = self.to_berth(Method::POST, "/api/v1/sign-in").json(&body);
        let answer = request.send().await.expect("an answer");
        let cookie = answer.headers()[SET_COOKIE].to_str().expect("text");
        self.sign_in = cookie.split(';').next().expect("a pair").to_owned();
    }

    /// A code that lets whoever spends it into this person's session, once.
    async fn code(&self) -> String {
        let open = self.to_berth(Method::GET, &format!("/open/{}", self.label));
        let answer = open.header(COOKIE, &self.sign_in).send().await;
        let answer = answer.expect("an answer");
        let way = answer.headers()["location"].to_str().expect("text");
        let way: Url = way.parse().expect("an address");
        let code = way.query_pairs().find(|(name, _)| name == "code");
        code.expect("a code").1.into_owned()
    }

    /// Spends a code at this person's session; gives the status and the key that came of it.
    async fn spend(&self, code: &str) -> (u16, Option<String>) {
        let path = format!("/.berth/enter?code={code}");
        let answer = self.at_session(Method::GET, &path).send().await;
        let answer = answer.expect("an answer");
        let cookie = answer.headers().get(SET_COOKIE);
        let cookie = cookie.map(|cookie| cookie.to_str().expect("text"));
        let pair = cookie.and_then(|cookie| cookie.split(';').next());
        (answer.status().as_u16(), pair.map(str::to_owned))
    }

    async fn come_in(&self) -> String {
        let (status, key) = self.spend(&self.code().await).await;
        assert_eq!(status, 303);
        key.expect("a key")
    }

    /// What a shell in this person's session says.
    async fn shell(&self, lines: &str) -> String {
        let request = self.at_session(Method::POST, "/").body(lines.to_owned());
        let request = request.header(AUTHORIZATION, format!("Bearer {}", self.token));
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{lines}");
        answer.text().await.expect("what it says")
    }

    /// A request to Berth's own address, by nobody yet.
    fn to_berth(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path, &format!("localhost:{}", self.port))
    }

    /// A request to the address of this person's session, by nobody yet.
    fn at_session(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path, &self.host)
    }

    fn request(&self, method: Method, path: &str, host: &str) -> RequestBuilder {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        self.client.request(method, url).header(HOST, host)
    }

    /// Ends the session, for what runs would outlive the server.
    async fn end(&self) {
        self.desk.run("session stop shell").succeeds();
        wait::until("the session to be stopped", SOON, async || {
            let shown = self.desk.run("session show shell -o json").succeeds();
            shown.json()["state"] == "stopped"
        })
        .await;
    }
}

async fn status(request: RequestBuilder) -> u16 {
    request.send().await.expect("an answer").status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_session_has_of_anothers_opens_nothing() {
    let desk = site().await;
    let bo = Person::at_work(&desk, "bo").await;
    let cy = Person::at_work(&desk, "cy").await;
    for (one, other) in [(&bo, &cy), (&cy, &bo)] {
        keys_and_codes(one, other).await;
        words_at_the_hub(one, other).await;
        files_and_sockets(&desk, one, other).await;
        processes(one, other).await;
        addresses(one, other).await;
    }
    bo.end().await;
    cy.end().await;
}

/// What lets `one` into their own session does not let anybody into the other's.
async fn keys_and_codes(one: &Person, other: &Person) {
    for (shown, what) in [
        ((COOKIE, one.visit.clone()), "a visit"),
        ((COOKIE, one.sign_in.clone()), "a sign-in"),
        ((AUTHORIZATION, format!("Bearer {}", one.token)), "a token"),
        ((AUTHORIZATION, format!("token {}", one.word)), "a word"),
        ((AUTHORIZATION, format!("Bearer {}", one.word)), "a word"),
    ] {
        let (header, value) = shown;
        let there = other.at_session(Method::GET, "/").header(&header, &value);
        let there = status(there).await;
        assert!([401, 403, 404].contains(&there), "{what}: {there}");
        let lines = other.at_session(Method::POST, "/").body("id");
        let there = status(lines.header(&header, &value)).await;
        assert!([401, 403, 404].contains(&there), "{what}: {there}");
        let here = one.at_session(Method::GET, "/").header(&header, &value);
        let is_key = what == "a visit" || what == "a token";
        assert_eq!(status(here).await == 200, is_key, "{what}, at one's own");
    }
    // A code is for one session, and is not spoilt by being tried at another.
    let code = one.code().await;
    assert_eq!(other.spend(&code).await, (410, None));
    let (status_at_own, key) = one.spend(&code).await;
    assert_eq!((status_at_own, key.is_some()), (303, true));
    // Nor is anybody led to the other's door, who has no business there.
    let open = one.to_berth(Method::GET, &format!("/open/{}", other.label));
    assert_eq!(status(open.header(COOKIE, &one.sign_in)).await, 404);
    let line = format!("session show {}", other.label);
    one.desk.run(&line).ends_with(4);
}

/// The word of `one`'s server names that server alone, wherever it is shown.
async fn words_at_the_hub(one: &Person, other: &Person) {
    let asks = |method: Method, path: String| {
        let word = format!("token {}", one.word);
        let request = one.to_berth(method, &format!("/hub/api{path}"));
        request.header(AUTHORIZATION, word)
    };
    let (own, theirs) = (one.login, other.login);
    let answer = asks(Method::GET, "/user".to_owned()).send().await;
    let named: Value = answer.expect("it").json().await.expect("JSON");
    assert_eq!(named["name"], own);
    let acted = json!({"servers": {"shell": {"last_activity": "2026-01-01T00:00:00Z"}}});
    for (method, path, expected) in [
        (Method::POST, format!("/users/{own}/activity"), 200),
        (Method::POST, format!("/users/{theirs}/activity"), 403),
        (Method::GET, format!("/users/{theirs}"), 403),
        (Method::GET, format!("/users/{theirs}/tokens"), 403),
        (Method::POST, format!("/users/{theirs}/tokens"), 403),
        (
            Method::DELETE,
            format!("/users/{theirs}/servers/shell"),
            403,
        ),
    ] {
        let request = asks(method, path.clone()).json(&acted);
        assert_eq!(status(request).await, expected, "{path}");
    }
    let api = one.to_berth(Method::GET, "/api/v1/me");
    let api = api.header(AUTHORIZATION, format!("Bearer {}", one.word));
    assert_eq!(status(api).await, 401, "it is no token of Berth's");
    // From inside the other's sandbox it is good for nothing at all, not even to say whose it is.
    let inside = |word: &str| {
        format!(
            "curl -s -m 20 -o /dev/null -w '%{{http_code}}' -H 'Authorization: token {word}' \
             http://127.0.0.1:8081/hub/api/user"
        )
    };
    assert_eq!(other.shell(&inside(&other.word)).await, "200");
    assert_eq!(other.shell(&inside(&one.word)).await, "403");
    assert_eq!(other.shell(&inside(&one.token)).await, "403");
    assert_eq!(other.shell(&inside(&other.token)).await, "403");
    // Nor does it spend what was meant for the other.
    let spend = |word: &str| {
        format!(
            "curl -s -m 20 -w '%{{http_code}}' http://127.0.0.1:8081/hub/api/oauth2/token \
             -d grant_type=authorization_code -d client_id=session-{} -d client_secret={word} \
             -d code=x -d redirect_uri=http://{}/oauth_callback",
            other.label, other.host
        )
    };
    let refused = other.shell(&spend(&other.word)).await;
    assert_eq!(refused, "{\"error\":\"invalid_grant\"}400");
    let refused = other.shell(&spend(&one.word)).await;
    assert!(refused.ends_with("403"), "{refused}");
}

/// From inside `one`'s sandbox nothing of the other's, nor of the server's own, is on the disk.
async fn files_and_sockets(desk: &Desk, one: &Person, other: &Person) {
    let note = format!("/tmp/note-of-{}", other.login);
    other
        .shell(&format!("echo secret | tee diary > {note}"))
        .await;
    let own = other.shell(&format!("cat diary {note}")).await;
    assert_eq!(own, "secret\nsecret\n");
    let directory = desk.server().directory();
    let home = home_of(directory, other);
    assert!(home.join("diary").exists(), "it is on the disk");
    let hub = directory.join("work/hub.sock");
    let sockets = [other.folder.join("app.sock"), hub];
    for socket in sockets {
        assert!(socket.exists(), "{}", socket.display());
        let said = one.shell(&connect(&socket)).await;
        assert!(said.contains("FileNotFoundError"), "{said}");
    }
    let own = one.shell(&connect(Path::new("/run/berth/app.sock"))).await;
    assert_eq!(own, "it is open\n");
    for file in [
        home.join("diary"),
        PathBuf::from(format!("/home/{}/diary", other.login)),
        PathBuf::from(note),
        other.folder.join("spec.json"),
        other.folder.clone(),
        directory.join("berth.toml"),
    ] {
        let look = format!("ls -d {0} || cat {0}", file.display());
        let said = one.shell(&look).await;
        let missing = said.matches("No such file or directory").count();
        assert_eq!(missing, 2, "{}: {said}", file.display());
    }
    // Sockets without a file are those of one's own network.
    let listener = format!("listener-of-{}", other.login);
    other.shell(&NAMED.replace("{name}", &listener)).await;
    let names = "cat /proc/net/unix";
    assert!(other.shell(names).await.contains(&listener));
    assert!(!one.shell(names).await.contains(&listener));
}

/// A socket that has a name and no file, and is there when this has ended.
const NAMED: &str = r#"
python3 -c '
import os, socket
listener = socket.socket(socket.AF_UNIX)
listener.bind("\0{name}")
listener.listen()
if os.fork() == 0:
    os.setsid()
    os.close(1), os.close(2)
    listener.accept()
'"#;

fn home_of(directory: &Path, person: &Person) -> PathBuf {
    let spec = std::fs::read(person.folder.join("spec.json")).expect("its spec");
    let spec: Value = serde_json::from_slice(&spec).expect("JSON");
    let home = PathBuf::from(spec["home"].as_str().expect("a home"));
    assert!(home.starts_with(directory), "{}", home.display());
    home
}

fn connect(socket: &Path) -> String {
    format!(
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{}\"); print(\"it is open\")' 2>&1",
        socket.display()
    )
}

/// Nobody sees the other's processes, reads what they were told, or ends them.
async fn processes(one: &Person, other: &Person) {
    let canary = format!("canary-of-{}", other.login);
    let start = format!(
        "(setsid bash -c 'exec -a {canary} sleep 600' >/dev/null 2>&1 &)
         until pgrep -f ^{canary} >/dev/null; do sleep 0.05; done"
    );
    other.shell(&start).await;
    let listed = "cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' ' '";
    let own = other.shell(listed).await;
    assert!(own.contains(&canary) && own.contains(&other.word), "{own}");
    let seen = one.shell(listed).await;
    for hidden in [&canary, &other.word, &format!("/home/{}", other.login)] {
        assert!(!seen.contains(hidden), "`{hidden}` is seen: {seen}");
    }
    // Outside it has a number, which means nothing inside.
    let number = on_the_machine(&canary);
    let said = one
        .shell(&format!("kill -9 {number}; ls /proc/{number}; true"))
        .await;
    assert!(said.contains("No such process"), "{said}");
    assert!(said.contains("No such file or directory"), "{said}");
    assert_eq!(on_the_machine(&canary), number, "it still runs");
    other.shell(&format!("pkill -f ^{canary}; true")).await;
}

/// The process of this machine with this name.
fn on_the_machine(name: &str) -> u32 {
    let processes = std::fs::read_dir("/proc").expect("it is there");
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_it = |number: &u32| {
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        line.starts_with(name.as_bytes())
    };
    let mut found = numbers.filter(is_it);
    found.next().expect("it runs")
}

/// What listens in the other's network, and the server itself, are at no address that `one` can reach.
async fn addresses(one: &Person, other: &Person) {
    let serve =
        "cd /tmp; setsid python3 -m http.server 7777 --bind 0.0.0.0 >/dev/null 2>&1 & echo $!";
    let server = other.shell(serve).await;
    let knock = "for i in $(seq 600); do curl -s -m 5 -o /dev/null http://127.0.0.1:7777/ && break; sleep 0.1; done";
    let own = other
        .shell(&format!(
            "{knock}; hostname -I 2>/dev/null || ip -o -4 addr"
        ))
        .await;
    let reach = |host: &str, port: u16| {
        format!("curl -s -m 3 -o /dev/null http://{host}:{port}/ && echo reached || echo refused")
    };
    assert_eq!(other.shell(&reach("127.0.0.1", 7777)).await, "reached\n");
    for host in ["127.0.0.1", "10.0.2.2", "10.0.2.100", "10.0.2.15", "berth"] {
        let said = one.shell(&reach(host, 7777)).await;
        assert_eq!(said, "refused\n", "{host}:7777, which is at {own}");
        let said = one.shell(&reach(host, one.port)).await;
        assert_eq!(said, "refused\n", "the server, at {host}");
    }
    let said = one.shell(&reach("169.254.169.254", 80)).await;
    assert_eq!(said, "refused\n", "what clouds tell their machines");
    other.shell(&format!("kill {server}")).await;
}
