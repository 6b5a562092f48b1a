//! The OpenAPI document fuzzed with schemathesis: whatever is sent, the server does not fail, and answers only what
//! the document says.
//!
//! `BERTH_FUZZ_SEED` repeats a run and `BERTH_FUZZ_EXAMPLES` makes it longer; both are printed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::Command;

use crate::support::ground::Ground;
use crate::support::http::Http;
use crate::support::world::World;
use berth_store::Engine;
use berth_testkit::server::BerthServer;
use berth_testkit::tool;
use serde_json::{Value, json};

/// Would end the run itself if they met its own account or token, or took away the site that all the others work in.
/// They are fuzzed apart from the rest, with names that are not its own.
const SUICIDAL: [&str; 5] = [
    "apply_site",
    "change_person",
    "remove_person",
    "revoke_my_token",
    "revoke_token_of_person",
];
/// Has no end, so no fuzzer can read its answer; `matrix.rs` and `two_servers.rs` open it.
const ENDLESS: &str = "stream_events";
/// What anybody may ask.
const PUBLIC: [&str; 3] = ["/about", "/sign-in", "/password-reset"];

/// All that schemathesis knows to look for, but for four. A create may refuse what its schema allows (a name that is
/// taken, a time that has passed), a missing `If-Match` is answered with 428 as RFC 6585 has it and not with 400, and
/// who may do what is for `matrix.rs` to show.
const CHECKS: [&str; 10] = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
    "ensure_resource_availability",
];

/// Values without which little more than refusals would be seen.
const USEFUL: &str = r#"
[dictionaries]
version = { values = ["*"] }
start = { values = ["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"] }
end = { values = ["2027-01-15T00:00:00Z", "2027-02-01T00:00:00Z"] }
[parameters]
"header.If-Match" = { dictionary = "version", probability = 0.7 }
"query.from" = { dictionary = "start", probability = 0.6 }
"query.to" = { dictionary = "end", probability = 0.6 }
"#;

struct Fuzzer {
    server: BerthServer,
    folder: tempfile::TempDir,
    world: World,
    http: Http,
    seed: u64,
    examples: u64,
    _ground: Ground,
}

fn setting(name: &str, otherwise: u64) -> u64 {
    let set = std::env::var(name).ok().and_then(|text| text.parse().ok());
    set.unwrap_or(otherwise)
}

impl Fuzzer {
    async fn new() -> Self {
        let ground = Ground::new(Engine::Sqlite).await;
        let world = World::build(&ground.url).await;
        let config = "rate_limit_per_s = 0\nsign_in_attempts_max = 1000\nsign_in_attempts_login_max = 10000\n\
                      sign_in_attempts_network_max = 100000";
        let server = ground.launch(config).start().await.expect("the server");
        let random = RandomState::new().hash_one(0) % 1_000_000_000;
        let (seed, examples) = (
            setting("BERTH_FUZZ_SEED", random),
            setting("BERTH_FUZZ_EXAMPLES", 12),
        );
        eprintln!("BERTH_FUZZ_SEED={seed} BERTH_FUZZ_EXAMPLES={examples}");
        let fuzzer = Self {
            http: Http::new(&server.url("")),
            folder: tempfile::tempdir().expect("a directory"),
            server,
            world,
            seed,
            examples,
            _ground: ground,
        };
        fuzzer.write_dictionaries().await;
        fuzzer
    }

    /// Ids that exist, for most of the values in paths: made-up ones would hardly get past the door. No names, since
    /// the fuzzer changes them.
    async fn write_dictionaries(&self) {
        let mut config = String::new();
        let mut bindings = USEFUL.to_owned();
        for (parameter, values) in self.dictionaries().await {
            writeln!(config, "[dictionaries.{parameter}]\nvalues = {values:?}").expect("text");
            let binding = format!("{{ dictionary = \"{parameter}\", probability = 0.8 }}");
            writeln!(bindings, "\"path.{parameter}\" = {binding}").expect("text");
        }
        let file = self.folder.path().join("schemathesis.toml");
        fs::write(file, config + &bindings).expect("write the configuration");
    }

    async fn dictionaries(&self) -> BTreeMap<&'static str, Vec<String>> {
        let (root, ada) = (self.world.who("root"), self.world.who("ada"));
        let site = format!("/sites/{}", self.world.torino);
        let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for number in 0..6 {
            let (start, end) = (in_hours(24 + 3 * number), in_hours(25 + 3 * number));
            let wanted = |what: Value| json!({"title": "r", "start": start, "end": end, "resources": [what]});
            for (who, parameter, path, body) in [
                (
                    &root,
                    "project",
                    "projects",
                    json!({"name": format!("p{number}"), "title": "P"}),
                ),
                (
                    &ada,
                    "reservation",
                    "reservations",
                    wanted(json!({"resource": "vault-01"})),
                ),
                (
                    &ada,
                    "reservation",
                    "reservations",
                    wanted(json!({"resource": "gpu-02"})),
                ),
                (&root, "window", "maintenance", wanted(json!("press"))),
                (
                    &root,
                    "closure",
                    "closures",
                    json!({"name": format!("c{number}"), "kind": "holidays",
                        "file": "BEGIN:VCALENDAR\nEND:VCALENDAR"}),
                ),
            ] {
                let object = self.http.make(who, &format!("{site}/{path}"), &body).await;
                found.entry(parameter).or_default().extend(id(&object));
            }
        }
        for (parameter, path) in [("kind", "types"), ("resource", "resources")] {
            let list = self
                .http
                .get(&root, &format!("{site}/{path}"))
                .await
                .expect(200)
                .json();
            let ids = list["items"]
                .as_array()
                .expect("items")
                .iter()
                .filter_map(id);
            found.entry(parameter).or_default().extend(ids);
        }
        let people = ["ada", "bob", "bea", "waiting-1", "waiting-2"];
        found.insert("person", people.map(|login| self.world.id(login)).to_vec());
        found.insert(
            "site",
            vec![
                self.world.torino.clone(),
                self.world.torino.clone(),
                self.world.bologna.clone(),
            ],
        );
        found.insert("request", self.world.waiting.clone());
        found
    }

    /// Runs schemathesis against the server.
    ///
    /// # Panics
    /// If it finds anything; with all it has to say about it.
    fn run(&self, more: &[&str]) {
        let mut command = Command::new(tool::schemathesis().expect("schemathesis"));
        command
            .arg("run")
            .arg(self.server.url("/api/v1/openapi.json"))
            .args(["--seed", &self.seed.to_string()])
            .args(["--max-examples", &self.examples.to_string()])
            .args([
                // Two workers meet a fault of CPython 3.11 when both compile at a time.
                "--workers",
                "1",
                "--warnings",
                "off",
                "--continue-on-failure",
            ])
            .args(["--exclude-operation-id", ENDLESS])
            .args(more)
            // It finds its configuration, and keeps what failed, where it is started.
            .current_dir(self.folder.path());
        let output = command.output().expect("run schemathesis");
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}{complained}");
        eprintln!(
            "{}",
            said.lines().rev().take(12).collect::<Vec<_>>().join("\n")
        );
    }
}

fn id(object: &Value) -> Option<String> {
    object["id"].as_str().map(str::to_owned)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server runs on the machine's clock"
)]
fn in_hours(hours: i64) -> String {
    (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours)).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_an_admin_sends_is_answered_as_documented() {
    let fuzzer = Fuzzer::new().await;
    let header = format!("Authorization: Bearer {}", fuzzer.world.token("root"));
    let checks = CHECKS.join(",");
    let common = ["--header", &header, "--checks", &checks];
    let mut rest = common.to_vec();
    rest.extend(
        SUICIDAL
            .iter()
            .flat_map(|id| ["--exclude-operation-id", id]),
    );
    fuzzer.run(&rest);
    // Without the phase that follows what it was answered, and so might come to its own account.
    let mut suicidal = common.to_vec();
    suicidal.extend(
        SUICIDAL
            .iter()
            .flat_map(|id| ["--include-operation-id", id]),
    );
    suicidal.extend(["--phases", "examples,coverage,fuzzing"]);
    fuzzer.run(&suicidal);

    // The run has not locked itself out half-way, and the server has nothing to be ashamed of.
    fuzzer
        .http
        .get(&fuzzer.world.who("root"), "/me")
        .await
        .expect(200);
    let log = fuzzer.server.log();
    let shame = log
        .lines()
        .filter(|line| line.contains(" ERROR ") || line.contains("panicked"));
    assert_eq!(shame.collect::<Vec<_>>(), Vec::<&str>::new());
    // Refusing everything would pass as well; so see that most of it was done at least once.
    let done: BTreeSet<String> = log.lines().filter_map(successful).collect();
    assert!(
        done.len() >= 45,
        "only {} operations had success: {done:#?}",
        done.len()
    );
}

/// Method and route of a request that was met, as the server's log has them.
fn successful(line: &str) -> Option<String> {
    let (_, line) = line.split_once("observe: ")?;
    let mut words = line.split(' ');
    let (method, _path, status) = (words.next()?, words.next()?, words.next()?);
    let route = words.find_map(|word| word.strip_prefix("request.route="))?;
    let is_met = status.starts_with('2') && route.contains("/api/");
    is_met.then(|| format!("{method} {route}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_stranger_sends_they_are_asked_to_sign_in() {
    let fuzzer = Fuzzer::new().await;
    let report = fuzzer.folder.path().join("strangers.har");
    let file = report.display().to_string();
    let checks = CHECKS[..5].join(",");
    let phases = ["--checks", &checks, "--phases", "examples,coverage,fuzzing"];
    fuzzer.run(&[phases.as_slice(), &["--report-har-path", &file]].concat());

    let entries = entries(&report);
    assert!(
        entries.len() > 500,
        "only {} requests were sent",
        entries.len()
    );
    let let_in = entries.iter().filter(|entry| {
        let is_public = PUBLIC
            .iter()
            .any(|path| url(entry).contains(&format!("/api/v1{path}")));
        // A method that the API does not have is refused whoever asks.
        !is_public && !matches!(entry["response"]["status"].as_u64(), Some(401 | 405))
    });
    let let_in: Vec<String> = let_in
        .map(|entry| {
            format!(
                "{} {}: {}",
                entry["request"]["method"],
                url(entry),
                entry["response"]["status"]
            )
        })
        .collect();
    assert!(let_in.is_empty(), "{let_in:#?}");
}

/// Every request that was sent, with its answer.
fn entries(report: &Path) -> Vec<Value> {
    let text = fs::read_to_string(report).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("a HAR file");
    report["log"]["entries"]
        .as_array()
        .expect("entries")
        .clone()
}

fn url(entry: &Value) -> &str {
    entry["request"]["url"].as_str().unwrap_or_default()
}
