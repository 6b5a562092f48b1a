//! JSON schemas in words: what kind of value, within which bounds, with which fields.

use std::fmt::Write;

use serde_json::Value;

use super::html::escape;
use super::markdown::inline;

/// What kind of value a schema describes, as one phrase of HTML.
pub fn phrase(schema: &Value) -> String {
    if let Some(name) = referred(schema) {
        let name = escape(name);
        return format!("<a href=\"#schema-{name}\">{name}</a>");
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(kinds) = schema[choice].as_array() {
            let kinds: Vec<String> = kinds.iter().map(phrase).collect();
            return kinds.join(" or ");
        }
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let parts: Vec<String> = parts.iter().map(phrase).collect();
        return parts.join(" with ");
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(literal).collect();
        return values.join(" or ");
    }
    if let Some(value) = schema.get("const") {
        return literal(value);
    }
    match &schema["type"] {
        Value::String(kind) => simple(kind, schema),
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            let kinds: Vec<String> = kinds.map(|kind| simple(kind, schema)).collect();
            kinds.join(" or ")
        }
        _ => "anything".to_owned(),
    }
}

/// A schema's fields as rows of a table; none if it has none of its own.
pub fn fields(schema: &Value) -> Option<String> {
    let properties = schema["properties"].as_object()?;
    let required: Vec<&str> = schema["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut rows = String::new();
    for (name, field) in properties {
        let need = if required.contains(&name.as_str()) {
            "required"
        } else {
            ""
        };
        writeln!(
            rows,
            "<tr><td><code>{}</code></td><td>{}</td><td class=\"note\">{need}</td><td>{}</td></tr>",
            escape(name),
            phrase(field),
            about(field),
        )
        .unwrap_or_default();
    }
    Some(format!(
        "<div class=\"wide\"><table><tbody>\n{rows}</tbody></table></div>\n"
    ))
}

/// A schema's own description, on one line.
pub fn about(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    inline(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"]
        .as_str()
        .and_then(|place| place.strip_prefix("#/components/schemas/"))
}

fn literal(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!("<code>{}</code>", escape(text))
}

fn simple(kind: &str, schema: &Value) -> String {
    match kind {
        "array" => {
            let items = match schema.get("items") {
                Some(items) => format!("list of {}", phrase(items)),
                None => "list".to_owned(),
            };
            items + &bounds(schema, "minItems", "maxItems")
        }
        "object" => match schema.get("additionalProperties") {
            Some(values) if values.is_object() => format!("map to {}", phrase(values)),
            _ => "object".to_owned(),
        },
        "string" => {
            let kind = schema["format"].as_str().unwrap_or("text");
            format!(
                "{}{}",
                escape(kind),
                bounds(schema, "minLength", "maxLength")
            )
        }
        "integer" | "number" => {
            let kind = if kind == "integer" {
                "whole number"
            } else {
                kind
            };
            format!("{kind}{}", bounds(schema, "minimum", "maximum"))
        }
        other => escape(other).to_string(),
    }
}

fn bounds(schema: &Value, least: &str, most: &str) -> String {
    let text = match (&schema[least], &schema[most]) {
        (Value::Null, Value::Null) => return String::new(),
        (least, Value::Null) => format!("≥ {least}"),
        (Value::Null, most) => format!("≤ {most}"),
        (least, most) => format!("{least} – {most}"),
    };
    format!(" <span class=\"note\">{}</span>", escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_are_told_in_words() {
        for (schema, words) in [
            (json!({"type": "string"}), "text"),
            (
                json!({"type": "string", "format": "date-time"}),
                "date-time",
            ),
            (json!({"type": ["string", "null"]}), "text or null"),
            (
                json!({"type": "integer", "minimum": 1, "maximum": 5}),
                "whole number <span class=\"note\">1 – 5</span>",
            ),
            (
                json!({"type": "array", "items": {"$ref": "#/components/schemas/Site"}}),
                "list of <a href=\"#schema-Site\">Site</a>",
            ),
            (
                json!({"oneOf": [{"type": "null"}, {"enum": ["a", "b"]}]}),
                "null or <code>a</code> or <code>b</code>",
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
                "map to boolean",
            ),
            (json!({}), "anything"),
        ] {
            assert_eq!(phrase(&schema), words, "{schema}");
        }
    }

    #[test]
    fn fields_say_whether_they_are_required() {
        let schema = json!({
            "properties": {"name": {"type": "string", "description": "Its `<name>`."}},
            "required": ["name"],
        });
        let rows = fields(&schema).unwrap();
        assert!(rows.contains("<td class=\"note\">required</td>"), "{rows}");
        assert!(rows.contains("Its <code>&lt;name&gt;</code>."), "{rows}");
        assert_eq!(fields(&json!({"type": "string"})), None);
    }
}
