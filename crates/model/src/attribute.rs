//! Attributes describe a resource (`gpu_model = A100`, `gpus = 8`); requirements match them (`gpus>=4`).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::name::Name;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum AttributeValue {
    Flag(bool),
    Number(f64),
    Text(String),
}

pub type Attributes = BTreeMap<Name, AttributeValue>;

pub const ATTRIBUTES_MAX: usize = 100;
pub const VALUE_MAX_CHARS: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttributesError {
    #[error("a resource takes at most {ATTRIBUTES_MAX} attributes, and this has {0}")]
    TooMany(usize),
    #[error("`{0}` must be a text of 1 to {VALUE_MAX_CHARS} characters without control characters")]
    Text(Name),
}

/// Whether these are few enough to describe one resource, their texts short and printable.
pub fn check(attributes: &Attributes) -> Result<(), AttributesError> {
    if attributes.len() > ATTRIBUTES_MAX {
        return Err(AttributesError::TooMany(attributes.len()));
    }
    for (name, value) in attributes {
        if let AttributeValue::Text(text) = value {
            let length = text.chars().count();
            let good =
                (1..=VALUE_MAX_CHARS).contains(&length) && !text.chars().any(char::is_control);
            if !good {
                return Err(AttributesError::Text(name.clone()));
            }
        }
    }
    Ok(())
}

impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeValue::Flag(flag) => write!(f, "{flag}"),
            AttributeValue::Number(number) => write!(f, "{number}"),
            AttributeValue::Text(text) => f.write_str(text),
        }
    }
}

impl AttributeValue {
    /// Reads a value the way people write it: a number if it is one, a flag if it is one, else text.
    pub fn from_text(text: &str) -> Self {
        match (text.parse::<f64>(), text) {
            (Ok(number), _) if number.is_finite() => AttributeValue::Number(number),
            (_, "true") => AttributeValue::Flag(true),
            (_, "false") => AttributeValue::Flag(false),
            _ => AttributeValue::Text(text.to_owned()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    AtLeast,
    AtMost,
    More,
    Less,
}

/// Longer signs first: `>=` must not be read as `>` followed by `=4`.
const SIGNS: [(&str, Comparison); 6] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("!=", Comparison::NotEqual),
    (">", Comparison::More),
    ("<", Comparison::Less),
    ("=", Comparison::Equal),
];

/// One condition on a resource's attributes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Requirement {
    pub attribute: Name,
    pub comparison: Comparison,
    pub value: AttributeValue,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    #[error(
        "`{0}` is not a requirement: write it like `gpu_model=A100`, `gpus>=4` or `nvlink!=true`"
    )]
    Shape(String),
    #[error("`{0}` compares by size, but `{1}` is not a number")]
    NotANumber(String, String),
}

impl FromStr for Requirement {
    type Err = RequirementError;
    fn from_str(text: &str) -> Result<Self, RequirementError> {
        let shape = || RequirementError::Shape(text.chars().take(100).collect());
        let at = text.find(['<', '>', '=', '!']).ok_or_else(shape)?;
        let (attribute, rest) = text.split_at(at);
        let (sign, comparison) = SIGNS
            .into_iter()
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or_else(shape)?;
        let attribute = attribute.trim().parse().map_err(|_| shape())?;
        let written = rest[sign.len()..].trim();
        let value = AttributeValue::from_text(written);
        if written.is_empty() || written.len() > 200 {
            return Err(shape());
        }
        let by_size = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        if by_size && !matches!(value, AttributeValue::Number(_)) {
            return Err(RequirementError::NotANumber(sign.into(), written.into()));
        }
        Ok(Requirement {
            attribute,
            comparison,
            value,
        })
    }
}

impl TryFrom<String> for Requirement {
    type Error = RequirementError;
    fn try_from(text: String) -> Result<Self, RequirementError> {
        text.parse()
    }
}

impl From<Requirement> for String {
    fn from(requirement: Requirement) -> String {
        requirement.to_string()
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = SIGNS
            .into_iter()
            .find(|(_, comparison)| *comparison == self.comparison)
            .map_or("=", |(sign, _)| sign);
        write!(f, "{}{sign}{}", self.attribute, self.value)
    }
}

impl Requirement {
    /// By how much more than asked for a resource has, in thousandths of what was asked: the less, the better it is
    /// spared for others. Only a lower bound can be exceeded.
    pub fn excess(&self, attributes: &Attributes) -> u64 {
        let (Some(AttributeValue::Number(has)), AttributeValue::Number(asked)) =
            (attributes.get(&self.attribute), &self.value)
        else {
            return 0;
        };
        let lower = matches!(self.comparison, Comparison::AtLeast | Comparison::More);
        let part = (has - asked) / asked.abs().max(1.0);
        if lower && part > 0.0 {
            // Saturates, which is as much as anyone needs to know.
            (part * 1000.0) as u64
        } else {
            0
        }
    }

    /// A resource without the attribute meets no requirement on it, not even `!=`: nothing is known of it.
    pub fn is_met_by(&self, attributes: &Attributes) -> bool {
        let Some(has) = attributes.get(&self.attribute) else {
            return false;
        };
        match self.comparison {
            Comparison::Equal => same(has, &self.value),
            Comparison::NotEqual => !same(has, &self.value),
            Comparison::AtLeast => by_size(has, &self.value, |a, b| a >= b),
            Comparison::AtMost => by_size(has, &self.value, |a, b| a <= b),
            Comparison::More => by_size(has, &self.value, |a, b| a > b),
            Comparison::Less => by_size(has, &self.value, |a, b| a < b),
        }
    }
}

fn same(a: &AttributeValue, b: &AttributeValue) -> bool {
    match (a, b) {
        (AttributeValue::Number(a), AttributeValue::Number(b)) => a == b,
        // People type `a100`; the inventory says `A100`. `A100` stored as text equals a number written as text.
        (a, b) => a.to_string().eq_ignore_ascii_case(&b.to_string()),
    }
}

fn by_size(a: &AttributeValue, b: &AttributeValue, holds: fn(f64, f64) -> bool) -> bool {
    matches!((a, b), (AttributeValue::Number(a), AttributeValue::Number(b)) if holds(*a, *b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_match_as_written() {
        let attributes: Attributes = [
            ("gpu_model", "A100"),
            ("gpus", "8"),
            ("nvlink", "true"),
            ("nic_gbps", "25"),
        ]
        .into_iter()
        .map(|(name, value)| (name.parse().unwrap(), AttributeValue::from_text(value)))
        .collect();
        for (text, met) in [
            ("gpu_model=A100", true),
            ("gpu_model=a100", true),
            ("gpu_model!=A100", false),
            ("gpu_model=H100", false),
            ("gpus>=4", true),
            ("gpus >= 8", true),
            ("gpus>8", false),
            ("gpus<=8", true),
            ("gpus<8", false),
            ("nic_gbps=25.0", true),
            ("nvlink=true", true),
            ("disks>=1", false),
            ("disks!=1", false),
        ] {
            let requirement = text.parse::<Requirement>().unwrap();
            assert_eq!(requirement.is_met_by(&attributes), met, "{text}");
            let again: Requirement = requirement.to_string().parse().unwrap();
            assert_eq!(again, requirement, "{text}");
        }
        for (text, excess) in [("gpus>=4", 1000), ("gpus>=8", 0), ("gpus<=9", 0)] {
            let requirement = text.parse::<Requirement>().unwrap();
            assert_eq!(requirement.excess(&attributes), excess, "{text}");
        }
        for bad in ["", "gpus", ">=4", "gpus>=many", "Gpus=1", "gpus=", "a b=3"] {
            assert!(bad.parse::<Requirement>().is_err(), "{bad}");
        }
    }
}
