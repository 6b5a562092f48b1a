//! Servers started, followed and stopped by JupyterHub's REST, as its clients do it.

use berth_model::Reference;
use berth_model::session::State;
use berth_testkit::wait;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::browser::{Answer, Ask, PATIENCE};
use super::house::{House, name, site};

/// A program of JupyterHub's, with somebody's token.
struct Client<'a> {
    house: &'a House,
    token: String,
}

impl Client<'_> {
    async fn of<'a>(house: &'a House, login: &str) -> Client<'a> {
        let token = house.token(login).await;
        Client { house, token }
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let ask = Ask::new(method, &format!("{}/hub/api{path}", self.house.home));
        let ask = ask.header("authorization", &format!("token {}", self.token));
        let ask = match body {
            Value::Null => ask,
            // JupyterHub's clients do not always say what they send.
            body => ask.body(body.to_string()),
        };
        self.house.browser().send(ask).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &Value::Null).await
    }

    async fn until(&self, path: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        wait::until(what, PATIENCE, async || {
            last = self.get(path).await.expect(200).json();
            is_so(&last)
        })
        .await;
        last
    }
}

/// What a stream of events said, one after another.
fn events(answer: &Answer) -> Vec<Value> {
    let lines = answer.body.lines();
    let data = lines.filter_map(|line| line.strip_prefix("data:"));
    data.map(|text| serde_json::from_str(text).expect("JSON"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_without_a_name_is_started_followed_used_and_stopped() {
    let house = House::open().await;
    let ada = Client::of(&house, "ada").await;
    let version = ada.get("/").await.expect(200);
    assert_eq!(version.header("x-jupyterhub-version"), Some("6.1.1"));
    assert_eq!(version.json(), json!({"version": "6.1.1"}));

    ada.send("DELETE", "/users/ada/server", &Value::Null)
        .await
        .expect(204);
    ada.get("/users/ada/server/progress").await.expect(404);
    ada.send("POST", "/users/ada/server", &Value::Null)
        .await
        .expect(202);
    let told = events(&ada.get("/users/ada/server/progress").await.expect(200));
    let last = told.last().expect("something is told");
    assert_eq!(
        (&last["progress"], &last["ready"]),
        (&json!(100), &json!(true))
    );
    assert!(
        told.iter().rev().skip(1).all(|one| one["ready"].is_null()),
        "{told:?}"
    );

    let me = ada.get("/user").await.expect(200).json();
    assert_eq!((&me["kind"], &me["name"]), (&json!("user"), &json!("ada")));
    assert_eq!(me["admin"], false);
    let scopes = me["scopes"].as_array().unwrap();
    assert!(
        scopes.contains(&json!("access:servers!user=ada")),
        "{scopes:?}"
    );
    let server = &me["servers"][""];
    assert_eq!(server["ready"], true);
    assert_eq!(server["pending"], Value::Null);
    assert_eq!(server["full_name"], "ada/");
    assert_eq!(server["url"], last["url"]);
    assert_eq!(server["url"], me["server"]);
    assert_eq!(server["progress_url"], "/hub/api/users/ada/server/progress");
    assert_eq!(server["user_options"]["profile"], "lab");
    assert!(server["started"].is_string(), "{server}");
    let ask = Ask::get(&format!("{}api", server["url"].as_str().unwrap()));
    let ask = ask.header("authorization", &format!("token {}", ada.token));
    assert!(house.browser().send(ask).await.is_from_the_app());

    let again = ada.send("POST", "/users/ada/server", &Value::Null).await;
    let again = again.expect(400).json();
    assert_eq!(again["message"], "The server is already running.");
    let removed = ada
        .send("DELETE", "/users/ada/server", &json!({"remove": true}))
        .await;
    removed.expect(400);
    ada.send("DELETE", "/users/ada/server", &Value::Null)
        .await
        .expect(202);
    let none = |user: &Value| user["servers"] == json!({});
    ada.until("/users/ada", "it to be stopped", none).await;
    ada.send("DELETE", "/users/ada/server", &Value::Null)
        .await
        .expect(204);
    let stopped = ada.get("/users/ada?include_stopped_servers=1").await;
    assert_eq!(stopped.json()["servers"][""]["stopped"], true);
    ada.get("/users/ada/server/progress").await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn named_servers_are_sessions_by_their_names_and_go_when_they_are_removed() {
    let house = House::open().await;
    let ada = Client::of(&house, "ada").await;
    let options = json!({"user_options": {"profile": "lab", "site": "torino"}});
    ada.send("POST", "/users/ada/servers/big", &options)
        .await
        .expect(202);
    let ready = |user: &Value| user["servers"]["big"]["ready"] == true;
    let user = ada.until("/users/ada", "it to be ready", ready).await;
    let server = &user["servers"]["big"];
    assert_eq!(
        server["progress_url"],
        "/hub/api/users/ada/servers/big/progress"
    );
    let known = house
        .app
        .get_session(house.person("ada"), &site(), &Reference::Name(name("big")))
        .await;
    assert_eq!(known.unwrap().session.state, State::Ready);

    ada.send("DELETE", "/users/ada/servers/big", &json!({"remove": true}))
        .await
        .expect(202);
    let gone = |user: &Value| user["servers"].get("big").is_none();
    let path = "/users/ada?include_stopped_servers=1";
    ada.until(path, "it to be removed", gone).await;
    ada.send("DELETE", "/users/ada/servers/big", &Value::Null)
        .await
        .expect(404);

    for (path, body, word) in [
        ("/users/ada/servers/My%20Lab", json!(null), "name"),
        ("/users/ada/servers/default", json!(null), "without a name"),
        ("/users/ada/server", json!({"image": "x"}), "image"),
        ("/users/ada/server", json!({"site": "roma"}), "roma"),
        ("/users/ada/server", json!({"profile": "none"}), "none"),
        ("/users/ada/server", json!([1]), "object"),
    ] {
        let refused = ada.send("POST", path, &body).await.expect(400).json();
        let message = refused["message"].as_str().expect("a message");
        assert!(message.contains(word), "{message}");
        assert_eq!(refused["status"], 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_in_a_server_can_be_said_and_is_believed_of_the_past_only() {
    let house = House::open().await;
    let ada = Client::of(&house, "ada").await;
    let session = house.session("ada", "lab").await;
    let before = ada.get("/users/ada").await.json()["servers"]["lab"]["last_activity"].clone();
    let soon = house.app.now() + SignedDuration::from_mins(30);
    let body = json!({"servers": {"lab": {"last_activity": soon}}, "last_activity": soon});
    ada.send("POST", "/users/ada/activity", &body)
        .await
        .expect(200);
    let seen = house
        .app
        .get_session(house.person("ada"), &site(), &session.id.into())
        .await;
    let active_at = seen.unwrap().session.active_at;
    assert!(active_at > before.as_str().unwrap().parse().unwrap());
    assert!(active_at <= house.app.now(), "nobody acts in the future");

    let late = house.app.now() + SignedDuration::from_hours(2);
    for bad in [
        json!({}),
        json!({"servers": {"lab": {"last_activity": late}}}),
        json!({"servers": {"none": {"last_activity": soon}}}),
        json!({"servers": {"lab": {}}}),
        json!({"last_activity": "yesterday"}),
    ] {
        let answer = ada.send("POST", "/users/ada/activity", &bad).await;
        answer.expect(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_made_listed_and_revoked_and_do_no_more_than_their_maker() {
    let house = House::open().await;
    let ada = Client::of(&house, "ada").await;
    let body =
        json!({"note": "from a script", "expires_in": 3600, "scopes": ["read:servers!user=ada"]});
    let made = ada.send("POST", "/users/ada/tokens", &body).await;
    let made = made.expect(201).json();
    let narrow = Client {
        house: &house,
        token: made["token"].as_str().expect("its secret").to_owned(),
    };
    narrow.get("/users/ada").await.expect(200);
    let started = narrow.send("POST", "/users/ada/server", &Value::Null).await;
    started.expect(403);
    let more = narrow.send("POST", "/users/ada/tokens", &json!({})).await;
    more.expect(403);

    let listed = ada.get("/users/ada/tokens").await.expect(200).json();
    let listed = listed["api_tokens"].as_array().unwrap();
    let known = listed.iter().find(|one| one["id"] == made["id"]);
    let known = known.expect("it is listed");
    assert_eq!(known["note"], "from a script");
    assert_eq!(known.get("token"), None, "it is shown once");
    let path = format!("/users/ada/tokens/{}", made["id"].as_str().unwrap());
    ada.get(&path).await.expect(200);
    ada.send("DELETE", &path, &Value::Null).await.expect(204);
    ada.get(&path).await.expect(404);
    narrow.get("/user").await.expect(403);
    let unknown = json!({"scopes": ["admin:users"]});
    let refused = ada.send("POST", "/users/ada/tokens", &unknown).await;
    refused.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_or_touches_anothers_servers_but_an_administrator() {
    let house = House::open().await;
    house.session("ada", "lab").await;
    let routes = [
        ("GET", "/users/ada"),
        ("POST", "/users/ada/server"),
        ("DELETE", "/users/ada/server"),
        ("POST", "/users/ada/servers/lab"),
        ("DELETE", "/users/ada/servers/lab"),
        ("GET", "/users/ada/server/progress"),
        ("GET", "/users/ada/servers/lab/progress"),
        ("POST", "/users/ada/activity"),
        ("GET", "/users/ada/tokens"),
        ("POST", "/users/ada/tokens"),
    ];
    for login in ["bob", "otto", "adele"] {
        let other = Client::of(&house, login).await;
        for (method, path) in routes {
            let answer = other.send(method, path, &Value::Null).await.expect(404);
            let nobody = path.replace("ada", "nobody-there");
            let unknown = other.send(method, &nobody, &Value::Null).await.expect(404);
            let same = answer.json()["message"] == unknown.json()["message"];
            assert!(same, "{login} {method} {path}");
        }
    }
    let stranger = Client {
        house: &house,
        token: "berth_nonsense".to_owned(),
    };
    for (method, path) in routes.into_iter().chain([("GET", "/user")]) {
        let refused = stranger.send(method, path, &Value::Null).await.expect(403);
        assert!(refused.json()["message"].is_string(), "{method} {path}");
        let url = format!("{}/hub/api{path}", house.home);
        house
            .browser()
            .send(Ask::new(method, &url))
            .await
            .expect(403);
    }
    let root = Client::of(&house, "root").await;
    let seen = root.get("/users/ada").await.expect(200).json();
    assert_eq!(seen["servers"]["lab"]["ready"], true);
    for path in ["/users/ada/server", "/users/ada/tokens"] {
        root.send("POST", path, &Value::Null).await.expect(403);
    }
    root.send("DELETE", "/users/ada/servers/lab", &Value::Null)
        .await
        .expect(202);
    // A cookie alone changes nothing: another site's page could have made a browser send it.
    let (browser, _) = house.signed_in("ada").await;
    let ask = Ask::new("POST", &format!("{}/hub/api/users/ada/server", house.home));
    browser.send(ask).await.expect(403);
}
