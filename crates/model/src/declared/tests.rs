use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(value: serde_json::Value) -> Document {
    serde_json::from_value(value).unwrap()
}

fn wrong(value: serde_json::Value) -> Vec<(String, String)> {
    let errors = read(value).flat().unwrap_err().0;
    errors.into_iter().map(|e| (e.field, e.message)).collect()
}

#[test]
fn a_document_lies_flat_and_stands_up_again() {
    let value = json!({
        "version": 1,
        "site": {"name": "torino", "title": "Torino", "time_zone": "Europe/Rome", "outsiders_see": "catalogue"},
        "types": {"gpu": {"title": "GPU", "colour": "#1f77b4"}},
        "resources": {"rack-a": {"type": "rack", "children": {
            "gpu-01": {"type": "gpu", "attributes": {"gpus": 8}, "children": {
                "gpu-01.cpu": {"type": "cpu", "capacity": {"amount": 64, "unit": "cores"}}}}}}},
        "projects": {"vision": {"title": "Vision", "members": ["ada"]}},
    });
    let flat = read(value.clone()).flat().unwrap();
    let resources = flat.resources.as_ref().unwrap();
    let parent = |name: &str| resources[&name.parse::<Name>().unwrap()].parent.clone();
    assert_eq!(parent("rack-a"), None);
    assert_eq!(parent("gpu-01.cpu").unwrap().as_str(), "gpu-01");
    let mut written = serde_json::to_value(flat.nested()).unwrap();
    let amount = &mut written["resources"]["rack-a"]["children"]["gpu-01"]["attributes"]["gpus"];
    assert_eq!(*amount, 8.0);
    *amount = json!(8);
    assert_eq!(written, value);
}

#[test]
fn what_a_file_leaves_out_is_not_declared() {
    let flat = read(json!({"version": 1, "types": null})).flat().unwrap();
    assert_eq!(flat, Declared::default());
    let empty = read(json!({"version": 1, "resources": {}})).flat().unwrap();
    assert_eq!(empty.resources, Some(BTreeMap::new()), "that says: none");
}

#[test]
fn everything_wrong_with_a_document_is_named_where_it_stands() {
    let found = wrong(json!({"version": 1, "resources": {
        "a": {"type": "t", "capacity": {"amount": 1, "unit": "x"}, "children": {"b": {"type": "t"}}},
        "b": {"type": "t", "attributes": {"x": ""}},
    }}));
    let fields: Vec<&str> = found.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "resources.a.children",
            "resources.b.attributes",
            "resources.b"
        ]
    );
    assert!(found[2].1.contains("twice"), "{found:?}");
    let mut deep = json!({"type": "t"});
    for level in 0..LEVELS_MAX {
        deep = json!({"type": "t", "children": {format!("n{level}"): deep}});
    }
    let found = wrong(json!({"version": 1, "resources": {"top": deep}}));
    assert!(found[0].1.contains("at most 20 levels"), "{found:?}");
}

#[test]
fn another_edition_and_unknown_sections_are_refused() {
    for (value, why) in [
        (json!({"version": 2}), "says 2"),
        (json!({}), "missing field `version`"),
        (
            json!({"version": 1, "members": {}}),
            "unknown field `members`",
        ),
        (
            json!({"version": 1, "resources": {"a": {"type": "t", "status": "ACTIVE"}}}),
            "unknown field `status`",
        ),
    ] {
        let said = serde_json::from_value::<Document>(value)
            .unwrap_err()
            .to_string();
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn fields_tell_a_text_from_the_number_it_looks_like() {
    let of = |value: serde_json::Value| {
        let section =
            json!({"version": 1, "resources": {"a": {"type": "t", "attributes": {"x": value}}}});
        read(section)
            .flat()
            .unwrap()
            .resources
            .unwrap()
            .remove(&"a".parse::<Name>().unwrap())
    };
    let (number, text) = (of(json!(8)), of(json!("8")));
    let found = differing(number.as_ref(), text.as_ref());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].before.as_deref(), Some("8"));
    assert_eq!(found[0].after.as_deref(), Some("\"8\""));
}

proptest! {
    #[test]
    fn a_written_attribute_reads_back(value in prop_oneof![
        any::<bool>().prop_map(AttributeValue::Flag),
        (-1e9..1e9f64).prop_map(AttributeValue::Number),
        "[ -~]{1,12}".prop_map(AttributeValue::Text),
        "(\")?(true|8|nan|1e3)(\")?".prop_map(AttributeValue::Text),
    ]) {
        prop_assert_eq!(read_attribute(&written(&value)), value);
    }
}
