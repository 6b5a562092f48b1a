//! People with sessions that really run, each a shell in a sandbox that does what it is told.

use std::path::PathBuf;
use std::time::Duration;

use berth_testkit::wait;
use reqwest::header::{AUTHORIZATION, COOKIE, HOST, SET_COOKIE};
use reqwest::{Client, Method, RequestBuilder, Url};
use serde_json::{Value, json};

use crate::support::desk::{Desk, PASSWORD};

const CONFIG: &str = "listen = \"127.0.0.1:{port}\"\ndata_dir = \"{directory}\"\nqueue_backend = \"local\"\n\
     rate_limit_per_s = 0\nrate_limit_burst = 0\n";

/// Machines are busy.
pub const SOON: Duration = Duration::from_secs(120);

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
pub async fn site() -> Desk {
    site_with("").await
}

/// The same, with these lines in the server's configuration.
pub async fn site_with(lines: &str) -> Desk {
    let desk = Desk::with_admin_of(&format!("{CONFIG}{lines}")).await;
    // What is JSON is YAML, too.
    let desk = desk.with_site(&queue().to_string());
    for login in ["bo", "cy"] {
        let create = format!("person create {login} --name {login} --password-stdin");
        desk.run_with(&create, &format!("{PASSWORD}\n")).succeeds();
        desk.run(&format!("member add {login}")).succeeds();
    }
    desk
}

/// Somebody, and their session with all that is secret about it.
pub struct Person {
    pub login: &'static str,
    pub desk: Desk,
    pub client: Client,
    pub port: u16,
    /// Their API token.
    pub token: String,
    /// The name and value of the cookie that they are signed in with.
    pub sign_in: String,
    /// Their session's address in the browser's bar, and its label.
    pub host: String,
    pub label: String,
    /// The cookie by which they visit it.
    pub visit: String,
    /// What their session's own server shows at the hub.
    pub word: String,
    /// Where on the machine the run's files are.
    pub folder: PathBuf,
}

impl Person {
    /// Signs in, starts a session and comes into it.
    pub async fn at_work(owner: &Desk, login: &'static str) -> Person {
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

    pub async fn sign_in(&mut self) {
        let body = json!({"login": self.login, "password": PASSWORD});
        let request = self.to_berth(Method::POST, "/api/v1/sign-in").json(&body);
        let answer = request.send().await.expect("an answer");
        let cookie = answer.headers()[SET_COOKIE].to_str().expect("text");
        self.sign_in = cookie.split(';').next().expect("a pair").to_owned();
    }

    /// A code that lets whoever spends it into this person's session, once.
    pub async fn code(&self) -> String {
        let open = self.to_berth(Method::GET, &format!("/open/{}", self.label));
        let answer = open.header(COOKIE, &self.sign_in).send().await;
        let answer = answer.expect("an answer");
        let way = answer.headers()["location"].to_str().expect("text");
        let way: Url = way.parse().expect("an address");
        let code = way.query_pairs().find(|(name, _)| name == "code");
        code.expect("a code").1.into_owned()
    }

    /// Spends a code at this person's session; gives the status and the key that came of it.
    pub async fn spend(&self, code: &str) -> (u16, Option<String>) {
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
    pub async fn shell(&self, lines: &str) -> String {
        let request = self.at_session(Method::POST, "/").body(lines.to_owned());
        let request = request.header(AUTHORIZATION, format!("Bearer {}", self.token));
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{lines}");
        answer.text().await.expect("what it says")
    }

    /// A request to Berth's own address, by nobody yet.
    pub fn to_berth(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path, &format!("localhost:{}", self.port))
    }

    /// A request to the address of this person's session, by nobody yet.
    pub fn at_session(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path, &self.host)
    }

    fn request(&self, method: Method, path: &str, host: &str) -> RequestBuilder {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        self.client.request(method, url).header(HOST, host)
    }

    /// Ends the session, for what runs would outlive the server.
    pub async fn end(&self) {
        self.desk.run("session stop shell").succeeds();
        wait::until("the session to be stopped", SOON, async || {
            let shown = self.desk.run("session show shell -o json").succeeds();
            shown.json()["state"] == "stopped"
        })
        .await;
    }
}
