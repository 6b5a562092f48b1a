//! The whole system where people meet it: below a path of a host it shares, behind a real reverse proxy that speaks
//! TLS, and, in the second part, speaking TLS itself.

mod certificate;
mod nginx;

use std::net::{IpAddr, Ipv4Addr};

use crate::support::SOON;
use crate::support::ground::Ground;
use crate::support::http::{Http, Who};
use crate::support::world::{PASSWORD, World};
use berth_api::client::{Client, Credential};
use berth_api::events::EventStreamQuery;
use berth_store::Engine;
use berth_testkit::port;
use berth_testkit::server::{BerthServer, Ready};
use certificate::Certificate;
use futures::StreamExt;
use nginx::Nginx;
use serde_json::{Value, json};

const BASE: &str = "/lab/berth";
/// A client that is not the proxy: everything on 127.0.0.0/8 is this machine, and only one address of it is trusted.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

struct Shared {
    certificate: Certificate,
    world: World,
    server: BerthServer,
    /// Where people reach it, without the path.
    origin: String,
    _nginx: Nginx,
    _ground: Ground,
}

impl Shared {
    async fn start() -> Self {
        let ground = Ground::new(Engine::Sqlite).await;
        let world = World::build(&ground.url).await;
        let certificate = Certificate::make();
        let port = port::free();
        let origin = format!("https://127.0.0.1:{port}");
        let mut launch = ground.launch(&format!(
            "base_path = \"{BASE}\"\npublic_url = \"{origin}\"\ntrusted_proxies = [\"127.0.0.1\"]\nrate_limit_per_s = 0"
        ));
        launch.ready = Ready::Path(format!("{BASE}/readyz"));
        let server = launch.start().await.expect("the server");
        let nginx = Nginx::start(port, &certificate, BASE, server.port()).await;
        Self {
            certificate,
            world,
            server,
            origin,
            _nginx: nginx,
            _ground: ground,
        }
    }

    fn address(&self) -> String {
        format!("{}{BASE}", self.origin)
    }

    /// A client somewhere else, who comes by the proxy.
    fn visitor(&self) -> Http {
        let client = self.certificate.trusting().local_address(CLIENT).build();
        Http::with(client.expect("a client"), &self.address())
    }

    /// The latest audit entry of this action.
    async fn audited(&self, action: &str) -> Value {
        let root = self.world.who("root");
        let direct = Http::new(&self.server.url(BASE));
        berth_testkit::wait::some("the audit entry", SOON, async || {
            let entries = direct.get(&root, "/audit").await.expect(200).json();
            let entries = entries["items"].as_array().expect("entries").clone();
            entries.into_iter().find(|entry| entry["action"] == action)
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn below_a_path_behind_a_proxy() {
    let shared = Shared::start().await;
    cookies_are_bound_to_the_path(&shared).await;
    every_link_stands_below_the_path(&shared).await;
    the_client_s_address_is_the_proxy_s_word(&shared).await;
    events_come_through_as_they_happen(&shared).await;
}

async fn cookies_are_bound_to_the_path(shared: &Shared) {
    let visitor = shared.visitor();
    let body = json!({"login": "ada", "password": PASSWORD});
    let answer = visitor
        .post(&Who::Nobody, "/sign-in", &body)
        .await
        .expect(200);
    let cookie = answer.header("set-cookie").expect("a cookie");
    let (pair, attributes) = cookie.split_once("; ").expect("attributes");
    assert!(pair.starts_with("berth_session="), "{pair}");
    let mut attributes: Vec<&str> = attributes.split("; ").collect();
    attributes.retain(|attribute| !attribute.starts_with("Max-Age="));
    assert_eq!(
        attributes,
        ["HttpOnly", "SameSite=Lax", "Path=/lab/berth", "Secure"]
    );

    // Berth's own page, as the browser names its origin; and a page from elsewhere that somehow has the token.
    let ada = visitor.sign_in("ada", PASSWORD).await;
    for (origin, expected) in [(shared.origin.as_str(), 200), ("https://evil.example", 403)] {
        let change = visitor
            .request(&ada, "PATCH", "/me")
            .header("origin", origin);
        let change = change.json(&json!({"display_name": "Ada"}));
        assert_eq!(visitor.send(change).await.status, expected, "{origin}");
    }
    visitor
        .post(&ada, "/sign-out", &json!({}))
        .await
        .expect(204);
    visitor.get(&ada, "/me").await.expect(401);
}

async fn every_link_stands_below_the_path(shared: &Shared) {
    let visitor = shared.visitor();
    for page in [
        "/welcome",
        "/docs",
        "/docs/guides",
        "/docs/desk",
        "/docs/errors",
        "/docs/errors/reservation.conflict",
    ] {
        let address = format!("{}{page}", shared.address());
        let answer = visitor
            .client
            .get(&address)
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), 200, "{page}");
        assert!(
            answer.headers().contains_key("strict-transport-security"),
            "{page}"
        );
        let text = answer.text().await.expect("a page");
        let links: Vec<&str> = text
            .split("href=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .filter(|link| !link.starts_with('#'))
            .collect();
        assert!(!links.is_empty(), "{page}");
        for link in links {
            assert!(link.starts_with(BASE), "{page} leads to {link}");
            let target = format!("{}{link}", shared.origin);
            let target = visitor.client.get(target).send().await.expect("an answer");
            assert_eq!(target.status(), 200, "{page} leads to {link}");
        }
    }
    let document = visitor
        .get(&Who::Nobody, "/openapi.json")
        .await
        .expect(200)
        .json();
    assert_eq!(
        document["servers"][0]["url"],
        format!("{}/api/v1", shared.address())
    );
    let problem = visitor.get(&Who::Nobody, "/me").await.expect(401).json();
    let page = format!("{}/docs/errors/auth.sign_in_required", shared.address());
    assert_eq!(problem["type"], page);

    // What was made says where it is, and there it is.
    let root = shared.world.who("root");
    let body = json!({"name": "moved-in", "title": "Moved in"});
    let made = visitor
        .post(&root, "/sites/torino/projects", &body)
        .await
        .expect(201);
    let location = made.header("location").expect("a location");
    assert!(location.starts_with(BASE), "{location}");
    let address = format!("{}{location}", shared.origin);
    let found = visitor
        .client
        .get(address)
        .bearer_auth(shared.world.token("root"));
    assert_eq!(visitor.send(found).await.expect(200).json(), made.json());

    // Outside its path there is nothing of it.
    let outside = format!("{}/api/v1/me", shared.origin);
    let outside = visitor
        .client
        .get(outside)
        .send()
        .await
        .expect("nginx answers");
    assert_eq!(outside.status(), 404);
    let direct = shared.server.url("/api/v1/me");
    let direct = reqwest::get(direct).await.expect("an answer");
    assert_eq!(direct.status(), 404);
}

async fn the_client_s_address_is_the_proxy_s_word(shared: &Shared) {
    // By the proxy, with a forged hop before it: the proxy's own word stands.
    let visitor = shared.visitor();
    let forged = "203.0.113.9";
    let sign_in = |http: &Http| {
        let body = json!({"login": "root", "password": PASSWORD});
        let request = http.request(&Who::Nobody, "POST", "/sign-in").json(&body);
        request.header("x-forwarded-for", forged)
    };
    visitor.send(sign_in(&visitor)).await.expect(200);
    assert_eq!(
        shared.audited("session.start").await["origin"],
        CLIENT.to_string()
    );

    // Past the proxy, from an address that is not trusted: the forged header is worth nothing.
    let client = reqwest::Client::builder()
        .no_proxy()
        .local_address(CLIENT)
        .build();
    let stranger = Http::with(client.expect("a client"), &shared.server.url(BASE));
    let body = json!({"display_name": "Root"});
    let change = stranger
        .request(&shared.world.who("root"), "PATCH", "/me")
        .json(&body);
    let change = change.header("x-forwarded-for", forged);
    stranger.send(change).await.expect(200);
    let origin = shared.audited("person.change").await["origin"].clone();
    let origin = origin.as_str().expect("an origin").to_owned();
    assert!(origin.starts_with(&format!("{CLIENT} ")), "{origin}");
}

/// Without any setting of the proxy for it: the answer itself says that it must not be held back.
async fn events_come_through_as_they_happen(shared: &Shared) {
    let token = Credential::Token(shared.world.token("root").into());
    let client = Client::trusting(&shared.address(), token, &shared.certificate.pem);
    let client = client.expect("a client");
    let mut stream = client
        .events_stream(&EventStreamQuery::default())
        .await
        .expect("a stream");
    let visitor = shared.visitor();
    for number in 0..3 {
        let body = json!({"name": format!("heard-{number}"), "title": "Heard"});
        let root = shared.world.who("root");
        let made = visitor.make(&root, "/sites/torino/projects", &body).await;
        loop {
            let next = tokio::time::timeout(SOON, stream.next()).await;
            let event = next
                .expect("an event in time")
                .expect("a stream")
                .expect("an event");
            if event.subject == made["id"].as_str().expect("an id") {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_certificate_of_its_own() {
    let ground = Ground::new(Engine::Sqlite).await;
    let world = World::build(&ground.url).await;
    let certificate = Certificate::make();
    let mut launch = ground.launch(&format!(
        "tls_certificate = \"{}\"\ntls_key = \"{}\"",
        certificate.certificate_file().display(),
        certificate.key_file().display()
    ));
    launch.ready = Ready::Listening;
    let mut server = launch.start().await.expect("the server");
    let address = format!("https://127.0.0.1:{}", server.port());
    let client = certificate.trusting().build().expect("a client");
    let http = Http::with(client, &address);

    // Over HTTPS at the root of a host the cookie is bound to the host, and nothing is said in the clear again.
    let body = json!({"login": "ada", "password": PASSWORD});
    let answer = http.post(&Who::Nobody, "/sign-in", &body).await.expect(200);
    let cookie = answer.header("set-cookie").expect("a cookie");
    assert!(cookie.starts_with("__Host-berth_session="), "{cookie}");
    assert!(
        cookie.contains("; Path=/;") && cookie.ends_with("; Secure"),
        "{cookie}"
    );
    assert!(answer.header("strict-transport-security").is_some());
    let ada = http.sign_in("ada", PASSWORD).await;
    http.get(&ada, "/me").await.expect(200);

    // Both versions of HTTP, and the typed client that the command line uses.
    let me = http
        .request(&world.who("ada"), "GET", "/me")
        .send()
        .await
        .expect("an answer");
    assert_eq!(me.version(), reqwest::Version::HTTP_2);
    let old = certificate
        .trusting()
        .http1_only()
        .build()
        .expect("a client");
    let old = Http::with(old, &address).request(&world.who("ada"), "GET", "/me");
    let old = old.send().await.expect("an answer");
    assert_eq!(
        (old.version(), old.status().as_u16()),
        (reqwest::Version::HTTP_11, 200)
    );
    let token = Credential::Token(world.token("ada").into());
    let typed = Client::trusting(&address, token, &certificate.pem).expect("a client");
    assert_eq!(
        typed.me().await.expect("an answer").person.login.as_str(),
        "ada"
    );

    // Whoever speaks plainly, or trusts other certificates, gets no answer; and the server stays well.
    reqwest::get(server.url("/healthz"))
        .await
        .expect_err("this port speaks TLS");
    let stranger = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .build();
    let stranger = stranger
        .expect("a client")
        .get(format!("{address}/healthz"))
        .send()
        .await;
    stranger.expect_err("nobody vouches for this certificate");
    http.get(&ada, "/me").await.expect(200);
    assert!(server.stop().await.expect("an orderly stop").success());
}
