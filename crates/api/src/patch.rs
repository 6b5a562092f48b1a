//! What a change leaves alone, sets, or clears.
//!
//! In the body of a `PATCH` an absent field is left as it is. `null` clears a field that can be empty and
//! is refused for one that cannot: silently ignoring it would let a caller believe that it was cleared.

use serde::{Deserialize, Deserializer};

/// For `#[serde(default, deserialize_with = "patch::present")]`.
///
/// A present field is `Some`, whatever it holds: with `Option<Option<T>>` a `null` becomes `Some(None)`,
/// with `Option<T>` it is an error, because `T` itself does not read `null`.
pub fn present<'de, T, D>(d: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(d).map(Some)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Change {
        #[serde(default, deserialize_with = "super::present")]
        name: Option<String>,
        #[serde(default, deserialize_with = "super::present")]
        email: Option<Option<String>>,
    }

    #[test]
    fn absent_null_and_a_value_are_three_things() {
        let read = |text| serde_json::from_str::<Change>(text);
        let email = |text| read(text).unwrap().email;
        assert_eq!(email("{}"), None);
        assert_eq!(email(r#"{"email":null}"#), Some(None));
        assert_eq!(email(r#"{"email":"a@b"}"#), Some(Some("a@b".into())));
        assert_eq!(read("{}").unwrap().name, None);
        assert!(read(r#"{"name":null}"#).is_err());
    }
}
