//! Texts that travel but must never be printed: passwords, token secrets, one-time links.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};

/// The most characters of a password; a longer one only makes hashing slow.
const LENGTH_MAX: usize = 1000;

/// A secret of `MIN` to 1000 characters. Its `Debug` shows nothing, and its memory is wiped when dropped.
#[derive(Clone)]
pub struct Secret<const MIN: usize>(SecretString);

/// A password as someone types it to sign in.
pub type Password = Secret<1>;
/// A password that is about to be set: long enough to resist guessing (NIST SP 800-63B asks for no more rules).
pub type NewPassword = Secret<10>;
/// A secret that an answer reveals, once, to the one it is for.
pub type Revealed = Secret<1>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be {min} to {LENGTH_MAX} characters, and is {is}")]
pub struct SecretError {
    min: usize,
    is: usize,
}

impl<const MIN: usize> Secret<MIN> {
    pub fn new(text: String) -> Result<Self, SecretError> {
        let secret = SecretString::from(text);
        let is = secret.expose_secret().chars().count();
        if (MIN..=LENGTH_MAX).contains(&is) {
            Ok(Self(secret))
        } else {
            Err(SecretError { min: MIN, is })
        }
    }

    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    pub fn into_inner(self) -> SecretString {
        self.0
    }
}

impl<const MIN: usize> fmt::Debug for Secret<MIN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Writing a secret is meant: this is how it reaches the one who may have it.
impl<const MIN: usize> Serialize for Secret<MIN> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.expose())
    }
}

impl<'de, const MIN: usize> Deserialize<'de> for Secret<MIN> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(d)?).map_err(serde::de::Error::custom)
    }
}

impl<const MIN: usize> utoipa::PartialSchema for Secret<MIN> {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Password)))
            .min_length(Some(MIN))
            .max_length(Some(LENGTH_MAX))
            .into()
    }
}

impl<const MIN: usize> utoipa::ToSchema for Secret<MIN> {
    fn name() -> std::borrow::Cow<'static, str> {
        if MIN > 1 { "NewPassword" } else { "Secret" }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_travels_but_is_not_printed() {
        let password: NewPassword = serde_json::from_str("\"correct horse\"").unwrap();
        assert_eq!(format!("{password:?}"), "Secret");
        assert_eq!(serde_json::to_value(&password).unwrap(), "correct horse");
        assert_eq!(password.expose(), "correct horse");
    }

    #[test]
    fn length_counts_characters() {
        assert!(NewPassword::new("é".repeat(10)).is_ok());
        assert!(NewPassword::new("é".repeat(9)).is_err());
        assert!(Password::new(String::new()).is_err());
        assert!(Password::new("x".repeat(1001)).is_err());
    }
}
