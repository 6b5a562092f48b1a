//! A site as one file declares it: what it is called, its types, its tree, its projects, its policies.
//!
//! A [`Document`] is how people write it, nested as the tree is. A [`Declared`] is the same with every resource by
//! name and its parent beside it, which is how two of them are compared. A section that a file does not have is not
//! declared, and stays as it is; a thing that a section does not name is *extra*. The status of a resource and the
//! roles of members are daily business and not declared.

mod difference;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::attribute::{self, AttributeValue, Attributes};
use crate::branding::Accent;
use crate::field::FieldErrors;
use crate::inventory::{Capacity, Colour, Facts};
use crate::name::{LoginName, Name, Text};
use crate::parameter::Form;
use crate::person::TimeZone;
use crate::policy::{Part, Policy};
use crate::site::OutsiderView;

pub use difference::{Act, Difference, FieldDifference, Fields, Subject, differing};

/// The most resources one document declares.
pub const RESOURCES_MAX: usize = 50_000;
/// The most types and projects one document declares, and the most members of one project.
pub const TYPES_MAX: usize = 1_000;
pub const PROJECTS_MAX: usize = 10_000;
pub const MEMBERS_MAX: usize = 10_000;
pub const POLICIES_MAX: usize = 1_000;
/// The most levels a tree has, on either database: what both can number, with room for wide levels.
pub const LEVELS_MAX: usize = 20;

/// A new section starts as a field here and in [`Declared`]; decision 6 says where it goes from there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    pub version: Version,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteSection>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<BTreeMap<Name, TypeSection>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<BTreeMap<Name, ResourceSection>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<BTreeMap<Name, ProjectSection>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<Vec<PolicySection>>,
}

/// Which edition of the format this is. There is one; a later one will be told from it by this number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Version;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this Berth reads files that say `version: 1`, and this one says {0}")]
pub struct UnknownVersion(u64);

impl TryFrom<u64> for Version {
    type Error = UnknownVersion;
    fn try_from(number: u64) -> Result<Self, UnknownVersion> {
        if number == 1 {
            Ok(Self)
        } else {
            Err(UnknownVersion(number))
        }
    }
}

impl From<Version> for u64 {
    fn from(_: Version) -> u64 {
        1
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteSection {
    /// Which site is meant, if the file says so. It guards against the wrong one and renames nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    pub title: Text,
    pub time_zone: TimeZone,
    pub outsiders_see: OutsiderView,
    /// Its own colour; none if the file says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accent: Option<Accent>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeSection {
    pub title: Text,
    #[serde(default)]
    pub colour: Colour,
    #[serde(default, skip_serializing_if = "is_false")]
    pub needs_approval: bool,
    #[serde(default, skip_serializing_if = "is_empty_form")]
    pub form: Form,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceSection {
    #[serde(rename = "type")]
    pub kind: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: Attributes,
    #[serde(default, skip_serializing_if = "is_empty_facts")]
    pub facts: Facts,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub children: BTreeMap<Name, ResourceSection>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectSection {
    pub title: Text,
    /// By login. They must be members of the site already.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub members: BTreeSet<LoginName>,
}

/// What bookings of a part of the site must keep; of all of it, where nothing is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySection {
    #[serde(default, rename = "for", skip_serializing_if = "is_whole_site")]
    pub part: Part,
    pub asks: Policy,
}

fn is_whole_site(part: &Part) -> bool {
    *part == Part::default()
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_empty_form(form: &Form) -> bool {
    form.parameters().is_empty()
}

fn is_empty_facts(facts: &Facts) -> bool {
    *facts == Facts::default()
}

/// A document laid flat, or a site as it stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declared {
    pub site: Option<SiteSection>,
    pub types: Option<BTreeMap<Name, TypeSection>>,
    pub resources: Option<BTreeMap<Name, DeclaredResource>>,
    pub projects: Option<BTreeMap<Name, ProjectSection>>,
    pub policies: Option<BTreeMap<Part, Policy>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredResource {
    pub parent: Option<Name>,
    pub kind: Name,
    pub title: Option<Text>,
    pub attributes: Attributes,
    pub facts: Facts,
    pub capacity: Option<Capacity>,
}

impl Document {
    /// Lays the tree flat, and says everything that is wrong with the document by itself, each under the path it has
    /// there (`resources.rack-a.children.gpu-01.attributes`).
    pub fn flat(self) -> Result<Declared, FieldErrors> {
        let mut errors = FieldErrors::default();
        let resources = self.resources.map(|roots| {
            let mut laying = Laying {
                flat: BTreeMap::new(),
                errors: &mut errors,
            };
            laying.lay("resources", None, roots, 1);
            laying.flat
        });
        let policies = self.policies.map(|sections| {
            let mut flat = BTreeMap::new();
            for (i, section) in sections.into_iter().enumerate() {
                if flat.insert(section.part, section.asks).is_some() {
                    let said = "the same part of the site has two policies; make them one";
                    errors.push(format!("policies[{i}].for"), said);
                }
            }
            flat
        });
        let count = |things: Option<usize>| things.unwrap_or_default();
        for (field, is, max) in [
            (
                "types",
                count(self.types.as_ref().map(BTreeMap::len)),
                TYPES_MAX,
            ),
            (
                "resources",
                count(resources.as_ref().map(BTreeMap::len)),
                RESOURCES_MAX,
            ),
            (
                "projects",
                count(self.projects.as_ref().map(BTreeMap::len)),
                PROJECTS_MAX,
            ),
            (
                "policies",
                count(policies.as_ref().map(BTreeMap::len)),
                POLICIES_MAX,
            ),
        ] {
            if is > max {
                errors.push(
                    field,
                    format!("one file takes at most {max} {field}, and this has {is}"),
                );
            }
        }
        for (name, project) in self.projects.iter().flatten() {
            if project.members.len() > MEMBERS_MAX {
                let field = format!("projects.{name}.members");
                errors.push(
                    field,
                    format!("a project takes at most {MEMBERS_MAX} members"),
                );
            }
        }
        errors.or(Some(Declared {
            site: self.site,
            types: self.types,
            resources,
            projects: self.projects,
            policies,
        }))
    }
}

struct Laying<'e> {
    flat: BTreeMap<Name, DeclaredResource>,
    errors: &'e mut FieldErrors,
}

impl Laying<'_> {
    fn lay(
        &mut self,
        at: &str,
        parent: Option<&Name>,
        sections: BTreeMap<Name, ResourceSection>,
        level: usize,
    ) {
        for (name, section) in sections {
            let at = format!("{at}.{name}");
            if level > LEVELS_MAX {
                let said = format!("the tree has at most {LEVELS_MAX} levels");
                return self.errors.push(at, said);
            }
            if let Err(error) = attribute::check(&section.attributes) {
                self.errors
                    .push(format!("{at}.attributes"), error.to_string());
            }
            if section.capacity.is_some() && !section.children.is_empty() {
                self.errors.push(
                    format!("{at}.children"),
                    "a resource with a capacity has no children; give the capacity to a child",
                );
            }
            let resource = DeclaredResource {
                parent: parent.cloned(),
                kind: section.kind,
                title: section.title,
                attributes: section.attributes,
                facts: section.facts,
                capacity: section.capacity,
            };
            self.lay(
                &format!("{at}.children"),
                Some(&name),
                section.children,
                level + 1,
            );
            if self.flat.contains_key(&name) {
                let said =
                    format!("`{name}` stands in the file twice; a name is unique in its site");
                self.errors.push(at, said);
            }
            self.flat.insert(name, resource);
        }
    }
}

impl Declared {
    /// The same as people write it. What hangs below nothing that is known stands at the top.
    pub fn nested(self) -> Document {
        let resources = self.resources.map(|flat| {
            let mut below: BTreeMap<Option<Name>, BTreeMap<Name, DeclaredResource>> =
                BTreeMap::new();
            let known: BTreeSet<Name> = flat.keys().cloned().collect();
            for (name, resource) in flat {
                let parent = resource
                    .parent
                    .clone()
                    .filter(|parent| known.contains(parent));
                below.entry(parent).or_default().insert(name, resource);
            }
            nest(None, &mut below)
        });
        Document {
            version: Version,
            site: self.site,
            types: self.types,
            resources,
            projects: self.projects,
            policies: self.policies.map(|flat| {
                let section = |(part, asks)| PolicySection { part, asks };
                flat.into_iter().map(section).collect()
            }),
        }
    }
}

fn nest(
    parent: Option<Name>,
    below: &mut BTreeMap<Option<Name>, BTreeMap<Name, DeclaredResource>>,
) -> BTreeMap<Name, ResourceSection> {
    let here = below.remove(&parent).unwrap_or_default();
    let section = |(name, resource): (Name, DeclaredResource)| {
        let section = ResourceSection {
            kind: resource.kind,
            title: resource.title,
            capacity: resource.capacity,
            attributes: resource.attributes,
            facts: resource.facts,
            children: nest(Some(name.clone()), below),
        };
        (name, section)
    };
    here.into_iter().map(section).collect()
}

/// An attribute as people write it, so that [`AttributeValue::from_text`] reads the same back: a text that looks like
/// a number, a flag or a quoted text, or begins or ends with a space, is quoted.
pub fn written(value: &AttributeValue) -> String {
    match value {
        AttributeValue::Text(text)
            if text.starts_with('"')
                || text.trim() != text
                || AttributeValue::from_text(text) != AttributeValue::Text(text.clone()) =>
        {
            serde_json::Value::from(text.as_str()).to_string()
        }
        value => value.to_string(),
    }
}

/// Reads what [`written`] wrote.
pub fn read_attribute(text: &str) -> AttributeValue {
    match serde_json::from_str::<String>(text) {
        Ok(quoted) if text.starts_with('"') => AttributeValue::Text(quoted),
        _ => AttributeValue::from_text(text),
    }
}

#[cfg(test)]
#[path = "declared/tests.rs"]
mod tests;
