//! Every kind of secret, used in every way there is.

use serde_json::{Value, json};

use super::canaries::Canaries;
use crate::support::http::{Http, Who};
use crate::support::world::{PASSWORD, World};

/// Uses every kind of secret in every way there is, the wrong ones included; gives the reservation that has one.
pub async fn plant(http: &Http, world: &World, canaries: &mut Canaries) -> String {
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

    subscribe(http, canaries, &ada).await;
    wrongly_typed(http, canaries, &ada).await;
    submit(http, world, canaries).await;
    book(http, canaries, &ada).await
}

/// A feed's address, read as calendar programs do, misspelt, and read again after it was revoked; and the address of
/// a closure calendar, which is the institution's to keep.
async fn subscribe(http: &Http, canaries: &mut Canaries, ada: &Who) {
    let made = http
        .make(ada, "/me/feeds", &json!({"label": "phone"}))
        .await;
    let path = made["address"].as_str().expect("an address");
    let secret = path
        .strip_prefix("/feeds/")
        .and_then(|file| file.strip_suffix(".ics"))
        .expect("a path on the server's host");
    canaries.keep("a feed's address", secret);
    let root = http.base.trim_end_matches(berth_api::paths::API);
    let read = async |path: String| http.send(http.client.get(format!("{root}{path}"))).await;
    let feed = read(path.to_owned()).await.expect(200);
    canaries.search("the feed itself", &feed.text);
    for misspelt in [
        format!("{path}/"),
        format!("{path}x"),
        format!("/lab{path}"),
        path.replace(".ics", ""),
    ] {
        canaries.search("a misspelt feed", &read(misspelt).await.expect(404).text);
    }
    let id = made["feed"]["id"].as_str().expect("an id");
    let revoke = http.request(ada, "DELETE", &format!("/me/feeds/{id}"));
    http.send(revoke).await.expect(204);
    canaries.search(
        "a revoked feed",
        &read(path.to_owned()).await.expect(404).text,
    );
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

pub const WORKLOADS: &str = "/sites/torino/workloads";

/// Work with a secret among its environment variables.
pub fn work(secret: &str) -> Value {
    json!({
        "title": "with a secret",
        "wishes": [{"task": {"cores_milli": 1000, "memory_mib": 1024}, "limit": "PT1H"}],
        "program": {"command": ["true"], "environment": {"WANDB_API_KEY": secret}},
    })
}

/// Environment variables of workloads: their owner reads them back, and nothing else has them.
async fn submit(http: &Http, world: &World, canaries: &mut Canaries) {
    let ada = world.who("ada");
    let repeated = |key: &str, path: &str, body: Value| {
        let request = http.request(&ada, "POST", path).json(&body);
        request.header("idempotency-key", key)
    };
    let tried = work(&canaries.plant("a tried variable"));
    let preview = format!("{WORKLOADS}?dry_run=true");
    let tried = http.post(&ada, &preview, &tried).await.expect(200);
    canaries.search("a tried submission", &tried.text);
    let wrong = canaries.plant("a wrong variable");
    let mut refused = work(&wrong);
    refused["program"]["environment"]["NO NAME"] = json!(wrong);
    let refused = http.post(&ada, WORKLOADS, &refused).await.expect(422);
    canaries.search("a refused submission", &refused.text);
    let (plain, once) = (
        canaries.plant("a variable"),
        canaries.plant("a variable that was submitted once"),
    );
    let made = http.make(&ada, WORKLOADS, &work(&plain)).await;
    canaries.search("the answer to a submission", &made.to_string());
    for status in [201, 200] {
        let made = http.send(repeated("submit", WORKLOADS, work(&once))).await;
        canaries.search("the answer to a submission", &made.expect(status).text);
    }
    let own = format!("{WORKLOADS}/{}", made["number"]);
    let read = http.get(&ada, &own).await.expect(200).json();
    assert_eq!(read["program"]["environment"]["WANDB_API_KEY"], plain);
    for role in ["root", "adele", "bob", "otto"] {
        let read = http.get(&world.who(role), &own).await;
        canaries.search(&format!("the workload as {role} reads it"), &read.text);
    }
    // The answer of an action is kept for whoever repeats it.
    for act in ["hold", "release", "cancel"] {
        let path = format!("{own}/{act}");
        for _ in 0..2 {
            let done = http.send(repeated(act, &path, json!({}))).await.expect(200);
            canaries.search("the answer to an action", &done.text);
        }
    }
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
pub fn after(hours: i64) -> String {
    (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours)).to_string()
}

pub fn tomorrow() -> String {
    after(24)
}
