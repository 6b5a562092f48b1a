//! Custom parameters: what a resource type asks of whoever books it. The same check runs on both ends.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::field::FieldErrors;
use crate::name::{Name, Text};

/// One question of a booking form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    pub key: Name,
    pub label: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<Text>,
    #[serde(default)]
    pub required: bool,
    pub kind: ParameterKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ParameterKind {
    Text {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(maximum = 10_000)]
        max_length: Option<u32>,
    },
    Number {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<f64>,
        #[serde(default)]
        integer: bool,
    },
    Choice {
        options: Vec<Text>,
    },
    Boolean {},
    Date {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, format = Date)]
        min: Option<Date>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, format = Date)]
        max: Option<Date>,
    },
    /// Encrypted at rest, never shown again, masked in audit, events and feeds.
    Secret {},
}

/// The longest text or secret a parameter takes.
pub const VALUE_MAX_CHARS: usize = 10_000;
const PARAMETERS_MAX: usize = 50;
const OPTIONS_MAX: usize = 200;

/// A type's questions, with distinct keys and sane bounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Parameter>", into = "Vec<Parameter>")]
pub struct Form(Vec<Parameter>);

/// A value that must never be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(String);

impl Hidden {
    pub fn new(value: String) -> Self {
        Self(value)
    }
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden")
    }
}

/// Answers that fit their form.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answers {
    pub plain: BTreeMap<Name, Value>,
    pub secrets: BTreeMap<Name, Hidden>,
}

impl TryFrom<Vec<Parameter>> for Form {
    type Error = FieldErrors;
    fn try_from(parameters: Vec<Parameter>) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        let mut seen = BTreeSet::new();
        if parameters.len() > PARAMETERS_MAX {
            errors.push(
                "parameters",
                format!("at most {PARAMETERS_MAX} parameters fit one form"),
            );
        }
        for (i, parameter) in parameters.iter().enumerate() {
            if !seen.insert(&parameter.key) {
                errors.push(
                    format!("parameters[{i}].key"),
                    format!("`{}` is used twice", parameter.key),
                );
            }
            if let Err(message) = parameter.kind.check_bounds() {
                errors.push(format!("parameters[{i}].kind"), message);
            }
        }
        errors.or(Some(())).map(|()| Form(parameters))
    }
}

impl From<Form> for Vec<Parameter> {
    fn from(form: Form) -> Self {
        form.0
    }
}

impl Form {
    pub fn parameters(&self) -> &[Parameter] {
        &self.0
    }

    /// Checks answers against the form. `kept` names the secrets that are stored already and need not come again;
    /// errors are placed under `at` (`parameters.gpu-server`).
    pub fn check(
        &self,
        answers: &BTreeMap<String, Value>,
        kept: &BTreeSet<Name>,
        at: &str,
    ) -> Result<Answers, FieldErrors> {
        let mut errors = FieldErrors::default();
        let mut checked = Answers::default();
        for key in answers
            .keys()
            .filter(|key| !self.0.iter().any(|p| p.key.as_str() == key.as_str()))
        {
            let known: Vec<&str> = self.0.iter().map(|p| p.key.as_str()).collect();
            let known = if known.is_empty() {
                "it asks for none".into()
            } else {
                format!("it asks for {}", known.join(", "))
            };
            let key: String = key.chars().take(64).collect();
            errors.push(
                format!("{at}.{key}"),
                format!("the resource type has no such parameter; {known}"),
            );
        }
        for parameter in &self.0 {
            let field = format!("{at}.{}", parameter.key);
            match answers.get(parameter.key.as_str()) {
                None | Some(Value::Null) => {
                    if parameter.required && !kept.contains(&parameter.key) {
                        errors.push(field, format!("`{}` is required", parameter.label));
                    }
                }
                Some(value) => match (parameter.kind.check(value), &parameter.kind, value) {
                    (Err(message), _, _) => errors.push(field, message),
                    (Ok(()), ParameterKind::Secret {}, Value::String(secret)) => {
                        checked
                            .secrets
                            .insert(parameter.key.clone(), Hidden(secret.clone()));
                    }
                    (Ok(()), _, value) => {
                        checked.plain.insert(parameter.key.clone(), value.clone());
                    }
                },
            }
        }
        errors.or(Some(checked))
    }
}

impl ParameterKind {
    fn check_bounds(&self) -> Result<(), String> {
        match self {
            ParameterKind::Number {
                min: Some(min),
                max: Some(max),
                ..
            } if min > max => Err(format!(
                "the least value ({min}) is above the greatest ({max})"
            )),
            ParameterKind::Date {
                min: Some(min),
                max: Some(max),
            } if min > max => Err(format!("the first date ({min}) is after the last ({max})")),
            ParameterKind::Choice { options } if options.is_empty() => {
                Err("a choice needs options".into())
            }
            ParameterKind::Choice { options } if options.len() > OPTIONS_MAX => {
                Err(format!("a choice takes at most {OPTIONS_MAX} options"))
            }
            ParameterKind::Text {
                max_length: Some(max),
            } if *max as usize > VALUE_MAX_CHARS => {
                Err(format!("texts are at most {VALUE_MAX_CHARS} characters"))
            }
            _ => Ok(()),
        }
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        match (self, value) {
            (ParameterKind::Text { max_length }, Value::String(text)) => {
                let max = max_length.map_or(VALUE_MAX_CHARS, |max| max as usize);
                let is = text.chars().count();
                if is > max {
                    Err(format!("must be at most {max} characters, and is {is}"))
                } else {
                    Ok(())
                }
            }
            (ParameterKind::Text { .. }, _) => Err("must be a text".into()),
            (ParameterKind::Number { min, max, integer }, Value::Number(number)) => {
                let number = number
                    .as_f64()
                    .filter(|n| n.is_finite())
                    .ok_or("must be a number")?;
                if *integer && number.fract() != 0.0 {
                    Err(format!("must be a whole number, and is {number}"))
                } else if min.is_some_and(|min| number < min) || max.is_some_and(|max| number > max)
                {
                    Err(format!(
                        "must be {}, and is {number}",
                        range_in_words(*min, *max)
                    ))
                } else {
                    Ok(())
                }
            }
            (ParameterKind::Number { .. }, _) => Err("must be a number".into()),
            (ParameterKind::Choice { options }, value) => {
                let options: Vec<&str> = options.iter().map(Text::as_str).collect();
                match value {
                    Value::String(text) if options.contains(&text.as_str()) => Ok(()),
                    _ => Err(format!("must be one of: {}", options.join(", "))),
                }
            }
            (ParameterKind::Boolean {}, Value::Bool(_)) => Ok(()),
            (ParameterKind::Boolean {}, _) => Err("must be true or false".into()),
            (ParameterKind::Date { min, max }, Value::String(text)) => {
                let date: Date = text
                    .parse()
                    .map_err(|_| "must be a date such as 2026-11-20".to_owned())?;
                if min.is_some_and(|min| date < min) || max.is_some_and(|max| date > max) {
                    Err(format!(
                        "must be {}, and is {date}",
                        range_in_words(*min, *max)
                    ))
                } else {
                    Ok(())
                }
            }
            (ParameterKind::Date { .. }, _) => Err("must be a date such as 2026-11-20".into()),
            (ParameterKind::Secret {}, Value::String(text)) if text.is_empty() => {
                Err("must not be empty".into())
            }
            (ParameterKind::Secret {}, Value::String(text))
                if text.chars().count() > VALUE_MAX_CHARS =>
            {
                Err(format!("must be at most {VALUE_MAX_CHARS} characters"))
            }
            (ParameterKind::Secret {}, Value::String(_)) => Ok(()),
            (ParameterKind::Secret {}, _) => Err("must be a text".into()),
        }
    }
}

fn range_in_words<T: std::fmt::Display>(min: Option<T>, max: Option<T>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("between {min} and {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "anything".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(kind: Value, required: bool) -> Form {
        serde_json::from_value(
            json!([{"key": "p", "label": "P", "required": required, "kind": kind}]),
        )
        .unwrap()
    }
    fn refusal(form: &Form, value: Value) -> Option<String> {
        let answers = BTreeMap::from([("p".to_owned(), value)]);
        form.check(&answers, &BTreeSet::new(), "parameters")
            .err()
            .map(|errors| errors.to_string())
    }

    #[test]
    fn every_kind_accepts_and_refuses() {
        for (kind, good, bad, why) in [
            (
                json!({"text": {"max_length": 3}}),
                json!("abc"),
                json!("abcd"),
                "at most 3 characters, and is 4",
            ),
            (
                json!({"number": {"min": 1, "max": 8, "integer": true}}),
                json!(8),
                json!(9),
                "between 1 and 8",
            ),
            (
                json!({"number": {"integer": true}}),
                json!(2),
                json!(2.5),
                "whole number",
            ),
            (
                json!({"choice": {"options": ["a", "b"]}}),
                json!("b"),
                json!("c"),
                "one of: a, b",
            ),
            (
                json!({"boolean": {}}),
                json!(true),
                json!("true"),
                "true or false",
            ),
            (
                json!({"date": {"min": "2026-01-01"}}),
                json!("2026-02-01"),
                json!("2025-12-31"),
                "at least 2026-01-01",
            ),
            (
                json!({"secret": {}}),
                json!("hunter2"),
                json!(""),
                "not be empty",
            ),
        ] {
            let form = form(kind.clone(), true);
            assert_eq!(refusal(&form, good), None, "{kind}");
            let said = refusal(&form, bad).expect("refused");
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn all_wrong_fields_are_named_at_once() {
        let form: Form = serde_json::from_value(json!([
            {"key": "image", "label": "Image", "required": true, "kind": {"text": {}}},
            {"key": "vlan", "label": "VLAN", "kind": {"number": {"min": 2, "max": 4094}}},
        ]))
        .unwrap();
        let answers =
            BTreeMap::from([("vlan".to_owned(), json!(1)), ("wlan".to_owned(), json!(1))]);
        let errors = form
            .check(&answers, &BTreeSet::new(), "parameters.server")
            .unwrap_err();
        let fields: Vec<_> = errors.0.iter().map(|e| e.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "parameters.server.wlan",
                "parameters.server.image",
                "parameters.server.vlan"
            ]
        );
    }

    #[test]
    fn a_stored_secret_need_not_come_again_and_is_never_printed() {
        let form = form(json!({"secret": {}}), true);
        let kept = BTreeSet::from(["p".parse().unwrap()]);
        assert!(form.check(&BTreeMap::new(), &kept, "parameters").is_ok());
        assert!(
            form.check(&BTreeMap::new(), &BTreeSet::new(), "parameters")
                .is_err()
        );
        let answers = BTreeMap::from([("p".to_owned(), json!("canary"))]);
        let checked = form.check(&answers, &kept, "parameters").unwrap();
        assert!(checked.plain.is_empty());
        assert!(!format!("{checked:?}").contains("canary"));
    }

    #[test]
    fn a_form_with_impossible_bounds_or_twins_is_refused() {
        let twins = json!([{"key": "p", "label": "P", "kind": {"boolean": {}}}, {"key": "p", "label": "Q", "kind": {"boolean": {}}}]);
        assert!(serde_json::from_value::<Form>(twins).is_err());
        for kind in [
            json!({"number": {"min": 3, "max": 1}}),
            json!({"choice": {"options": []}}),
        ] {
            assert!(
                serde_json::from_value::<Form>(json!([{"key": "p", "label": "P", "kind": kind}]))
                    .is_err()
            );
        }
    }
}
