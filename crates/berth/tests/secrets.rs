//! Secrets stay secret: planted, used, and then looked for in everything that anybody can read, and in the raw bytes
//! of the database. And they end when they are told to.

mod secrets {
    pub mod canaries;
    pub mod readers;
}
mod support;

use berth_api::Code;
use berth_api::client::{Client, Credential};
use berth_api::events::EventStreamQuery;
use berth_store::Engine;
use berth_testkit::server::BerthServer;
use futures::StreamExt;
use secrets::canaries::Canaries;
use secrets::readers;
use serde_json::{Value, json};
use support::SOON;
use support::ground::Ground;
use support::http::{Http, Who};
use support::world::{PASSWORD, World};

struct House {
    ground: Ground,
    world: World,
    server: BerthServer,
    http: Http,
}

impl House {
    /// Logs much more than anybody would in earnest: what is careful then is careful always.
    async fn open(engine: Engine) -> Self {
        let ground = Ground::new(engine).await;
        let world = World::build(&ground.url).await;
        let config = "rate_limit_per_s = 0\nsign_in_attempts_max = 3\nlog_filter = \"debug\"";
        let server = ground.launch(config).start().await.expect("the server");
        Self {
            http: Http::new(&server.url("")),
            ground,
            world,
            server,
        }
    }

    fn client(&self, token: &str) -> Client {
        let credential = Credential::Token(token.into());
        Client::new(&self.server.url(""), credential).expect("a client")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_found_anywhere_on_sqlite() {
    plant_and_search(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_found_anywhere_on_postgres() {
    plant_and_search(Engine::Postgres).await;
}

async fn plant_and_search(engine: Engine) {
    let mut house = House::open(engine).await;
    let mut canaries = Canaries::default();
    let reservation = plant(&house, &mut canaries).await;
    canaries.search_all(
        "what an API answers",
        &readers::answers(&house.http, &house.world, &reservation).await,
    );
    canaries.search("the metrics", &readers::metrics(&house.server).await);
    canaries.search_all(
        "a file of the server",
        &readers::files(house.server.directory()),
    );
    canaries.search_all("the database", &readers::database(&house.ground));
    // What is in memory until then is on disk after an orderly end.
    house.server.stop().await.expect("stop");
    canaries.search_all("the database, at rest", &readers::database(&house.ground));
    canaries.search_all(
        "a file of the server, at rest",
        &readers::files(house.server.directory()),
    );
}

/// Uses every kind of secret in every way there is, the wrong ones included; gives the reservation that has one.
async fn plant(house: &House, canaries: &mut Canaries) -> String {
    let House { http, world, .. } = house;
    let (root, ada) = (world.who("root"), world.who("ada"));
    canaries.keep("everybody's password", PASSWORD);
    for token in ["root", "ada", "revoked", "expired"] {
        canaries.keep("an API token", world.token(token));
    }

    // A person with a password, who signs in with it, and mistakes it.
    let password = canaries.plant("a first password");
    let body = json!({"login": "carla", "display_name": "Carla", "password": password});
    http.make(&root, "/people", &body).await;
    let carla = http.sign_in("carla", &password).await;
    if let Who::Browser { cookie, csrf } = &carla {
        canaries.keep("a session", cookie.split('=').nth(1).expect("a value"));
        canaries.keep("a page's token", csrf.as_deref().expect("a token"));
    }
    let guess = canaries.plant("a guessed password");
    let wrong = http
        .post(
            &Who::Nobody,
            "/sign-in",
            &json!({"login": "carla", "password": guess}),
        )
        .await;
    canaries.search("a refused sign-in", &wrong.expect(401).text);
    let (mistaken, next) = (
        canaries.plant("a mistaken password"),
        canaries.plant("a second password"),
    );
    let wrong = http
        .post(
            &carla,
            "/me/password",
            &json!({"current": mistaken, "new": next}),
        )
        .await;
    canaries.search("a refused change", &wrong.expect(422).text);
    let change = json!({"current": password, "new": next});
    http.post(&carla, "/me/password", &change).await.expect(204);

    // A one-time link, used once, and a made-up one. Shown once, to the admin who made it.
    let link = http
        .post(&root, "/people/carla/reset-link", &json!({}))
        .await
        .expect(200)
        .json();
    let link = link["link"]
        .as_str()
        .and_then(|link| link.split('#').nth(1))
        .expect("a link")
        .to_owned();
    canaries.keep("a reset link", &link);
    let third = canaries.plant("a third password");
    let reset = json!({"token": link, "new_password": third});
    http.post(&Who::Nobody, "/password-reset", &reset)
        .await
        .expect(204);
    let spent = http
        .post(&Who::Nobody, "/password-reset", &reset)
        .await
        .expect(410);
    canaries.search("a spent link", &spent.text);
    let unused = http
        .post(&root, "/people/carla/reset-link", &json!({}))
        .await
        .expect(200)
        .json();
    let unused = unused["link"]
        .as_str()
        .and_then(|link| link.split('#').nth(1))
        .expect("a link")
        .to_owned();
    canaries.keep("an unused reset link", &unused);

    // A token, shown once to its maker; and one in an address, where it does not belong.
    let body = json!({"label": "ci", "scopes": ["read"], "expires_at": tomorrow()});
    let made = http.make(&ada, "/me/tokens", &body).await;
    let token = made["secret"].as_str().expect("a secret").to_owned();
    canaries.keep("a fresh API token", &token);
    http.get(&Who::Nobody, &format!("/me?access_token={token}"))
        .await
        .expect(401);
    let basic = http
        .request(&Who::Nobody, "GET", "/me")
        .basic_auth("ada", Some(canaries.plant("a basic password")));
    http.send(basic).await.expect(401);

    wrongly_typed(http, canaries, &ada).await;
    book(http, canaries, &ada).await
}

/// Secrets in requests that cannot be read: what is wrong is said without repeating it.
async fn wrongly_typed(http: &Http, canaries: &mut Canaries, ada: &Who) {
    let secret = canaries.plant("a secret in the wrong place");
    for (path, body) in [
        ("/sign-in", json!({"login": "ada", "password": [secret]})),
        (
            "/sign-in",
            json!({"login": "ada", "password": secret, "otp": 1}),
        ),
        ("/sign-in", json!({"login": 1, "password": secret})),
        ("/me/password", json!({"current": secret})),
        (
            "/me/password",
            json!({"current": secret, "new": {"password": secret}}),
        ),
        (
            "/password-reset",
            json!({"token": secret, "new_password": 12}),
        ),
    ] {
        let answer = http.post(ada, path, &body).await;
        assert!(matches!(answer.status, 400 | 422), "{path}: {answer:?}");
        canaries.search(&format!("the answer of {path} to {body}"), &answer.text);
    }
    let cut = format!("{{\"login\": \"ada\", \"password\": \"{secret}\", ");
    let request = http
        .request(ada, "POST", "/sign-in")
        .header("content-type", "application/json");
    let answer = http.send(request.body(cut)).await.expect(400);
    canaries.search("the answer to half a request", &answer.text);
}

/// Reservations with a secret parameter: given, refused, replaced, and forgotten with its reservation.
async fn book(http: &Http, canaries: &mut Canaries, ada: &Who) -> String {
    let path = "/sites/torino/reservations";
    let body = |secret: &str, hours: i64| {
        json!({
            "title": "with a secret", "start": after(hours), "end": after(hours + 1),
            "resources": [{"resource": "gpu-01"}],
            "parameters": {"server": {"image": "debian", "root-password": secret}},
        })
    };
    let made = http
        .make(ada, path, &body(&canaries.plant("a parameter"), 24))
        .await;
    let id = made["id"].as_str().expect("an id").to_owned();
    canaries.search("the answer to a booking", &made.to_string());
    let conflict = http
        .post(ada, path, &body(&canaries.plant("a refused parameter"), 24))
        .await;
    canaries.search("a refused booking", &conflict.expect(409).text);
    let tried = http
        .post(
            ada,
            &format!("{path}?dry_run=true"),
            &body(&canaries.plant("a tried parameter"), 48),
        )
        .await;
    canaries.search("a tried booking", &tried.expect(200).text);
    let mut wrong = body(&canaries.plant("a wrong parameter"), 48);
    wrong["parameters"]["server"]["colour"] = json!("red");
    let wrong = http.post(ada, path, &wrong).await.expect(422);
    canaries.search("a wrong booking", &wrong.text);
    let replaced = json!({"parameters": {"server": {"image": "debian", "root-password": canaries.plant("a new parameter")}}});
    let change = http
        .request(ada, "PATCH", &format!("{path}/{id}"))
        .header("if-match", "*")
        .json(&replaced);
    let changed = http.send(change).await.expect(200);
    canaries.search("a changed booking", &changed.text);
    let over = http
        .make(
            ada,
            path,
            &body(&canaries.plant("a cancelled parameter"), 72),
        )
        .await;
    let over = format!("{path}/{}/cancel", over["id"].as_str().expect("an id"));
    http.post(ada, &over, &json!({})).await.expect(200);
    id
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server runs on the machine's clock"
)]
fn after(hours: i64) -> String {
    (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours)).to_string()
}

fn tomorrow() -> String {
    after(24)
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_locks_an_account_and_a_reset_link_opens_it() {
    let house = House::open(Engine::Sqlite).await;
    let http = &house.http;
    let sign_in = async |login: &str, password: &str| {
        let body = json!({"login": login, "password": password});
        http.post(&Who::Nobody, "/sign-in", &body).await
    };
    // Who has an account cannot be told from who has none, before the lock or after.
    for login in ["ada", "nobody-at-all"] {
        for _ in 0..3 {
            let answer = sign_in(login, "not the password").await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (401, "auth.wrong_credentials")
            );
        }
        let locked = sign_in(login, PASSWORD).await;
        assert_eq!(
            (locked.status, locked.code().as_str()),
            (429, "auth.locked_out"),
            "{login}"
        );
        let wait_s: u64 = locked
            .header("retry-after")
            .and_then(|text| text.parse().ok())
            .expect("a time");
        assert!((1..=15 * 60).contains(&wait_s), "{wait_s}");
    }
    // Others sign in as ever, and a token works on.
    sign_in("root", PASSWORD).await.expect(200);
    http.get(&house.world.who("ada"), "/me").await.expect(200);
    let link = http
        .post(
            &house.world.who("root"),
            "/people/ada/reset-link",
            &json!({}),
        )
        .await
        .expect(200)
        .json();
    let token = link["link"]
        .as_str()
        .and_then(|link| link.split('#').nth(1))
        .expect("a link")
        .to_owned();
    let reset = json!({"token": token, "new_password": "another quiet harbour"});
    http.post(&Who::Nobody, "/password-reset", &reset)
        .await
        .expect(204);
    sign_in("ada", "another quiet harbour").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_ends_at_once_and_everywhere() {
    let house = House::open(Engine::Sqlite).await;
    let House { http, world, .. } = &house;
    let root = world.who("root");

    // A changed password ends the other sessions, and a reset one ends all.
    let (here, there) = (
        http.sign_in("ada", PASSWORD).await,
        http.sign_in("ada", PASSWORD).await,
    );
    let change = json!({"current": PASSWORD, "new": "another quiet harbour"});
    http.post(&here, "/me/password", &change).await.expect(204);
    http.get(&here, "/me").await.expect(200);
    http.get(&there, "/me").await.expect(401);

    // A suspended person is out, by session and by token; restored, the token is good again and the session is not.
    let suspend = async |suspended: bool| {
        let request = http
            .request(&root, "PATCH", "/people/ada")
            .header("if-match", "*");
        http.send(request.json(&json!({"suspended": suspended})))
            .await
            .expect(200)
    };
    suspend(true).await;
    http.get(&here, "/me").await.expect(401);
    http.get(&world.who("ada"), "/me").await.expect(401);
    suspend(false).await;
    http.get(&world.who("ada"), "/me").await.expect(200);
    http.get(&here, "/me").await.expect(401);

    // A revoked token is refused from the next request on, and the stream it opened ends, with the reason.
    let body = json!({"label": "short", "scopes": ["read"], "expires_at": tomorrow()});
    let made = http.make(&world.who("ada"), "/me/tokens", &body).await;
    let (id, secret) = (&made["token"]["id"], &made["secret"]);
    let (id, secret) = (
        id.as_str().expect("an id"),
        secret.as_str().expect("a secret"),
    );
    let mut stream = house
        .client(secret)
        .events_stream(&EventStreamQuery::default())
        .await
        .expect("a stream");
    let revoke = http.request(&world.who("ada"), "DELETE", &format!("/me/tokens/{id}"));
    http.send(revoke).await.expect(204);
    let refused = http.get(&Who::Token(secret.to_owned()), "/me").await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (401, "auth.token_invalid")
    );
    let end = async {
        loop {
            match stream.next().await {
                Some(Ok(event)) => assert_ne!(
                    event.kind.as_str(),
                    "project.created",
                    "heard after the end"
                ),
                Some(Err(error)) => return Some(error),
                None => return None,
            }
        }
    };
    let body = json!({"name": "after-the-end", "title": "After the end"});
    http.make(&root, "/sites/torino/projects", &body).await;
    let end = tokio::time::timeout(SOON, end)
        .await
        .expect("the stream ends");
    assert!(
        end.is_some_and(|error| error.is(Code::AuthSignInRequired)),
        "with a word about why"
    );
}

/// Roles end like tokens do: an open stream follows what its listener may hear now, not what they might once.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_stream_hears_no_more_than_its_listener_may() {
    let house = House::open(Engine::Sqlite).await;
    let House { http, world, .. } = &house;
    let root = world.who("root");
    let promote = async |global_admin: bool| {
        let request = http
            .request(&root, "PATCH", "/people/bea")
            .header("if-match", "*");
        http.send(request.json(&json!({"global_admin": global_admin})))
            .await
            .expect(200)
    };
    promote(true).await;
    let mut streams = Vec::new();
    // One was made a global admin, one is a member: both lose what they are while they listen.
    for token in ["bea", "bob"] {
        let client = house.client(world.token(token));
        streams.push(
            client
                .events_stream(&EventStreamQuery::default())
                .await
                .expect("a stream"),
        );
    }
    promote(false).await;
    let leave = http.request(&root, "DELETE", "/sites/torino/members/bob");
    http.send(leave).await.expect(200);
    let body = json!({"name": "behind-closed-doors", "title": "Behind closed doors"});
    http.make(&root, "/sites/torino/projects", &body).await;
    // Something both may hear ends the wait.
    for person in ["bea", "bob"] {
        let request = http
            .request(&root, "PATCH", &format!("/people/{person}"))
            .header("if-match", "*");
        http.send(request.json(&json!({"display_name": "The end"})))
            .await
            .expect(200);
    }
    for (person, stream) in ["bea", "bob"].iter().zip(&mut streams) {
        loop {
            let next = tokio::time::timeout(SOON, stream.next()).await;
            let event = next
                .expect("an event in time")
                .expect("a stream")
                .expect("an event");
            assert_ne!(event.kind.as_str(), "project.created", "{person} heard it");
            if event.data.to_string().contains("The end") || event.data == Value::Null {
                break;
            }
        }
    }
}

/// What is private to its owner and the admins is to others that a time is taken, wherever they look.
#[tokio::test(flavor = "multi_thread")]
async fn a_private_reservation_is_nobody_else_s_business() {
    let house = House::open(Engine::Sqlite).await;
    let House { http, world, .. } = &house;
    let mut canaries = Canaries::default();
    let body = json!({
        "title": canaries.plant("a private title"), "privacy": "private",
        "start": after(24), "end": after(25), "resources": [{"resource": "gpu-01"}],
    });
    let path = "/sites/torino/reservations";
    let made = http.make(&world.who("ada"), path, &body).await;
    let id = made["id"].as_str().expect("an id").to_owned();
    let wanted = json!({
        "title": "the same time", "start": after(24), "end": after(25), "resources": [{"resource": "rack-a"}],
    });
    let conflict = http
        .post(&world.who("bob"), path, &wanted)
        .await
        .expect(409);
    canaries.search("a refusal", &conflict.text);
    let others = |name: &str| {
        !["root", "adele", "ada"]
            .iter()
            .any(|role| name.ends_with(&format!(" {role}")))
    };
    let mut answers = readers::answers(http, world, &id).await;
    answers.retain(|(name, _)| others(name));
    canaries.search_all("what others are answered", &answers);
}
