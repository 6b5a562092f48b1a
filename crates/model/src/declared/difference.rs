//! What is different between a site and a file, in words that a person can read before saying yes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DeclaredResource, ProjectSection, SiteSection, TypeSection, written};
use crate::inventory::Facts;
use crate::policy::Policy;

/// One thing that is not as declared, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Difference {
    pub act: Act,
    pub subject: Subject,
    /// The name of the site, type, resource or project, or what the policy is about.
    pub name: String,
    /// What of it differs, by field.
    pub fields: Vec<FieldDifference>,
}

#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    Added,
    Changed,
    /// It stands elsewhere in the tree.
    Moved,
    Removed,
    /// The site has it and the file does not name it. It stays, unless pruning is asked for.
    Extra,
}

#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    Site,
    Type,
    Resource,
    Project,
    Policy,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FieldDifference {
    /// Which: `title`, `attributes.gpus`, `form.image`.
    pub field: String,
    /// What the site has; null where it has nothing.
    pub before: Option<String>,
    /// What the file says; null where it says nothing.
    pub after: Option<String>,
}

/// A declared thing as its fields, each written as text. Two things with the same fields are the same thing.
pub trait Fields {
    fn fields(&self) -> BTreeMap<String, String>;
}

/// What differs between two states of a thing, or between nothing and one.
pub fn differing<T: Fields>(before: Option<&T>, after: Option<&T>) -> Vec<FieldDifference> {
    let fields = |thing: Option<&T>| thing.map(Fields::fields).unwrap_or_default();
    let (mut before, mut after) = (fields(before), fields(after));
    let mut names: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .filter_map(|field| {
            let (before, after) = (before.remove(&field), after.remove(&field));
            (before != after).then_some(FieldDifference {
                field,
                before,
                after,
            })
        })
        .collect()
}

fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

fn of<const N: usize>(fields: [(&str, Option<String>); N]) -> BTreeMap<String, String> {
    fields
        .into_iter()
        .filter_map(|(field, value)| Some((field.to_owned(), value?)))
        .collect()
}

/// Its name is not among them: it says which site is meant, and nothing about it.
impl Fields for SiteSection {
    fn fields(&self) -> BTreeMap<String, String> {
        of([
            ("title", Some(self.title.to_string())),
            ("time_zone", Some(self.time_zone.as_str().to_owned())),
            ("outsiders_see", Some(word(self.outsiders_see))),
            ("accent", self.accent.as_ref().map(ToString::to_string)),
        ])
    }
}

impl Fields for TypeSection {
    fn fields(&self) -> BTreeMap<String, String> {
        let mut fields = of([
            ("title", Some(self.title.to_string())),
            ("colour", Some(word(&self.colour))),
            ("needs_approval", Some(self.needs_approval.to_string())),
        ]);
        // The order of the questions is part of the form.
        for (place, parameter) in self.form.parameters().iter().enumerate() {
            let question = format!("{}. {}", place + 1, word(parameter));
            fields.insert(format!("form.{}", parameter.key), question);
        }
        fields
    }
}

impl Fields for DeclaredResource {
    /// Its place is not among them: a move is told apart from a change.
    fn fields(&self) -> BTreeMap<String, String> {
        let Facts {
            provisioning_address,
            monitoring_url,
            location,
            contact,
        } = &self.facts;
        let text = |text: &Option<crate::Text>| text.as_ref().map(ToString::to_string);
        let capacity = self.capacity.as_ref();
        let mut fields = of([
            ("type", Some(self.kind.to_string())),
            ("title", text(&self.title)),
            (
                "capacity",
                capacity.map(|capacity| format!("{} {}", capacity.amount.get(), capacity.unit)),
            ),
            ("facts.provisioning_address", text(provisioning_address)),
            ("facts.monitoring_url", text(monitoring_url)),
            ("facts.location", text(location)),
            ("facts.contact", text(contact)),
        ]);
        for (name, value) in &self.attributes {
            fields.insert(format!("attributes.{name}"), written(value));
        }
        fields
    }
}

/// Rule by rule, as a file writes them.
impl Fields for Policy {
    fn fields(&self) -> BTreeMap<String, String> {
        let written = serde_json::to_value(self).unwrap_or_default();
        let rules = written.as_object().cloned().unwrap_or_default();
        rules
            .into_iter()
            .map(|(rule, value)| (rule, word(value)))
            .collect()
    }
}

impl Fields for ProjectSection {
    fn fields(&self) -> BTreeMap<String, String> {
        let members: Vec<&str> = self.members.iter().map(|login| login.as_str()).collect();
        of([
            ("title", Some(self.title.to_string())),
            (
                "members",
                Some(members.join(", ")).filter(|members| !members.is_empty()),
            ),
        ])
    }
}
