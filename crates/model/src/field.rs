//! What is wrong with one field of a request. All wrong fields are reported at once, so a form can mark them all.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FieldError {
    /// Where: `start`, `parameters.image`, `resources[2].amount`.
    pub field: String,
    /// What was wrong and what would be accepted, as a sentence.
    pub message: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldErrors(pub Vec<FieldError>);

impl FieldErrors {
    pub fn push(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldError {
            field: field.into(),
            message: message.into(),
        });
    }

    pub fn one(field: impl Into<String>, message: impl Into<String>) -> Self {
        let mut errors = Self::default();
        errors.push(field, message);
        errors
    }

    /// Keeps the value or notes the error, so that parsing can go on to the next field.
    pub fn keep<T, E: std::fmt::Display>(
        &mut self,
        field: &str,
        parsed: Result<T, E>,
    ) -> Option<T> {
        parsed
            .map_err(|error| self.push(field, error.to_string()))
            .ok()
    }

    /// The value if nothing was wrong, else everything that was.
    pub fn or<T>(self, value: Option<T>) -> Result<T, FieldErrors> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self),
        }
    }
}

impl std::fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{}: {}", error.field, error.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for FieldErrors {}
