//! Sixty-four people start a session at the same moment, through HTTP, as real processes on one machine: each gets theirs,
//! at the first try, and the server answers everybody else meanwhile.

use std::sync::Arc;
use std::time::Duration;

use crate::support::ground::Ground;
use crate::support::http::{Http, Who};
use crate::support::world::{World, app};
use berth_app::accounts::NewToken;
use berth_app::clock::SystemClock;
use berth_app::{Caller, NewPerson};
use berth_model::person::Scope;
use berth_model::site::Role;
use berth_model::{Name, Reference};
use berth_store::{Engine, Store, people};
use berth_testkit::wait;
use futures::future::join_all;
use jiff::SignedDuration;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

const PEOPLE: usize = 64;
/// Sixty-four interpreters begin on as few as two cores.
const LONG: Duration = Duration::from_secs(300);

/// An app that answers, and is small.
const HELLO: &str = r#"
import http.server, socketserver, sys

class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")
    def log_message(self, *_):
        pass

socketserver.ThreadingUnixStreamServer(sys.argv[1], Hello).serve_forever()
"#;

/// New members of a site, each with a token.
async fn members(url: &str, site: &str) -> Vec<Who> {
    let store = Store::open(url, 4).await.expect("the store opens");
    let app = app(&store, Arc::new(SystemClock));
    let mut reader = store.read().await.expect("a reader");
    let login = "root".parse().expect("a login");
    let root = people::by_login(&mut reader, &login).await;
    let root = Caller::direct(root.expect("an answer").expect("the admin"));
    drop(reader);
    let site = Reference::Name(site.parse::<Name>().expect("a name"));
    let mut members = Vec::new();
    for number in 0..PEOPLE {
        let login = format!("visitor-{number}");
        let new = NewPerson {
            login: login.parse().expect("a login"),
            display_name: login.parse().expect("text"),
            email: None,
            time_zone: None,
            password: None,
        };
        let person = app.create_person(&root, new).await.expect("a person");
        let person = person.value.0;
        let reference = person.id.into();
        let set = app.set_member(&root, &site, &reference, Role::Member);
        set.await.expect("a member");
        let token = NewToken {
            label: "all".parse().expect("text"),
            scopes: Scope::ALL.into_iter().collect(),
            expires_at: app.now() + SignedDuration::from_hours(24),
        };
        let made = app.create_token(&Caller::direct(person), token).await;
        let secret = made.expect("a token").value.1.expect("a secret");
        members.push(Who::Token(secret.expose_secret().to_owned()));
    }
    store.close().await;
    members
}

/// A site whose only machine is this one, with one small app.
async fn small_app(http: &Http, root: &Who) {
    let path = "/sites/lab/queue/settings";
    let before = http.get(root, path).await.expect(200).json();
    let mut settings = before["settings"].clone();
    let task = json!({"cores_milli": 10, "memory_mib": 96});
    settings["profiles"] = json!({"hello": {
        "title": "Hello",
        "wishes": [{"task": task, "limit": "PT20M"}],
        "session": {"app": "hello"},
    }});
    settings["apps"] = json!({"hello": {
        "title": "Hello",
        "command": ["python3", "-c", HELLO, "{socket}"],
        "serves": "socket",
    }});
    let put = http.request(root, "PUT", path).header("if-match", "*");
    http.send(put.json(&settings)).await.expect(200);
}

async fn session(http: &Http, who: &Who, id: &str) -> Value {
    let path = format!("/sites/lab/sessions/{id}");
    http.get(who, &path).await.expect(200).json()
}

async fn sixty_four_start_at_once(engine: Engine) {
    let ground = Ground::new(engine).await;
    let world = World::build(&ground.url).await;
    let root = world.who("root");
    let lines = "rate_limit_per_s = 0\nqueue_backend = \"local\"\nmachine_site = \"lab\"";
    let mut server = ground.launch(lines).start().await.expect("it starts");
    let http = Http::new(&server.url(""));
    let lab = json!({"name": "lab", "title": "Lab", "time_zone": "UTC"});
    http.make(&root, "/sites", &lab).await;
    // A machine moves into its site when the server starts.
    server.stop().await.expect("it stops");
    let visitors = members(&ground.url, "lab").await;
    server.restart().await.expect("it starts");
    small_app(&http, &root).await;

    let ask = json!({"profile": "hello"});
    let starts = visitors
        .iter()
        .map(|who| http.make(who, "/sites/lab/sessions", &ask));
    let made = join_all(starts).await;
    let sessions: Vec<(&Who, String)> = visitors
        .iter()
        .zip(&made)
        .map(|(who, made)| (who, made["id"].as_str().expect("an id").to_owned()))
        .collect();
    let mut others = 0;
    for (who, id) in &sessions {
        wait::until("a session to be ready", LONG, async || {
            others += 1;
            http.get(&root, "/me").await.expect(200);
            session(&http, who, id).await["state"] == "ready"
        })
        .await;
    }
    for (who, id) in &sessions {
        let ready = session(&http, who, id).await;
        assert_eq!(
            ready["starts"].as_array().expect("starts").len(),
            1,
            "{ready}"
        );
    }
    assert!(others >= PEOPLE, "others are answered meanwhile");

    let stops = sessions.iter().map(async |(who, id)| {
        let path = format!("/sites/lab/sessions/{id}/stop");
        http.post(who, &path, &json!({})).await.expect(200);
        wait::until("a session to stop", LONG, async || {
            session(&http, who, id).await["state"] == "stopped"
        })
        .await;
    });
    join_all(stops).await;
    server.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_start_at_once_on_sqlite() {
    sixty_four_start_at_once(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_start_at_once_on_postgres() {
    sixty_four_start_at_once(Engine::Postgres).await;
}
