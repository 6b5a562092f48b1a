//! Which resources are as good as each other: of one type, with the same amount and attributes, and with the same
//! below them. A server without GPUs is not as good as one with eight.
//!
//! Attributes that only tell resources apart, such as a serial number, do not count. They are known by their
//! names, or by their values: text that no two resources of a type share.

use std::collections::{BTreeMap, HashMap, HashSet};

use berth_model::attribute::AttributeValue;
use berth_model::{Amount, Name, Resource, ResourceId, ResourceType, TypeId};

use crate::tree::Tree;

/// What a resource is, whatever it is called and wherever it stands. Comparable between sites.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Equivalence {
    type_name: Name,
    capacity: Option<(Amount, Name)>,
    attributes: BTreeMap<Name, String>,
    /// What is below it, with how many of each.
    children: BTreeMap<Equivalence, usize>,
}

/// Attributes of these names say which one it is or where it stands, in whatever case and with or without hyphens and underscores.
const LABELS: [&str; 33] = [
    "asset",
    "assetid",
    "assettag",
    "bmc",
    "bmcaddress",
    "bmcip",
    "building",
    "fqdn",
    "guid",
    "host",
    "hostname",
    "id",
    "inventory",
    "inventorynumber",
    "ip",
    "ipaddress",
    "label",
    "location",
    "mac",
    "macaddress",
    "name",
    "position",
    "rack",
    "room",
    "row",
    "serial",
    "serialno",
    "serialnumber",
    "slot",
    "sn",
    "tag",
    "unit",
    "uuid",
];

/// Fewer resources than this may differ in an attribute by chance.
const DISTINCT_MIN: usize = 4;

/// A site's inventory, ready to be compared.
#[derive(Debug)]
pub struct Equivalences<'a> {
    tree: &'a Tree,
    resources: &'a HashMap<ResourceId, Resource>,
    types: &'a HashMap<TypeId, ResourceType>,
    labels: HashSet<(TypeId, &'a Name)>,
}

impl<'a> Equivalences<'a> {
    pub fn new(
        tree: &'a Tree,
        resources: &'a HashMap<ResourceId, Resource>,
        types: &'a HashMap<TypeId, ResourceType>,
    ) -> Self {
        Self {
            tree,
            resources,
            types,
            labels: labels(resources),
        }
    }

    /// None for a resource that is not in this inventory.
    pub fn of(&self, id: ResourceId) -> Option<Equivalence> {
        let resource = self.resources.get(&id)?;
        let counts = |name: &&Name| !self.labels.contains(&(resource.type_id, *name));
        let attributes = resource.attributes.iter();
        let attributes = attributes.filter(|(name, _)| counts(name));
        let capacity = resource.capacity.as_ref();
        let mut children = BTreeMap::new();
        for below in self.tree.descendants(id) {
            let is_child = |below: &Resource| below.parent == Some(id);
            if self.resources.get(&below).is_some_and(is_child) {
                *children.entry(self.of(below)?).or_default() += 1;
            }
        }
        Some(Equivalence {
            type_name: self.types.get(&resource.type_id)?.name.clone(),
            capacity: capacity.map(|capacity| (capacity.amount, capacity.unit.clone())),
            attributes: attributes
                .map(|(name, value)| (name.clone(), value.to_string()))
                .collect(),
            children,
        })
    }
}

impl Equivalence {
    pub fn type_name(&self) -> &Name {
        &self.type_name
    }
}

/// The attributes that only tell the resources of a type apart.
fn labels(resources: &HashMap<ResourceId, Resource>) -> HashSet<(TypeId, &Name)> {
    let mut texts: HashMap<(TypeId, &Name), (usize, HashSet<&str>)> = HashMap::new();
    let mut labels = HashSet::new();
    for resource in resources.values() {
        for (name, value) in &resource.attributes {
            let key = (resource.type_id, name);
            if is_label(name) {
                labels.insert(key);
            }
            if let AttributeValue::Text(text) = value {
                let (count, distinct) = texts.entry(key).or_default();
                *count += 1;
                distinct.insert(text.as_str());
            }
        }
    }
    let are_distinct = |(count, distinct): &(usize, HashSet<&str>)| {
        *count >= DISTINCT_MIN && distinct.len() == *count
    };
    let distinct = texts.iter().filter(|(_, seen)| are_distinct(seen));
    labels.extend(distinct.map(|(key, _)| *key));
    labels
}

fn is_label(name: &Name) -> bool {
    let letters = name.as_str().chars().filter(|c| c.is_ascii_alphanumeric());
    let plain: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    LABELS.contains(&plain.as_str())
}

#[cfg(test)]
#[path = "equivalence/tests.rs"]
mod tests;
