//! The document that clients are generated from.

use std::collections::BTreeSet;

use serde_json::Value;

use super::support::document;

fn operations() -> impl Iterator<Item = (String, &'static Value)> {
    let paths = document()["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (format!("{method} {path}"), operation))
    })
}

#[test]
fn every_path_of_the_api_is_documented_with_its_places() {
    let is_api = |path: &str| {
        let noun = path.split('/').nth(1).unwrap_or_default();
        ["me", "people", "policies", "sites", "audit"].contains(&noun)
    };
    for (path, places) in berth_api::paths::ALL
        .iter()
        .filter(|(path, _)| is_api(path))
    {
        let item = document()["paths"].get(path);
        let item = item.unwrap_or_else(|| panic!("{path} is not documented"));
        for operation in item.as_object().unwrap().values() {
            let parameters = operation["parameters"].as_array();
            let named: Vec<&Value> = parameters
                .into_iter()
                .flatten()
                .filter(|parameter| parameter["in"] == "path")
                .map(|parameter| &parameter["name"])
                .collect();
            assert_eq!(&named, places, "{path}");
        }
    }
}

#[test]
fn every_operation_has_a_name_of_its_own_a_tag_a_summary_and_a_good_answer() {
    let mut names = BTreeSet::new();
    for (place, operation) in operations() {
        let name = operation["operationId"].as_str().unwrap();
        assert!(names.insert(name), "{name} stands twice");
        assert!(operation["tags"][0].is_string(), "{place}");
        let summary = operation["summary"].as_str().unwrap_or_default();
        assert!(!summary.is_empty(), "{place} has no summary");
        let responses = operation["responses"].as_object().unwrap();
        assert!(
            responses.keys().any(|status| status.starts_with('2')),
            "{place}"
        );
    }
    assert!(names.contains("create_reservation") && names.contains("list_reservations"));
}

/// A generated client is as good as its types: every reference must lead somewhere.
#[test]
fn every_reference_leads_somewhere() {
    fn references<'v>(value: &'v Value, found: &mut BTreeSet<&'v str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|field| references(field, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    references(document(), &mut found);
    assert!(found.contains("#/components/schemas/Reservation"));
    for reference in found {
        let place = document().pointer(reference.trim_start_matches('#'));
        assert!(place.is_some(), "{reference} leads nowhere");
    }
}
