//! Names and texts that people type. Parsed once at the edge; inside, a `Name` is always a good name.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error(
        "`{0}` is not a name: use 1 to 63 lower-case letters, digits, `-`, `_` or `.`, beginning with a letter or digit"
    )]
    Name(String),
    #[error(
        "`{0}` is not a login name: use 2 to 63 lower-case letters, digits, `-`, `_`, `.` or `@`, beginning with a letter"
    )]
    Login(String),
    #[error("must not be empty")]
    Empty,
    #[error("must be at most {max} characters, and is {is}")]
    TooLong { max: usize, is: usize },
    #[error("must not contain control characters")]
    Control,
}

fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, $parse:expr, $min:literal..=$max:literal, $pattern:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                let parse: fn(&str) -> Result<String, NameError> = $parse;
                parse(text).map(Self)
            }
        }
        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                let pattern: Option<&str> = $pattern;
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .min_length(Some($min))
                    .max_length(Some($max))
                    .pattern(pattern)
                    .into()
            }
        }
        impl utoipa::ToSchema for $name {}
    };
}

text_type!(
    /// What people call a site, a project, a type or a resource in commands and addresses: `torino`, `gpu-01`.
    Name,
    |text| {
        let good = (1..=63).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b));
        if good { Ok(text.to_owned()) } else { Err(NameError::Name(shortened(text))) }
    },
    1..=63,
    Some("^[a-z0-9][a-z0-9_.-]{0,62}$")
);

text_type!(
    /// What a person signs in with. Never part of another identifier: ids are opaque, so no two names can collide.
    LoginName,
    |text| {
        let good = (2..=63).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.@".contains(&b));
        if good { Ok(text.to_owned()) } else { Err(NameError::Login(shortened(text))) }
    },
    2..=63,
    Some("^[a-z][a-z0-9_.@-]{1,62}$")
);

/// The longest free text (a title, a reason) that is kept, in characters.
pub const TEXT_MAX_CHARS: usize = 500;

text_type!(
    /// Free text for people: a title, a reason, a label. Trimmed, one line, not empty.
    Text,
    |text| {
        let text = text.trim();
        let is = text.chars().count();
        if text.is_empty() {
            Err(NameError::Empty)
        } else if is > TEXT_MAX_CHARS {
            Err(NameError::TooLong { max: TEXT_MAX_CHARS, is })
        } else if text.chars().any(char::is_control) {
            Err(NameError::Control)
        } else {
            Ok(text.to_owned())
        }
    },
    1..=500,
    None
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["torino", "gpu-01", "a", "0", "rack.3_b"] {
            assert_eq!(good.parse::<Name>().map(String::from), Ok(good.to_owned()));
        }
        for bad in [
            "",
            "GPU",
            "-x",
            ".x",
            "a b",
            "a/b",
            "ü",
            &"x".repeat(64),
            "a\0",
            "a%2f",
        ] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn texts_are_trimmed_and_single_line() {
        assert_eq!(
            "  fine tuning ".parse::<Text>().map(String::from),
            Ok("fine tuning".into())
        );
        assert_eq!("\n \t".parse::<Text>(), Err(NameError::Empty));
        assert_eq!("a\nb".parse::<Text>(), Err(NameError::Control));
        assert!("é".repeat(500).parse::<Text>().is_ok());
        assert!("é".repeat(501).parse::<Text>().is_err());
    }
}
