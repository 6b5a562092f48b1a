//! Secrets stay secret: planted, used, and then looked for in everything that anybody can read, and in the raw bytes
//! of the database. And they end when they are told to.

mod canaries;
mod older;
mod planting;
mod readers;

use crate::support::SOON;
use crate::support::ground::Ground;
use crate::support::http::{Http, Who};
use crate::support::world::{PASSWORD, World};
use berth_api::Code;
use berth_api::client::{Client, Credential};
use berth_api::events::EventStreamQuery;
use berth_store::Engine;
use berth_testkit::server::BerthServer;
use canaries::Canaries;
use futures::StreamExt;
use planting::{WORKLOADS, after, plant, tomorrow, work};
use serde_json::{Value, json};

struct House {
    ground: Ground,
    world: World,
    server: BerthServer,
    http: Http,
}

impl House {
    /// Logs much more than anybody would in earnest: what is careful then is careful always.
    async fn open(engine: Engine) -> Self {
        Self::with(engine, "").await
    }

    async fn with(engine: Engine, config: &str) -> Self {
        let ground = Ground::new(engine).await;
        let world = World::build(&ground.url).await;
        let careless = "rate_limit_per_s = 0\nsign_in_attempts_max = 3\nlog_filter = \"debug\"";
        let config = format!("{careless}\n{config}");
        let server = ground.launch(&config).start().await.expect("the server");
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
    let reservation = plant(&house.http, &house.world, &mut canaries).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn variables_of_an_older_version_are_sealed_on_sqlite() {
    seal_older_variables(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_of_an_older_version_are_sealed_on_postgres() {
    seal_older_variables(Engine::Postgres).await;
}

async fn seal_older_variables(engine: Engine) {
    let mut house = House::open(engine).await;
    let mut canaries = Canaries::default();
    let ada = house.world.who("ada");
    let submitted = work("submitted with another");
    let made = house.http.make(&ada, WORKLOADS, &submitted).await;
    let path = format!("{WORKLOADS}/{}", made["number"]);
    house.server.stop().await.expect("stop");
    let secret = canaries.plant("a variable of an older version");
    older::put_in_clear(&house.ground, &secret).await;
    let found = readers::database(&house.ground);
    let is_found = std::panic::catch_unwind(|| canaries.search_all("the older database", &found));
    assert!(is_found.is_err(), "it was in clear");
    house.server.restart().await.expect("start");
    older::until_sealed(&house.ground).await;
    let read = house.http.get(&ada, &path).await.expect(200).json();
    assert_eq!(read["program"]["environment"]["WANDB_API_KEY"], secret);
    let read = house.http.get(&house.world.who("adele"), &path).await;
    canaries.search("what an admin reads", &read.text);
    house.server.stop().await.expect("stop");
    older::vacuum(&house.ground).await;
    canaries.search_all("the database", &readers::database(&house.ground));
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_that_come_together_are_counted_on_sqlite() {
    guess_together(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_that_come_together_are_counted_on_postgres() {
    guess_together(Engine::Postgres).await;
}

/// An attempt that is locked out is refused before anything is hashed, so as many are tried as are not.
async fn guess_together(engine: Engine) {
    let house = House::open(engine).await;
    let mut guesses = tokio::task::JoinSet::new();
    for guess in 0..60 {
        let http = house.http.clone();
        guesses.spawn(async move {
            let body = json!({"login": "bob", "password": format!("guess {guess}")});
            http.post(&Who::Nobody, "/sign-in", &body).await.code()
        });
    }
    let codes = guesses.join_all().await;
    let tried = codes
        .iter()
        .filter(|code| *code == "auth.wrong_credentials")
        .count();
    let refused = codes
        .iter()
        .filter(|code| *code == "auth.locked_out")
        .count();
    assert_eq!((tried, refused), (3, 57));
    // The same count holds for somebody who is signed in and guesses their own password.
    let ada = house.http.sign_in("ada", PASSWORD).await;
    let change = json!({"current": "a guess", "new": "another quiet harbour"});
    for status in [422, 422, 422, 429] {
        house
            .http
            .post(&ada, "/me/password", &change)
            .await
            .expect(status);
    }
    // A global admin signed in from here before, so nobody locks them out of here.
    let root = house.http.sign_in("root", PASSWORD).await;
    let wrong = json!({"login": "root", "password": "a guess"});
    for _ in 0..5 {
        house
            .http
            .post(&Who::Nobody, "/sign-in", &wrong)
            .await
            .expect(401);
    }
    house.http.get(&root, "/me").await.expect(200);
    house.http.sign_in("root", PASSWORD).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_are_counted_by_login_and_by_network_on_sqlite() {
    guess_from_everywhere(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_are_counted_by_login_and_by_network_on_postgres() {
    guess_from_everywhere(Engine::Postgres).await;
}

async fn guess_from_everywhere(engine: Engine) {
    let config = "trusted_proxies = [\"127.0.0.1\"]\nsign_in_attempts_login_max = 5\n\
                  sign_in_attempts_network_max = 7";
    let house = House::with(engine, config).await;
    let sign_in = async |network: u8, login: &str, password: &str| {
        let request = house.http.request(&Who::Nobody, "POST", "/sign-in");
        let request = request.header("x-forwarded-for", format!("203.0.113.{network}"));
        let request = request.json(&json!({"login": login, "password": password}));
        let answer = house.http.send(request).await;
        (answer.status, answer.code())
    };
    let wrong = (401, "auth.wrong_credentials".to_owned());
    let locked = (429, "auth.locked_out".to_owned());
    let good = (200, String::new());
    // Of one login, five from all networks, and three from each.
    for (network, expected) in [
        (1, &wrong),
        (1, &wrong),
        (1, &wrong),
        (1, &locked),
        (2, &wrong),
        (2, &wrong),
        (2, &locked),
        (3, &locked),
    ] {
        assert_eq!(
            sign_in(network, "bob", "a guess").await,
            *expected,
            "{network}"
        );
    }
    assert_eq!(sign_in(3, "bob", PASSWORD).await, locked);
    assert_eq!(sign_in(3, "ada", PASSWORD).await, good, "another login");
    // Of one network, seven for all logins.
    for guess in 0..7 {
        let login = format!("nobody-{guess}");
        assert_eq!(sign_in(4, &login, "a guess").await, wrong);
    }
    assert_eq!(sign_in(4, "ada", PASSWORD).await, locked);
    assert_eq!(sign_in(5, "ada", PASSWORD).await, good, "another network");
    // Somebody who becomes a global admin later keeps the networks that they used before.
    assert_eq!(sign_in(6, "ada", PASSWORD).await, good);
    let root = house.world.who("root");
    let promote = house.http.request(&root, "PATCH", "/people/ada");
    let promote = promote.header("if-match", "*");
    let promote = promote.json(&json!({"global_admin": true}));
    house.http.send(promote).await.expect(200);
    for network in [7, 7, 7, 8, 8] {
        assert_eq!(sign_in(network, "ada", "a guess").await, wrong);
    }
    assert_eq!(sign_in(9, "ada", PASSWORD).await, locked, "a new network");
    assert_eq!(
        sign_in(6, "ada", PASSWORD).await,
        good,
        "one that she used before"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_can_revoke_tokens_and_a_reset_does_on_sqlite() {
    set_passwords(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_can_revoke_tokens_and_a_reset_does_on_postgres() {
    set_passwords(Engine::Postgres).await;
}

async fn set_passwords(engine: Engine) {
    let house = House::open(engine).await;
    let http = &house.http;
    let (token, new) = (house.world.who("ada"), "another quiet harbour");
    let browser = http.sign_in("ada", PASSWORD).await;
    let change = json!({"current": PASSWORD, "new": new});
    http.post(&browser, "/me/password", &change)
        .await
        .expect(204);
    http.get(&token, "/me").await.expect(200);
    let change = json!({"current": new, "new": PASSWORD, "revoke_tokens": true});
    http.post(&browser, "/me/password", &change)
        .await
        .expect(204);
    http.get(&token, "/me").await.expect(401);
    http.get(&browser, "/me").await.expect(200);
    let token = house.world.who("bob");
    http.get(&token, "/me").await.expect(200);
    let root = house.world.who("root");
    let link = http.post(&root, "/people/bob/reset-link", &json!({})).await;
    let link = link.expect(200).json()["link"].to_string();
    let secret = link.trim_matches('"').rsplit_once('#').expect("a secret").1;
    let reset = json!({"token": secret, "new_password": new});
    http.post(&Who::Nobody, "/password-reset", &reset)
        .await
        .expect(204);
    http.get(&token, "/me").await.expect(401);
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
