//! Attributes that describe a resource, and the requirements that match them, as requests write them.

use berth_model::attribute::{self, ATTRIBUTES_MAX, VALUE_MAX_CHARS};
use berth_model::attribute::{Attributes, AttributesError, Requirement, RequirementError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Schema, Type};

use crate::schemas;

/// What describes a resource for matching: at most 100 attributes, their texts short and printable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Attributes", into = "Attributes")]
pub struct AttributeSet(Attributes);

impl AttributeSet {
    pub fn into_inner(self) -> Attributes {
        self.0
    }
}

impl TryFrom<Attributes> for AttributeSet {
    type Error = AttributesError;
    fn try_from(attributes: Attributes) -> Result<Self, AttributesError> {
        attribute::check(&attributes)?;
        Ok(Self(attributes))
    }
}

impl From<AttributeSet> for Attributes {
    fn from(set: AttributeSet) -> Self {
        set.0
    }
}

impl utoipa::PartialSchema for AttributeSet {
    fn schema() -> RefOr<Schema> {
        let values = [
            schemas::of(Type::Boolean),
            schemas::of(Type::Number),
            schemas::text(1, VALUE_MAX_CHARS)
                .pattern(Some(schemas::NO_CONTROLS))
                .into(),
        ];
        schemas::map(ATTRIBUTES_MAX, schemas::one_of(values))
            .examples([serde_json::json!({"gpu_model": "A100", "gpus": 8, "nvlink": true})])
            .into()
    }
}
impl ToSchema for AttributeSet {}

/// One requirement on attributes as people write it: `gpus>=4`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Where {
    written: String,
    requirement: Requirement,
}

impl Where {
    pub fn requirement(&self) -> &Requirement {
        &self.requirement
    }
}

impl TryFrom<String> for Where {
    type Error = RequirementError;
    fn try_from(written: String) -> Result<Self, RequirementError> {
        Ok(Self {
            requirement: written.parse()?,
            written,
        })
    }
}

impl std::str::FromStr for Where {
    type Err = RequirementError;
    fn from_str(text: &str) -> Result<Self, RequirementError> {
        text.to_owned().try_into()
    }
}

impl From<Where> for String {
    fn from(requirement: Where) -> String {
        requirement.written
    }
}

impl utoipa::PartialSchema for Where {
    fn schema() -> RefOr<Schema> {
        schemas::text(3, 300)
            .pattern(Some(
                r"^[a-z0-9][a-z0-9_.-]{0,62} ?((=|!=) ?[!-~]{1,100}|(>=|<=|>|<) ?[0-9]{1,9})$",
            ))
            .description(Some("A requirement on attributes."))
            .examples(["gpu_model=A100", "gpus>=4", "nvlink!=true"])
            .into()
    }
}
impl ToSchema for Where {}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::attribute::AttributeValue;
    use serde_json::json;

    #[test]
    fn attributes_have_bounds() {
        let read = serde_json::from_value::<AttributeSet>;
        let good = json!({"gpu_model": "A100", "gpus": 8, "nvlink": true});
        assert_eq!(
            serde_json::to_value(read(good).unwrap()).unwrap()["gpu_model"],
            "A100"
        );
        let crowd: serde_json::Map<_, _> = (0..=ATTRIBUTES_MAX)
            .map(|i| (format!("a{i}"), json!(1)))
            .collect();
        for bad in [
            json!({"a": ""}),
            json!({"a": "x\u{0}"}),
            json!({"a": "x".repeat(VALUE_MAX_CHARS + 1)}),
            json!({"A": 1}),
            json!({"a": null}),
            json!({"a": []}),
            crowd.into(),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_requirement_is_sent_as_it_was_written() {
        let requirement: Where = "gpus >= 4".parse().unwrap();
        assert_eq!(requirement.requirement().value, AttributeValue::Number(4.0));
        assert_eq!(String::from(requirement), "gpus >= 4");
        assert!("gpus".parse::<Where>().is_err());
    }
}
