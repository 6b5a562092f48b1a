//! Finds equivalent resources: the same type, amount and attributes, and the same resources below them. A server
//! without GPUs is not equivalent to a server with eight.
//!
//! Attributes that only identify a resource, such as a serial number, do not count. They are recognised by name, or
//! by value: a text that no two resources of a type share.

use std::collections::{BTreeMap, HashMap, HashSet};

use berth_model::attribute::AttributeValue;
use berth_model::{Amount, Name, Resource, ResourceId, ResourceType, TypeId};

use crate::tree::Tree;

/// The properties of a resource without its name and its position in the tree. Comparable between sites.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Equivalence {
    type_name: Name,
    capacity: Option<(Amount, Name)>,
    attributes: BTreeMap<Name, String>,
    /// The resources directly below it, with how many of each.
    children: BTreeMap<Equivalence, usize>,
}

/// Attributes of these names identify a resource or its location. Case, hyphens and underscores do not matter.
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

/// With fewer resources than this, an attribute may differ everywhere by chance.
const DISTINCT_MIN: usize = 4;

/// A site's inventory, prepared for comparisons.
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

    /// None if the resource is not in this inventory.
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

/// The attributes that only identify the resources of a type.
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
