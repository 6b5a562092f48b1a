//! Moving the end of a reservation. `by` differs from setting an end: it can never shorten by mistake.

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::moment::{Moment, Period};

/// Moves the end: `by` a length of time from the present end, or `until` a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "EitherWay", into = "EitherWay")]
pub enum Extension {
    By(Period),
    Until(Moment),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EitherWay {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<Period>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Moment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("say either `by` (a length of time such as `PT2H`) or `until` (a moment), not both")]
pub struct ExtensionError;

impl TryFrom<EitherWay> for Extension {
    type Error = ExtensionError;
    fn try_from(said: EitherWay) -> Result<Self, ExtensionError> {
        match (said.by, said.until) {
            (Some(by), None) => Ok(Extension::By(by)),
            (None, Some(until)) => Ok(Extension::Until(until)),
            _ => Err(ExtensionError),
        }
    }
}

impl From<Extension> for EitherWay {
    fn from(extension: Extension) -> Self {
        match extension {
            Extension::By(by) => Self {
                by: Some(by),
                until: None,
            },
            Extension::Until(until) => Self {
                by: None,
                until: Some(until),
            },
        }
    }
}

impl PartialSchema for Extension {
    fn schema() -> RefOr<Schema> {
        let only = |field: &str, of: String| {
            ObjectBuilder::new()
                .property(field, Ref::from_schema_name(of))
                .required(field)
                .additional_properties(Some(AdditionalProperties::FreeForm(false)))
        };
        OneOfBuilder::new()
            .item(only("by", Period::name().into_owned()))
            .item(only("until", Moment::name().into_owned()))
            .into()
    }
}

impl ToSchema for Extension {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Period::name().into_owned(), Period::schema()));
        schemas.push((Moment::name().into_owned(), Moment::schema()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_extension_goes_one_way() {
        let read = serde_json::from_value::<Extension>;
        for good in [
            json!({"by": "PT2H"}),
            json!({"until": "2026-11-20T12:00:00Z"}),
        ] {
            let extension = read(good.clone()).unwrap();
            assert_eq!(serde_json::to_value(extension).unwrap(), good);
        }
        for bad in [
            json!({}),
            json!({"by": "PT2H", "until": "2026-11-20T12:00:00Z"}),
            json!({"by": "-PT2H"}),
            json!({"by": "2h"}),
            json!({"to": "2026-11-20T12:00:00Z"}),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }
}
