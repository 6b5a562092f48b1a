//! The shape shared by small texts with a pattern: checked when read, the pattern in the schema.

/// Declares a text type with `new`-less construction: the only way in is parsing.
/// `$check` and `$pattern` must agree; each type has a test that holds them together.
macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $lengths:expr, $pattern:literal, $check:expr, $wanted:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = crate::text::TextError;
            fn try_from(text: String) -> Result<Self, crate::text::TextError> {
                let good: fn(&str) -> bool = $check;
                if $lengths.contains(&text.len()) && good(&text) {
                    Ok(Self(text))
                } else {
                    Err(crate::text::TextError($wanted))
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::text::TextError;
            fn from_str(text: &str) -> Result<Self, crate::text::TextError> {
                text.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> String {
                text.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .min_length(Some(*$lengths.start()))
                    .max_length(Some(*$lengths.end()))
                    .pattern(Some($pattern))
                    .into()
            }
        }
        impl utoipa::ToSchema for $name {}
    };
}
pub(crate) use text;

/// Says what was wanted; the text itself is not repeated, since the field's name stands beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TextError(pub(crate) &'static str);
