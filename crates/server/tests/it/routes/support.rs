//! A lab with people in every role, and hands to send requests with.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Body;
use berth_app::accounts::NewToken;
use berth_app::clock::SystemClock;
use berth_app::vault::Vault;
use berth_app::{App, Caller, NewPerson, NewSite, Settings};
use berth_model::Reference;
use berth_model::person::Scope;
use berth_model::site::{OutsiderView, Role};
use berth_server::config::Config;
use berth_server::{Server, router};
use berth_store::Store;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Nothing is counted against a test that asks a lot at once.
const CONFIG: &str = "rate_limit_per_s = 0";

/// A site `torino` with `adele` as its admin, `ada` and `bob` as members, and `otto` outside; `root` administers all.
///
/// Its tree: `rack-a > gpu-01 > gpu-01.a, gpu-01.b`, `rack-a > gpu-02`, `rack-b`, `memory` (64 GiB to share), and
/// `laser`, whose type needs approval.
pub struct Lab {
    pub app: App,
    router: Router,
    tokens: HashMap<&'static str, String>,
    tomorrow: Timestamp,
    _directory: TempDir,
}

impl Lab {
    pub async fn new() -> Self {
        Self::with("").await
    }

    /// The lab under a configuration of its own.
    pub async fn with(config: &str) -> Self {
        let config = format!("{CONFIG}\n{config}");
        let directory = TempDir::new().unwrap();
        let home = [("HOME".to_owned(), directory.path().display().to_string())];
        let config = Config::layer(Some(("test", &config)), home.into_iter(), BTreeMap::new());
        let database = directory.path().join("berth.sqlite");
        let store = Store::open(&format!("sqlite:{}", database.display()), 4).await;
        let app = App::new(
            store.unwrap(),
            Arc::new(SystemClock),
            Vault::from_key(&[7; 32]),
            Settings::default(),
        );
        let server = Server::new(
            config.unwrap().config,
            app.clone(),
            None,
            CancellationToken::new(),
        );
        let tomorrow = app.now() + SignedDuration::from_hours(24);
        let mut lab = Self {
            router: router(&server),
            tomorrow: tomorrow.round(jiff::Unit::Minute).unwrap(),
            app,
            tokens: HashMap::new(),
            _directory: directory,
        };
        lab.people().await;
        lab.inventory().await;
        lab
    }

    async fn people(&mut self) {
        let login = "root".parse().unwrap();
        let admin = self.app.create_admin(login, "Root".parse().unwrap(), None);
        let root = Caller::direct(admin.await.unwrap().0);
        let new = NewSite {
            name: "torino".parse().unwrap(),
            title: "Torino".parse().unwrap(),
            time_zone: "Europe/Rome".parse().unwrap(),
            outsiders_see: OutsiderView::Nothing,
        };
        self.app.create_site(&root, new).await.unwrap();
        for (login, role) in [
            ("adele", Some(Role::SiteAdmin)),
            ("ada", Some(Role::Member)),
            ("bob", Some(Role::Member)),
            ("otto", None),
        ] {
            let new = NewPerson {
                login: login.parse().unwrap(),
                display_name: login.parse().unwrap(),
                email: None,
                time_zone: None,
                password: None,
            };
            let (person, _) = self.app.create_person(&root, new).await.unwrap().value;
            if let Some(role) = role {
                let site = Reference::Name("torino".parse().unwrap());
                let (site, person) = (&site, &person.id.into());
                let added = self.app.set_member(&root, site, person, role).await;
                added.unwrap();
            }
            self.sign(login, Caller::direct(person)).await;
        }
        self.sign("root", root).await;
    }

    async fn sign(&mut self, login: &'static str, caller: Caller) {
        let new = NewToken {
            label: "test".parse().unwrap(),
            scopes: Scope::ALL.into_iter().collect(),
            expires_at: self.app.now() + SignedDuration::from_hours(48),
        };
        let (_, secret) = self.app.create_token(&caller, new).await.unwrap().value;
        let secret = secrecy::ExposeSecret::expose_secret(&secret.unwrap()).to_owned();
        self.tokens.insert(login, secret);
    }

    async fn inventory(&self) {
        let adele = self.hand("adele");
        for (name, needs_approval) in [("server", false), ("instrument", true)] {
            let new = json!({"name": name, "title": name, "colour": "#1f77b4", "needs_approval": needs_approval});
            adele.post("/sites/torino/types", new).await.is(201);
        }
        for (name, kind, parent) in [
            ("rack-a", "server", None),
            ("rack-b", "server", None),
            ("gpu-01", "server", Some("rack-a")),
            ("gpu-02", "server", Some("rack-a")),
            ("gpu-01.a", "server", Some("gpu-01")),
            ("gpu-01.b", "server", Some("gpu-01")),
            ("laser", "instrument", None),
        ] {
            let new = json!({"name": name, "type": kind, "parent": parent});
            adele.post("/sites/torino/resources", new).await.is(201);
        }
        let memory =
            json!({"name": "memory", "type": "server", "capacity": {"amount": 64, "unit": "gib"}});
        adele.post("/sites/torino/resources", memory).await.is(201);
    }

    /// Reads an address outside the API, as nobody: status, headers and text.
    pub async fn read(&self, path: &str, headers: &[(&str, &str)]) -> (u16, HeaderMap, String) {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = self
            .router
            .clone()
            .oneshot(request.body(Body::empty()).unwrap());
        let (head, body) = sent.await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        (head.status.as_u16(), head.headers, text)
    }

    /// Someone who signs in with a token of theirs.
    pub fn hand(&self, login: &str) -> Hand<'_> {
        self.hand_with(&self.tokens[login])
    }

    pub fn hand_with(&self, token: &str) -> Hand<'_> {
        Hand {
            router: &self.router,
            token: token.to_owned(),
            headers: Vec::new(),
        }
    }

    /// A moment so many hours after this time tomorrow.
    pub fn at(&self, hours: i64) -> String {
        (self.tomorrow + SignedDuration::from_hours(hours)).to_string()
    }

    /// A booking of whole resources, from one of those hours to another.
    pub fn booking(&self, resources: &[&str], hours: std::ops::Range<i64>) -> Value {
        let wanted: Vec<Value> = resources
            .iter()
            .map(|name| json!({"resource": name}))
            .collect();
        json!({
            "title": "fine tuning", "resources": wanted,
            "start": self.at(hours.start), "end": self.at(hours.end),
        })
    }
}

/// Sends requests in someone's name.
#[derive(Clone)]
pub struct Hand<'l> {
    router: &'l Router,
    token: String,
    headers: Vec<(&'static str, String)>,
}

impl Hand<'_> {
    pub fn with(&self, header: &'static str, value: impl ToString) -> Self {
        let mut hand = self.clone();
        hand.headers.push((header, value.to_string()));
        hand
    }

    /// A change that is meant for this version.
    pub fn knowing(&self, object: &Answer) -> Self {
        self.with("if-match", object.header("etag"))
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some(body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, Some(body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send("PATCH", path, Some(body)).await
    }

    pub async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let body = body.map(|body| ("application/json", Body::from(body.to_string())));
        self.send_body(method, path, body).await
    }

    /// A body that is no JSON, and not called anything.
    pub async fn put_bytes(&self, path: &str, bytes: &[u8]) -> Answer {
        let body = ("application/octet-stream", Body::from(bytes.to_vec()));
        self.send_body("PUT", path, Some(body)).await
    }

    async fn send_body(
        &self,
        method: &str,
        path: &str,
        body: Option<(&'static str, Body)>,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header("authorization", format!("Bearer {}", self.token));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let body = match body {
            Some((kind, body)) => {
                request = request.header("content-type", kind);
                body
            }
            None => Body::empty(),
        };
        let sent = self.router.clone().oneshot(request.body(body).unwrap());
        let (head, body) = sent.await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let answer = Answer {
            asked: format!("{method} {path}"),
            status: head.status.as_u16(),
            headers: head.headers,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
            raw: bytes.to_vec(),
        };
        expect_documented(method, path, &answer);
        answer
    }
}

#[derive(Debug)]
pub struct Answer {
    asked: String,
    pub status: u16,
    headers: HeaderMap,
    pub body: Value,
    pub raw: Vec<u8>,
}

impl Answer {
    /// Checks the status; what else is wanted of the answer can follow.
    #[track_caller]
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}: {:#}", self.asked, self.body);
        self
    }

    /// Checks that this is a problem of this code.
    #[track_caller]
    pub fn refuses(self, status: u16, code: &str) -> Self {
        assert_eq!(self.body["code"], code, "{}: {:#}", self.asked, self.body);
        assert_eq!(self.header("content-type"), "application/problem+json");
        self.is(status)
    }

    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(|value| value.to_str().unwrap());
        value.unwrap_or_default()
    }

    /// The value of one field of every item of a page.
    pub fn each(&self, field: &str) -> Vec<&Value> {
        let items = self.body["items"].as_array().unwrap();
        items.iter().map(|item| &item[field]).collect()
    }

    pub fn id(&self) -> &str {
        self.body["id"].as_str().unwrap()
    }
}

impl std::ops::Index<&str> for Answer {
    type Output = Value;
    fn index(&self, field: &str) -> &Value {
        &self.body[field]
    }
}

pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::to_value(berth_server::openapi()).unwrap())
}

#[track_caller]
fn expect_documented(method: &str, path: &str, answer: &Answer) {
    let path = path.split('?').next().unwrap();
    let fits = |template: &str| {
        let (template, path) = (template.split('/'), path.split('/'));
        template.clone().count() == path.clone().count()
            && template
                .zip(path)
                .all(|(t, p)| t.starts_with('{') || t == p)
    };
    let paths = document()["paths"].as_object().unwrap();
    // `/audit/verify` fits `/audit/{x}` too, if there were such a path; the one with fewer braces is meant.
    let mut fitting: Vec<_> = paths
        .iter()
        .filter(|(template, _)| fits(template))
        .collect();
    fitting.sort_by_key(|(template, _)| template.matches('{').count());
    let (_, item) = fitting
        .first()
        .unwrap_or_else(|| panic!("{path} is not documented"));
    let responses = &item[method.to_lowercase()]["responses"];
    let status = answer.status.to_string();
    assert!(
        responses.get(&status).is_some(),
        "{method} {path} gave an undocumented {status}"
    );
}
