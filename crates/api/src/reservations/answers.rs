//! Answers to booking forms as they arrive, before any form has checked them.

use std::collections::BTreeMap;
use std::fmt;

use berth_model::Name;
use berth_model::parameter::VALUE_MAX_CHARS;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schemas;

/// Answers by the type's name and then by key.
/// Some may be secrets, so they are never printed.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "AnswersByType", into = "AnswersByType")]
pub struct FormAnswers(AnswersByType);

pub type AnswersByType = BTreeMap<Name, BTreeMap<String, Value>>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormAnswersError {
    #[error(
        "at most {} types, with as many answers each, fit one reservation",
        schemas::Parameters::ENTRIES_MAX
    )]
    TooMany,
    #[error(
        "`{0}.{1}` must be a text of at most {VALUE_MAX_CHARS} characters without zeros, a number, true or false"
    )]
    Value(Name, String),
}

impl FormAnswers {
    pub fn into_inner(self) -> AnswersByType {
        self.0
    }
}

impl TryFrom<AnswersByType> for FormAnswers {
    type Error = FormAnswersError;
    fn try_from(answers: AnswersByType) -> Result<Self, FormAnswersError> {
        let most = schemas::Parameters::ENTRIES_MAX;
        if answers.len() > most || answers.values().any(|of_type| of_type.len() > most) {
            return Err(FormAnswersError::TooMany);
        }
        for (kind, of_type) in &answers {
            for (key, value) in of_type {
                // What no form can accept stops here, whatever the form; a zero cannot be stored at all.
                let plain = match value {
                    Value::String(text) => {
                        !text.contains('\0') && text.chars().count() <= VALUE_MAX_CHARS
                    }
                    Value::Null | Value::Bool(_) | Value::Number(_) => true,
                    Value::Array(_) | Value::Object(_) => false,
                };
                if !plain || key.parse::<Name>().is_err() {
                    let key = key.chars().filter(|c| !c.is_control()).take(64).collect();
                    return Err(FormAnswersError::Value(kind.clone(), key));
                }
            }
        }
        Ok(Self(answers))
    }
}

impl From<FormAnswers> for AnswersByType {
    fn from(answers: FormAnswers) -> Self {
        answers.0
    }
}

impl fmt::Debug for FormAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.0.iter().map(|(kind, answers)| (kind, answers.keys()));
        f.debug_map().entries(keys).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_plain_values() {
        let read = serde_json::from_value::<FormAnswers>;
        assert!(
            read(json!({"gpu": {"image": "ubuntu", "nodes": 2, "ssh": true, "x": null}})).is_ok()
        );
        for bad in [
            json!({"gpu": {"image": "a\u{0}"}}),
            json!({"gpu": {"image": ["a"]}}),
            json!({"gpu": {"image": "x".repeat(VALUE_MAX_CHARS + 1)}}),
            json!({"gpu": {"Image": "a"}}),
            json!({"GPU": {}}),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_answer_that_may_be_a_secret_is_not_printed() {
        let answers: FormAnswers =
            serde_json::from_value(json!({"gpu": {"key": "canary"}})).unwrap();
        let printed = format!("{answers:?}");
        assert!(
            printed.contains("key") && !printed.contains("canary"),
            "{printed}"
        );
    }
}
