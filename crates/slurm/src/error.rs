//! What is wrong with a command line. Each says which option it is about, since a script has many.

/// Why a command line or a script was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    #[error("unrecognized option '{given}'{}", did_you_mean(closest.as_deref()))]
    Unknown {
        given: String,
        closest: Option<String>,
    },
    #[error(
        "option '{given}' is ambiguous; possibilities: {}",
        quoted(possibilities)
    )]
    Ambiguous {
        given: String,
        possibilities: Vec<&'static str>,
    },
    #[error("option '{option}' requires an argument")]
    MissingValue { option: String },
    #[error("option '{option}' doesn't allow an argument")]
    UnexpectedValue { option: String },
    #[error("{option} is not supported by Berth: {instead}")]
    Unsupported { option: String, instead: String },
    #[error("Invalid {option} specification `{value}`: {reason}")]
    Invalid {
        option: String,
        value: String,
        reason: String,
    },
    #[error("{0} cannot be combined")]
    Conflict(String),
    #[error("Invalid job id {0}")]
    JobId(String),
    #[error("{0}")]
    Script(String),
    #[error("line {line} of the script: {error}")]
    Directive { line: usize, error: Box<UsageError> },
    #[error("{variable} in the environment: {error}")]
    Variable {
        variable: &'static str,
        error: Box<UsageError>,
    },
    #[error("Unrecognized argument: {0}")]
    Operand(String),
    #[error("No job identification provided")]
    NoJob,
}

impl UsageError {
    pub(crate) fn invalid(option: &str, value: &str, reason: impl ToString) -> Self {
        Self::Invalid {
            option: option.to_owned(),
            value: value.to_owned(),
            reason: reason.to_string(),
        }
    }
}

fn did_you_mean(closest: Option<&str>) -> String {
    closest.map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("'--{name}'")).collect();
    names.join(" ")
}
