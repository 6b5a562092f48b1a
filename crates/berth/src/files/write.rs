//! A site written as a file: always the same text for the same site, so that `git diff` shows what changed and no more.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use berth_model::attribute::AttributeValue;
use berth_model::declared::{
    Document, PolicySection, ProjectSection, ResourceSection, SiteSection, TypeSection,
};
use berth_model::inventory::{Capacity, Facts};
use berth_model::{Name, Text};

/// Words that YAML readers take for something else than a text.
const NOT_PLAIN: [&str; 12] = [
    "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity",
];

pub fn document(document: &Document) -> String {
    let mut out = Out::default();
    out.line(0, "version: 1");
    if let Some(site) = &document.site {
        write_site(&mut out, site);
    }
    if let Some(types) = &document.types {
        out.section(0, "types", types, write_type);
    }
    if let Some(resources) = &document.resources {
        out.section(0, "resources", resources, write_resource);
    }
    if let Some(projects) = &document.projects {
        out.section(0, "projects", projects, write_project);
    }
    if let Some(policies) = &document.policies {
        write_policies(&mut out, policies);
    }
    out.text
}

#[derive(Default)]
struct Out {
    text: String,
}

impl Out {
    fn line(&mut self, level: usize, line: &str) {
        // Writing to a text cannot fail.
        writeln!(self.text, "{:width$}{line}", "", width = 2 * level).unwrap_or_default();
    }

    fn field(&mut self, level: usize, key: &str, value: &str) {
        self.line(level, &format!("{key}: {value}"));
    }

    fn texts<'t>(
        &mut self,
        level: usize,
        fields: impl IntoIterator<Item = (&'static str, Option<&'t Text>)>,
    ) {
        for (key, value) in fields {
            if let Some(value) = value {
                self.field(level, key, &scalar(value.as_str()));
            }
        }
    }

    fn section<T>(
        &mut self,
        level: usize,
        key: &str,
        things: &BTreeMap<Name, T>,
        write: fn(&mut Out, usize, &T),
    ) {
        if things.is_empty() {
            return self.line(level, &format!("{key}: {{}}"));
        }
        self.line(level, &format!("{key}:"));
        for (name, thing) in things {
            self.line(level + 1, &format!("{}:", scalar(name.as_str())));
            write(self, level + 2, thing);
        }
    }
}

fn write_site(out: &mut Out, site: &SiteSection) {
    out.line(0, "site:");
    if let Some(name) = &site.name {
        out.field(1, "name", &scalar(name.as_str()));
    }
    out.texts(1, [("title", Some(&site.title))]);
    out.field(1, "time_zone", &scalar(site.time_zone.as_str()));
    out.field(
        1,
        "outsiders_see",
        &inline(&serde_json::json!(site.outsiders_see)),
    );
    if let Some(accent) = &site.accent {
        out.field(1, "accent", &scalar(&accent.to_string()));
    }
}

fn write_type(out: &mut Out, level: usize, kind: &TypeSection) {
    out.texts(level, [("title", Some(&kind.title))]);
    out.field(level, "colour", &scalar(&String::from(kind.colour.clone())));
    if kind.needs_approval {
        out.field(level, "needs_approval", "true");
    }
    if kind.form.parameters().is_empty() {
        return;
    }
    out.line(level, "form:");
    for parameter in kind.form.parameters() {
        out.line(
            level + 1,
            &format!("- key: {}", scalar(parameter.key.as_str())),
        );
        out.texts(
            level + 2,
            [
                ("label", Some(&parameter.label)),
                ("help", parameter.help.as_ref()),
            ],
        );
        if parameter.required {
            out.field(level + 2, "required", "true");
        }
        out.field(
            level + 2,
            "kind",
            &inline(&serde_json::json!(parameter.kind)),
        );
    }
}

fn write_resource(out: &mut Out, level: usize, resource: &ResourceSection) {
    out.field(level, "type", &scalar(resource.kind.as_str()));
    out.texts(level, [("title", resource.title.as_ref())]);
    if let Some(Capacity { amount, unit }) = &resource.capacity {
        let amount = amount.get();
        let unit = scalar(unit.as_str());
        out.field(
            level,
            "capacity",
            &format!("{{amount: {amount}, unit: {unit}}}"),
        );
    }
    if !resource.attributes.is_empty() {
        out.line(level, "attributes:");
        for (name, value) in &resource.attributes {
            let value = match value {
                AttributeValue::Flag(flag) => flag.to_string(),
                AttributeValue::Number(value) => number(*value),
                AttributeValue::Text(text) => scalar(text),
            };
            out.field(level + 1, &scalar(name.as_str()), &value);
        }
    }
    if resource.facts != Facts::default() {
        let Facts {
            provisioning_address,
            monitoring_url,
            location,
            contact,
        } = &resource.facts;
        out.line(level, "facts:");
        out.texts(
            level + 1,
            [
                ("provisioning_address", provisioning_address.as_ref()),
                ("monitoring_url", monitoring_url.as_ref()),
                ("location", location.as_ref()),
                ("contact", contact.as_ref()),
            ],
        );
    }
    if !resource.children.is_empty() {
        out.section(level, "children", &resource.children, write_resource);
    }
}

fn write_project(out: &mut Out, level: usize, project: &ProjectSection) {
    out.texts(level, [("title", Some(&project.title))]);
    if !project.members.is_empty() {
        out.line(level, "members:");
        for login in &project.members {
            out.line(level + 1, &format!("- {}", scalar(login.as_str())));
        }
    }
}

fn write_policies(out: &mut Out, policies: &[PolicySection]) {
    if policies.is_empty() {
        return out.line(0, "policies: []");
    }
    out.line(0, "policies:");
    for policy in policies {
        let part = inline(&serde_json::json!(policy.part));
        out.line(1, &format!("- for: {part}"));
        let asks = serde_json::json!(policy.asks);
        let rules = asks.as_object().cloned().unwrap_or_default();
        if rules.is_empty() {
            out.field(2, "asks", "{}");
            continue;
        }
        out.line(2, "asks:");
        for (rule, value) in &rules {
            out.field(3, rule, &inline(value));
        }
    }
}

/// A text: plain where nobody could take it for anything else, quoted as JSON quotes it otherwise.
pub fn scalar(text: &str) -> String {
    let inner = |c: char| c.is_ascii_alphanumeric() || " _-./@+()".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == ')')
        && text.chars().all(inner)
        && !NOT_PLAIN.contains(&text.to_ascii_lowercase().as_str());
    if is_plain {
        return text.to_owned();
    }
    let quoted = serde_json::Value::from(text).to_string();
    // YAML wants some characters escaped that JSON takes as they are.
    let mut escaped = String::with_capacity(quoted.len());
    for character in quoted.chars() {
        match character {
            '\u{7f}'..='\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}'..
                if (character as u32) < 0x1_0000 =>
            {
                write!(escaped, "\\u{:04x}", character as u32).unwrap_or_default();
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// Whole numbers without a point.
fn number(value: f64) -> String {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        format!("{value:.0}")
    } else {
        serde_json::json!(value).to_string()
    }
}

/// A small value on one line.
fn inline(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => scalar(text),
        serde_json::Value::Number(value) => value.as_f64().map(number).unwrap_or_default(),
        serde_json::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        serde_json::Value::Object(fields) => {
            let field =
                |(key, value): (&String, &serde_json::Value)| format!("{key}: {}", inline(value));
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::files::read::site_file;

    fn read(text: &str) -> Document {
        site_file(text, "site.yaml", Path::new("."), &|_| None)
            .unwrap()
            .document
    }

    #[test]
    fn a_site_is_written_as_people_would() {
        let site: Document = serde_json::from_value(json!({
            "version": 1,
            "site": {"name": "torino", "title": "Torino: the lab", "time_zone": "Europe/Rome", "outsiders_see": "free_busy"},
            "types": {
                "gpu": {"title": "GPU server", "needs_approval": true, "form": [
                    {"key": "image", "label": "Image", "required": true, "kind": {"choice": {"options": ["a", "b: c"]}}},
                    {"key": "nodes", "label": "Nodes", "kind": {"number": {"min": 1, "max": 2.5, "integer": false}}}]},
                "no": {"title": "No"}},
            "resources": {"rack-a": {"type": "no", "children": {"gpu-01": {
                "type": "gpu", "title": "8", "capacity": {"amount": 8, "unit": "gpus"},
                "attributes": {"gpus": 8, "nvlink": true, "model": "A100", "odd": "true", "x": 0.5},
                "facts": {"contact": "ada@lab.example"}}}}},
            "projects": {"vision": {"title": "Vision", "members": ["ada", "bob"]}},
        }))
        .unwrap();
        let written = document(&site);
        assert_eq!(
            written,
            "version: 1\nsite:\n  name: torino\n  title: \"Torino: the lab\"\n  time_zone: Europe/Rome\n  \
             outsiders_see: free_busy\ntypes:\n  gpu:\n    title: GPU server\n    colour: \"#1f77b4\"\n    \
             needs_approval: true\n    form:\n      - key: image\n        label: Image\n        required: true\n        \
             kind: {choice: {options: [a, \"b: c\"]}}\n      - key: nodes\n        label: Nodes\n        \
             kind: {number: {integer: false, max: 2.5, min: 1}}\n  \"no\":\n    title: \"No\"\n    \
             colour: \"#1f77b4\"\nresources:\n  rack-a:\n    type: \"no\"\n    children:\n      gpu-01:\n        \
             type: gpu\n        title: \"8\"\n        capacity: {amount: 8, unit: gpus}\n        attributes:\n          \
             gpus: 8\n          model: A100\n          nvlink: true\n          odd: \"true\"\n          x: 0.5\n        \
             facts:\n          contact: ada@lab.example\nprojects:\n  vision:\n    title: Vision\n    members:\n      \
             - ada\n      - bob\n"
        );
        assert_eq!(read(&written), site);
        assert_eq!(document(&read(&written)), written);
    }

    #[test]
    fn what_is_empty_is_said_to_be_empty() {
        let none: Document =
            serde_json::from_value(json!({"version": 1, "types": {}, "resources": {}})).unwrap();
        assert_eq!(document(&none), "version: 1\ntypes: {}\nresources: {}\n");
        assert_eq!(read(&document(&none)), none);
    }

    proptest! {
        #[test]
        fn any_text_and_number_reads_back(text in "\\PC{1,40}|[ -~]{1,20}|[a-z0-9.: #-]{1,9}", value in any::<f64>()) {
            let Ok(title) = text.parse::<Text>() else { return Ok(()) };
            prop_assume!(value.is_finite());
            let site: Document = serde_json::from_value(json!({"version": 1, "resources": {
                "1e3": {"type": "null", "title": title, "attributes": {"x": value}}}})).unwrap();
            prop_assert_eq!(read(&document(&site)), site);
        }
    }
}
