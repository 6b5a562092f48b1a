//! Resource types: what a kind of thing is called, and what a booking of it asks for.

use berth_model::inventory::{self, Colour};
use berth_model::parameter::Parameter;
use berth_model::{Name, Text, TypeId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::names::{Names, SiteRef};
use crate::patch::present;
use crate::schemas;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceType {
    pub id: TypeId,
    pub site: SiteRef,
    pub name: Name,
    pub title: Text,
    #[schema(value_type = schemas::Colour)]
    pub colour: Colour,
    /// The questions of the booking form.
    #[schema(value_type = Vec<schemas::Parameter>)]
    pub parameters: Vec<Parameter>,
    /// Whether a site admin must say yes before a booking is confirmed.
    pub needs_approval: bool,
    pub version: u64,
}

impl ResourceType {
    pub fn new(kind: inventory::ResourceType, names: &Names) -> Self {
        Self {
            id: kind.id,
            site: names.site(kind.site),
            name: kind.name,
            title: kind.title,
            colour: kind.colour,
            parameters: kind.form.into(),
            needs_approval: kind.needs_approval,
            version: kind.version,
        }
    }
}

/// A type to make. Its parameters are the questions of the booking form; their keys must differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewType {
    pub name: Name,
    pub title: Text,
    #[schema(value_type = schemas::Colour)]
    pub colour: Colour,
    #[serde(default)]
    #[schema(value_type = Vec<schemas::Parameter>, max_items = 50)]
    pub parameters: Vec<Parameter>,
    #[serde(default)]
    pub needs_approval: bool,
}

/// Absent fields stay as they are; `parameters` replace all those before them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TypePatch {
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub name: Option<Name>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub title: Option<Text>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<schemas::Colour>, nullable = false)]
    pub colour: Option<Colour>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<Vec<schemas::Parameter>>, max_items = 50, nullable = false)]
    pub parameters: Option<Vec<Parameter>>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub needs_approval: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::parameter::Form;
    use serde_json::json;

    #[test]
    fn a_form_s_mistakes_are_named_by_field() {
        let new: NewType = serde_json::from_value(json!({
            "name": "gpu-server", "title": "GPU server", "colour": "#1F77B4",
            "parameters": [
                {"key": "image", "label": "Image", "kind": {"text": {}}},
                {"key": "image", "label": "Twin", "kind": {"choice": {"options": []}}},
            ],
        }))
        .unwrap();
        let fields: Vec<String> = Form::try_from(new.parameters)
            .unwrap_err()
            .0
            .into_iter()
            .map(|error| error.field)
            .collect();
        assert_eq!(fields, ["parameters[1].key", "parameters[1].kind"]);
    }
}
