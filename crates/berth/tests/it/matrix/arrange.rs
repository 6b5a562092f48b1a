//! Setting the stage for one cell of the table: whatever the path names is made anew, so that no cell depends on what
//! another one did.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::table::{self, Row, Whom};
use crate::support::http::{Answer, Http, Who};
use crate::support::world::World;

/// One operation, as the OpenAPI document has it.
#[derive(Debug, Clone)]
pub struct Operation {
    pub id: String,
    pub method: String,
    pub path: String,
    pub needs_version: bool,
    /// Whether it can be repeated safely, and does not just read.
    pub takes_key: bool,
}

/// Every operation of the document that the code produces.
pub fn operations() -> Vec<Operation> {
    let document = serde_json::to_value(berth_server::openapi()).expect("the document");
    let paths = document["paths"].as_object().expect("paths");
    let mut operations = Vec::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().expect("an item") {
            let parameters = operation["parameters"].as_array();
            let takes = |header: &str| {
                let is_it = |parameter: &Value| parameter["name"] == header;
                parameters.is_some_and(|all| all.iter().any(is_it))
            };
            operations.push(Operation {
                id: operation["operationId"].as_str().expect("an id").to_owned(),
                method: method.to_uppercase(),
                path: path.clone(),
                needs_version: takes("If-Match"),
                takes_key: takes("Idempotency-Key"),
            });
        }
    }
    operations
}

impl Operation {
    /// The names in the path's braces, in order.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.path
            .split('{')
            .skip(1)
            .filter_map(|rest| rest.split('}').next())
    }
}

/// Names and times that nothing has yet.
#[derive(Debug)]
pub struct Fresh {
    used: AtomicI64,
    start: Timestamp,
}

impl Fresh {
    pub fn new(now: Timestamp) -> Self {
        // A series is kept to the second.
        let tomorrow = now.as_second() + 24 * 3600;
        Self {
            used: AtomicI64::new(0),
            start: Timestamp::from_second(tomorrow).expect("tomorrow"),
        }
    }

    fn next(&self) -> i64 {
        self.used.fetch_add(1, Ordering::Relaxed)
    }

    pub fn name(&self) -> String {
        format!("torino-{}", self.next())
    }

    /// An hour with two free ones after it.
    pub fn slot(&self) -> (String, String) {
        let start = self.start + SignedDuration::from_hours(3 * self.next());
        let end = start + SignedDuration::from_hours(1);
        (start.to_string(), end.to_string())
    }

    pub fn tomorrow(&self) -> String {
        self.start.to_string()
    }
}

/// A calendar that closes nothing.
pub const CALENDAR: &str = "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n";

/// What the braces of a path stand for.
pub type Targets = BTreeMap<String, String>;

/// Everything a cell needs.
#[derive(Debug)]
pub struct Stage {
    pub http: Http,
    pub world: World,
    pub root: Who,
    pub fresh: Fresh,
    waiting: Mutex<Vec<String>>,
}

impl Stage {
    pub fn new(http: Http, world: World, now: Timestamp) -> Self {
        Self {
            root: world.who("root"),
            waiting: Mutex::new(world.waiting.clone()),
            fresh: Fresh::new(now),
            http,
            world,
        }
    }

    /// Makes what the path of this row names.
    pub async fn targets(&self, operation: &Operation, row: &Row) -> Targets {
        let mut targets = Targets::new();
        for parameter in operation.parameters() {
            let made = self.target(parameter, row).await;
            targets.insert(parameter.to_owned(), made);
        }
        if row.operation == "get_logo" {
            let path = fill(&operation.path, &targets);
            let put = self.http.request(&self.root, "PUT", &path).body("<svg/>");
            self.http.send(put).await.expect(200);
        }
        if row.operation == "remove_project_member" {
            let path = fill(&operation.path, &targets);
            let added = self.http.request(&self.root, "PUT", &path);
            self.http.send(added).await.expect(200);
        }
        if ["remove_policy", "remove_global_policy"].contains(&row.operation) {
            let path = fill(&operation.path, &targets);
            let part = row
                .query
                .replace("dry_run=true&", "")
                .replace("dry_run=true", "");
            let put = self
                .http
                .request(&self.root, "PUT", &format!("{path}{part}"));
            let put = put.json(&json!({"policy": {"length_max": "300d"}}));
            self.http.send(put).await.expect(200);
        }
        targets
    }

    async fn target(&self, parameter: &str, row: &Row) -> String {
        match parameter {
            "site" => self.world.torino.clone(),
            "person" => self.person(row.person).await,
            "token" => self.token().await,
            "feed" => self.feed().await,
            "closure" => {
                let body = json!({"name": self.fresh.name(), "kind": "holidays", "file": CALENDAR});
                self.make(&self.root, "closures", &body).await
            }
            "environment" => {
                let body = json!({"name": self.fresh.name()});
                self.make(&self.world.who("ada"), "environments", &body)
                    .await
            }
            "request" => {
                let mut waiting = self.waiting.lock().expect("nobody panics here");
                waiting.pop().expect("more people who wait: see WAITING")
            }
            "project" => {
                let body = json!({"name": self.fresh.name(), "title": "A project"});
                self.make(&self.root, "projects", &body).await
            }
            "kind" => {
                let body =
                    json!({"name": self.fresh.name(), "title": "A type", "colour": "#123456"});
                self.make(&self.root, "types", &body).await
            }
            "resource" => {
                let body = json!({"name": self.fresh.name(), "type": "server"});
                self.make(&self.root, "resources", &body).await
            }
            "window" => {
                let (start, end) = self.fresh.slot();
                let body =
                    json!({"title": "w", "start": start, "end": end, "resources": ["press"]});
                self.make(&self.root, "maintenance", &body).await
            }
            "reservation" => self.reservation(row).await,
            "series" => {
                let (start, end) = self.fresh.slot();
                let privacy = if row.is_private { "private" } else { "site" };
                let body = json!({
                    "title": "a test", "start": start, "end": end, "rule": "FREQ=DAILY;COUNT=1",
                    "privacy": privacy, "resources": [{"resource": "gpu-02"}],
                });
                self.make(&self.world.who("ada"), "series", &body).await
            }
            "workload" => {
                let mut body = table::work();
                body["held"] = json!(row.operation == "release_workload");
                self.make(&self.world.who("ada"), "workloads", &body).await
            }
            "grant" => {
                let body = table::grant(&self.fresh.tomorrow());
                self.make(&self.root, "queue/grants", &body).await
            }
            "session" => {
                let body = json!({"profile": "notebook", "name": self.fresh.name()});
                self.make(&self.world.who("ada"), "sessions", &body).await
            }
            "profile" => "notebook".to_owned(),
            "scope" => "ceilings".to_owned(),
            other => panic!("how to make a {{{other}}} is not written down here yet"),
        }
    }

    /// The owner's, to come; where it is to be decided on, one that waits for that.
    async fn reservation(&self, row: &Row) -> String {
        let (start, end) = self.fresh.slot();
        let privacy = if row.is_private { "private" } else { "site" };
        let is_decided = ["approve_reservation", "reject_reservation"].contains(&row.operation);
        let resource = if is_decided { "vault-01" } else { "gpu-02" };
        let is_held = row.operation == "take_reservation";
        if is_held {
            self.let_go().await;
        }
        let body = json!({
            "title": "a test", "start": start, "end": end, "privacy": privacy,
            "resources": [{"resource": resource}], "hold": is_held,
        });
        self.make(&self.world.who("ada"), "reservations", &body)
            .await
    }

    /// Gives up what the owner holds: one person holds only a few things at a time.
    async fn let_go(&self) {
        let ada = self.world.who("ada");
        let list = self
            .http
            .request(&ada, "GET", "/me/reservations?state=held");
        let held = self.http.send(list).await.expect(200).json();
        for one in held["items"].as_array().expect("a page") {
            let id = one["id"].as_str().expect("an id");
            let path = format!("/sites/{}/reservations/{id}/cancel", self.world.torino);
            let cancel = self.http.request(&ada, "POST", &path).json(&json!({}));
            self.http.send(cancel).await.expect(200);
        }
    }

    async fn person(&self, whom: Whom) -> String {
        if whom == Whom::Owner {
            return self.world.id("ada");
        }
        let body = json!({"login": self.fresh.name(), "display_name": "Somebody"});
        let made = self.http.make(&self.root, "/people", &body).await;
        let id = made["person"]["id"].as_str().expect("an id").to_owned();
        if whom == Whom::FreshMember {
            let path = format!("/sites/{}/members/{id}", self.world.torino);
            let put = self.http.request(&self.root, "PUT", &path);
            let put = put.json(&json!({"role": "member"}));
            self.http.send(put).await.expect(200);
        }
        id
    }

    async fn token(&self) -> String {
        let body = json!({"label": "t", "scopes": ["read"], "expires_at": self.fresh.tomorrow()});
        let ada = self.world.who("ada");
        let made = self.http.make(&ada, "/me/tokens", &body).await;
        made["token"]["id"].as_str().expect("an id").to_owned()
    }

    async fn feed(&self) -> String {
        let ada = self.world.who("ada");
        let made = self
            .http
            .make(&ada, "/me/feeds", &json!({"label": "f"}))
            .await;
        made["feed"]["id"].as_str().expect("an id").to_owned()
    }

    async fn make(&self, who: &Who, collection: &str, body: &Value) -> String {
        let path = format!("/sites/{}/{collection}", self.world.torino);
        let made = self.http.make(who, &path, body).await;
        made["id"].as_str().expect("an id").to_owned()
    }

    /// Sets what `torino` shows to outsiders.
    pub async fn show(&self, view: &str) {
        let path = format!("/sites/{}", self.world.torino);
        let request = self.http.request(&self.root, "PATCH", &path);
        let request = request
            .header("if-match", "*")
            .json(&json!({"outsiders_see": view}));
        self.http.send(request).await.expect(200);
    }

    /// The request of this row, from somebody; the only thing that varies is who sends it.
    pub async fn ask(
        &self,
        who: &Who,
        operation: &Operation,
        row: &Row,
        targets: &Targets,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Answer {
        let mut request = self.request(who, operation, row, targets, body);
        if operation.needs_version {
            request = request.header("if-match", "*");
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        self.http.send(request).await
    }

    /// The same request, meant for a version that nothing has.
    pub async fn ask_for_stale(
        &self,
        who: &Who,
        operation: &Operation,
        row: &Row,
        targets: &Targets,
        body: Option<&Value>,
    ) -> Answer {
        let request = self.request(who, operation, row, targets, body);
        let request = request.header("if-match", "\"999999\"");
        self.http.send(request).await
    }

    fn request(
        &self,
        who: &Who,
        operation: &Operation,
        row: &Row,
        targets: &Targets,
        body: Option<&Value>,
    ) -> RequestBuilder {
        let path = format!("{}{}", fill(&operation.path, targets), row.query);
        let path = path.replace("{site}", targets.get("site").unwrap_or(&self.world.torino));
        let request = self.http.request(who, &operation.method, &path);
        match body {
            Some(body) => request.json(body),
            None => request,
        }
    }
}

/// The same targets with one of them replaced by something that does not exist; once for each, by id, and for what
/// has a name also by that.
pub fn nonexistent(targets: &Targets) -> Vec<Targets> {
    let mut variants = Vec::new();
    for (parameter, real) in targets {
        let prefix = real.split('_').next().unwrap_or_default();
        let id = format!("{prefix}_01kc3v9xwbe8rv5w2n9q3m7t4h");
        let by_name = match parameter.as_str() {
            "site" | "person" | "project" | "kind" | "resource" | "closure" | "environment" => {
                Some("nowhere".to_owned())
            }
            _ => None,
        };
        for other in std::iter::once(id).chain(by_name) {
            let mut variant = targets.clone();
            variant.insert(parameter.clone(), other);
            variants.push(variant);
        }
    }
    variants
}

fn fill(template: &str, targets: &Targets) -> String {
    targets
        .iter()
        .fold(template.to_owned(), |path, (parameter, value)| {
            path.replace(&format!("{{{parameter}}}"), value)
        })
}
