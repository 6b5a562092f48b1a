//! Bodies and query strings into typed requests; what does not fit becomes a problem that names the field.

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use berth_model::FieldErrors;

use crate::problem::{Code, Problem};

/// Reads a JSON body. Broken JSON is malformed; good JSON of the wrong shape is invalid, field by field.
pub fn body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Box<Problem>> {
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        // serde would take a list for an object with its fields in order; our schemas do not.
        serde_json::from_slice::<IgnoredAny>(bytes).map_err(|error| malformed(&error))?;
        return Err(invalid("", "must be an object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value: T = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        let inner = error.into_inner();
        if inner.is_data() {
            invalid(&field, without_position(&inner.to_string()))
        } else {
            malformed(&inner)
        }
    })?;
    reader.end().map_err(|error| malformed(&error))?;
    Ok(value)
}

/// Reads a query string; a name given several times fills a list.
pub fn query<T: DeserializeOwned>(query: &str) -> Result<T, Box<Problem>> {
    let reader = serde_html_form::Deserializer::from_bytes(query.as_bytes());
    serde_path_to_error::deserialize(reader)
        .map_err(|error| invalid(&error.path().to_string(), &error.inner().to_string()))
}

/// Writes a query string, such that [`query`] reads the same back.
pub fn write_query<T: Serialize>(query: &T) -> Result<String, serde_html_form::ser::Error> {
    serde_html_form::to_string(query)
}

fn malformed(error: &serde_json::Error) -> Box<Problem> {
    let detail = format!("The body is not JSON: {error}.");
    Box::new(Problem::new(Code::RequestMalformed).detail(detail))
}

fn invalid(path: &str, message: &str) -> Box<Problem> {
    // The path of a request that is wrong as a whole is a single dot.
    let path = if path == "." { "" } else { path };
    let missing = message
        .strip_prefix("missing field `")
        .and_then(|rest| rest.strip_suffix('`'));
    let errors = match missing {
        // serde blames the object that lacks the field; a form marks the field itself.
        Some(field) if path.is_empty() => FieldErrors::one(field, "is missing"),
        Some(field) => FieldErrors::one(format!("{path}.{field}"), "is missing"),
        None => FieldErrors::one(path, message),
    };
    Box::new(errors.into())
}

/// serde_json ends its messages with a line and column, which say less than the field's name does.
fn without_position(message: &str) -> &str {
    message
        .rfind(" at line ")
        .map_or(message, |at| &message[..at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::Reason;
    use crate::page::PageQuery;
    use crate::reservations::{NewReservation, ReservationQuery};

    fn refusal(text: &str) -> Problem {
        *body::<NewReservation>(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn broken_json_is_malformed_and_the_wrong_shape_is_invalid() {
        for text in ["", "{", "{\"title\":", "[1,", "nonsense", &"[".repeat(1000)] {
            assert!(refusal(text).is(Code::RequestMalformed), "{text}");
        }
        for text in ["{}", "[]", "null", "3", "\"text\""] {
            assert!(refusal(text).is(Code::RequestInvalid), "{text}");
        }
        assert!(
            body::<Reason>(b"{} {}")
                .unwrap_err()
                .is(Code::RequestMalformed)
        );
        assert!(body::<Reason>(b" {}\n").is_ok());
    }

    #[test]
    fn a_missing_field_is_named_where_it_belongs() {
        let field = |text| refusal(text).errors[0].field.clone();
        assert_eq!(field("{}"), "title");
        assert_eq!(field(r#"{"resources":[{}]}"#), "resources[0].resource");
    }

    #[test]
    fn a_wrong_field_is_named_with_what_would_do() {
        let problem = refusal(
            r#"{"title":"t","start":"2026-11-20T09:00:00Z","end":"2026-11-20T10:00:00Z",
                "resources":[{"resource":"gpu-01"},{"resource":"mem","amount":0}]}"#,
        );
        assert!(problem.is(Code::RequestInvalid));
        assert_eq!(problem.errors[0].field, "resources[1].amount");
        assert_eq!(
            problem.errors[0].message,
            "an amount is a whole number from 1 to 1000000000000"
        );
    }

    #[test]
    fn an_unknown_field_is_refused_by_name() {
        let problem = refusal(r#"{"titel":"t"}"#);
        assert!(
            problem.detail.contains("unknown field `titel`"),
            "{problem:?}"
        );
    }

    #[test]
    fn queries_fill_lists_and_name_wrong_fields() {
        let read: ReservationQuery = query("state=active&state=confirmed&limit=5").unwrap();
        assert_eq!(read.state.as_slice().len(), 2);
        let written = write_query(&read).unwrap();
        assert_eq!(query::<ReservationQuery>(&written).unwrap(), read);
        let problem = query::<PageQuery>("limit=9000").unwrap_err();
        assert_eq!(problem.errors[0].field, "limit");
        let problem = query::<PageQuery>("limt=9").unwrap_err();
        assert!(
            problem.detail.contains("unknown field `limt`"),
            "{problem:?}"
        );
    }
}
