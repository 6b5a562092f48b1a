//! JupyterHub's routes x every kind of caller. They are no operations of the API's document, so they have a table of their
//! own; what it is compared with is the router itself.
//!
//! The columns and the letters are those of [`table`](super::table), in JupyterHub's words: what is 401 there is 403
//! here. `ada` is who is acted on. Site admins see no more of her than others do: whom JupyterHub's addresses name is a
//! matter of all sites.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::arrange::Stage;
use super::callers::{CALLERS, Caller};
use super::table::Expected;
use crate::support::SOON;
use crate::support::http::{Answer, Http, Who};

const ANYBODY: &str = "y yyyy yy yyyy yyy yy y yy";
const SIGNED_IN: &str = "- yyyy yy yyyy --- yy y yy";
/// Oneself, and administrators of all sites.
const SEE: &str = "- 0000 00 0y0y --- yy y yy";
const DO: &str = "- 0000 00 0y0y --- ss y cy";
const DO_WITH_TOKENS: &str = "- 0000 00 0y0y --- ss s cy";
/// Oneself, and nobody else however much they may.
const ONLY_OWN: &str = "- 0000 00 0y0x --- xx y cx";
const ONLY_OWN_TOKENS: &str = "- 0000 00 0y0x --- xx s cx";

#[derive(Debug, Clone)]
struct Row {
    method: &'static str,
    /// As the router has it.
    path: &'static str,
    letters: &'static str,
    done: u16,
    body: Option<fn(&Targets) -> Value>,
}

/// What is made anew for each cell.
#[derive(Debug, Clone, Default)]
struct Targets {
    name: String,
    server: String,
    token: String,
}

fn rows() -> Vec<Row> {
    vec![
        row("GET", "/", ANYBODY),
        row("GET", "/user", SIGNED_IN),
        row("GET", "/users/{name}", SEE),
        row("POST", "/users/{name}/server", ONLY_OWN).gives(202),
        row("GET", "/users/{name}/server/progress", SEE),
        row("DELETE", "/users/{name}/server", DO).gives(202),
        row("POST", "/users/{name}/servers/{server}", ONLY_OWN).gives(202),
        row("GET", "/users/{name}/servers/{server}/progress", SEE),
        row("DELETE", "/users/{name}/servers/{server}", DO).gives(202),
        // Whose work it is, only they can say.
        row("POST", "/users/{name}/activity", DO).body(acted),
        row("GET", "/users/{name}/tokens", SEE),
        row("POST", "/users/{name}/tokens", ONLY_OWN_TOKENS)
            .gives(201)
            .body(|_| json!({"note": "t", "expires_in": 3600})),
        row("GET", "/users/{name}/tokens/{token}", SEE),
        row("DELETE", "/users/{name}/tokens/{token}", DO_WITH_TOKENS).gives(204),
        // Who spends a code shows it, and the secret of the session's own server; who they are besides is all one.
        row("POST", "/oauth2/token", ANYBODY)
            .gives(400)
            .body(|_| json!({"grant_type": "authorization_code"})),
        row("GET", "/{*rest}", ANYBODY).gives(404),
    ]
}

/// It answers by sending elsewhere, so it is looked at apart from the others.
const AUTHORIZE: &str = "/oauth2/authorize";

fn row(method: &'static str, path: &'static str, letters: &'static str) -> Row {
    Row {
        method,
        path,
        letters,
        done: 200,
        body: None,
    }
}

impl Row {
    fn gives(self, done: u16) -> Self {
        Self { done, ..self }
    }

    fn body(self, body: fn(&Targets) -> Value) -> Self {
        let body = Some(body);
        Self { body, ..self }
    }

    fn expected(&self) -> impl Iterator<Item = Expected> {
        let letters = self.letters.chars();
        letters
            .filter(|letter| !letter.is_whitespace())
            .map(Expected::of)
    }
}

fn acted(targets: &Targets) -> Value {
    json!({"servers": {&targets.server: {"last_activity": "2026-01-01T00:00:00Z"}}})
}

/// Every route that the router has, against every path that has a row.
pub fn compare_with_the_router() {
    let source = include_str!("../../../../server/src/hub/mod.rs");
    let router = source.split("pub fn router()").nth(1).expect("a router");
    let router = router.split("\n}").next().expect("its end");
    let words: String = router.split_whitespace().collect();
    let routes = words.split(".route(\"").skip(1);
    let known: BTreeSet<&str> = routes.filter_map(|rest| rest.split('"').next()).collect();
    let listed = rows().into_iter().map(|row| row.path);
    let listed: BTreeSet<&str> = listed.chain([AUTHORIZE]).collect();
    assert_eq!(known, listed, "the routes, and the table of them");
    for row in rows() {
        let (path, letters) = (row.path, row.expected().count());
        assert_eq!(letters, CALLERS.len(), "{path} needs a letter for each");
    }
}

/// Walks through the rows with those callers that are `wanted`.
pub async fn check(
    stage: &Stage,
    browser: &Who,
    wrong: &mut Vec<String>,
    wanted: impl Fn(Caller) -> bool,
) {
    let hub = Hub::of(stage);
    for row in rows() {
        for (caller, expected) in CALLERS.into_iter().zip(row.expected()) {
            if !wanted(caller) {
                continue;
            }
            let who = caller.who(&stage.world, browser);
            if let Err(complaint) = hub.check(&row, caller, &who, expected).await {
                let Row { method, path, .. } = row;
                wrong.push(format!("{method} /hub/api{path}, {caller:?}: {complaint}"));
            }
        }
    }
    for caller in CALLERS.into_iter().filter(|caller| wanted(*caller)) {
        let who = caller.who(&stage.world, browser);
        if let Err(complaint) = hub.check_authorize(caller, &who).await {
            wrong.push(format!("/hub/api{AUTHORIZE}, {caller:?}: {complaint}"));
        }
    }
}

struct Hub<'a> {
    stage: &'a Stage,
    http: Http,
}

impl<'a> Hub<'a> {
    fn of(stage: &'a Stage) -> Self {
        let Http { client, base } = stage.http.clone();
        let base = base.replace(berth_api::paths::API, "/hub/api");
        let http = Http { client, base };
        Self { stage, http }
    }

    async fn check(
        &self,
        row: &Row,
        caller: Caller,
        who: &Who,
        expected: Expected,
    ) -> Result<(), String> {
        let targets = self.targets(row).await;
        let answer = self.ask(row, who, &targets).await;
        let (status, code) = wanted(row, caller, expected);
        let fits = answer.status == status && (code.is_empty() || answer.code() == code);
        if !fits {
            return Err(format!("{status} {code} expected, got {answer:?}"));
        }
        if expected == Expected::Done {
            return Ok(());
        }
        // JupyterHub's clients show this to people.
        if !answer.json()["message"].is_string() {
            return Err(format!("nothing is said in {answer:?}"));
        }
        let is_told_apart = !matches!(expected, Expected::NotAllowed | Expected::ScopeMissing);
        if is_told_apart {
            let nobody = Targets {
                name: "nowhere".to_owned(),
                ..targets
            };
            let nothing = self.ask(row, who, &nobody).await;
            if (nothing.status, &nothing.text) != (answer.status, &answer.text) {
                return Err(format!("{answer:?}, but {nothing:?} where nobody is"));
            }
        }
        Ok(())
    }

    async fn ask(&self, row: &Row, who: &Who, targets: &Targets) -> Answer {
        let path = row
            .path
            .replace("{name}", &targets.name)
            .replace("{server}", &targets.server)
            .replace("{token}", &targets.token)
            .replace("{*rest}", "users/ada/nothing");
        let request = self.http.request(who, row.method, &path);
        let request = match row.body {
            Some(body) => request.json(&body(targets)),
            None => request,
        };
        self.http.send(request).await
    }

    /// Makes what the path of this row names.
    async fn targets(&self, row: &Row) -> Targets {
        let stage = self.stage;
        let mut targets = Targets {
            name: "ada".to_owned(),
            server: stage.fresh.name(),
            token: String::new(),
        };
        let ada = stage.world.who("ada");
        if row.path.contains("/server") && row.method != "POST" || row.path.ends_with("/activity") {
            let start = match row.path.contains("/servers/") || row.path.ends_with("/activity") {
                true => format!("/users/ada/servers/{}", targets.server),
                false => "/users/ada/server".to_owned(),
            };
            // One that was told to end before must have come to it.
            berth_testkit::wait::until("a server of ada's to wait", SOON, async || {
                let start = self.http.request(&ada, "POST", &start);
                self.http.send(start).await.status == 202
            })
            .await;
        }
        if row.path.contains("{token}") {
            let made = self.http.post(&ada, "/users/ada/tokens", &json!({})).await;
            let made = made.expect(201).json();
            targets.token = made["id"].as_str().expect("an id").to_owned();
        }
        targets
    }

    /// Whoever may come in goes on with a code, whoever is not known is sent to where one signs in, and to all others there is
    /// no such session.
    async fn check_authorize(&self, caller: Caller, who: &Who) -> Result<(), String> {
        let Stage { http, world, .. } = self.stage;
        let body = json!({"profile": "notebook", "name": self.stage.fresh.name()});
        let path = format!("/sites/{}/sessions", world.torino);
        let made = http.make(&world.who("ada"), &path, &body).await;
        let url = made["url"].as_str().expect("an address");
        let label = url.trim_start_matches("http://").split('.').next();
        let label = label.expect("a label").to_owned();
        let real = self.authorize(who, &label, url).await;
        let to = real.header("location").unwrap_or_default();
        let fits = match caller {
            Caller::Anonymous | Caller::Suspended | Caller::RevokedToken | Caller::ExpiredToken => {
                (real.status, to) == (303, &format!("/open/{label}"))
            }
            Caller::Owner | Caller::OwnersBookToken => {
                real.status == 303 && to.starts_with(&format!("{url}oauth_callback?code="))
            }
            // They have to have come in before, and said why.
            Caller::SiteAdmin
            | Caller::GlobalAdmin
            | Caller::AdminsReadToken
            | Caller::AdminsBookToken
            | Caller::ForeignPage
            | Caller::OwnPage => {
                (real.status, real.code().as_str()) == (400, "session.reason_missing")
            }
            Caller::Outsider(_)
            | Caller::MemberElsewhere
            | Caller::AdminElsewhere
            | Caller::Member => real.status == 404 && to.is_empty(),
        };
        if !fits {
            return Err(format!("{real:?}, to `{to}`"));
        }
        let other = "0123456789abcdef";
        let nothing = self
            .authorize(who, other, &url.replace(&label, other))
            .await;
        let is_same = match real.status {
            303 if !to.contains("code=") => nothing.status == 303,
            404 => (nothing.status, &nothing.text) == (404, &real.text),
            _ => true,
        };
        match is_same {
            true => Ok(()),
            false => Err(format!("{real:?}, but {nothing:?} where nothing is")),
        }
    }

    async fn authorize(&self, who: &Who, label: &str, url: &str) -> Answer {
        let back = berth_api::paths::fill("{}", &[&format!("{url}oauth_callback")]);
        let path =
            format!("{AUTHORIZE}?client_id=session-{label}&response_type=code&redirect_uri={back}");
        self.http.get(who, &path).await
    }
}

fn wanted(row: &Row, caller: Caller, expected: Expected) -> (u16, &'static str) {
    match expected {
        Expected::Done => (row.done, ""),
        Expected::NotFound => (404, "object.not_found"),
        Expected::NotAllowed => (403, "auth.not_allowed"),
        Expected::ScopeMissing => (403, "auth.scope_missing"),
        Expected::Csrf => (403, "auth.csrf"),
        Expected::Conflict => (409, ""),
        Expected::SignIn => match caller {
            Caller::Suspended | Caller::RevokedToken => (403, "auth.token_invalid"),
            Caller::ExpiredToken => (403, "auth.token_expired"),
            _ => (403, "auth.sign_in_required"),
        },
    }
}
