use berth_model::inventory::{Colour, Status};
use berth_model::parameter::Form;
use berth_model::{SiteId, Text};

use super::*;
use crate::fixture::{resource, tree};

fn site() -> SiteId {
    SiteId::from_parts(0, &[0; 10])
}

fn type_id(number: u64) -> TypeId {
    TypeId::from_parts(number, &[0; 10])
}

fn types() -> HashMap<TypeId, ResourceType> {
    let kind = |(number, name): (u64, &str)| {
        let id = type_id(number);
        let kind = ResourceType {
            id,
            site: site(),
            name: name.parse().unwrap(),
            title: name.parse::<Text>().unwrap(),
            colour: "#123456".parse::<Colour>().unwrap(),
            form: Form::default(),
            needs_approval: false,
            version: 1,
        };
        (id, kind)
    };
    [(1, "server"), (2, "gpu")].into_iter().map(kind).collect()
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::Text(value.to_owned())
}

/// A resource's parent, type and attributes.
type Drawn<'a> = (Option<u64>, u64, &'a [(&'a str, AttributeValue)]);

/// Resource number `n` is the `n`-th that was drawn.
fn kinds(all: &[Drawn<'_>]) -> Vec<Equivalence> {
    let made = (0_u64..)
        .zip(all)
        .map(|(number, (parent, kind, attributes))| {
            let attributes = attributes.iter();
            let attribute =
                |(name, value): &(&str, AttributeValue)| (name.parse().unwrap(), value.clone());
            let one = Resource {
                id: resource(number),
                site: site(),
                parent: parent.map(resource),
                type_id: type_id(*kind),
                name: format!("r-{number}").parse().unwrap(),
                title: None,
                attributes: attributes.map(attribute).collect(),
                facts: Default::default(),
                capacity: None,
                status: Status::Active,
                status_reason: None,
                version: 1,
            };
            (one.id, one)
        });
    let resources: HashMap<ResourceId, Resource> = made.collect();
    let parents: Vec<Option<u64>> = all.iter().map(|(parent, ..)| *parent).collect();
    let (tree, types) = (tree(&parents), types());
    let kinds = Equivalences::new(&tree, &resources, &types);
    (0..all.len() as u64)
        .map(|number| kinds.of(resource(number)).unwrap())
        .collect()
}

#[test]
fn a_serial_number_does_not_make_a_difference_and_a_model_does() {
    let node =
        |model: &str, serial: &str| [("model", text(model)), ("serial_number", text(serial))];
    let (one, two, three) = (node("a", "1"), node("a", "2"), node("b", "3"));
    let found = kinds(&[(None, 1, &one), (None, 1, &two), (None, 1, &three)]);
    assert_eq!(found[0], found[1]);
    assert_ne!(found[0], found[2]);
}

#[test]
fn a_server_is_as_good_as_another_only_with_the_same_below_it() {
    let a100 = [("model", text("A100"))];
    let h100 = [("model", text("H100"))];
    let found = kinds(&[
        (None, 1, &[]),
        (Some(0), 2, &a100),
        (None, 1, &[]),
        (None, 1, &[]),
        (Some(3), 2, &a100),
        (None, 1, &[]),
        (Some(5), 2, &h100),
    ]);
    assert_ne!(found[0], found[2], "one without a GPU");
    assert_eq!(found[0], found[3]);
    assert_ne!(found[0], found[5], "one with another GPU");
}

#[test]
fn text_that_no_two_share_tells_many_apart_and_says_nothing_of_few() {
    let named = |value: &str| [("nickname", text(value))];
    let (a, b, c, d) = (named("a"), named("b"), named("c"), named("d"));
    let many = kinds(&[(None, 1, &a), (None, 1, &b), (None, 1, &c), (None, 1, &d)]);
    assert!(many.iter().all(|kind| *kind == many[0]));
    let few = kinds(&[(None, 1, &a), (None, 1, &b), (None, 1, &c)]);
    assert_ne!(few[0], few[1]);
}
