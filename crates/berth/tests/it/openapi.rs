//! The OpenAPI document: checked in as the code produces it, valid, and telling all that a client must know.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use berth_testkit::{repository, tool};
use serde_json::Value;

fn document() -> Value {
    serde_json::to_value(berth_server::openapi()).expect("the document")
}

/// Every operation with its method and path.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let of_path = |(path, item): (&String, &'_ Value)| {
        let path = path.clone();
        let item = item.as_object().expect("an item").clone();
        item.into_iter()
            .map(move |(method, _)| (method, path.clone()))
            .collect::<Vec<_>>()
    };
    let all = paths.iter().flat_map(of_path);
    all.map(|(method, path)| {
        let operation = &document["paths"][&path][&method];
        (format!("{} {path}", method.to_uppercase()), operation)
    })
    .collect()
}

#[test]
fn the_checked_in_document_is_what_the_code_produces() {
    let file = repository::root().join("docs/openapi.json");
    let produced = serde_json::to_string_pretty(&berth_server::openapi()).expect("a document");
    let produced = format!("{produced}\n");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &produced).expect("write the document");
    }
    let checked_in = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        checked_in == produced,
        "docs/openapi.json is out of date: run `make openapi`, and read the difference before you commit it"
    );
}

#[test]
fn the_command_prints_the_same() {
    let output = Command::new(env!("CARGO_BIN_EXE_berth"))
        .arg("openapi")
        .output()
        .expect("run berth");
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(printed, document());
}

/// Held against the specification's own schema for 3.1, which schemathesis carries, and each schema in it against
/// JSON Schema 2020-12.
#[test]
fn it_is_valid_openapi_3_1() {
    const JUDGE: &str = "
import json, sys
import jsonschema_rs
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR
document = json.load(sys.stdin)
errors = [f'{list(e.instance_path)}: {e.message}' for e in OPENAPI_31_VALIDATOR.iter_errors(document)]
meta = jsonschema_rs.validator_for({'$schema': 'https://json-schema.org/draft/2020-12/schema',
                                    '$ref': 'https://json-schema.org/draft/2020-12/schema'})
for name, schema in document['components']['schemas'].items():
    errors += [f'schema {name} {list(e.instance_path)}: {e.message}' for e in meta.iter_errors(schema)]
sys.exit('\\n'.join(errors) or 0)
";
    let document = document();
    assert!(
        document["openapi"]
            .as_str()
            .is_some_and(|version| version.starts_with("3.1."))
    );
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("openapi.json");
    fs::write(&file, document.to_string()).expect("write the document");
    let schemathesis = tool::schemathesis().expect("schemathesis");
    let judged = Command::new(schemathesis.with_file_name("python"))
        .args(["-c", JUDGE])
        .stdin(fs::File::open(&file).expect("open the document"))
        .output()
        .expect("run python");
    let complaint = String::from_utf8_lossy(&judged.stderr);
    assert!(judged.status.success(), "{complaint}");
}

#[test]
fn every_operation_says_what_it_is_and_how_it_refuses() {
    let document = document();
    let tags = document["tags"].as_array().expect("tags");
    let tags: BTreeSet<&str> = tags.iter().filter_map(|tag| tag["name"].as_str()).collect();
    let (mut wrong, mut ids, mut used) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for (name, operation) in operations(&document) {
        let mut demand = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("{name}: {what}"));
            }
        };
        let text = |key: &str| operation[key].as_str().unwrap_or_default().to_owned();
        demand(ids.insert(text("operationId")), "an operationId of its own");
        demand(!text("operationId").is_empty(), "an operationId");
        demand(!text("summary").is_empty(), "a summary");
        let tag = operation["tags"][0].as_str().unwrap_or_default();
        demand(tags.contains(tag), "a tag that is described");
        used.insert(tag);
        let security = operation.get("security").or(document.get("security"));
        demand(
            security
                .and_then(Value::as_array)
                .is_some_and(|all| !all.is_empty()),
            "security",
        );
        let responses = operation["responses"].as_object().expect("responses");
        demand(
            responses.keys().any(|status| status.starts_with('4')),
            "a 4xx",
        );
        demand(
            responses.keys().any(|status| status.starts_with('2')),
            "a 2xx",
        );
        let own = operation["parameters"].as_array().into_iter().flatten();
        let described: BTreeSet<&str> = own
            .filter(|parameter| parameter["in"] == "path")
            .filter_map(|parameter| parameter["name"].as_str())
            .collect();
        let named: BTreeSet<&str> = name
            .split('{')
            .skip(1)
            .filter_map(|s| s.split('}').next())
            .collect();
        demand(
            described == named,
            "a description of each value in its path",
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(used, tags, "every tag has operations");
}

#[test]
fn every_reference_leads_somewhere() {
    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members
                    .values()
                    .for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    let lost = found.into_iter().filter(|reference| {
        let pointer = reference.strip_prefix('#');
        pointer
            .and_then(|pointer| document.pointer(pointer))
            .is_none()
    });
    assert_eq!(lost.collect::<Vec<_>>(), Vec::<&str>::new());
}

/// Changes that no `If-Match` guards, and why that loses nothing.
const WITHOUT_VERSION: [(&str, &str); 24] = [
    ("revoke_my_feed", "a feed never changes: it exists or not"),
    ("revoke_my_token", "a token never changes: it exists or not"),
    (
        "revoke_token_of_person",
        "a token never changes: it exists or not",
    ),
    ("revoke_grant", "a grant never changes: it exists or not"),
    (
        "remove_environment",
        "a version of an environment never changes",
    ),
    (
        "put_member",
        "a membership is one word, its role, and has no version",
    ),
    (
        "remove_member",
        "a membership is one word, its role, and has no version",
    ),
    ("put_project_member", "somebody is in a project or not"),
    ("remove_project_member", "somebody is in a project or not"),
    (
        "mark_notifications_read",
        "a mark only says how far somebody has read",
    ),
    (
        "mark_notifications_unread",
        "a mark only says how far somebody has read",
    ),
    ("change_password", "the old password guards it"),
    ("reset_password", "the link works once"),
    (
        "create_reset_link",
        "a new link replaces nothing that somebody could have read",
    ),
    ("sign_in", "it changes no object"),
    ("sign_out", "a sign-in has no version"),
    (
        "apply_site",
        "the description carries the version of what it was made from",
    ),
    (
        "refresh_closure",
        "it reads the calendar again, whatever it holds",
    ),
    (
        "accept_join_request",
        "a request is decided once; the second is refused",
    ),
    (
        "decline_join_request",
        "a request is decided once; the second is refused",
    ),
    ("test_policies", "it only reads"),
    (
        "resume_session_profile",
        "a pause is lifted, whatever it was",
    ),
    ("visit_session", "a visit changes nothing of the session"),
    ("when", "it only reads"),
];

fn takes(operation: &Value, header: &str) -> bool {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let mut named = parameters.filter(|parameter| parameter["in"] == "header");
    named.any(|parameter| parameter["name"] == header)
}

/// `matrix.rs` holds the routes to what they say: it repeats each action of each caller.
#[test]
fn every_post_takes_an_idempotency_key() {
    let document = document();
    let exempt: BTreeSet<String> = berth_server::NOT_REPEATED
        .iter()
        .map(|(path, _)| format!("POST {path}"))
        .collect();
    let without: BTreeSet<String> = operations(&document)
        .into_iter()
        .filter(|(name, operation)| {
            name.starts_with("POST ") && !takes(operation, "Idempotency-Key")
        })
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        without, exempt,
        "the routes without a key, and those that are listed"
    );
}

#[test]
fn every_change_takes_the_version_it_is_meant_for() {
    let document = document();
    let is_create = |operation: &Value| operation["responses"].get("201").is_some();
    let without: BTreeSet<&str> = operations(&document)
        .into_iter()
        .filter(|(name, _)| !name.starts_with("GET "))
        .filter(|(_, operation)| !is_create(operation) && !takes(operation, "If-Match"))
        .filter_map(|(_, operation)| operation["operationId"].as_str())
        .collect();
    let exempt: BTreeSet<&str> = WITHOUT_VERSION.iter().map(|(id, _)| *id).collect();
    assert_eq!(
        without, exempt,
        "the changes without a version, and those that are listed"
    );
}
