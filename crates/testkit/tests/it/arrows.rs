//! Checks the manifests against the dependency arrows between the crates in `docs/architecture.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use berth_testkit::repository;
use serde_json::Value;

/// Every crate and the crates that it may use: all to the left of it in `model <- engine, store, drivers <- app <-
/// server <- berth`, `model <- api <- server, berth` `engine <- sim <- berth`, `slurm <- berth`, `proxy <- server` and
/// `ics <- app, server`.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("ics", &[]),
    ("slurm", &[]),
    ("proxy", &[]),
    ("engine", &["model"]),
    ("sim", &["engine"]),
    ("store", &["model"]),
    ("drivers", &["model"]),
    ("api", &["model"]),
    ("app", &["model", "engine", "ics", "store", "drivers"]),
    (
        "server",
        &["model", "engine", "ics", "store", "app", "api", "proxy"],
    ),
    (
        "berth",
        &[
            "model", "engine", "sim", "slurm", "store", "drivers", "app", "api", "server",
        ],
    ),
    // The benchmarks measure each crate and the whole, so they may use all crates.
    (
        "bench",
        &[
            "model", "engine", "sim", "store", "drivers", "app", "api", "proxy", "server",
            "testkit",
        ],
    ),
    ("testkit", &[]),
];

/// Dependencies that only some crates may have, because the others must not do the work of these dependencies.
const ONLY_IN: &[(&str, &[&str], &str)] = &[
    ("sqlx", &["store", "bench"], "all SQL lives in the store"),
    ("axum", &["server"], "only the server has routes"),
    (
        "hyper",
        &["server", "proxy", "drivers", "bench"],
        "only the server and the proxy speak HTTP, and the drivers to what they run",
    ),
    (
        "reqwest",
        &["api", "server", "bench"],
        "the typed client is the api's, and reading closure calendars the server's",
    ),
    (
        "clap",
        &["berth", "bench"],
        "only the binary has a command line",
    ),
    (
        "anyhow",
        &["berth", "bench", "testkit"],
        "libraries have errors of their own",
    ),
    (
        "tokio",
        &[
            "store", "drivers", "app", "proxy", "server", "berth", "bench", "testkit",
        ],
        "the rest is not async",
    ),
];

/// Crates that must not be in the engine's dependency tree: the engine never uses a database, a socket or a runtime.
const NOT_IN_ENGINE: &[&str] = &[
    "tokio",
    "sqlx",
    "axum",
    "hyper",
    "reqwest",
    "kube",
    "mio",
    "socket2",
    "async-std",
    "smol",
];

/// The workspace's crates and their dependencies, all without the prefix `berth-`. Dev-dependencies do not count,
/// because tests may use any crate.
fn rooms() -> BTreeMap<String, BTreeSet<String>> {
    let text = repository::cargo(["metadata", "--no-deps", "--format-version=1", "--locked"]);
    let metadata: Value = serde_json::from_str(&text.expect("cargo metadata")).expect("its JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().expect("dependencies");
            let uses = dependencies
                .iter()
                .filter(|dependency| dependency["kind"] != "dev")
                .map(|dependency| room_name(&dependency["name"]))
                .collect();
            (room_name(&package["name"]), uses)
        })
        .collect()
}

fn room_name(package: &Value) -> String {
    let name = package.as_str().expect("a name");
    name.strip_prefix("berth-").unwrap_or(name).to_owned()
}

#[test]
fn every_room_uses_only_the_rooms_to_its_left() {
    let rooms = rooms();
    let mut wrong = Vec::new();
    for (name, uses) in &rooms {
        let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| known == name) else {
            wrong.push(format!(
                "{name} is not drawn: add it to this table and docs/architecture.md"
            ));
            continue;
        };
        for used in uses.iter().filter(|used| rooms.contains_key(*used)) {
            if !allowed.contains(&used.as_str()) {
                wrong.push(format!("{name} must not use {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_a_room_is_for_decides_what_it_may_be_built_from() {
    let mut wrong = Vec::new();
    for (name, uses) in rooms() {
        for (dependency, allowed, reason) in ONLY_IN {
            if uses.contains(*dependency) && !allowed.contains(&name.as_str()) {
                wrong.push(format!("{name} must not use {dependency}: {reason}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_engine_alone_compiles_no_database_no_socket_and_no_runtime() {
    let tree = repository::cargo([
        "tree",
        "--package=berth-engine",
        "--edges=normal",
        "--prefix=none",
        "--format={p}",
        "--locked",
    ])
    .expect("cargo tree");
    let crates: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(
        crates.contains("berth-model"),
        "this is not the engine's tree: {crates:?}"
    );
    let wrong: Vec<_> = crates
        .iter()
        .filter(|name| {
            // `sqlx-core` and `kube-client` count as sqlx and kube.
            NOT_IN_ENGINE
                .iter()
                .any(|banned| name.split('-').next() == Some(banned) || *name == banned)
        })
        .collect();
    assert!(wrong.is_empty(), "the engine compiles {wrong:?}");
}

#[test]
fn the_pure_rooms_read_no_clock() {
    // Split, so that this line does not count as such a call.
    let reading = concat!("::no", "w()");
    let files = repository::files().expect("git's list of files");
    let pure = |file: &Path| {
        [
            "crates/model/src",
            "crates/engine/src",
            "crates/ics/src",
            "crates/slurm/src",
        ]
        .iter()
        .any(|room| file.starts_with(room))
    };
    let wrong: Vec<_> = files
        .iter()
        .filter(|file| pure(file))
        .filter(|file| {
            fs::read_to_string(repository::root().join(file))
                .is_ok_and(|text| text.contains(reading))
        })
        .collect();
    assert!(wrong.is_empty(), "`now` is a parameter there: {wrong:?}");
}
