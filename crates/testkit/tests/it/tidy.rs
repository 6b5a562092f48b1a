//! Code conventions that a machine can check, so that no reviewer has to.

use std::fs;
use std::path::{Path, PathBuf};

use berth_testkit::repository;

/// A file that a person can read in one sitting is far shorter. A longer file holds two modules.
const LINES_MAX: usize = 700;

/// Hosts of package registries. Each machine has its own choice of mirror, so no file may name one. The names are put
/// together here, so that this file passes its own check.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("pypi.", "org/simple"),
    concat!("files.", "pythonhosted.org"),
    concat!("registry.", "npmjs.org"),
];

/// Every tracked text file with its content.
fn texts() -> impl Iterator<Item = (PathBuf, String)> {
    let files = repository::files().expect("git's list of files");
    files.into_iter().filter_map(|file| {
        let text = fs::read_to_string(repository::root().join(&file)).ok()?;
        Some((file, text))
    })
}

fn rust_files() -> impl Iterator<Item = (PathBuf, String)> {
    texts().filter(|(file, _)| file.extension().is_some_and(|extension| extension == "rs"))
}

#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    let mut places = vec![
        concat!("/ro", "ot").to_owned(),
        concat!("/wo", "rk").to_owned(),
        concat!("/Us", "ers").to_owned(),
        repository::root().display().to_string(),
    ];
    // No file may name the home of the developer who runs the tests.
    places.extend(
        std::env::var("HOME")
            .ok()
            .filter(|home| home.matches('/').count() > 1),
    );
    let mut wrong = Vec::new();
    for (file, text) in texts() {
        for (number, line) in (1..).zip(text.lines()) {
            if places.iter().any(|place| names_path(line, place)) {
                wrong.push(format!("{}:{number}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether `line` holds the path itself or a path below it, but not `/workloads` or `example.org/work/`.
fn names_path(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + place.len()..].chars().next();
        let part_of_another = |c: char| c.is_alphanumeric() || "_-.}])*".contains(c);
        !before.is_some_and(|c| part_of_another(c) || c == '/') && after.is_some_and(|c| c == '/')
    })
}

#[test]
fn a_path_is_told_from_what_looks_like_one() {
    let place = concat!("/wo", "rk");
    for (line, expected) in [
        ("cd {}/main", true),
        ("\"{}/x\"", true),
        ("{}loads/", false),
    ] {
        assert_eq!(
            names_path(&line.replace("{}", place), place),
            expected,
            "{line}"
        );
    }
    assert!(!names_path(&format!("https://example.org{place}/"), place));
}

#[test]
fn no_file_names_a_package_registry() {
    let wrong: Vec<_> = texts()
        .flat_map(|(file, text)| {
            let named = REGISTRY_HOSTS.iter().filter(|host| text.contains(**host));
            named
                .map(|host| format!("{}: {host}", file.display()))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_crate_opens_by_saying_what_it_is() {
    let is_opening = |file: &Path| {
        let in_source = file
            .parent()
            .and_then(Path::file_name)
            .is_some_and(|name| name == "src");
        in_source
            && matches!(
                file.file_name().and_then(|n| n.to_str()),
                Some("lib.rs" | "main.rs")
            )
    };
    let wrong: Vec<_> = rust_files()
        .filter(|(file, text)| is_opening(file) && !text.starts_with("//! "))
        .map(|(file, _)| file)
        .collect();
    assert!(
        wrong.is_empty(),
        "these do not start with a `//!` sentence: {wrong:#?}"
    );
}

#[test]
fn every_crate_follows_the_workspaces_lints() {
    let wrong: Vec<_> = texts()
        .filter(|(file, _)| file.ends_with("Cargo.toml") && file.components().count() > 1)
        .filter(|(_, text)| !text.contains("[lints]\nworkspace = true\n"))
        .map(|(file, _)| file)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_rust_file_is_too_long_to_read() {
    let wrong: Vec<_> = rust_files()
        .map(|(file, text)| (text.lines().count(), file))
        .filter(|(lines, _)| *lines > LINES_MAX)
        .collect();
    assert!(
        wrong.is_empty(),
        "over {LINES_MAX} lines, so probably two rooms: {wrong:#?}"
    );
}

#[test]
fn no_test_is_switched_off() {
    let mark = concat!("#[ig", "nore");
    let wrong: Vec<_> = rust_files()
        .filter(|(_, text)| text.contains(mark))
        .map(|(file, _)| file)
        .collect();
    assert!(
        wrong.is_empty(),
        "a test either holds or is deleted: {wrong:#?}"
    );
}

#[test]
fn every_problem_code_has_its_page() {
    let root = repository::root();
    let table = root.join("crates/api/src/problem/codes.rs");
    let text = fs::read_to_string(&table).expect("the table of problem codes");
    let codes: Vec<&str> = text
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|word| is_code(word))
        .collect();
    assert!(
        !codes.is_empty(),
        "no codes like \"reservation.conflict\" in {}",
        table.display()
    );
    let missing: Vec<_> = codes
        .iter()
        .map(|code| format!("docs/errors/{code}.md"))
        .filter(|page| !root.join(page).is_file())
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Whether a word is an error code: two words of small letters with a dot between them, like `reservation.conflict`.
fn is_code(word: &str) -> bool {
    let is_word =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    word.split_once('.')
        .is_some_and(|(noun, fact)| is_word(noun) && is_word(fact))
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let root = repository::root();
    let mut wrong = Vec::new();
    for (file, text) in texts() {
        if file.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let here = root.join(&file);
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let path = target.split('#').next().unwrap_or_default();
            let is_elsewhere = path.contains("://") || path.starts_with("mailto:");
            if path.is_empty() || is_elsewhere || path.starts_with('/') {
                continue;
            }
            if !here.with_file_name(path).exists() {
                wrong.push(format!("{}: {target}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Paths with code that runs on the workers of the async runtime. There, a call that waits for a disk or a program
/// delays other tasks.
const ASYNC_ROOMS: &[&str] = &[
    "crates/app/src/",
    "crates/proxy/src/",
    "crates/server/src/",
    "crates/drivers/src/backend.rs",
    "crates/drivers/src/local.rs",
    "crates/drivers/src/split.rs",
];

/// Calls that wait for a disk, a program or a name server.
const BLOCKING: &[&str] = &[
    "std::fs::",
    " fs::",
    "(fs::",
    "File::open",
    "File::create",
    "std::process::Command",
    "thread::sleep",
    "to_socket_addrs",
    "statvfs(",
    ".is_dir()",
    ".is_file()",
    ".exists()",
    ".metadata()",
    "rustix::fs::",
    "UnixListener::bind(",
];

/// Files with only their async functions on workers; threads call the other functions.
const MIXED_ROOMS: &[&str] = &[
    "crates/drivers/src/door.rs",
    "crates/drivers/src/environments.rs",
    "crates/drivers/src/local/disk.rs",
    "crates/drivers/src/local/life.rs",
    "crates/drivers/src/local/names.rs",
    "crates/drivers/src/local/quota.rs",
    "crates/drivers/src/local/records.rs",
    "crates/drivers/src/local/shelf.rs",
    "crates/drivers/src/local/supervisors.rs",
    "crates/drivers/src/local/warm.rs",
];

/// Calls that run their argument on a thread.
const ON_THREADS: &[&str] = &["spawn_blocking(", "in_turn(", "errand(", ".take("];

/// Files that may make such calls nevertheless, and why.
const BLOCKING_MAY: &[(&str, &str)] = &[
    (
        "crates/app/src/vault.rs",
        "the key is read before anything is served",
    ),
    (
        "crates/server/src/config.rs",
        "the configuration is read before anything is served",
    ),
    (
        "crates/server/src/hub/door.rs",
        "the socket is made before anything is served",
    ),
    (
        "crates/server/src/routes/health.rs",
        "it asks the kernel and not the disk",
    ),
];

#[test]
fn no_worker_of_the_async_runtime_waits_for_a_disk() {
    let mut wrong = Vec::new();
    for (file, text) in rust_files() {
        let name = file.display().to_string();
        let is_async = ASYNC_ROOMS.iter().any(|room| name.starts_with(room));
        let is_mixed = MIXED_ROOMS.contains(&name.as_str());
        let may = BLOCKING_MAY.iter().any(|(file, _)| name == *file);
        if !(is_async || is_mixed) || may || name.ends_with("tests.rs") || name.contains("/tests/")
        {
            continue;
        }
        let code = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        wrong.extend(blocking(code, is_mixed).map(|line| format!("{name}:{line}")));
    }
    assert!(
        wrong.is_empty(),
        "use spawn_blocking with a deadline: {wrong:#?}"
    );
}

/// The lines that block a worker. In a mixed file, only async functions and blocks count.
fn blocking(code: &str, is_mixed: bool) -> impl Iterator<Item = String> {
    let mut on_worker = vec![!is_mixed; code.len()];
    if is_mixed {
        for (start, _) in code.match_indices("async ") {
            let rest = &code[start..];
            let is_code = rest.starts_with("async fn")
                || rest.starts_with("async move {")
                || rest.starts_with("async {");
            if let Some(open) = rest.find('{').filter(|_| is_code) {
                on_worker[start + open..start + open + balanced(&rest[open..])].fill(true);
            }
        }
    }
    for call in ON_THREADS {
        for (start, _) in code.match_indices(call) {
            let open = start + call.len() - 1;
            on_worker[open..open + balanced(&code[open..])].fill(false);
        }
    }
    let mut at = 0;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(code.lines()) {
        let is_code = !line.trim_start().starts_with("//") && !line.contains("tokio::fs");
        let mut calls = BLOCKING.iter().filter_map(|call| line.find(call));
        if is_code && calls.any(|call| on_worker[at + call]) {
            found.push(format!("{number}: {}", line.trim()));
        }
        at += line.len() + 1;
    }
    found.into_iter()
}

/// The length from the first bracket to the one that closes it.
fn balanced(text: &str) -> usize {
    let mut depth = 0;
    for (at, sign) in text.char_indices() {
        match sign {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

#[test]
fn a_blocking_call_is_found_on_a_worker_and_not_on_a_thread() {
    let code = "fn on_a_thread() {\n    path.exists();\n}\nasync fn on_a_worker() {\n    path.exists();\n    \
                spawn_blocking(move || path.exists());\n}\n";
    let mixed: Vec<String> = blocking(code, true).collect();
    assert_eq!(mixed, ["5: path.exists();"]);
    assert_eq!(blocking(code, false).count(), 2);
}
