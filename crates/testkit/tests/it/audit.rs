//! Checks Berth's dependencies against the rules of `deny.toml`: licences, banned crates, sources.
//!
//! The rules are in the format of cargo-deny, so that it can check them too. This test covers the parts that need no
//! advisory database. So they hold on every machine, without a tool that takes minutes to build. `scripts/advisories`
//! looks for known vulnerabilities if the advisory database is available.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::UNIX_EPOCH;

use berth_testkit::repository;
use toml::Value;

/// Cargo writes this for the default registry, whichever mirror served it.
const DEFAULT_REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn toml(file: &str) -> Value {
    let text = fs::read_to_string(repository::root().join(file)).expect(file);
    Value::Table(text.parse().expect(file))
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().expect(name)
}

/// Every package that is compiled for building and testing the workspace here: name, version and licence. Packages that
/// are locked but never compiled (optional parts, other systems') are not included.
fn compiled() -> Vec<(String, String, String)> {
    packages("normal,build,dev")
}

/// The same without packages that only tests need: the packages in the program that users get.
fn shipped() -> Vec<(String, String, String)> {
    packages("normal,build")
}

fn packages(edges: &str) -> Vec<(String, String, String)> {
    let arguments = [
        "tree",
        "--edges",
        edges,
        "--workspace",
        "--prefix=none",
        "--format={p}|{l}",
        "--locked",
    ];
    let tree = repository::cargo(arguments).expect("cargo tree");
    let mut packages: Vec<_> = tree
        .lines()
        .filter_map(|line| {
            let (package, licence) = line.split_once('|')?;
            let mut words = package.split_whitespace();
            let (name, version) = (words.next()?, words.next()?);
            let licence = licence.trim_end_matches("(*)").trim();
            Some((name.to_owned(), version.to_owned(), licence.to_owned()))
        })
        .collect();
    packages.sort();
    packages.dedup();
    assert!(
        packages.len() > 50,
        "this is not the workspace's tree: {packages:?}"
    );
    packages
}

#[test]
fn every_licence_is_on_the_list() {
    let rules = toml("deny.toml");
    let allowed: BTreeSet<&str> = list(&rules["licenses"], "allow")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let wrong: Vec<_> = compiled()
        .into_iter()
        .filter(|(_, _, licence)| !is_allowed(licence, &allowed))
        .map(|(name, version, licence)| format!("{name} {version}: {licence:?}"))
        .collect();
    assert!(wrong.is_empty(), "not allowed by deny.toml: {wrong:#?}");
}

#[test]
fn no_banned_crate_is_shipped() {
    let rules = toml("deny.toml");
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in shipped() {
        versions.entry(name).or_default().insert(version);
    }
    let mut wrong = Vec::new();
    for ban in list(&rules["bans"], "deny") {
        let name = ban["crate"].as_str().expect("a crate");
        let reason = ban["reason"].as_str().expect("a reason");
        let once = ban.get("deny-multiple-versions").and_then(Value::as_bool) == Some(true);
        let seen = versions.get(name).map_or(0, BTreeSet::len);
        if seen > usize::from(once) {
            wrong.push(format!("{name} is compiled in {seen} version(s): {reason}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn everything_comes_from_the_default_registry() {
    let lock = toml("Cargo.lock");
    let wrong: Vec<_> = list(&lock, "package")
        .iter()
        .filter_map(|package| Some((package["name"].as_str()?, package.get("source")?.as_str()?)))
        .filter(|(_, source)| *source != DEFAULT_REGISTRY)
        .collect();
    assert!(wrong.is_empty(), "from elsewhere: {wrong:#?}");
}

/// Evaluates an SPDX expression: any part between `OR`s is enough, all parts between `AND`s are needed, and `AND` binds
/// closer. `/` is an old notation for `OR`.
fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let verdict = any_of(&mut rest, allowed);
    verdict && rest.is_empty()
}

fn any_of(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    let mut verdict = all_of(words, allowed);
    while take(words, "OR") {
        verdict |= all_of(words, allowed);
    }
    verdict
}

fn all_of(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    let mut verdict = term(words, allowed);
    while take(words, "AND") {
        verdict &= term(words, allowed);
    }
    verdict
}

fn term(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    if take(words, "(") {
        let verdict = any_of(words, allowed);
        return take(words, ")") && verdict;
    }
    let Some((licence, rest)) = words.split_first() else {
        return false;
    };
    *words = rest;
    match *words {
        ["WITH", exception, rest @ ..] => {
            *words = rest;
            allowed.contains(format!("{licence} WITH {exception}").as_str())
        }
        _ => allowed.contains(licence),
    }
}

fn take(words: &mut &[&str], word: &str) -> bool {
    let found = words.first() == Some(&word);
    if found {
        *words = &words[1..];
    }
    found
}

#[test]
fn licence_expressions_are_read_like_spdx() {
    let allowed = BTreeSet::from(["MIT", "Apache-2.0", "ISC", "Apache-2.0 WITH LLVM-exception"]);
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT OR GPL-3.0", true),
        ("GPL-3.0/MIT", true),
        ("MIT AND GPL-3.0", false),
        ("MIT OR GPL-3.0 AND GPL-2.0", true),
        ("(MIT OR GPL-3.0) AND GPL-2.0", false),
        ("ISC AND (Apache-2.0 OR ISC)", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("MIT WITH LLVM-exception", false),
        ("", false),
        ("MIT MIT", false),
        ("(MIT", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression:?}");
    }
}

/// npm installs code-server, and refuses a file with a hash other than the one in the lock.
#[test]
fn the_lock_of_code_server_has_a_hash_of_each_package_and_names_no_registry() {
    let file = repository::root().join("scripts/code-server/package-lock.json");
    let text = fs::read_to_string(file).expect("the lock");
    let lock: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let packages = lock["packages"].as_object().expect("packages");
    assert!(packages.contains_key("node_modules/code-server"));
    for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
        let hash = package["integrity"].as_str().unwrap_or_default();
        assert!(hash.starts_with("sha512-") && hash.len() == 95, "{name}");
        assert!(package["resolved"].is_null(), "{name}");
    }
}

/// A stage of `make test` that could not look anything up does not count as passed, and `make advisories` then fails.
/// The same holds if there is a copy of the database that is too old to trust.
#[test]
fn what_could_not_be_looked_up_is_not_called_passed() {
    let copy = Copied::new();
    copy.write_program("curl", "exit 7");
    assert_eq!(copy.stage(), "NOT CHECKED", "there is no database");
    assert!(!copy.make("advisories").success());

    let fetched = copy.write("cargo/advisory-dbs/x/.git/FETCH_HEAD", "");
    copy.write("cargo/advisory-dbs/x/crates/x", "");
    copy.write_program("cargo-deny", "exit 0");
    copy.write_program("cargo", "exec cargo-deny");
    assert_eq!(copy.stage(), "passed", "the copy is of today");
    assert!(copy.make("advisories").success());

    let file = fs::File::options().write(true).open(fetched).unwrap();
    file.set_modified(UNIX_EPOCH).unwrap();
    assert_eq!(copy.stage(), "NOT CHECKED", "the copy is old");
    assert!(!copy.make("advisories").success());
    copy.write_program("cargo-deny", "exit 1");
    assert_eq!(copy.stage(), "failed", "the old copy knows of something");

    copy.write_program("curl", "exit 0");
    assert_eq!(copy.stage(), "failed");
    copy.write_program("cargo-deny", "exit 0");
    assert_eq!(copy.stage(), "passed");
    assert!(copy.make("advisories").success());
}

/// A folder with copies of the Makefile and its scripts, and with the test's own programs.
struct Copied {
    folder: tempfile::TempDir,
}

impl Copied {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let copied = Self { folder };
        for file in ["Makefile", "scripts/stages", "scripts/advisories"] {
            let path = copied.write(file, "");
            fs::copy(repository::root().join(file), path).expect(file);
        }
        copied
    }

    fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect(file);
        fs::write(&path, text).expect(file);
        path
    }

    fn write_program(&self, name: &str, script: &str) {
        let path = self.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect(name);
    }

    fn run(&self, program: &str, argument: &str) -> ExitStatus {
        let own = self.folder.path().join("bin");
        let path = format!(
            "{}:{}",
            own.display(),
            std::env::var("PATH").expect("a path")
        );
        let mut command = Command::new(program);
        command
            .arg(argument)
            .current_dir(self.folder.path())
            .env("PATH", path)
            // The Makefile prefers the programs of this home.
            .env("HOME", self.folder.path())
            .env("BERTH_CACHE", self.folder.path())
            .env("CARGO_HOME", self.folder.path().join("cargo"));
        command.output().expect(program).status
    }

    fn make(&self, target: &str) -> ExitStatus {
        self.run("make", target)
    }

    /// The result of the vulnerability check in the table of stages.
    fn stage(&self) -> String {
        let status = self.run("scripts/stages", "vulnerabilities");
        let times = fs::read_to_string(self.folder.path().join("target/ci-times.json"));
        let times = times.expect("the times");
        let times: serde_json::Value = serde_json::from_str(&times).expect("JSON");
        let result = times[0]["result"].as_str().expect("a result").to_owned();
        assert_eq!(status.success(), result != "failed", "{result}");
        result
    }
}
