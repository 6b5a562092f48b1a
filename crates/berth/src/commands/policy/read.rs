//! Policies as people write them: a file of YAML or JSON, or rules one by one.

use std::path::Path;
use std::str::FromStr;

use berth_model::policy::{Policy, Rule};
use serde_json::{Map, Value};

use crate::commands::types::read_text;
use crate::failure::usage;

/// One rule and its value, `length_max=12h`; or without one, to take the rule away.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    rule: Rule,
    value: Option<Value>,
}

impl FromStr for Pair {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (rule, value) = text.split_once('=').ok_or_else(|| {
            format!("`{text}` sets nothing: write RULE=VALUE, as in `length_max=12h`")
        })?;
        let known = Rule::ALL.iter().find(|known| known.as_str() == rule.trim());
        let rule = *known.ok_or_else(|| {
            let all: Vec<&str> = Rule::ALL.iter().map(|rule| rule.as_str()).collect();
            format!("`{rule}` is no rule; these are: {}", all.join(", "))
        })?;
        let value = match value.trim() {
            "" => None,
            value => Some(parse(value)?),
        };
        Ok(Self { rule, value })
    }
}

/// Everything that JSON says, YAML says in the same way.
fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

/// The policy that a file holds.
pub fn policy(file: &Path) -> anyhow::Result<Policy> {
    let text = read_text(file)?;
    whole(&text).map_err(|why| usage(format!("{}: {why}", file.display())))
}

fn whole(text: &str) -> Result<Policy, String> {
    let rules: Map<String, Value> = parse(text)?;
    checked(rules)
}

/// The policy with some rules changed and the others as they were.
pub fn changed(before: &Policy, pairs: &[Pair]) -> anyhow::Result<Policy> {
    let mut rules = match serde_json::to_value(before)? {
        Value::Object(rules) => rules,
        _ => Map::new(),
    };
    for pair in pairs {
        let rule = pair.rule.as_str().to_owned();
        match &pair.value {
            Some(value) => rules.insert(rule, value.clone()),
            None => rules.remove(&rule),
        };
    }
    checked(rules).map_err(usage)
}

/// Rule by rule first, so that a mistake is told with the rule that it is in.
fn checked(rules: Map<String, Value>) -> Result<Policy, String> {
    for (rule, value) in &rules {
        let alone: Map<String, Value> = [(rule.clone(), value.clone())].into_iter().collect();
        serde_json::from_value::<Policy>(Value::Object(alone))
            .map_err(|error| format!("{rule}: {error}"))?;
    }
    serde_json::from_value(Value::Object(rules)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_is_yaml_or_json() {
        let yaml = "length_max: 12h\nactive_bookings: 3\nopening_hours:\n  mon: [\"08:00-18:00\"]\napproval:\n  longer_than: 4h\n  approvers: [site_admins, {project: leads}]\n";
        let json = json!({
            "length_max": "12h", "active_bookings": 3,
            "opening_hours": {"mon": ["08:00-18:00"]},
            "approval": {"longer_than": "4h", "approvers": ["site_admins", {"project": "leads"}]},
        });
        let read = whole(yaml).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), json);
        assert_eq!(whole(&json.to_string()).unwrap(), read);
        assert_eq!(whole("{}").unwrap(), Policy::default());
        for (bad, named) in [
            ("length_max: 12 parsecs", "length_max: "),
            ("lenght_max: 12h", "lenght_max: "),
            ("[1", ""),
            ("- a", ""),
        ] {
            let why = whole(bad).unwrap_err();
            assert!(why.contains(named), "{bad}: {why}");
        }
    }

    #[test]
    fn rules_are_changed_one_by_one() {
        let pair = |text: &str| text.parse::<Pair>().unwrap();
        let before = whole("length_max: 12h\nnotice: 1h").unwrap();
        let pairs = [
            pair("length_max=8h"),
            pair("notice="),
            pair("active_bookings=3"),
            pair("closed_on_holidays=true"),
            pair("who_may_book={roles: [member]}"),
        ];
        let after = changed(&before, &pairs).unwrap();
        assert_eq!(
            serde_json::to_value(after).unwrap(),
            json!({
                "length_max": "8h", "active_bookings": 3, "closed_on_holidays": true,
                "who_may_book": {"roles": ["member"]},
            })
        );
        assert!("length_max".parse::<Pair>().is_err());
        let unknown = "lenght_max=1h".parse::<Pair>().unwrap_err();
        assert!(unknown.contains("length_max, "), "{unknown}");
        assert!(changed(&before, &[pair("length_max=long")]).is_err());
    }
}
